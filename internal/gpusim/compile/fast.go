package compile

import (
	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
)

// alu32 runs f on the whole registers, by way of a copy when some lanes are off.
func alu32(d, a, b, c warp.Slot, f arith.Loop32) warp.Op {
	return func(w *warp.Warp) {
		if w.Mask == simt.Full {
			f(&w.R32[d.I], &w.R32[a.I], &w.R32[b.I], &w.R32[c.I])
			return
		}
		f(&w.T32, &w.R32[a.I], &w.R32[b.I], &w.R32[c.I])
		blend32(&w.R32[d.I], &w.T32, &w.T32, simt.Full, w.Mask)
	}
}

func alu64(d, a, b, c warp.Slot, f arith.Loop64) warp.Op {
	return func(w *warp.Warp) {
		if w.Mask == simt.Full {
			f(&w.R64[d.I], &w.R64[a.I], &w.R64[b.I], &w.R64[c.I])
			return
		}
		f(&w.T64, &w.R64[a.I], &w.R64[b.I], &w.R64[c.I])
		blend64(&w.R64[d.I], &w.T64, &w.T64, simt.Full, w.Mask)
	}
}

// fast returns a whole-warp operation for the instruction, or nil.
func (e *emitter) fast(d warp.Slot, s [4]warp.Slot, n int) warp.Op {
	name := e.in.Name()
	all := func(b simt.Bank, s []warp.Slot) bool {
		for _, x := range s {
			if x.Bank != b || b == simt.Bank32 && x.Bits != 32 && x.Bits != 64 {
				return false
			}
		}
		return true
	}
	if f := arith.Loops32[name]; f != nil && d.Bank == simt.Bank32 && d.Bits >= 32 && all(simt.Bank32, s[:n]) {
		return alu32(d, s[0], s[1], s[2], f)
	}
	if f := arith.Loops64[name]; f != nil && d.Bank == simt.Bank64 && all(simt.Bank64, s[:n]) {
		return alu64(d, s[0], s[1], s[2], f)
	}
	if f := arith.LoopsWiden[name]; f != nil && d.Bank == simt.Bank64 && all(simt.Bank32, s[:min(n, 2)]) && (n < 3 || s[2].Bank == simt.Bank64) {
		c := s[2]
		if n < 3 {
			c = d
		}
		return func(w *warp.Warp) {
			if w.Mask == simt.Full {
				f(&w.R64[d.I], &w.R32[s[0].I], &w.R32[s[1].I], &w.R64[c.I])
				return
			}
			f(&w.T64, &w.R32[s[0].I], &w.R32[s[1].I], &w.R64[c.I])
			blend64(&w.R64[d.I], &w.T64, &w.T64, simt.Full, w.Mask)
		}
	}
	return nil
}

// fastCompare returns a whole-warp comparison, or nil.
func (e *emitter) fastCompare(a, b warp.Slot) func(w *warp.Warp) uint32 {
	if len(e.in.Args) != 3 {
		return nil
	}
	name := e.in.Name()
	if f := arith.Tests32[name]; f != nil && a.Bank == simt.Bank32 && b.Bank == simt.Bank32 {
		return func(w *warp.Warp) uint32 { return f(&w.R32[a.I], &w.R32[b.I]) }
	}
	if f := arith.Tests64[name]; f != nil && a.Bank == simt.Bank64 && b.Bank == simt.Bank64 {
		return func(w *warp.Warp) uint32 { return f(&w.R64[a.I], &w.R64[b.I]) }
	}
	return nil
}
