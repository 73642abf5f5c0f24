package model_test

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// trained is a model with what a program trains it by, made anew for each run of a test.
type trained struct {
	env    *tensor.Env // of batches
	model  any
	opt    optim.Optimizer
	scaler *optim.LossScaler // nil: none
	step   func(b *data.Pair) *tensor.Tensor
	batch  func(e *tensor.Env, rows int, r func() float64) (x, y *tensor.Tensor)
}

type capturedProgram struct {
	name    string
	library bool // it differs from others in what the library does, and not in what a device does
	make    func(env *tensor.Env) *trained
}

// captured are the programs that are run captured and not.
var captured = []capturedProgram{
	{"MLP with momentum and a last batch", false, func(env *tensor.Env) *trained {
		return mlp(env, func(p recipe.Params) optim.Optimizer { return optim.NewSGD(p, optim.SGDConfig{LR: 0.1, Momentum: 0.9}) })
	}},
	{"convnet with batch norm, microbatches and clipping", false, func(env *tensor.Env) *trained {
		m := nn.Sequential{
			nn.NewConv2d(env, 2, 4, 3, nn.ConvConfig{Padding: 1}), nn.NewBatchNorm(env, 4), nn.ReLU{}, nn.MaxPool2d{Kernel: 2},
			nn.Flatten{}, nn.NewLinear(env, 4*2*2, 3),
		}
		t := &trained{env: env, model: m, opt: optim.NewAdamW(nn.Params(m), optim.AdamWConfig{LR: 1e-2, Clip: 0.5}), batch: pictures(2, 4, 3)}
		t.step = func(b *data.Pair) *tensor.Tensor {
			total := b.Env.Zeros()
			for mb := range data.Split(b, 2) {
				loss := nn.CrossEntropy(m.Forward(mb.X), mb.Y).Scale(mb.Fraction())
				total.AddInPlace(loss.Detach())
				loss.Backward()
			}
			t.opt.Step()
			return total
		}
		return t
	}},
	{"GPT with dropout, clipping, schedule and loss scaler", false, func(env *tensor.Env) *trained { return gpt(env, dtype.F16, false) }},
	{"LSTM of two layers and both directions", false, func(env *tensor.Env) *trained {
		var m struct {
			LSTM *nn.LSTM
			Head *nn.Linear
		}
		m.LSTM, m.Head = nn.NewLSTM(env, 4, 5, nn.RecurrentConfig{Layers: 2, Bidirectional: true, BatchFirst: true}), nn.NewLinear(env, 10, 3)
		t := &trained{env: env, model: &m, opt: optim.NewAdamW(nn.Params(&m), optim.AdamWConfig{LR: 1e-2}), batch: pictures(1, 4, 3)}
		t.step = func(b *data.Pair) *tensor.Tensor {
			loss := nn.CrossEntropy(m.Head.Forward(m.LSTM.Forward(b.X.Squeeze(1)).Mean(1)), b.Y)
			loss.Backward()
			t.opt.Step()
			return loss
		}
		return t
	}},
	{"GPT in bfloat16, recomputing", true, func(env *tensor.Env) *trained { return gpt(env, dtype.BF16, true) }},
}

func init() {
	for i := range recipe.Optimizers {
		o := &recipe.Optimizers[i]
		captured = append(captured, capturedProgram{"MLP with " + o.Name, true, func(env *tensor.Env) *trained {
			return mlp(env, func(p recipe.Params) optim.Optimizer {
				return o.Make(p, recipe.Step{LR: 0.01, WeightDecay: 0.1, Clip: 1})
			})
		}})
	}
}

func mlp(env *tensor.Env, opt func(p recipe.Params) optim.Optimizer) *trained {
	m := model.NewMLP(env, model.ImageConfig{Channels: 1, Height: 4, Width: 4, Classes: 3}, 8)
	t := &trained{env: env, model: m, opt: opt(nn.Params(m)), batch: pictures(1, 4, 3)}
	t.step = func(b *data.Pair) *tensor.Tensor {
		loss := nn.CrossEntropy(m.Forward(b.X), b.Y)
		loss.Backward()
		t.opt.Step()
		return loss
	}
	return t
}

