package tensor

import "github.com/warpline-ml/warpline/internal/ir"

// LSTMStep is what follows the products in a step of an LSTM: of the sums x of the inputs and r of the state before, [n, 4·hidden]
// each, and the cell c[n, hidden] before it gives the state and the cell behind it, and the gates, [n, 4·hidden] as x:
//
//	i, f, g, o = σ, σ, tanh, σ of x + r;  cell = f·c + i·g;  h = o·tanh(cell)
func LSTMStep(x, r, c *Tensor) (h, cell, gates *Tensor) {
	out := apply(ir.LSTMStep, ir.Attr{}, ir.Params{}, ofOneDType("LSTMStep", x, r, c)...)
	return out[0], out[1], out[2]
}

// LSTMStepGrad goes back by a step: from the gradients of the state and the cell behind it, with the gates, and the cells before and
// behind, to the gradient of x and r, which are one, and that of c. What LSTMStep records does so by itself; this is for what
// has a gradient of its own. Where to, of the gates' shape, is not nil the first result is written there, and nothing is recorded.
func LSTMStepGrad(dh, dcell, gates, c, cell, to *Tensor) (dx, dc *Tensor) {
	in := ofOneDType("LSTMStepGrad", dh, dcell, gates, c, cell)
	if to == nil || in[0].DType() != to.DType() {
		out := apply(ir.LSTMStepGrad, ir.Attr{}, ir.Params{}, in...)
		if to != nil {
			return to.CopyInPlace(out[0]), out[1]
		}
		return out[0], out[1]
	}
	in, e := quietAll(in), joinAll("LSTMStepGrad", in)
	for i, t := range in {
		if in[i] = t.Contiguous(); in[i].st == to.st { // it would be written over before it is read
			in[i] = in[i].Clone()
		}
	}
	dc = e.make(ir.LSTMStepGrad, in[3].typ, 0, in, nil)
	e.step(ir.LSTMStepGrad, ir.Attr{}, ir.Params{}, cells{}, in, []*Tensor{to.quiet(), dc})
	return to, dc
}

// LSTMGradRoom is room for the first results of [LSTMStepGrad] of so many steps with such gates, [steps, n, 4·hidden]. It may hold
// anything.
func LSTMGradRoom(gates *Tensor, steps int) *Tensor {
	t := ir.Dense(gates.DType(), append([]int{steps}, gates.Shape()...)...)
	return gates.env.make(ir.LSTMStepGrad, t, 0, nil, nil)
}
