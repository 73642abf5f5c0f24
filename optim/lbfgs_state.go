package optim

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Step is not how this optimizer goes on: it needs the loss as a function.
func (o *LBFGS) Step() Report {
	tensor.Raise("LBFGS.Step", "call Minimize with a function that computes the loss", "a step evaluates the loss at several places")
	return Report{}
}

// Discard drops the gradients without applying them.
func (o *LBFGS) Discard() {
	for _, p := range o.params {
		p.p.DropGrad()
	}
}

// Offload is not to be had: each step reads all that is remembered.
func (o *LBFGS) Offload() {
	tensor.Raise("LBFGS.Offload", "give a smaller History", "each step reads all that is remembered")
}

// LR is the first length that is tried in a step.
func (o *LBFGS) LR() float64 { return o.c.LR }

// SetLR changes it.
func (o *LBFGS) SetLR(lr float64) {
	check("SetLR", "LR", lr, 0, 1e300)
	o.c.LR = lr
}

// State walks the tensors that resuming needs, by PyTorch's names: vectors of all parameters one behind the other, and a row for
// each remembered step. Before the first step there are none.
func (o *LBFGS) State() iter.Seq2[string, *tensor.Tensor] {
	return func(yield func(string, *tensor.Tensor) bool) {
		m := &o.memory
		if m.d == nil {
			return
		}
		if !yield("optimizer.d", m.d) || !yield("optimizer.prev_flat_grad", m.grad) || !yield("optimizer.numbers", o.written()) {
			return
		}
		for i := range m.y {
			if !yield(fmt.Sprintf("optimizer.old_dirs.%d", i), m.y[i]) || !yield(fmt.Sprintf("optimizer.old_stps.%d", i), m.s[i]) {
				return
			}
		}
	}
}

// written is the numbers of State.
func (o *LBFGS) written() *tensor.Tensor {
	e, scope := o.env().Scope()
	defer scope.End()
	v := append([]float64{o.t, o.loss, o.memory.scale}, o.memory.rho...)
	return tensor.NewBuffer(tensor.From(e, v, len(v)))
}

// Counters are the steps and the evaluations of the loss so far.
func (o *LBFGS) Counters() map[string]int {
	return map[string]int{"n_iter": o.iterations, "func_evals": o.evaluations}
}

// Load puts back what State and Counters gave. When it fails, nothing was changed.
func (o *LBFGS) Load(tensors map[string]*tensor.Tensor, counters map[string]int) error {
	next, names := *o, []string{}
	next.memory, next.t, next.loss = secants{}, 0, 0
	if len(tensors) > 0 {
		var err error
		if names, err = next.numbers(tensors["optimizer.numbers"]); err != nil {
			return err
		}
		if err = next.remember(tensors, names); err != nil {
			return err
		}
	}
	known := map[string]bool{"n_iter": true, "func_evals": true, "optimizer.numbers": true}
	for _, name := range names {
		known[name] = true
	}
	if err := noStrangers(known, tensors, counters); err != nil {
		return err
	}
	next.iterations, next.evaluations = counters["n_iter"], counters["func_evals"]
	*o = next
	return nil
}

// numbers takes in those of State, and names the vectors that belong to them.
func (o *LBFGS) numbers(t *tensor.Tensor) (names []string, err error) {
	if t == nil || t.Rank() != 1 || t.Dim(0) < 3 || t.DType() != dtype.F64 {
		return nil, errors.New("optimizer state: optimizer.numbers is missing or no vector of float64 numbers: saved by another optimizer?")
	}
	v := t.Floats()
	o.t, o.loss, o.memory.scale, o.memory.rho = v[0], v[1], v[2], slices.Clone(v[3:])
	if n := len(o.memory.rho); n > o.c.History {
		return nil, fmt.Errorf("optimizer state: %d steps are remembered, and History is %d", n, o.c.History)
	}
	names = []string{"optimizer.d", "optimizer.prev_flat_grad"}
	for i := range o.memory.rho {
		names = append(names, fmt.Sprintf("optimizer.old_dirs.%d", i), fmt.Sprintf("optimizer.old_stps.%d", i))
	}
	return names, nil
}

// remember copies the vectors of State.
func (o *LBFGS) remember(tensors map[string]*tensor.Tensor, names []string) error {
	list, err := o.vectors(tensors, names)
	if err != nil {
		return err
	}
	m := &o.memory
	m.d, m.grad = list[0], list[1]
	for pair := range slices.Chunk(list[2:], 2) {
		m.y, m.s = append(m.y, pair[0]), append(m.s, pair[1])
	}
	return nil
}

// vectors are copies of named vectors of all parameters.
func (o *LBFGS) vectors(tensors map[string]*tensor.Tensor, names []string) (list []*tensor.Tensor, err error) {
	e, scope := o.env().Scope()
	defer scope.End()
	for _, name := range names {
		t := tensors[name]
		if t == nil || t.Rank() != 1 || t.Dim(0) != o.size || !t.DType().IsFloat() {
			return nil, fmt.Errorf("optimizer state: %s is missing or no vector of %d numbers: saved by another model or optimizer?", name, o.size)
		}
		list = append(list, o.vector(t.Detach().To(e).Cast(o.wide)))
	}
	return list, nil
}
