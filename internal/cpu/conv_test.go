package cpu

import (
	"fmt"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// convCase is x[n,c,h,w], o results of a kernel kh×kw, and the attributes.
type convCase struct {
	n, c, h, w, o, kh, kw int
	ir.Conv
}

var convCases = []convCase{
	{1, 1, 1, 1, 1, 1, 1, ir.Conv{StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Groups: 1}},
	{3, 1, 7, 9, 4, 3, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}},
	{0, 2, 5, 5, 3, 3, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}},
	{2, 4, 6, 5, 6, 3, 2, ir.Conv{StrideH: 2, StrideW: 1, PadH: 1, PadW: 2, DilationH: 1, DilationW: 2, Groups: 2}},
	{2, 3, 8, 7, 5, 1, 1, ir.Conv{StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Groups: 1}},
	{2, 3, 8, 7, 2, 1, 1, ir.Conv{StrideH: 2, StrideW: 3, DilationH: 1, DilationW: 1, Groups: 1}},
	{2, 3, 5, 5, 3, 3, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 3}},
	{1, 2, 4, 4, 2, 5, 5, ir.Conv{StrideH: 1, StrideW: 1, PadH: 2, PadW: 2, DilationH: 1, DilationW: 1, Groups: 1}},
	{1, 2, 3, 2, 2, 5, 5, ir.Conv{StrideH: 1, StrideW: 1, PadH: 2, PadW: 2, DilationH: 1, DilationW: 1, Groups: 1}},
	{1, 2, 9, 9, 2, 3, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 3, PadW: 3, DilationH: 3, DilationW: 3, Groups: 1}},
	{1, 1, 4, 4, 1, 2, 2, ir.Conv{StrideH: 1, StrideW: 1, PadH: 3, PadW: 2, DilationH: 1, DilationW: 1, Groups: 1}},
	{2, 1, 9, 11, 2, 7, 7, ir.Conv{StrideH: 2, StrideW: 2, PadH: 3, PadW: 3, DilationH: 1, DilationW: 1, Groups: 1}},
	{1, 0, 4, 4, 2, 3, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}},
	{1, 2, 0, 4, 2, 3, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 2, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}},
}

func (c convCase) types(dt dtype.DType) (x, w, b *ir.Type) {
	return ir.Dense(dt, c.n, c.c, c.h, c.w), ir.Dense(dt, c.o, c.c/c.Groups, c.kh, c.kw), ir.Dense(dt, c.o)
}

// out is the height and width of the result.
func (c convCase) out() (oh, ow int) {
	return (c.h+2*c.PadH-c.DilationH*(c.kh-1)-1)/c.StrideH + 1, (c.w+2*c.PadW-c.DilationW*(c.kw-1)-1)/c.StrideW + 1
}

// visit calls f for each product in a convolution with the places of its result, input and weight.
func (c convCase) visit(f func(y, x, w int)) {
	oh, ow := c.out()
	cg, og := c.c/c.Groups, c.o/c.Groups
	for y := range c.n * c.o * oh * ow {
		n, o, r, col := y/(c.o*oh*ow), y/(oh*ow)%c.o, y/ow%oh, y%ow
		for tap := range cg * c.kh * c.kw {
			i, kr, kc := tap/(c.kh*c.kw), tap/c.kw%c.kh, tap%c.kw
			h, w := r*c.StrideH-c.PadH+kr*c.DilationH, col*c.StrideW-c.PadW+kc*c.DilationW
			if h >= 0 && h < c.h && w >= 0 && w < c.w {
				f(y, ((n*c.c+o/og*cg+i)*c.h+h)*c.w+w, o*cg*c.kh*c.kw+tap)
			}
		}
	}
}

