// Package golden reads the reference values that scripts in bench/pytorch wrote, as tensors.
// It is imported from _test files only.
package golden

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/warpline-ml/warpline/internal/safetensors"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// Tensors reads a safetensors file into env.
func Tensors(t testing.TB, env *tensor.Env, path string) map[string]*tensor.Tensor {
	t.Helper()
	out := map[string]*tensor.Tensor{}
	for _, e := range entries(t, path) {
		out[e.Name] = read(t, env, &e)
	}
	return out
}

func entries(t testing.TB, path string) []safetensors.Entry {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Parse(data)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return f.Entries
}

func read(t testing.TB, env *tensor.Env, e *safetensors.Entry) *tensor.Tensor {
	t.Helper()
	switch data := e.Data(); e.DType {
	case "F32":
		v := make([]float32, len(data)/4)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		return tensor.From(env, v, e.Shape...)
	case "F64":
		v := make([]float64, len(data)/8)
		for i := range v {
			v[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
		}
		return tensor.From(env, v, e.Shape...)
	case "I64":
		v := make([]int64, len(data)/8)
		for i := range v {
			v[i] = int64(binary.LittleEndian.Uint64(data[8*i:]))
		}
		return tensor.From(env, v, e.Shape...)
	case "BOOL":
		v := make([]bool, len(data))
		for i := range v {
			v[i] = data[i] != 0
		}
		return tensor.From(env, v, e.Shape...)
	}
	t.Fatalf("%s: no reader for %s", e.Name, e.DType)
	return nil
}

// JSON reads a file into v.
func JSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// Close demands that got has want's shape, and its values within a tolerance as of testutil.Close.
func Close(t testing.TB, name string, got, want *tensor.Tensor, rtol, atol float64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is missing", name)
		return
	}
	if !got.SameShape(want) {
		t.Errorf("%s has shape %v, want %v", name, got.Shape(), want.Shape())
		return
	}
	ok := !t.Failed()
	testutil.Close(t, got.Floats(), want.Floats(), rtol, atol)
	if ok && t.Failed() {
		t.Logf("that was %s", name)
	}
}

// Shapes are those of the tensors of a safetensors file.
func Shapes(t testing.TB, path string) map[string][]int {
	t.Helper()
	out := map[string][]int{}
	for _, e := range entries(t, path) {
		out[e.Name] = e.Shape
	}
	return out
}
