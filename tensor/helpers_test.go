package tensor_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// open returns a device of the test's own, its memory poisoned where the host reaches it.
func open(t testing.TB) *tensor.Env {
	t.Helper()
	env, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	if err := env.Device().Poison(true); err != nil && env.Device().Name() == "cpu" {
		t.Fatal(err)
	}
	return env
}

// fails runs f and checks that it raises an error that contains every word.
func fails(t *testing.T, env *tensor.Env, f func(), words ...string) {
	t.Helper()
	_, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil })
	if err == nil {
		t.Fatalf("no error; want one with %q", words)
	}
	var own *tensor.Error
	if !errors.As(err, &own) {
		t.Fatalf("error of type %T: %v", err, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func equal(t *testing.T, what string, got *tensor.Tensor, want ...float64) {
	t.Helper()
	v := got.Floats()
	if !slices.EqualFunc(v, want, func(a, b float64) bool {
		return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-6*math.Abs(b)
	}) {
		t.Errorf("%s: %v, want %v", what, v, want)
	}
}

func param(env *tensor.Env, v ...float64) *tensor.Tensor {
	return tensor.NewParam(tensor.From(env, v, len(v)))
}

// turn runs f in a scope, as one batch.
func turn(env *tensor.Env, i int, f func(e *tensor.Env)) {
	e, s := env.Scope(uint64(i))
	defer s.End()
	f(e)
}
