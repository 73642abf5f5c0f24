package conform

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
)

// magnitudes are what errors of a case's results are measured by; for a result that is nil, the result itself.
func magnitudes(c *Case) [][]float64 {
	out := make([][]float64, len(c.want))
	if f := measures[c.Op.Code]; f != nil {
		copy(out, f(c))
	}
	for i, m := range out {
		if m == nil {
			out[i] = absolute(c.want[i].Data)
		}
	}
	return out
}

// measures has the rule of each code whose terms cancel.
var measures [ir.Codes]func(c *Case) [][]float64

func measure(f func(c *Case) [][]float64, codes ...ir.Code) {
	for _, code := range codes {
		measures[code] = f
	}
}

func init() {
	measure(positiveTerms(0), ir.Add, ir.Sum, ir.CumSum, ir.MatMul, ir.Linear, ir.Conv2d, ir.Conv2dGradInput, ir.Conv2dGradWeight, ir.AvgPool2d,
		ir.AvgPool2dGrad, ir.MaxPool2dGrad, ir.ScatterAdd, ir.EmbeddingGrad, ir.Affine, ir.Axpy)
	measure(resamplings, ir.Resample, ir.ResampleGrad)
	measure(positiveTerms(ir.Add), ir.Sub)
	measure(elements(func(x, y, p float64) float64 { return (1 + math.Abs(p)) * (math.Abs(x) + math.Abs(y)) }), ir.Lerp)
	measure(elements(func(x, _, _ float64) float64 { return math.Abs(x) }), ir.GELU, ir.GELUTanh)
	measure(elements(func(x, g, _ float64) float64 { return math.Abs(g) * (1 + math.Abs(x)) }), ir.GELUGrad, ir.SiLUGrad)
	measure(elements(cubic), ir.GELUTanhGrad)
	measure(elements(func(x, y, _ float64) float64 { return math.Abs(x) + math.Abs(y) }), ir.Rem)
	measure(elements(func(x, _, _ float64) float64 { return 1 + math.Abs(x) }), ir.Sin, ir.Cos)
	measure(elements(func(x, y, _ float64) float64 { return amplified(x, y) }), ir.Pow)
	measure(elements(func(x, _, p float64) float64 { return amplified(x, p) }), ir.PowScalar)
	measure(biasGrads, ir.BiasGrad)
	measure(logits, ir.Softmax, ir.LogSoftmax)
	measure(softmaxGrads, ir.SoftmaxGrad, ir.LogSoftmaxGrad)
	measure(entropies, ir.CrossEntropy)
	measure(entropyGrads, ir.CrossEntropyGrad)
	measure(heads, ir.LinearCrossEntropy, ir.LinearCrossEntropyGrad)
	measure(rowNorms, ir.LayerNorm)
	measure(rowNormGrads, ir.LayerNormGrad, ir.RMSNormGrad)
	measure(addNorms, ir.AddNorm)
	measure(addNormGrads, ir.AddNormGrad)
	measure(channelNorms, ir.BatchNorm)
	measure(channelGrads, ir.BatchNormGrad)
	measure(channelEvals, ir.BatchNormEval)
	measure(attentions, ir.Attention)
	measure(attentionGrads, ir.AttentionGrad)
	measure(selfAttentions, ir.SelfAttention)
	measure(selfAttentionGrads, ir.SelfAttentionGrad)
	measure(lstmSteps, ir.LSTMStep)
	measure(lstmStepGrads, ir.LSTMStepGrad)
	measure(trackings, ir.TrackMoments)
	measure(sgds, ir.SGD)
	measure(adams, ir.AdamW)
	measure(adams8bit, ir.Adam8bit)
}

func init() {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		if code.Row().Tolerance == ir.Stepwise {
			measure(stepwise(code), code)
		}
		if code.Row().Rule != nil {
			measure(ruleErrors, code)
		}
	}
}

func absolute(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = math.Abs(v)
	}
	return out
}

// amplified is |x^y|·(1 + |y·log x|).
func amplified(x, y float64) float64 {
	v := math.Abs(math.Pow(x, y))
	if l := math.Abs(y * math.Log(math.Abs(x))); l < math.MaxFloat64 {
		return v * (1 + l)
	}
	return v
}

