package examples

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/idx"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// use takes values that only have to exist.
func use(...any) {}

// The functions below run what docs/pytorch.md says on the right-hand side. TestPyTorchTable finds each there.

func TestPyTorchMaking(t *testing.T) {
	env := fresh(t, "cpu")
	gpu := fresh(t, "null:a100-80")
	x := tensor.From(env, []float32{1, 2, 3, 4}, 2, 2)
	use(env.Zeros(2, 3), env.Ones(2, 3), env.Full(7, 2, 3), env.FullOf(dtype.I64, 7, 2, 3), x.ZerosLike(), x.FullLike(1))
	use(env.Arange(5), env.Rand(2, 3), env.Randn(2, 3), env.RandInt(0, 10, 2, 3), tensor.Best().Seed(7))
	use(x.Shape(), x.Dim(0), x.DType(), x.Size(), x.Env().Device())
	use(x.Sum().Item(), x.Floats(), tensor.Data[float32](x))
	use(x.To(gpu), x.Cast(dtype.F64), x.Cast(dtype.F8E4M3), x.Cast(dtype.F8E5M2), x.Clone(), x.Detach(), x.Contiguous())
}

func TestPyTorchShapes(t *testing.T) {
	env := fresh(t, "cpu")
	x, y := env.Randn(2, 3), env.Randn(2, 3)
	idx, rows := env.RandInt(0, 3, 2, 3), env.RandInt(0, 2, 4)
	use(x.Reshape(3, -1), x.Flatten(0), x.Transpose(0, 1), x.Permute(1, 0), x.Unsqueeze(0), x.Squeeze(), x.Expand(4, 2, 3))
	use(x.Select(0, -1), x.Slice(1, 1, 3), x.SliceStep(1, 0, 3, 2), x.Split(1, 1, 2))
	use(tensor.Cat(0, x, y), tensor.Stack(0, x, y), x.Pad(1, 1, 1, 0))
	use(x.Gather(1, idx), x.IndexSelect(0, rows), x.ScatterAdd(1, idx, y), tensor.Where(x.Gt(y), x, y))
}

func TestPyTorchMath(t *testing.T) {
	env := fresh(t, "cpu")
	x, y, w := env.Randn(2, 3), env.Randn(2, 3), env.Randn(3, 4)
	use(x.Add(y), x.Sub(y), x.Mul(y), x.Div(y), x.Scale(2), x.AddScalar(1), x.Neg(), x.MatMul(w))
	use(x.PowScalar(3), x.Square(), x.Exp(), x.Log(), x.Sqrt(), x.Abs(), x.Clamp(0, 1), x.Maximum(y))
	use(x.Gt(y), x.Le(y), x.Eq(y), x.Gt(y).And(y.Gt(x)), x.Gt(y).Not())
	use(x.Sum(), x.Sum(1), x.Sum(1).Unsqueeze(1), x.Mean(0, 1), x.Max(1), x.ArgMax(1), x.Var(0, 1), x.Var(0, 1).Sqrt())
	use(x.CumSum(1), x.LogSumExp(1), x.Norm(), x.FloorDiv(y), x.Rem(y), x.Gt(y).Any(), x.Gt(y).All())
	use(x.AddInPlace(y), x.ScaleInPlace(2), x.LerpInPlace(y, 0.1), x.CopyInPlace(y), x.FillInPlace(0), x.ClampInPlace(0, 1))
}

