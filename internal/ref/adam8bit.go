package ref

import (
	"math"
	"sort"

	"github.com/warpline-ml/warpline/internal/ir"
)

// adam8bit is torch.optim.AdamW, with the gradient scaled first and moments in codes (Dettmers et al., 2022).
func adam8bit(c *call) (out []Array, err error) {
	rate, beta1, beta2, eps, decay := c.scalar(0)*c.scalar(5), c.scalar(1), c.scalar(2), c.scalar(3), c.scalar(4)
	unsigned, signed := c.in[1].Data[:ir.CodeValues], c.in[1].Data[ir.CodeValues:]
	for i := 2; i < len(c.in); i += ir.Adam8bitGroup {
		in := c.in[i : i+ir.Adam8bitGroup]
		if c.skips(6) {
			out = append(out, in[0], in[2], in[3], in[4], in[5])
			continue
		}
		p, m, v := clone(in[0].Data), decoded(&in[2], &in[4], signed), decoded(&in[3], &in[5], unsigned)
		t := float64(in[6].int(0))
		for j := range p {
			g := in[1].Data[j] * c.in[0].Data[0]
			m[j] = beta1*m[j] + (1-beta1)*g
			v[j] = beta2*v[j] + (1-beta2)*g*g
			p[j] -= rate*decay*p[j] + rate*m[j]/(1-math.Pow(beta1, t))/(math.Sqrt(v[j]/(1-math.Pow(beta2, t)))+eps)
		}
		m8, mTop := coded(m, signed)
		v8, vTop := coded(v, unsigned)
		out = append(out, Floats(in[0].Type, p...), Ints(in[2].Type, m8...), Ints(in[3].Type, v8...), Floats(in[4].Type, mTop...), Floats(in[5].Type, vTop...))
	}
	return out, nil
}

// decoded is what codes of a table stand for, times the largest of each block.
func decoded(codes, largest *Array, table []float64) []float64 {
	out := make([]float64, codes.Type.Size())
	for i := range out {
		out[i] = table[codes.int(i)] * largest.Data[i/ir.CodeBlock]
	}
	return out
}

// coded are the codes of a table nearest to x, and the largest of each block, rounded to float32.
func coded(x, table []float64) (codes []int64, largest []float64) {
	largest = make([]float64, (len(x)+ir.CodeBlock-1)/ir.CodeBlock)
	for i, v := range x {
		b := i / ir.CodeBlock
		largest[b] = math.Max(largest[b], math.Abs(v))
	}
	for i, v := range largest {
		largest[i] = float64(float32(v))
	}
	for i, v := range x {
		codes = append(codes, Nearest(v, largest[i/ir.CodeBlock], table))
	}
	return codes, largest
}

// Nearest is the place in a rising table of the number nearest to v/top, or to 0 where top is 0: from the middle of two numbers on, that
// of the greater.
func Nearest(v, top float64, table []float64) int64 {
	share := 0.
	if top != 0 {
		share = v / top
	}
	return int64(sort.Search(len(table)-1, func(j int) bool { return !(share >= (table[j]+table[j+1])/2) }))
}
