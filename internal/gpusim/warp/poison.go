package warp

import (
	"bytes"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// Compilers put 16-bit values that are undefined into halves of registers, and take only the other halves out again. So
// poison has the granularity of bytes where a vector is packed into a register and unpacked from it; everywhere else a
// register of which any part is undefined is undefined.

// ByByte is by byte of a register the lanes in which it is undefined.
type ByByte [8]uint32

// MoveBytes gives bytes of a register the poison of bytes of another.
func (w *Warp) MoveBytes(to, at, from, off, n int) {
	if w.UndefBytes[to] == nil && w.Undef[to] == 0 && w.Undef[from] == 0 {
		return
	}
	for i := range n {
		w.SetBytes(to, at+i, 1, w.UndefIn(from, off+i, 1))
	}
}

// UndefIn is the lanes in which any of some bytes of a register is undefined.
func (w *Warp) UndefIn(r, from, n int) uint32 {
	p := w.UndefBytes[r]
	if p == nil {
		return w.Undef[r]
	}
	var bad uint32
	for _, b := range p[from : from+n] {
		bad |= b
	}
	return bad & w.Undef[r]
}

// SetBytes notes the lanes in which some bytes of a register are undefined.
func (w *Warp) SetBytes(r, from, n int, bad uint32) {
	p := w.BytesOf(r)
	for i := from; i < from+n; i++ {
		p[i] = p[i]&^w.Mask | bad&w.Mask
	}
}

// SetWhole notes the same for all bytes of registers that were written as a whole.
func (w *Warp) SetWhole(regs []int, mask, bad uint32) {
	for _, r := range regs {
		if p := w.UndefBytes[r]; p != nil {
			for i := range p {
				p[i] = p[i]&^mask | bad&mask
			}
		}
	}
}

// BytesOf makes the bytes of a register known one by one.
func (w *Warp) BytesOf(r int) *ByByte {
	p := w.UndefBytes[r]
	if p == nil {
		if w.UndefBytes == nil {
			w.UndefBytes = map[int]*ByByte{}
		}
		p = new(ByByte)
		for i := range p {
			p[i] = simt.Full
		}
		w.UndefBytes[r] = p
	}
	return p
}

// PassUndef gives what a shuffle wrote the poison of the lanes that it read: bad and p are that of the source before.
func (w *Warp) PassUndef(to int, bad uint32, p *ByByte, from *[simt.WarpSize]uint8) {
	pass := func(bad uint32) (out uint32) {
		for m := w.Mask; bad != 0 && m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			out |= bad >> from[i] & 1 << i
		}
		return out
	}
	out := pass(bad)
	w.Undef[to] = w.Undef[to]&^w.Mask | out
	if p == nil || out == 0 {
		w.SetWhole([]int{to}, w.Mask, out)
		return
	}
	for i, bad := range p {
		w.SetBytes(to, i, 1, pass(bad))
	}
}

// StoreUndef gives bytes of local memory the poison of a lane's register, -1 for what is no register.
func (w *Warp) StoreUndef(undef []byte, r, lane int) {
	clear(undef)
	if r < 0 || w.Undef[r]>>lane&1 == 0 {
		return
	}
	for b := range undef {
		undef[b] = byte(w.UndefIn(r, b, 1) >> lane & 1)
	}
}

// LoadUndef gives a lane's register the poison of bytes of local memory.
func (w *Warp) LoadUndef(undef []byte, r, lane int, signed bool) {
	if bytes.IndexByte(undef, 1) < 0 {
		return
	}
	w.Undef[r] |= 1 << lane
	p := w.BytesOf(r)
	for b := range p {
		bad := byte(0)
		if b < len(undef) {
			bad = undef[b]
		} else if signed {
			bad = undef[len(undef)-1]
		}
		p[b] = p[b]&^(1<<lane) | uint32(bad)<<lane
	}
}

// Answered makes defined what a function of the simulator returns in local memory.
func (w *Warp) Answered(result, size int) {
	for m := w.Mask; m != 0 && w.LocalUndef != nil; m &= m - 1 {
		clear(w.LocalUndef[simt.Lowest(m)*w.Code.Local+result:][:size])
	}
}

// UndefAny is the lanes in which any of some registers is undefined.
func (w *Warp) UndefAny(regs []int) (bad uint32) {
	for _, r := range regs {
		bad |= w.Undef[r]
	}
	return bad
}

// UndefLow is the lanes in which any of the lower bytes of some registers is undefined.
func (w *Warp) UndefLow(regs []int, size int) (bad uint32) {
	for _, r := range regs {
		bad |= w.UndefIn(r, 0, size)
	}
	return bad
}

// NoteUndef is the finding that some lanes use what nobody wrote.
func (w *Warp) NoteUndef(s *check.Site, lanes uint32) {
	w.CTA.Note(w, s, lanes, check.Initcheck, "an address, predicate or value that was never written is used")
}
