package tensor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/ir"
)

// Func is an operation of one's own with its own gradient.
type Func struct {
	// Forward computes the results; nothing in it is recorded. c.Save keeps values for Backward.
	Forward func(c *Call, in []*Tensor) []*Tensor
	// Backward gives a gradient for each operand, or nil; a nil entry of grads is a result that no gradient reached.
	Backward func(c *Call, grads []*Tensor) []*Tensor
}

// Call is one use of a Func, for the goroutine that runs it.
type Call struct {
	f     Func
	saved []*Tensor
	node  *node
	env   *Env
	in    []*Tensor
	types []*ir.Type // of the operands
}

// Save keeps values for Backward.
func (c *Call) Save(t ...*Tensor) {
	for _, t := range t {
		t.present()
		c.saved = append(c.saved, t)
	}
}

// Saved returns what Save kept, in order.
func (c *Call) Saved() []*Tensor {
	c.backwardOnly("Saved")
	out := make([]*Tensor, len(c.node.keep))
	for i := range c.node.keep {
		out[i] = c.node.open(&c.node.keep[i], c.env)
	}
	return out
}

// Want tells whether operand i wants a gradient.
func (c *Call) Want(i int) bool {
	c.backwardOnly("Want")
	if i < 0 || i >= len(c.node.in) {
		raise("Func", "operands count from 0, as in Apply", "there is no operand %d of %d", i, len(c.node.in))
	}
	return c.node.in[i].want
}

// backwardOnly refuses what is known only once Backward runs.
func (c *Call) backwardOnly(method string) {
	if c.node == nil {
		raise("Func", "call it in Backward", "%s was called in Forward", method)
	}
}

// Apply runs the operation in a block that does not record; its results are one node of the graph.
func (f Func) Apply(in ...*Tensor) []*Tensor {
	if len(in) == 0 || f.Forward == nil {
		raise("Func", "set Forward, and give Apply at least one operand", "there is nothing to apply, or nothing to apply it to")
	}
	in[0].present()
	env := joinAll("Func", in)
	env = env.inScope(env.live())
	c := &Call{f: f}
	type result struct{ Out, Saved []*Tensor }
	r := Do(env, func(e *Env) result {
		c.in = make([]*Tensor, len(in))
		for i, t := range in {
			c.in[i] = t.quiet()
			c.in[i].env = e.NoGrad()
		}
		out := f.Forward(c, c.in)
		return result{out, c.saved}
	})
	recorded := false
	in = slices.Clone(in)
	for i, t := range in {
		in[i] = t.current("Func", env)
		_, ok := in[i].edge(env)
		recorded = recorded || ok
		c.types = append(c.types, t.typ)
	}
	settle(r.Out, in, env)
	if recorded && f.Backward == nil {
		raise("Func", "give it a Backward, or detach its operands", "an operand carries a graph and the operation has no gradient")
	}
	if recorded {
		n := newNode(env, in, 0, true)
		n.oddly().call = c
		for _, t := range r.Saved {
			n.save(t, c.origin(t, r.Out))
		}
		n.attach(in, r.Out)
	}
	c.in, c.saved = nil, nil
	return r.Out
}

// settle checks what Forward returned and puts it into env, the env of the operation's results.
func settle(out, in []*Tensor, env *Env) {
	for i, t := range out {
		if t == nil {
			raise("Func", "return as many results as the operation has", "Forward returned nil as result %d", i)
		}
		if t.env.dev != env.dev {
			raise("Func", "move the result outside: y.To(env)", "Forward returned %s on %s, its operands are on %s", t.typ, t.env.dev.name, env.dev.name)
		}
		t = t.quiet() // it may be a handle that Forward did not make
		t.env, t.apart = env, slices.ContainsFunc(in, func(u *Tensor) bool { return u.st == t.st })
		out[i] = t
	}
}

// origin finds the operand or result that a saved value is, so that second derivatives go through it.
func (c *Call) origin(t *Tensor, out []*Tensor) int16 {
	for i, in := range c.in {
		if in == t {
			return int16(i)
		}
	}
	for i, y := range out {
		if y.st == t.st && y.typ == t.typ && y.off == t.off && y.DType().IsFloat() {
			return int16(fromOut + i)
		}
	}
	return fromFunc
}

// operands lists those from i on, parameters by their paths.
func (c *Call) operands(n *node, i int) string {
	var list []string
	for ; i < len(n.in); i++ {
		name := fmt.Sprintf("operand %d, %s", i, c.types[i])
		if l := n.in[i].leaf; l != nil && l.path() != "" {
			name += " (" + l.path() + ")"
		}
		list = append(list, name)
	}
	return strings.Join(list, "; ")
}

func (c *Call) backward(n *node, e *Env) []*Tensor {
	c.node, c.env = n, e
	out := c.f.Backward(c, n.grads)
	switch {
	case len(out) > len(n.in):
		raise("Func", "return one gradient for each operand", "Backward returned %d gradients for %d operands", len(out), len(n.in))
	case len(out) < len(n.in):
		raise("Func", "return one for each operand, nil for those that have none", "Backward returned %d gradients for %d operands: without are %s", len(out), len(n.in), c.operands(n, len(out)))
	}
	for i, g := range out {
		if t := c.types[i]; g != nil && (g.DType() != t.DType || !slices.Equal(g.Shape(), t.Shape()) || g.env.dev != n.scope.dev) {
			raise("Func", "a gradient has its operand's shape, dtype and device", "Backward returned %s for operand %d, %s", g.typ, i, t)
		}
	}
	return out
}
