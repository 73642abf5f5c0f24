package gpusim

import "github.com/warpline-ml/warpline/internal/ptx"

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
