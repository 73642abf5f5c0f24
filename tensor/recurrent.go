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

// LSTMStepInPlace is [LSTMStep] that writes the gates in the place of x and the state to h, [n, hidden], on a host: a card reads x
// past its caches. All are of one dtype, no two of x, r and h share memory, nor c with x or h, and nothing is recorded.
func LSTMStepInPlace(x, r, c, h *Tensor) (cell *Tensor) {
	in := quietAll([]*Tensor{x, r, c.Contiguous()})
	e, to := joinAll("LSTMStepInPlace", in), h.quiet()
	if !e.dev.OnHost() {
		raise("LSTMStepInPlace", "use LSTMStep", "values on %s", e.dev.name)
	}
	for i, t := range in { // each is read as others are written
		if t.shares(to) || i > 0 && t.shares(in[0]) {
			raise("LSTMStepInPlace", "Clone one of them", "x, r, c and h share memory")
		}
	}
	cell = e.make(ir.LSTMStep, in[2].typ, 0, in, nil)
	e.step(ir.LSTMStep, ir.Attr{}, ir.Params{}, cells{}, in, []*Tensor{to, cell, in[0]})
	return cell
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
		over := i == 2 && t.typ == to.typ && t.off == to.off && e.dev.OnHost() // a place is read before it is written, but by a card
		if in[i] = t.Contiguous(); in[i].st == to.st && !over {                // it would be written over before it is read
			in[i] = in[i].Clone()
		}
	}
	dc = e.make(ir.LSTMStepGrad, in[3].typ, 0, in, nil)
	e.step(ir.LSTMStepGrad, ir.Attr{}, ir.Params{}, cells{}, in, []*Tensor{to.quiet(), dc})
	return to, dc
}

// LSTMRoom is room for what so many steps leave, of the shape of like each, [steps, ...]: the states of [LSTMStepInPlace], or the
// first results of [LSTMStepGrad]. It may hold anything.
func LSTMRoom(like *Tensor, steps int) *Tensor {
	t := ir.Dense(like.DType(), append([]int{steps}, like.Shape()...)...)
	return like.env.make(ir.LSTMStepGrad, t, 0, nil, nil)
}
