package ref

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	set(sumSquares, ir.SumSquares)
	set(sgd, ir.SGD)
	set(adamW, ir.AdamW)
}

func sumSquares(c *call) ([]Array, error) {
	var t total
	for _, a := range c.in {
		for _, v := range a.Data {
			t.add(v * v)
		}
	}
	return c.one([]float64{t.value()})
}

// sgd is torch.optim.SGD with the gradient scaled first.
func sgd(c *call) ([]Array, error) {
	rate, momentum, decay, flag := c.scalar(0), c.scalar(1), c.scalar(2), c.op.Attr.Flag
	group := 2
	if flag&ir.Momentum != 0 {
		group = 3
	}
	var out [][]float64
	for i := 1; i < len(c.in); i += group {
		p, buf := clone(c.in[i].Data), make([]float64, len(c.in[i].Data))
		for j, w := range p {
			step := c.in[i+1].Data[j]*c.in[0].Data[0] + decay*w
			if flag&ir.Momentum != 0 {
				buf[j] = step
				if flag&ir.First == 0 {
					buf[j] += momentum * c.in[i+2].Data[j]
				}
				if flag&ir.Nesterov != 0 {
					step += momentum * buf[j]
				} else {
					step = buf[j]
				}
			}
			p[j] = w - rate*step
		}
		if out = append(out, p); group == 3 {
			out = append(out, buf)
		}
	}
	return c.results(out...)
}

// adamW is torch.optim.AdamW, or Adam with the flag Coupled, with the gradient scaled first.
func adamW(c *call) ([]Array, error) {
	rate, beta1, beta2, eps, decay := c.scalar(0), c.scalar(1), c.scalar(2), c.scalar(3), c.scalar(4)
	coupled := c.op.Attr.Flag&ir.Coupled != 0
	var out [][]float64
	for i := 1; i < len(c.in); i += 4 {
		p, m, v := clone(c.in[i].Data), clone(c.in[i+2].Data), clone(c.in[i+3].Data)
		for j := range p {
			g := c.in[i+1].Data[j] * c.in[0].Data[0]
			if coupled {
				g += decay * p[j]
			} else {
				p[j] -= rate * decay * p[j]
			}
			m[j] = beta1*m[j] + (1-beta1)*g
			v[j] = beta2*v[j] + (1-beta2)*g*g
			p[j] -= rate * m[j] / c.scalar(5) / (math.Sqrt(v[j]/c.scalar(6)) + eps)
		}
		out = append(out, p, m, v)
	}
	return c.results(out...)
}

func clone(x []float64) []float64 { return append([]float64(nil), x...) }
