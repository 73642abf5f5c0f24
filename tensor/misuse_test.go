package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// A nil tensor, as receiver or operand of any method, is refused by a typed error where it is not an optional operand.
func TestNilOperands(t *testing.T) {
	env := open(t)
	x := env.Ones(2, 2)
	refused := 0
	for m := range reflect.TypeFor[*tensor.Tensor]().Methods() {
		if m.Name == "Format" || m.Name == "Info" || m.Name == "String" {
			continue // fmt prints nil pointers by itself
		}
		for _, receiver := range []*tensor.Tensor{x, nil} {
			raised, err := calls(env, m, receiver)
			if err != nil {
				t.Errorf("%s of %v: %v", m.Name, receiver, err)
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
		if arg := m.Type.In(i); arg.Kind() == reflect.Func || arg.Kind() == reflect.Interface || arg == reflect.TypeFor[*tensor.Env]() {
			return false, nil // not about operands
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
		{func() { tensor.Where(nil, x, x) }, "an operand is nil"},
		{func() { tensor.Cat(0, x, nil) }, "an operand is nil"},
		{func() { tensor.Attention(nil, nil, nil, tensor.Mask{}) }, "an operand is nil"},
	} {
		fails(t, env, c.f, c.word)
	}
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
