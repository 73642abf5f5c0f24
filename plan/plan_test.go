package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/tensor"
)

// devices are those that the programs really run on.
var devices = []string{"cpu", "sim:a100-80x3:0", "null:a100-80x3:0"}

const width = 32

// samples is a set of n inputs of some width, with labels.
func samples(n int) data.Source[data.Pair] {
	return data.InMemory(make([]float32, n*width), []int{width}, make([]int64, n))
}

func mlp(env *tensor.Env, hidden int) nn.Sequential {
	return nn.Sequential{nn.NewLinear(env, width, hidden), nn.ReLU{}, nn.NewLinear(env, hidden, hidden), nn.ReLU{}, nn.NewLinear(env, hidden, 4)}
}

// training makes two steps; the rest is as the setting says.
func training(hidden int) func(env *tensor.Env, s plan.Setting) error {
	return func(env *tensor.Env, s plan.Setting) error {
		model := mlp(env, hidden)
		var body nn.Module = model
		if s.On("recompute") {
			body = nn.Sequential{nn.Recompute(model[:2]), nn.Recompute(model[2:4]), model[4]}
		}
		var opt optim.Optimizer = optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-3})
		if s.On("sgd") {
			opt = optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 1e-3})
		}
		for b, err := range data.Batches(env, samples(2*s.Batch), data.Config{Size: s.Batch, Steps: 2, Workers: -1}) {
			if err != nil {
				return err
			}
			for part := range data.Split(b, s.Parts) {
				nn.CrossEntropy(body.Forward(part.X), part.Y).Scale(part.Fraction()).Backward()
			}
			opt.Step()
		}
		return nil
	}
}

// leaking keeps a value of each step.
func leaking(env *tensor.Env, s plan.Setting) error {
	model := mlp(env, 32)
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 1e-3})
	var seen []*tensor.Tensor
	for b, err := range data.Batches(env, samples(32*s.Batch), data.Config{Size: s.Batch, Steps: 32, Workers: -1}) {
		if err != nil {
			return err
		}
		out := model.Forward(b.X)
		nn.CrossEntropy(out, b.Y).Backward()
		opt.Step()
		if !s.On("numbers") {
			seen = append(seen, b.X.Keep()) // THE LEAK
		}
	}
	_ = seen
	return nil
}

// scattered makes large values that come and go, with small ones that stay in between.
func scattered(env *tensor.Env, s plan.Setting) error {
	const large, small = 6 << 20, 1 << 19 // of 4 bytes
	var long []*tensor.Tensor
	if s.On("early") {
		long = append(long, env.Ones(small))
	}
	env.Do(func(env *tensor.Env) *tensor.Tensor { env.Ones(large); return nil })
	if !s.On("early") {
		long = append(long, env.Ones(small)) // THE PIN
	}
	env.Do(func(env *tensor.Env) *tensor.Tensor {
		a, b := env.Ones(large), env.Ones(large)
		a.AddInPlace(b)
		return nil
	})
	_ = long[0].Shape()
	return nil
}

// evaluating scores a model, and records gradients while it does.
func evaluating(env *tensor.Env, s plan.Setting) error {
	model := append(mlp(env, 64)[:4], mlp(env, 64)[2:]...)
	for b, err := range data.Batches(env.Eval(), samples(s.Batch), data.Config{Size: s.Batch, Workers: -1}) {
		if err != nil {
			return err
		}
		model.Forward(b.X).ArgMax(-1)
	}
	return nil
}

// program is one that runs out of memory.
type program struct {
	name string
	plan.Program
	limit  func(peak int64) int64 // in use; nil: of the allocator's, in bytes
	taken  int64                  // the allocator's
	first  string                 // the first lever
	apply  func(t *testing.T, flag string, env *tensor.Env, s *plan.Setting) *tensor.Env
	line   string // of this file, that the report must name
	batchy bool   // the largest batch is compared with bisection
}

func share(f float64) func(int64) int64 {
	return func(peak int64) int64 { return int64(f * float64(peak)) }
}

var number = regexp.MustCompile(`\d+`)

// parts applies "in N parts".
func parts(_ *testing.T, flag string, env *tensor.Env, s *plan.Setting) *tensor.Env {
	s.Parts, _ = strconv.Atoi(number.FindString(flag))
	return env
}

