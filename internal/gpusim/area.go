package gpusim

import (
	"encoding/binary"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// area is the memory in which all active lanes' accesses lie, with their offsets in w.off: the common case, in which one
// look-up serves all. It is nil when lanes must be looked at one by one.
func (w *warp) area(a *access) []byte {
	c := w.cta
	space, base := a.space, uint64(0)
	first := w.addr[lowest(w.mask)]
	if space == ptx.Generic {
		space = spaceAt(first)
		base = window(space)
	}
	var mem []byte
	switch space {
	case ptx.Global, ptx.ConstSpace:
		al := c.worker.last
		if al == nil || first < al.lo || first >= al.hi {
			if al = c.grid.dev.find(first); al == nil {
				return nil
			}
			c.worker.last = al
		}
		if a.write && al.constant {
			return nil
		}
		c.worker.remember(a, al)
		if mem, base = al.data, al.lo; !w.seen && (al.tracked() || a.watched(c.grid) || a.write && len(c.sources) > 0) {
			return nil
		}
	case ptx.Shared:
		if mem = c.shared; !w.seen && (c.race != nil || c.written != nil) {
			return nil
		}
	default:
		return nil
	}
	if len(mem) < a.size || !w.offsets(base, uint64(len(mem)-a.size), uint64(a.size-1)) {
		return nil
	}
	return mem
}

// offsets fills w.off and reports whether all are at most last and aligned; lanes that are off get 0. It sets w.row if
// the accesses of a whole warp follow each other.
func (w *warp) offsets(base, last, low uint64) bool {
	if w.mask == full && last < 1<<62 {
		var beyond, all, apart uint64 // the highest bit of beyond is set by an offset above last
		next := w.addr[0]
		for i, v := range &w.addr {
			apart |= v ^ next
			next += low + 1
			v -= base
			beyond |= (last - v) | v
			all |= v
			w.off[i] = int(v)
		}
		w.row = apart == 0
		return beyond>>63 == 0 && all&low == 0
	}
	var bad bool
	w.off, w.row = [warpSize]int{}, false
	for m := w.mask; m != 0; m &= m - 1 {
		i := lowest(m)
		v := w.addr[i] - base
		bad = bad || v > last || v&low != 0
		w.off[i] = int(v)
	}
	return !bad
}

// loadRow loads 4 bytes for each lane, one after the other.
func loadRow(d *vec32, mem []byte) {
	for i := 0; i < warpSize; i += 4 {
		m, r := (*[16]byte)(mem[4*i:]), (*[4]uint32)(d[i:])
		r[0], r[1] = binary.LittleEndian.Uint32(m[:]), binary.LittleEndian.Uint32(m[4:])
		r[2], r[3] = binary.LittleEndian.Uint32(m[8:]), binary.LittleEndian.Uint32(m[12:])
	}
}

func storeRow(mem []byte, s *vec32) {
	for i := 0; i < warpSize; i += 4 {
		m, r := (*[16]byte)(mem[4*i:]), (*[4]uint32)(s[i:])
		binary.LittleEndian.PutUint32(m[:], r[0])
		binary.LittleEndian.PutUint32(m[4:], r[1])
		binary.LittleEndian.PutUint32(m[8:], r[2])
		binary.LittleEndian.PutUint32(m[12:], r[3])
	}
}

// loadWords loads 4 bytes for each lane, at w.off in mem.
func (w *warp) loadWords(d slot, mem []byte) {
	if d.bank == bank64 {
		out := &w.q[d.i]
		for m := w.mask; m != 0; m &= m - 1 {
			i := lowest(m)
			out[i] = uint64(binary.LittleEndian.Uint32(mem[w.off[i]:]))
		}
		return
	}
	out := &w.r[d.i]
	if w.mask == full {
		for i, at := range &w.off {
			out[i] = binary.LittleEndian.Uint32(mem[at:])
		}
		return
	}
	for m := w.mask; m != 0; m &= m - 1 {
		i := lowest(m)
		out[i] = binary.LittleEndian.Uint32(mem[w.off[i]:])
	}
}

func (w *warp) storeWords(s slot, mem []byte) {
	if s.bank == bank64 {
		for m := w.mask; m != 0; m &= m - 1 {
			i := lowest(m)
			binary.LittleEndian.PutUint32(mem[w.off[i]:], uint32(w.q[s.i][i]))
		}
		return
	}
	in := &w.r[s.i]
	for m := w.mask; m != 0; m &= m - 1 {
		i := lowest(m)
		binary.LittleEndian.PutUint32(mem[w.off[i]:], in[i])
	}
}
