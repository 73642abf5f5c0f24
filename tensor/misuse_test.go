package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// A nil tensor, as receiver or operand of any method, is refused by a typed error where it is not an optional operand; so
// is a Tensor that no env made, and a nil env.
func TestNilOperands(t *testing.T) {
	env := open(t)
	x := env.Ones(2, 2)
	refused := 0
	for m := range reflect.TypeFor[*tensor.Tensor]().Methods() {
		if m.Name == "Format" || m.Name == "Info" || m.Name == "String" {
			continue // fmt prints nil pointers by itself
		}
		for _, receiver := range []*tensor.Tensor{x, nil, new(tensor.Tensor)} {
			raised, err := calls(env, m, receiver)
			if err != nil {
				t.Errorf("%s of %p: %v", m.Name, receiver, err)
			}
			if receiver == nil && raised {
				refused++
			}
		}
	}
	if refused < 100 {
		t.Errorf("%d methods refuse a nil receiver", refused)
	}
}

// calls runs a method with zero arguments, and tells whether it raised an error of package tensor; another panic is an error.
func calls(env *tensor.Env, m reflect.Method, receiver *tensor.Tensor) (raised bool, err error) {
	in := []reflect.Value{reflect.ValueOf(receiver)}
	for i := 1; i < m.Type.NumIn(); i++ {
		if i == m.Type.NumIn()-1 && m.Type.IsVariadic() {
			break
		}
		in = append(in, reflect.Zero(m.Type.In(i)))
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panics: %v", p)
		}
	}()
	_, err = env.Try(func(*tensor.Env) *tensor.Tensor { m.Func.Call(in); return nil })
	var own *tensor.Error
	return errors.As(err, &own), nil
}