func TestConv(t *testing.T) {
	r := testutil.Rand(t)
	cases := append(convCases, convCase{2, 40, 33, 30, 7, 3, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}}, // several blocks
		convCase{2, 40, 33, 30, 2, 3, 3, ir.Conv{StrideH: 2, StrideW: 2, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 2}},
		convCase{9, 130, 4, 4, 15, 3, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}}, // several slices, images in a panel
		convCase{3, 5, 15, 13, 17, 3, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 0, PadW: 2, DilationH: 2, DilationW: 1, Groups: 1}}, // shifted planes of other widths
		convCase{3, 6, 16, 16, 20, 5, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 2, PadW: 1, DilationH: 1, DilationW: 1, Groups: 2}}, // and of the same,
		convCase{1, 70, 40, 36, 3, 3, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 4, PadW: 3, DilationH: 4, DilationW: 3, Groups: 1}}, // in bands
		convCase{35, 15, 3, 2, 130, 3, 3, ir.Conv{StrideH: 2, StrideW: 3, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}},
		convCase{5, 20, 8, 9, 35, 3, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}},   // by squares,
		convCase{2, 80, 14, 12, 32, 3, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 2, PadW: 0, DilationH: 1, DilationW: 1, Groups: 2}}, // in groups,
		convCase{1, 40, 17, 16, 50, 3, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 0, PadW: 3, DilationH: 1, DilationW: 1, Groups: 1}},
		convCase{70, 16, 2, 2, 16, 3, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}},  // of many images
		convCase{2, 5, 33, 30, 17, 4, 3, ir.Conv{StrideH: 2, StrideW: 2, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}},  // remainders of several sizes,
		convCase{1, 8, 43, 31, 16, 2, 2, ir.Conv{StrideH: 3, StrideW: 2, PadH: 0, PadW: 0, DilationH: 1, DilationW: 1, Groups: 2}},  // some without a tap,
		convCase{1, 4, 28, 28, 260, 3, 3, ir.Conv{StrideH: 2, StrideW: 2, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}}, // in slices,
		convCase{3, 6, 1, 641, 9, 1, 5, ir.Conv{StrideH: 1, StrideW: 3, PadH: 0, PadW: 2, DilationH: 1, DilationW: 1, Groups: 1}},   // of lines,
		convCase{1, 9, 66, 60, 8, 2, 3, ir.Conv{StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}},   // and a weight's in bands
		convCase{70, 2, 7, 3, 6, 1, 2, ir.Conv{StrideH: 3, StrideW: 1, PadH: 0, PadW: 1, DilationH: 1, DilationW: 1, Groups: 2}},
		convCase{22, 16, 14, 15, 17, 4, 4, ir.Conv{StrideH: 2, StrideW: 2, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}}, // by halves,
		convCase{8, 34, 21, 26, 66, 4, 4, ir.Conv{StrideH: 2, StrideW: 2, PadH: 2, PadW: 0, DilationH: 1, DilationW: 1, Groups: 2}},  // in groups,
		convCase{9, 16, 12, 17, 16, 4, 4, ir.Conv{StrideH: 2, StrideW: 2, PadH: 3, PadW: 4, DilationH: 1, DilationW: 1, Groups: 1}},  // with zeros around,
		convCase{1, 19, 21, 263, 16, 4, 4, ir.Conv{StrideH: 2, StrideW: 2, PadH: 1, PadW: 2, DilationH: 1, DilationW: 1, Groups: 1}}) // in bands
	for _, dt := range floatTypes {
		for _, c := range cases {
			tx, tw, tb := c.types(dt)
			x, w, b := normals(t, r, 1, tx), normals(t, r, 1, tw), normals(t, r, 1, tb)
			oh, ow := c.out()
			g := normals(t, r, 1, ir.Dense(dt, c.n, c.o, oh, ow))
			plain, biased := make([]float64, g.t.Size()), make([]float64, g.t.Size())
			dx, dw := make([]float64, tx.Size()), make([]float64, tw.Size())
			c.visit(func(i, j, k int) {
				plain[i] += x.v[j] * w.v[k]
				dx[j] += g.v[i] * w.v[k]
				dw[k] += g.v[i] * x.v[j]
			})
			for i, v := range plain {
				biased[i] = v + b.v[i/(oh*ow)%c.o]
			}
			name, a := fmt.Sprint(c), c.Attr()
			size := max(20, float64(c.c/c.Groups*c.kh*c.kw)/20)
			near(t, name, evaluate(t, ir.Conv2d, a, ir.Params{}, x, w)[0], plain, 2e-6, size, 0.51)
			near(t, name+" bias", evaluate(t, ir.Conv2d, a, ir.Params{}, x, w, b)[0], biased, 2e-6, size, 0.51)
			a.Out = tx
			near(t, name+" dx", evaluate(t, ir.Conv2dGradInput, a, ir.Params{}, g, w)[0], dx, 2e-6, max(20, float64(c.o*c.kh*c.kw)/20), 0.51)
			a.Out = tw
			// The error of adding n terms of size 1 in float32 is about n·2⁻²⁴, the partial sums being of size √n.
			terms := float64(c.n * oh * ow)
			near(t, name+" dw", evaluate(t, ir.Conv2dGradWeight, a, ir.Params{}, g, x)[0], dw, 2e-6, max(40, terms/20), 0.51)
		}
	}
}

// BenchmarkConv has n, c, h, o, k and the stride of the race's cases, of ResNet-18 on 8 pictures of 64×64, and of a small
// network's layers.
func BenchmarkConv(b *testing.B) {
	for _, s := range [][6]int{{64, 32, 28, 64, 3, 1}, {64, 32, 28, 64, 4, 2},
		{8, 3, 64, 64, 7, 2}, {8, 64, 16, 64, 3, 1}, {8, 64, 16, 128, 3, 2}, {8, 64, 16, 128, 1, 2}, {8, 128, 8, 128, 3, 1},
		{8, 128, 8, 256, 3, 2}, {8, 256, 4, 256, 3, 1}, {8, 256, 4, 512, 3, 2}, {8, 512, 2, 512, 3, 1},
		{128, 1, 28, 32, 3, 1}, {128, 32, 14, 64, 3, 1}, {2, 256, 56, 64, 1, 1}} {
		n, ch, h, o, k, stride := s[0], s[1], s[2], s[3], s[4], s[5]
		c := convCase{n, ch, h, h, o, k, k, ir.Conv{StrideH: stride, StrideW: stride, PadH: (k - 1) / 2, PadW: (k - 1) / 2, DilationH: 1, DilationW: 1, Groups: 1}}
		x, w, _ := c.types(dtype.F32)
		oh, ow := c.out()
		g := ir.Dense(dtype.F32, c.n, c.o, oh, ow)
		work := 2 * g.Size() * c.c * c.kh * c.kw
		a := c.Attr()
		b.Run(fmt.Sprint(s), func(b *testing.B) {
			b.Run("y", func(b *testing.B) { rate(b, "GFLOP/s", work, ir.Conv2d, a, ir.Params{}, x, w) })
			a.Out = x
			b.Run("dx", func(b *testing.B) { rate(b, "GFLOP/s", work, ir.Conv2dGradInput, a, ir.Params{}, g, w) })
			a.Out = w
			b.Run("dw", func(b *testing.B) { rate(b, "GFLOP/s", work, ir.Conv2dGradWeight, a, ir.Params{}, g, x) })
		})
	}
}
