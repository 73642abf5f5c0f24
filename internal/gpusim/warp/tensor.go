package warp

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/tensormap"
	"github.com/warpline-ml/warpline/internal/numbers"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Box is the operand of a copy of a box of a tensor.
type Box struct {
	Map     uint64 // a generic address
	At      [tensormap.MaxRank]int32
	Offsets [tensormap.MaxRank - 2]uint16 // of im2col
	Rank    int
	Im2col  bool
}

// boxAlign is what a box in shared memory is aligned to.
const boxAlign = 128

// readMaps are the maps that a worker read last, with their bytes.
type readMaps struct {
	raw  [4][tensormap.Size]byte
	maps [4]*tensormap.Map
	next int
}

// parse decodes a map, once for bytes that come again.
func (r *readMaps) parse(raw *[tensormap.Size]byte) (*tensormap.Map, error) {
	for i := range r.raw {
		if r.maps[i] != nil && r.raw[i] == *raw {
			return r.maps[i], nil
		}
	}
	m, err := tensormap.Parse(raw[:])
	if err == nil {
		r.raw[r.next], r.maps[r.next] = *raw, m
		r.next = (r.next + 1) % len(r.raw)
	}
	return m, err
}

// tensorMap reads the map of a copy; nil when the kernel was stopped.
func (w *Warp) tensorMap(b *Bulk, lane int, x *Box) *tensormap.Map {
	var raw [tensormap.Size]byte
	a := &check.Access{Site: b.Site, Space: ptx.Generic, Size: 16}
	if x.Map%tensormap.Align != 0 {
		w.badAccess(a, lane, ptx.Generic, x.Map, memory.MisalignedAddress, "a tensor map at an address that is no multiple of 64", "")
		return nil
	}
	for i := 0; i < len(raw); i += 16 {
		p := w.Ref(a, lane, x.Map+uint64(i))
		if p == nil {
			return nil
		}
		copy(raw[i:], p)
	}
	m, err := w.CTA.Worker.maps.parse(&raw)
	if err == nil && (m.Rank != x.Rank || m.Im2col != x.Im2col) {
		err = fmt.Errorf("the map has %d dimensions%s", m.Rank, map[bool]string{true: " and im2col"}[m.Im2col])
	}
	if err != nil {
		w.CTA.Stop(w, b.Site, lane, memory.IllegalInstruction, check.Memcheck, "a tensor map that the copy cannot use, at %#x: %v", x.Map, err)
		return nil
	}
	if by := w.CTA.changedMaps[x.Map]; by != nil {
		w.CTA.noteBoth(w, b.Site, by, lane, check.Racecheck, "a tensor map is used that the block has changed, without fence.proxy.tensormap::generic.acquire in between", "", 0, 0, "")
	}
	return m
}

// piece is a run of a box with its bytes in global memory; nil outside of the tensor.
type piece struct {
	at, n  int
	global []byte
}

// pieces finds the runs of a box and checks their places.
func (w *Warp) pieces(b *Bulk, lane int, x *Box, m *tensormap.Map) ([]piece, bool) {
	wk := w.CTA.Worker
	if list, ok := w.plainRows(b, x, m); ok {
		return list, true
	}
	wk.runs = m.Runs(wk.runs[:0], x.At[:m.Rank], x.Offsets[:])
	list := wk.takePieces()
	for i, r := range wk.runs {
		list = append(list, piece{at: r.At, n: r.Bytes})
		if !r.Inside {
			continue
		}
		if list[i].global = w.globalSpan(b.Global, lane, r.Addr, r.Bytes); list[i].global == nil {
			return nil, false
		}
	}
	w.countRequest(b.Site, m.BoxBytes())
	return list, true
}

