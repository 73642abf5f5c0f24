package autograd_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/autograd"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/lower/eager"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// call is a [autograd.Call] that refuses what the rule's Save did not name.
type call struct {
	op    *ir.Op
	p     *ir.Params
	in    []ir.Value
	out   []ir.Value
	grads []ir.Value
	want  uint64
	saves autograd.Saves
	used  autograd.Saves
}

func (c *call) Op() *ir.Op          { return c.op }
func (c *call) Params() *ir.Params  { return c.p }
func (c *call) Grad(i int) ir.Value { return c.grads[i] }
func (c *call) Want(i int) bool     { return c.want>>i&1 == 1 }

func (c *call) In(i int) ir.Value {
	if c.saves.In>>i&1 == 0 {
		panic(fmt.Sprintf("%s: operand %d was not saved (want %b)", c.op.Code, i, c.want))
	}
	c.used.In |= 1 << i
	return c.in[i]
}

func (c *call) Out(i int) ir.Value {
	if c.saves.Out>>i&1 == 0 {
		panic(fmt.Sprintf("%s: result %d was not saved (want %b)", c.op.Code, i, c.want))
	}
	c.used.Out |= 1 << i
	return c.out[i]
}

// tape records what a builder emits, so that gradients of gradients can be taken.
type tape struct {
	ir.Builder
	calls []*call
}

func (t *tape) Emit(code ir.Code, attr ir.Attr, p ir.Params, in ...ir.Value) []ir.Value {
	out := t.Builder.Emit(code, attr, p, in...)
	op := ir.New(code, attr, eager.Types(in)...)
	t.calls = append(t.calls, &call{op: &op, p: &p, in: slices.Clone(in), out: out})
	return out
}

// run calls the rule of c for the operands in want.
func (c *call) run(b ir.B, want uint64) []ir.Value {
	r := autograd.Of(c.op.Code)
	c.want, c.saves, c.used = want, autograd.Saves{}, autograd.Saves{}
	if r.Save != nil {
		c.saves = r.Save(c.op, want)
	}
	return r.Grad(b, c)
}

// reached tells, for each call of the tape, which operands depend on the leaves.
func (t *tape) reached(leaves []ir.Value) []uint64 {
	reach := map[ir.Value]bool{}
	for _, v := range leaves {
		reach[v] = true
	}
	wants := make([]uint64, len(t.calls))
	for i, c := range t.calls {
		for j, v := range c.in {
			if reach[v] && v.Type().DType.IsFloat() {
				wants[i] |= 1 << j
			}
		}
		for _, v := range c.out {
			reach[v] = wants[i] != 0
		}
	}
	return wants
}

// backward follows the tape from the seeded gradients to the leaves and returns theirs; what it does is on the tape too.
func (t *tape) backward(seeds map[ir.Value]ir.Value, leaves []ir.Value) []ir.Value {
	wants := t.reached(leaves)
	b := ir.B{Builder: t}
	for i, c := range slices.Backward(t.calls[:len(wants)]) {
		c.grads = make([]ir.Value, len(c.out))
		live := false
		for j, v := range c.out {
			c.grads[j] = seeds[v]
			live = live || seeds[v] != nil
		}
		if !live || wants[i] == 0 {
			continue
		}
		for j, g := range c.run(b, wants[i]) {
			accumulate(b, seeds, c.in[j], g)
		}
	}
	out := make([]ir.Value, len(leaves))
	for i, v := range leaves {
		out[i] = seeds[v]
	}
	return out
}

// accumulate adds g, unless it is nil, to the gradient of v.
func accumulate(b ir.B, grads map[ir.Value]ir.Value, v, g ir.Value) {
	switch {
	case g == nil:
	case grads[v] == nil:
		grads[v] = g
	default:
		grads[v] = b.Add(grads[v], g)
	}
}

