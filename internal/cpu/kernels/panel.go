package kernels

import "fmt"

// A convolution is a product whose right matrix, of what each tap of the kernel sees at each position, need not be in
// memory: it is packed, from the picture, into panels as the micro-kernels read them, as many as the caches hold.

// PanelCols is the number of columns in a panel.
const PanelCols = 32

// A Panel is C = A·B, or C += A·B, for rows of A, at best a multiple of [PanelRows], and a panel B of adjacent columns.
// Element (i, l) of A is A[i*ARow+l*ACol], where one of the distances is 1, and rows of C are CRow elements apart.
//
// An element of C is one chain of multiply-adds in the order of K: it has the same bits in any panel.
type Panel[T Float] struct {
	Rows, Cols, K int
	A             []T
	ARow, ACol    int
	B             []T    // K rows of PanelCols, of which the first Cols are in use,
	Steps         *Steps // one after the other, or where this says
	C             []T
	CRow          int
	Accumulate    bool // add to what C holds
}

// Steps is where the rows of a panel B begin that are not one after the other.
type Steps struct {
	at    []int
	span  int  // elements that all rows reach
	below bool // one begins before the first element
}

// Clear forgets all rows.
func (s *Steps) Clear() { *s = Steps{at: s.at[:0]} }

// Add adds a row.
func (s *Steps) Add(at int) {
	s.at = append(s.at, at)
	s.span = max(s.span, at+PanelCols)
	s.below = s.below || at < 0
}

// Gather copies the rows of a panel one after the other. It panics if they reach beyond src.
func Gather[T Float](dst, src []T, s *Steps) {
	if s.below || s.span > len(src) {
		panic(fmt.Sprintf("kernels: %d steps reach %d elements of %d", len(s.at), s.span, len(src)))
	}
	for i, at := range s.at {
		*(*[PanelCols]T)(dst[i*PanelCols:]) = [PanelCols]T(src[at:])
	}
}

// ReadsSteps reports whether panels can have Steps: where there are micro-kernels that take them.
func ReadsSteps[T Float]() bool { return isFloat32[T]() && readsSteps() }

// ReadsRows reports whether the rows of A may lie apart at no cost: where there are micro-kernels.
func ReadsRows[T Float]() bool {
	_, _, ok := panelRows()
	return ok && isFloat32[T]()
}

// goPanelRows is the height of a panel where there is no micro-kernel: Go packs the panel again for each.
const goPanelRows = 64

// PanelRows returns the most rows of a Panel that are computed at a time, and the distance between steps of K when A is packed for it.
func PanelRows[T Float]() (rows, width int) {
	if rows, width, ok := panelRows(); ok && isFloat32[T]() {
		return rows, width
	}
	return goPanelRows, goPanelRows
}

func isFloat32[T Float]() bool {
	_, ok := any(T(0)).(float32)
	return ok
}

// Multiply computes p. It panics if p reaches beyond its slices.
func (p *Panel[T]) Multiply() {
	if p.Rows <= 0 || p.Cols <= 0 {
		return
	}
	if p.Cols > PanelCols || p.K > 0 && p.ARow != 1 && p.ACol != 1 {
		panic(fmt.Sprintf("kernels: a panel of %d columns, with distances %d and %d in A", p.Cols, p.ARow, p.ACol))
	}
	checkMatrix("A", p.Rows, p.K, p.ARow, p.ACol, 0, len(p.A))
	p.checkB()
	checkMatrix("C", p.Rows, p.Cols, p.CRow, 1, 0, len(p.C))
	if q, ok := any(p).(*Panel[float32]); ok && multiplyPanel(q) {
		return
	}
	Gemm(&Product[T]{M: p.Rows, N: p.Cols, K: p.K, A: p.A, ARow: p.ARow, ACol: p.ACol, B: p.B, BRow: PanelCols, BCol: 1,
		C: p.C, CRow: p.CRow, Accumulate: p.Accumulate})
}

// checkB panics if B is too short.
func (p *Panel[T]) checkB() {
	if p.Steps == nil {
		checkMatrix("B", p.K, PanelCols, PanelCols, 1, 0, len(p.B))
		return
	}
	if n := p.Steps.span; len(p.Steps.at) != p.K || n > len(p.B) || p.Steps.below || !ReadsSteps[T]() {
		panic(fmt.Sprintf("kernels: %d steps of %d reach %d elements of %d", len(p.Steps.at), p.K, n, len(p.B)))
	}
}

