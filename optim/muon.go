package optim

import (
	"iter"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// MuonConfig configures [Muon]. Of LR, Momentum, Eps, Steps and WeightDecay zero means PyTorch's default, given in the comments,
// and a negative number means 0.
type MuonConfig struct {
	LR          float64 // of matrices: 1e-3
	Momentum    float64 // 0.95
	Plain       bool    // momentum that is not Nesterov's
	Steps       int     // of Newton and Schulz: 5
	Eps         float64 // least norm of an update: 1e-7
	WeightDecay float64 // of matrices: 0.1
	MatchAdamW  bool    // rates as large as AdamW's: times 0.2·√(the longer side), and not √(rows/columns) from 1 up
	// Matrices says which parameters of two dimensions Muon updates; nil: all. AdamW updates all others: embeddings and
	// the last layer do better with it.
	Matrices func(path string, p *tensor.Tensor) bool
	// Rest configures AdamW for the others; its Clip, Rule, Rounding and Seed are not asked. Its rate follows SetLR as the share
	// Rest.LR / LR; a zero is LR.
	Rest AdamWConfig
	Clip float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Rule Rule    // rates of single parameters; nil: all the same

	Rounding Rounding // of parameters in bfloat16
	Seed     uint64   // of stochastic rounding, which it and the number of the step decide
}

// Muon goes by the orthogonal matrix next to the momentum of a matrix's gradients (Jordan et al., 2024), which five steps of
// Newton's and Schulz's iteration come near. Products are those of the environment's precision, in float32 or float64, where
// PyTorch's are in bfloat16. Vectors, and matrices that are not its own, are updated by AdamW.
type Muon struct{ *core }

// NewMuon updates the given parameters.
func NewMuon(params iter.Seq2[string, *tensor.Tensor], c MuonConfig) *Muon {
	const op = "optim.NewMuon"
	lr, share := optional(c.LR, 1e-3), 1.
	if lr > 0 {
		share = optional(c.Rest.LR, lr) / lr
	}
	rest := tensor.AdamWStep{Beta1: optional(c.Rest.Beta1, 0.9), Beta2: optional(c.Rest.Beta2, 0.999), Eps: optional(c.Rest.Eps, 1e-8)}
	check(op, "Rest.Beta1", rest.Beta1, 0, 1)
	check(op, "Rest.Beta2", rest.Beta2, 0, 1)
	momentum, steps, eps := checked(op, "Momentum", optional(c.Momentum, 0.95), 1), whole(c.Steps, 5), positive(op, "Eps", optional(c.Eps, 1e-7))
	wants(op, "Steps", steps, 1)
	mine := func(path string, p *tensor.Tensor) bool {
		return p.Rank() == 2 && (c.Matrices == nil || c.Matrices(path, p))
	}
	rule := func(path string, p *tensor.Tensor, r *Rates) {
		if !mine(path, p) {
			r.Scale, r.WeightDecay = share, optional(c.Rest.WeightDecay, 0.01)
		}
		if c.Rule != nil {
			c.Rule(path, p, r)
		}
	}
	o := newCore(op, params, settings{lr, optional(c.WeightDecay, 0.1), c.Clip, rule})
	o.keeps(func(s *state) []kind {
		if mine(s.name, s.p) {
			s.family = "muon"
			return plain("momentum_buffer")
		}
		return plain("exp_avg", "exp_avg_sq")
	})
	m := &muon{momentum: momentum, plain: c.Plain, steps: steps, eps: eps, match: c.MatchAdamW}
	others := adam(rest)
	o.update = func(l *ledger, b *batch) {
		if b.states[0].family == "muon" {
			m.update(l, b)
		} else {
			others(l, b)
		}
	}
	o.rounds(op, c.Rounding, c.Seed)
	return &Muon{o}
}

// muon updates matrices, those of a shape together.
type muon struct {
	momentum float64
	plain    bool
	steps    int
	eps      float64
	match    bool
}

func (m *muon) update(l *ledger, b *batch) {
	for _, same := range b.byShape(largestPart) {
		e, scope := l.all.Env().NoGrad().Scope()
		m.part(e, l, same)
		scope.End()
	}
}

// part updates matrices of one shape, as a stack of them.
func (m *muon) part(e *tensor.Env, l *ledger, b *batch) {
	p := b.p[0]
	rows, columns := float64(p.Dim(0)), float64(p.Dim(1))
	ratio := math.Sqrt(max(1, rows/columns))
	if m.match {
		ratio = 0.2 * math.Sqrt(max(rows, columns))
	}
	b.towards(l, l.scale, b.keep[0], b.g, slices.Repeat([]*tensor.Tensor{e.FullOf(dtype.F64, 1-m.momentum)}, len(b.p)))
	all := b.stacked(e, b.keep[0])
	if !m.plain {
		all = b.stacked(e, b.g).Mul(l.scale.In(e).Cast(all.DType())).Lerp(all, m.momentum)
	}
	x, scale := orthogonal(all, m.steps, m.eps)
	if x.DType() != p.DType() {
		x, scale = x.Scale(scale).Cast(p.DType()), 1
	}
	ratio *= scale
	apply := tensor.SGDStep{LR: l.rate(b), Scale: b.rates.Scale * ratio, WeightDecay: b.rates.WeightDecay / ratio, Skip: l.skip}
	tensor.SGDInPlace(apply, e.FullOf(dtype.F32, 1), b.p, x.Contiguous().Unbind(0), nil)
}

// orthogonal comes near the orthogonal matrices next to g[n, rows, columns] by a quintic iteration of Newton and Schulz, whose
// coefficients make the most of small singular values. They are x times scale, so that no step has to multiply by a.
func orthogonal(g *tensor.Tensor, steps int, eps float64) (x *tensor.Tensor, scale float64) {
	const a, b, c = 3.4445, -4.7750, 2.0315
	const far = 0x1p20 // squares of what is this much smaller, and products of them, are well within float32
	tall := g.Dim(1) > g.Dim(2)
	if tall {
		g = g.Transpose(1, 2)
	}
	norm := g.Square().Sum(1, 2).Sqrt().Clamp(eps, math.Inf(1))
	x, scale = g.Div(norm.Reshape(g.Dim(0), 1, 1)), 1
	for range steps {
		if scale > far {
			x, scale = x.Scale(scale), 1
		}
		gram := x.MatMul(x.Transpose(1, 2))
		s := scale * scale
		x = x.AddScaled(gram.AddScaled(gram.MatMul(gram), c/b*s).MatMul(x), b/a*s)
		scale *= a
	}
	if tall {
		x = x.Transpose(1, 2)
	}
	return x, scale
}