// plainRows is pieces for what most boxes are: whole, inside of one allocation, of which nothing is followed.
func (w *Warp) plainRows(b *Bulk, x *Box, m *tensormap.Map) ([]piece, bool) {
	wk := w.CTA.Worker
	addr, rows, n, ok := m.Rows(x.At[:])
	if !ok || w.CTA.Launch.Counters || w.CTA.global != nil {
		return nil, false
	}
	al, end := wk.last, addr+uint64(rows-1)*m.Stride[1]+uint64(n)
	if al == nil || addr < al.Lo || addr >= al.Hi {
		if al = w.CTA.Launch.Mem.Find(addr); al == nil {
			return nil, false
		}
		wk.last = al
	}
	if al.Data == nil || end > al.Hi || al.Tracked() || b.Global.Write && al.Constant {
		return nil, false
	}
	list := wk.takePieces()
	for at := range rows {
		list = append(list, piece{at * n, n, al.Data[addr-al.Lo:][:n]})
		addr += m.Stride[1]
	}
	return list, true
}

// takePieces gives a list for pieces that may have been used before.
func (wk *Worker) takePieces() []piece {
	n := len(wk.pieces)
	if n == 0 {
		return nil
	}
	list := wk.pieces[n-1]
	wk.pieces = wk.pieces[:n-1]
	return list[:0]
}

// LoadTensor copies a box of a tensor to shared memory, of all blocks in the mask where it is not 0.
func (w *Warp) LoadTensor(b *Bulk, lane int, dst uint64, x Box, bar uint64, mask uint32) {
	m := w.tensorMap(b, lane, &x)
	if m == nil || !w.aligned(b.Shared, lane, dst, boxAlign) {
		return
	}
	list, ok := w.pieces(b, lane, &x, m)
	if !ok {
		return
	}
	wk := w.CTA.Worker
	w.eachTarget(b, lane, dst, m.Span(), m.BoxBytes(), bar, mask, func(c *CTA, to []byte, off int) func() {
		return func() {
			if mask == 0 { // nobody else has the list
				defer func() { wk.pieces = append(wk.pieces, list) }()
			}
			for _, p := range list {
				if p.global == nil {
					fillBox(m, to, off, p.at, p.n)
				} else {
					placeInBox(m, to, off, p.at, p.global)
				}
			}
			c.wrote(off, len(to))
		}
	})
}

// inUnits calls f for the parts of a run of a box that lie together in shared memory: units of 16 bytes of absolute addresses.
func inUnits(m *tensormap.Map, off, at, n int, f func(at, from, n int)) {
	for done := 0; done < n; {
		a := off + at + done
		size := min(unit-a%unit, n-done)
		f(int(m.Swizzle.At(uint32(a)))-off, done, size)
		done += size
	}
}

// placeInBox writes a run of a box that begins at off in shared memory.
func placeInBox(m *tensormap.Map, to []byte, off, at int, from []byte) {
	switch {
	case m.Swizzle == tensormap.NoSwizzle:
		copy(to[at:], from)
	case at%unit == 0 && len(from)%unit == 0:
		mask := int(m.Swizzle.Mask())
		for a := off + at; len(from) >= unit; a += unit {
			*(*[unit]byte)(to[a^a>>3&mask-off:]) = *(*[unit]byte)(from)
			from = from[unit:]
		}
	default:
		inUnits(m, off, at, len(from), func(at, i, n int) { copy(to[at:][:n], from[i:]) })
	}
}

// fillBox writes what is outside of the tensor.
func fillBox(m *tensormap.Map, to []byte, off, at, n int) {
	size := m.Elem.Bytes()
	inUnits(m, off, at, n, func(at, _, n int) {
		if !m.NaN {
			clear(to[at:][:n])
			return
		}
		for i := 0; i < n; i += size {
			numbers.Put(to[at+i:], size, ^uint64(0)>>1>>(64-8*size))
		}
	})
}

