package pytorch

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// "Models"
func TestModuleMethods(t *testing.T) {
	env := fresh(t, "cpu")
	model := nn.NewLinear(env, 4, 3)
	x := env.Randn(2, 4)

	// `model(x)`, `model.forward(x)`
	use(model.Forward(x), model.Forward(x))
	// `model.get_parameter("weight")`, `model.get_buffer("mean")`, `model.get_submodule("fc")` | fields of the struct
	use(model.Weight)
	// `model.modules()`, `model.named_modules()`, `model.children()`, `model.named_children()` | path, kind, shape and parameters of
	// each; to do something to one, name its field
	use(nn.Summary(model, 1, 4).Rows)
	// `model.training` | a mode of the env that values are made in
	use(env.Training())
	// `model.share_memory()` | for other goroutines: they see whole updates only
	use(nn.Publish(model))
}

// "Training"
func TestState(t *testing.T) {
	env := fresh(t, "cpu")
	model := nn.NewLinear(env, 4, 3)
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1, Momentum: 0.9})
	scaler := optim.NewLossScaler(optim.LossScalerConfig{})
	plateau := optim.NewPlateau(optim.PlateauConfig{})

	// `opt.state_dict()`, `opt.state` | iterators of path and value; a whole run by `ckpt.Save`
	use(opt.State(), opt.Counters())
	// `opt.load_state_dict(saved)`
	use(opt.Load(maps.Collect(opt.State()), opt.Counters()))
	// `sched.get_last_lr()`, `sched.get_lr()`, `sched.last_epoch` | schedules are functions of the step and keep nothing
	use(opt.LR())
	// `sched.state_dict()`, `sched.load_state_dict(saved)` | of `Plateau`, which alone has a state
	use(plateau.State(), plateau.Load(plateau.State()))
	// `amp.GradScaler(init_scale=1024., growth_factor=2., backoff_factor=0.5, growth_interval=100)`
	use(optim.NewLossScaler(optim.LossScalerConfig{Init: 1024, Growth: 2, Backoff: 0.5, Interval: 100}))
	// `scaler.state_dict()`, `scaler.load_state_dict(saved)`
	use(scaler.State(), scaler.Load(scaler.State()))
	// `optim.AdamW(params, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)` | a zero field is PyTorch's default
	use(optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}))
	// `optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)` | without `dampening`
	use(optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1, Momentum: 0.9, WeightDecay: 1e-4, Nesterov: true}))
}

// squares is a data set of numbers and their squares.
type squares struct{ n int }

func (s squares) Len() int { return s.n }

func (s squares) Fields() []data.Field {
	return []data.Field{{DType: dtype.F32, Shape: []int{1}}, {DType: dtype.F32, Shape: []int{1}}}
}

func (s squares) Fill(_ *data.Pair, row data.Row, i int) error {
	data.Values[float32](row, 0)[0] = float32(i)
	data.Values[float32](row, 1)[0] = float32(i * i)
	return nil
}

// "Training"
func TestSources(t *testing.T) {
	env := fresh(t, "cpu")

	// `class Squares(data.Dataset):` | any type with these three methods
	use(squares{n: 8})
	// `data.RandomSampler(train)`, `data.SequentialSampler(train)`, `data.RandomSampler(train, replacement=True)`
	use(data.Config{Size: 2, Shuffle: true}, data.Config{Size: 2}, data.Config{Size: 2, Draw: true})
	// `data.DataLoader(train, 4, num_workers=4, prefetch_factor=2)` | `Workers` and `Prefetch` are chosen unless given; memory of
	// transfers is pinned by itself, workers are goroutines
	use(data.Batches[data.Pair](env, squares{n: 8}, data.Config{Size: 4, Workers: 4, Prefetch: 2}))
	// `data.default_collate` | of values that are not batched yet
	use(tensor.Stack(0, env.Ones(3), env.Ones(3)))
}

// "Gradients and modes"
func TestModes(t *testing.T) {
	env := fresh(t, "cpu")
	x := env.Randn(2, 3)

	// `with torch.inference_mode():`, `with torch.enable_grad():`
	use(x.In(env.NoGrad()), x.In(env.Grad()))
	// `torch.is_grad_enabled()`, `torch.is_inference_mode_enabled()`
	use(env.Recording(), !env.Recording())
	// `torch.get_rng_state()`, `torch.initial_seed()` | draws are numbered: the env's seed and number are the whole state
	use(env.Draws())
	// `torch.set_rng_state(state)`
	env.SetDraws(12)
	// `torch.promote_types(torch.int64, torch.float32)`, `torch.result_type(x, y)`
	use(dtype.Promote(dtype.I64, dtype.F32), dtype.Promote(x.DType(), x.DType()))
}

