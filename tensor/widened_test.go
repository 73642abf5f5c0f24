package tensor_test

import (
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// How operations on float16 end on the CPU, as the rows of a table in docs/cpu.md begin.
const (
	once  = "| computed in float32, and rounded once |"
	often = "| made of operations, each of which rounds |"
	wide  = "| take float32 beside float16 |"
)

// TestFloat16OfCPU: on the CPU an operation on float16 gives the bits of the same operation on float32, rounded to float16; if it is made
// of others, it gives those of each rounded. docs/cpu.md says which does what.
func TestFloat16OfCPU(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(autocast)) {
		kind := once
		for seed := range uint64(8) {
			if k := roundsLike(env, autocast[name], seed); k != once {
				kind = k
			}
		}
		found[kind] = append(found[kind], name)
	}
	doc, err := os.ReadFile("../docs/cpu.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind, names := range found {
		if row := kind + " " + strings.Join(names, ", ") + " |\n"; !strings.Contains(string(doc), row) {
			t.Errorf("docs/cpu.md has no row\n%s", row)
		}
	}
}

// roundsLike is how an operation ends on numbers of a seed.
func roundsLike(env *tensor.Env, f func(x, y *tensor.Tensor) *tensor.Tensor, seed uint64) (kind string) {
	defer func() {
		if recover() != nil {
			kind = wide
		}
	}()
	run := func(dt dtype.DType) *tensor.Tensor {
		e := env.Seed(seed)
		x, y := e.Rand(4, 4).AddScalar(0.1).Cast(dtype.F16), e.Rand(4, 4).AddScalar(0.1).Cast(dtype.F16)
		return f(x.Cast(dt), y.Cast(dt))
	}
	narrow, full := run(dtype.F16), run(dtype.F32)
	if narrow.DType() == dtype.F16 {
		full = full.Cast(dtype.F16)
	}
	if !slices.EqualFunc(narrow.Floats(), full.Floats(), func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }) {
		return often
	}
	return once
}