// turnOn applies a lever by name.
func turnOn(name string) func(*testing.T, string, *tensor.Env, *plan.Setting) *tensor.Env {
	return func(_ *testing.T, _ string, env *tensor.Env, s *plan.Setting) *tensor.Env {
		s.Levers = append(s.Levers, name)
		return env
	}
}

func programs() []program {
	recompute := plan.Lever{Name: "recompute", Flag: "nn.Recompute around each layer", Cost: "one more forward pass"}
	sgd := plan.Lever{Name: "sgd", Flag: "optim.NewSGD in place of AdamW", Cost: "another learning rate"}
	return []program{
		{name: "batch too large", limit: share(0.5), first: "take the batch in", apply: parts, batchy: true,
			Program: plan.Program{Run: training(64), Batch: 200, Smaller: "data.Config{Size: %d}", Split: "take the batch in %d parts: data.Split", Levers: []plan.Lever{recompute}}},
		{name: "leak across steps", limit: share(0.5), first: "let go of ", line: "THE LEAK", apply: turnOn("numbers"),
			Program: plan.Program{Run: leaking, Batch: 64, Smaller: "data.Config{Size: %d}"}},
		{name: "fragmentation", taken: 70 << 20, first: "make what lives long before what comes and goes: plan_test.go:", line: "THE PIN", apply: turnOn("early"),
			Program: plan.Program{Run: scattered}},
		{name: "evaluation with gradients on", limit: share(0.7), first: tensor.LeverNoGrad, batchy: true,
			apply:   func(_ *testing.T, _ string, env *tensor.Env, _ *plan.Setting) *tensor.Env { return env.NoGrad().Eval() },
			Program: plan.Program{Run: evaluating, Batch: 128, Smaller: "data.Config{Size: %d}"}},
		{name: "optimizer state", limit: share(0.8), first: sgd.Flag, apply: turnOn("sgd"),
			Program: plan.Program{Run: training(200), Batch: 4, Smaller: "data.Config{Size: %d}", Split: "take the batch in %d parts: data.Split", Levers: []plan.Lever{recompute, sgd}}},
	}
}

// really runs a program on a device under a limit, and tells the error.
func really(t *testing.T, device string, p *program, limit int64, change func(env *tensor.Env, s *plan.Setting) *tensor.Env) (*tensor.Device, error) {
	t.Helper()
	env, err := tensor.Fresh(device)
	if err != nil {
		t.Fatal(err)
	}
	dev := env.Device()
	if p.limit == nil && limit > 0 {
		if err := dev.SetMemoryFraction(float64(limit) / float64(dev.Properties().Memory)); err != nil {
			t.Fatal(err)
		}
	} else {
		dev.SetLimit(limit)
	}
	s := plan.Setting{Batch: p.Batch, Parts: 1}
	if change != nil {
		env = change(env, &s)
	}
	_, err = tensor.Try(env, func(env *tensor.Env) int {
		if err := p.Run(env, s); err != nil {
			t.Error(err)
		}
		return 0
	})
	return dev, err
}

// TestFirstLever: of each program that runs out of memory the first lever that is named makes it run, and as large a batch
// fits as is said.
func TestFirstLever(t *testing.T) {
	spread := testutil.NewSpread(t, testutil.Seed(t), 2)
	for _, device := range devices {
		for _, p := range testutil.Some(spread, programs(), func(p program) string { return device + p.name }) {
			t.Run(p.name+" on "+strings.SplitN(device, ":", 2)[0], func(t *testing.T) { firstLever(t, device, &p) })
		}
	}
}

