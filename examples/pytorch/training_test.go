package pytorch

import (
	"math/rand/v2"
	"testing"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/idx"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// "Gradients and modes"
func TestGradients(t *testing.T) {
	env := fresh(t, "cpu")
	model := nn.NewLinear(env, 3, 4)
	p := model.Weight
	x := env.Randn(2, 3).RequireGrad()
	loss := model.Forward(x).Sum()
	y := model.Forward(x).Square().Sum()
	f := func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Tanh() }
	g := func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Tanh().Square().Sum() }
	xs := []*tensor.Tensor{x}

	// `x.requires_grad_()` | a new handle
	use(x.RequireGrad())
	// `loss.backward(retain_graph=True)` | `loss.Backward()` otherwise
	loss.BackwardRetain()
	// `p.grad`
	use(p.Grad())
	// `p.grad = None`
	p.DropGrad()
	// `torch.autograd.grad(loss, x)`
	use(tensor.Grad(loss, x)[0])
	// `torch.autograd.grad(y, x, create_graph=True)`
	use(tensor.GradGraph(y, x)[0])
	// `torch.autograd.functional.vjp(f, x, v)`, `torch.autograd.functional.jvp(f, x, v)` | `f` takes and gives values; operands and
	// directions are lists
	y1, back := tensor.VJP(f, xs, f(x))
	y2, along := tensor.JVP(f, xs, xs)

	use(y1, back[0], y2, along)
	// `torch.autograd.functional.hvp(g, x, v)`
	total, curved := tensor.HVP(g, xs, xs)

	use(total, curved[0])
	// `torch.autograd.functional.jacobian(f, x)`, `torch.autograd.functional.hessian(g, x)` | of several operands a list, and a list of
	// lists
	use(tensor.Jacobian(f, x)[0], tensor.Hessian(g, x)[0][0])
	// `with torch.no_grad():` | the mode travels with `x`
	use(x.In(env.NoGrad()))
	// `model.eval()` | or `nn.EvalMode(model)`, of a part
	use(x.In(env.Eval()))
	// `with torch.autocast("cuda", torch.bfloat16):`, `with torch.amp.autocast("cuda", torch.bfloat16):` | or give that env to `data.Batches`; PyTorch's CUDA lists on every
	// device: [each operation's dtype](../tensor/testdata/autocast.txt) is compared
	use(x.In(env.Autocast(dtype.BF16)))
	// `torch.set_float32_matmul_precision("high")` | or give that env to `data.Batches`; on every device, with TF32's rounding
	use(x.In(env.Products(tensor.High)))
	// `with torch.autocast("cpu", torch.bfloat16):` | its CPU lists, on any device
	use(x.In(env.Autocast(dtype.BF16).CPULists()))
	// `torch.utils.checkpoint.checkpoint(model, x)` | a module; of all blocks of a model by
	// `env.Recompute(tensor.PartsOf(tensor.PartBlock))`
	use(nn.Recompute(model))
	// `torch.autograd.graph.save_on_cpu(pin_memory=True)` | what blocks keep; or give that env to `data.Batches`
	use(x.In(env.Offload()))
	// `torch.autograd.Function` | [guide](guide.md#10-define-an-operation-with-its-own-gradient)
	use(tensor.Func{})
	// `torch.autograd.set_detect_anomaly(True)` | forward and updates of optimizers too, infinities too; the error names the
	// operation and its line
	use(env.DetectAnomaly(nil))
}

// "Gradients and modes"
func TestHooks(t *testing.T) {
	env := fresh(t, "cpu")
	model := nn.NewLinear(env, 3, 4)
	p := model.Weight
	seen := func(path string, layer any, y *tensor.Tensor) {}
	f := func(in []*tensor.Tensor) *tensor.Tensor { return in[0].Tanh().Sum() }

	// `model.register_forward_hook(f)`, `torch.nn.modules.module.register_module_forward_hook(f)` | a function of path, layer
	// and result, for all modules of a model; it sees results and does not replace them
	stop := nn.OnForward(model, seen)

	stop()
	// `p.register_hook(f)`
	p.OnGrad(func(g *tensor.Tensor) *tensor.Tensor { return g.Clamp(-1, 1) })
	// `p.register_post_accumulate_grad_hook(f)`
	p.AfterGrad(func(p *tensor.Tensor) { p.DropGrad() })
	// `torch.autograd.gradcheck(f, (x,))`
	use(tensor.GradCheck(f, []*tensor.Tensor{env.Randn(3).Cast(dtype.F64)}, tensor.GradCheckConfig{}))
}

