package prof_test

import (
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// noise is a source of vectors of noise, each of which takes a while to come.
type noise struct {
	slow  time.Duration
	width int
}

func (noise) Len() int { return 8 << 10 }

func (s noise) Fields() []data.Field {
	return []data.Field{{DType: dtype.F32, Shape: []int{max(s.width, 64)}}, {DType: dtype.I64}}
}

func (s noise) Fill(_ *data.Pair, r data.Row, i int) error {
	time.Sleep(s.slow)
	x := data.Values[float32](r, 0)
	for j := range x {
		x[j] = float32(i*j%7) / 7
	}
	data.Values[int64](r, 1)[0] = int64(i % 10)
	return nil
}

// course is a small training, in which a mistake is to be made and to be mended.
type course struct {
	slow         time.Duration // of each sample
	width        int           // of a sample, 64 if 0
	hidden       int           // width of the hidden layer, 64 if 0
	batch        int           // 64 if 0
	amp, capture bool
	resident     bool // samples lie on the device

	model func(m nn.Sequential) layer                // in place of m
	loss  func(m layer, b *data.Pair) *tensor.Tensor // in place of the cross entropy of what m makes of b
	after func(b *data.Pair, loss *tensor.Tensor)    // each step
	extra func(env *tensor.Env, params iter.Seq2[string, *tensor.Tensor]) iter.Seq2[string, *tensor.Tensor]
}

// fault is a course with a mistake, and the same without.
type fault struct {
	rule   string
	device string
	host   bool // the mistake is in what the host does: its clock is the real one
	line   bool // the finding names a line of this file
	near   float64
	sick   course
	sound  course
}

type layer interface {
	Forward(x *tensor.Tensor) *tensor.Tensor
}

// kept are values that a program keeps by mistake.
var kept []*tensor.Tensor

// faults are programs for all rules. Where the clock is virtual, the gain that is promised is compared with what mending the
// program gains: near is the greatest difference, of the latter.
var faults = []fault{
	{rule: "loader-bound", device: "cpu", sick: course{slow: 2 * time.Millisecond}},
	{rule: "loader-bound", device: "sim:h100-80", host: true, sick: course{slow: 2 * time.Millisecond}},
	{rule: "host-bound", device: "cpu", sick: course{after: dally}},
	{rule: "host-bound", device: "sim:h100-80", host: true, sick: course{after: dally}},
	{rule: "waits-in-loop", device: "sim:h100-80", line: true, near: 0.5,
		sick:  course{hidden: 256, batch: 128, after: func(_ *data.Pair, loss *tensor.Tensor) { loss.Item() }},
		sound: course{hidden: 256, batch: 128, after: func(_ *data.Pair, loss *tensor.Tensor) { loss.Later() }}},
	{rule: "launch-bound", device: "sim:h100-80", near: 0.25,
		sick: course{model: many((*tensor.Tensor).Tanh, 80)}, sound: course{model: many((*tensor.Tensor).Tanh, 80), capture: true}},
	{rule: "tiny-copies", device: "sim:h100-80", line: true, near: 0.25,
		sick: course{loss: weighted(64, 1)}, sound: course{loss: weighted(1, 64)}},
	{rule: "exposed-copies", device: "sim:h100-80", line: true, near: 0.25,
		sick: course{width: 4096, amp: true}, sound: course{width: 4096, amp: true, resident: true}},
	{rule: "no-tensor-cores", device: "sim:h100-80", line: true, near: 0.25,
		sick: course{hidden: 256, batch: 128}, sound: course{hidden: 256, batch: 128, amp: true}},
	{rule: "memory-bound", device: "sim:rtx-a6000", near: 0.25,
		sick:  course{hidden: 512, batch: 512, amp: true, model: many(func(x *tensor.Tensor) *tensor.Tensor { return x.Scale(2).Scale(1.5) }, 4)},
		sound: course{hidden: 512, batch: 512, amp: true, model: many(func(x *tensor.Tensor) *tensor.Tensor { return x.Scale(3) }, 4)}},
	{rule: "no-gradient", device: "cpu", sick: course{extra: unused}},
	{rule: "no-gradient", device: "sim:h100-80", sick: course{extra: unused}},
	{rule: "kept-across-steps", device: "cpu", line: true, sick: course{after: retain}},
	{rule: "kept-across-steps", device: "sim:h100-80", line: true, sick: course{after: retain}},
	{rule: "kept-across-steps", device: "null:h100-80", line: true, sick: course{after: retain}},
}

// dally is a program that does something of its own between steps.
func dally(*data.Pair, *tensor.Tensor) { time.Sleep(30 * time.Millisecond) }

// retain is a program that keeps 16 KiB of each batch.
func retain(b *data.Pair, _ *tensor.Tensor) {
	kept = append(kept, b.X.MatMul(b.X.Transpose(0, 1)).Keep()) // the mistake
}

// weighted is a loss times so many weights, which come from the host one by one, or together.
func weighted(copies, each int) func(layer, *data.Pair) *tensor.Tensor {
	return func(m layer, b *data.Pair) *tensor.Tensor {
		loss := nn.CrossEntropy(m.Forward(b.X), b.Y)
		for range copies {
			w := tensor.From(b.Env, slices.Repeat([]float32{1}, each), each)
			if copies == 1 {
				loss = loss.Mul(w.Mean())
			}
		}
		return loss
	}
}

// elementwise is a model with operations in it that only read and write.
type elementwise struct {
	nn.Sequential
	op    func(*tensor.Tensor) *tensor.Tensor
	times int
}

func many(op func(*tensor.Tensor) *tensor.Tensor, times int) func(nn.Sequential) layer {
	return func(m nn.Sequential) layer { return elementwise{m, op, times} }
}

func (e elementwise) Forward(x *tensor.Tensor) *tensor.Tensor {
	x = e.Sequential[0].Forward(x).Cast(dtype.F32)
	for range e.times {
		x = e.op(x)
	}
	return e.Sequential[2:].Forward(x)
}

// unused adds a parameter that is in no loss.
func unused(env *tensor.Env, params iter.Seq2[string, *tensor.Tensor]) iter.Seq2[string, *tensor.Tensor] {
	l := nn.NewLinear(env, 64, 64)
	return func(yield func(string, *tensor.Tensor) bool) {
		yield("unused", l.Weight)
		params(yield)
	}
}

// TestFindings: each mistake in a training is found, and at its line where there is one; mending it gains what was promised, and
// the finding is gone. Every rule has such a program.
func TestFindings(t *testing.T) {
	for _, rule := range finding.Rules() {
		if !slices.ContainsFunc(faults, func(f fault) bool { return f.rule == rule }) {
			t.Errorf("no program for the rule %s", rule)
		}
	}
	part := testutil.Some(testutil.NewSpread(t, testutil.Seed(t), 4), faults, func(f fault) string { return f.rule + "/" + f.device })
	for _, f := range part {
		t.Run(f.rule+"/"+f.device, func(t *testing.T) {
			if f.host {
				t.Setenv("WARPLINE_SIM", "host=real")
				f.device += "x3:0" // a machine of its own, which reads the setting
			}
			sick, took := f.sick.train(t, f.device)
			found := named(sick, f.rule)
			if found == nil {
				t.Fatalf("found %v of %+v", sick.Findings(), sick.Facts())
			}
			if f.line != strings.HasPrefix(found.Line, "findings_test.go:") {
				t.Errorf("it blames %q", found.Line)
			}
			if f.rule == "kept-across-steps" && found.Gain.Bytes != 16<<10 {
				t.Errorf("%d bytes a step", found.Gain.Bytes)
			}
			if f.near > 0 {
				f.mend(t, took, found)
			}
		})
	}
}

// mend compares what a finding promises with what it brings.
func (f *fault) mend(t *testing.T, took time.Duration, found *prof.Finding) {
	sound, without := f.sound.train(t, f.device)
	gained := took - without
	t.Logf("%v a step, mended %v: gains %v, and %v was promised", took, without, gained, found.Gain.Step())
	if math.Abs(float64(found.Gain.Step()-gained)) > f.near*float64(gained) {
		t.Errorf("promises %v a step, mending gains %v of %v", found.Gain, gained, took)
	}
	if again := named(sound, f.rule); again != nil {
		t.Errorf("found of the mended program too: %v", again)
	}
}

// named is the finding of a rule.
func named(p *prof.Profile, rule string) *prof.Finding {
	found := p.Findings()
	if i := slices.IndexFunc(found, func(f prof.Finding) bool { return f.Name == rule }); i >= 0 {
		return &found[i]
	}
	return nil
}

// TestNoFinding: a training in which nothing is wrong has no finding.
func TestNoFinding(t *testing.T) {
	for _, e := range engines {
		c := course{hidden: 1024, batch: 256, amp: true}
		var found []prof.Finding
		for range 5 { // a loader whose processors another program has looks slow, but not each time
			p, _ := c.train(t, e.name)
			if found = p.Findings(); len(found) == 0 || p.Facts().Modelled {
				break
			}
		}
		if len(found) > 0 {
			t.Errorf("%s: %v", e.name, found)
		}
	}
}

// train makes eight steps. It returns the profile of the third to the fifth, and what a step of the others, which nobody observes,
// takes by the device's clock.
func (c *course) train(t *testing.T, name string) (*prof.Profile, time.Duration) {
	env, err := tensor.Fresh(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { kept = nil }()
	if c.amp {
		env = env.Autocast(dtype.BF16)
	}
	p := prof.New(prof.Config{Skip: 1, Warmup: 1, Active: 3, Repeat: 1})
	env = env.Profiled(p)
	step, report := c.step(env)
	began, err := time.Duration(0), error(nil)
	for b := range c.batches(env, &err) {
		step(b)
		if p.Step(); p.Last() != nil && began == 0 {
			p.Stop()
			env.Sync()
			began = env.Device().Now()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	env.Sync()
	if p.Last() == nil || p.Last().Err != nil {
		t.Fatalf("%s: profile %+v", name, p.Last())
	}
	p.Last().Unreached = report.Never
	return p.Last(), (env.Device().Now() - began) / 3
}

// batches are those of eight steps.
func (c *course) batches(env *tensor.Env, err *error) iter.Seq[*data.Pair] {
	const steps = 8
	size := max(c.batch, 64)
	return func(yield func(*data.Pair) bool) {
		if c.resident {
			x, y := env.Zeros(size, max(c.width, 64)), env.RandInt(0, 10, size)
			for range steps {
				env.Do(func(e *tensor.Env) *tensor.Tensor {
					yield(&data.Pair{Turn: data.Turn{Env: e}, X: x.In(e), Y: y.In(e)})
					return nil
				})
			}
			return
		}
		for b, failed := range data.Batches(env, data.Source[data.Pair](noise{c.slow, c.width}), data.Config{Size: size, Steps: steps, Workers: 1}) {
			if *err = failed; failed != nil {
				return
			}
			yield(b)
		}
	}
}

// step is a step of the course, and what its optimizer reports of the last.
func (c *course) step(env *tensor.Env) (func(b *data.Pair) *tensor.Tensor, *optim.Report) {
	model, report := c.network(env), new(optim.Report)
	var params iter.Seq2[string, *tensor.Tensor] = nn.Params(model)
	if c.extra != nil {
		params = c.extra(env, params)
	}
	opt := optim.NewSGD(params, optim.SGDConfig{LR: 0.01})
	step := func(b *data.Pair) *tensor.Tensor {
		loss := c.of(model, b)
		if c.after != nil {
			c.after(b, loss)
		}
		loss.Backward()
		*report = opt.Step()
		return loss
	}
	if c.capture {
		step = tensor.Capture(env, step).Run
	}
	return step, report
}

// network is the layers of a course.
func (c *course) network(env *tensor.Env) layer {
	in, hidden := max(c.width, 64), max(c.hidden, 64)
	m := nn.Sequential{nn.NewLinear(env, in, hidden), nn.ReLU{}, nn.NewLinear(env, hidden, 10)}
	if c.model != nil {
		return c.model(m)
	}
	return m
}

// of is the loss of a batch.
func (c *course) of(m layer, b *data.Pair) *tensor.Tensor {
	if c.loss != nil {
		return c.loss(m, b)
	}
	return nn.CrossEntropy(m.Forward(b.X), b.Y)
}