func TestPyTorchFunctional(t *testing.T) {
	env := fresh(t, "cpu")
	x, w, img, k := env.Randn(2, 3), env.Randn(4, 3), env.Randn(1, 2, 4, 4), env.Randn(5, 2, 3, 3)
	ids, q, gain := env.RandInt(0, 4, 6), env.Randn(1, 2, 3, 4), env.Ones(3)
	use(x.ReLU(), x.GELU(), x.GELUTanh(), x.SiLU(), x.Softsign(), x.Mish(), x.Sigmoid(), x.Tanh(), x.Softmax(-1), x.LogSoftmax(-1), x.Dropout(0.5))
	use(x.Linear(w, nil), img.Conv2d(k, nil, tensor.Conv{Padding: [2]int{1, 1}}), img.MaxPool2d(tensor.Pool{Kernel: [2]int{2, 2}}))
	use(x.LayerNorm(gain, nil, 1e-5), w.Embedding(ids), tensor.Attention(q, q, q, tensor.Mask{Causal: true}))
	b, f := env.Zeros(4), env.Randn(2, 3)
	s, y := x.AddLayerNorm(f, gain, gain, 1e-5)
	use(x.LinearAct(w, b, tensor.ActGELUTanh), s, y)
	qkv := env.Randn(1, 2, 3, 2, 4) // batch, positions, q k v, heads, width
	use(tensor.SelfAttention(qkv, tensor.Mask{Causal: true}))
	logits, labels := env.Randn(6, 4), env.RandInt(0, 4, 6)
	use(nn.CrossEntropy(logits, labels), nn.CrossEntropy(logits, labels, nn.Smoothing(0.1), nn.Ignore(0)))
	use(nn.CrossEntropy(logits, labels, nn.Summed()), nn.CrossEntropy(logits, labels, nn.Unreduced()))
	labels = env.RandInt(0, 4, 2)
	use(nn.LinearCrossEntropy(x, w, labels))
	use(nn.MSE(x, x.ZerosLike()), nn.BCEWithLogits(x, x.ZerosLike()))
}

func TestPyTorchLosses(t *testing.T) {
	env := fresh(t, "cpu")
	x, y, a, v := env.Randn(6, 4), env.Rand(6, 4), env.Randn(6, 4), env.Rand(6, 4)
	logits, labels, w := env.Randn(6, 4), env.RandInt(0, 4, 6), env.Rand(4)
	p, logp := y.Softmax(-1), logits.LogSoftmax(-1)
	sign := x.Sign()
	signs := sign.Select(1, 0)
	use(nn.CrossEntropy(logits, labels, nn.ClassWeights(w)), nn.CrossEntropy(logits, p), nn.NLL(logp, labels, nn.ClassWeights(w)))
	use(nn.BCEWithLogits(x, y, nn.Weights(v), nn.PosWeight(w)), nn.BCE(p, y), nn.Focal(x, y, 0.25, 2))
	use(nn.L1(x, y), nn.SmoothL1(x, y, 1), nn.Huber(x, y, 1), nn.KLDiv(logp, p, nn.BatchMean()), nn.KLDiv(logp, logp, nn.LogTargets()))
	use(nn.GaussianNLL(x, y, v, nn.GaussianNLLConfig{}), nn.PoissonNLL(x, y, nn.PoissonNLLConfig{}))
	use(nn.Hinge(x, sign, 1), nn.SoftMargin(x, sign), nn.MarginRanking(x, y, sign, 0), nn.MultiMargin(logits, labels, nn.MultiMarginConfig{}))
	use(nn.TripletMargin(a, x, y, nn.TripletConfig{}), nn.PairwiseDistance(x, y, 2, 1e-6))
	use(nn.CosineEmbedding(x, y, signs, 0), nn.CosineSimilarity(x, y, -1, 1e-8))
}

