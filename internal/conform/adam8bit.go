package conform

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
)

// codeTable is not that of an optimizer, but as fine at 0: cubes.
func codeTable() (list []float64) {
	for _, low := range []float64{0, -1} {
		for i := range ir.CodeValues {
			v := low + (1-low)*float64(i)/(ir.CodeValues-1)
			list = append(list, v*v*v)
		}
	}
	return list
}

func adam8bitCases(g *gen) {
	p := ir.Scalars(1e-2, 0.9, 0.99, 1e-3, 0.1, 0.5, 0)
	zero, one, number := values([]float64{0}, 1), values([]float64{1}, 1), between(1, 100)
	g.coded("AdamW", p, 0.5, whole, positive, number)
	g.coded("the first step", p, 1, values([]float64{ir.CodeValues / 2}, 1), zero, one)
	g.coded("a late step", p, 1, whole, positive, values([]float64{1 << 40}, 1))
	g.coded("nothing", flagged(p), 1, whole, positive, number)
}

// coded adds a case of parameters whose moments are codes, blocks and tails of them, in the memory of the operands.
func (g *gen) coded(why string, p ir.Params, scale float64, codes, largest, number fill) {
	for _, shapes := range [][][]int{{}, {{1}}, {{3, 5}, {0}, {256}}, {{1031}, {2, 128}, {g.long()}, {3}}} {
		in := []operand{{ir.Dense(dtype.F32), values([]float64{scale}, 1)}, {ir.Dense(dtype.F64, 2*ir.CodeValues), values(codeTable(), 1)}}
		var alias []int
		for _, shape := range shapes {
			t := ir.Dense(g.dt, shape...)
			blocks := ir.Dense(dtype.F32, (t.Size()+ir.CodeBlock-1)/ir.CodeBlock)
			n := len(in)
			alias = append(alias, n, n+2, n+3, n+4, n+5)
			in = append(in, operand{t, normal}, operand{t, normal}, operand{ir.Dense(dtype.U8, shape...), codes}, operand{ir.Dense(dtype.U8, shape...), codes},
				operand{blocks, largest}, operand{blocks, largest}, operand{ir.Dense(dtype.I64), number})
		}
		g.add(why, ir.Attr{}, p, in...).Alias = alias
	}
}

// adams8bit has of weights what adams has, and of codes whether rounding may choose another.
func adams8bit(c *Case) (out [][]float64) {
	rate, beta1, beta2, decay := c.scalar(0)*c.scalar(5), c.scalar(1), c.scalar(2), c.scalar(4)
	unsigned, signed := c.In[1].Data[:ir.CodeValues], c.In[1].Data[ir.CodeValues:]
	for in := range slices.Chunk(c.In[2:], ir.Adam8bitGroup) {
		p, m, v, t := absolute(in[0].Data), newMoment(&in[2], &in[4], signed), newMoment(&in[3], &in[5], unsigned), in[6].Data[0]
		for j, w := range p {
			g := in[1].Data[j] * c.In[0].Data[0]
			m.add(j, beta1, (1-beta1)*g)
			v.add(j, beta2, (1-beta2)*g*g)
			p[j] += rate*decay*w + rate*m.size[j]/(1-math.Pow(beta1, t))/(math.Sqrt(v.value[j]/(1-math.Pow(beta2, t)))+c.scalar(3))
		}
		eps := 512 * ir.Wide(c.DType()).Epsilon()
		if c.Params.Value[6] != 0 {
			eps = 0
		}
		m8, mTop := m.sizes(signed, eps)
		v8, vTop := v.sizes(unsigned, eps)
		out = append(out, p, m8, v8, mTop, vTop)
	}
	return out
}

// moment is one of a parameter, with the sizes of its terms.
type moment struct{ value, size []float64 }

func newMoment(codes, largest *ref.Array, table []float64) (m moment) {
	for i, code := range codes.Int {
		v := table[code] * largest.Data[i/ir.CodeBlock]
		m.value, m.size = append(m.value, v), append(m.size, math.Abs(v))
	}
	return m
}

func (m *moment) add(i int, keep, more float64) {
	m.value[i], m.size[i] = keep*m.value[i]+more, keep*m.size[i]+math.Abs(more)
}

// sizes are those of codes, 1 where what is off by eps has another, and of the largest of each block.
func (m *moment) sizes(table []float64, eps float64) (codes, largest []float64) {
	for lo := 0; lo < len(m.value); lo += ir.CodeBlock {
		hi := min(lo+ir.CodeBlock, len(m.value))
		top := slices.Max(absolute(m.value[lo:hi]))
		largest = append(largest, slices.Max(m.size[lo:hi]))
		for i := lo; i < hi; i++ {
			off := eps * m.size[i]
			codes = append(codes, float64(ref.Nearest(m.value[i]+off, top, table)-ref.Nearest(m.value[i]-off, top, table)))
		}
	}
	return codes, largest
}
