package prof

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// Precisions is what a step of a model is computed in.
type Precisions struct {
	Rows      []PrecisionRow // in the order in which they first ran
	Traps     []string       // what 16 bits may spoil, with what to do
	Exponents Exponents      // of the parameters' gradients in float32; empty without a loss
}

// PrecisionRow is an operation at a line with its dtypes.
type PrecisionRow struct {
	Op       string   // "matmul"
	Line     string   // "model.go:12"
	Backward bool     // in Backward, for the gradient of what Line has
	In, Out  []string // dtypes of the operands and the results
	Paths    []string // of the parameters among the operands
	Calls    int
	Reason   string
}

// Exponents is a histogram: the number of values from 2^e to below 2^(e+1), by e. Zeros are apart, and so is what has no exponent.
type Exponents struct {
	Count     map[int]int
	Zeros     int
	NotFinite int // NaN and infinite
}

// What float16 has: beyond the first it is infinite, below the second it has fewer digits, below the third it is 0.
const (
	halfLargest   = 15  // 65504 is below 2^16
	halfNormal    = -14 // 2^-14
	halfSubnormal = -24 // half of it is rounded to even, 0
)

// Precision runs a model on a batch in the modes of x, as a step does: with a loss, Backward too. It tells each operation's
// dtypes with the reason, and what 16 bits may spoil. With a loss it runs once more in float32 for the gradients, of which
// float16 loses the small ones. No parameter may have a gradient before, and none has one after; a BatchNorm in training takes
// the batch into its running statistics.
func Precision(model nn.Module, x *tensor.Tensor, loss ...func(y *tensor.Tensor) *tensor.Tensor) *Precisions {
	for path, p := range nn.Params(model) {
		if p.Grad() != nil {
			tensor.Raise("prof.Precision", "call it between steps", "%s has a gradient", path)
		}
	}
	defer drop(model)
	p := &Precisions{Exponents: Exponents{Count: map[int]int{}}}
	p.judge(model, p.observe(model, x, loss))
	drop(model)
	if len(loss) > 0 {
		step(model, x.In(x.Env().Autocast(dtype.F32)), loss)
		p.Exponents.gather(model)
		p.judgeGradients()
	}
	return p
}