func gpt(env *tensor.Env, dt dtype.DType, recompute bool) *trained {
	g := model.NewGPT(env, model.GPTConfig{Vocab: 7, Context: 5, Layers: 1, Heads: 2, Width: 8, Dropout: 0.2})
	t := &trained{env: env.Autocast(dt), model: g, opt: optim.NewAdamW(nn.Params(g), optim.AdamWConfig{LR: 1e-2, Clip: 1})}
	t.batch = func(e *tensor.Env, rows int, r func() float64) (x, y *tensor.Tensor) {
		return whole(e, 7, r, rows, 5), whole(e, 7, r, rows, 5)
	}
	if recompute {
		t.env = t.env.Recompute(tensor.PartsOf(tensor.PartBlock))
	}
	if dt == dtype.F16 { // the first scales are too large, so that steps are left out
		t.scaler = optim.NewLossScaler(optim.LossScalerConfig{Init: firstScale, Interval: 9})
	}
	t.step = func(b *data.Pair) *tensor.Tensor {
		l := g.Loss(b.X, b.Y)
		if t.scaler == nil {
			l.Backward()
			t.opt.Step()
			return l
		}
		t.scaler.Backward(l)
		t.scaler.Step(t.opt)
		return l
	}
	return t
}

// firstScale is too large a scale of losses.
var firstScale = math.Ldexp(1, 24)

// pictures are batches for classifiers.
func pictures(channels, size, classes int) func(e *tensor.Env, rows int, r func() float64) (x, y *tensor.Tensor) {
	return func(e *tensor.Env, rows int, r func() float64) (x, y *tensor.Tensor) {
		v := make([]float32, rows*channels*size*size)
		for i := range v {
			v[i] = float32(r())
		}
		return tensor.From(e, v, rows, channels, size, size), whole(e, classes, r, rows)
	}
}

func whole(e *tensor.Env, below int, r func() float64, shape ...int) *tensor.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(r() * float64(below))
	}
	return tensor.From(e, v, shape...)
}

// overflowed marks the loss of a step that was left out.
const overflowed = ", left out"

// steps runs a program, each fifth batch being short, and returns all that it leaves: losses, weights, state and counters.
func (p *trained) steps(n int, seed uint64, run func(b *data.Pair) *tensor.Tensor) (losses []string, left map[string]string) {
	r := rand.New(rand.NewPCG(seed, 1))
	scale := firstScale
	schedule := optim.WarmupCosine(3e-2, 1e-3, 5, n)
	for i := range n {
		p.opt.SetLR(schedule(i))
		e, scope := p.env.Scope(7, uint64(i))
		rows := 4
		if i%5 == 4 {
			rows = 3
		}
		x, y := p.batch(e, rows, r.Float64)
		b := &data.Pair{X: x, Y: y}
		b.Env = e
		f := run
		switch i {
		case 20: // somebody writes the weights between steps
			for _, w := range nn.Params(p.model) {
				w.ScaleInPlace(0.97)
			}
		case 25: // a step that is not captured, among others that are
			f = p.step
		}
		loss := fmt.Sprint(f(b).Item())
		if p.scaler != nil {
			if p.scaler.Scale() < scale {
				loss += overflowed
			}
			scale = p.scaler.Scale()
		}
		losses = append(losses, loss)
		scope.End()
	}
	left = map[string]string{"draws": fmt.Sprint(p.env.Draws()), "counters": fmt.Sprint(p.opt.Counters())}
	if p.scaler != nil {
		left["scaler"] = fmt.Sprint(p.scaler.State())
	}
	note := func(all iter.Seq2[string, *tensor.Tensor]) {
		for name, t := range all {
			left[name] = fmt.Sprint(t.Floats())
		}
	}
	note(nn.Params(p.model))
	note(nn.Buffers(p.model))
	note(p.opt.State())
	return losses, left
}

// shimmed is the driver that the engine of this name opens next: a simulated GPU's, through a C library.
var shimmed struct {
	api   *driver.API
	cards int
}

func init() {
	device.Register("shimmed", device.Engine{Open: func(n device.Name) (device.Device, error) {
		return cuda.New(shimmed.api, 0, n.String(), cuda.Options{})
	}})
}

