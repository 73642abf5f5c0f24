package optim

import "github.com/warpline-ml/warpline/tensor"

// momentum is that of an optimizer whose steps ask for it anew.
type momentum struct {
	v        float64
	recorded bool // a captured step has it
}

// now is the momentum of the update that is made.
func (m *momentum) now() float64 {
	m.recorded = m.recorded || tensor.Capturing()
	return m.v
}

func (m *momentum) set(v float64) {
	const op = "SetMomentum"
	check(op, "Momentum", v, 0, 1)
	switch {
	case m == nil:
		tensor.Raise(op, "set Momentum where the optimizer is made", "it keeps no momentum")
	case m.recorded && v != m.v, tensor.Capturing():
		tensor.Raise(op, "leave the momentum as it is, or do the step without Capture", "a captured step has the momentum %v, which is no tensor", m.v)
	}
	m.v = v
}

// SetMomentum changes the momentum, between steps, by a schedule for example; to 0 and back is possible where it was not 0 at first.
func (o *SGD) SetMomentum(m float64) { o.momentum.set(m) }

// SetMomentum changes Beta1, between steps, by a schedule for example. The correction for the first updates is that of the new one, as
// in PyTorch.
func (o *AdamW) SetMomentum(beta1 float64) { o.momentum.set(beta1) }

// SetMomentum changes Beta1, as of [AdamW].
func (o *Adam) SetMomentum(beta1 float64) { o.momentum.set(beta1) }