// "Training"
func TestDeviceModes(t *testing.T) {
	env := fresh(t, "cpu")
	f := func(env *tensor.Env) {}

	// `torch.device("cuda:1")`, `torch.cuda.set_device(1)`, `with torch.cuda.device(1):` | there is no current device: an env is of
	// one, and values stay where they are
	second, err := tensor.Open("cuda:1")

	_, _ = second, err
	// `torch.cuda.set_sync_debug_mode("warn")` | waits of the host, with the line of each
	use(env.Device().Syncs())
	// `torch.cuda.is_current_stream_capturing()`
	use(tensor.Capturing())
	// `torch.cuda.nvtx.range("part")` | a name for tables, traces and Nsight
	prof.Range(env, "part", f)
	// `torch.cuda.nvtx.range_push("part")`, `torch.cuda.nvtx.range_pop()` | what is made in `inner` belongs to the part
	inner, end := env.Range("part")

	end()
	use(inner)
	// `torch.cuda.memory._record_memory_history()` | of every device, with lines
	history := prof.NewHistory(prof.HistoryConfig{})

	// `torch.cuda.memory._dump_snapshot("snapshot.pickle")` | of an env that `env.Profiled(history)` gives; PyTorch's viewer opens it
	use(history.WriteSnapshot)
	history.Stop()
}

// "Not here: write instead"
func TestNearestTraining(t *testing.T) {
	env := fresh(t, "cpu")
	model := nn.NewLinear(env, 4, 3)
	step := func(b *data.Pair) *tensor.Tensor { return nn.MSE(model.Forward(b.X), b.Y) }
	v := env.Randn(12)

	// `torch.cuda.Event(enable_timing=True)` | the device is waited for at both ends; without waiting by a profile: `prof.New`
	env.Sync()
	start := time.Now()
	env.Sync()
	elapsed := time.Since(start)

	use(elapsed)
	// `torch.compile(step)`, `model.compile()` | not made from the program: a step is recorded, and launched as one
	use(tensor.Capture(env, step))
	// `nn.utils.vector_to_parameters(v, params)` | of each parameter its slice
	use(model.Weight.CopyInPlace(v.Slice(0, 0, 12).Reshape(3, 4)))
	// `x.pin_memory()` | values on their way to the device, before there is a tensor of them
	use(tensor.Stage(env, []float32{1, 2}, 2))
	// `x.data`, `x.grad_fn`, `x.is_leaf` | the value without its graph; whether there is one
	use(v.Detach())
	use(v.Recorded())
	// `x.is_cuda`, `x.get_device()` | `"cpu"`, `"cuda:0"`, `"sim:0"`
	use(v.Env().Device().Name())
	// `nn.Transformer(8, 2)` | its two halves
	use(nn.NewTransformerEncoder(env, 2, 8, nn.TransformerConfig{Heads: 2}), nn.NewTransformerDecoder(env, 2, 8, nn.TransformerConfig{Heads: 2}))
}

// "Shapes and indices"
func TestWriting(t *testing.T) {
	env := fresh(t, "cpu")
	x, v := env.Randn(2, 3), env.Randn(3)

	// `x[0] = v`, `x[0, 1] = 5`, `x[mask] = 9` | views are written through
	use(x.Select(0, 0).CopyInPlace(v), x.Select(0, 0).Select(0, 1).FillInPlace(5), x.CopyInPlace(x.MaskedFill(x.GtScalar(0), 9)))
}

// "Not here: write instead"
func TestNearestMore(t *testing.T) {
	env := fresh(t, "cpu")
	x, y := pattern(env, 7, 0, 13, 2, 3), pattern(env, 3, 1, 7, 2, 3)
	a, v := pattern(env, 5, 2, 9, 2, 3), pattern(env, 3, 0, 5, 3)
	grid := tensor.Meshgrid(v, v)
	c := x.Sub(x.Mean(1).Unsqueeze(1))
	unit := c.Div(c.Norm(1).Unsqueeze(1))

	// `torch.cartesian_prod(v, v)`
	use(tensor.Stack(1, grid[0].Flatten(0), grid[1].Flatten(0)))
	// `x.corrcoef()` | of rows
	use(unit.MatMul(unit.Transpose(0, 1)))
	// `x.renorm(2, 0, 1)` | of rows
	use(x.Div(x.Norm(1).Clamp(1, math.Inf(1)).Unsqueeze(1)))
	// `torch.cumulative_trapezoid(x)`
	use(x.Slice(1, 1, 3).Add(x.Slice(1, 0, 2)).Scale(0.5).CumSum(1))
	// `torch.histc(x, bins=4, min=-5, max=5)` | counts between bounds; what is equal to the last one is not counted
	use(x.Flatten(0).Bucketize(env.Linspace(-5, 5, 5), true).BinCount(nil, 6).Slice(0, 1, 5))
	// `F.triplet_margin_with_distance_loss(a, x, y)` | with any distance
	use(nn.PairwiseDistance(a, x, 2, 1e-6).Sub(nn.PairwiseDistance(a, y, 2, 1e-6)).AddScalar(1).Clamp(0, math.Inf(1)).Mean())
	// `nn.utils.prune.l1_unstructured(m, "weight", 0.5)`, `nn.utils.prune.custom_from_mask(m, "weight", mask)` | a mask, a buffer of the
	// layer, that `Forward` multiplies with
	use(x.Mul(x.Abs().Gt(x.Abs().Mean()).Cast(dtype.F32)))
}
