package warp

import (
	"encoding/binary"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Area is the memory in which all active lanes' accesses lie, with their offsets in w.Off: the common case, in which one
// look-up serves all. It is nil when lanes must be looked at one by one, which they will be unless whole.
func (w *Warp) Area(a *check.Access, whole bool) []byte {
	c := w.CTA
	space, base := a.Space, uint64(0)
	first := w.Addr[simt.Lowest(w.Mask)]
	if space == ptx.Generic {
		space = memory.SpaceAt(first)
		base = memory.Window(space)
	}
	var mem []byte
	switch space {
	case ptx.Global, ptx.ConstSpace:
		al := c.Worker.last
		if al == nil || first < al.Lo || first >= al.Hi {
			if al = c.Launch.Mem.Find(first); al == nil {
				return nil
			}
			c.Worker.last = al
		}
		if a.Write && al.Constant {
			return nil
		}
		c.Worker.remember(a, al)
		if mem, base = al.Data, al.Lo; !w.Seen && (al.Tracked() || c.Launch.Stale.Follows(a) || a.Write && len(c.sources) > 0) {
			return nil
		}
	case ptx.Shared:
		if mem = c.shared; !w.Seen && (c.Race != nil || c.written != nil || c.talks(a)) {
			return nil
		}
	default:
		return nil
	}
	if len(mem) < a.Size || !w.offsets(base, uint64(len(mem)-a.Size), uint64(a.Size-1)) {
		return nil
	}
	if c.global != nil && whole && space == ptx.Global && !w.Seen {
		c.global.Warp(c.Order, w.Id, w.Mask, a, &w.Addr)
	}
	return mem
}

// offsets fills w.Off and reports whether all are at most last and aligned; lanes that are off get 0. It sets w.Row if
// the accesses of a whole warp follow each other.
func (w *Warp) offsets(base, last, low uint64) bool {
	if w.Mask == simt.Full && last < 1<<62 {
		var beyond, all, apart uint64 // the highest bit of beyond is set by an offset above last
		next := w.Addr[0]
		for i, v := range &w.Addr {
			apart |= v ^ next
			next += low + 1
			v -= base
			beyond |= (last - v) | v
			all |= v
			w.Off[i] = int(v)
		}
		w.Row = apart == 0
		return beyond>>63 == 0 && all&low == 0
	}
	var bad bool
	w.Off, w.Row = [simt.WarpSize]int{}, false
	for m := w.Mask; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		v := w.Addr[i] - base
		bad = bad || v > last || v&low != 0
		w.Off[i] = int(v)
	}
	return !bad
}

// LoadRow loads 4 bytes for each lane, one after the other.
func LoadRow(d *simt.Vec32, mem []byte) {
	for i := 0; i < simt.WarpSize; i += 4 {
		m, r := (*[16]byte)(mem[4*i:]), (*[4]uint32)(d[i:])
		r[0], r[1] = binary.LittleEndian.Uint32(m[:]), binary.LittleEndian.Uint32(m[4:])
		r[2], r[3] = binary.LittleEndian.Uint32(m[8:]), binary.LittleEndian.Uint32(m[12:])
	}
}

// StoreRow stores 4 bytes for each lane, one after the other.
func StoreRow(mem []byte, s *simt.Vec32) {
	for i := 0; i < simt.WarpSize; i += 4 {
		m, r := (*[16]byte)(mem[4*i:]), (*[4]uint32)(s[i:])
		binary.LittleEndian.PutUint32(m[:], r[0])
		binary.LittleEndian.PutUint32(m[4:], r[1])
		binary.LittleEndian.PutUint32(m[8:], r[2])
		binary.LittleEndian.PutUint32(m[12:], r[3])
	}
}

// LoadWords loads 4 bytes for each lane, at w.Off in mem.
func (w *Warp) LoadWords(d Slot, mem []byte) {
	if d.Bank == simt.Bank64 {
		out := &w.R64[d.I]
		for m := w.Mask; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			out[i] = uint64(binary.LittleEndian.Uint32(mem[w.Off[i]:]))
		}
		return
	}
	out := &w.R32[d.I]
	if w.Mask == simt.Full {
		for i, at := range &w.Off {
			out[i] = binary.LittleEndian.Uint32(mem[at:])
		}
		return
	}
	for m := w.Mask; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		out[i] = binary.LittleEndian.Uint32(mem[w.Off[i]:])
	}
}

// StoreWords stores 4 bytes for each lane, at w.Off in mem.
func (w *Warp) StoreWords(s Slot, mem []byte) {
	if s.Bank == simt.Bank64 {
		for m := w.Mask; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			binary.LittleEndian.PutUint32(mem[w.Off[i]:], uint32(w.R64[s.I][i]))
		}
		return
	}
	in := &w.R32[s.I]
	for m := w.Mask; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		binary.LittleEndian.PutUint32(mem[w.Off[i]:], in[i])
	}
}