// cubic is the magnitude of GELUTanhGrad's terms, the largest of which is x·x² against 1 - tanh². Where that difference is
// 0 in any precision, what is left is 0 or 1.
func cubic(x, g, _ float64) float64 {
	if math.Abs(x) > 30 {
		return math.Abs(g)
	}
	return math.Abs(g) * (1 + math.Abs(x)*(0.8+0.11*x*x))
}

// elements is the rule of an elementwise op in terms of x, y (0 when there is none) and p0.
func elements(f func(x, y, p float64) float64) func(c *Case) [][]float64 {
	return func(c *Case) [][]float64 {
		out := make([]float64, len(c.want[0].Data))
		for i := range out {
			var y float64
			if len(c.In) > 1 {
				y = c.In[1].Data[i]
			}
			out[i] = f(c.In[0].Data[i], y, c.scalar(0))
		}
		return [][]float64{out}
	}
}

func (c *Case) scalar(i int) float64 { return math.Float64frombits(c.Params.Value[i]) }

// positiveTerms evaluates the op itself, or another one in its place, on absolute values.
func positiveTerms(code ir.Code) func(c *Case) [][]float64 {
	return func(c *Case) [][]float64 {
		op := c.Op
		if op.Attr.Act = ir.NoAct; code != 0 {
			op.Code = code
		}
		in := make([]ref.Array, len(c.In))
		for i, a := range c.In {
			if in[i] = a; a.Type.DType.IsFloat() {
				in[i] = ref.Floats(a.Type, absolute(a.Data)...)
			}
		}
		p := c.Params
		for i := range p.N {
			p.Value[i] = ir.Float(math.Abs(c.scalar(i)))
		}
		out, err := ref.Eval(&op, &p, in)
		if err != nil {
			panic("conform: " + err.Error()) // the case itself has been evaluated
		}
		all := make([][]float64, len(out))
		for i := range out {
			all[i] = absolute(out[i].Data)
		}
		return all
	}
}

// biasGrads: an activation's slope is off by its operand's magnitude, cubed at the most, and the sums by that of their terms.
func biasGrads(c *Case) [][]float64 {
	g := absolute(c.In[0].Data)
	n := c.In[0].Type.Dim(1)
	sums := make([]float64, n)
	for i := range g {
		switch c.Op.Attr.Act {
		case ir.NoAct, ir.ActReLU:
		case ir.ActGELUTanh:
			g[i] = cubic(c.In[1].Data[i], g[i], 0)
		default:
			g[i] *= 1 + math.Abs(c.In[1].Data[i])
		}
		sums[i%n] += g[i]
	}
	return [][]float64{sums, g}[:len(c.want)]
}

// byRow calls f for each row of n numbers.
func byRow(size, n int, f func(lo, hi int)) {
	for lo := 0; lo+n <= size && n > 0; lo += n {
		f(lo, lo+n)
	}
}

// lastDim is the length of rows; a single number is one row of one.
func lastDim(t *ir.Type) int {
	if t.Rank() == 0 {
		return 1
	}
	return t.Dim(-1)
}

