package tensor

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/rng"
)

// Env says where and how: device, queue, gradient recording, training or evaluation, precision policy, scope and random
// path. It is immutable and may be used by several goroutines. Unset fields override nothing.
type Env struct {
	dev      *Device
	scope    *scope
	queue    *queue // nil: the device's first
	grad     mode
	train    mode
	policy   dtype.DType    // Invalid: none
	cpuLists bool           // the policy follows PyTorch's lists for CPUs
	products Precision      // of float32; 0: unset
	parts    *Parts         // that are recomputed; nil: nothing is said
	offload  mode           // of what blocks keep
	again    bool           // the second run of a Recompute
	back     bool           // within Backward
	within   bool           // a part of an operation: see DetectAnomaly
	site     *callsite.Site // what the library's own operations are attributed to; nil: their callers
	part     *device.Range  // the innermost one that observers know of
	seq      uint64         // of the recorded operation that operations are a part of
	seeded   *stream        // own random path, from Seed or Replica

	program *Program // which records what runs, while it is being recorded
}

type mode uint8

// A joined mode is the larger of two: off wins over on, which wins over unset.
const (
	unset mode = iota
	on
	off
)

func (e *Env) with(change func(*Env)) *Env {
	c := *e
	change(&c)
	return &c
}

// present refuses a nil env, such as that of a batch that no loader made.
func (e *Env) present(op string) {
	if e == nil {
		raise(op, "give one; a batch that no loader made has only the Env that the program sets", "the env is nil")
	}
}

// Device tells where values made in e live.
func (e *Env) Device() *Device { return e.dev }

// NoGrad derives an env in which parameters and leaves start no graph.
func (e *Env) NoGrad() *Env { return e.with(func(c *Env) { c.grad = off }) }

// Grad derives an env that records, inside a no-grad one too.
func (e *Env) Grad() *Env { return e.with(func(c *Env) { c.grad = on }) }

// Train derives an env for training: dropout and batch statistics are on.
func (e *Env) Train() *Env { return e.with(func(c *Env) { c.train = on }) }

// Eval derives an env for evaluation: no dropout, running statistics.
func (e *Env) Eval() *Env { return e.with(func(c *Env) { c.train = off }) }

// Autocast derives an env whose products (MatMul, Linear, Conv2d, Attention) run in dt, F16 or BF16, while operations
// that need range run in f32. The policy is PyTorch's. Float64 values are never touched. F32 switches casting off.
func (e *Env) Autocast(dt dtype.DType) *Env {
	if dt != dtype.F16 && dt != dtype.BF16 && dt != dtype.F32 {
		raise("Autocast", "use dtype.BF16 or dtype.F16", "%s is no 16-bit floating dtype", dt)
	}
	return e.with(func(c *Env) { c.policy = dt })
}

// CPULists derives an env whose precision policy follows PyTorch's lists for CPUs, on any device: of what the CUDA lists, which
// are the usual ones, compute in float32, all but products of elements and losses runs in the dtype it is given. On two
// devices a program has the same policy unless it asks for another.
func (e *Env) CPULists() *Env { return e.with(func(c *Env) { c.cpuLists = true }) }

// On derives an env whose operations run on q.
func (e *Env) On(q *Queue) *Env {
	if q == nil {
		raise("On", "make it with env.NewQueue()", "the queue is nil")
	}
	if q.q.dev != e.dev {
		raise("On", "make the queue with env.NewQueue()", "queue on %s, env on %s", q.q.dev.name, e.dev.name)
	}
	return e.with(func(c *Env) { c.queue = q.q })
}

// Seed derives an env with its own random path, which depends on k only.
func (e *Env) Seed(k uint64) *Env {
	return e.with(func(c *Env) { c.seeded = &stream{key: rng.Fold(seedKey, k), step: recordings.step()} })
}

// Replica derives an env for one of several copies that train side by side: its random path is folded with i, and it
// has a queue of its own.
func (e *Env) Replica(i int) *Env {
	q := e.NewQueue()
	return e.with(func(c *Env) {
		c.seeded = &stream{key: rng.Fold(rng.Fold(e.stream().key, replicaPath), uint64(i))}
		c.queue = q.q
	})
}

// Training tells whether dropout and batch statistics are on.
func (e *Env) Training() bool { return e.train != off }

// Recording tells whether a parameter used here starts a graph.
func (e *Env) Recording() bool { return e.grad != off }

// Recomputing tells whether this is the second run of a Recompute, in which buffers are not written.
func (e *Env) Recomputing() bool { return e.again }