// "Training"
func TestOptimizers(t *testing.T) {
	env := fresh(t, "cpu")
	model := nn.NewLinear(env, 4, 3)
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1, Momentum: 0.9})
	loss := model.Forward(env.Ones(1, 4)).Sum()
	loss.Backward()

	// `optim.SGD(params, 0.1, momentum=0.9)`
	use(optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1, Momentum: 0.9}))
	// `optim.Adam(params)`, `optim.AdamW(params)`
	use(optim.NewAdam(nn.Params(model), optim.AdamWConfig{LR: 1e-3}), optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-3}))
	// `nn.utils.clip_grad_norm_(params, 1)` | the norm before; it waits for the device
	use(optim.AdamWConfig{Clip: 1}, opt.Step().Norm())
	// `opt.step(); opt.zero_grad()` | it lets go of the gradients
	opt.Step()
	// `opt.zero_grad()` without a step
	opt.Discard()
	// `opt.param_groups`, parameter groups | any function of path and parameter
	use(optim.AdamWConfig{Rule: optim.DecayMatricesOnly})
	// `group["lr"] = 1e-4`
	opt.SetLR(1e-4)
}

// "Training"
func TestMoreOptimizers(t *testing.T) {
	model := nn.NewLinear(fresh(t, "cpu"), 4, 3)

	// `optim.Adam(params, amsgrad=True)`, `optim.AdamW(params, maximize=True)`
	use(optim.NewAdam(nn.Params(model), optim.AdamWConfig{AMSGrad: true}), optim.NewAdamW(nn.Params(model), optim.AdamWConfig{Maximize: true}))
	// `optim.RMSprop(params, momentum=0.9)`, `optim.Adagrad(params)`, `optim.Adadelta(params)`
	use(optim.NewRMSprop(nn.Params(model), optim.RMSpropConfig{Momentum: 0.9}))
	use(optim.NewAdagrad(nn.Params(model), optim.AdagradConfig{}), optim.NewAdadelta(nn.Params(model), optim.AdadeltaConfig{}))
	// `optim.NAdam(params)`, `optim.RAdam(params)`, `optim.Adamax(params)`
	use(optim.NewNAdam(nn.Params(model), optim.MomentsConfig{}), optim.NewRAdam(nn.Params(model), optim.MomentsConfig{}))
	use(optim.NewAdamax(nn.Params(model), optim.MomentsConfig{}))
	// `optim.Rprop(params, etas=(0.5, 1.2))` | a zero field is PyTorch's default
	use(optim.NewRprop(nn.Params(model), optim.RpropConfig{Less: 0.5, More: 1.2}))
	// `optim.ASGD(params, t0=1000)` | `Averaged` calls a function with the averages, PyTorch's `ax`, in the parameters' place
	polyak := optim.NewASGD(nn.Params(model), optim.ASGDConfig{T0: 1000})
	polyak.Averaged(func() { model.Forward(model.Weight.Env().Ones(1, 4)) })
	// `optim.Adafactor(params)`
	use(optim.NewAdafactor(nn.Params(model), optim.AdafactorConfig{}))
	// `optim.LBFGS(params, line_search_fn="strong_wolfe")`, `opt.step(closure)` | it calls Backward itself
	closest := optim.NewLBFGS(nn.Params(model), optim.LBFGSConfig{Wolfe: true})
	closest.Minimize(func(e *tensor.Env) *tensor.Tensor { return model.Forward(e.Ones(1, 4)).Square().Sum() })

	// `optim.Muon(matrices)` with `optim.AdamW(others)` | products in float32, PyTorch's are in bfloat16
	use(optim.NewMuon(nn.Params(model), optim.MuonConfig{LR: 0.02, Rest: optim.AdamWConfig{LR: 1e-3}}))
}

// "Training"
func TestAverages(t *testing.T) {
	model := nn.NewLinear(fresh(t, "cpu"), 4, 3)

	// `optim.swa_utils.AveragedModel(model, avg_fn=get_ema_avg_fn(0.999))` | `mean.Model` is the averaged model
	mean := nn.NewEMA(model, 0.999)
	mean.Update()

	// `optim.swa_utils.AveragedModel(model)`
	swa := nn.NewSWA(model)
	swa.Update()

	// `optim.swa_utils.update_bn(loader, swa_model)` | the function calls Forward with each batch, in an env that trains
	nn.UpdateBatchNorm(swa.Model, func() { swa.Model.Forward(model.Weight.Env().Ones(2, 4)) })

	// `optim.swa_utils.SWALR(opt, 0.05)` from a rate of 0.1
	use(optim.Cosine(0.1, 0.05, 10))
}

