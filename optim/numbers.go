package optim

import (
	"fmt"

	"github.com/warpline-ml/warpline/tensor"
)

// number is one of the whole optimizer, that its steps change. Each device has it in a cell of its ledger, all the same.
type number struct {
	name  string
	value float64 // where no device has it
}

// numberAt is the value of a number.
func (c *core) numberAt(i int) float64 {
	if len(c.books) == 0 {
		return c.numbers[i].value
	}
	return c.books[0].numbers[i].Item()
}

// numberState walks the numbers as state, under "optimizer.NAME".
func (c *core) numberState(yield func(string, *tensor.Tensor) bool) bool {
	for i, n := range c.numbers {
		t := (*tensor.Tensor)(nil)
		if len(c.books) > 0 {
			t = c.books[0].numbers[i]
		} else {
			t = tensor.NewCell(c.env(), n.value)
		}
		if !yield(n.at(), t) {
			return false
		}
	}
	return true
}

func (n *number) at() string { return "optimizer." + n.name }

// acceptsNumbers checks the numbers that are loaded, and notes their names.
func (c *core) acceptsNumbers(tensors map[string]*tensor.Tensor, known map[string]bool) error {
	for _, n := range c.numbers {
		known[n.at()] = true
		switch t := tensors[n.at()]; {
		case t == nil:
			return fmt.Errorf("optimizer state: %s is missing: saved by another optimizer?", n.at())
		case t.Rank() != 0 || !t.DType().IsFloat():
			return fmt.Errorf("optimizer state: %s is %s%v, not one floating number", n.at(), t.DType(), t.Shape())
		}
	}
	return nil
}

// advancing changes the numbers on a device, unless the step is skipped there.
func (c *core) advancing(l *ledger) {
	if c.advance == nil {
		return
	}
	e, scope := l.all.Env().NoGrad().Scope()
	defer scope.End()
	c.advance(e, l)
}