// A Run says that N lanes from Lane on see what lies in memory from At on.
type Run struct{ Lane, N, At int }

// A View is what the lanes of a panel see by each of some taps: for each, runs in the order of their lanes. A View is
// used again after Clear.
type View struct {
	Runs  []Run
	ends  []int // of each tap in Runs
	table []masked
}

// masked is a run of a vector as packPatchesAVX512 reads it: bytes from the source, and its lanes.
type masked struct {
	at   int
	mask uint64
}

// Clear forgets all taps.
func (v *View) Clear() { v.Runs, v.ends = v.Runs[:0], v.ends[:0] }

// EndTap closes a tap: the runs that were added to Runs since the last one are its.
func (v *View) EndTap() { v.ends = append(v.ends, len(v.Runs)) }

// tap returns the runs of a tap.
func (v *View) tap(i int) []Run {
	if i == 0 {
		return v.Runs[:v.ends[0]]
	}
	return v.Runs[v.ends[i-1]:v.ends[i]]
}

// A Packing says where the rows of patches go: PanelCols lanes for each tap and channel, at Dst[tap*DstTap+channel*DstRow].
// Channels are SrcRow elements apart in Src.
type Packing[T Float] struct {
	Dst            []T
	DstTap, DstRow int
	Src            []T
	SrcRow, Rows   int // Rows is the number of channels
}

// Pack packs what the lanes of v see in each channel. Lanes of no run get zero. It panics if a run reaches beyond Src.
func (p *Packing[T]) Pack(v *View) {
	if p.Rows <= 0 || len(v.ends) == 0 {
		return
	}
	checkMatrix("packed", len(v.ends), PanelCols, p.DstTap, 1, (p.Rows-1)*p.DstRow, len(p.Dst))
	room := len(p.Src) - (p.Rows-1)*p.SrcRow
	for _, r := range v.Runs {
		if r.Lane < 0 || r.N < 0 || r.Lane+r.N > PanelCols || r.At < 0 || r.At+r.N > room {
			panic(fmt.Sprintf("kernels: run %+v in %d lanes of %d elements", r, PanelCols, room))
		}
	}
	if q, ok := any(p).(*Packing[float32]); ok && q.assembly(v) {
		return
	}
	for t := range v.ends {
		for i := range p.Rows {
			row := p.Dst[t*p.DstTap+i*p.DstRow:][:PanelCols]
			clear(row)
			for _, r := range v.tap(t) {
				copy(row[r.Lane:r.Lane+r.N], p.Src[i*p.SrcRow+r.At:])
			}
		}
	}
}

// PackTaps lays out groups of adjacent steps: dst[(g*steps+s)*width+i] = src[g*group+i*lane+s], for a width of
// PanelRows. Lanes beyond the last may hold anything. It panics if it reaches beyond its slices.
func PackTaps[T Float](dst []T, width int, src []T, lane, group, lanes, steps, groups int) {
	if lanes <= 0 || steps <= 0 || groups <= 0 {
		return
	}
	checkMatrix("packed", groups*steps, width, width, 1, 0, len(dst))
	checkMatrix("source of lanes", lanes, steps, lane, 1, (groups-1)*group, len(src))
	if d, ok := any(dst).([]float32); ok && packTaps(d, width, any(src).([]float32), lane, group, lanes, steps, groups) {
		return
	}
	for g := range groups {
		PackLanes(dst[g*steps*width:], width, src[g*group:], lane, 1, lanes, steps)
	}
}

// PackLanes lays out lanes by steps: dst[s*width+i] = src[i*lane+s*step]. Up to [PanelCols] lanes fit in a width, which
// is one of PanelRows or PanelCols; those beyond the last may hold anything. It panics if it reaches beyond its slices.
func PackLanes[T Float](dst []T, width int, src []T, lane, step, lanes, steps int) {
	if lanes <= 0 || steps <= 0 {
		return
	}
	checkMatrix("packed", steps, width, width, 1, 0, len(dst))
	checkMatrix("source of lanes", lanes, steps, lane, step, 0, len(src))
	if d, ok := any(dst).([]float32); ok && packLanes(d, width, any(src).([]float32), lane, step, lanes, steps) {
		return
	}
	for s := range steps {
		to := dst[s*width:][:lanes]
		for i := range to {
			to[i] = src[i*lane+s*step]
		}
	}
}
