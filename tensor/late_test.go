package tensor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/tensor"
)

// TestLateIndexError meets an index out of range where the host reads: by a value that was asked for without waiting,
// and by one that is waited for. The error names the operation and its line, and where it showed.
func TestLateIndexError(t *testing.T) {
	for name, read := range map[string]func(x *tensor.Tensor){
		"Value":  func(x *tensor.Tensor) { x.Sum().Later().Value() },
		"Floats": func(x *tensor.Tensor) { x.Floats() },
	} {
		env, err := tensor.Fresh("sim:0")
		if err != nil {
			t.Fatal(err)
		}
		table := env.Ones(10, 4)
		rows := table.Embedding(tensor.From(env, []int64{3, 10}, 2))
		_, err = env.Try(func(*tensor.Env) *tensor.Tensor { read(rows); return nil })
		var index *cuda.IndexError
		if !errors.As(err, &index) || index.Index != 10 {
			t.Fatalf("%s: %v", name, err)
		}
		if s := err.Error(); !strings.HasPrefix(s, "embedding at late_test.go:") || strings.Count(s, "late_test.go:") != 2 {
			t.Errorf("%s: %q", name, s)
		}
		if got := table.Sum().Item(); got != 40 {
			t.Errorf("%s: afterwards a sum is %v", name, got)
		}
	}
}

// TestErrorOfAPendingValue is the same however often the value is asked for.
func TestErrorOfAPendingValue(t *testing.T) {
	env := fresh(t, "sim:0")
	p := env.Ones(3, 1).Embedding(tensor.From(env, []int64{7}, 1)).Sum().Later()
	for range 2 {
		fails(t, env, func() { p.Value() }, "embedding at late_test.go:", "index 7")
	}
}

// TestLabelOutOfRange says what is out of range in the words of the operation, once, on every device.
func TestLabelOutOfRange(t *testing.T) {
	for _, name := range []string{"cpu", "sim:0"} {
		env := fresh(t, name)
		_, err := env.Try(func(e *tensor.Env) *tensor.Tensor {
			return tensor.From(e, []float64{e.Ones(2, 3).CrossEntropy(tensor.From(e, []int64{0, 9}, 2), 0, -100).Sum().Item()}, 1)
		})
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		s := err.Error()
		for _, w := range []string{"label 9", "out of range: there are 3 classes, 0 to 2", "late_test.go:"} {
			if !strings.Contains(s, w) {
				t.Errorf("%s: %q lacks %q", name, s, w)
			}
		}
		if strings.Count(s, "cross_entropy") != 1 || strings.Contains(s, "cpu:") {
			t.Errorf("%s: %q", name, s)
		}
	}
}

// TestErrorsTellALineOnce where a value and the mistake about it are on one line, and both otherwise.
func TestErrorsTellALineOnce(t *testing.T) {
	env := fresh(t, "cpu")
	_, err := env.Try(func(e *tensor.Env) *tensor.Tensor { e.Ones(2).Sum().Backward(); return nil })
	if s := err.Error(); strings.Count(s, "late_test.go:") != 1 || !strings.Contains(s, "the result of sum carries no graph at late_test.go:") {
		t.Errorf("%q", s)
	}
	x := env.Ones(2).Sum()
	_, err = env.Try(func(e *tensor.Env) *tensor.Tensor { x.Backward(); return nil })
	if s := err.Error(); strings.Count(s, "late_test.go:") != 2 {
		t.Errorf("%q", s)
	}
}

// TestTwoDevicesHint: which of the two is at the wrong place, only the program knows.
func TestTwoDevicesHint(t *testing.T) {
	env, other := fresh(t, "cpu"), fresh(t, "null:a100-80")
	fails(t, env, func() { env.Ones(2).Add(other.Ones(2)) }, "operands on two devices", "x.To(env) copies a value, nn.To(env, model) moves a model")
}
