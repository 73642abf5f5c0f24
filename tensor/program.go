package tensor

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// Program is operations that were recorded while they ran on one operand, and that run again on another: kernels, memory and
// call sites are known by then, and nothing is allocated. It is for loops that do the same many times, such as a model that
// writes token by token. One goroutine at a time may run it.
type Program struct {
	env       *Env
	x         *ir.Type  // of its operand
	given     *heap.Ref // of the copy that it was recorded on, which nothing else lies in
	scope     *scope
	queue     *queue
	goroutine uint64
	steps     []launched
	open      atomic.Bool
}

// launched is a launch of a program: its arguments are results, operands and scratch memory.
type launched struct {
	kernel *device.Kernel
	params device.Params
	args   []device.Arg
	refs   []*heap.Ref
	outs   int
	given  uint64 // which arguments lie in the program's operand, a bit each
}

// Record runs f on a copy of x, without gradients, and records what it launches. The result y and what f has made on the way
// live as long as values made in x's env; each [Program.Run] writes them anew.
//
// What f does must follow from shapes alone: it makes new values, each of its operand or of its operand's env and of others that
// are read again in each run, draws no random numbers, writes nothing in place, stays on the device, and asks for no values.
func Record(x *Tensor, f func(x *Tensor) *Tensor) (p *Program, y *Tensor) {
	x.alive("Record")
	uncapturable("Record", "record it before", "a program would be recorded anew in each run")
	x = x.copyTo(x.env)
	p = &Program{env: x.env, x: x.typ, given: x.st, scope: x.env.live(), queue: x.env.onQueue(), goroutine: callsite.Goroutine()}
	p.open.Store(true)
	recordings.begin(p)
	defer func() {
		p.open.Store(false)
		recordings.end(p)
	}()
	inner := x.env.with(func(e *Env) { e.program, e.grad = p, off })
	y = f(x.inside(inner))
	y.alive("Record")
	if y.st == x.st {
		raise("Record", "record what makes a new value of it", "the result is a part of the operand, which is another in each run")
	}
	y = y.Detach()
	y.env = x.env
	return p, y
}

// recording tells whether p, which may be nil, is being recorded.
func (p *Program) recording() bool { return p != nil && p.open.Load() }

// add records a launch that was done, and keeps its memory, from which chains and blocks would part.
func (p *Program) add(pl *opPlan, params *ir.Params, from *cells, in, out []*Tensor, scratch *heap.Ref) {
	op := pl.what()
	if from != nil || len(in)+len(out) > 64 {
		raise("Record", "run it outside of the program", "%s, an update, cannot be recorded", op)
	}
	l := launched{kernel: pl.kernel, outs: len(out)}
	l.params.Set(params)
	l.params.Paths = appendPaths(nil, in)
	if len(out) > 0 {
		l.params.Site = out[0].st.Site
	}
	for i, t := range append(out[:len(out):len(out)], in...) {
		if t.st == p.given {
			l.given |= 1 << i
		}
		l.args, l.refs = append(l.args, t.arg()), append(l.refs, t.st)
	}
	own := l.refs[:l.outs:l.outs]
	if scratch != nil {
		l.args, l.refs = append(l.args, device.Arg{Mem: scratch.Block().Mem()}), append(l.refs, scratch)
		own = append(own, scratch)
	}
	heap := p.scope.dev.heap.Lock()
	for _, st := range own {
		heap.Adopt(&p.scope.Scope, st.Storage)
	}
	heap.Unlock()
	for _, st := range own {
		p.scope.Hold(st.Storage)
	}
	p.steps = append(p.steps, l)
}

// Run runs the program on x, of the shape and dtype of the operand that it was recorded on, row-major, and not a value that
// the program itself writes. Results are overwritten.
func (p *Program) Run(x *Tensor) {
	x.alive("Program.Run")
	uncapturable("Program.Run", "call what the program was recorded from", "its launches would be in no recording but its own")
	if x.typ != p.x || x.env.dev != p.env.dev {
		raise("Program.Run", "record a program for each", "an operand %s on %s, recorded for %s on %s", x.typ, x.env.dev.name, p.x, p.env.dev.name)
	}
	if !x.st.Settled(p.queue.id) {
		x.st.Reads(p.queue)
	}
	for i := range p.steps {
		p.steps[i].order(p.queue, x)
	}
	at := x.arg()
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	for i := range p.steps {
		p.queue.runStep(&p.steps[i], at, x.env.part)
	}
	runtime.KeepAlive(x)
}

// order puts a launch behind other queues' work on its memory, which must be there and not x's, and notes that its results are
// written.
func (l *launched) order(q *queue, x *Tensor) {
	for i, st := range l.refs {
		if l.given>>i&1 == 1 {
			continue
		}
		if why := st.Gone(); why != nil {
			raise("Program.Run", why.Hint, "the result of %s at %s was released by %s", st.What(), st.Site.String(), why.By)
		}
		if i < l.outs && st.Storage == x.st.Storage {
			raise("Program.Run", "run it on a copy", "the operand is what the program writes by %s at %s", st.What(), st.Site.String())
		}
		switch {
		case i >= l.outs && !st.Settled(q.id):
			st.Reads(q)
		case i < l.outs && !st.Sole(q.id):
			st.Writes(q)
		}
		if i < l.outs {
			st.Written()
		}
	}
}

// runStep launches with the program's operand at a place, for observers in a range. q.mu is held.
func (q *queue) runStep(l *launched, at device.Arg, part *device.Range) {
	q.args = append(q.args[:0], l.args...)
	for i := range q.args {
		if l.given>>i&1 == 1 {
			q.args[i] = device.Arg{Mem: at.Mem, Offset: at.Offset + l.args[i].Offset}
		}
	}
	o := l.params.Origin
	o.Range = part
	q.again(l.kernel, q.args, &l.params, &o)
}

// again makes a launch that was made before, for observers with an origin. q.mu is held.
func (q *queue) again(k *device.Kernel, args []device.Arg, p *device.Params, o *device.Origin) {
	var err error
	if !q.dev.stream.WantsWork() {
		err = q.q.Launch(k, args, p)
	} else {
		own := q.params
		q.args, q.params = append(q.args[:0], args...), *p
		err = q.observed(k, o)
		q.params = own
	}
	if err != nil {
		line := userLine()
		if p.Site != nil {
			line = p.Site.String()
		}
		raiseErrAt(k.What(), "", line, described{err, k.What(), ""})
	}
}

// String tells the program's operand and how many launches it is.
func (p *Program) String() string {
	return fmt.Sprintf("program on %s, %d launches", p.x, len(p.steps))
}
