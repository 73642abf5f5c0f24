package tensor_test

import (
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// count is the work of f on a device.
func count(env *tensor.Env, f func()) (device.Work, map[string]device.Work) {
	var tally device.Tally
	stop := env.Device().Observe(tally.Observe)
	f()
	stop()
	return tally.Work()
}

// TestTallyOfAStep counts by hand: two products forward, and for each the gradient of its weight, and for the second that of
// its input. Everything else is of elements.
func TestTallyOfAStep(t *testing.T) {
	const n, in, hidden, out = 5, 3, 4, 2
	for _, name := range []string{"cpu", "sim:0"} {
		env := fresh(t, name)
		w1, w2 := tensor.NewParam(env.Ones(in, hidden)), tensor.NewParam(env.Ones(hidden, out))
		x := env.Ones(n, in)
		var loss *tensor.Tensor
		forward, _ := count(env, func() { loss = x.MatMul(w1).ReLU().MatMul(w2).Sum() })
		want := device.Work{
			FLOPs:   2*n*in*hidden + n*hidden + 2*n*hidden*out + n*out,
			Read:    4 * (n*in + in*hidden + n*hidden + n*hidden + hidden*out + n*out),
			Written: 4 * (n*hidden + n*hidden + n*out + 1),
			Kernels: 4, Blocks: forward.Blocks, Fills: forward.Fills, Filled: forward.Filled,
			Allocs: forward.Allocs, Segments: forward.Segments, Modules: forward.Modules,
		}
		if name != "cpu" {
			want.Kernels = forward.Kernels // TestTallyIsWhatTheDriverLaunches
		}
		if forward != want || (forward.Blocks > 0) != (name != "cpu") || forward.Allocs < 4 {
			t.Errorf("%s: forward %+v, want %+v", name, forward, want)
		}
		_, ops := count(env, func() { loss.Backward() })
		if got, want := ops["matmul"].FLOPs, int64(2*n*in*hidden+2*2*n*hidden*out); got != want {
			t.Errorf("%s: products of Backward take %d operations, want %d", name, got, want)
		}
		if got, want := ops["matmul"].Written, int64(4*(in*hidden+hidden*out+n*hidden)); got != want {
			t.Errorf("%s: products of Backward write %d bytes, want %d", name, got, want)
		}
		all, _ := count(env, func() { tensor.From(env, []float64{1, 2, 3}, 3).Floats(); env.Sync() })
		waits := int64(2)
		if name == "cpu" {
			waits = 0
		}
		if all.Copies != 2 || all.Copied != 48 || all.Waits != waits || all.Kernels != 0 {
			t.Errorf("%s: a copy there and back: %+v", name, all)
		}
	}
}

// tallied are operations whose work is counted by hand: kernels and FLOPs on the CPU, of 6×4 numbers of 4 bytes.
var tallied = []struct {
	name          string
	run           func(x *tensor.Tensor)
	kernels       int64
	flops         int64
	read, written int64
}{
	{"nothing", func(*tensor.Tensor) {}, 0, 0, 0, 0},
	{"view", func(x *tensor.Tensor) { x.Reshape(4, 6).Permute(1, 0).Slice(0, 1, 3) }, 0, 0, 0, 0},
	{"add", func(x *tensor.Tensor) { x.Add(x) }, 1, 24, 192, 96},
	{"broadcast", func(x *tensor.Tensor) { x.Add(x.Slice(0, 0, 1)) }, 1, 24, 96 + 16, 96},
	{"in place", func(x *tensor.Tensor) { x.AddInPlace(x) }, 1, 24, 192, 96},
	{"cast", func(x *tensor.Tensor) { x.Cast(dtype.F64) }, 1, 0, 96, 192},
	{"sum", func(x *tensor.Tensor) { x.Sum() }, 1, 24, 96, 4},
	{"rows", func(x *tensor.Tensor) { x.Sum(1) }, 1, 24, 96, 24},
	{"product", func(x *tensor.Tensor) { x.MatMul(x.Reshape(4, 6)) }, 1, 2 * 6 * 4 * 6, 192, 144},
	{"linear", func(x *tensor.Tensor) { x.Linear(x, nil) }, 1, 2 * 6 * 4 * 6, 192, 144},
	{"gelu", func(x *tensor.Tensor) { x.GELU() }, 1, 5 * 24, 96, 96},
	{"made", func(x *tensor.Tensor) { x.Env().Ones(10) }, 1, 0, 0, 40},
	{"empty", func(x *tensor.Tensor) { x.Slice(0, 0, 0).Add(x.Slice(0, 0, 0)) }, 1, 0, 0, 0},
}

func TestTallyOfOperations(t *testing.T) {
	cpu, sim, plan := fresh(t, "cpu"), fresh(t, "sim:0"), fresh(t, "null:a100-80")
	for _, c := range tallied {
		on := func(env *tensor.Env) device.Work {
			x := env.Ones(6, 4)
			w, _ := count(env, func() { c.run(x) })
			w.Allocs, w.Segments, w.Modules = 0, 0, 0
			return w
		}
		got, want := on(cpu), device.Work{Kernels: c.kernels, FLOPs: c.flops, Read: c.read, Written: c.written}
		if got != want {
			t.Errorf("%s on the CPU: %+v, want %+v", c.name, got, want)
		}
		card := on(sim)
		if card.FLOPs != c.flops || card.Read != c.read || card.Written != c.written {
			t.Errorf("%s on a card: %+v, want %+v", c.name, card, want)
		}
		if dry := on(plan); dry != card {
			t.Errorf("%s in a dry run: %+v, on the card %+v", c.name, dry, card)
		}
	}
}

// TestTallyIsWhatTheDriverLaunches compares with the calls of the driver: kernels, their blocks, fills and their bytes.
func TestTallyIsWhatTheDriverLaunches(t *testing.T) {
	api := simulated(t, simcuda.Config{}).API()
	var calls device.Work
	launch, fill := api.LaunchKernelEx, api.MemsetD8Async
	api.LaunchKernelEx = func(c *driver.LaunchConfig, f driver.Function, params []byte) driver.Result {
		calls.Kernels++
		calls.Blocks += int64(c.Grid[0]) * int64(c.Grid[1]) * int64(c.Grid[2])
		return launch(c, f, params)
	}
	api.MemsetD8Async = func(p driver.Ptr, v uint8, n int64, s driver.Stream) driver.Result {
		calls.Fills++
		calls.Filled += n
		return fill(p, v, n, s)
	}
	env, err := openDriver(api)
	if err != nil {
		t.Fatal(err)
	}
	model := &struct {
		Table *nn.Embedding
		Body  nn.Sequential
	}{nn.NewEmbedding(env, 11, 6), nn.Sequential{nn.NewLayerNorm(env, 6), nn.NewAttention(env, 6, nn.AttentionConfig{Heads: 2, Causal: true}), nn.NewLinear(env, 6, 11)}}
	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{Clip: 1})
	for step := range 3 {
		labels := tensor.From(env, []int64{1, 10, 3, 0, 7, 7}, 2, 3)
		calls = device.Work{}
		work, ops := count(env, func() {
			nn.CrossEntropy(model.Body.Forward(model.Table.Forward(labels)).Reshape(6, 11), labels.Reshape(6)).Backward()
			opt.Step()
		})
		got := device.Work{Kernels: work.Kernels, Blocks: work.Blocks, Fills: work.Fills, Filled: work.Filled}
		if got != calls || got.Kernels < 20 || got.Fills == 0 {
			t.Errorf("step %d: counted %+v, the driver was asked for %+v", step, got, calls)
		}
		var sum device.Work
		for _, op := range ops {
			sum.Kernels += op.Kernels
			sum.FLOPs += op.FLOPs
		}
		if sum.Kernels != work.Kernels || sum.FLOPs != work.FLOPs {
			t.Errorf("step %d: by operation %+v, in all %+v", step, sum, work)
		}
	}
}