func TestPyTorchLayers(t *testing.T) {
	env := fresh(t, "cpu")
	x, img := env.Randn(2, 8), env.Randn(2, 8, 4, 4)
	for _, m := range []nn.Module{nn.NewGroupNorm(env, 2, 8), nn.NewInstanceNorm(env, 8, nn.InstanceNormConfig{Affine: true, Track: true}), nn.Dropout2d{P: 0.1}} {
		use(m.Forward(img))
	}
	for _, m := range []nn.Module{
		nn.NewPReLU(env, 8), nn.LeakyReLU{}, nn.ELU{}, nn.CELU{}, nn.SELU{}, nn.Softplus{}, nn.LogSigmoid{}, nn.Mish{}, nn.Softsign{}, nn.Tanhshrink{},
		nn.Hardswish{}, nn.Hardsigmoid{}, nn.Hardtanh{}, nn.ReLU6{}, nn.Threshold{Bound: 0.1, Value: 20}, nn.Hardshrink{}, nn.Softshrink{},
		nn.LogSoftmax{}, nn.Softmin{}, nn.Identity{}, nn.GLU{}, nn.GLU{Gate: nn.SiLU{}}, nn.GLU{Gate: nn.GELU{}}, nn.AlphaDropout{P: 0.1},
	} {
		use(m.Forward(x))
	}
	model := nn.NewLinear(env, 8, 8)
	w, k := model.Weight, nn.NewParam(env.Zeros(4, 4, 3, 3))
	nn.InitKaimingNormal(w, nn.Kaiming{})
	nn.InitKaimingUniform(w, nn.Kaiming{Activation: "relu", FanOut: true})
	nn.InitXavierUniform(w, 1)
	nn.InitXavierNormal(w, nn.Gain("tanh", 0))
	nn.InitUniform(w, -1, 1)
	nn.InitNormal(w, 0, 0.02)
	nn.InitTruncNormal(w, 0, 0.02, -2, 2)
	nn.InitConstant(w, 0)
	nn.InitOrthogonal(w, 1)
	nn.InitEye(w)
	nn.InitDirac(k, 1)
	nn.InitSparse(w, 0.1, 0.01)
	nn.Cast(model, dtype.BF16)
}

func TestPyTorchGradients(t *testing.T) {
	env := fresh(t, "cpu")
	model := nn.NewLinear(env, 3, 4)
	p := model.Weight
	x := env.Randn(2, 3).RequireGrad()
	model.Forward(x).Sum().Backward()
	p.DropGrad()
	loss := model.Forward(x).Sum()
	loss.BackwardRetain()
	use(p.Grad(), tensor.Grad(loss, x)[0])
	y := model.Forward(x).Square().Sum()
	use(tensor.GradGraph(y, x)[0])
	use(x.In(env.NoGrad()), x.In(env.Eval()), x.In(env.NoGrad().Eval()), x.In(env.Autocast(dtype.BF16)), x.In(env.Autocast(dtype.BF16).CPULists()), x.In(env.Products(tensor.High)))
	use(nn.EvalMode(model), nn.Frozen(model), nn.Recompute(model), env.Recompute(tensor.PartsOf(tensor.PartBlock)), x.In(env.Offload()))
	env.DetectAnomaly(nil)()
	seen := func(path string, layer any, y *tensor.Tensor) {}
	stop := nn.OnForward(model, seen)
	stop()
	p.OnGrad(func(g *tensor.Tensor) *tensor.Tensor { return g.Clamp(-1, 1) })
	nn.Freeze(model, true)
	f := func(in []*tensor.Tensor) *tensor.Tensor { return in[0].Tanh().Sum() }
	if err := tensor.GradCheck(f, []*tensor.Tensor{env.Randn(3).Cast(dtype.F64)}, tensor.GradCheckConfig{}); err != nil {
		t.Error(err)
	}
	use(tensor.Func{}, x.RequireGrad())
}

