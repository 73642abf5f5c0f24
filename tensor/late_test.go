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
