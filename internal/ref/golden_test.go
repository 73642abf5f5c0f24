package ref_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/autograd"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
	"github.com/warpline-ml/warpline/internal/safetensors"
)

// golden is a case computed by PyTorch; bench/pytorch/ops_reference.py says how.
type golden struct {
	Name  string
	Op    string
	Attrs map[string]any
	In    []string
	Out   []string
	Grad  []string
	Note  string

	values map[string]ir.Value // operands
	file   *safetensors.File
}

// array reads one tensor of the case.
func (g *golden) array(t *testing.T, name string) ref.Array {
	t.Helper()
	e, ok := g.file.Lookup(g.Name + "/" + name)
	if !ok {
		t.Fatalf("no tensor %s/%s", g.Name, name)
	}
	for _, dt := range dtype.All() {
		if strings.EqualFold(dt.String(), e.DType) {
			return ref.Decode(e.Data(), ir.Dense(dt, e.Shape...))
		}
	}
	t.Fatalf("%s/%s has dtype %s", g.Name, name, e.DType)
	return ref.Array{}
}

// in is operand i.
func (g *golden) in(i int) ir.Value { return g.values[g.In[i]] }

func (g *golden) number(name string) float64 { return g.Attrs[name].(float64) }

// pair is an attribute that is one number for both dimensions or a list of two.
func (g *golden) pair(name string, otherwise int) (h, w int) {
	switch v := g.Attrs[name].(type) {
	case float64:
		return int(v), int(v)
	case []any:
		return int(v[0].(float64)), int(v[1].(float64))
	}
	return otherwise, otherwise
}

func (g *golden) list(name string) (v []int) {
	for _, d := range g.Attrs[name].([]any) {
		v = append(v, int(d.(float64)))
	}
	return v
}

// axes are the reduced dimensions: one, several or all.
func (g *golden) axes() (set uint16) {
	switch d := g.Attrs["dim"].(type) {
	case float64:
		return 1 << int(d)
	case []any:
		for _, v := range d {
			set |= 1 << int(v.(float64))
		}
		return set
	}
	return 1<<g.in(0).Type().Rank() - 1
}

// value is an array on a tape.
type value struct{ ref.Array }

func (v *value) Type() *ir.Type { return v.Array.Type }

// tape evaluates and records ops.
type tape struct{ records []*record }

// record is one op of a tape; it is the [autograd.Call] of its gradient.
type record struct {
	op             ir.Op
	p              ir.Params
	in, out, grads []ir.Value
}

func (r *record) Op() *ir.Op          { return &r.op }
func (r *record) Params() *ir.Params  { return &r.p }
func (r *record) In(i int) ir.Value   { return r.in[i] }
func (r *record) Out(i int) ir.Value  { return r.out[i] }
func (r *record) Grad(i int) ir.Value { return r.grads[i] }
func (r *record) Want(i int) bool     { return r.op.In(i).DType.IsFloat() }

func (t *tape) Emit(code ir.Code, attr ir.Attr, p ir.Params, in ...ir.Value) []ir.Value {
	types, arrays := make([]*ir.Type, len(in)), make([]ref.Array, len(in))
	for i, v := range in {
		types[i], arrays[i] = v.Type(), v.(*value).Array
	}
	r := &record{op: ir.New(code, attr, types...), p: p, in: slices.Clone(in)}
	results, err := ref.Eval(&r.op, &p, arrays)
	if err != nil {
		panic(err)
	}
	for _, a := range results {
		r.out = append(r.out, &value{a})
	}
	t.records = append(t.records, r)
	return r.out
}

// backward returns the gradient of every value that y's gradient reaches.
func (t *tape) backward(y, up ir.Value) map[ir.Value]ir.Value {
	grads := map[ir.Value]ir.Value{y: up}
	b := ir.B{Builder: t}
	for _, r := range slices.Backward(slices.Clone(t.records)) {
		reached := false
		for _, v := range r.out {
			r.grads = append(r.grads, grads[v])
			reached = reached || grads[v] != nil
		}
		rule := autograd.Of(r.op.Code)
		if !reached || rule == nil {
			continue
		}
		for i, g := range rule.Grad(b, r) {
			if old := grads[r.in[i]]; g != nil && old != nil {
				g = b.Add(old, g)
			}
			if g != nil {
				grads[r.in[i]] = g
			}
		}
	}
	return grads
}

// TestPyTorch compares every golden case, forward and backward: the reference with PyTorch, and with it the gradient
// rules at kinks, ties and zeros, where finite differences say nothing.
func TestPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/pytorch.json")
	if err != nil {
		t.Fatal(err)
	}
	var index struct{ Cases []*golden }
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("testdata/pytorch.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	file, err := safetensors.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(index.Cases) < 150 {
		t.Errorf("%d cases", len(index.Cases))
	}
	for _, g := range index.Cases {
		g.file = file
		t.Run(g.Name, g.check)
	}
}

func (g *golden) check(t *testing.T) {
	f := compositions[g.Op]
	if f == nil {
		t.Fatalf("%s has no composition", g.Op)
	}
	g.values = map[string]ir.Value{}
	for _, name := range g.In {
		g.values[name] = &value{g.array(t, "in."+name)}
	}
	tp := &tape{}
	out := f(ir.B{Builder: tp}, g)
	for i, name := range g.Out {
		close(t, name, &out[i].(*value).Array, g.array(t, "out."+name), absolute[g.Op], strings.Contains(g.Note, "sign of 0 counts"))
	}
	if len(g.Grad) == 0 {
		return
	}
	grads := tp.backward(out[0], &value{g.array(t, "up."+g.Out[0])})
	for _, name := range g.Grad {
		x := g.values[name]
		got, ok := grads[x].(*value)
		if !ok {
			got = &value{ref.Floats(x.Type(), make([]float64, x.Type().Size())...)}
		}
		close(t, "gradient of "+name, &got.Array, g.array(t, "grad."+name), absolute[g.Op], false)
	}
}

// absolute is the error of an element that PyTorch itself may have made, in ops whose terms cancel.
var absolute = map[string]float64{
	"gelu": 1e-15, // 1 + erf
	"var":  1e-10, // of numbers near 10⁶
}

// close demands equal types and, in float64, eleven digits; the digits of the dtype where PyTorch computed in less.
func close(t *testing.T, what string, got *ref.Array, want ref.Array, atol float64, zeroSigns bool) {
	t.Helper()
	if got.Type.DType != want.Type.DType || !got.Type.SameShape(want.Type) {
		t.Fatalf("%s is %s, PyTorch's is %s", what, got.Type, want.Type)
	}
	tol := 1e-11
	if want.Type.DType != dtype.F64 {
		tol = want.Type.DType.Epsilon()
	}
	for i, w := range want.Data {
		v := got.Data[i]
		same := v == w || v != v && w != w || math.Abs(v-w) <= tol*math.Abs(w)+atol
		if want.Int != nil {
			same = got.Int[i] == want.Int[i]
		}
		if !same || zeroSigns && w == 0 && math.Signbit(v) != math.Signbit(w) {
			t.Errorf("%s: element %d is %v, PyTorch's %v", what, i, v, w)
		}
	}
}
