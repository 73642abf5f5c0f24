package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestPanel compares panels of all heights and widths with sums in float64.
func TestPanel(t *testing.T) {
	r := testutil.Rand(t)
	everyLevel(func(level string) {
		for range 60 {
			checkPanel[float32](t, r, level)
			checkPanel[float64](t, r, level)
		}
	})
}

func checkPanel[T Float](t *testing.T, r *rand.Rand, level string) {
	t.Helper()
	rows, width := PanelRows[T]()
	p := Panel[T]{Rows: r.IntN(3 * rows), Cols: r.IntN(PanelCols + 1), K: r.IntN(70), ARow: 1, ACol: width, Accumulate: r.IntN(2) == 0}
	switch r.IntN(3) {
	case 0:
		p.ARow, p.ACol = p.K+r.IntN(3), 1
	case 1:
		p.ACol = p.Rows + r.IntN(3)
	default:
		p.Rows = min(p.Rows, width)
	}
	at := func(l int) int { return l * PanelCols }
	if ReadsSteps[T]() && r.IntN(2) == 0 {
		places := make([]int, p.K)
		p.Steps = new(Steps)
		for l := range places {
			places[l] = r.IntN((p.K-1)*PanelCols + 1)
			p.Steps.Add(places[l])
		}
		at = func(l int) int { return places[l] }
	}
	p.CRow = p.Cols + r.IntN(3)
	p.A, p.B = noise[T](r, 3*rows*(p.K+3)+(width+p.Rows+3)*p.K), noise[T](r, p.K*PanelCols)
	room := noise[T](r, p.Rows*p.CRow+2)
	room[0], room[len(room)-1] = guard, guard
	p.C = room[1 : len(room)-1]
	want := slices.Clone(room)
	for i := range p.Rows {
		for j := range p.Cols {
			var sum float64
			if p.Accumulate {
				sum = float64(p.C[i*p.CRow+j])
			}
			for l := range p.K {
				sum += float64(p.A[i*p.ARow+l*p.ACol]) * float64(p.B[at(l)+j])
			}
			want[1+i*p.CRow+j] = T(sum)
		}
	}
	p.Multiply()
	for i, v := range room {
		if d := math.Abs(float64(v - want[i])); !(d <= 2e-5) {
			t.Fatalf("%s, %T, %d×%d×%d, A %d and %d apart: element %d is %v, want %v", level, v, p.Rows, p.Cols, p.K, p.ARow, p.ACol, i, v, want[i])
		}
	}
}

func noise[T Float](r *rand.Rand, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(r.Float64()*2 - 1)
	}
	return x
}

// TestPack compares with what the documentation says, with runs that are cut at random.
func TestPack(t *testing.T) {
	r := testutil.Rand(t)
	everyLevel(func(level string) {
		var v View
		for range 200 {
			taps, rows := 1+r.IntN(4), r.IntN(6)
			p := Packing[float32]{DstTap: PanelCols + r.IntN(9), SrcRow: r.IntN(50), Rows: rows}
			p.DstRow = taps*p.DstTap + r.IntN(5)
			p.Src = noise[float32](r, 200+rows*p.SrcRow)
			v.Clear()
			for range taps {
				randomRuns(r, &v)
				v.EndTap()
			}
			room := noise[float32](r, rows*p.DstRow+2*PanelCols)
			want := slices.Clone(room)
			p.Dst = room[PanelCols : len(room)-PanelCols]
			for i := range rows {
				for tap := range taps {
					row := want[PanelCols+i*p.DstRow+tap*p.DstTap:][:PanelCols]
					clear(row)
					for _, run := range v.tap(tap) {
						copy(row[run.Lane:run.Lane+run.N], p.Src[i*p.SrcRow+run.At:])
					}
				}
			}
			p.Pack(&v)
			if !slices.Equal(room, want) {
				t.Fatalf("%s: %d taps of %d channels, %d apart, of %v", level, taps, rows, p.SrcRow, v.Runs)
			}
		}
	})
}

// randomRuns adds the runs of a tap: none, few or many.
func randomRuns(r *rand.Rand, v *View) {
	most := 1 + r.IntN(40)
	for lane := r.IntN(40); lane < PanelCols; lane += r.IntN(4) {
		n := min(1+r.IntN(most), PanelCols-lane)
		v.Runs = append(v.Runs, Run{lane, n, r.IntN(201 - n)})
		lane += n
	}
}

