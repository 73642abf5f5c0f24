package optim

import (
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// ledger is what an optimizer keeps on one device for its steps, in the root scope. The device writes it, and the host
// reads it late: a step that is skipped there counts for nothing, and nobody waits to know.
type ledger struct {
	device            *tensor.Device
	all               *tensor.Tensor   // i64[n]: the updates of every parameter of the optimizer
	counts            []*tensor.Tensor // its elements
	turn              *tensor.Tensor   // i64[n]: whose turn it is
	turns             []int64          // what turn holds
	rates             []*rate          // of each group of parameters
	numbers           []*tensor.Tensor // cells: what core.numbers are there
	tables            []*tensor.Tensor // f64: core.tables there
	norm, scale, skip *tensor.Tensor   // of the last step

	// Of an optimizer that applies gradients in Backward:
	norms [2]*norms      // of gradients in f64, and of others; nil: there were none
	one   *tensor.Tensor // i64[1]: 1
	told  bool           // tell was asked for in this step
}

// ledger is that of a device, nil before the first Step there.
func (c *core) ledger(d *tensor.Device) *ledger {
	for _, l := range c.books {
		if l.device == d {
			return l
		}
	}
	return nil
}

// rate is the learning rate of a group of parameters on a device.
type rate struct {
	group int
	cell  *tensor.Tensor
	lr    float64 // what cell holds
}

// rate is the cell of a batch's learning rate.
func (l *ledger) rate(b *batch) *tensor.Tensor {
	i := slices.IndexFunc(l.rates, func(r *rate) bool { return r.group == b.rates.Group })
	return l.rates[i].cell
}

// newLedger makes the ledger of e's device, with the updates of parameters that have none yet.
func newLedger(e *tensor.Env, c *core) *ledger {
	n := len(c.states)
	counts := make([]int64, n)
	for i, s := range c.states {
		if s.book == nil {
			counts[i] = int64(s.steps)
		}
	}
	l := &ledger{device: e.Device(), turns: make([]int64, n)}
	l.all, l.turn = tensor.NewBuffer(tensor.From(e, counts, n)), tensor.NewBuffer(tensor.From(e, l.turns, n))
	l.skip = tensor.NewBuffer(e.FullOf(dtype.I64, 0))
	for _, g := range c.groups() {
		l.rates = append(l.rates, &rate{g, tensor.NewBuffer(e.FullOf(dtype.F64, c.GroupLR(g))), c.GroupLR(g)})
	}
	for i := range n {
		l.counts = append(l.counts, l.all.Select(0, i))
	}
	for _, n := range c.numbers {
		l.numbers = append(l.numbers, tensor.NewBuffer(e.FullOf(dtype.F64, n.value)))
	}
	for _, t := range c.tables {
		l.tables = append(l.tables, tensor.NewBuffer(tensor.From(e, t, len(t))))
	}
	c.books = append(c.books, l)
	return l
}

// prepare brings a ledger up to date for a step of some parameters. It writes nothing that a step which fails would have to
// take back.
func (l *ledger) prepare(p *place, c *core) {
	turns := make([]int64, len(l.turns))
	for _, s := range p.states {
		s.book, turns[s.index] = l, 1
	}
	tensor.BeforeRun(func() { l.tell(turns, c) })
}

// tell gives the device what the host knows of a step: whose turn it is, and the learning rates.
func (l *ledger) tell(turns []int64, c *core) {
	if !slices.Equal(turns, l.turns) {
		e, scope := l.all.Env().Scope()
		defer scope.End()
		l.turn.CopyInPlace(tensor.From(e, turns, len(turns)))
		l.turns = turns
	}
	for _, r := range l.rates {
		if lr := c.GroupLR(r.group); r.lr != lr {
			tensor.SetCell(r.cell, lr)
			r.lr = lr
		}
	}
}

// fit makes room for the norm of gradients.
func (l *ledger) fit(grads []*tensor.Tensor) {
	dt := dtype.F32
	for _, g := range grads {
		if g.DType() == dtype.F64 {
			dt = dtype.F64
		}
	}
	if l.norm == nil || l.norm.DType() != dt {
		e := grads[0].Env()
		norm, scale := tensor.NewBuffer(e.FullOf(dt, 0)), tensor.NewBuffer(e.FullOf(dt, 0))
		l.norm, l.scale = norm, scale
	}
}

// read fetches the counts of updates, and the optimizer's own numbers, from the devices.
func (c *core) read() {
	for i := range c.numbers {
		c.numbers[i].value = c.numberAt(i)
	}
	for _, l := range c.books {
		counts := l.all.Floats()
		for _, s := range c.states {
			if s.book == l {
				s.steps = int(counts[s.index])
			}
		}
	}
}

// settle reads the counts and closes the ledgers: the next Step opens others.
func (c *core) settle() {
	c.read()
	c.close()
}

// close drops the ledgers.
func (c *core) close() {
	for _, s := range c.states {
		s.book = nil
	}
	c.books, c.last = nil, nil
}
