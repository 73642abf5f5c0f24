package optim

import (
	"iter"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// LBFGSConfig configures [LBFGS]. Zero means PyTorch's default, given in the comments, and of LR and the tolerances a negative number
// means 0.
type LBFGSConfig struct {
	LR          float64 // the first length that is tried, and without Wolfe the length of every step but the first: 1
	Iterations  int     // of a Minimize at most, max_iter: 20
	Evaluations int     // of the loss in a Minimize at most, max_eval: a quarter more than Iterations
	Gradient    float64 // it ends where no element of the gradient is larger, tolerance_grad: 1e-7
	Change      float64 // or no element of a step, or the loss changes by less, tolerance_change: 1e-9
	History     int     // steps that are remembered, two vectors each: 100
	Wolfe       bool    // each step is as long as the strong conditions of Wolfe want, line_search_fn="strong_wolfe"
	Maximize    bool
}

// LBFGS minimises a loss that does not change between evaluations, that of all data or of a physical problem: it goes along the
// gradient times an inverse Hessian that the last steps tell of (Liu and Nocedal, 1989). All parameters are on one device. It computes
// in float32, or in float64 if all parameters are of that; float64 is what a small problem needs to come near its minimum.
//
// The host decides how to go on after each evaluation, so that there is nothing to capture. Checkpoints hold it as any
// [Optimizer]; Minimize is in place of Step.
type LBFGS struct {
	c       LBFGSConfig
	params  []flatParam
	size    int
	wide    dtype.DType
	grad    *tensor.Tensor // at the parameters as they are; nil before the first Minimize
	memory  secants
	t, loss float64 // of the last step: its length, and the loss before it

	iterations, evaluations int
}

// flatParam is a parameter and its place in the vector of all.
type flatParam struct {
	name   string
	p      *tensor.Tensor
	lo, hi int
}

// LBFGSReport tells what a Minimize did.
type LBFGSReport struct {
	First, Last             float64 // the loss before the first step, and as it was evaluated last
	Iterations, Evaluations int
}

// NewLBFGS minimises over the given parameters.
func NewLBFGS(params iter.Seq2[string, *tensor.Tensor], c LBFGSConfig) *LBFGS {
	const op = "optim.NewLBFGS"
	c.LR, c.Gradient, c.Change = optional(c.LR, 1), optional(c.Gradient, 1e-7), optional(c.Change, 1e-9)
	c.Iterations, c.History = whole(c.Iterations, 20), whole(c.History, 100)
	c.Evaluations = whole(c.Evaluations, c.Iterations*5/4)
	check(op, "LR", c.LR, 0, math.Inf(1))
	check(op, "Gradient", c.Gradient, 0, math.Inf(1))
	check(op, "Change", c.Change, 0, math.Inf(1))
	wants(op, "Iterations", c.Iterations, 1)
	wants(op, "Evaluations", c.Evaluations, 1)
	wants(op, "History", c.History, 1)
	o := &LBFGS{c: c, wide: dtype.F64}
	seen := map[*tensor.Tensor]bool{}
	for name, p := range params {
		if seen[p] {
			continue
		}
		seen[p] = true
		o.params = append(o.params, flatParam{name, p, o.size, o.size + elements(p)})
		o.size += elements(p)
		if p.DType() != dtype.F64 {
			o.wide = dtype.F32
		}
	}
	if len(o.params) == 0 {
		tensor.Raise(op, "give nn.Params(model) of a model with parameters", "there are no parameters to update")
	}
	return o
}

// Minimize takes up to Iterations steps. f computes the loss, one number, from values of the given env, which end with it.
func (o *LBFGS) Minimize(f func(e *tensor.Env) *tensor.Tensor) LBFGSReport {
	if tensor.Capturing() {
		tensor.Raise("LBFGS.Minimize", "call it outside of the captured step", "the host decides after each evaluation how to go on")
	}
	if o.grad == nil {
		o.grad = o.vector(nil)
	}
	m := minimization{LBFGS: o, f: f}
	m.begin()
	for m.Last = m.First; !m.done && m.Iterations < o.c.Iterations; {
		m.Iterations++
		o.iterations++
		m.step()
	}
	o.evaluations += m.Evaluations
	return m.LBFGSReport
}

// vector copies a vector into one that stays; nil is zeros.
func (o *LBFGS) vector(x *tensor.Tensor) *tensor.Tensor {
	if x != nil {
		return tensor.NewBuffer(x)
	}
	e, scope := o.env().Scope()
	defer scope.End()
	return tensor.NewBuffer(e.FullOf(o.wide, 0, o.size))
}

// env is that of the first parameter, without a graph.
func (o *LBFGS) env() *tensor.Env { return o.params[0].p.Env().NoGrad() }

// minimization is a call of Minimize.
type minimization struct {
	*LBFGS
	LBFGSReport
	f    func(e *tensor.Env) *tensor.Tensor
	done bool
}

// begin evaluates at the parameters.
func (m *minimization) begin() {
	e, scope := m.env().Scope()
	defer scope.End()
	first := m.evaluate(e)
	m.First = m.sign() * first.loss
	m.grad.CopyInPlace(first.grad)
	m.done = largest(first.grad) <= m.c.Gradient
	m.Last = m.First
}

// sign is -1 for what is to become large.
func (o *LBFGS) sign() float64 {
	if o.c.Maximize {
		return -1
	}
	return 1
}

// step goes one step.
func (m *minimization) step() {
	e, scope := m.env().Scope()
	defer scope.End()
	grad, loss := m.grad.In(e), m.sign()*m.Last
	d := m.memory.direction(e, m.LBFGS, grad)
	m.memory.follow(m.LBFGS, d, grad)
	m.loss = loss
	if m.t = m.c.LR; m.iterations == 1 {
		m.t *= min(1, 1/grad.Abs().Sum().Item())
	}
	now := point{loss: loss, slope: dot(grad, d).Item(), grad: grad}
	if now.slope > -m.c.Change {
		m.done = true
		return
	}
	if m.c.Wolfe {
		now = m.searched(e, now, d)
	} else if m.move(d, m.t); m.Iterations < m.c.Iterations { // the last one is not looked at: the next Minimize does
		now = m.evaluate(e)
	}
	m.Last = m.sign() * now.loss
	m.grad.CopyInPlace(now.grad)
	m.done = m.Evaluations >= m.c.Evaluations || largest(now.grad) <= m.c.Gradient ||
		math.Abs(m.t)*largest(d) <= m.c.Change || math.Abs(now.loss-loss) < m.c.Change
}

// searched goes as far as a search says.
func (m *minimization) searched(e *tensor.Env, from point, d *tensor.Tensor) point {
	var before []*tensor.Tensor
	for _, p := range m.params {
		before = append(before, p.p.In(e).Clone())
	}
	s := search{from: from, width: largest(d), least: m.c.Change, most: m.c.Evaluations - m.Evaluations}
	s.evaluate = func(t float64) point {
		m.move(d, t)
		p := m.evaluate(e)
		p.at, p.slope = t, dot(p.grad, d).Item()
		for i, b := range before {
			m.params[i].p.In(e).CopyInPlace(b)
		}
		return p
	}
	found := s.run(m.t)
	m.t = found.at
	m.move(d, m.t)
	return found
}

// evaluate is the loss and its gradient at the parameters.
func (m *minimization) evaluate(e *tensor.Env) point {
	inner, scope := m.params[0].p.Env().Scope()
	defer scope.End()
	y := m.f(inner)
	y.Backward()
	m.Evaluations++
	var parts []*tensor.Tensor
	for _, p := range m.params {
		g := p.p.Grad()
		if g == nil {
			parts = append(parts, e.FullOf(m.wide, 0, p.hi-p.lo))
			continue
		}
		parts = append(parts, g.In(e).Reshape(p.hi-p.lo).Cast(m.wide).Scale(m.sign()))
		p.p.DropGrad()
	}
	return point{loss: m.sign() * y.Item(), grad: tensor.Cat(0, parts...)}
}

// move goes from the parameters by t along d.
func (m *minimization) move(d *tensor.Tensor, t float64) {
	for _, p := range m.params {
		if !p.p.Frozen() {
			w := p.p.In(d.Env())
			w.CopyInPlace(w.Cast(m.wide).AddScaled(d.Slice(0, p.lo, p.hi).Reshape(p.p.Shape()...), t).Cast(w.DType()))
		}
	}
}

func dot(a, b *tensor.Tensor) *tensor.Tensor { return a.Mul(b).Sum() }

// largest is the largest magnitude.
func largest(x *tensor.Tensor) float64 {
	if x.Size() == 0 {
		return 0
	}
	return x.Abs().Max(0).Item()
}

// secants are what the last steps tell of the Hessian.
type secants struct {
	d, grad *tensor.Tensor   // of the last step: its direction, and the gradient before it; nil: there was none
	y, s    []*tensor.Tensor // changes of the gradient, and the steps that made them, from the oldest
	rho     []float64        // 1 / y·s
	scale   float64          // of the first inverse Hessian
}

// direction is where to go from a gradient, by the recursion of Nocedal (1980).
func (m *secants) direction(e *tensor.Env, o *LBFGS, grad *tensor.Tensor) *tensor.Tensor {
	if m.d == nil {
		return grad.Neg()
	}
	m.learn(e, o, grad)
	q := grad.Neg()
	along := make([]*tensor.Tensor, len(m.y))
	for i := len(m.y) - 1; i >= 0; i-- {
		along[i] = dot(m.s[i].In(e), q).Scale(m.rho[i])
		q = q.Sub(m.y[i].In(e).Mul(along[i]))
	}
	q = q.Scale(m.scale)
	for i := range m.y {
		q = q.Add(m.s[i].In(e).Mul(along[i].Sub(dot(m.y[i].In(e), q).Scale(m.rho[i]))))
	}
	return q
}

// learn takes in the last step, if it tells of a convex function.
func (m *secants) learn(e *tensor.Env, o *LBFGS, grad *tensor.Tensor) {
	y, s := grad.Sub(m.grad.In(e)), m.d.In(e).Scale(o.t)
	ys := dot(y, s).Item()
	if !(ys > 1e-10) {
		return
	}
	m.scale = ys / dot(y, y).Item()
	if m.rho = append(m.rho, 1/ys); len(m.rho) <= o.c.History {
		m.y, m.s = append(m.y, o.vector(y)), append(m.s, o.vector(s))
		return
	}
	m.rho = m.rho[1:]
	m.y, m.s = append(m.y[1:], m.y[0]), append(m.s[1:], m.s[0])
	m.y[o.c.History-1].CopyInPlace(y)
	m.s[o.c.History-1].CopyInPlace(s)
}

// follow notes the direction of a step, and the gradient before it.
func (m *secants) follow(o *LBFGS, d, grad *tensor.Tensor) {
	if m.d == nil {
		m.d, m.grad, m.scale = o.vector(d), o.vector(grad), 1
		return
	}
	m.d.CopyInPlace(d)
	m.grad.CopyInPlace(grad)
}