// "Training"
func TestGroups(t *testing.T) {
	model := nn.NewLinear(fresh(t, "cpu"), 4, 3)
	rule := func(path string, p *tensor.Tensor, r *optim.Rates) { r.Group = 1 }
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1, Rule: rule})

	// `lr_scheduler.LambdaLR(opt, [f, g])`, a rate for each group | groups are numbers that a `Rule` gives: `optim.Rates.Group`
	opt.SetGroupLR(1, 1e-4)
}

// "Training"
func TestScaler(t *testing.T) {
	env := fresh(t, "cpu")
	model, second := nn.NewLinear(env, 4, 3), nn.NewLinear(env, 4, 3)
	opt, other := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1}), optim.NewSGD(nn.Params(second), optim.SGDConfig{LR: 0.1})
	x := env.Ones(1, 4).In(env.Autocast(dtype.F16))
	scaler := optim.NewLossScaler(optim.LossScalerConfig{})
	loss := model.Forward(x).Add(second.Forward(x)).Sum()

	// `amp.GradScaler()`, `scaler.get_scale()` | for `env.Autocast(dtype.F16)`; bfloat16 needs none
	use(optim.NewLossScaler(optim.LossScalerConfig{}), scaler.Scale())
	// `scaler.scale(loss).backward()`
	scaler.Backward(loss)
	// `scaler.unscale_(opt); scaler.step(opt); scaler.update()` | `Clip` and the norm of the report are of what is unscaled;
	// `ckpt.State{Scaler: scaler}` saves it
	scaler.Step(opt)

	other.Discard()
	scaler.Backward(model.Forward(x).Add(second.Forward(x)).Sum())
	// `scaler.step(opt); scaler.step(other); scaler.update()`
	scaler.StepAll(opt, other)
}

// "Training"
func TestSchedules(t *testing.T) {
	opt := optim.NewSGD(nn.Params(nn.NewLinear(fresh(t, "cpu"), 4, 3)), optim.SGDConfig{LR: 0.1})
	schedules := []optim.Schedule{optim.Constant(1), optim.Linear(1, 0, 10)}
	step, schedule := 0, optim.Warmup(5, optim.Constant(1e-3))
	f := func(step int) float64 { return 1 / float64(1+step) }

	// `lr_scheduler.LambdaLR(opt, f)`, `sched.step()` | before each step; any function of the step
	opt.SetLR(schedule(step))
	// `lr_scheduler.CosineAnnealingLR(opt, 100)`, `lr_scheduler.StepLR(opt, 30)` | functions of the step
	use(optim.Cosine(1e-3, 0, 100), optim.Stepwise(1e-3, 0.1, 30))
	// `lr_scheduler.MultiStepLR(opt, [30, 80])`, `lr_scheduler.ConstantLR(opt)`, `lr_scheduler.PolynomialLR(opt, 100)`
	use(optim.MultiStep(1e-3, 0.1, 30, 80), optim.ConstantFactor(1e-3, 1.0/3, 5), optim.Polynomial(1e-3, 1, 100))
	// `lr_scheduler.CosineAnnealingLR` beyond its steps, `lr_scheduler.CosineAnnealingWarmRestarts(opt, 10)` | `optim.Cosine`
	// stays at its end
	use(optim.CosineAnnealing(1e-3, 0, 100), optim.CosineRestarts(1e-3, 0, 10, 1))
	// `lr_scheduler.ExponentialLR(opt, 0.9)`, `lr_scheduler.LinearLR(opt, total_iters=10)`
	use(optim.Exponential(1e-3, 0.9), optim.Linear(1e-3/3, 1e-3, 10))
	// `lr_scheduler.LambdaLR(opt, f)`, `lr_scheduler.MultiplicativeLR(opt, f)`
	use(optim.Lambda(1e-3, f), optim.Multiplicative(1e-3, f))
	// `lr_scheduler.SequentialLR(opt, [warm, cosine], [10])` | a warm-up
	use(optim.Warmup(10, optim.Cosine(1e-3, 0, 100)), optim.WarmupCosine(1e-3, 0, 10, 100), optim.WarmupStableDecay(1e-3, 0, 10, 80, 10))
	// `lr_scheduler.OneCycleLR(opt, 0.1, total_steps=100)` | schedules of the rate and of the momentum, for `SetLR` and `SetMomentum` (of SGD, Adam and AdamW)
	rate, momentum := optim.OneCycle(optim.OneCycleConfig{Max: 0.1, Steps: 100})

	use(rate, momentum)
	// `lr_scheduler.CyclicLR(opt, 1e-3, 0.1)` | as of the one before
	rates, momenta := optim.Cyclic(optim.CyclicConfig{Base: 1e-3, Max: 0.1})

	use(rates, momenta)
	// `lr_scheduler.SequentialLR(opt, […], [20])`, `lr_scheduler.ChainedScheduler([…])` | what is chained is made for a rate of 1
	use(optim.Sequential(schedules, 20), optim.Chained(1e-3, schedules...))
	// `lr_scheduler.ReduceLROnPlateau(opt, patience=3)` | `opt.SetLR(plateau.Step(figure))`
	use(optim.NewPlateau(optim.PlateauConfig{Patience: 3}))
}

