package tensor

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Anomaly is an operation that made a NaN or an infinity of values that had none, or a NaN of infinities.
type Anomaly struct {
	Op       string // the operation
	Line     string // where the program called it: "model.go:12"
	Gradient bool   // it was the operation's gradient; Line is that of the operation itself
	Backward bool   // it happened in Backward
	Type     string // of the result: "f32[2,3]"
	Size     int    // its values
	NaNs     int    // of them
	Infs     int
	Operands []string // what it was computed from, with the range of the values
	Hint     string   // what to do
}

// Error says what happened, without what to do.
func (a *Anomaly) Error() string {
	var made []string
	for _, m := range []struct {
		n    int
		what string
	}{{a.NaNs, "NaN"}, {a.Infs, "infinite"}} {
		if m.n > 0 {
			made = append(made, fmt.Sprintf("%d of %d values %s", m.n, a.Size, m.what))
		}
	}
	what := a.Op
	if a.Gradient {
		what = "the gradient of " + a.Op
	}
	text := fmt.Sprintf("%s makes %s, %s", what, strings.Join(made, " and "), a.Type)
	if len(a.Operands) > 0 {
		text += ", of " + strings.Join(a.Operands, ", ")
	}
	return text
}

// watcher is what a device is told to do about anomalies.
type watcher struct {
	tolerate func(*Anomaly) bool
}

// DetectAnomaly looks at the results of all operations on e's device from now on, forward, in Backward and in updates of
// optimizers, until stop is called. The first operation that makes a NaN or an infinity of finite operands, or a NaN of
// infinities, panics with an [Error] that wraps an [Anomaly]. tolerate, unless it is nil, is asked before, and may let the
// program go on. Values that the program writes itself, as the -∞ of a mask, are its own.
//
// Each operation then waits for the device and costs several times what it did; captured steps are refused. On a device
// without arithmetic a look takes its memory, and finds nothing.
func (e *Env) DetectAnomaly(tolerate func(*Anomaly) bool) (stop func()) {
	e.present("DetectAnomaly")
	d := e.dev
	was := d.watcher.Swap(&watcher{tolerate})
	return func() { d.watcher.Store(was) }
}

// health is how good values are; the larger, the worse.
type health uint8

const (
	sound health = iota
	infinite
	notANumber
)

// looks is the device's watcher for an operation in e; nil where none looks at it by itself.
func (e *Env) looks() *watcher {
	if e.within || e.back && e.site != nil { // a part of an operation, or of a gradient rule, which are looked at as one
		return nil
	}
	return e.dev.watcher.Load()
}

// looked judges what an operation, or the gradient of one at a line, has made of operands of a health, or of operands that are
// asked where in is given.
func (w *watcher) looked(e *Env, op, line string, was health, in, out []*Tensor) {
	uncapturable("DetectAnomaly", "let the steps run as they are", "each result is looked at")
	worst := sound
	for _, t := range out {
		worst = max(worst, t.health())
	}
	if worst == sound || worst <= was || worst <= healthOf(in) {
		return
	}
	a := &Anomaly{Op: op, Line: cmp.Or(line, userLine()), Gradient: line != "", Backward: e.back}
	for _, t := range out {
		if h := t.health(); h == worst {
			a.Type, a.Size = t.typ.String(), t.Size()
			a.NaNs, a.Infs = t.unsound()
			a.Hint = anomalyHint(op, a.Gradient, t.DType(), worst)
			break
		}
	}
	for _, t := range in {
		if t != nil && t.DType().IsFloat() && !t.DType().IsStorage() && t.Size() > 0 {
			a.Operands = append(a.Operands, t.described())
		}
	}
	if w.tolerate == nil || !w.tolerate(a) {
		panic(a.asError())
	}
}

// asError is what operations panic with.
func (a *Anomaly) asError() *Error {
	return &Error{Op: "DetectAnomaly", Text: a.Error(), Hint: a.Hint, Line: a.Line, Err: a}
}

// healthOf is the worst of values, of which some may be nil.
func healthOf(ts []*Tensor) (worst health) {
	for _, t := range ts {
		if t != nil {
			worst = max(worst, t.health())
		}
	}
	return worst
}

// aside calls f with t and an env in which f leaves nothing, records nothing and is not looked at.
func (t *Tensor) aside(f func(x *Tensor)) {
	d := t.env.dev
	s := newScope(d, t.env.live(), 0)
	s.block = true
	defer s.End(internal)
	defer d.OnWait(Waits(d.policy.Swap(int32(AllowWaits))))
	x := t.quiet()
	c := *x
	c.env = &Env{dev: d, scope: s, grad: off, queue: t.env.queue, within: true}
	f(&c)
}

// health reads whether t has NaNs or infinities: x - x is 0 for all others.
func (t *Tensor) health() (h health) {
	if !t.DType().IsFloat() || t.DType().IsStorage() || t.Size() == 0 {
		return sound
	}
	d := t.env.dev
	t.aside(func(x *Tensor) {
		if sum := x.Sub(x).Sum(); d.info.Null || sum.Item() == 0 {
			return
		}
		if h = infinite; x.Ne(x).Any().Item() != 0 {
			h = notANumber
		}
	})
	return h
}

// unsound counts t's NaNs and infinities.
func (t *Tensor) unsound() (nans, infs int) {
	t.aside(func(x *Tensor) {
		nans = int(x.Ne(x).Cast(dtype.I64).Sum().Item())
		infs = int(x.Sub(x).Ne(x.ZerosLike()).Cast(dtype.I64).Sum().Item()) - nans
	})
	return nans, infs
}

// described is t's type, with its path if it is a parameter, and the range of its values.
func (t *Tensor) described() (text string) {
	text = t.typ.String()
	if l := t.parameter(); l != nil && l.path() != "" {
		text = l.path() + " " + text
	}
	t.aside(func(x *Tensor) {
		x = x.Contiguous()
		text += fmt.Sprintf(" in [%.3g, %.3g]", x.Min().Item(), x.Max().Item())
	})
	return text
}

// anomalyHint is what to do about an operation that makes values of a health.
func anomalyHint(op string, back bool, dt dtype.DType, h health) string {
	switch {
	case back && (op == ir.Sqrt.String() || op == ir.Rsqrt.String() || op == ir.PowScalar.String() || op == ir.Pow.String()):
		return "its slope at 0 is infinite: add a small number to the operand"
	case op == ir.Log.String() || op == ir.Log1p.String():
		return "keep the operand above 0, or take LogSoftmax of what the probabilities came from"
	case op == ir.Div.String() || op == ir.Rsqrt.String():
		return "the divisor reaches 0: add a small number to it"
	case op == ir.Sqrt.String():
		return "keep the operand from 0 up"
	case strings.Contains(op, "softmax") || strings.Contains(op, "cross_entropy") || strings.Contains(op, "attention"):
		return "a row is -∞ everywhere, or +∞ somewhere: bound the scores, and let each row keep one"
	case ir.UpdateNamed(op):
		return "take a smaller learning rate, or clip the gradients"
	case dt == dtype.F16 && h == infinite:
		return "float16 ends at 65504: compute it in float32 or bfloat16; of gradients, let a LossScaler leave the step out"
	case back:
		return "bound its operands, or the gradient by OnGrad"
	}
	return "bound its operands; if they were grown by training, take a smaller learning rate"
}

// sounding are those of a rule's gradients that there are.
func sounding(gs []*Tensor) (out []*Tensor) {
	for _, g := range gs {
		if g != nil {
			out = append(out, g)
		}
	}
	return out
}
