package tensor

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// LSTMStep is what follows the products in a step of an LSTM: of the sums x of the inputs and r of the state before, [n, 4·hidden]
// each, and the cell c[n, hidden] before it gives the state and the cell behind it, and the gates, [n, 4·hidden] as x:
//
//	i, f, g, o = σ, σ, tanh, σ of x + r;  cell = f·c + i·g;  h = o·tanh(cell)
//
// Where to, of the state's shape, is not nil, h is written there, and nothing is recorded.
func LSTMStep(x, r, c, to *Tensor) (h, cell, gates *Tensor) {
	out := stepTo(ir.LSTMStep, to, ofOneDType("LSTMStep", x, r, c))
	return out[0], out[1], out[2]
}

// LSTMStepGrad goes back by a step: from the gradients of the state and the cell behind it, with the gates, and the cells before and
// behind, to the gradient of x and r, which are one, and that of c. What LSTMStep records does so by itself; this is for what
// has a gradient of its own. Where to, of the gates' shape, is not nil the first result is written there, and nothing is recorded.
func LSTMStepGrad(dh, dcell, gates, c, cell, to *Tensor) (dx, dc *Tensor) {
	out := stepTo(ir.LSTMStepGrad, to, ofOneDType("LSTMStepGrad", dh, dcell, gates, c, cell))
	return out[0], out[1]
}

// stepTo is an op whose first result is written where it is told, if that is not nil.
func stepTo(code ir.Code, to *Tensor, in []*Tensor) []*Tensor {
	if to != nil && in[0].DType() == to.DType() {
		if out := writeTo(code, to, in); out != nil {
			return out
		}
	}
	out := apply(code, ir.Attr{}, ir.Params{}, in...)
	if to != nil {
		out[0] = to.CopyInPlace(out[0])
	}
	return out
}

// writeTo is an op whose first result is to; nil of one that is lowered.
func writeTo(code ir.Code, to *Tensor, in []*Tensor) []*Tensor {
	in, e := quietAll(in), joinAll(code.String(), in)
	types := make([]*ir.Type, len(in))
	for i, t := range in {
		if in[i] = t.Contiguous(); in[i].st == to.st { // it would be written over before it is read
			in[i] = in[i].Clone()
		}
		types[i] = in[i].typ
	}
	op := ir.New(code, ir.Attr{}, types...)
	pl := e.dev.plan(&op, in)
	if pl.kernel == nil {
		return nil
	}
	out := []*Tensor{to.quiet()}
	for _, t := range pl.out[1:] {
		out = append(out, e.make(code, t, 2, in, nil))
	}
	var params ir.Params
	e.runInto(pl, &params, nil, in, out)
	if w := e.looks(); w != nil {
		w.looked(e, code.String(), "", sound, in, out)
	}
	out[0] = to
	return out
}

// LSTMStateRoom is room for the first results of [LSTMStep] in a dtype of so many steps with states of this shape, [steps, n, hidden]. It
// may hold anything.
func LSTMStateRoom(state *Tensor, dt dtype.DType, steps int) *Tensor {
	return state.roomFor(ir.LSTMStep, dt, steps)
}

// LSTMGradRoom is room for the first results of [LSTMStepGrad] of so many steps with such gates, [steps, n, 4·hidden]. It may hold
// anything.
func LSTMGradRoom(gates *Tensor, steps int) *Tensor {
	return gates.roomFor(ir.LSTMStepGrad, gates.DType(), steps)
}

func (t *Tensor) roomFor(code ir.Code, dt dtype.DType, steps int) *Tensor {
	return t.env.make(code, ir.Dense(dt, append([]int{steps}, t.Shape()...)...), 1, nil, nil)
}
