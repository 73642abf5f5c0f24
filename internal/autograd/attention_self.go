package autograd

import (
	"sync"

	"github.com/warpline-ml/warpline/internal/ir"
)

// parted is a Call of an [ir.SelfAttention], or of its gradient, as one of the op that has q, k and v apart.
type parted struct {
	op         ir.Op
	p          *ir.Params
	in         []func() ir.Value
	out, grads []ir.Value
	want       []bool
}

// Op implements Call, as do the others.
func (c *parted) Op() *ir.Op          { return &c.op }
func (c *parted) Params() *ir.Params  { return c.p }
func (c *parted) In(i int) ir.Value   { return c.in[i]() }
func (c *parted) Out(i int) ir.Value  { return c.out[i] }
func (c *parted) Grad(i int) ir.Value { return c.grads[i] }
func (c *parted) Want(i int) bool     { return c.want[i] }

// part is the call of code apart, with operand qkv of c in three and those before it laid out by heads. Operands are asked
// for when they are used.
func part(b ir.B, c Call, code ir.Code, qkv int) *parted {
	op := c.Op()
	p := &parted{p: c.Params()}
	var types []*ir.Type
	add := func(i int, t *ir.Type, f func() ir.Value) {
		types, p.in, p.want = append(types, t), append(p.in, f), append(p.want, c.Want(i))
	}
	s := op.In(qkv).Shape()
	head := ir.Dense(op.In(qkv).DType, s[0], s[3], s[1], s[4])
	for i, t := range op.Ins() {
		switch {
		case i == qkv:
			heads := sync.OnceValue(func() []ir.Value { return b.Heads(c.In(i)) })
			for j := range 3 {
				add(i, head, func() ir.Value { return heads()[j] })
			}
		case t.Rank() == 4 && i < qkv+2 && qkv > 0: // g and o
			add(i, head, func() ir.Value { return b.HeadsInside(c.In(i)) })
		default:
			add(i, t, func() ir.Value { return c.In(i) })
		}
	}
	p.op = ir.New(code, op.Attr, types...)
	return p
}

// headsInside is [ir.B.HeadsInside], of nothing nothing.
func headsInside(b ir.B, v ir.Value) ir.Value {
	if v == nil {
		return nil
	}
	return b.HeadsInside(v)
}

// packed joins gradients of q, k and v, of which those that are nil are zeros; nil where all are.
func packed(b ir.B, grads []ir.Value, like *ir.Type) ir.Value {
	parts := make([]ir.Value, len(grads))
	none := true
	for i, g := range grads {
		if parts[i], none = g, none && g == nil; g == nil {
			parts[i] = b.Zeros(like)
		}
	}
	if none {
		return nil
	}
	return b.Packed(parts)
}

func selfAttentionGrad(b ir.B, c Call) []ir.Value {
	op := c.Op()
	grads := make([]ir.Value, op.NumIn())
	if g := c.Grad(0); g != nil && wants(c, 0) {
		in := []ir.Value{g, c.In(0), c.Out(0), c.Out(1)}
		if len(grads) == 2 {
			in = append(in, c.In(1))
		}
		grads[0] = emit(b, ir.SelfAttentionGrad, op.Attr, *c.Params(), in...)
	}
	if c.Grad(1) != nil || len(grads) == 2 && wants(c, 1) {
		selfRest(b, c, grads)
	}
	return grads
}

// selfRest adds what a mask gets and what comes by way of the log-sum-exp.
func selfRest(b ir.B, c Call, grads []ir.Value) {
	p := part(b, c, ir.Attention, 0)
	p.out, p.grads = []ir.Value{b.HeadsInside(c.Out(0)), c.Out(1)}, []ir.Value{headsInside(b, c.Grad(0)), c.Grad(1)}
	apart := make([]ir.Value, len(p.in))
	if g := p.Grad(0); g != nil && len(apart) == 4 && wants(p, 3) {
		apart[3] = maskGrad(b, p, g)
	}
	if h := p.Grad(1); h != nil {
		lseGrad(b, p, h, apart)
	}
	grads[0] = plus(b, grads[0], packed(b, apart[:3], p.op.In(0)))
	copy(grads[1:], apart[3:])
}

// selfAttentionTwiceSave is [attentionTwiceSave] with q, k and v in one.
func selfAttentionTwiceSave(op *ir.Op, want uint64) Saves {
	all := uint64(1)<<op.NumIn() - 1
	const g, qkv, o, lse, mask = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4
	need := all & (qkv | lse | mask)
	switch {
	case want&need != 0:
		return Saves{In: all}
	case want&o != 0:
		need |= g
	}
	if want&g != 0 {
		need |= o
	}
	return Saves{In: need}
}

func selfAttentionTwice(b ir.B, c Call) []ir.Value {
	p := part(b, c, ir.AttentionGrad, 1)
	p.grads = b.Heads(c.Grad(0))
	apart := attentionTwice(b, p)
	grads := []ir.Value{headsInside(b, apart[0]), packed(b, apart[1:4], p.op.In(0)), headsInside(b, apart[4])}
	return append(grads, apart[5:]...)
}
