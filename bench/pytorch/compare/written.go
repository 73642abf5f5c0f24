package main

import (
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// distinct appends i64 operands below n none of which comes twice along dimension at of a shape.
func (d *drawer) distinct(n int, shape []int, at int) {
	inner, size := 1, shape[at]
	for _, s := range shape[at+1:] {
		inner *= s
	}
	lines := map[[2]int][]int{}
	d.indices(n, shape)
	o := &d.c.In[len(d.c.In)-1]
	if o.Layout == "expanded" {
		o.Layout = "dense"
	}
	for i := range o.Data {
		line := [2]int{i / (inner * size), i % inner}
		if lines[line] == nil {
			lines[line] = d.Perm(n)
		}
		o.Data[i] = num(lines[line][i/inner%size])
	}
}

// target appends what is written into, whose dimension Axis is not empty, and gives its shape and dtype.
func (d *drawer) target(dt dtype.DType, least, most int) []int {
	s := d.shape(least, most)
	d.c.Attrs.Axis = d.IntN(len(s))
	s[d.c.Attrs.Axis] = max(s[d.c.Attrs.Axis], 1)
	d.filled(dt, s)
	return s
}

// part is a shape that indices into s along the axis may have: not larger elsewhere.
func (d *drawer) part(s []int, most int) []int {
	idx := slices.Clone(s)
	for i := range idx {
		if i != d.c.Attrs.Axis && idx[i] > 1 && d.IntN(3) == 0 {
			idx[i]--
		}
	}
	idx[d.c.Attrs.Axis] = min(d.size(), most)
	return idx
}

// scattered draws a value, indices and a source, whose places are distinct along the axis or not.
func (d *drawer) scattered(dt dtype.DType, distinct bool) {
	s := d.target(dt, 1, 3)
	axis := d.c.Attrs.Axis
	if distinct {
		idx := d.part(s, s[axis])
		d.distinct(s[axis], idx, axis)
		d.filled(dt, idx)
		return
	}
	idx := d.part(s, 7)
	d.indices(s[axis], idx)
	d.filled(dt, idx)
}

// listed draws a value, a list of indices of a dimension and a source for each.
func (d *drawer) listed(dt dtype.DType, distinct bool) {
	s := d.target(dt, 1, 3)
	axis := d.c.Attrs.Axis
	n, m := s[axis], d.size()
	if distinct {
		m = min(n, m)
		d.distinct(n, []int{m}, 0)
	} else {
		d.indices(n, []int{m})
	}
	src := slices.Clone(s)
	src[axis] = m
	d.filled(dt, src)
}

// placed draws a value and indices of some of its dimensions: of all of them in one shape, or each in a dimension of its own. It
// gives the shape that they take.
func (d *drawer) placed(dt dtype.DType, distinct bool) []int {
	s := d.shape(1, 3)
	for i := range s {
		s[i] = max(s[i], 1)
	}
	d.filled(dt, s)
	named := d.Perm(len(s))[:1+d.IntN(len(s))]
	slices.Sort(named)
	d.c.Attrs.N = named
	total := 1
	for _, at := range named {
		total *= s[at]
	}
	shape := d.shape(0, 2)
	if n := product(shape); distinct && n > total {
		shape = []int{total}
	}
	flat := make([]int, product(shape))
	for i, p := range d.Perm(total) {
		if i < len(flat) {
			flat[i] = p
		}
	}
	if !distinct {
		for i := range flat {
			flat[i] = d.IntN(total)
		}
	}
	for i, at := range slices.Backward(named) {
		d.indices(s[at], shape)
		o := &d.c.In[len(d.c.In)-1]
		if o.Layout == "expanded" {
			o.Layout = "dense"
		}
		for k, p := range flat {
			o.Data[k] = num(p % s[at])
			flat[k] = p / s[at]
			if (k+i)%4 == 3 {
				o.Data[k] -= num(s[at])
			}
		}
	}
	slices.Reverse(d.c.In[1:])
	lead := 0
	if named[len(named)-1]-named[0] == len(named)-1 {
		lead = named[0]
	}
	rest := []int{}
	for i, n := range s {
		if !slices.Contains(named, i) {
			rest = append(rest, n)
		}
	}
	return slices.Insert(rest, lead, shape...)
}

func product(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// byIndex is in with a nil for each dimension that no index names.
func byIndex(in ts, named []int) ts {
	list := make(ts, named[len(named)-1]+1)
	for i, at := range named {
		list[at] = in[i]
	}
	return list
}

var reductionsBy = []tensor.Reduction{tensor.ReduceSum, tensor.ReduceProd, tensor.ReduceMean, tensor.ReduceMax, tensor.ReduceMin}

// writes by index.
func writes() map[string]op {
	set := func(in ts, a *Attrs) ts { return only(in[0].Scatter(a.Axis, in[1], in[2])) }
	list := func(in ts, a *Attrs) ts { return only(in[0].IndexCopy(a.Axis, in[1], in[2])) }
	put := func(in ts, a *Attrs) ts {
		last := len(in) - 1
		return only(in[0].IndexPut(byIndex(in[1:last], a.N), in[last], a.Flag))
	}
	constant := func(draw func(d *drawer)) func(d *drawer) { // of places that come twice PyTorch gives each source the gradient
		return func(d *drawer) {
			draw(d)
			d.fixed()
			d.c.In[0].Fixed = true
			for i := range d.c.In { // in the order of which it goes
				if o := &d.c.In[i]; o.Layout != "expanded" {
					o.Layout = "dense"
				}
			}
		}
	}
	return map[string]op{
		"scatter":      {func(d *drawer) { d.scattered(d.any(), true) }, set},
		"scatter_last": {constant(func(d *drawer) { d.scattered(d.any(), false) }), set},
		"scatter_num": {func(d *drawer) {
			s := d.target(d.number(), 1, 3)
			d.indices(s[d.c.Attrs.Axis], d.part(s, 7))
			d.p(0, 3)
		}, func(in ts, a *Attrs) ts { return only(in[0].ScatterScalar(a.Axis, in[1], float64(a.P))) }},
		"index_add":       {func(d *drawer) { d.listed(d.any(), false) }, func(in ts, a *Attrs) ts { return only(in[0].IndexAdd(a.Axis, in[1], in[2])) }},
		"index_copy":      {func(d *drawer) { d.listed(d.any(), true) }, list},
		"index_copy_last": {constant(func(d *drawer) { d.listed(d.any(), false) }), list},
		"index_put":       {func(d *drawer) { dt := d.any(); s := d.placed(dt, true); d.filled(dt, d.broadcast(s)) }, put},
		"index_put_last":  {constant(func(d *drawer) { dt := d.any(); s := d.placed(dt, false); d.filled(dt, s) }), put},
		"index_put_added": {func(d *drawer) {
			dt := d.number()
			s := d.placed(dt, false)
			d.filled(dt, d.broadcast(s))
			d.c.Attrs.Flag = true
		}, put},
		"index":               {func(d *drawer) { d.placed(d.any(), false) }, func(in ts, a *Attrs) ts { return only(in[0].Index(byIndex(in[1:], a.N)...)) }},
		"index_mask":          {(*drawer).marked, func(in ts, a *Attrs) ts { return only(in[0].Index(in[1])) }},
		"index_fill":          {(*drawer).indexFill, func(in ts, a *Attrs) ts { return only(in[0].IndexFill(a.Axis, in[1], float64(a.P))) }},
		"scatter_reduce":      {func(d *drawer) { d.reduced(d.IntN(len(reductionsBy))) }, scatterReduce},
		"scatter_reduce_prod": {func(d *drawer) { d.reduced(int(tensor.ReduceProd)) }, scatterReduce},
		"masked_scatter":      {(*drawer).maskedScatter, func(in ts, _ *Attrs) ts { return only(in[0].MaskedScatter(in[1], in[2])) }},
		"slice_scatter": {
			func(d *drawer) {
				d.slice()
				dt, s := d.first()
				s = slices.Clone(s)
				n := d.c.Attrs.N
				s[(d.c.Attrs.Axis+len(s))%len(s)] = (n[1] - n[0] + n[2] - 1) / n[2]
				d.filled(dt, s)
			},
			func(in ts, a *Attrs) ts { return only(in[0].SliceScatter(in[1], a.Axis, a.N[0], a.N[1], a.N[2])) },
		},
		"select_scatter": {
			func(d *drawer) {
				dt := d.any()
				s := d.target(dt, 1, 3)
				at := d.c.Attrs.Axis
				d.c.Attrs.N = []int{d.IntN(2*s[at]) - s[at]}
				d.filled(dt, slices.Delete(slices.Clone(s), at, at+1))
			},
			func(in ts, a *Attrs) ts { return only(in[0].SelectScatter(in[1], a.Axis, a.N[0])) },
		},
		"diagonal_scatter": {(*drawer).diagonalScatter, func(in ts, a *Attrs) ts { return only(in[0].DiagonalScatter(in[1], a.N[0], a.N[1], a.N[2])) }},
	}
}

func scatterReduce(in ts, a *Attrs) ts {
	return only(in[0].ScatterReduce(a.Axis, in[1], in[2], reductionsBy[a.N[0]], a.Flag))
}

func (d *drawer) reduced(by int) {
	d.scattered(d.number(), false)
	d.c.Attrs.N, d.c.Attrs.Word, d.c.Attrs.Flag = []int{by}, reductionsBy[by].String(), d.IntN(2) == 0
	if dt, _ := d.first(); !d.special && dt.IsFloat() && by >= int(tensor.ReduceMax) {
		d.apartAll(0, 2)
	}
}

// apartAll gives operands values of 8 bits none of which are equal, as far as there are so many.
func (d *drawer) apartAll(operands ...int) {
	n := 0
	for _, k := range operands {
		n += len(d.c.In[k].Data)
	}
	order := d.Perm(n)
	for _, k := range operands {
		o := &d.c.In[k]
		if o.Layout == "expanded" {
			o.Layout = "dense"
		}
		for i := range o.Data {
			o.Data[i] = num(float64(order[0]%256-128) / 16)
			order = order[1:]
		}
	}
}

// first is the dtype and shape of the first operand.
func (d *drawer) first() (dtype.DType, []int) {
	dt, _ := dtype.Parse(d.c.In[0].DType)
	return dt, d.c.In[0].Shape
}

func (d *drawer) marked() {
	s := d.shape(1, 3)
	d.filled(d.any(), s)
	d.add(dtype.Bool, s[:1+d.IntN(len(s))], func() float64 { return float64(d.IntN(2)) })
}

func (d *drawer) indexFill() {
	s := d.target(d.number(), 1, 3)
	n := s[d.c.Attrs.Axis]
	d.add(dtype.I64, []int{d.size()}, func() float64 { return float64(d.IntN(2*n) - n) })
	d.p(0, 3)
}

func (d *drawer) maskedScatter() {
	s, dt := d.shape(0, 3), d.any()
	d.filled(dt, d.broadcast(s))
	d.add(dtype.Bool, s, func() float64 { return float64(d.IntN(2)) })
	n := 0
	for _, v := range d.c.In[1].Data {
		n += int(v)
	}
	d.filled(dt, []int{n + d.IntN(3)})
}

func (d *drawer) diagonalScatter() {
	s, dt := d.shape(2, 3), d.any()
	two := d.Perm(len(s))
	k := d.IntN(5) - 2
	d.filled(dt, s)
	d.c.Attrs.N = []int{k, two[0], two[1] - len(s)}
	shape := []int{}
	for i, n := range s {
		if i != two[0] && i != two[1] {
			shape = append(shape, n)
		}
	}
	m, n := s[two[0]], s[two[1]]
	if n -= max(k, 0); k < 0 {
		m += k
	}
	d.filled(dt, append(shape, max(0, min(m, n))))
}

// whole is an integer dtype, or rarely bool.
func (d *drawer) integer() dtype.DType {
	return []dtype.DType{dtype.I64, dtype.I32, dtype.U8}[d.IntN(3)]
}

func (d *drawer) bits() dtype.DType {
	if d.IntN(6) == 0 {
		return dtype.Bool
	}
	return d.integer()
}

// bitwise are operations of integers.
func bitwise() map[string]op {
	type t = tensor.Tensor
	all := map[string]op{
		"bit_not": unary((*t).BitNot, (*drawer).bits, (*drawer).apart),
		"gcd":     binary((*t).GCD, (*drawer).integer, (*drawer).apart),
		"lcm":     binary((*t).LCM, (*drawer).integer, (*drawer).apart),
	}
	for name, f := range map[string]func(x, y *t) *t{"bit_and": (*t).BitAnd, "bit_or": (*t).BitOr, "bit_xor": (*t).BitXor} {
		all[name] = binary(f, (*drawer).bits, (*drawer).apart)
	}
	for name, f := range map[string]func(x, y *t) *t{"shift_left": (*t).ShiftLeft, "shift_right": (*t).ShiftRight} {
		all[name] = op{
			func(d *drawer) {
				d.filled(d.integer(), d.shape(0, 3))
				d.add(d.integer(), d.broadcast(d.c.In[0].Shape), func() float64 { return float64(d.IntN(70) - 2) })
			},
			func(in ts, _ *Attrs) ts { return only(f(in[0], in[1])) },
		}
	}
	for name, f := range map[string]func(x *t, n int64) *t{
		"bit_and_num": (*t).BitAndScalar, "bit_or_num": (*t).BitOrScalar, "bit_xor_num": (*t).BitXorScalar,
		"shift_left_num":  func(x *t, n int64) *t { return x.ShiftLeftScalar(int(n)) },
		"shift_right_num": func(x *t, n int64) *t { return x.ShiftRightScalar(int(n)) },
	} {
		all[name] = op{
			func(d *drawer) {
				d.filled(d.integer(), d.shape(0, 3))
				d.c.Attrs.N = []int{[]int{0, 1, 3, 5, 7, 31, 90}[d.IntN(7)]}
			},
			func(in ts, a *Attrs) ts { return only(f(in[0], int64(a.N[0]))) },
		}
	}
	return all
}

// kin of functions: of two numbers, and of three.
func kin() map[string]op {
	type t = tensor.Tensor
	all := map[string]op{
		"erfc":     unary((*t).Erfc, (*drawer).number, (*drawer).normal),
		"sinc":     unary((*t).Sinc, (*drawer).number, (*drawer).normal),
		"signbit":  unary((*t).SignBit, (*drawer).number, (*drawer).normal),
		"fmod":     {func(d *drawer) { d.quotient((*drawer).number) }, func(in ts, _ *Attrs) ts { return only(in[0].Fmod(in[1])) }},
		"ldexp":    {func(d *drawer) { d.pair((*drawer).number, (*drawer).apart); d.small(); d.sameFloats() }, func(in ts, _ *Attrs) ts { return only(in[0].LDExp(in[1])) }},
		"xlogy":    {func(d *drawer) { d.pair((*drawer).number, (*drawer).positive); d.zeros() }, func(in ts, _ *Attrs) ts { return only(in[0].Xlogy(in[1])) }},
		"xlog1py":  {func(d *drawer) { d.pair((*drawer).number, (*drawer).positive); d.zeros() }, func(in ts, _ *Attrs) ts { return only(in[0].Xlog1py(in[1])) }},
		"copysign": {func(d *drawer) { d.pair((*drawer).number, (*drawer).apart) }, func(in ts, _ *Attrs) ts { return only(in[0].CopySign(in[1])) }},
		"float_power": {
			func(d *drawer) { d.pow() },
			func(in ts, _ *Attrs) ts { return only(in[0].FloatPower(in[1])) },
		},
		"heaviside": {
			func(d *drawer) {
				dt := d.number()
				d.pair(func(*drawer) dtype.DType { return dt }, func(d *drawer) float64 { return float64(d.IntN(5) - 2) })
				d.fixed()
				d.c.In[0].Fixed = true
			},
			func(in ts, _ *Attrs) ts { return only(in[0].Heaviside(in[1])) },
		},
		"lerp_tensor": {
			func(d *drawer) {
				d.pair((*drawer).float, (*drawer).plain)
				d.add(dtype.F32, d.broadcast(d.wider()), func() float64 { return 2*d.Float64() - 0.5 })
				d.sameType()
			},
			func(in ts, _ *Attrs) ts { return only(in[0].LerpTensor(in[1], in[2])) },
		},
	}
	for name, f := range map[string]func(x, y *t) *t{"logaddexp": (*t).LogAddExp, "logaddexp2": (*t).LogAddExp2, "hypot": (*t).Hypot, "fmax": (*t).Fmax, "fmin": (*t).Fmin} {
		all[name] = binary(f, (*drawer).float, (*drawer).apart)
	}
	return all
}

// zeros puts some into the first operand.
func (d *drawer) zeros() {
	for i := range d.c.In[0].Data {
		if i%5 == 3 && d.c.In[0].Layout != "expanded" {
			d.c.In[0].Data[i] = 0
		}
	}
}

// sameFloats gives floating operands one dtype: in which of two PyTorch takes the power hangs on shapes, too.
func (d *drawer) sameFloats() {
	dt, _ := d.first()
	if other, _ := dtype.Parse(d.c.In[1].DType); dt.IsFloat() && other.IsFloat() {
		d.sameType()
	}
}

// small keeps the second operand from exponents that overflow.
func (d *drawer) small() {
	for i, v := range d.c.In[1].Data {
		if v > 12 || v < -12 {
			d.c.In[1].Data[i] = 2
		}
	}
}
