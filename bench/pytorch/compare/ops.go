package main

import (
	"maps"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// op is a row of the table: how its cases are drawn, and the call.
type op struct {
	draw func(d *drawer)
	call func(in []*tensor.Tensor, a *Attrs) []*tensor.Tensor
}

type ts = []*tensor.Tensor

// table has every call that is compared, by the name that compare.py knows it by.
var table = map[string]op{}

// names are the table's in order: case i is of name i.
var names []string

func init() {
	for _, part := range []map[string]op{unaries(), binaries(), reductions(), shapes(), indexing(), products(), norms(), losses(), inPlace(), recipes(), numbered(), arranged(), ordered(), spatial(), functions(), einsums(), writes(), bitwise(), kin(), fused()} {
		maps.Copy(table, part)
	}
	names = slices.Sorted(maps.Keys(table))
}

// unary is an op of one operand, of dtype dt() and values v.
func unary(f func(*tensor.Tensor) *tensor.Tensor, dt func(*drawer) dtype.DType, v func(*drawer) float64) op {
	return op{
		func(d *drawer) {
			t := dt(d)
			value := func() float64 { return v(d) }
			if !t.IsFloat() {
				value = d.fill(t)
			}
			d.add(t, d.shape(0, 3), value)
		},
		func(in ts, _ *Attrs) ts { return only(f(in[0])) },
	}
}

func unaries() map[string]op {
	type t = tensor.Tensor
	all := map[string]op{
		"not":     unary((*t).Not, (*drawer).any, (*drawer).apart),
		"cast":    {(*drawer).cast, cast},
		"scale":   {func(d *drawer) { d.filled(d.number(), d.shape(0, 3)); d.p(-1.5, 2, 0) }, func(in ts, a *Attrs) ts { return only(in[0].Scale(float64(a.P))) }},
		"add_num": {func(d *drawer) { d.filled(d.number(), d.shape(0, 3)); d.p(0.25, 3) }, func(in ts, a *Attrs) ts { return only(in[0].AddScalar(float64(a.P))) }},
		"pow_num": {func(d *drawer) { d.powNum() }, func(in ts, a *Attrs) ts { return only(in[0].PowScalar(float64(a.P))) }},
		"clamp":   {func(d *drawer) { d.clamp() }, func(in ts, a *Attrs) ts { return only(in[0].Clamp(float64(a.P), float64(a.Q))) }},
	}
	for name, f := range map[string]func(*t) *t{"neg": (*t).Neg, "abs": (*t).Abs, "sign": (*t).Sign, "floor": (*t).Floor, "ceil": (*t).Ceil,
		"round": (*t).Round, "trunc": (*t).Trunc, "relu": (*t).ReLU, "square": (*t).Square, "clone": (*t).Clone} {
		all[name] = unary(f, (*drawer).number, (*drawer).apart)
	}
	for name, f := range map[string]func(*t) *t{"exp": (*t).Exp, "expm1": (*t).Expm1, "sin": (*t).Sin, "cos": (*t).Cos, "tanh": (*t).Tanh,
		"sigmoid": (*t).Sigmoid, "erf": (*t).Erf} {
		all[name] = unary(f, (*drawer).number, (*drawer).normal)
	}
	for name, f := range map[string]func(*t) *t{"gelu": (*t).GELU, "gelu_tanh": (*t).GELUTanh, "silu": (*t).SiLU, "softsign": (*t).Softsign, "mish": (*t).Mish} {
		all[name] = unary(f, (*drawer).float, (*drawer).normal)
	}
	for name, f := range map[string]func(*t) *t{"sqrt": (*t).Sqrt, "rsqrt": (*t).Rsqrt, "log": (*t).Log, "log1p": (*t).Log1p} {
		all[name] = unary(f, (*drawer).number, (*drawer).positive)
	}
	return all
}

// cast draws numbers that every dtype has the whole part of: what another gives is the processor's affair.
func (d *drawer) cast() {
	to := d.any()
	d.c.Attrs.Word = to.String()
	if dt := d.number(); to.IsFloat() || to == dtype.Bool || !dt.IsFloat() {
		d.filled(dt, d.shape(0, 3))
	} else {
		d.add(dt, d.shape(0, 3), func() float64 { return 100 * d.Float64() })
	}
}

func cast(in ts, a *Attrs) ts {
	dt, err := dtype.Parse(a.Word)
	if err != nil {
		panic(err)
	}
	return only(in[0].Cast(dt))
}

// p draws the number P.
func (d *drawer) p(from ...float64) { d.c.Attrs.P = num(from[d.IntN(len(from))]) }

func (d *drawer) powNum() {
	dt := d.number()
	d.p(0, 1, 2, 3, 5, -1, -2, 0.5, 1.5)
	if dt.IsFloat() && d.c.Attrs.P != num(math.Trunc(float64(d.c.Attrs.P))) {
		d.add(dt, d.shape(0, 3), d.positive)
		return
	}
	d.filled(dt, d.shape(0, 3))
}

func (d *drawer) clamp() {
	d.filled(d.number(), d.shape(0, 3))
	d.p(-1, math.Inf(-1), 1)
	d.c.Attrs.Q = []num{2, num(math.Inf(1)), 1}[d.IntN(3)]
}

// binary is an op of two operands that broadcast, of values u and v.
func binary(f func(t, u *tensor.Tensor) *tensor.Tensor, dt func(*drawer) dtype.DType, v func(*drawer) float64) op {
	return op{
		func(d *drawer) { d.pair(dt, v) },
		func(in ts, _ *Attrs) ts { return only(f(in[0], in[1])) },
	}
}

// pair appends two operands that broadcast, in half of the cases of different dtypes. Special ones have ties.
func (d *drawer) pair(dt func(*drawer) dtype.DType, v func(*drawer) float64) {
	shape := d.shape(0, 3)
	one, two := dt(d), dt(d)
	if d.IntN(2) == 0 {
		two = one
	}
	swap := d.IntN(2) == 0
	for i, t := range []dtype.DType{one, two} {
		s := shape
		if (i == 0) == swap {
			s = d.broadcast(shape)
		}
		value := func() float64 { return v(d) }
		if !t.IsFloat() {
			value = d.fill(t)
		}
		d.add(t, s, value)
	}
}

// divisor is never 0 unless special, and of either sign.
func (d *drawer) divisor() float64 {
	if d.special {
		return d.normal()
	}
	return math.Copysign(0.3+2*d.Float64(), d.NormFloat64())
}

func binaries() map[string]op {
	type t = tensor.Tensor
	all := map[string]op{
		"pow":       {(*drawer).pow, func(in ts, _ *Attrs) ts { return only(in[0].Pow(in[1])) }},
		"div":       {func(d *drawer) { d.quotient((*drawer).number) }, func(in ts, _ *Attrs) ts { return only(in[0].Div(in[1])) }},
		"floor_div": {func(d *drawer) { d.quotient((*drawer).number) }, func(in ts, _ *Attrs) ts { return only(in[0].FloorDiv(in[1])) }},
		"rem":       {func(d *drawer) { d.quotient((*drawer).number) }, func(in ts, _ *Attrs) ts { return only(in[0].Rem(in[1])) }},
		"lerp":      {func(d *drawer) { d.pair((*drawer).float, (*drawer).apart); d.sameType(); d.p(0, 0.3, 0.5, 0.9, 1, 1.5) }, func(in ts, a *Attrs) ts { return only(in[0].Lerp(in[1], float64(a.P))) }},
		"axpy":      {func(d *drawer) { d.pair((*drawer).number, (*drawer).apart); d.p(2, -1) }, func(in ts, a *Attrs) ts { return only(in[0].AddScaled(in[1], float64(a.P))) }},
		"where":     {(*drawer).where, func(in ts, _ *Attrs) ts { return only(tensor.Where(in[2], in[0], in[1])) }},
	}
	for name, f := range map[string]func(x, y *t) *t{"add": (*t).Add, "sub": (*t).Sub, "mul": (*t).Mul} {
		all[name] = binary(f, (*drawer).number, (*drawer).apart)
	}
	for name, f := range map[string]func(x, y *t) *t{"maximum": (*t).Maximum, "minimum": (*t).Minimum, "eq": (*t).Eq, "ne": (*t).Ne,
		"lt": (*t).Lt, "le": (*t).Le, "gt": (*t).Gt, "ge": (*t).Ge, "and": (*t).And, "or": (*t).Or, "xor": (*t).Xor} {
		all[name] = binary(f, (*drawer).any, (*drawer).apart)
	}
	return all
}

// sameType gives all floating operands the first one's dtype.
func (d *drawer) sameType() {
	dt, _ := dtype.Parse(d.c.In[0].DType)
	for i := range d.c.In {
		o := &d.c.In[i]
		o.DType = dt.String()
		for j, v := range o.Data {
			o.Data[j] = num(round(float64(v), dt))
		}
	}
}

func (d *drawer) pow() {
	d.pair((*drawer).number, (*drawer).positive)
	for i := range d.c.In[1].Data { // integers with exponents beyond 9 overflow in ways of their own
		if v := &d.c.In[1].Data[i]; math.Abs(float64(*v)) > 9 {
			*v = 3
		}
	}
}

// quotient appends operands of which the second is no integer 0: what that gives is the device's affair.
func (d *drawer) quotient(dt func(*drawer) dtype.DType) {
	d.pair(dt, (*drawer).divisor)
	o := &d.c.In[1]
	if dt, _ := dtype.Parse(o.DType); dt.IsFloat() {
		return
	}
	for i := range o.Data {
		if o.Data[i] == 0 {
			o.Data[i] = 3
		}
	}
	if o.Layout == "expanded" {
		o.Layout = "dense"
	}
}

func (d *drawer) where() {
	d.pair((*drawer).number, (*drawer).apart)
	d.add(dtype.Bool, d.broadcast(d.wider()), func() float64 { return float64(d.IntN(2)) })
}

// wider is the shape of that of the two operands which has more elements.
func (d *drawer) wider() []int {
	if a, b := d.c.In[0].Shape, d.c.In[1].Shape; len(a) < len(b) || len(a) == len(b) && len(d.c.In[0].Data) < len(d.c.In[1].Data) {
		return b
	}
	return d.c.In[0].Shape
}

// overAxes is a reduction over some dimensions.
func overAxes(f func(t *tensor.Tensor, axes ...int) *tensor.Tensor, dt func(*drawer) dtype.DType) op {
	return op{
		func(d *drawer) {
			s := d.shape(0, 4)
			d.filled(dt(d), s)
			d.c.Attrs.Axes = d.axes(s)
		},
		func(in ts, a *Attrs) ts { return only(f(in[0], a.Axes...)) },
	}
}

// alongAxis is an op of one dimension.
func alongAxis(f func(t *tensor.Tensor, axis int) *tensor.Tensor, dt func(*drawer) dtype.DType) op {
	return op{
		func(d *drawer) {
			s := d.shape(1, 4)
			d.filled(dt(d), s)
			d.c.Attrs.Axis = d.axis(s)
		},
		func(in ts, a *Attrs) ts { return only(f(in[0], a.Axis)) },
	}
}

func reductions() map[string]op {
	type t = tensor.Tensor
	return map[string]op{
		"sum": overAxes((*t).Sum, (*drawer).any), "mean": overAxes((*t).Mean, (*drawer).float), "prod": overAxes((*t).Prod, (*drawer).number),
		"amax": overAxes((*t).Max, (*drawer).number), "amin": overAxes((*t).Min, (*drawer).number),
		"any": overAxes((*t).Any, (*drawer).any), "all": overAxes((*t).All, (*drawer).any),
		"argmax": alongAxis((*t).ArgMax, (*drawer).number), "argmin": alongAxis((*t).ArgMin, (*drawer).number),
		"cumsum": alongAxis((*t).CumSum, (*drawer).number), "logsumexp": alongAxis((*t).LogSumExp, (*drawer).float),
		"softmax": alongAxis((*t).Softmax, (*drawer).float), "log_softmax": alongAxis((*t).LogSoftmax, (*drawer).float),
		"norm": overAxes((*t).Norm, (*drawer).float),
		"var": {
			func(d *drawer) {
				s := d.shape(0, 4)
				d.filled(d.float(), s)
				d.c.Attrs.Axes, d.c.Attrs.Axis = d.axes(s), d.IntN(2)
			},
			func(in ts, a *Attrs) ts { return only(in[0].Var(a.Axis, a.Axes...)) },
		},
		"sum_squares": {
			func(d *drawer) { d.filled(d.float(), d.shape(0, 3)); d.filled(d.float(), d.shape(0, 3)) },
			func(in ts, _ *Attrs) ts { return only(tensor.SumSquares(in...)) },
		},
	}
}

func shapes() map[string]op {
	return map[string]op{
		"reshape": {
			func(d *drawer) {
				s := d.shape(1, 4)
				d.filled(d.any(), s)
				n := len(d.c.In[0].Data)
				d.c.Attrs.Shape = [][]int{{n}, {1, n}, {n, 1, 1}, slices.Clone(s[:len(s):len(s)]), append([]int{1}, s...)}[d.IntN(5)]
			},
			func(in ts, a *Attrs) ts { return only(in[0].Reshape(a.Shape...)) },
		},
		"permute": {
			func(d *drawer) { s := d.shape(0, 4); d.filled(d.any(), s); d.c.Attrs.Axes = d.Perm(len(s)) },
			func(in ts, a *Attrs) ts { return only(in[0].Permute(a.Axes...)) },
		},
		"transpose": {
			func(d *drawer) { s := d.shape(1, 4); d.filled(d.any(), s); d.c.Attrs.N = []int{d.axis(s), d.axis(s)} },
			func(in ts, a *Attrs) ts { return only(in[0].Transpose(a.N[0], a.N[1])) },
		},
		"expand": {
			func(d *drawer) {
				s := d.shape(1, 3)
				d.c.Attrs.Shape = s
				d.filled(d.any(), d.broadcast(s))
			},
			func(in ts, a *Attrs) ts { return only(in[0].Expand(a.Shape...)) },
		},
		"slice": {(*drawer).slice, func(in ts, a *Attrs) ts {
			if a.N[2] == 1 {
				return only(in[0].Slice(a.Axis, a.N[0], a.N[1]))
			}
			return only(in[0].SliceStep(a.Axis, a.N[0], a.N[1], a.N[2]))
		}},
		"select": {
			func(d *drawer) {
				s := d.shape(1, 4)
				d.filled(d.any(), s)
				d.c.Attrs.Axis = d.axis(s)
				n := s[(d.c.Attrs.Axis+len(s))%len(s)]
				d.c.Attrs.N = []int{d.IntN(2*n+1) - n}
			},
			func(in ts, a *Attrs) ts { return only(in[0].Select(a.Axis, a.N[0])) },
		},
		"split": {
			func(d *drawer) {
				s := d.shape(1, 3)
				d.filled(d.any(), s)
				d.c.Attrs.Axis = d.axis(s)
				n := s[(d.c.Attrs.Axis+len(s))%len(s)]
				d.c.Attrs.N = []int{n / 3, n - n/3}
			},
			func(in ts, a *Attrs) ts { return in[0].Split(a.Axis, a.N...) },
		},
		"cat":   {func(d *drawer) { d.joined(false) }, func(in ts, a *Attrs) ts { return only(tensor.Cat(a.Axis, in...)) }},
		"stack": {func(d *drawer) { d.joined(true) }, func(in ts, a *Attrs) ts { return only(tensor.Stack(a.Axis, in...)) }},
		"pad": {
			func(d *drawer) {
				s := d.shape(1, 3)
				d.filled(d.number(), s)
				d.c.Attrs.Axis, d.c.Attrs.N = d.axis(s), []int{d.IntN(3), d.IntN(3)}
				d.p(0, 2)
			},
			func(in ts, a *Attrs) ts { return only(in[0].Pad(a.Axis, a.N[0], a.N[1], float64(a.P))) },
		},
		"unsqueeze": {
			func(d *drawer) {
				s := d.shape(0, 3)
				d.filled(d.any(), s)
				d.c.Attrs.Axis = d.IntN(2*len(s)+2) - len(s) - 1
			},
			func(in ts, a *Attrs) ts { return only(in[0].Unsqueeze(a.Axis)) },
		},
		"squeeze": {
			func(d *drawer) { d.filled(d.any(), append([]int{1}, d.shape(0, 2)...)) },
			func(in ts, _ *Attrs) ts { return only(in[0].Squeeze()) },
		},
		"flatten": {
			func(d *drawer) { s := d.shape(1, 4); d.filled(d.any(), s); d.c.Attrs.Axis = d.IntN(len(s)) },
			func(in ts, a *Attrs) ts { return only(in[0].Flatten(a.Axis)) },
		},
	}
}

func (d *drawer) slice() {
	s := d.shape(1, 4)
	d.filled(d.any(), s)
	d.c.Attrs.Axis = d.axis(s)
	n := s[(d.c.Attrs.Axis+len(s))%len(s)]
	lo := d.IntN(n + 1)
	d.c.Attrs.N = []int{lo, lo + d.IntN(n-lo+1), 1 + d.IntN(3)}
}

// joined appends two or three operands that join along a dimension, or along a new one.
func (d *drawer) joined(stack bool) {
	s := d.shape(1, 3)
	d.c.Attrs.Axis = d.axis(s)
	for range 2 + d.IntN(2) {
		part := slices.Clone(s)
		if !stack {
			part[(d.c.Attrs.Axis+len(s))%len(s)] = d.size()
		}
		d.filled(d.any(), part)
	}
}

func indexing() map[string]op {
	return map[string]op{
		"gather": {
			func(d *drawer) {
				s := d.table(1, 3)
				idx := slices.Clone(s)
				idx[d.c.Attrs.Axis] = d.size()
				d.indices(s[d.c.Attrs.Axis], idx)
			},
			func(in ts, a *Attrs) ts { return only(in[0].Gather(a.Axis, in[1])) },
		},
		"scatter_add": {
			func(d *drawer) {
				s := d.table(1, 3)
				idx := slices.Clone(s)
				idx[d.c.Attrs.Axis] = d.size()
				d.indices(s[d.c.Attrs.Axis], idx)
				dt, _ := dtype.Parse(d.c.In[0].DType)
				d.filled(dt, idx)
			},
			func(in ts, a *Attrs) ts { return only(in[0].ScatterAdd(a.Axis, in[1], in[2])) },
		},
		"index_select": {
			func(d *drawer) { s := d.table(1, 3); d.indices(s[d.c.Attrs.Axis], []int{d.size()}) },
			func(in ts, a *Attrs) ts { return only(in[0].IndexSelect(a.Axis, in[1])) },
		},
		"embedding": {
			func(d *drawer) { s := d.table(2, 2); d.indices(s[0], d.shape(1, 2)) },
			func(in ts, _ *Attrs) ts { return only(in[0].Embedding(in[1])) },
		},
	}
}

// table appends what is picked from: its dimension Axis is not empty.
func (d *drawer) table(least, most int) []int {
	s := d.shape(least, most)
	d.c.Attrs.Axis = d.IntN(len(s))
	if most == 2 && least == 2 {
		d.c.Attrs.Axis = 0
	}
	s[d.c.Attrs.Axis] = max(s[d.c.Attrs.Axis], 1)
	d.filled(d.float(), s)
	return s
}
