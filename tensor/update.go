package tensor

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// What an optimizer's step needs of a device. Everything that differs from step to step lies in cells, tensors of one
// number on that device: the host waits for none of them, and a captured step finds what they hold when it runs.

// cells are the launch parameters of an op that lie in device memory, nil for the others.
type cells [ir.MaxParams]*Tensor

// NewCell makes a cell that holds v, a float64, in the root scope of e's device.
func NewCell(e *Env, v float64) *Tensor { return NewBuffer(e.FullOf(dtype.F64, v)) }

// SetCell writes v into a cell, or another value that carries no graph, by one launch and without a wait.
func SetCell(t *Tensor, v float64) {
	t.env.into(ir.Full, ir.Attr{Out: t.typ}, ir.Scalars(v), t)
	t.st.Written()
}

// AdamWStep describes an AdamW update.
type AdamWStep struct {
	LR                             *Tensor // a cell
	Scale                          float64 // of the learning rate
	Beta1, Beta2, Eps, WeightDecay float64
	Coupled                        bool    // Adam: the decay is added to the gradient
	Skip                           *Tensor // i64[]: unless it holds 0, nothing is updated
}

// SGDStep describes an SGD update. Momentum buffers begin as zeros.
type SGDStep struct {
	LR                           *Tensor // a cell
	Scale, Momentum, WeightDecay float64 // Scale is that of the learning rate
	Nesterov                     bool
	Skip                         *Tensor // i64[]: unless it holds 0, nothing is updated
}

// GradNormStep describes what precedes the updates of a step on one device.
type GradNormStep struct {
	Clip   float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Factor *Tensor // a cell: what gradients are multiplied by first; nil: 1
	Judge  bool    // the step is skipped if the norm is not finite

	Norm, Scale *Tensor // numbers: the norm, and what the updates multiply gradients by; f64 if a gradient is, else f32
	Skip        *Tensor // i64[]: 1 if the step is skipped, else 0
	Counts      *Tensor // i64[n]: the updates of each parameter, to which Turn is added unless the step is skipped
	Turn        *Tensor // i64[n]: 1 for each parameter that has a gradient, else 0
}

// LossScaleStep describes the update of a scale of losses. Good counts the steps since it changed, and is -1 where no
// smaller scale would do.
type LossScaleStep struct {
	Growth, Backoff      float64
	Interval             int
	Scale, Inverse, Good *Tensor // f32[], a cell, i64[]: all are written
}

// checkUpdate panics unless lists agree; gradients are multiplied by scale, one number.
func checkUpdate(op string, scale *Tensor, p []*Tensor, others ...[]*Tensor) {
	scale.alive(op)
	for _, list := range others {
		if len(list) != len(p) {
			raise(op, "give one of each per parameter", "%d parameters with %d other values", len(p), len(list))
		}
	}
	for _, t := range p {
		t.alive(op)
	}
}

// AdamWInPlace updates parameters and their two moments by one fused op. Gradients are multiplied by scale first; counts
// are the numbers of the updates, from 1, i64[] each.
func AdamWInPlace(s AdamWStep, scale *Tensor, p, g, m, v, counts []*Tensor) {
	checkUpdate("AdamW", scale, p, g, m, v, counts)
	var attr ir.Attr
	if s.Coupled {
		attr.Flag = ir.Coupled
	}
	params := ir.Scalars(0, s.Beta1, s.Beta2, s.Eps, s.WeightDecay, s.Scale, 0)
	update(ir.AdamW, attr, params, cells{0: s.LR, 6: s.Skip}, 4, []*Tensor{scale}, p, g, m, v, counts)
}

// Codes are the two moments of each parameter as codes of a byte, u8 of its shape, and their largest in each block of 256 elements, f32.
type Codes struct{ First, Second, Largest1, Largest2 []*Tensor }

// Adam8bitInPlace is AdamWInPlace of parameters whose moments are codes, by one fused op. What codes stand for rises in each half of table,
// f64[512]: in the first that of second moments, in the other that of first ones. Coupled is not asked.
func Adam8bitInPlace(s AdamWStep, scale, table *Tensor, p, g []*Tensor, c Codes, counts []*Tensor) {
	checkUpdate("Adam8bit", scale, p, g, c.First, c.Second, c.Largest1, c.Largest2, counts)
	params := ir.Scalars(0, s.Beta1, s.Beta2, s.Eps, s.WeightDecay, s.Scale, 0)
	update(ir.Adam8bit, ir.Attr{}, params, cells{0: s.LR, 6: s.Skip}, ir.Adam8bitGroup-1, []*Tensor{scale, table}, p, g, c.First, c.Second, c.Largest1, c.Largest2, counts)
}