func firstLever(t *testing.T, device string, p *program) {
	limit := p.taken
	if p.limit != nil {
		dev, err := really(t, device, p, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		limit = p.limit(dev.Memory().Peak)
	}
	_, err := really(t, device, p, limit, nil)
	var oom *tensor.OOMError
	if !errors.As(err, &oom) {
		t.Fatalf("under a limit of %d bytes: %v", limit, err)
	}
	quick := oom.Levers
	if err := plan.Explain(oom, p.Program); err != nil {
		t.Fatal(err)
	}
	told(t, oom, device, p)
	if len(oom.Levers) == 0 || !strings.HasPrefix(oom.Levers[0].Flag, p.first) {
		t.Fatalf("the first lever is not %q: %+v (at once: %+v)", p.first, oom.Levers, quick)
	}
	if _, err := really(t, device, p, limit, func(env *tensor.Env, s *plan.Setting) *tensor.Env {
		return p.apply(t, oom.Levers[0].Flag, env, s)
	}); err != nil {
		t.Errorf("with %s: %v", oom.Levers[0].Flag, err)
	}
	saved(t, oom, device, p)
	for _, l := range oom.Levers {
		if conf, ok := strings.CutPrefix(l.Flag, tensor.AllocEnv+"="); ok && l.Fits {
			t.Setenv(tensor.AllocEnv, conf)
			if _, err := really(t, device, p, limit, nil); err != nil {
				t.Errorf("with %s: %v", l.Flag, err)
			}
		}
	}
	if p.batchy {
		want := bisected(t, device, p, limit)
		t.Logf("largest batch %d, really %d", oom.LargestBatch, want)
		if off := oom.LargestBatch - want; max(off, -off) > max(1, want/20) {
			t.Errorf("largest batch %d, by really running %d", oom.LargestBatch, want)
		}
	}
}

// saved compares what the first lever is said to save with what it does where nothing limits the program.
func saved(t *testing.T, oom *tensor.OOMError, device string, p *program) {
	t.Helper()
	held := func(change func(*tensor.Env, *plan.Setting) *tensor.Env) int64 {
		dev, err := really(t, device, p, 0, change)
		if err != nil {
			t.Fatal(err)
		}
		if m := dev.Memory(); p.limit != nil {
			return m.Peak
		} else {
			return m.Reserved.Peak // fragments
		}
	}
	first := oom.Levers[0]
	got := held(nil) - held(func(env *tensor.Env, s *plan.Setting) *tensor.Env { return p.apply(t, first.Flag, env, s) })
	for _, l := range oom.Levers {
		if conf, ok := strings.CutPrefix(l.Flag, tensor.AllocEnv+"="); ok {
			whole := held(nil)
			t.Setenv(tensor.AllocEnv, conf)
			if really := whole - held(nil); really < l.Saves {
				t.Errorf("%s saves %d bytes, not %d", l.Flag, really, l.Saves)
			}
			os.Unsetenv(tensor.AllocEnv)
		}
	}
	switch {
	case first.Saves <= 0 || first.Cost == "":
		t.Errorf("%+v", first)
	case first.Tried && got != first.Saves, first.Saves > got: // of mistakes, at least what they held when memory ran out
		t.Errorf("%s saves %d bytes, not %d", first.Flag, got, first.Saves)
	}
}

// bisected is the largest batch by really running.
func bisected(t *testing.T, device string, p *program, limit int64) int {
	low, high := 0, p.Batch
	for high-low > 1 {
		middle := (low + high) / 2
		if _, err := really(t, device, p, limit, func(env *tensor.Env, s *plan.Setting) *tensor.Env {
			s.Batch = middle
			return env
		}); err == nil {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// told checks what people and programs are told.
func told(t *testing.T, oom *tensor.OOMError, device string, p *program) {
	t.Helper()
	var text strings.Builder
	if err := oom.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("OOM_SCREENS"); dir != "" {
		_ = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(p.name, " ", "-")+"-"+device[:3]+".txt"), []byte(text.String()), 0o666)
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	for _, l := range lines {
		if n := utf8.RuneCountInString(l); n > 80 {
			t.Errorf("%d columns: %s", n, l)
		}
	}
	if len(lines) > 19 {
		t.Errorf("%d lines:\n%s", len(lines), text.String())
	}
	if strings.Contains(oom.Error(), "\n") {
		t.Error("more than one line")
	}
	raw, err := json.Marshal(oom)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Device, Op, Line, Module          string
		Asked, Allocated, Reserved, Limit int64
		LargestFree                       int64            `json:"largest_free"`
		ByKind                            map[string]int64 `json:"by_kind"`
		ByModule                          map[string]int64 `json:"by_module"`
		ByLine                            map[string]int64 `json:"by_line"`
		LargestBatch                      *int             `json:"largest_batch"`
		Levers                            []struct {
			Flag  string
			Saves int64 `json:"saves_bytes"`
			Cost  string
		}
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	sums := [3]int64{}
	for i, m := range []map[string]int64{got.ByKind, got.ByModule, got.ByLine} {
		for _, n := range m {
			sums[i] += n
		}
	}
	if got.LargestBatch == nil || got.Op == "" || !strings.HasPrefix(got.Line, "plan_test.go:") || sums[0] == 0 || sums[0] != sums[1] || sums[0] != sums[2] || sums[0] > got.Allocated || len(got.Levers) != len(oom.Levers) {
		t.Errorf("%s: sums %d", raw, sums)
	}
	if p.line != "" && !strings.Contains(fmt.Sprint(oom.Levers), "plan_test.go:"+lineOf(t, p.line)) {
		t.Errorf("the line with %q is not named: %v", p.line, oom.Levers)
	}
}

// lineOf is the number of the line of this file that has a comment.
func lineOf(t *testing.T, comment string) string {
	raw, err := os.ReadFile("plan_test.go")
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(raw), "// "+comment+"\n")
	return strconv.Itoa(1 + strings.Count(before, "\n"))
}

// TestImpossible: a program that nothing makes fit is told the size that it needs, and runs with that.
func TestImpossible(t *testing.T) {
	for _, device := range devices {
		p := program{name: "impossible", limit: share(0.3), Program: plan.Program{Run: training(100), Batch: 4, Smaller: "data.Config{Size: %d}", Split: "take the batch in %d parts: data.Split",
			Levers: []plan.Lever{{Name: "recompute", Flag: "nn.Recompute around each layer", Cost: "one more forward pass"}}}}
		dev, err := really(t, device, &p, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = really(t, device, &p, p.limit(dev.Memory().Peak), nil)
		var oom *tensor.OOMError
		if !errors.As(err, &oom) {
			t.Fatal(err)
		}
		if err := plan.Explain(oom, p.Program); err != nil {
			t.Fatal(err)
		}
		told(t, oom, device, &p)
		for _, l := range oom.Levers {
			if l.Fits {
				t.Errorf("%s: %+v fits?", device, l)
			}
		}
		var text strings.Builder
		_ = oom.WriteText(&text)
		if oom.LargestBatch != 0 || !strings.Contains(text.String(), render.Bytes(oom.Needed)) || !strings.Contains(text.String(), render.Bytes(oom.Least)) {
			t.Errorf("%s: batch %d, needed %d, least %d:\n%s", device, oom.LargestBatch, oom.Needed, oom.Least, text.String())
		}
		if _, err := really(t, device, &p, oom.Needed, nil); err != nil {
			t.Errorf("%s: with what it needs: %v", device, err)
		}
		if _, err := really(t, device, &p, oom.Needed*96/100, nil); err == nil {
			t.Errorf("%s: it runs with less than the %d bytes that it is said to need", device, oom.Needed)
		}
	}
}

// TestProgramFails: a program that does not run again leaves the report as it was, and the error says so.
func TestProgramFails(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	env.Device().SetLimit(1 << 10)
	_, err = env.Try(func(env *tensor.Env) *tensor.Tensor { return env.Ones(1 << 10) })
	var oom *tensor.OOMError
	if !errors.As(err, &oom) {
		t.Fatal(err)
	}
	broken := errors.New("no such file")
	for _, run := range []func(*tensor.Env, plan.Setting) error{
		func(*tensor.Env, plan.Setting) error { return broken },
		func(env *tensor.Env, _ plan.Setting) error { env.Ones(2).MatMul(env.Ones(3)); return nil },
	} {
		err := plan.Explain(oom, plan.Program{Run: run, Batch: 3})
		if err == nil || oom.Rehearsed || !strings.Contains(err.Error(), "run again to explain") {
			t.Errorf("%v; %+v", err, oom.Report)
		}
	}
	if err := plan.Explain(oom, plan.Program{Run: func(*tensor.Env, plan.Setting) error { return broken }}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// misled are programs whose first suspect is not what ails them.
func misled() []program {
	deep := plan.Lever{Name: "recompute", Flag: "nn.Recompute around each layer", Cost: "one more forward pass"}
	return []program{
		{name: "numbers kept beside a large batch", limit: share(0.6), Program: plan.Program{Batch: 200, Smaller: "data.Config{Size: %d}", Split: "take the batch in %d parts: data.Split",
			Run: func(env *tensor.Env, s plan.Setting) error {
				model := mlp(env, 64)
				opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 1e-3})
				var seen []*tensor.Tensor
				learn := func(size, steps int) error {
					for b, err := range data.Batches(env, samples(steps*size), data.Config{Size: size, Steps: steps, Workers: -1}) {
						if err != nil {
							return err
						}
						for part := range data.Split(b, min(s.Parts, size)) {
							loss := nn.CrossEntropy(model.Forward(part.X), part.Y).Scale(part.Fraction())
							seen = append(seen, loss.Detach().Keep())
							loss.Backward()
						}
						opt.Step()
					}
					return nil
				}
				if err := learn(1, 8); err != nil {
					return err
				}
				return learn(s.Batch, 2)
			}}},
		{name: "learning in evaluation mode", limit: share(0.5), Program: plan.Program{Batch: 200, Smaller: "data.Config{Size: %d}", Split: "take the batch in %d parts: data.Split", Levers: []plan.Lever{deep},
			Run: func(env *tensor.Env, s plan.Setting) error { return training(64)(env.Eval(), s) }}},
	}
}

// TestSuspects: what looks like a mistake and is none does not come first.
func TestSuspects(t *testing.T) {
	for _, p := range misled() {
		dev, err := really(t, "cpu", &p, 0, nil)
		if err != nil {
			t.Fatal(p.name, err)
		}
		limit := p.limit(dev.Memory().Peak)
		_, err = really(t, "cpu", &p, limit, nil)
		var oom *tensor.OOMError
		if !errors.As(err, &oom) {
			t.Fatal(p.name, err)
		}
		t.Logf("at once: %+v", oom.Levers)
		if err := plan.Explain(oom, p.Program); err != nil {
			t.Fatal(p.name, err)
		}
		first := oom.Levers[0]
		if !strings.HasPrefix(first.Flag, "take the batch in") {
			t.Fatalf("%s: %+v", p.name, oom.Levers)
		}
		if _, err := really(t, "cpu", &p, limit, func(env *tensor.Env, s *plan.Setting) *tensor.Env {
			return parts(t, first.Flag, env, s)
		}); err != nil {
			t.Errorf("%s: with %s: %v", p.name, first.Flag, err)
		}
	}
}

// TestUnruly: a program that does something else each time, or ends early, gets a report all the same, or an error.
func TestUnruly(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	env.Device().SetLimit(1 << 12)
	runs := 0
	for name, c := range map[string]struct {
		run  func(*tensor.Env, plan.Setting) error
		want string // of the error
	}{
		"random sizes":       {func(env *tensor.Env, s plan.Setting) error { env.Ones(1 + runs*7919%3001*s.Batch/8); return nil }, ""},
		"nothing is made":    {func(*tensor.Env, plan.Setting) error { return nil }, ""},
		"works only once":    {func(env *tensor.Env, _ plan.Setting) error { env.Ones(5000); return once(runs) }, "closed"},
		"an index of a mean": {func(env *tensor.Env, _ plan.Setting) error { _ = []int{}[int(env.Ones(3).Sum().Item())]; return nil }, "it panics: runtime error"},
		"interrupted": {func(env *tensor.Env, _ plan.Setting) error {
			if env.Ones(5000); runs > 3 {
				return fmt.Errorf("Ctrl-C: %w", context.Canceled)
			}
			return nil
		}, "context canceled"},
	} {
		_, err = env.Try(func(env *tensor.Env) *tensor.Tensor { return env.Ones(1 << 12) })
		var oom *tensor.OOMError
		if !errors.As(err, &oom) {
			t.Fatal(err)
		}
		runs = 0
		err := plan.Explain(oom, plan.Program{Batch: 8, Smaller: "%d", Split: "in %d", Run: func(env *tensor.Env, s plan.Setting) error {
			runs++
			return c.run(env, s)
		}})
		if c.want == "" && (err != nil || !oom.Rehearsed) || c.want != "" && (err == nil || oom.Rehearsed || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; %+v", name, err, oom.Report)
		}
		if err := oom.WriteText(io.Discard); err != nil {
			t.Error(err)
		}
		if runs > 100 {
			t.Errorf("%s: it was run %d times", name, runs)
		}
	}
}

func once(runs int) error {
	if runs > 0 {
		return errors.New("the file is closed")
	}
	return nil
}