// takeFromBox reads a run.
func takeFromBox(m *tensormap.Map, from []byte, off, at int, to []byte) {
	if mask := int(m.Swizzle.Mask()); at%unit == 0 && len(to)%unit == 0 {
		for a := off + at; len(to) >= unit; a += unit {
			*(*[unit]byte)(to) = *(*[unit]byte)(from[a^a>>3&mask-off:])
			to = to[unit:]
		}
		return
	}
	inUnits(m, off, at, len(to), func(at, i, n int) { copy(to[i:][:n], from[at:]) })
}

// StoreTensor copies a box from shared memory to a tensor, or combines them, by the type of the map's elements. What is outside
// of the tensor is left out.
func (w *Warp) StoreTensor(b *Bulk, lane int, x Box, src uint64, combine *[tensormap.Elems]func(to, from []byte)) {
	m := w.tensorMap(b, lane, &x)
	if m == nil || !w.aligned(b.Shared, lane, src, boxAlign) {
		return
	}
	f := combine[m.Elem]
	if f == nil {
		w.CTA.Stop(w, b.Site, lane, memory.IllegalInstruction, check.Memcheck, "the elements of the tensor map have no such operation: type %d of CUtensorMapDataType", m.Elem)
		return
	}
	n := m.Span()
	c, from, off := w.sharedSpan(b.Shared, lane, src, n)
	if c == nil {
		return
	}
	list, ok := w.pieces(b, lane, &x, m)
	if !ok {
		return
	}
	w.readShared(b.Shared, lane, c, off, n)
	w.complete(b, lane, nil, Mbarrier{}, 0, w.flyOut(b, lane, c, off, n), func() {
		row := make([]byte, n)
		for _, p := range list {
			if p.global != nil {
				takeFromBox(m, from, off, p.at, row[:p.n])
				f(p.global, row[:p.n])
			}
		}
	})
}

// ReplaceInMap changes a field of the map at the lane's address.
func (w *Warp) ReplaceInMap(a *check.Access, lane int, field string, ord int, v uint64) {
	var parts [tensormap.Size / 16][]byte
	var raw [tensormap.Size]byte
	at := w.Addr[lane]
	read := *a
	read.Write = false
	for i := range parts {
		if parts[i] = w.Ref(&read, lane, at+uint64(16*i)); parts[i] == nil {
			return
		}
		copy(raw[16*i:], parts[i])
	}
	old := raw
	if err := tensormap.Replace(raw[:], field, ord, v); err != nil {
		w.CTA.Stop(w, a.Site, lane, memory.IllegalInstruction, check.Memcheck, "tensormap.replace: %v", err)
		return
	}
	for i := range parts {
		if [16]byte(raw[16*i:]) != [16]byte(old[16*i:]) {
			if p := w.Ref(a, lane, at+uint64(16*i)); p != nil {
				copy(p, raw[16*i:][:16])
			}
		}
	}
	if a.Space == ptx.Global || a.Space == ptx.Generic && memory.SpaceAt(at) == ptx.Global {
		w.CTA.changeMap(at, a.Site)
	}
}

// changeMap notes that a map in global memory has changed: it may be used behind a fence.
func (c *CTA) changeMap(at uint64, by *check.Site) {
	if c.changedMaps == nil {
		c.changedMaps = map[uint64]*check.Site{}
	}
	c.changedMaps[at] = by
}

// PublishMap copies a map from shared to global memory.
func (w *Warp) PublishMap(write, read *check.Access, lane int, dst, src uint64) {
	for i := range uint64(tensormap.Size / 16) {
		from := w.Ref(read, lane, src+16*i)
		if from == nil {
			return
		}
		copy(w.Data[:], from)
		to := w.Ref(write, lane, dst+16*i)
		if to == nil {
			return
		}
		copy(to, w.Data[:])
	}
	w.CTA.changeMap(dst, write.Site)
}

// AcquireMap makes a map that was changed one that may be used.
func (w *Warp) AcquireMap(at uint64) { delete(w.CTA.changedMaps, at) }