func largest(x []float64) float64 {
	m := math.Inf(-1)
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

// resamplings: weights are differences of places and numbers near 1, of windows over their width.
func resamplings(c *Case) [][]float64 {
	r, grad := c.Op.Attr.Resampling(), c.Op.Code == ir.ResampleGrad
	x, error := c.In[0].Type, 0.0
	if grad {
		x = c.Op.Attr.Out
	}
	switch r.Curve {
	case ir.Nearest, ir.NearestMiddle:
	case ir.Lines, ir.Cubics:
		error = 1
	default:
		_, wide := r.Reach()
		error = 1 / wide
	}
	out := make([]float64, len(c.want[0].Data))
	ref.Resampled(r, x, func(o, i int, w float64) {
		if grad {
			o, i = i, o
		}
		out[o] += (math.Abs(w) + error) * math.Abs(c.In[0].Data[i])
	})
	return [][]float64{out}
}

// logits: the error of x - max is magnified by exp.
func logits(c *Case) [][]float64 {
	x := c.In[0].Data
	out := make([]float64, len(x))
	byRow(len(x), lastDim(c.In[0].Type), func(lo, hi int) {
		m := largest(x[lo:hi])
		for i := lo; i < hi; i++ {
			d := math.Abs(x[i] - m)
			if out[i] = 1 + d + math.Abs(c.want[0].Data[i]); c.Op.Code == ir.Softmax && !math.IsInf(d, 0) {
				out[i] = c.want[0].Data[i] * (1 + d)
			}
		}
	})
	return [][]float64{out}
}

func softmaxGrads(c *Case) [][]float64 {
	y, g := c.In[0].Data, c.In[1].Data
	out := make([]float64, len(y))
	byRow(len(y), lastDim(c.In[0].Type), func(lo, hi int) {
		var plain, weighted float64
		for i := lo; i < hi; i++ {
			plain += math.Abs(g[i])
			weighted += math.Abs(g[i] * y[i])
		}
		for i := lo; i < hi; i++ {
			if c.Op.Code == ir.SoftmaxGrad {
				out[i] = math.Abs(y[i]) * (math.Abs(g[i]) + weighted)
			} else {
				out[i] = math.Abs(g[i]) + math.Exp(y[i])*(1+math.Abs(y[i]))*plain
			}
		}
	})
	return [][]float64{out}
}

// entropies: a loss is made of differences from the largest logit.
func entropies(c *Case) [][]float64 {
	x, rows := c.In[0].Data, c.In[0].Type.Dim(0)
	loss, whole := make([]float64, rows), 0.
	byRow(len(x), c.In[0].Type.Dim(1), func(lo, hi int) {
		m, i := largest(x[lo:hi]), lo/(hi-lo)
		for _, v := range x[lo:hi] {
			loss[i] = max(loss[i], 1+math.Abs(v-m))
		}
		whole += loss[i]
	})
	stats := append(absolute(c.want[1].Data[:rows]), loss...)
	if c.Op.Attr.Flag&ir.Mean != 0 {
		return [][]float64{{whole / c.want[2].Data[0]}, stats, nil}
	}
	return [][]float64{loss, stats}
}

func entropyGrads(c *Case) [][]float64 {
	x, n, rows := c.In[0].Data, c.In[0].Type.Dim(1), c.In[0].Type.Dim(0)
	out := make([]float64, len(x))
	for i := range x {
		g := c.In[3].Data
		each := math.Abs(g[i/n%len(g)])
		if len(c.In) > 4 {
			each /= c.In[4].Data[0]
		}
		d := x[i] - c.In[2].Data[i/n] - c.In[2].Data[rows+i/n]
		out[i] = (1 + math.Exp(d)*(1+math.Abs(d))) * each
	}
	return [][]float64{out}
}

func meanOf(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}

// optional is element j of operand i, or a default.
func (c *Case) optional(i, j int, otherwise float64) float64 {
	if i < len(c.In) {
		return c.In[i].Data[j]
	}
	return otherwise
}

// rowNorms: x - mean cancels.
func rowNorms(c *Case) [][]float64 {
	x, n := absolute(c.In[0].Data), c.In[0].Type.Dim(1)
	y, mean := make([]float64, len(x)), []float64{}
	byRow(len(x), n, func(lo, hi int) {
		m := meanOf(x[lo:hi])
		mean = append(mean, m)
		for i := lo; i < hi; i++ {
			y[i] = (x[i]+m)*c.want[2].Data[i/n]*math.Abs(c.optional(1, i-lo, 1)) + math.Abs(c.optional(2, i-lo, 0))
		}
	})
	return [][]float64{y, mean, nil}
}

func rowNormGrads(c *Case) [][]float64 {
	g, n, stat := absolute(c.In[0].Data), c.In[0].Type.Dim(1), 2
	standard := absolute(c.In[1].Data)
	if c.Op.Code != ir.RMSNormGrad {
		stat = 3
	}
	dx, dw, db := make([]float64, len(g)), make([]float64, n), make([]float64, n)
	byRow(len(g), n, func(lo, hi int) {
		rstd := math.Abs(c.In[stat].Data[lo/n])
		var a, b float64
		for i := lo; i < hi; i++ {
			if stat == 3 {
				standard[i] += math.Abs(c.In[2].Data[lo/n])
			}
			standard[i] *= rstd
			gw := g[i] * math.Abs(c.optional(stat+1, i-lo, 1))
			a, b = a+gw/float64(n), b+gw*standard[i]/float64(n)
			dw[i-lo] += g[i] * standard[i]
			db[i-lo] += g[i]
		}
		for i := lo; i < hi; i++ {
			dx[i] = rstd * (g[i]*math.Abs(c.optional(stat+1, i-lo, 1)) + a + standard[i]*b)
		}
	})
	return [][]float64{dx, dw, db}[:min(len(c.want), 3)]
}

// lstmSteps: gates are off by the terms of the sums before them, and what is made of gates by their errors.
func lstmSteps(c *Case) [][]float64 {
	n := c.In[2].Type.Dim(1)
	h, next, gates := absolute(c.want[0].Data), absolute(c.want[1].Data), absolute(c.want[2].Data)
	for i := range gates {
		gates[i] += math.Abs(c.In[0].Data[i]) + math.Abs(c.In[1].Data[i])
	}
	for j, v := range c.In[2].Data {
		at := j/n*4*n + j%n
		next[j] += math.Abs(v)*gates[at+n] + gates[at] + gates[at+2*n]
		h[j] += next[j] + gates[at+3*n]
	}
	return [][]float64{h, next, gates}
}

// lstmStepGrads: each slope is a difference.
func lstmStepGrads(c *Case) [][]float64 {
	n := c.In[0].Type.Dim(1)
	da, dc := make([]float64, len(c.In[2].Data)), make([]float64, len(c.In[0].Data))
	for j, v := range c.In[0].Data {
		at := j/n*4*n + j%n
		gate := func(k int) float64 { return math.Abs(c.In[2].Data[at+k*n]) }
		dh := math.Abs(v)
		d := math.Abs(c.In[1].Data[j]) + 2*dh*gate(3)
		for k, x := range [...]float64{d * gate(2), d * math.Abs(c.In[3].Data[j]), d * gate(0), dh} {
			if da[at+k*n] = x * gate(k) * (1 + gate(k)); k == 2 {
				da[at+k*n] = x * (1 + gate(k)*gate(k))
			}
		}
		dc[j] = d * gate(1)
	}
	return [][]float64{da, dc}
}

// addNorms are those of a norm of x+f.
func addNorms(c *Case) [][]float64 {
	if len(c.In) == 3 {
		return rowNorms(c)
	}
	sum := absolute(c.In[0].Data)
	for i, v := range c.In[3].Data {
		sum[i] += math.Abs(v)
	}
	norm := Case{In: []ref.Array{ref.Floats(c.In[0].Type, sum...), c.In[1], c.In[2]}, want: c.want}
	return append(rowNorms(&norm), sum)
}

// addNormGrads: dx has more added to it.
func addNormGrads(c *Case) [][]float64 {
	norm := Case{In: slices.Clone(c.In), want: c.want}
	norm.In[0], norm.In[1] = c.In[1], c.In[0]
	out := rowNormGrads(&norm)
	for i := range out[0] {
		out[0][i] += math.Abs(c.optional(5, i, 0))
	}
	if len(c.want) == 4 {
		out = append(out, out[0])
	}
	return out
}

// channelOf is the channel of element i of x[n,c,s].
func channelOf(t *ir.Type, i int) int { return i / t.Dim(2) % t.Dim(1) }

// channelNorms: moments of parts are joined by differences of rounded means, so a variance is off by the root of itself
// and of the mean square; by the inequality of Cauchy and Schwarz no order of joining makes more of it.
func channelNorms(c *Case) [][]float64 {
	x, t := absolute(c.In[0].Data), c.In[0].Type
	mean, square, y := make([]float64, t.Dim(1)), make([]float64, t.Dim(1)), make([]float64, len(x))
	for i, v := range x {
		mean[channelOf(t, i)] += v / float64(t.Dim(0)*t.Dim(2))
		square[channelOf(t, i)] += v * v / float64(t.Dim(0)*t.Dim(2))
	}
	for i, v := range x {
		k := channelOf(t, i)
		rstd := 1 / math.Sqrt(c.want[2].Data[k]+c.scalar(0))
		y[i] = (v+mean[k])*rstd*math.Abs(c.In[1].Data[k]) + math.Abs(c.In[2].Data[k]) + math.Abs(c.optional(3, i, 0))
	}
	for k, v := range c.want[2].Data {
		square[k] = v + 2*math.Sqrt(v*square[k])
	}
	return [][]float64{y, mean, square}
}

func channelGrads(c *Case) [][]float64 {
	g, x, t := absolute(c.In[0].Data), absolute(c.In[1].Data), c.In[1].Type
	n := float64(t.Dim(0) * t.Dim(2))
	dx, dw, db := make([]float64, len(x)), make([]float64, t.Dim(1)), make([]float64, t.Dim(1))
	standard := make([]float64, len(x))
	rstd := func(k int) float64 { return 1 / math.Sqrt(c.In[3].Data[k]+c.scalar(0)) }
	for i := range x {
		k := channelOf(t, i)
		standard[i] = (x[i] + math.Abs(c.In[2].Data[k])) * rstd(k)
		dw[k] += g[i] * standard[i]
		db[k] += g[i]
	}
	for i := range x {
		k := channelOf(t, i)
		dx[i] = math.Abs(c.In[4].Data[k]) * rstd(k) * (g[i] + db[k]/n + standard[i]*dw[k]/n)
	}
	return [][]float64{dx, dw, db, nil}[:len(c.want)]
}

func channelEvals(c *Case) [][]float64 {
	x, t := absolute(c.In[0].Data), c.In[0].Type
	for i := range x {
		k := channelOf(t, i)
		rstd := 1 / math.Sqrt(c.In[2].Data[k]+c.scalar(0))
		x[i] = (x[i]+math.Abs(c.In[1].Data[k]))*rstd*math.Abs(c.In[3].Data[k]) + math.Abs(c.In[4].Data[k]) + math.Abs(c.optional(5, i, 0))
	}
	return [][]float64{x}
}

// scoreSizes are the sums |scale·q·k| of each query's keys, and their weights, given operands q and k, a mask and the
// log-sum-exp of the scores.
func (c *Case) scoreSizes(q, k ref.Array, mask int, lse []float64, f func(row, key int, size, weight float64)) {
	t, s, d := q.Type.Dim(2), k.Type.Dim(2), q.Type.Dim(3)
	for r := range lse {
		for j := range s {
			var size, score float64
			key := r/t*s + j
			for i := range d {
				v := c.scalar(0) * q.Data[r*d+i] * k.Data[key*d+i]
				size, score = size+math.Abs(v), score+v
			}
			if mask < len(c.In) && c.In[mask].Type.DType.IsFloat() {
				score += c.In[mask].Data[r*s+j]
			}
			hidden := c.Op.Attr.Causal && j > r%t || mask < len(c.In) && !c.In[mask].Type.DType.IsFloat() && c.In[mask].Data[r*s+j] == 0
			if w := math.Exp(score - lse[r]); !hidden && w == w {
				f(r, key, 1+size+math.Abs(lse[r]), w)
			}
		}
	}
}

func attentions(c *Case) [][]float64 {
	e := c.In[2].Type.Dim(3)
	o, lse := make([]float64, len(c.want[0].Data)), make([]float64, len(c.want[1].Data))
	c.scoreSizes(c.In[0], c.In[1], 3, c.want[1].Data, func(r, key int, size, w float64) {
		lse[r] = max(lse[r], size)
		for i := range e {
			o[r*e+i] += w * size * math.Abs(c.In[2].Data[key*e+i])
		}
	})
	return [][]float64{o, lse}
}

func attentionGrads(c *Case) [][]float64 {
	g, q, k, v, o := c.In[0], c.In[1], c.In[2], c.In[3], c.In[4]
	d, e, scale := q.Type.Dim(3), v.Type.Dim(3), math.Abs(c.scalar(0))
	dq, dk, dv := make([]float64, len(q.Data)), make([]float64, len(k.Data)), make([]float64, len(v.Data))
	c.scoreSizes(q, k, 6, c.In[5].Data, func(r, key int, size, w float64) {
		var ds float64
		for i := range e {
			gi := math.Abs(g.Data[r*e+i])
			ds += gi * (math.Abs(v.Data[key*e+i]) + math.Abs(o.Data[r*e+i]))
			dv[key*e+i] += w * size * gi
		}
		for i := range d {
			dq[r*d+i] += scale * w * size * ds * math.Abs(k.Data[key*d+i])
			dk[key*d+i] += scale * w * size * ds * math.Abs(q.Data[r*d+i])
		}
	})
	return [][]float64{dq, dk, dv}
}

// apart is a case of attention to q, k and v in one, as one of code, that to three.
func (c *Case) apart(code ir.Code, in ...ref.Array) *Case {
	a := &Case{Op: ir.New(code, c.Op.Attr), Params: c.Params, In: in, want: slices.Clone(c.want)}
	if code == ir.Attention {
		a.want[0] = ref.HeadsInside(c.want[0])
	}
	return a
}

func selfAttentions(c *Case) [][]float64 {
	a := c.apart(ir.Attention, append(ref.Heads(c.In[0]), c.In[1:]...)...)
	out := attentions(a)
	out[0] = ref.HeadsInside(ref.Floats(a.want[0].Type, out[0]...)).Data
	return out
}

func selfAttentionGrads(c *Case) [][]float64 {
	in := append([]ref.Array{ref.HeadsInside(c.In[0])}, ref.Heads(c.In[1])...)
	a := c.apart(ir.AttentionGrad, append(append(in, ref.HeadsInside(c.In[2])), c.In[3:]...)...)
	var grads []ref.Array
	for _, size := range attentionGrads(a) {
		grads = append(grads, ref.Floats(a.In[1].Type, size...))
	}
	return [][]float64{ref.Packed(grads).Data}
}

func trackings(c *Case) [][]float64 {
	mean, variance := absolute(c.In[0].Data), absolute(c.In[1].Data)
	for i := range mean {
		mean[i] += math.Abs(c.In[3].Data[i])
		variance[i] += math.Abs(c.In[4].Data[i] * c.scalar(1))
	}
	return [][]float64{mean, variance, make([]float64, 1)}
}

func sgds(c *Case) (out [][]float64) {
	rate, momentum, decay := c.scalar(0)*c.scalar(3), c.scalar(1), c.scalar(2)
	group := 2
	if c.Op.Attr.Flag&ir.Momentum != 0 {
		group = 3
	}
	for i := 1; i < len(c.In); i += group {
		p, buf := absolute(c.In[i].Data), make([]float64, len(c.In[i].Data))
		for j, w := range p {
			step := math.Abs(c.In[i+1].Data[j]*c.In[0].Data[0]) + decay*w
			if buf[j] = step; group == 3 {
				buf[j] += momentum * math.Abs(c.In[i+2].Data[j])
			}
			p[j] += rate * (1 + momentum) * buf[j]
		}
		if out = append(out, p); group == 3 {
			out = append(out, buf)
		}
	}
	return out
}

func adams(c *Case) (out [][]float64) {
	rate, beta1, beta2, decay := c.scalar(0)*c.scalar(5), c.scalar(1), c.scalar(2), c.scalar(4)
	for i := 1; i < len(c.In); i += 5 {
		p, m, v := absolute(c.In[i].Data), absolute(c.In[i+2].Data), absolute(c.In[i+3].Data)
		t := c.In[i+4].Data[0]
		for j, w := range p {
			g := math.Abs(c.In[i+1].Data[j]*c.In[0].Data[0]) + decay*w
			m[j] += (1 - beta1) * g
			v[j] = beta2*v[j] + (1-beta2)*g*g
			p[j] += rate * m[j] / (1 - math.Pow(beta1, t)) / (math.Sqrt(v[j]/(1-math.Pow(beta2, t))) + c.scalar(3))
		}
		out = append(out, p, m, v)
	}
	return out
}
