package ref

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	set(sumSquares, ir.SumSquares)
	set(gradNorm, ir.GradNorm)
	set(castAll, ir.CastAll)
	set(trackMoments, ir.TrackMoments)
	set(lossScale, ir.LossScale)
	set(sgd, ir.SGD)
	set(adamW, ir.AdamW)
	set(adam8bit, ir.Adam8bit)
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

// gradNorm is torch.nn.utils.clip_grad_norm_ of gradients that are multiplied by a factor first.
func gradNorm(c *call) ([]Array, error) {
	clip, factor, judge := c.scalar(0), c.scalar(1), c.p.Value[2] != 0
	var t total
	for _, a := range c.in[2:] {
		for _, v := range a.Data {
			t.add(v * v)
		}
	}
	norm, scale, skip := factor*math.Sqrt(t.value()), factor, int64(0)
	if clip > 0 {
		scale *= math.Min(1, clip/(norm+1e-6))
	}
	rounded := norm
	if c.out[0].DType == dtype.F32 {
		rounded = float64(float32(norm))
	}
	if judge && (math.IsNaN(rounded) || math.IsInf(rounded, 0)) {
		skip = 1
	}
	counts := make([]int64, c.in[0].Type.Size())
	for i := range counts {
		counts[i] = c.in[0].int(i) + (1-skip)*c.in[1].int(i)
	}
	return []Array{Floats(c.out[0], norm), Floats(c.out[1], scale), Ints(c.out[2], skip), Ints(c.out[3], counts...)}, nil
}

// castAll rounds when the results are stored.
func castAll(c *call) ([]Array, error) {
	out := make([]Array, len(c.in))
	for i, x := range c.in {
		out[i] = Floats(c.out[i], x.Data...)
	}
	return out, nil
}

// trackMoments is what torch.nn.BatchNorm does to its buffers.
func trackMoments(c *call) ([]Array, error) {
	f, factor := c.scalar(0), c.scalar(1)
	mean, variance := clone(c.in[0].Data), clone(c.in[1].Data)
	for i := range mean {
		mean[i] += f * (c.in[3].Data[i] - mean[i])
		variance[i] += f * (c.in[4].Data[i]*factor - variance[i])
	}
	return []Array{Floats(c.out[0], mean...), Floats(c.out[1], variance...), Ints(c.out[2], c.in[2].int(0)+1)}, nil
}

// lossScale is torch._amp_update_scale_ for scales that float32 has, with their inverses. good is -1 where no smaller
// scale would do.
func lossScale(c *call) ([]Array, error) {
	scale, good := c.in[0].Data[0], c.in[2].int(0)
	growth, backoff, interval := c.scalar(0), c.scalar(1), int64(c.p.Value[2])
	found := false
	for i := range c.in[3:] {
		found = found || c.in[3+i].int(0) != 0
	}
	down, up := float64(float32(scale*backoff)), float64(float32(scale*growth))
	switch {
	case found && usable(down):
		scale, good = down, 0
	case found:
		good = -1
	case max(good, 0)+1 < interval:
		good = max(good, 0) + 1
	default:
		if good = 0; usable(up) {
			scale = up
		}
	}
	return []Array{Floats(c.out[0], scale), Floats(c.out[1], float64(float32(1/scale))), Ints(c.out[2], good)}, nil
}

// usable reports whether float32 has v and its inverse.
func usable(v float64) bool {
	return v > 0 && !math.IsInf(v, 0) && !math.IsInf(float64(float32(1/v)), 0)
}

// skips reports whether parameter i of an update, an integer, is set: then nothing changes.
func (c *call) skips(i int) bool { return c.p.Value[i] != 0 }

// sgd is torch.optim.SGD with the gradient scaled first.
func sgd(c *call) ([]Array, error) {
	rate, momentum, decay, flag := c.scalar(0)*c.scalar(3), c.scalar(1), c.scalar(2), c.op.Attr.Flag
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
				buf[j] = step + momentum*c.in[i+2].Data[j]
				if flag&ir.Nesterov != 0 {
					step += momentum * buf[j]
				} else {
					step = buf[j]
				}
			}
			p[j] = w - rate*step
		}
		if c.skips(4) {
			p, buf = c.in[i].Data, c.in[i+group-1].Data
		}
		if out = append(out, p); group == 3 {
			out = append(out, buf)
		}
	}
	return c.results(out...)
}

// adamW is torch.optim.AdamW, or Adam with the flag Coupled, with the gradient scaled first.
func adamW(c *call) ([]Array, error) {
	rate, beta1, beta2, eps, decay := c.scalar(0)*c.scalar(5), c.scalar(1), c.scalar(2), c.scalar(3), c.scalar(4)
	coupled := c.op.Attr.Flag&ir.Coupled != 0
	var out [][]float64
	for i := 1; i < len(c.in); i += 5 {
		p, m, v := clone(c.in[i].Data), clone(c.in[i+2].Data), clone(c.in[i+3].Data)
		t := float64(c.in[i+4].int(0))
		for j := range p {
			if c.skips(6) {
				break
			}
			g := c.in[i+1].Data[j] * c.in[0].Data[0]
			if coupled {
				g += decay * p[j]
			} else {
				p[j] -= rate * decay * p[j]
			}
			m[j] = beta1*m[j] + (1-beta1)*g
			v[j] = beta2*v[j] + (1-beta2)*g*g
			p[j] -= rate * m[j] / (1 - math.Pow(beta1, t)) / (math.Sqrt(v[j]/(1-math.Pow(beta2, t))) + eps)
		}
		out = append(out, p, m, v)
	}
	return c.results(out...)
}

func clone(x []float64) []float64 { return append([]float64(nil), x...) }