// observe makes rows of a step, and returns its result.
func (p *Precisions) observe(model nn.Module, x *tensor.Tensor, loss []func(y *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	l := &ledgerOfPrecision{p: p, of: map[string]int{}}
	defer x.Env().Device().Observe(l.note, device.KindLaunch)()
	return step(model, x, loss)
}

// step is what a training step computes, up to the loss or the result.
func step(model nn.Module, x *tensor.Tensor, loss []func(y *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	y := model.Forward(x)
	if len(loss) > 0 {
		y = loss[0](y)
		y.BackwardRetain()
	}
	return y
}

func drop(model nn.Module) {
	for _, p := range nn.Params(model) {
		p.DropGrad()
	}
}

// ledgerOfPrecision puts launches into rows.
type ledgerOfPrecision struct {
	p  *Precisions
	of map[string]int // the number of a row
}

func (l *ledgerOfPrecision) note(e *device.Event) {
	if e.Step > 0 || !floating(&e.Kernel.Op, e.Kernel.Out) {
		return
	}
	op := &e.Kernel.Op
	r := PrecisionRow{Op: op.Code.String(), Backward: e.Backward, In: names(op.Ins()), Out: names(e.Kernel.Out), Paths: slices.Clone(e.Paths)}
	if e.Site != nil {
		r.Line = e.Site.String()
	}
	key := fmt.Sprint(r)
	i, known := l.of[key]
	if !known {
		i = len(l.p.Rows)
		l.of[key] = i
		r.Reason = reason(op, e.Backward)
		l.p.Rows = append(l.p.Rows, r)
	}
	l.p.Rows[i].Calls++
}

// floating tells an operation on floating values.
func floating(op *ir.Op, out []*ir.Type) bool {
	is := func(t *ir.Type) bool { return t.DType.IsFloat() }
	return slices.ContainsFunc(out, is) || slices.ContainsFunc(op.Ins(), is)
}

func names(types []*ir.Type) (out []string) {
	for _, t := range types {
		out = append(out, t.DType.String())
	}
	return out
}

// narrow tells a 16-bit floating dtype.
func narrow(dt dtype.DType) bool { return dt == dtype.F16 || dt == dtype.BF16 }

// reason is why an operation has its dtypes.
func reason(op *ir.Op, back bool) string {
	in := func(f func(dtype.DType) bool) bool {
		return slices.ContainsFunc(op.Ins(), func(t *ir.Type) bool { return f(t.DType) })
	}
	row := op.Code.Row()
	switch {
	case op.Code == ir.Cast && narrow(op.Attr.DType):
		return "a cast: what takes it computes in 16 bits"
	case op.Code == ir.Cast:
		return "a cast: what takes it computes in " + op.Attr.DType.String()
	case in(func(dt dtype.DType) bool { return dt == dtype.F64 }):
		return "float64 is left alone"
	case op.Attr.Precision == ir.High:
		return "its operands are rounded to TF32: env.Products says so"
	case op.Attr.Precision == ir.Medium:
		return "its operands are rounded to bfloat16: env.Products says so"
	case back:
		return "Backward has no policy: as what it is the gradient of"
	case row.Autocast == ir.CastLow && in(narrow):
		return "products run in the policy's dtype"
	case row.Autocast == ir.CastLow:
		return "a product without a policy, or of values that it leaves alone"
	case row.Autocast != ir.CastNone && in(narrow):
		return "needs float32's range or digits, and is given 16 bits"
	case row.Autocast != ir.CastNone:
		return "needs float32's range or digits"
	case in(narrow):
		return "runs in what it is given: no list names it"
	}
	return "runs in what it is given"
}

// judge finds traps among the rows and the parameters.
func (p *Precisions) judge(model nn.Module, result *tensor.Tensor) {
	if narrow(result.DType()) && result.Size() == 1 {
		p.trap("the loss is %s: take it in float32, as nn's losses do under a policy", result.DType())
	}
	for i := range p.Rows {
		r := &p.Rows[i]
		if strings.HasPrefix(r.Reason, "needs") && slices.ContainsFunc(r.In, func(dt string) bool { return dt == dtype.F16.String() || dt == dtype.BF16.String() }) {
			p.trap("%s at %s runs in 16 bits: x.Cast(dtype.F32) before it, or the CUDA lists", r.Op, r.Line)
		}
	}
	var paths []string
	for path, w := range nn.Params(model) {
		if narrow(w.DType()) {
			paths = append(paths, path)
		}
	}
	if len(paths) > 0 {
		p.trap("%d parameters have 16 bits, %s first: an update below one 256th of a bfloat16 weight, or a 2048th of a float16 one, is lost; keep them in float32 and take env.Autocast", len(paths), paths[0])
	}
}

func (p *Precisions) trap(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(p.Traps, text) {
		p.Traps = append(p.Traps, text)
	}
}

// gather counts the gradients of a model's parameters.
func (e *Exponents) gather(model nn.Module) {
	for _, p := range nn.Params(model) {
		if p.Grad() == nil {
			continue
		}
		for _, v := range p.Grad().Floats() {
			e.add(v)
		}
	}
}

func (e *Exponents) add(v float64) {
	switch {
	case v == 0:
		e.Zeros++
	case math.IsNaN(v) || math.IsInf(v, 0):
		e.NotFinite++
	default:
		_, exp := math.Frexp(v) // |v| in [2^(exp-1), 2^exp)
		e.Count[exp-1]++
	}
}

// Below is the share of the finite values other than 0 that are below 2^exponent.
func (e *Exponents) Below(exponent int) float64 {
	below, all := 0, 0
	for at, n := range e.Count {
		all += n
		if at < exponent {
			below += n
		}
	}
	if all == 0 {
		return 0
	}
	return float64(below) / float64(all)
}

// Largest is the exponent of the largest values; false without any.
func (e *Exponents) Largest() (int, bool) {
	if len(e.Count) == 0 {
		return 0, false
	}
	return slices.Max(slices.Collect(maps.Keys(e.Count))), true
}

// manyLost is the share of gradients from which on a loss without a scale is a trap.
const manyLost = 0.01

// judgeGradients says what float16 would make of the gradients.
func (p *Precisions) judgeGradients() {
	if n := p.Exponents.NotFinite; n > 0 {
		p.trap("%d of the gradients are NaN or infinite in float32 already, which no precision mends: env.DetectAnomaly names the operation that makes the first", n)
	}
	largest, any := p.Exponents.Largest()
	if lost := p.Exponents.Below(halfSubnormal); any && lost > manyLost {
		p.trap("%s of the gradients are below 2^%d, which float16 rounds to 0: take an optim.LossScaler (up to 2^%d there is room), or bfloat16",
			render.Percent(lost), halfSubnormal, halfLargest-largest)
	}
	if any && largest > halfLargest {
		p.trap("the largest gradients are beyond float16's 65504, at 2^%d: take bfloat16, or a mean for a sum in the loss", largest)
	}
}

// WriteText shows the operations, the traps and the gradients' exponents, in at most width columns.
func (p *Precisions) WriteText(w io.Writer, width int) error {
	t := render.Table{Header: []string{"operation", "of", "gives", "calls", "line", "parameters", "reason"}, Right: []bool{false, false, false, true, false, false, false}, Spare: []int{5}}
	for i := range p.Rows {
		r := &p.Rows[i]
		name := r.Op
		if r.Backward {
			name = "← " + name
		}
		t.Rows = append(t.Rows, []string{name, strings.Join(slices.Compact(slices.Clone(r.In)), " "), strings.Join(slices.Compact(slices.Clone(r.Out)), " "), fmt.Sprint(r.Calls), r.Line, strings.Join(r.Paths, " "), r.Reason})
	}
	text := t.String(width)
	for _, trap := range p.Traps {
		text += render.Wrap("trap: "+trap, width, 2) + "\n"
	}
	_, err := io.WriteString(w, text+p.Exponents.text(width))
	return err
}

// text draws the histogram, with the places where float16 ends.
func (e *Exponents) text(width int) string {
	if len(e.Count) == 0 {
		return ""
	}
	var bars []render.Bar
	for _, at := range slices.Sorted(maps.Keys(e.Count)) {
		note := ""
		switch {
		case at < halfSubnormal:
			note = " 0 in float16"
		case at < halfNormal:
			note = " fewer digits in float16"
		case at > halfLargest:
			note = " infinite in float16"
		}
		bars = append(bars, render.Bar{Label: fmt.Sprintf("  2^%d", at), Value: float64(e.Count[at]), Text: fmt.Sprint(e.Count[at]) + note})
	}
	return fmt.Sprintf("gradients by exponent, and %d zeros and %d NaN or infinite\n%s", e.Zeros, e.NotFinite, render.Bars(bars, min(width, 100)))
}
