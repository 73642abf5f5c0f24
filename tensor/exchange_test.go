package tensor_test

import (
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// dense is a matrix as gonum's package mat has them.
type dense struct {
	cols int
	v    []float64
}

func (d dense) Dims() (int, int)    { return len(d.v) / d.cols, d.cols }
func (d dense) At(i, j int) float64 { return d.v[i*d.cols+j] }

func TestFromMatrix(t *testing.T) {
	env := open(t)
	x := tensor.FromMatrix(env, dense{3, []float64{1, 2, 3, 4, 5, 6}})
	equal(t, "rows", x.Select(0, 1), 4, 5, 6)
}

func TestMoveKeepsTheKindOfContainer(t *testing.T) {
	env, other := open(t), open(t)
	type batch struct {
		X    *tensor.Tensor
		More map[string][]*tensor.Tensor
		Any  any
		N    int
		Next *batch
		same *tensor.Tensor
	}
	x := env.Full(2, 3)
	b := &batch{X: x, More: map[string][]*tensor.Tensor{"m": {x, nil, env.Ones(1)}}, Any: x, N: 4, same: x}
	b.Next = b
	m := tensor.Move(other, b)
	if m.N != 4 || m.Next != m || m.More["m"][0] != m.X || m.Any != any(m.X) || m.More["m"][1] != nil {
		t.Errorf("%+v", m)
	}
	if m.X.Env().Device() != other.Device() || b.X != x || x.Env().Device() != env.Device() {
		t.Error("the copy is there, the original stays")
	}
	equal(t, "moved", m.X.Add(m.More["m"][2]), 3, 3, 3)
}

func TestNullDeviceMarksReads(t *testing.T) {
	env, err := tensor.Fresh("null:a100-80")
	if err != nil {
		t.Fatal(err)
	}
	x := env.Randn(1000, 1000).MatMul(env.Ones(1000, 1000))
	if v := x.Mean().Item(); v != 0 {
		t.Errorf("Item gives %v", v)
	}
	if u := env.Device().Unknown(); len(u) != 1 {
		t.Errorf("reads of unknown values: %v", u)
	}
	fails(t, env, func() { tensor.Data[float32](x) }, "null:a100-80", "To(cpu)")
	if _, err := env.Try(func(e *tensor.Env) *tensor.Tensor { return e.Zeros(100<<10, 1<<20) }); err == nil {
		t.Error("400 GiB fit into 80")
	}
}

// TestNullDeviceNeedsTheSameMemory as the engine of the cards that it imitates, scratch memory and the cache included.
func TestNullDeviceNeedsTheSameMemory(t *testing.T) {
	figures := func(name string) tensor.Memory {
		env := fresh(t, name)
		w, table := tensor.NewParam(env.Randn(48, 32)), tensor.NewParam(env.Randn(300, 48))
		env.Device().ResetPeak()
		turn(env, 1, func(e *tensor.Env) {
			words := e.Arange(3000).Cast(dtype.F32).Scale(0.1).Cast(dtype.I64)
			x := table.Embedding(words.In(e)).MatMul(w)           // whose gradients sum over many rows
			x.GELU().Square().Mean(0).Softmax(0).Sum().Backward() // and a mean of few columns
		})
		m := env.Device().Memory()
		m.Collections = 0
		return m
	}
	t.Setenv("WARPLINE_SIM", "check=none") // checks leave gaps between blocks; on a machine that was not opened before
	if a, b := figures("null:a100-80"), figures("sim:a100-80x5"); a != b {
		t.Errorf("null needs %+v, the simulated card %+v", a, b)
	}
}