// live returns the scope that new values join: a closed block stands for what encloses it.
func (e *Env) live() *scope {
	s := e.scope
	for s.Closed() != nil {
		if !s.block {
			raise("make", "use the current batch's Env", "this env's batch has ended")
		}
		s = s.parent
	}
	return s
}

// onQueue returns the queue that operations of e run on.
func (e *Env) onQueue() *queue {
	if e.queue != nil {
		return e.queue
	}
	return e.dev.first
}

func later(a, b *scope) *scope {
	if b.Opened() > a.Opened() {
		return b
	}
	return a
}

func laterPart(a, b *device.Range) *device.Range {
	if a == nil || b != nil && b.Number > a.Number {
		return b
	}
	return a
}

// overlay is x.In(over): over's set modes, and the later-opened of both scopes. An outer scope never takes a value
// back, so x.In(root.NoGrad()) inside a batch stays in the batch.
func (e *Env) overlay(over *Env) *Env {
	over.present("In")
	if e.dev != over.dev {
		raise("In", "x.To(env) copies", "value on %s, env on %s", e.dev.name, over.dev.name)
	}
	if over.covers(e) {
		return over
	}
	c := *e
	if over.queue != nil {
		c.queue = over.queue
	}
	if over.grad != unset {
		c.grad = over.grad
	}
	if over.train != unset {
		c.train = over.train
	}
	if over.policy != dtype.Invalid {
		c.policy = over.policy
	}
	if over.products != 0 {
		c.products = over.products
	}
	if over.parts != nil {
		c.parts = over.parts
	}
	if over.offload != unset {
		c.offload = over.offload
	}
	c.again, c.cpuLists = c.again || over.again, c.cpuLists || over.cpuLists
	c.part = laterPart(e.part, over.part)
	if over.seeded != nil {
		c.seeded = over.seeded
	}
	if over.program.recording() {
		c.program = over.program
	}
	if c.scope = later(e.scope, over.scope); c.scope != e.scope && over.seeded == nil {
		c.seeded = nil
	}
	if c == *e {
		return e
	}
	return c.kept()
}

// covers tells whether an overlay of over on e, of the same device, is over itself: mostly it is, and then nothing is made.
func (over *Env) covers(e *Env) bool {
	return (over.queue != nil || e.queue == nil) && (over.grad != unset || e.grad == unset) && (over.train != unset || e.train == unset) &&
		(over.policy != dtype.Invalid || e.policy == dtype.Invalid) && (over.products != 0 || e.products == 0) && (over.again || !e.again) && (over.cpuLists || !e.cpuLists) && (over.parts != nil || e.parts == nil) && (over.offload != unset || e.offload == unset) &&
		over.back == e.back && over.site == e.site && over.seq == e.seq &&
		later(e.scope, over.scope) == over.scope && laterPart(e.part, over.part) == over.part &&
		(over.seeded != nil || e.seeded == nil || e.scope != over.scope) && (over.program.recording() || !e.program.recording())
}

// join is the env of a result of two operands. Parameters set only device and root scope; a graph's modes count before
// those of constants.
func join(op string, a, b *Tensor) *Env {
	a.given(op, "the first operand")
	b.given(op, "the second operand")
	if a.env == b.env {
		return a.env
	}
	if a.env.dev != b.env.dev {
		raise(op, twoDevices, "operands on two devices: %s on %s, %s on %s", a.title(), a.env.dev.name, b.title(), b.env.dev.name)
	}
	switch {
	case b.param:
		return a.env
	case a.param:
		return b.env
	}
	scope := later(a.env.scope, b.env.scope)
	if a.carriesGraph() != b.carriesGraph() {
		e, other := a.env, b.env
		if b.carriesGraph() {
			e, other = b.env, a.env
		}
		if other.again && !e.again {
			e = e.with(func(c *Env) { c.again = true })
		}
		if other.program.recording() && !e.program.recording() {
			e = e.with(func(c *Env) { c.program = other.program })
		}
		if e.scope != scope {
			e = e.with(func(c *Env) { c.scope, c.site = scope, other.site })
		}
		return e
	}
	return joinModes(op, a.env, b.env, scope)
}

// twoDevices is what to do about operands on two devices: of data and a model, it may be either.
const twoDevices = "x.To(env) copies a value, nn.To(env, model) moves a model"