func TestPyTorchModels(t *testing.T) {
	env := fresh(t, "cpu")
	model := nn.Sequential{nn.NewLinear(env, 4, 3), nn.ReLU{}}
	use(nn.NewLinear(env, 4, 3), nn.NewLinearNoBias(env, 4, 3), nn.NewConv2d(env, 1, 8, 3, nn.ConvConfig{Padding: 1}))
	use(nn.NewConv2d(env, 1, 8, 3, nn.ConvConfig{NoBias: true}))
	use(nn.NewBatchNorm(env, 8), nn.NewLayerNorm(env, 8), nn.NewRMSNorm(env, 8), nn.NewEmbedding(env, 10, 8))
	use(nn.Dropout{P: 0.1}, nn.NewAttention(env, 8, nn.AttentionConfig{Heads: 2, Causal: true}))
	use(nn.MaxPool2d{Kernel: 2}, nn.GlobalAvgPool{}, nn.Flatten{}, nn.NewParam(env.Ones(3)), tensor.NewBuffer(env.Zeros(3)))
	use(nn.Params(model), nn.State(model), nn.Count(model), nn.Clone(model), nn.Summary(model, 1, 4))
	nn.Init(model, func(path string, p *tensor.Tensor) { p.FillInPlace(0.1) })
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := ckpt.SaveModel(path, model); err != nil {
		t.Fatal(err)
	}
	if err := ckpt.LoadModel(path, model); err != nil {
		t.Fatal(err)
	}
	net := struct {
		Body nn.Sequential `nn:"body"`
		Head *nn.Linear    `nn:"head"`
	}{model, nn.NewLinear(env, 8, 5)}
	if err := ckpt.SaveModel(path, net); err != nil {
		t.Fatal(err)
	}
	if err := ckpt.LoadModel(path, net); err != nil {
		t.Fatal(err)
	}
	net.Head = nn.NewLinear(env, 8, 3)
	if err := ckpt.LoadModel(path, net); err == nil {
		t.Error("the old head was loaded into the new one")
	}
	gpu := fresh(t, "null:a100-80")
	nn.To(gpu, model)
}

func TestPyTorchTraining(t *testing.T) {
	env := fresh(t, "cpu")
	model := nn.NewLinear(env, 4, 3)
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1, Momentum: 0.9})
	use(optim.NewAdam(nn.Params(model), optim.AdamWConfig{LR: 1e-3}), optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-3}))
	use(optim.AdamWConfig{Clip: 1}, optim.AdamWConfig{Rule: optim.DecayMatricesOnly})
	use(optim.Cosine(1e-3, 0, 100), optim.WarmupCosine(1e-3, 1e-4, 10, 100), optim.Stepwise(1e-3, 0.1, 30))
	use(optim.MultiStep(1e-3, 0.1, 30, 80), optim.ConstantFactor(1e-3, 1.0/3, 5), optim.Polynomial(1e-3, 1, 100))
	use(optim.CosineAnnealing(1e-3, 0, 100), optim.CosineRestarts(1e-3, 0, 10, 1))
	use(optim.OneCycle(optim.OneCycleConfig{Max: 0.1, Steps: 100}))
	use(optim.Cyclic(optim.CyclicConfig{Base: 1e-3, Max: 0.1}))
	use(optim.NewPlateau(optim.PlateauConfig{Patience: 3}))
	schedules := []optim.Schedule{optim.Constant(1), optim.Linear(1, 0, 10)}
	use(optim.Sequential(schedules, 20), optim.Chained(1e-3, schedules...))
	func() {
		opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{Rule: func(_ string, _ *tensor.Tensor, r *optim.Rates) { r.Group = 1 }})
		opt.SetGroupLR(1, 1e-4)
	}()
	opt.SetLR(1e-4)
	model.Forward(env.Ones(1, 4)).Sum().Backward()
	opt.Discard()
	opt.Step()
	scaler := optim.NewLossScaler(optim.LossScalerConfig{})
	loss := model.Forward(env.Ones(1, 4).In(env.Autocast(dtype.F16))).Sum()
	scaler.Backward(loss)
	scaler.Step(opt)
	use(scaler.Scale(), ckpt.State{Scaler: scaler}, func(other optim.Optimizer) { scaler.StepAll(opt, other) })
	x, y := make([]float32, 12), make([]int64, 3)
	prices := make([]float32, 3)
	train := data.InMemory(x, []int{4}, y)
	use(data.InMemory(x, []int{4}, prices, 1))
	use(data.Batches(env, train, data.Config{Size: 128, Shuffle: true, DropLast: true}), data.Subset(train, 0, 2))
	other, w, classes, lengths, ragged := train, []float64{1, 2, 3}, y, []int{1, 2, 3}, [][]float32{{1}, nil, {2, 3}}
	use(data.Select(train, []int{2, 0}), data.Concat(train, other), data.Interleave(train, other))
	if s, err := data.Weighted(w, 8, true); err == nil {
		use(data.Config{Size: 2, Sampler: s})
	}
	use(data.Weighted(w, 2, false))
	use(data.Ordered(2, func(n int, r *rand.Rand) []int { return r.Perm(n)[:2] }))
	use(data.Stratified(classes), data.Grouped(classes), data.Bucketed(lengths), data.Streams(), data.Sampler(nil))
	use(data.Sequences(ragged, nil, 0, y), data.Ragged[float32], data.Named{})
	use(data.Map(train, func(b *data.Pair, row data.Row) error { return nil }), data.Config{Size: 1, Context: context.Background()})
	if _, err := idx.Open("images", "labels"); err == nil {
		t.Error("idx.Open reads files that are not there")
	}
	use(metric.Accuracy(env, model, train))
	q := env.NewQueue()
	use(env.On(q), env.Device().Memory().Used, env.Device().Memory().Peak, env.Device().EmptyCache())
	env.Device().ResetPeak()
	if err := env.Device().SetAllocConf("max_split_size_mb:64"); err == nil {
		t.Error("the allocator of a device with values is configured")
	}
	use(env.Device().SetMemoryFraction(0.9), env.Device().MemoryStats(), env.Device().MemorySummary())
	env.Sync()
	step, schedule, dir := 0, optim.Warmup(5, optim.Constant(1e-3)), t.TempDir()
	s := &ckpt.State{Model: model, Optimizer: opt}
	for b, err := range data.Batches(env, train, data.Config{Size: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		opt.SetLR(schedule(step))
		for mb := range data.Split(b, 4) {
			loss := nn.CrossEntropy(model.Forward(mb.X), mb.Y)
			loss.Scale(mb.Fraction()).Backward()
		}
		if norm := opt.Step().Norm(); !(norm > 0) {
			t.Errorf("the gradients have norm %v", norm)
		}
		step++
	}
	if _, err := ckpt.Save(dir, s); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ckpt.Latest(dir, s); err != nil {
		t.Error(err)
	}
	_, err := env.Try(func(env *tensor.Env) *tensor.Tensor { return env.Ones(2).Add(env.Ones(3)) })
	if err == nil {
		t.Error("shapes 2 and 3 were added")
	}
}

