package conform

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// headCases are of losses of logits that nobody keeps: few rows and several chunks of them, classes and widths that fill no
// tile and no 16 bytes.
func headCases(g *gen) {
	ce, smooth := ir.Scalars(0, -100), ir.Scalars(0.1, 2)
	list := [][3]int{{1, 1, 1}, {3, 2, 5}, {5, 8, 3}, {0, 3, 4}, {17, 33, 70}, {7, 16, 129}, {5, 3, 1031}}
	all := []ir.Flag{ir.Total | ir.GradX | ir.GradW, ir.Mean | ir.GradX | ir.GradW, 0, ir.Total, ir.Total | ir.GradX, ir.Total | ir.GradW}
	if g.code == ir.LinearCrossEntropyGrad {
		all = []ir.Flag{ir.GradX | ir.GradW, ir.GradX, ir.GradW}
	}
	for _, s := range list {
		g.head("a shape", ce, s, between(0, s[2]), all...)
		g.head("smoothed", smooth, s, between(0, s[2]), all[0])
	}
	if !g.short {
		g.head("chunks", ce, [3]int{1040, 3, 260}, between(0, 260), all[0])
		g.head("chunks", smooth, [3]int{301, 24, 67}, between(0, 67), all[0])
	}
	g.head("all ignored", ce, [3]int{3, 2, 5}, between(-100, -99), all...)
	well := len(g.cases)
	g.head("a label too large", ce, [3]int{3, 2, 4}, values([]float64{1, 2, 4}, 1), all[0])
	g.head("a negative label", smooth, [3]int{3, 2, 4}, values([]float64{1, -1, 0}, 1), all[0])
	for _, c := range g.cases[well:] {
		c.Fails = true
	}
}

// head adds a case of x[n,k] and w[c,k] for each form, given n, k and c.
func (g *gen) head(why string, p ir.Params, s [3]int, labels fill, forms ...ir.Flag) {
	in := []operand{g.of(normal, s[0], s[1]), g.of(normal, s[2], s[1]), {ir.Dense(dtype.I64, s[0]), labels}}
	if g.code == ir.LinearCrossEntropyGrad {
		in = append(in, g.wide(normal, s[0]))
	}
	for _, f := range forms {
		g.add(why, ir.Attr{Flag: f}, p, in...)
	}
}

// heads: the error of a logit is as its terms, and of 16-bit operands half a spacing of the dtype, to which logits are
// rounded, as are their gradients. exp magnifies it.
func heads(c *Case) [][]float64 {
	x, w, k := c.In[0].Data, c.In[1].Data, c.In[0].Type.Dim(1)
	rows, classes := c.In[0].Type.Dim(0), c.In[1].Type.Dim(0)
	rounding := 1 + c.dt.Epsilon()/ir.Wide(c.dt).Epsilon()/8
	// Gradients of logits are kept in the operands' dtype, of which the least that there is may be lost.
	least := c.dt.SmallestSubnormal() / ir.Wide(c.dt).Epsilon() / 8
	if ir.Wide(c.dt) == c.dt {
		rounding, least = 1, 0
	}
	loss, dx, dw := make([]float64, rows), make([]float64, len(x)), make([]float64, len(w))
	whole := 0.
	for i := range rows {
		p, size := headRow(x[i*k:][:k], w, classes)
		loss[i] = (1 + 2*size) * rounding
		whole += loss[i]
		g := rounding
		if c.Op.Code == ir.LinearCrossEntropyGrad {
			g *= math.Abs(c.In[3].Data[i])
		}
		for j, p := range p {
			d := (p*(2+2*size)+c.scalar(0)/float64(classes))*g + least*(1+g)
			if c.In[2].Data[i] == float64(j) {
				d += g
			}
			for l := range k {
				dx[i*k+l] += d * math.Abs(w[j*k+l])
				dw[j*k+l] += d * math.Abs(x[i*k+l])
			}
		}
	}
	flag := c.Op.Attr.Flag
	var out [][]float64
	switch {
	case flag&ir.Total != 0:
		out = [][]float64{{whole}, nil}
	case flag&ir.Mean != 0:
		out = [][]float64{{whole / c.want[1].Data[0]}, nil}
	case c.Op.Code == ir.LinearCrossEntropy:
		out = [][]float64{loss}
	}
	if flag&ir.GradX != 0 {
		out = append(out, dx)
	}
	if flag&ir.GradW != 0 {
		out = append(out, dw)
	}
	return out
}

// headRow is the probabilities of a row, and the largest sum |x·w| of a logit.
func headRow(x, w []float64, classes int) (p []float64, size float64) {
	p = make([]float64, classes)
	for j := range p {
		var abs float64
		for l, v := range x {
			p[j] += v * w[j*len(x)+l]
			abs += math.Abs(v * w[j*len(x)+l])
		}
		size = max(size, abs)
	}
	m, sum := largest(p), 0.
	for j, z := range p {
		p[j] = math.Exp(z - m)
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
	}
	return p, size
}