func TestRefusals(t *testing.T) {
	env := open(t)
	x, ints := env.Ones(2), env.Arange(2)
	image, weight := env.Ones(1, 1, 4, 4), env.Ones(1, 1, 2, 2)
	far := env.Ones(1, 1).Expand(1<<25, 1)
	for _, c := range []struct {
		f    func()
		word string
	}{
		{func() { ints.Split(0, -1, 3) }, "none below 0"},
		{func() { x.Dropout(math.NaN()) }, "probability NaN"},
		{func() { image.Conv2d(weight, nil, tensor.Conv{Stride: [2]int{-2, 1}}) }, "stride -2"},
		{func() { image.Conv2d(weight, nil, tensor.Conv{Groups: -1}) }, "-1 groups"},
		{func() { tensor.SumSquares(ints) }, "i64[2] is not floating"},
		{func() { tensor.Stack(0) }, "Stack: no tensors"},
		{func() { x.Gt(env.Ones(3)) }, "gt: shapes [2] and [3]"},
		{func() { x.Ge(env.Ones(3)) }, "ge: shapes [2] and [3]"},
		{func() { tensor.Grad(x, x.RequireGrad()) }, "Grad: shape [2] is not one number"},
		{func() { tensor.Grad(x.Sum(), x.RequireGrad()) }, "Grad: nothing was recorded"},
		{func() { tensor.NewParam(nil) }, "an operand is nil"},
		{func() { tensor.Where(nil, x, x) }, "the condition is nil"},
		{func() { tensor.Cat(0, x, nil) }, "an operand is nil"},
		{func() { tensor.Attention(nil, nil, nil, tensor.Mask{}) }, "the query is nil"},
		{func() { tensor.NewBuffer(nil) }, "an operand is nil"},
		{func() { x.Add(new(tensor.Tensor)) }, "a zero Tensor, which holds nothing"},
		{func() { x.ScatterAdd(0, ints, nil) }, "an operand is nil"},
		{func() { tensor.Grad(tensor.NewParam(x).Sum(), nil) }, "an operand is nil"},
		{func() { tensor.Recompute(nil, func(x *tensor.Tensor) *tensor.Tensor { return x }) }, "an operand is nil"},
		{func() { tensor.Recompute(x, func(*tensor.Tensor) *tensor.Tensor { return nil }) }, "an operand is nil"},
		{func() {
			x.Sum().RequireGrad().Square().Backward(func(yield func(string, *tensor.Tensor) bool) { yield("none", nil) })
		}, "an operand is nil"},
		{func() { x.In(nil) }, "the env is nil"},
		{func() { env.On(nil) }, "the queue is nil"},
		{func() { env.FullOf(dtype.DType(99), 1, 2) }, "needs a dtype, got dtype(99)"},
		{func() { x.Cast(dtype.DType(99)) }, "the target dtype is dtype(99)"},
		{func() { ints.Reshape(1, 1, 1, 2).AvgPool2d(tensor.Pool{Kernel: [2]int{1, 1}}) }, "avg_pool2d: needs a floating dtype, got i64"},
		{func() { image.AvgPool2d(tensor.Pool{Kernel: [2]int{2, 2}, Padding: [2]int{-1, 0}}) }, "padding -1×0 is not from 0 to half"},
		{func() { x.Gather(0, ints.Reshape(1, 2)) }, "go doc tensor says"},
		{func() { x.Linear(env.FullOf(dtype.F64, 1, 3, 2), nil) }, "convert with Cast"},
		{func() { tensor.From(nil, []float32{1}) }, "the env is nil"},
		{func() { image.Reshape(1, 1, 4, 4, 1, 1, 1, 1).Unsqueeze(0) }, "has 9 dimensions, at most 8 are supported"},
		{func() { far.Add(far.Transpose(0, 1)) }, "more than 2^48 elements"},
		{func() { far.MatMul(far.Transpose(0, 1)) }, "more than 2^48 elements"},
		{func() { tensor.Where(far, x.Slice(0, 0, 1), far.Transpose(0, 1)) }, "more than 2^48 elements"},
		{func() { weight.Conv2d(weight, nil, tensor.Conv{Padding: [2]int{1 << 30, 1 << 30}}) }, "more than 2^48 elements"},
		{func() { tensor.Func{}.Apply() }, "at least one operand"},
		{func() {
			tensor.Func{Forward: func(c *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor { return in }}.Apply(nil)
		}, "an operand is nil"},
		{func() {
			tensor.Func{Forward: func(c *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor { c.Saved(); return in }}.Apply(x)
		}, "Saved was called in Forward"},
		{func() {
			tensor.Func{Forward: func(c *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor { c.Want(0); return in }}.Apply(x)
		}, "Want was called in Forward"},
		{func() { tensor.FromMatrix(env, sized{-1, 2}) }, "negative size"},
		{func() { image.Conv2d(weight, nil, tensor.Conv{Padding: [2]int{1 << 32, 0}}) }, "Padding:[4294967296 0]"},
		{func() { image.MaxPool2d(tensor.Pool{Kernel: [2]int{1<<32 + 1, 1}}) }, "Kernel:[4294967297 1]"},
		{func() { x.RequireGrad().OnGrad(nil) }, "the hook is nil"},
		{func() { x.RequireGrad().AfterGrad(nil) }, "the hook is nil"},
		{func() { env.Do(func(*tensor.Env) *tensor.Tensor { return new(tensor.Tensor) }) }, "a zero Tensor"},
		{func() {
			tensor.Func{Forward: func(c *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor { c.Save(nil); return in }}.Apply(x)
		}, "an operand is nil"},
	} {
		fails(t, env, c.f, c.word)
	}
}

// sized is a matrix that has nothing but a size.
type sized [2]int

func (s sized) Dims() (rows, columns int)  { return s[0], s[1] }
func (s sized) At(row, column int) float64 { return 0 }

// Of no values none differs from 0, and all do.
func TestQuantifiersOfNothing(t *testing.T) {
	env := open(t)
	x := env.Zeros(2, 0)
	for _, c := range []struct {
		got  *tensor.Tensor
		want []float64
	}{{x.Any(), []float64{0}}, {x.All(), []float64{1}}, {x.Any(1), []float64{0, 0}}, {x.All(-1), []float64{1, 1}}, {x.Any(0), []float64{}}} {
		if got := c.got.Floats(); !slices.Equal(got, c.want) || c.got.DType() != dtype.Bool {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
	fails(t, env, func() { env.Ones(2).Any(1) }, "Any: dimension 1 of shape [2]")
}

// Nothing is a value of its own to Move and to printing.
func TestNothingToMove(t *testing.T) {
	env := open(t)
	if v := tensor.Move[any](env, nil); v != nil {
		t.Error(v)
	}
	if s := fmt.Sprint(new(tensor.Tensor), (*tensor.Tensor)(nil)); s != "<nil> <nil>" {
		t.Error(s)
	}
	var s tensor.Scope
	s.Hold()()
	s.End()
}

// What is printed of a large tensor does not need a copy of it on the host.
func TestPrintingReadsTheEnds(t *testing.T) {
	env := open(t)
	x := env.Arange(1 << 20)
	_ = x.String() // takes memory of the device, of which a simulated GPU with all checks keeps books
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text := x.String()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<18 {
		t.Errorf("%d bytes to print %s", n, text)
	}
}

// The devices that are listed are those that Best takes one of; the CPU is the last of them.
func TestDevices(t *testing.T) {
	names := tensor.Devices()
	if names[len(names)-1] != "cpu" || !slices.Contains(names, tensor.Best().Device().Name()) {
		t.Errorf("%q, the best of them is %s", names, tensor.Best().Device().Name())
	}
}