// SGDInPlace updates parameters, and their momentum buffers unless buf is nil. Gradients are multiplied by scale first.
func SGDInPlace(s SGDStep, scale *Tensor, p, g, buf []*Tensor) {
	var attr ir.Attr
	if s.Nesterov {
		attr.Flag |= ir.Nesterov
	}
	params, from := ir.Scalars(0, s.Momentum, s.WeightDecay, s.Scale, 0), cells{0: s.LR, 4: s.Skip}
	if buf == nil {
		checkUpdate("SGD", scale, p, g)
		update(ir.SGD, attr, params, from, 2, []*Tensor{scale}, p, g)
		return
	}
	checkUpdate("SGD", scale, p, g, buf)
	attr.Flag |= ir.Momentum
	update(ir.SGD, attr, params, from, 3, []*Tensor{scale}, p, g, buf)
}

// RuleStep describes an update by a rule of package ir that has a name there: "rmsprop". Settings are in the rule's order.
type RuleStep struct {
	Rule                        string
	LR                          *Tensor // a cell
	Scale, Coupled, WeightDecay float64 // Scale is that of the learning rate; Coupled is weight decay that is added to the gradient
	Settings                    []float64
	Skip                        *Tensor // i64[]: unless it holds 0, nothing is updated
}

// RuleInPlace updates parameters and their state, a list for each kind, by one fused op. Gradients are multiplied by scale
// first; counts are the numbers of the updates, from 1, i64[] each, and numbers what else the rule wants to know, f64[] each.
func RuleInPlace(s RuleStep, scale *Tensor, p, g []*Tensor, state [][]*Tensor, counts []*Tensor, numbers ...[]*Tensor) {
	code, ok := ir.RuleNamed(s.Rule)
	if !ok {
		raise("RuleInPlace", "see package ir for the rules", "there is no rule %q", s.Rule)
	}
	lists := slices.Concat([][]*Tensor{p, g}, state, [][]*Tensor{counts}, numbers)
	checkUpdate(s.Rule, scale, p, lists[1:]...)
	params := ir.Scalars(slices.Concat([]float64{0, s.Scale, s.Coupled, s.WeightDecay}, s.Settings, []float64{0})...)
	if r := code.Row(); params.N != r.Params || len(lists) != r.Rule.Group() {
		raise(s.Rule, "see package ir for its rule", "%d settings and %d operands", len(s.Settings), len(lists))
	}
	from := cells{0: s.LR}
	from[params.N-1] = s.Skip
	update(code, ir.Attr{}, params, from, 2+len(state), []*Tensor{scale}, lists...)
}

// update runs a multi-tensor op; the lists are parameter, gradient and state, as many as whole, and then numbers of each
// parameter, after what all share. All of whole but the gradient are written.
func update(code ir.Code, attr ir.Attr, params ir.Params, from cells, whole int, shared []*Tensor, lists ...[]*Tensor) {
	if len(lists[0]) == 0 {
		return
	}
	in, out := quietAll(shared), []*Tensor{}
	for i := range lists[0] {
		for j, list := range lists {
			in = append(in, list[i])
			if j != 1 && j < whole {
				out = append(out, list[i])
			}
		}
	}
	e := lists[0][0].env
	w := e.looks()
	if w == nil {
		e.step(code, attr, params, from, in, out)
		return
	}
	was := healthOf(in)
	e.step(code, attr, params, from, in, out)
	w.looked(e, code.String(), "", was, nil, out)
}

// GradNormInPlace computes the norm of gradients and what follows from it, by two launches.
func GradNormInPlace(s GradNormStep, grads ...*Tensor) {
	params := ir.Scalars(s.Clip, 1, 0)
	if s.Judge {
		params.Value[2] = 1
	}
	in := []*Tensor{s.Counts, s.Turn}
	for _, g := range grads {
		g.alive(ir.GradNorm.String())
		in = append(in, g.quiet().Contiguous())
	}
	s.Norm.env.step(ir.GradNorm, ir.Attr{}, params, cells{1: s.Factor}, in, []*Tensor{s.Norm, s.Scale, s.Skip, s.Counts})
}

