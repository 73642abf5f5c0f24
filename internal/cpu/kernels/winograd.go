package kernels

import "fmt"

// A Winograd is one of the linear maps of Winograd's F(2×2, 3×3), by which a tile of 2×2 results of a convolution with 3×3
// weights takes 16 products for each pair of channels in place of 36: results are Output(Σ Input(picture) ⊙ Weight(weights)), and the
// gradient of the weights is WeightGrad(Σ Input(picture) ⊙ Grad(gradient)). A map takes squares of vectors of
// WinogradLanes to such squares, one lane apart from the others.
type Winograd int

// The maps.
const (
	WinogradInput      Winograd = iota // 4×4 elements of a picture to 4×4
	WinogradOutput                     // 4×4 sums of products to 2×2 results
	WinogradWeight                     // 3×3 weights to 4×4
	WinogradGrad                       // the gradients of 2×2 results to 4×4
	WinogradWeightGrad                 // 4×4 sums of products to the gradients of 3×3 weights
)

// WinogradLanes is the number of elements in a vector of squares.
const WinogradLanes = 16

// Squares says where the vectors of squares lie: (i, j) of square n in line l begins at At + i·Row + j·Col + n·Step + l·Line.
type Squares struct{ At, Row, Col, Step, Line int }

// winogradMaps are the maps of a line in Go, and the sizes of their squares.
var winogradMaps = [...]struct {
	from, to int
	line     func(x [4]float32) [4]float32
}{
	WinogradInput: {4, 4, func(d [4]float32) [4]float32 { return [4]float32{d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]} }},
	WinogradOutput: {4, 2, func(m [4]float32) [4]float32 {
		return [4]float32{m[0] + (m[1] + m[2]), (m[1] - m[2]) - m[3]}
	}},
	WinogradWeight: {3, 4, func(w [4]float32) [4]float32 {
		s := w[0] + w[2]
		return [4]float32{w[0], 0.5 * (s + w[1]), 0.5 * (s - w[1]), w[2]}
	}},
	WinogradGrad: {2, 4, func(g [4]float32) [4]float32 { return [4]float32{g[0], g[0] + g[1], g[0] - g[1], 0 - g[1]} }},
	WinogradWeightGrad: {4, 3, func(u [4]float32) [4]float32 {
		s, d := float32(0.5*(u[1]+u[2])), float32(0.5*(u[1]-u[2])) // rounded here, or a processor might fuse the sums
		return [4]float32{u[0] + s, d, s + u[3]}
	}},
}

// Apply maps lines of n squares. bias, a vector or nil, is added to each vector of WinogradOutput. It panics if it reaches beyond
// its slices.
func (w Winograd) Apply(dst []float32, to Squares, src []float32, from Squares, lines, n int, bias []float32) {
	if lines <= 0 || n <= 0 {
		return
	}
	m := &winogradMaps[w]
	to.check("result", m.to, lines, n, len(dst))
	from.check("source", m.from, lines, n, len(src))
	if bias != nil {
		bias = bias[:WinogradLanes]
	}
	for range lines {
		if !w.assembly(dst, to, src, from, n, bias) {
			for i := range n {
				w.square(dst, to.At+i*to.Step, to, src, from.At+i*from.Step, from, bias)
			}
		}
		to.At, from.At = to.At+to.Line, from.At+from.Line
	}
}

// check panics unless squares of a size lie within so many elements.
func (s *Squares) check(name string, size, lines, n, room int) {
	least, most := s.At, s.At+WinogradLanes
	for _, d := range [...]int{(size - 1) * s.Row, (size - 1) * s.Col, (n - 1) * s.Step, (lines - 1) * s.Line} {
		least, most = least+min(d, 0), most+max(d, 0)
	}
	if least < 0 || most > room {
		panic(fmt.Sprintf("kernels: %s of %d×%d squares of %d×%d, %+v, has %d elements", name, lines, n, size, size, *s, room))
	}
}

// square maps one square.
func (w Winograd) square(dst []float32, dstAt int, to Squares, src []float32, srcAt int, from Squares, bias []float32) {
	m := &winogradMaps[w]
	for lane := range WinogradLanes {
		var u [4][4]float32 // by columns
		for j := range m.from {
			var x [4]float32
			for i := range m.from {
				x[i] = src[srcAt+i*from.Row+j*from.Col+lane]
			}
			u[j] = m.line(x)
		}
		for i := range m.to {
			y := m.line([4]float32{u[0][i], u[1][i], u[2][i], u[3][i]})
			for j := range m.to {
				if bias != nil && w == WinogradOutput {
					y[j] += bias[lane]
				}
				dst[dstAt+i*to.Row+j*to.Col+lane] = y[j]
			}
		}
	}
}