// "Training"
func TestData(t *testing.T) {
	x, y, prices := make([]float32, 12), make([]int64, 3), make([]float32, 3)
	train, other := data.InMemory(x, []int{4}, y), data.InMemory(x, []int{4}, y)
	w, classes, lengths, ragged := []float64{1, 2, 3}, y, []int{1, 2, 3}, [][]float32{{1}, nil, {2, 3}}
	env := fresh(t, "cpu")

	// `data.TensorDataset(x, y)` | shapes of an input and of a target, which is a number without one
	use(data.InMemory(x, []int{4}, y), data.InMemory(x, []int{4}, prices, 1))
	// `data.Subset(train, range(2))`, `data.Subset(train, [2, 0])`
	use(data.Subset(train, 0, 2), data.Select(train, []int{2, 0}))
	// `data.random_split(train, [2, 1])` | places drawn with a seed
	order := rand.New(rand.NewPCG(1, 2)).Perm(3)

	use(data.Select(train, order[:2]), data.Select(train, order[2:]))
	// `data.ConcatDataset([a, b])` | one after another, or by turns
	use(data.Concat(train, other), data.Interleave(train, other))
	// `data.WeightedRandomSampler(w, 8)` | `data.Config{Size: 2, Sampler: s}`; a run goes on in its middle with any sampler
	use(data.Weighted(w, 8, true))
	// `data.WeightedRandomSampler(w, 2, replacement=False)`
	use(data.Weighted(w, 2, false))
	// `data.SubsetRandomSampler(places)`, a `data.Sampler` of one's own
	use(data.Ordered(2, func(n int, r *rand.Rand) []int { return r.Perm(n)[:2] }))
	// `data.BatchSampler`, `batch_sampler=` | `data.Sampler` is an interface of two methods
	use(data.Stratified(classes), data.Grouped(classes), data.Bucketed(lengths), data.Streams())
	// `nn.utils.rnn.pad_sequence(x, batch_first=True)` as `collate_fn` | `b.X` with `b.Mask` and `b.Lengths`; in a source of
	// one's own `data.Ragged`
	use(data.Sequences(ragged, nil, 0, y))
	// `data.StackDataset(ids=x, price=y)`, a sample that is a dictionary | `b.Tensors["ids"]`
	use(data.Named{})
	// `data.DataLoader(train, 128, shuffle=True, drop_last=True)`
	use(data.Batches(env, train, data.Config{Size: 128, Shuffle: true, DropLast: true}))
	// `transform=`
	use(data.Map(train, func(b *data.Pair, row data.Row) error { return nil }))
	// `torchvision.datasets.MNIST` | the files are yours to fetch
	digits, err := idx.Open("images", "labels")

	if err == nil {
		t.Error("idx.Open reads files that are not there")
	}
	use(digits)
}

// "Training"
func TestLoop(t *testing.T) {
	env := fresh(t, "cpu")
	x, y := make([]float32, 12), make([]int64, 3)
	train, dir := data.InMemory(x, []int{4}, y), t.TempDir()
	model := nn.NewLinear(env, 4, 3)
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1})
	s := &ckpt.State{Model: model, Optimizer: opt}

	// `for x, y in loader:` | `b.X`, `b.Y`; what is computed from them ends with the turn
	for b, err := range data.Batches(env, train, data.Config{Size: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		nn.CrossEntropy(model.Forward(b.X), b.Y).Backward()
		opt.Step()
	}

	// `torch.save({"model": …, "optimizer": …}, path)` | [guide](guide.md#4-stop-resume-repeat): also the place in the data
	// and the random draws
	if _, err := ckpt.Save(dir, s); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ckpt.Latest(dir, s); err != nil {
		t.Error(err)
	}
}