// TestPackTaps compares with PackLanes of each group.
func TestPackTaps(t *testing.T) {
	r := testutil.Rand(t)
	everyLevel(func(level string) {
		_, width := PanelRows[float32]()
		for range 200 {
			lanes, steps, groups := r.IntN(width+1), r.IntN(20), r.IntN(5)
			lane, group := 1+r.IntN(30), r.IntN(100)
			src := noise[float32](r, lanes*lane+steps+groups*group)
			room := noise[float32](r, width*steps*groups+2*PanelCols)
			want := slices.Clone(room)
			PackTaps(room[PanelCols:len(room)-PanelCols], width, src, lane, group, lanes, steps, groups)
			for s := range steps * groups {
				at := PanelCols + s*width
				for i := range lanes {
					want[at+i] = src[s/steps*group+i*lane+s%steps]
				}
				for i := at + lanes; i < at+width; i++ {
					want[i], room[i] = 0, 0 // may be anything, NaN too
				}
			}
			if !slices.Equal(room, want) {
				t.Fatalf("%s: %d lanes, %d apart, by %d groups of %d, %d apart", level, lanes, lane, groups, steps, group)
			}
		}
	})
}

// TestPackLanes compares with what the documentation says.
func TestPackLanes(t *testing.T) {
	r := testutil.Rand(t)
	everyLevel(func(level string) {
		_, width := PanelRows[float32]()
		for range 200 {
			w := []int{width, PanelCols}[r.IntN(2)]
			lanes, steps := r.IntN(w+1), r.IntN(40)
			lane, step := 1+r.IntN(60), 1
			if r.IntN(2) == 0 {
				lane, step = 1+r.IntN(3)/2*r.IntN(40), 1+r.IntN(60)
			}
			src := noise[float32](r, lanes*lane+steps*step)
			room := noise[float32](r, w*steps+2*PanelCols)
			want := slices.Clone(room)
			PackLanes(room[PanelCols:PanelCols+w*steps], w, src, lane, step, lanes, steps)
			for s := range steps {
				for i := range lanes {
					want[PanelCols+s*w+i] = src[i*lane+s*step]
				}
				for i := PanelCols + s*w + lanes; i < PanelCols+(s+1)*w; i++ {
					want[i], room[i] = 0, 0 // may be anything, NaN too
				}
			}
			if !slices.Equal(room, want) {
				t.Fatalf("%s: %d lanes, %d apart, by %d steps, %d apart, %d wide", level, lanes, lane, steps, step, w)
			}
		}
	})
}

// TestPanelPanics checks that nothing beyond the slices is touched.
func TestPanelPanics(t *testing.T) {
	x := make([]float32, 64)
	for name, f := range map[string]func(){
		"short B": func() {
			(&Panel[float32]{Rows: 1, Cols: 1, K: 3, A: x, ARow: 3, ACol: 1, B: x, C: x, CRow: 1}).Multiply()
		},
		"steps below":  func() { steps(x, -1) },
		"steps beyond": func() { steps(x, 33) },
		"short C": func() {
			(&Panel[float32]{Rows: 3, Cols: 32, K: 1, A: x, ARow: 1, ACol: 3, B: x, C: x, CRow: 32}).Multiply()
		},
		"wide panel": func() {
			(&Panel[float32]{Rows: 1, Cols: 33, K: 1, A: x, ARow: 1, ACol: 1, B: x, C: x, CRow: 33}).Multiply()
		},
		"spread A": func() {
			(&Panel[float32]{Rows: 2, Cols: 1, K: 2, A: x, ARow: 2, ACol: 2, B: x, C: x, CRow: 1}).Multiply()
		},
		"run before source":  func() { pack(x, 32, 0, 1, Run{0, 2, -1}) },
		"run beyond source":  func() { pack(x, 32, 62, 2, Run{0, 3, 0}) },
		"run beyond panel":   func() { pack(x, 32, 0, 1, Run{30, 3, 0}) },
		"short packed rows":  func() { pack(x, 33, 0, 2, Run{0, 1, 0}) },
		"short taps":         func() { PackTaps(x, 16, x, 9, 30, 4, 3, 2) },
		"short packed lanes": func() { PackLanes(x, 32, x, 1, 1, 2, 3) },
		"short lanes":        func() { PackLanes(x, 16, x, 40, 1, 2, 30) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func pack(x []float32, dstRow, srcRow, rows int, r Run) {
	v := View{Runs: []Run{r}}
	v.EndTap()
	(&Packing[float32]{Dst: x, DstRow: dstRow, Src: x, SrcRow: srcRow, Rows: rows}).Pack(&v)
}

func steps(x []float32, at int) {
	s := new(Steps)
	s.Add(at)
	(&Panel[float32]{Rows: 1, Cols: 1, K: 1, A: x, ARow: 1, ACol: 1, B: x, Steps: s, C: x, CRow: 1}).Multiply()
}
