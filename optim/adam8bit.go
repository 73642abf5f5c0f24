package optim

import (
	"iter"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Adam8bitConfig configures [Adam8bit]. Of LR, Beta1, Beta2, Eps, WeightDecay and Least zero means the default, given in the comments,
// and a negative number means 0.
type Adam8bitConfig struct {
	LR          float64 // 1e-3
	Beta1       float64 // 0.9
	Beta2       float64 // 0.999
	Eps         float64 // 1e-8
	WeightDecay float64 // 0.01
	Least       int     // parameters with fewer elements keep whole moments: 4096
	Maximize    bool    // go along the gradient, and not against it
	Clip        float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Rule        Rule    // rates of single parameters; nil: all the same

	Rounding Rounding // of parameters in bfloat16
	Seed     uint64   // of stochastic rounding, which it and the number of the step decide
}

// Adam8bit is AdamW whose moments take a byte each: a dynamic code that reaches over seven powers of ten, times the largest
// value of each block of 256 (Dettmers et al., 2022). It is computed in float32.
type Adam8bit struct{ *core }

const codeBlock = 256

// NewAdam8bit updates the given parameters.
func NewAdam8bit(params iter.Seq2[string, *tensor.Tensor], c Adam8bitConfig) *Adam8bit {
	const op = "optim.NewAdam8bit"
	o := newCore(op, params, settings{optional(c.LR, 1e-3), optional(c.WeightDecay, 0.01), c.Clip, c.Rule})
	beta1, beta2 := checked(op, "Beta1", optional(c.Beta1, 0.9), 1), checked(op, "Beta2", optional(c.Beta2, 0.999), 1)
	eps, least := checked(op, "Eps", optional(c.Eps, 1e-8), math.Inf(1)), whole(c.Least, 4096)
	o.maximize, o.tables = c.Maximize, codeTables()
	o.keeps(func(s *state) []kind {
		n := elements(s.p)
		if n < least || n == 0 {
			return plain("exp_avg", "exp_avg_sq")
		}
		s.family = "codes"
		blocks := []int{(n + codeBlock - 1) / codeBlock}
		return []kind{{name: "state1", dt: dtype.U8, shape: s.p.Shape(), value: 127}, {name: "state2", dt: dtype.U8, shape: s.p.Shape()},
			{name: "absmax1", dt: dtype.F32, shape: blocks}, {name: "absmax2", dt: dtype.F32, shape: blocks}}
	})
	coded, small := composed(func(u *composition) (*tensor.Tensor, []*tensor.Tensor) {
		m := u.decoded(u.keep[0], u.keep[2], true).Scale(beta1).AddScaled(u.g, 1-beta1)
		v := u.decoded(u.keep[1], u.keep[3], false).Scale(beta2).AddScaled(u.g.Square(), 1-beta2)
		root := u.by(v, u.rest(beta2).Reciprocal()).Sqrt().AddScalar(eps)
		p := u.decayed().Sub(u.by(m, u.lr.Div(u.rest(beta1))).Div(root))
		codes1, top1 := u.coded(m, true)
		codes2, top2 := u.coded(v, false)
		return p, []*tensor.Tensor{codes1, codes2, top1, top2}
	}), adam(tensor.AdamWStep{Beta1: beta1, Beta2: beta2, Eps: eps})
	o.update = func(l *ledger, b *batch) {
		if b.states[0].family == "codes" {
			coded(l, b)
		} else {
			small(l, b)
		}
	}
	o.rounds(op, c.Rounding, c.Seed)
	return &Adam8bit{o}
}

// dynamicCodes are the values of codes 0 to 255, rising: for each of seven powers of ten, fractions from 0.1 to 1 of it, twice as
// many as of the power below; 0; and 1. Signed ones have half as many on each side.
func dynamicCodes(signed bool) []float64 {
	list := []float64{0, 1}
	for i := range 7 {
		n, power := 1<<(i+1), math.Pow(10, float64(i-6))
		if signed {
			n /= 2
		}
		for j := range n {
			v := power * (0.1 + 0.9*(float64(j)+0.5)/float64(n))
			if list = append(list, v); signed {
				list = append(list, -v)
			}
		}
	}
	slices.Sort(list)
	return list
}

// Tables of Adam8bit: values of codes, and the middles between them, unsigned and signed.
const codeValues, codeMiddles, ofSigned = 0, 1, 2

func codeTables() (tables [][]float64) {
	for _, signed := range []bool{false, true} {
		values := dynamicCodes(signed)
		var middles []float64
		for j := range len(values) - 1 {
			middles = append(middles, (values[j]+values[j+1])/2)
		}
		tables = append(tables, values, middles)
	}
	return tables
}

// table is one of codes, in wide.
func (u *composition) table(i int, signed bool) *tensor.Tensor {
	if signed {
		i += ofSigned
	}
	return u.l.tables[i].In(u.e).Cast(u.wide)
}

// inBlocks is x as rows of a block each, the last filled up with zeros.
func inBlocks(x *tensor.Tensor) *tensor.Tensor {
	x = x.Reshape(elements(x))
	if rest := x.Dim(0) % codeBlock; rest > 0 {
		x = x.Pad(0, 0, codeBlock-rest, 0)
	}
	return x.Reshape(x.Dim(0)/codeBlock, codeBlock)
}

// like is blocks as a tensor of the parameter's shape.
func (u *composition) like(blocks *tensor.Tensor) *tensor.Tensor {
	n := elements(u.p)
	return blocks.Reshape(elements(blocks)).Slice(0, 0, n).Reshape(u.p.Shape()...)
}

// decoded is what codes stand for.
func (u *composition) decoded(codes, top *tensor.Tensor, signed bool) *tensor.Tensor {
	table := u.table(codeValues, signed)
	blocks := inBlocks(codes.Cast(dtype.I64))
	x := table.IndexSelect(0, blocks.Reshape(elements(blocks))).Reshape(blocks.Shape()...)
	return u.like(x.Mul(top.Cast(u.wide).Reshape(top.Dim(0), 1)))
}

// coded is the codes nearest to x, by bisection, and the largest value of each block.
func (u *composition) coded(x *tensor.Tensor, signed bool) (codes, top *tensor.Tensor) {
	table := u.table(codeMiddles, signed)
	blocks := inBlocks(x)
	top = blocks.Abs().Max(1).Cast(dtype.F32)
	wide := top.Cast(u.wide).Reshape(top.Dim(0), 1)
	zero := u.e.FullOf(u.wide, 0)
	share := tensor.Where(wide.Eq(zero), zero, blocks.Div(wide))
	share = share.Reshape(elements(share))
	at := u.e.FullOf(dtype.I64, 0, share.Dim(0))
	for bit := 128; bit > 0; bit /= 2 {
		probe := at.AddScalar(float64(bit))
		above := share.Ge(table.IndexSelect(0, probe.AddScalar(-1)))
		at = tensor.Where(above, probe, at)
	}
	return u.like(at).Cast(dtype.U8), top
}