// "Training"
func TestAccumulating(t *testing.T) {
	env := fresh(t, "cpu")
	model := nn.NewLinear(env, 4, 3)
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1})
	b := &data.Pair{Turn: data.Turn{Env: env}, X: env.Ones(8, 4), Y: env.RandInt(0, 3, 8)}

	// `(loss / 4).backward()`, 4 times a step | each by its share of the batch: `loss.Scale(mb.Fraction()).Backward()`;
	// [guide](guide.md#8-accumulate-gradients)
	for mb := range data.Split(b, 4) {
		loss := nn.CrossEntropy(model.Forward(mb.X), mb.Y)
		loss.Scale(mb.Fraction()).Backward()
	}

	if norm := opt.Step().Norm(); !(norm > 0) {
		t.Errorf("the gradients have norm %v", norm)
	}
}

// "Training"
func TestDevices(t *testing.T) {
	env := fresh(t, "cpu")
	q := env.NewQueue()
	step := func(b *data.Pair) *tensor.Tensor { return b.X.Mean() }

	// `with torch.cuda.stream(q):`, `torch.cuda.Stream()` | `x.In(env.On(q))`; joins are waited for
	use(env.On(q), env.NewQueue())
	// `torch.cuda.graph(g)`, `g.replay()` | `Run(b)`; a whole step, on any device: [guide](guide.md#11-capture-a-step)
	use(tensor.Capture(env, step))
	// `torch.cuda.synchronize()`
	env.Sync()
	// `torch.cuda.empty_cache()`
	use(env.Device().EmptyCache())
	// `PYTORCH_ALLOC_CONF`, `torch.cuda.memory._set_allocator_settings()` | or the variable `WARPLINE_ALLOC_CONF`:
	// [the same keys](gpu.md#what-runs-where); before the
	// first value
	use(env.Device().SetAllocConf("max_split_size_mb:64"))
	// `torch.cuda.set_per_process_memory_fraction(0.9)`
	use(env.Device().SetMemoryFraction(0.9))
	// `torch.cuda.memory_stats()`, `torch.cuda.memory_summary()` | the same names and counts
	use(env.Device().MemoryStats(), env.Device().MemorySummary())
	// `torch.cuda.is_available()`, `torch.cuda.device_count()` | the CPU is among them
	use(len(tensor.Devices()) > 1, len(tensor.Devices()))
	// `torch.cuda.get_device_name()`, `torch.cuda.get_device_properties()`, `torch.cuda.get_device_capability()`
	use(env.Device().Properties().Model, env.Device().Properties(), env.Device().Properties().Compute)
	// `torch.cuda.mem_get_info()` | what values may have, and all that there is
	use(env.Device().Available(), env.Device().Properties().Memory)
	// `torch.cuda.memory_reserved()`, `torch.cuda.max_memory_reserved()`
	use(env.Device().Memory().Reserved.Current, env.Device().Memory().Reserved.Peak)
	// `torch.cuda.reset_peak_memory_stats()`, `torch.cuda.reset_accumulated_memory_stats()`
	env.Device().ResetPeak()
	env.Device().ResetMemoryStats()

	// `torch.cuda.manual_seed(7)`, `torch.cuda.manual_seed_all(7)` | the numbers are the same on every device
	use(env.Seed(7))
	// `torch.cuda.memory_allocated()`, `torch.cuda.max_memory_allocated()` | of any device; what tensors hold, unrounded
	use(env.Device().Memory().Used, env.Device().Memory().Peak)
}

// TestCapturedStep is the captured step of the row above.
func TestCapturedStep(t *testing.T) {
	env := fresh(t, "cpu")
	step := func(b *data.Pair) *tensor.Tensor { return b.X.Mean() }
	captured := tensor.Capture(env, step)
	for i := range 3 {
		if got := captured.Run(&data.Pair{X: env.Full(float64(i), 2)}).Item(); got != float64(i) {
			t.Errorf("run %d gives %v", i, got)
		}
	}
}

// "Training"
func TestTry(t *testing.T) {
	env := fresh(t, "cpu")

	// `except RuntimeError as e:` | with the shapes, what to do, and the line of yours
	y, err := env.Try(func(env *tensor.Env) *tensor.Tensor { return env.Ones(2).Add(env.Ones(3)) })

	use(y)
	if err == nil {
		t.Error("shapes 2 and 3 were added")
	}
}