// LossScaleInPlace updates the scale of losses by whether optimizers have skipped their steps.
func LossScaleInPlace(s LossScaleStep, skips ...*Tensor) {
	params := ir.Scalars(s.Growth, s.Backoff, 0)
	params.Value[2] = uint64(s.Interval)
	out := []*Tensor{s.Scale, s.Inverse, s.Good}
	s.Scale.env.step(ir.LossScale, ir.Attr{}, params, cells{}, append(out[:3:3], skips...), out)
}

// step runs an op into values that exist.
func (e *Env) step(code ir.Code, attr ir.Attr, params ir.Params, from cells, in, out []*Tensor) {
	types := make([]*ir.Type, len(in))
	for i, t := range in {
		t.alive(code.String())
		types[i] = t.typ
	}
	for _, t := range from {
		if t != nil {
			t.alive(code.String())
		}
	}
	op := ir.New(code, attr, types...)
	e.runInto(e.dev.plan(&op, in), &params, &from, in, out)
}

// runInto runs a plan into values that exist. from is nil of what a [Program] may record, which has a kernel.
func (e *Env) runInto(pl *opPlan, params *ir.Params, from *cells, in, out []*Tensor) {
	for i, t := range out {
		if t.typ != pl.out[i] {
			raise(pl.op.Code.String(), "give what is written the result's shape and dtype", "%s where the result is %s", t.typ, pl.out[i])
		}
	}
	if pl.kernel != nil {
		e.launch(pl, params, from, in, out, e.originOf(in))
	} else {
		e.stepLowered(pl, *params, from, in, out)
	}
	for _, t := range out {
		t.st.Written()
	}
}

// stepLowered runs the decomposition and copies its results into their destinations. Its ops take their numbers by value:
// the host reads the cells.
func (e *Env) stepLowered(pl *opPlan, params ir.Params, from *cells, in, out []*Tensor) {
	for i, t := range from {
		switch {
		case t == nil:
		case t.DType() == dtype.I64:
			params.Value[i] = uint64(read[int64](t)[0])
		default:
			params.Value[i] = math.Float64bits(t.Item())
		}
	}
	e.NoGrad().Do(func(inner *Env) *Tensor {
		results := make([]*Tensor, len(out))
		inner.runLowered(pl, &params, in, results, nil)
		for i, t := range results {
			e.into(ir.Copy, ir.Attr{Out: out[i].typ}, ir.Params{}, out[i], t.quiet())
		}
		return nil
	})
}

// settle orders a queue after what wrote the cells.
func (c *cells) settle(q *queue) {
	for _, t := range c {
		if t != nil && !t.st.Settled(q.id) {
			t.st.Reads(q)
		}
	}
}

// set stores cells among the parameters of a launch.
func (c *cells) set(p *device.Params) {
	for i, t := range c {
		if t != nil {
			a := t.arg()
			p.P[i].Cell = device.Mem{Addr: a.Mem.Addr + uint64(a.Offset), Size: device.CellSize}
		}
	}
}

// TrackMomentsInPlace moves running statistics by f towards those of a batch, the variance times factor, and counts the batch
// in an i64[], by one launch. The batch's may be of another dtype.
func TrackMomentsInPlace(mean, variance, count, batchMean, batchVariance *Tensor, f, factor float64) {
	in := []*Tensor{mean, variance, count, batchMean, batchVariance}
	for i, t := range in {
		t.alive(ir.TrackMoments.String())
		if in[i] = t.quiet(); i > 2 {
			in[i] = in[i].Cast(mean.DType())
		}
	}
	e := mean.env
	if from := batchMean.env.part; from != nil { // the range that the batch is in
		e = e.with(func(c *Env) { c.part = from })
	}
	e.step(ir.TrackMoments, ir.Attr{}, ir.Scalars(f, factor), cells{}, in, in[:3])
}

// SumSquares is the sum of squares over all elements of all tensors, f64 if one of them is, else f32, in one launch. The
// operands count as constants: a penalty that learns is t.Square().Sum().
func SumSquares(ts ...*Tensor) *Tensor {
	quiet := quietAll(ts)
	if len(quiet) == 0 {
		raise("SumSquares", "give at least one tensor", "no operands")
	}
	for _, t := range quiet {
		if !t.DType().IsFloat() {
			raise("SumSquares", "convert with Cast", "%s is not floating", t.typ)
		}
	}
	return apply(ir.SumSquares, ir.Attr{}, ir.Params{}, quiet...)[0]
}
