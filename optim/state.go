package optim

import (
	"fmt"
	"iter"
	"slices"

	"github.com/warpline-ml/warpline/tensor"
)

// State walks the tensors that resuming needs, by the parameter's path and PyTorch's name: "h.0.weight.exp_avg".
// Parameters that had no update yet have none.
func (c *core) State() iter.Seq2[string, *tensor.Tensor] {
	return func(yield func(string, *tensor.Tensor) bool) {
		if !c.numberState(yield) {
			return
		}
		for _, s := range c.states {
			for i := range s.keep {
				if s.seen && !yield(s.name+"."+s.kinds[i].name, s.value(i)) {
					return
				}
			}
		}
	}
}

// Counters are the whole numbers that resuming needs: the updates of each parameter that had one, as "path.step", and
// those of the optimizer, as "steps". It reads them from the device.
func (c *core) Counters() map[string]int {
	c.read()
	out := map[string]int{"steps": c.turns}
	for _, s := range c.states {
		if s.steps > 0 {
			out[s.name+".step"] = s.steps
		}
	}
	return out
}

// Load puts back what State and Counters gave, for the same parameters, on any device. When it fails, also for want of
// memory, nothing was changed. The learning rate is not part of it.
func (c *core) Load(tensors map[string]*tensor.Tensor, counters map[string]int) error {
	known := map[string]bool{"steps": true}
	if err := c.acceptsNumbers(tensors, known); err != nil {
		return err
	}
	for _, s := range c.states {
		if err := c.accepts(s, tensors, counters, known); err != nil {
			return err
		}
	}
	if err := noStrangers(known, tensors, counters); err != nil {
		return err
	}
	if n := counters["steps"]; n < 0 {
		return fmt.Errorf("optimizer state: steps is %d", n)
	}
	list := make([]state, len(c.states)) // all of it first: memory may run out
	for i, s := range c.states {
		list[i] = s.loaded(c, tensors, counters[s.name+".step"])
	}
	c.close()
	for i, n := range c.numbers {
		c.numbers[i].value = tensors[n.at()].Item()
	}
	for i, s := range c.states {
		s.keep, s.parks, s.steps = list[i].keep, list[i].parks, list[i].steps
		s.seen = s.steps > 0
	}
	c.turns = counters["steps"]
	return nil
}

// loaded is a state with what the optimizer keeps after some steps, copied to where the parameter is, or to the memory of the
// host there.
func (s *state) loaded(c *core, tensors map[string]*tensor.Tensor, steps int) state {
	n := *s
	n.keep, n.parks, n.steps = make([]*tensor.Tensor, len(s.kinds)), nil, steps
	if steps == 0 {
		return n
	}
	e, scope := s.p.Env().NoGrad().Scope()
	defer scope.End()
	for i, kind := range s.kinds {
		x := tensors[s.name+"."+kind.name].Detach().To(e)
		if !s.parksIn(c.away) {
			n.keep[i] = s.first(i).CopyInPlace(x)
			continue
		}
		n.parks = append(n.parks, tensor.Park(x.Cast(s.dtype(i))))
	}
	return n
}

// accepts checks the state of one parameter and notes its names.
func (c *core) accepts(s *state, tensors map[string]*tensor.Tensor, counters map[string]int, known map[string]bool) error {
	known[s.name+".step"] = true
	steps := counters[s.name+".step"]
	if steps < 0 {
		return fmt.Errorf("optimizer state: %s.step is %d", s.name, steps)
	}
	for i, kind := range s.kinds {
		name := s.name + "." + kind.name
		t := tensors[name]
		switch {
		case t == nil && steps > 0:
			return fmt.Errorf("optimizer state: %s is missing, though %s has %d updates: saved by another optimizer?", name, s.name, steps)
		case t != nil && kind.shape != nil && !s.fits(i, t):
			return fmt.Errorf("optimizer state: %s has shape %v, not %v: saved by another model?", name, t.Shape(), kind.shape)
		case t != nil && kind.shape == nil && !t.SameShape(s.p):
			return fmt.Errorf("optimizer state: %s has shape %v, the parameter %v: saved by another model?", name, t.Shape(), s.p.Shape())
		case t != nil && s.dtype(i).IsFloat() != t.DType().IsFloat() && kind.dt != 0:
			return fmt.Errorf("optimizer state: %s is %s, not %s", name, t.DType(), kind.dt)
		case t != nil && !t.DType().IsFloat() && kind.dt == 0:
			return fmt.Errorf("optimizer state: %s is %s, not floating", name, t.DType())
		}
		known[name] = true
	}
	return nil
}

// noStrangers refuses state of parameters that are not there, or of another kind.
func noStrangers(known map[string]bool, tensors map[string]*tensor.Tensor, counters map[string]int) error {
	var strange []string
	for name := range tensors {
		if !known[name] {
			strange = append(strange, name)
		}
	}
	for name := range counters {
		if !known[name] {
			strange = append(strange, name)
		}
	}
	if len(strange) == 0 {
		return nil
	}
	slices.Sort(strange)
	return fmt.Errorf("optimizer state: %s belongs to none of the parameters (%d such entries): saved by another model or optimizer?", strange[0], len(strange))
}
