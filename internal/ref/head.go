package ref

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	set(linearCrossEntropy, ir.LinearCrossEntropy)
	set(linearCrossEntropyGrad, ir.LinearCrossEntropyGrad)
}

// headRow is a row of hidden values: its logits' probabilities and its loss.
type headRow struct {
	p       []float64
	loss    float64
	class   int
	ignored bool
}

// headRow computes row i of x[n,k] with w[c,k].
func (c *call) headRow(i int) (r headRow, err error) {
	x, w, k := c.in[0].Data, c.in[1].Data, c.in[0].dim(1)
	r.p = make([]float64, c.in[1].dim(0))
	for j := range r.p {
		var t total
		for l := range k {
			t.add(x[i*k+l] * w[j*k+l])
		}
		r.p[j] = t.value()
	}
	v := c.in[2].int(i)
	if r.ignored = float64(v) == c.scalar(1); !r.ignored {
		if v < 0 || v >= int64(len(r.p)) {
			return r, c.outside(v, len(r.p))
		}
		r.class = int(v)
	}
	smoothing := c.scalar(0)
	m, sum := shifted(r.p)
	if !r.ignored {
		r.loss = math.Log(sum) - (1-smoothing)*(r.p[r.class]-m)
	}
	for j, z := range r.p {
		if smoothing != 0 && !r.ignored {
			r.loss -= smoothing / float64(len(r.p)) * (z - m)
		}
		r.p[j] = math.Exp(z-m) / sum
	}
	return r, nil
}

// headGrads adds row i's share of the gradients, with a gradient g of its loss.
func (c *call) headGrads(i int, r headRow, g float64, dx, dw []float64) {
	if r.ignored {
		return
	}
	x, w, k := c.in[0].Data, c.in[1].Data, c.in[0].dim(1)
	for j, p := range r.p {
		d := p - c.scalar(0)/float64(len(r.p))
		if j == r.class {
			d -= 1 - c.scalar(0)
		}
		for l := range k {
			dx[i*k+l] += g * d * w[j*k+l]
			dw[j*k+l] += g * d * x[i*k+l]
		}
	}
}

func linearCrossEntropy(c *call) ([]Array, error) {
	n := c.in[0].dim(0)
	loss, count := make([]float64, n), 0.
	dx, dw := make([]float64, len(c.in[0].Data)), make([]float64, len(c.in[1].Data))
	var whole total
	for i := range n {
		r, err := c.headRow(i)
		if err != nil {
			return nil, err
		}
		if loss[i] = r.loss; !r.ignored {
			count++
		}
		whole.add(r.loss)
		c.headGrads(i, r, 1, dx, dw)
	}
	switch all := whole.value(); {
	case c.op.Attr.Flag&ir.Total != 0:
		return c.results(c.asked([][]float64{{all}, {count}}, dx, dw)...)
	case c.op.Attr.Flag&ir.Mean != 0:
		return c.results(c.asked([][]float64{{all / count}, {count}}, dx, dw)...)
	}
	return c.results(loss)
}

func linearCrossEntropyGrad(c *call) ([]Array, error) {
	dx, dw := make([]float64, len(c.in[0].Data)), make([]float64, len(c.in[1].Data))
	for i := range c.in[0].dim(0) {
		r, err := c.headRow(i)
		if err != nil {
			return nil, err
		}
		c.headGrads(i, r, c.in[3].Data[i], dx, dw)
	}
	return c.results(c.asked(nil, dx, dw)...)
}

// asked appends the gradients that the op asks for.
func (c *call) asked(out [][]float64, dx, dw []float64) [][]float64 {
	if c.op.Attr.Flag&ir.GradX != 0 {
		out = append(out, dx)
	}
	if c.op.Attr.Flag&ir.GradW != 0 {
		out = append(out, dw)
	}
	return out
}
