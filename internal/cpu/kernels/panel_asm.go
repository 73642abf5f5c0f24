//go:build !purego && (amd64 || arm64)

package kernels

import "unsafe"

func panelRows() (rows, width int, ok bool) {
	set := activeSet()
	if set == nil {
		return 0, 0, false
	}
	return set.height, set.laneA, true
}

func readsSteps() bool {
	set := activeSet()
	return set != nil && set.tables
}

// multiplyPanel computes a panel if the level has micro-kernels, and reports whether it did.
func multiplyPanel(p *Panel[float32]) bool {
	set := activeSet()
	if set == nil {
		return false
	}
	t := tile{as: 4 * p.ACol, bs: 4 * PanelCols, cs: 4 * p.CRow, k: p.K}
	if p.ACol == 1 {
		t.as, t.flags = 4*p.ARow, byRows
	}
	if p.Accumulate {
		t.flags |= accumulate
	}
	if p.Steps != nil {
		t.flags |= byTable
		t.table = unsafe.Pointer(unsafe.SliceData(p.Steps.at))
	}
	heights := splitBy(p.Rows, set.height)
	for i := range heights.parts {
		rows := heights.part(i)
		t.rows, t.a = rows.n, unsafe.Pointer(unsafe.SliceData(p.A))
		if p.K > 0 { // otherwise A may be empty
			t.a = unsafe.Add(t.a, 4*rows.from*p.ARow)
		}
		p.compute(set, t, rows.from)
	}
	return true
}

// compute computes the rows of a tile, the first of which is top.
func (p *Panel[T]) compute(set *kernelSet, t tile, top int) {
	b, c := unsafe.Pointer(unsafe.SliceData(p.B)), unsafe.Pointer(&p.C[top*p.CRow])
	for left := 0; left < p.Cols; left += set.lanes() {
		t.b, t.c = unsafe.Add(b, 4*left), unsafe.Add(c, 4*left)
		width := min(set.lanes(), p.Cols-left)
		if p.Steps == nil {
			set.computeTile(&t, width)
			continue
		}
		t.vectors, t.mask = 2, uint32(1<<width-1) // whatever the columns
		if set.masks || width == set.lanes() {
			set.compute(&t)
		} else {
			set.around(&t, width)
		}
	}
}

// packLanes packs by transposing in registers or by whole vectors if the level can, and reports whether it did.
func packLanes(dst []float32, width int, src []float32, lane, step, lanes, steps int) bool {
	set := activeSet()
	if set == nil || width%set.vector != 0 || width > PanelCols {
		return false
	}
	o := operandOf(src, lane, step)
	o.pack(unsafe.Pointer(unsafe.SliceData(dst)), set, width, span{0, lanes}, span{0, steps})
	return true
}