// difference is the derivative of f with respect to each element of x by central differences.
func difference(x []float64, f func() float64) []float64 {
	const h = 1e-5
	d := make([]float64, len(x))
	for i, v := range x {
		x[i] = v + h
		hi := f()
		x[i] = v - h
		lo := f()
		x[i] = v
		d[i] = (hi - lo) / (2 * h)
	}
	return d
}

// leaves are the operands of a case that get a gradient.
func (tc *testCase) leaves(op *ir.Op) (at []int) {
	for i := range op.NumIn() {
		if op.In(i).DType.IsFloat() && !slices.Contains(tc.frozen, i) {
			at = append(at, i)
		}
	}
	return at
}

func TestRules(t *testing.T) {
	checked := map[ir.Code]bool{}
	rng := testutil.Rand(t)
	for _, tc := range cases() {
		t.Run(tc.name(), func(t *testing.T) {
			in := tc.make(rng)
			first(t, &tc, in, rng)
			second(t, &tc, in, rng)
		})
		checked[tc.code] = true
	}
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		switch reason, has := code.Row().Gradient.None, autograd.Of(code) != nil; {
		case has && reason != "":
			t.Errorf("%s has a rule, and its row says why not: %s", code, reason)
		case !has && reason == "":
			t.Errorf("%s has neither a rule nor a reason to have none", code)
		case has && !checked[code]:
			t.Errorf("the rule of %s is not checked", code)
		}
	}
}

// first checks the gradient of each operand against finite differences, wanted alone and with the others, and that the
// rule saves no more than it uses. (What PowScalar needs depends on its parameter, which Save does not see.)
func first(t *testing.T, tc *testCase, in []ir.Value, rng *rand.Rand) {
	b := ir.B{Builder: eager.Builder{}}
	op := ir.New(tc.code, tc.attr, eager.Types(in)...)
	out := b.Emit(tc.code, tc.attr, tc.p, in...)
	grads := seeds(rng, eager.Types(out))
	var all uint64
	for _, i := range tc.leaves(&op) {
		all |= 1 << i
	}
	c := &call{op: &op, p: &tc.p, in: in, out: out, grads: grads}
	together := c.run(b, all)
	for _, i := range tc.leaves(&op) {
		want := difference(eager.Data(in[i]), func() float64 {
			return weigh(b.Emit(tc.code, tc.attr, tc.p, in...), grads)
		})
		alone := c.run(b, 1<<i)
		if c.used != c.saves && tc.code != ir.PowScalar && in[i].Type().Size() > 0 {
			t.Errorf("operand %d alone: saved %+v, used %+v", i, c.saves, c.used)
		}
		for j, g := range alone {
			if j != i && g != nil {
				t.Errorf("operand %d wanted, and %d got a gradient", i, j)
			}
		}
		for _, g := range [...]ir.Value{alone[i], together[i]} {
			same(t, fmt.Sprintf("operand %d", i), g, in[i], want)
		}
	}
}

// seeds are random gradients of an op's floating results; nil for the others.
func seeds(rng *rand.Rand, results []*ir.Type) []ir.Value {
	list := make([]ir.Value, len(results))
	for i, r := range results {
		if r.DType.IsFloat() {
			list[i] = random(rng, r)
		}
	}
	return list
}

// weigh is Σ result·seed over the results that have one. An infinite element, such as the log-sum-exp of a row that sees
// nothing, is a constant.
func weigh(results, seeds []ir.Value) (s float64) {
	for i, v := range results {
		if seeds[i] == nil || v == nil {
			continue
		}
		for j, x := range eager.Data(v) {
			if !math.IsInf(x, 0) {
				s += x * eager.Data(seeds[i])[j]
			}
		}
	}
	return s
}