func joinModes(op string, a, b *Env, scope *scope) *Env {
	seeded := joinStreams(a, b, scope)
	if a.absorbs(b, scope, seeded) && (scope == a.scope || a.site == b.site) {
		return a
	}
	if b.absorbs(a, scope, seeded) && (scope != a.scope || a.site == b.site) {
		return b
	}
	c := Env{dev: a.dev, scope: scope, grad: max(a.grad, b.grad), train: max(a.train, b.train), policy: a.policy, products: a.products, queue: a.queue, again: a.again || b.again, cpuLists: a.cpuLists || b.cpuLists,
		parts: a.parts.or(b.parts), offload: max(a.offload, b.offload), back: a.back && b.back, part: laterPart(a.part, b.part), site: a.site}
	if scope != a.scope {
		c.site = b.site
	}
	if c.policy == dtype.Invalid {
		c.policy = b.policy
	} else if b.policy != dtype.Invalid && b.policy != c.policy {
		raise(op, "x.In(env.Autocast(…)) chooses one", "operands with two precision policies, %s and %s", c.policy, b.policy)
	}
	if c.products == 0 {
		c.products = b.products
	} else if b.products != 0 && b.products != c.products {
		raise(op, "x.In(env.Products(…)) chooses one", "operands with two precisions of products, %s and %s", c.products, b.products)
	}
	if c.queue == nil || b.queue != nil && b.queue.id > c.queue.id {
		c.queue = b.queue
	}
	c.seeded = seeded
	if c.program = a.program; !c.program.recording() {
		c.program = b.program
	}
	return c.kept()
}

// absorbs tells whether e, but for its site, is what it joins in with other, in a scope and with a random path.
func (e *Env) absorbs(other *Env, scope *scope, seeded *stream) bool {
	return e.scope == scope && e.seeded == seeded && e.seq == 0 && e.grad >= other.grad && e.train >= other.train &&
		(other.policy == dtype.Invalid || other.policy == e.policy) && (other.products == 0 || other.products == e.products) && (other.queue == nil || e.queue != nil && e.queue.id >= other.queue.id) &&
		(e.again || !other.again) && (e.cpuLists || !other.cpuLists) && e.parts.or(other.parts) == e.parts && e.offload >= other.offload && (!e.back || other.back) && laterPart(e.part, other.part) == e.part &&
		(e.program.recording() || !other.program.recording())
}

// kept is a copy of e for good: most joins give one of their operands' envs, and then nothing is made.
func (e Env) kept() *Env { return &e }

// joinStreams is the random path of a joined env: that of the scope that wins. Of two own paths in one scope, the larger
// key counts, so that operands commute.
func joinStreams(a, b *Env, scope *scope) *stream {
	switch {
	case b.scope != scope || b.seeded == nil && a.scope == scope:
		return a.seeded
	case a.scope != scope || a.seeded == nil || b.seeded.key > a.seeded.key:
		return b.seeded
	}
	return a.seeded
}

// inside is t as an operand in e, the env of the operation's result: what is made of it on the way there, a cast or an
// expanded view, is recorded only where e records, and lives where the result does.
func (t *Tensor) inside(e *Env) *Tensor {
	if t.env == e {
		return t
	}
	c := *t
	c.env = e
	return &c
}

// together is both operands in the env that they join in.
func together(op string, t, u *Tensor) (*Tensor, *Tensor) {
	e := join(op, t, u)
	return t.inside(e), u.inside(e)
}

// allInside is the operands in the env that they join in; nil ones stay.
func allInside(op string, in ...*Tensor) []*Tensor {
	e := joinAll(op, in)
	out := make([]*Tensor, len(in))
	for i, t := range in {
		if t != nil {
			out[i] = t.inside(e)
		}
	}
	return out
}

// joinAll is join over any number of operands; nil ones do not count.
func joinAll(op string, in []*Tensor) *Env {
	var acc Tensor
	for _, t := range in {
		switch {
		case t == nil:
		case acc.env == nil:
			acc = *t
		default:
			acc.env = join(op, &acc, t)
			acc.param = acc.param && t.param
			if t.carriesGraph() {
				acc = Tensor{st: t.st, node: t.node, ver: t.ver, apart: t.apart, env: acc.env, param: acc.param, typ: acc.typ}
			}
		}
	}
	return acc.env
}

func (e *Env) inScope(s *scope) *Env {
	if e.scope == s {
		return e
	}
	c := *e
	c.scope = s
	return &c
}

// NewQueue makes a queue: work on it runs beside that of other queues, in its own order.
func (e *Env) NewQueue() *Queue { return &Queue{e.dev.newQueue()} }

// Sync waits for everything asked of e's device. It is a sync point.
func (e *Env) Sync() {
	uncapturable("Sync", "wait after Run", "the host would wait once, and not in each run")
	e.dev.sync()
}
