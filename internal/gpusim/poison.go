package gpusim

import (
	"bytes"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// Compilers put 16-bit values that are undefined into halves of registers, and take only the other halves out again. So
// poison has the granularity of bytes where a vector is packed into a register and unpacked from it; everywhere else a
// register of which any part is undefined is undefined.

// parts is by byte of a register the lanes in which it is undefined.
type parts [8]uint32

// packs returns the vector of a mov that packs or unpacks one, and the register on the other side.
func packs(in *ptx.Inst) (v *ptx.Vec, r *ptx.Reg, unpack bool) {
	if in.Op != "mov" || len(in.Args) != 2 {
		return nil, nil, false
	}
	if v, ok := in.Args[1].(*ptx.Vec); ok {
		r, _ := in.Args[0].(*ptx.Reg)
		return v, r, false
	}
	v, _ = in.Args[0].(*ptx.Vec)
	r, _ = in.Args[1].(*ptx.Reg)
	return v, r, true
}

// markMov gives the results of a mov of a vector the poison of their own bytes.
func (w *warp) markMov(in *finst, v *ptx.Vec, r *ptx.Reg, unpack bool) {
	width := in.Inst.Type().Size() / len(v.Elems)
	reg := func(o ptx.Operand) (int, bool) {
		x, ok := o.(*ptx.Reg)
		if !ok {
			return 0, false
		}
		return in.fr.reg + x.ID, true
	}
	whole := in.fr.reg + r.ID
	for i, o := range v.Elems {
		part, ok := reg(o)
		switch {
		case unpack && ok:
			w.undef[part] = w.undef[part]&^w.mask | w.undefBytes(whole, i*width, width)&w.mask
			w.moveBytes(part, 0, whole, i*width, width)
		case !unpack && ok:
			w.moveBytes(whole, i*width, part, 0, width)
		case !unpack:
			w.setBytes(whole, i*width, width, 0)
		}
	}
}

// moveBytes gives bytes of a register the poison of bytes of another.
func (w *warp) moveBytes(to, at, from, off, n int) {
	if w.parts[to] == nil && w.undef[to] == 0 && w.undef[from] == 0 {
		return
	}
	for i := range n {
		w.setBytes(to, at+i, 1, w.undefBytes(from, off+i, 1))
	}
}

// undefBytes is the lanes in which any of some bytes of a register is undefined.
func (w *warp) undefBytes(r, from, n int) uint32 {
	p := w.parts[r]
	if p == nil {
		return w.undef[r]
	}
	var bad uint32
	for _, b := range p[from : from+n] {
		bad |= b
	}
	return bad & w.undef[r]
}

// setBytes notes the lanes in which some bytes of a register are undefined.
func (w *warp) setBytes(r, from, n int, bad uint32) {
	p := w.partsOf(r)
	for i := from; i < from+n; i++ {
		p[i] = p[i]&^w.mask | bad&w.mask
	}
}

// setWhole notes the same for all bytes of registers that were written as a whole.
func (w *warp) setWhole(regs []int, mask, bad uint32) {
	for _, r := range regs {
		if p := w.parts[r]; p != nil {
			for i := range p {
				p[i] = p[i]&^mask | bad&mask
			}
		}
	}
}

// partsOf makes the bytes of a register known one by one.
func (w *warp) partsOf(r int) *parts {
	p := w.parts[r]
	if p == nil {
		if w.parts == nil {
			w.parts = map[int]*parts{}
		}
		p = new(parts)
		for i := range p {
			p[i] = full
		}
		w.parts[r] = p
	}
	return p
}

// passUndef gives what a shuffle wrote the poison of the lanes that it read: bad and p are that of the source before.
func (w *warp) passUndef(to int, bad uint32, p *parts, from *[warpSize]uint8) {
	pass := func(bad uint32) (out uint32) {
		for m := w.mask; bad != 0 && m != 0; m &= m - 1 {
			i := lowest(m)
			out |= bad >> from[i] & 1 << i
		}
		return out
	}
	out := pass(bad)
	w.undef[to] = w.undef[to]&^w.mask | out
	if p == nil || out == 0 {
		w.setWhole([]int{to}, w.mask, out)
		return
	}
	for i, bad := range p {
		w.setBytes(to, i, 1, pass(bad))
	}
}

// localMove is a load or a store that may be one of local memory, which has poison of its own: a byte for each byte.
type localMove struct {
	store, generic, signed bool
	size                   int
	regs                   []int // -1 for what is no register
}

// mayBeLocal is whether the instruction under way accesses local memory, or may.
func (e *emitter) mayBeLocal() bool {
	a := e.access
	return a != nil && (a.space == ptx.Local || a.space == ptx.Generic && e.f.locals > 0) || e.in.Op == "call" && e.f.locals > 0
}

// localMove describes the instruction under way, nil if it is none.
func (e *emitter) localMove() *localMove {
	if !e.mayBeLocal() || e.in.Op != "ld" && e.in.Op != "st" {
		return nil
	}
	t := e.in.Type()
	m := &localMove{store: e.in.Op == "st", generic: e.access.space == ptx.Generic, signed: t == ptx.S8 || t == ptx.S16 || t == ptx.S32, size: t.Size()}
	o := e.in.Args[b2u(m.store)]
	list := []ptx.Operand{o}
	if v, ok := o.(*ptx.Vec); ok {
		list = v.Elems
	}
	for _, o := range list {
		id := -1
		if r, ok := o.(*ptx.Reg); ok {
			id = e.in.fr.reg + r.ID
		}
		m.regs = append(m.regs, id)
	}
	return m
}

// follow moves poison as the instruction has moved data. The addresses are in w.addr still.
func (m *localMove) follow(w *warp, s *site) {
	for lanes := w.mask; lanes != 0; lanes &= lanes - 1 {
		i := lowest(lanes)
		at := w.addr[i]
		if m.generic {
			if spaceAt(at) != ptx.Local {
				m.elsewhere(w, s, i)
				continue
			}
			at -= window(ptx.Local)
		}
		undef := w.localUndef[i*w.code.kernel.Local+int(at):]
		for j, r := range m.regs {
			if m.store {
				w.storeUndef(undef[j*m.size:][:m.size], r, i)
			} else if r >= 0 {
				w.loadUndef(undef[j*m.size:][:m.size], r, i, m.signed)
			}
		}
	}
}

// elsewhere is for a lane that has stored to other memory after all. A value of which some bytes are defined is a structure
// with padding, as compilers copy it in words when they do not optimise.
func (m *localMove) elsewhere(w *warp, s *site, lane int) {
	for _, r := range m.regs {
		if m.store && r >= 0 && w.undef[r]>>lane&1 == 1 && m.allUndef(w, r, lane) {
			w.noteUndef(s, 1<<lane)
			return
		}
	}
}

// allUndef is whether no byte that the lane stores of an undefined register is defined.
func (m *localMove) allUndef(w *warp, r, lane int) bool {
	for b := range m.size {
		if w.undefBytes(r, b, 1)>>lane&1 == 0 {
			return false
		}
	}
	return true
}

func (w *warp) storeUndef(undef []byte, r, lane int) {
	clear(undef)
	if r < 0 || w.undef[r]>>lane&1 == 0 {
		return
	}
	for b := range undef {
		undef[b] = byte(w.undefBytes(r, b, 1) >> lane & 1)
	}
}

func (w *warp) loadUndef(undef []byte, r, lane int, signed bool) {
	if bytes.IndexByte(undef, 1) < 0 {
		return
	}
	w.undef[r] |= 1 << lane
	p := w.partsOf(r)
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

// answered makes defined what a function of the simulator returns in local memory.
func (w *warp) answered(result place, size int) {
	for m := w.mask; m != 0 && w.localUndef != nil; m &= m - 1 {
		clear(w.localUndef[lowest(m)*w.code.kernel.Local+int(result.off):][:size])
	}
}
