//go:build !purego

package kernels

import (
	"math"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cpufeat"
)

// MaxPool pools planes of float32 in assembly.
type MaxPool struct {
	args  poolArgs
	rows  []poolRow
	cols  []poolColumns
	masks []uint16
	kind  func(a *poolArgs)
}

// poolArgs is a plane's pooling as assembly sees it.
type poolArgs struct {
	x, y, places, rows, columns unsafe.Pointer
	oh, ow, w, blocks, kw       int
	next                        int // elements from behind a window's row to its next
	nan                         int // set: not 0 where there was one, or a place beside its window
}

// poolRow is a row of windows: the place in the plane of the first row within it, and how many there are.
type poolRow struct{ at, n int }

// poolColumns is 16 neighbouring windows: the first column, which may lie before the plane; how many there are, and that many
// bits; and two masks for each tap, of the elements that lie within the plane.
type poolColumns struct {
	at, n, use int
	masks      unsafe.Pointer
}

// NewMaxPool is nil where there is no assembly for such a pooling.
func NewMaxPool(g *Pooling) *MaxPool {
	if cpufeat.Active() < cpufeat.AVX512 || g.StrideW > 2 || g.H*g.W > math.MaxInt32 || g.OH*g.OW == 0 {
		return nil
	}
	if g.Pairs() {
		return &MaxPool{args: pairArgs(g), kind: maxPairsAVX512}
	}
	m := &MaxPool{kind: maxPool1AVX512}
	if g.StrideW == 2 {
		m.kind = maxPool2AVX512
	}
	for r := range g.OH {
		lo, hi := g.Rows(r)
		m.rows = append(m.rows, poolRow{lo * g.W, hi - lo})
	}
	for c := 0; c < g.OW; c += 16 {
		for j := range g.KernelW {
			at := c*g.StrideW - g.PadW + j
			m.masks = append(m.masks, maskWithin(at, g.W), maskWithin(at+16, g.W))
		}
	}
	for c := 0; c < g.OW; c += 16 {
		n := min(16, g.OW-c)
		m.cols = append(m.cols, poolColumns{c*g.StrideW - g.PadW, n, 1<<n - 1, unsafe.Pointer(&m.masks[c/16*2*g.KernelW])})
	}
	m.args = poolArgs{rows: unsafe.Pointer(&m.rows[0]), columns: unsafe.Pointer(&m.cols[0]), oh: g.OH, blocks: len(m.cols), kw: g.KernelW, next: g.W - g.KernelW}
	return m
}

// maskWithin has a bit for each of 16 columns from one on that lies within a plane.
func maskWithin(at, w int) (mask uint16) {
	for i := range 16 {
		if at+i >= 0 && at+i < w {
			mask |= 1 << i
		}
	}
	return mask
}

// Plane stores the largest of each window of x in y, and its place in the plane, the first of equals. It returns false when
// there is a NaN, which leaves both wrong, and when it is nil.
func (m *MaxPool) Plane(y []float32, places []int64, x []float32) bool {
	if m == nil || cpufeat.Active() < cpufeat.AVX512 {
		return false
	}
	a := m.args
	a.x, a.y, a.places = unsafe.Pointer(unsafe.SliceData(x)), unsafe.Pointer(unsafe.SliceData(y)), unsafe.Pointer(unsafe.SliceData(places))
	m.kind(&a)
	return a.nan == 0
}

func pairArgs(g *Pooling) poolArgs { return poolArgs{oh: g.OH, ow: g.OW, w: g.W} }

// MaxPairsGrad gives x, a plane, the gradients y of the windows' results at their places, and 0 elsewhere, where windows of 2×2
// side by side cover all of it. It returns false when there is no assembly, and when a place is beside its window, which
// leaves x wrong.
func MaxPairsGrad(g *Pooling, x, y []float32, places []int64) bool {
	if cpufeat.Active() < cpufeat.AVX512 || !g.Pairs() || g.H != 2*g.OH || g.W != 2*g.OW || g.H*g.W > math.MaxInt32 || g.OH*g.OW == 0 {
		return false
	}
	a := pairArgs(g)
	a.x, a.y, a.places = unsafe.Pointer(&x[:g.H*g.W][0]), unsafe.Pointer(&y[:g.OH*g.OW][0]), unsafe.Pointer(&places[:g.OH*g.OW][0])
	maxPairsGradAVX512(&a)
	return a.nan == 0
}