// same checks a gradient's type and values; nil counts as zeros.
func same(t *testing.T, what string, g, x ir.Value, want []float64) {
	t.Helper()
	got := make([]float64, x.Type().Size())
	if g != nil {
		if g.Type().DType != x.Type().DType || !g.Type().SameShape(x.Type()) {
			t.Errorf("%s: gradient %s of %s", what, g.Type(), x.Type())
			return
		}
		got = eager.Data(g)
	}
	t.Log(what)
	testutil.Close(t, got, want, 1e-6, 1e-7)
}

// second checks the gradient of Σ u·(first gradients) with respect to operands and seeds.
func second(t *testing.T, tc *testCase, in []ir.Value, rng *rand.Rand) {
	op := ir.New(tc.code, tc.attr, eager.Types(in)...)
	results, err := op.Infer()
	if err != nil {
		t.Fatal(err)
	}
	weights := seeds(rng, results)
	var operands, us []ir.Value
	for _, j := range tc.leaves(&op) {
		operands = append(operands, in[j])
		us = append(us, random(rng, in[j].Type()))
	}
	gradients := func() (*tape, []ir.Value) {
		tp := &tape{Builder: eager.Builder{}}
		seeded := map[ir.Value]ir.Value{}
		for i, v := range tp.Emit(tc.code, tc.attr, tc.p, in...) {
			seeded[v] = weights[i]
		}
		return tp, tp.backward(seeded, operands)
	}
	tp, grads := gradients()
	seeded := map[ir.Value]ir.Value{}
	for i, g := range grads {
		if g != nil {
			accumulate(ir.B{Builder: tp}, seeded, g, us[i])
		}
	}
	leaves := operands[:len(operands):len(operands)]
	for _, w := range weights {
		if w != nil {
			leaves = append(leaves, w)
		}
	}
	got := tp.backward(seeded, leaves)
	for i, leaf := range leaves {
		want := difference(eager.Data(leaf), func() float64 {
			_, grads := gradients()
			return weigh(grads, us)
		})
		same(t, fmt.Sprintf("second derivative, leaf %d", i), got[i], leaf, want)
	}
}

// TestDTypes runs every rule on types alone, in each floating dtype, with a gradient of every operand wanted.
func TestDTypes(t *testing.T) {
	rng := testutil.Rand(t)
	b := ir.B{Builder: eager.TypesOnly{}}
	for _, tc := range cases() {
		for _, dt := range []dtype.DType{dtype.F32, dtype.F16, dtype.BF16} {
			if tc.code.Row().Class == ir.Wides && dt != dtype.F32 {
				continue
			}
			in := eager.Retype(tc.make(rng), dt, tc.wide)
			op := ir.New(tc.code, tc.attrAs(dt), eager.Types(in)...)
			out := b.Emit(tc.code, op.Attr, tc.p, in...)
			grads := slices.Clone(out)
			for i, v := range out {
				if !v.Type().DType.IsFloat() {
					grads[i] = nil
				}
			}
			c := &call{op: &op, p: &tc.p, in: in, out: out, grads: grads}
			for i, g := range c.run(b, 1<<op.NumIn()-1) {
				switch {
				case g == nil:
				case !op.In(i).DType.IsFloat():
					t.Errorf("%s: operand %d, %s, got a gradient", tc.name(), i, op.In(i))
				case g.Type().DType != op.In(i).DType || !g.Type().SameShape(op.In(i)):
					t.Errorf("%s: gradient %s of %s", tc.name(), g.Type(), op.In(i))
				}
			}
		}
	}
}