// throughC is a device whose driver is reached as a card's is.
func throughC(t *testing.T) (name string) {
	t.Helper()
	sim, err := simcuda.New(simcuda.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(libcuda.PathEnv, shimtest.Install(t, sim.API()))
	if shimmed.api, _, err = libcuda.Open(); err != nil {
		t.Fatal(err)
	}
	return "shimmed"
}

// capturers are the devices on which captured steps are compared with others.
var capturers = []struct {
	name, device string // no device: a simulated GPU's driver through a C library
	sim          string // settings of the simulated GPU
	threads      int    // of the CPU; 0: as many as there are
	only         string // a program, where a run of the tests takes no other
	library      bool   // also what is of the library alone, and the same on each device
}{
	{name: "cpu", device: "cpu", library: true},
	{name: "one thread", device: "cpu", threads: 1},
	{name: "seven threads", device: "cpu", threads: 7},
	{name: "null", device: "null:h200", library: true},
	{name: "sim", device: "sim:0"},
	{name: "sim that checks", device: "sim:0", sim: "check=all,late", only: "MLP with momentum and a last batch"},
	{name: "through C"},
}

// TestCaptured: 50 captured steps leave what 50 others leave, to the bit.
func TestCaptured(t *testing.T) {
	seed := testutil.Seed(t)
	spread := testutil.NewSpread(t, seed, 4)
	for _, c := range capturers {
		t.Run(c.name, func(t *testing.T) {
			device := c.device
			switch {
			case c.sim != "":
				t.Setenv("WARPLINE_SIM", c.sim)
			case device == "":
				device = throughC(t)
			case c.threads > 0:
				withThreads(t, c.threads)
			}
			for _, p := range captured {
				if spread.All() || (c.library || !p.library && (c.only == "" || c.only == p.name)) && spread.Takes(c.name+"/"+p.name) {
					t.Run(p.name, func(t *testing.T) { leavesTheSame(t, device, p.make, seed) })
				}
			}
		})
	}
}

// withThreads lets the CPU's loops use n threads until the test ends.
func withThreads(t *testing.T, n int) {
	procs, threads := runtime.GOMAXPROCS(n), par.Threads()
	par.SetThreads(n)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		par.SetThreads(threads)
	})
}

func leavesTheSame(t *testing.T, device string, program func(env *tensor.Env) *trained, seed uint64) {
	const steps = 50
	eager := program(fresh(t, device))
	want, left := eager.steps(steps, seed, eager.step)
	p := program(fresh(t, device))
	step := tensor.Capture(p.env, p.step)
	got, found := p.steps(steps, seed, step.Run)
	if !slices.Equal(got, want) {
		t.Errorf("losses %v, want %v", got, want)
	}
	for what, v := range left {
		if found[what] != v {
			t.Errorf("%s: %s, want %s", what, found[what], v)
		}
	}
	if runs, kinds := step.Replayed(); kinds != 2 || runs != steps-6 {
		t.Errorf("%v, want all but six of %d steps, of 2 kinds", step, steps)
	}
	skipped := func(s string) bool { return strings.HasSuffix(s, overflowed) }
	if p.scaler != nil && p.env.Device().Computes() && !(slices.ContainsFunc(got[:3], skipped) && slices.ContainsFunc(got[10:], skipped)) {
		t.Errorf("no step was left out, captured and not: %v", got)
	}
}

func fresh(t testing.TB, name string) *tensor.Env {
	t.Helper()
	if name == "shimmed" {
		shimmed.cards++
		name = fmt.Sprint(name, ":", shimmed.cards)
	}
	env, err := tensor.Fresh(name)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// TestCapturedWork: a run asks for the kernels that the step asked for, as observers are told.
func TestCapturedWork(t *testing.T) {
	for _, name := range []string{"cpu", "sim:0", "null:h200"} {
		for _, c := range captured {
			p := c.make(fresh(t, name))
			step := tensor.Capture(p.env, p.step)
			r := rand.New(rand.NewPCG(1, 1))
			count := func(run func(b *data.Pair) *tensor.Tensor) (ops map[string]device.Work) {
				e, scope := p.env.Scope()
				defer scope.End()
				b := &data.Pair{}
				b.Env = e
				b.X, b.Y = p.batch(e, 4, r.Float64)
				var tally device.Tally
				defer p.env.Device().Observe(tally.Observe, device.KindLaunch, device.KindFill)()
				run(b)
				_, ops = tally.Work()
				return ops
			}
			for range 3 {
				count(step.Run)
			}
			want, got := count(p.step), count(step.Run)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, %s: a run is %v, the step %v", name, c.name, got, want)
			}
			if runs, _ := step.Replayed(); runs != 1 {
				t.Errorf("%s, %s: %v", name, c.name, step)
			}
		}
	}
}
