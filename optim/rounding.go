package optim

import (
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Rounding is what becomes of the bits that an updated parameter in bfloat16 has no room for. An update below half a unit of
// the last place, 1/512 of the parameter or less, is lost to the nearest value, again at each step.
//
// With [Kahan] and [Stochastic] each parameter is widened, updated in float32 and rounded, one after another, and moments are
// float32 whatever the parameter, because those that fade by 1/1000 would stand still in bfloat16. Other dtypes are updated
// as without.
type Rounding uint8

// The roundings.
const (
	Nearest    Rounding = iota // all in the parameter's dtype, in one launch for all parameters
	Kahan                      // what is left over is kept in bfloat16, 2 more bytes, and added the next time (Kahan, 1965)
	Stochastic                 // to one of the two neighbours, to the nearer more often: right in the mean (Gupta et al., 2015)
)

var roundingNames = [...]string{"nearest", "kahan", "stochastic"}

// String is the name in lower case.
func (r Rounding) String() string {
	if int(r) >= len(roundingNames) {
		return "unknown"
	}
	return roundingNames[r]
}

// compensation is the kind of state that Kahan's sums keep.
const compensation = "compensation"

// rounds makes c's updates round as settings say. It is called once, when all else of c is set.
func (c *core) rounds(op string, r Rounding, seed uint64) {
	if int(r) >= len(roundingNames) {
		tensor.Raise(op, "use optim.Nearest, optim.Kahan or optim.Stochastic", "there is no rounding %d", r)
	}
	c.rounding, c.seed = r, seed
	if r == Nearest {
		return
	}
	for _, s := range c.states {
		s.wide, s.moments = s.p.DType() == dtype.BF16, len(s.kinds)
		if r == Kahan {
			s.kinds = append(slices.Clip(s.kinds), kind{name: compensation})
		}
		s.keep = make([]*tensor.Tensor, len(s.kinds))
	}
	whole := c.update
	c.update = func(l *ledger, b *batch) {
		if b.p[0].DType() != dtype.BF16 {
			whole(l, b)
			return
		}
		if r == Stochastic && tensor.Capturing() {
			tensor.Raise("Step", "round by optim.Kahan, or do not capture the step", "stochastic rounding draws by the number of the step, and each run of a captured one would draw the same")
		}
		for i := range b.p {
			c.round(l, b, i, whole)
		}
	}
}

// round updates parameter i of a batch in float32.
func (c *core) round(l *ledger, b *batch, i int, update func(l *ledger, b *batch)) {
	p := b.p[i]
	e, scope := p.Env().NoGrad().Scope()
	defer scope.End()
	w := p.In(e).Cast(dtype.F32)
	one := &batch{rates: b.rates, p: []*tensor.Tensor{w}, g: []*tensor.Tensor{b.g[i].In(e).Cast(dtype.F32)}, counts: b.counts[i : i+1], states: b.states[i : i+1]}
	for k := range b.keep {
		one.keep = append(one.keep, b.keep[k][i:i+1])
	}
	if c.rounding == Stochastic {
		which := slices.IndexFunc(c.states, func(s *state) bool { return s.p == p })
		update(l, one)
		p.CopyInPlace(stochastic(w, e.Seed(e.Seed(c.seed).Key(uint64(which), uint64(c.turns))).Rand(w.Shape()...)))
		return
	}
	rest := b.keep[len(b.keep)-1][i]
	one.keep = one.keep[:len(one.keep)-1]
	w.AddInPlace(rest.In(e).Cast(dtype.F32))
	update(l, one)
	near := w.Cast(dtype.BF16)
	rest.CopyInPlace(w.Sub(near.Cast(dtype.F32)).Cast(dtype.BF16))
	p.CopyInPlace(near)
}

// stochastic is x in bfloat16: its nearest value there, or with u, uniform in [0, 1), below the distance to that in units of
// the gap the neighbour on the other side of x. Each step is one operation in float32, whose bits are those of any device.
func stochastic(x, u *tensor.Tensor) *tensor.Tensor {
	near := x.Cast(dtype.BF16).Cast(dtype.F32)
	away := x.Abs().Gt(near.Abs())
	const past = 0x1p-8 + 0x1p-10 // of a value, more than half a unit of its last place and less than two halves more
	other := tensor.Where(away, near.Scale(1+past), near.Scale(1-past)).Cast(dtype.BF16).Cast(dtype.F32)
	gap, off := other.Sub(near).Abs(), x.Sub(near).Abs()
	return tensor.Where(u.Mul(gap).Lt(off), other, near).Cast(dtype.BF16)
}
