package tensor_test

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// TestStaged: what another goroutine has staged becomes the value that From makes, once; where there is nothing to win,
// nothing is staged.
func TestStaged(t *testing.T) {
	for _, name := range []string{"cpu", "null:t4"} {
		if tensor.Stage(fresh(t, name), []float32{1}, 1) != nil {
			t.Errorf("a value is staged for %s", name)
		}
	}
	env, other := fresh(t, "sim:0"), fresh(t, "sim:0")
	if tensor.Stage(env, []float32{}, 0, 3) != nil {
		t.Error("nothing is staged")
	}
	data := make([]int64, 3*701)
	for i := range data {
		data[i] = int64(i)*1_000_003 - 7
	}
	staged := make(chan *tensor.Staged)
	for range 3 {
		go func() { staged <- tensor.Stage(env, data, 3, 701) }()
	}
	a, b := <-staged, <-staged
	if got, want := a.String(), "i64[3,701], staged for "+env.Device().Name(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	(<-staged).Drop()
	for _, e := range []*tensor.Env{env, env.On(env.NewQueue())} {
		if y := a.In(e); !slices.Equal(tensor.Data[int64](y.To(fresh(t, "cpu"))), data) || !slices.Equal(y.Shape(), []int{3, 701}) {
			t.Errorf("%v comes back as %v", data[:3], y)
		}
		a = b
	}
	fails(t, env, func() { b.In(env) }, "sent or dropped before")
	fails(t, env, func() { tensor.Stage(env, data, 3, 701).In(other) }, "staged for")
	fails(t, env, func() { tensor.Stage(env, data, 3, 700) }, "2103 values for shape [3 700]")
}