// TestConventions pins the values at kinks and zeros, where finite differences say nothing.
func TestConventions(t *testing.T) {
	for _, tc := range []struct {
		code ir.Code
		p    ir.Params
		in   [][]float64
		want [][]float64 // of each operand, for gradients of 1
	}{
		{ir.Abs, ir.Params{}, [][]float64{{-2, 0, 3}}, [][]float64{{-1, 0, 1}}},
		{ir.ReLU, ir.Params{}, [][]float64{{-1, 0, 2}}, [][]float64{{0, 0, 1}}},
		{ir.Clamp, ir.Scalars(-1, 2), [][]float64{{-2, -1, 0, 2, 3}}, [][]float64{{0, 0, 1, 0, 0}}},
		{ir.Clamp, ir.Scalars(math.Inf(-1), 2), [][]float64{{-2, 2, 3, math.Inf(-1)}}, [][]float64{{1, 0, 0, 1}}},
		{ir.Affine, ir.Scalars(math.Inf(1), 0), [][]float64{{-2, 0, 3}}, [][]float64{{math.Inf(1), math.Inf(1), math.Inf(1)}}},
		{ir.Affine, ir.Scalars(math.Inf(-1), 1), [][]float64{{-2, 0, 3}}, [][]float64{{math.Inf(-1), math.Inf(-1), math.Inf(-1)}}},
		{ir.Axpy, ir.Scalars(math.Inf(-1)), [][]float64{{-2, 3}, {1, 0}}, [][]float64{{1, 1}, {math.Inf(-1), math.Inf(-1)}}},
		{ir.PowScalar, ir.Scalars(0), [][]float64{{0, 2}}, [][]float64{{0, 0}}},
		{ir.PowScalar, ir.Scalars(1), [][]float64{{0, 2}}, [][]float64{{1, 1}}},
		{ir.Pow, ir.Params{}, [][]float64{{0, 0, 2}, {0, 2, 0}}, [][]float64{{0, 0, 0}, {0, 0, math.Ln2}}},
		{ir.Pow, ir.Params{}, [][]float64{{0, math.Copysign(0, -1), 0, 0, 0}, {-1, -1, math.Inf(-1), math.NaN(), math.Inf(1)}},
			[][]float64{{math.Inf(-1), math.Inf(-1), math.Inf(-1), math.NaN(), math.NaN()}, {math.Inf(-1), math.Inf(1), math.Inf(-1), math.NaN(), 0}}},
		{ir.Maximum, ir.Params{}, [][]float64{{1, 2, 5}, {1, 3, 4}}, [][]float64{{0.5, 0, 1}, {0.5, 1, 0}}},
		{ir.Minimum, ir.Params{}, [][]float64{{1, 2, 5}, {1, 3, 4}}, [][]float64{{0.5, 1, 0}, {0.5, 0, 1}}},
	} {
		b := ir.B{Builder: eager.Builder{}}
		var in []ir.Value
		for _, v := range tc.in {
			in = append(in, eager.New(ir.Dense(dtype.F64, len(v)), slices.Clone(v)))
		}
		op := ir.New(tc.code, ir.Attr{}, eager.Types(in)...)
		out := b.Emit(tc.code, ir.Attr{}, tc.p, in...)
		ones := b.Full(out[0].Type(), 1)
		c := &call{op: &op, p: &tc.p, in: in, out: out, grads: []ir.Value{ones}}
		for i, g := range c.run(b, 1<<len(in)-1) {
			t.Log(tc.code, i)
			testutil.Close(t, eager.Data(g), tc.want[i], 1e-12, 0)
		}
	}
}

// TestTies: an extreme that occurs more than once shares its gradient.
func TestTies(t *testing.T) {
	b := ir.B{Builder: eager.Builder{}}
	x := eager.New(ir.Dense(dtype.F64, 2, 3), []float64{4, 4, 1, 2, 5, 5})
	attr := ir.Attr{Axes: 1 << 1}
	op := ir.New(ir.ReduceMax, attr, x.Type())
	out := b.Emit(ir.ReduceMax, attr, ir.Params{}, x)
	c := &call{op: &op, p: &ir.Params{}, in: []ir.Value{x}, out: out, grads: []ir.Value{eager.New(ir.Dense(dtype.F64, 2), []float64{2, 3})}}
	testutil.Close(t, eager.Data(c.run(b, 1)[0]), []float64{1, 1, 0, 0, 1.5, 1.5}, 0, 0)
}