// TestCapturedStep is the captured step of docs/pytorch.md.
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

var code = regexp.MustCompile("`([^`]+)`")

// TestPyTorchTable looks for what docs/pytorch.md shows in the second column in the programs above and in the files beside.
func TestPyTorchTable(t *testing.T) {
	table, err := os.ReadFile("../docs/pytorch.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("pytorch*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	programs := ""
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		programs += string(text)
	}
	rows := 0
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		rows++
		for _, m := range code.FindAllStringSubmatch(cells[2], -1) {
			if !strings.Contains(programs, m[1]) {
				t.Errorf("docs/pytorch.md: %s is in no program here", m[1])
			}
		}
	}
	if rows < 120 {
		t.Errorf("docs/pytorch.md has %d rows that can be read", rows)
	}
}

// TestGuide finds every program of docs/guide.md in the file that the line before it names.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../docs/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)\\(\\.\\./([a-z/_]+_test\\.go)\\)\\)?:\n\n```go\n(.*?)```\n").FindAllStringSubmatch(string(guide), -1)
	if blocks := strings.Count(string(guide), "```go\n"); len(shown) != blocks || blocks == 0 {
		t.Fatalf("%d of %d programs name their file", len(shown), blocks)
	}
	for _, m := range shown {
		source, err := os.ReadFile(filepath.Join("..", m[1]))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(unindented(string(source)), unindented(m[2])) {
			t.Errorf("docs/guide.md does not show %s as it is:\n%s", m[1], m[2])
		}
	}
}

// unindented is a text without the tabs that lines begin with.
func unindented(s string) string {
	lines := strings.SplitAfter(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], "\t")
	}
	return strings.Join(lines, "")
}
