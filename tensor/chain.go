package tensor

import (
	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

var chainStep = &heap.Cause{By: "the next step of its chain", Hint: "a step may use the value it is given, and values from outside the chain"}

// Chain applies steps to x, one after the other. When a step is done, what the chain has made so far is released, but for
// the step's result and what a graph needs: where a scope would hold all values, a chain holds two. The result is x's
// neighbour, as if the steps had run without a chain.
//
// It is for code that knows its steps: a step must not leave a value of the chain where something else finds it. Before
// code that may do so, such as a module of another package, [Surface] takes a value out.
func Chain(x *Tensor, steps ...func(*Tensor) *Tensor) *Tensor {
	x.alive("Chain")
	if len(steps) == 0 {
		return x
	}
	f := frame{outer: x.env}
	if x.env.site == nil {
		f.site = callsite.At(1)
	}
	f.open(x.env.live())
	defer f.close()
	y := f.take(x)
	for i, step := range steps {
		y = step(y)
		y.present()
		if i < len(steps)-1 {
			f.scope.Leave(chainStep, y.st.Storage)
		}
	}
	return f.result(y)
}

// ChainPair is [Chain] for steps that hand on two values, such as a sum and what is still to be added to it. The second
// may be nil.
func ChainPair(x, z *Tensor, steps ...func(x, z *Tensor) (*Tensor, *Tensor)) (*Tensor, *Tensor) {
	x.alive("ChainPair")
	f := frame{outer: x.env}
	if z != nil {
		z.alive("ChainPair")
		f.outer = join("ChainPair", x, z)
	}
	if f.outer.site == nil {
		f.site = callsite.At(1)
	}
	f.open(f.outer.live())
	defer f.close()
	x, z = f.take(x), f.take(z)
	for _, step := range steps {
		x, z = step(x, z)
		x.present()
		f.scope.Leave(chainStep, storages(x, z)...)
	}
	f.done = true
	f.scope.Return(chainStep, storages(x, z)...)
	return f.hand(x), f.hand(z)
}

// storages are those of values that are there.
func storages(list ...*Tensor) (all []*heap.Storage) {
	for _, t := range list {
		if t != nil {
			all = append(all, t.st.Storage)
		}
	}
	return all
}

// Tidy runs f, and releases what it has made but for its result and what a graph needs; a nil result is allowed. Like a
// [Chain], and unlike [Env.Do], it is for code that knows what else can find its values, and has e's random path.
func (e *Env) Tidy(f func(*Env) *Tensor) *Tensor {
	r := frame{outer: e}
	if e.site == nil {
		r.site = callsite.At(1)
	}
	r.open(e.live())
	defer r.close()
	return r.result(f(&r.inner))
}

// frame is a chain under way.
type frame struct {
	scope scope
	inner Env // of the steps
	outer *Env
	site  *callsite.Site // of the outermost chain: between it and an operation are more calls than a Site has room for
	done  bool
}

func (f *frame) open(parent *scope) {
	s := &f.scope
	s.dev, s.parent, s.home, s.random, s.begun, s.block = parent.dev, parent, parent.home, parent.random, nodeSeq.Load(), true
	s.dev.heap.OpenFrame(&s.Scope, &parent.Scope)
	f.inner = *f.outer
	f.inner.scope = s
	if f.inner.site == nil {
		f.inner.site = f.site
	}
}

// take is x in the frame; nil stays nil.
func (f *frame) take(x *Tensor) *Tensor {
	if x == nil {
		return nil
	}
	y := new(Tensor)
	*y = *x
	y.env = &f.inner
	return y
}

// close ends a frame without a result.
func (f *frame) close() {
	if !f.done {
		f.scope.End(chainStep)
	}
}

// result hands y to where the chain began.
func (f *frame) result(y *Tensor) *Tensor {
	if y == nil {
		return nil
	}
	f.done = true
	f.scope.Return(chainStep, y.st.Storage)
	return f.hand(y)
}

// hand puts a result, or nil, where the chain began.
func (f *frame) hand(y *Tensor) *Tensor {
	switch {
	case y == nil:
	case y.env == &f.inner:
		y.env = f.outer
	case y.env.scope == &f.scope:
		y.env = y.env.with(func(e *Env) { e.scope, e.site = f.scope.parent, f.outer.site })
	}
	return y
}

// Surface takes x out of the chains that it is in: it then lives as long as the scope around them, and so does what is made
// of it, for code that may keep such values. Outside of chains it is x.
func Surface(x *Tensor) *Tensor {
	s := x.Env().live()
	if s == s.home {
		return x
	}
	s.dev.heap.Surface(x.st.Storage)
	c := *x
	c.env = x.env.with(func(e *Env) { e.scope, e.site = s.home, nil })
	return &c
}

// Join is x in the env that an operation on all of them would have. A chain that begins with one operand and takes others
// in later begins so: its result then belongs where theirs would.
func Join(x *Tensor, others ...*Tensor) *Tensor {
	return x.inside(joinAll("Join", append([]*Tensor{x}, others...)))
}
