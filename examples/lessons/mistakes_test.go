package lessons

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/pysyntax"
	"github.com/warpline-ml/warpline/internal/vetpy"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// rulesOf are the rules that warpline vet finds broken in a program in PyTorch.
func rulesOf(t *testing.T, name string) (rules []string) {
	t.Helper()
	source, err := Source.ReadFile("python/" + name + ".py")
	if err != nil {
		t.Fatal(err)
	}
	found, err := vetpy.Check(name+".py", source)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		rules = append(rules, f.Rule)
	}
	return rules
}

// TestPython: each listing has a form in PyTorch that is Python; of a mistake's form warpline vet finds the rule, and nothing in the
// mended one.
func TestPython(t *testing.T) {
	for i := range Listings {
		l := &Listings[i]
		// What L21 is about is itself what a rule advises against.
		if rules := rulesOf(t, l.ID); len(rules) > 0 && !(l.ID == "L21" && slices.Equal(rules, []string{"R38"})) {
			t.Errorf("%s.py: %v", l.ID, rules)
		}
		if l.Wrong == nil || l.Wrong.Rule == "" {
			continue
		}
		if rules := rulesOf(t, l.Wrong.Name); !slices.Equal(rules, []string{l.Wrong.Rule}) {
			t.Errorf("%s.py: %v in place of %s", l.Wrong.Name, rules, l.Wrong.Rule)
		}
	}
	if _, err := pysyntax.Parse("no.py", []byte("for")); err == nil {
		t.Error("what is no Python passes")
	}
}

// shown is what each program with a mistake prints of it, as a pattern that the mended program's output has not.
var shown = map[string]string{
	"L05Wrong": `refuses, at a line of this file: true`,
	"L06Wrong": `names Mask alone: true`,
	"L09Wrong": `read 20 times`,
	"L10Wrong": `saw less than the clock behind it: true`,
	"L15Wrong": `\d+ bytes crossed the bus in 3 steps`,
	"L19Wrong": `kept for no one: true`,
	"L20Wrong": `largest gradient is 0`,
	"L26Wrong": `10 copies and 10 reads`,
	"L27Wrong": `scored twice, equal: false`,
	"L29Wrong": `an error with a hint: true`,
	"L30Wrong": `more from step to step: [1-9]`,
	"L31Wrong": `(?m)^gradient 2$`,
}

// TestMistakes: each mistake runs in its broken form and shows there, is found by a rule of warpline vet in PyTorch's, and does not show
// in the program that mends it. A mistake without a row in shown fails.
func TestMistakes(t *testing.T) {
	count := 0
	for i := range Listings {
		l := &Listings[i]
		if l.Wrong == nil {
			continue
		}
		count++
		pattern, ok := shown[l.Wrong.Name]
		if !ok || l.Wrong.Rule == "" || l.Wrong.What == "" || l.Wrong.Found == "" {
			t.Errorf("%s: %+v", l.Wrong.Name, *l.Wrong)
			continue
		}
		broken, mended := output(t, l.Wrong.Run, "cpu", l.Values()), output(t, l.Run, "cpu", l.Values())
		if re := regexp.MustCompile(pattern); !re.MatchString(broken) || re.MatchString(mended) {
			t.Errorf("%s shows %q, mended it shows %q", l.Wrong.Name, broken, mended)
		}
	}
	if count != len(shown) {
		t.Errorf("%d mistakes of %d", count, len(shown))
	}
}

// waits is how often the host has waited for the device at lines of a file while a program ran.
func waits(t *testing.T, p Program, n Numbers, file string) (count int) {
	t.Helper()
	env, err := tensor.Fresh("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := p(env, n, new(strings.Builder)); err != nil {
		t.Fatal(err)
	}
	for _, s := range env.Device().Syncs() {
		if strings.HasPrefix(s.Line, file) {
			count += s.Count
		}
	}
	return count
}

// TestWaits: a device counts the waits of a loop that reads in each step, and few of the mended one.
func TestWaits(t *testing.T) {
	n := Numbers{"steps": 10, "every": 10}
	if wrong, right := waits(t, L09Wrong, n, "l09.go:"), waits(t, L09, n, "l09.go:"); wrong < 10 || right > 2 {
		t.Errorf("%d waits of the program that is wrong, %d of the other", wrong, right)
	}
	if wrong, right := waits(t, L26Wrong, n, "l26.go:"), waits(t, L26, n, "l26.go:"); wrong < 10 || right > 3 {
		t.Errorf("%d waits of the program that is wrong, %d of the other", wrong, right)
	}
}

// profiled is what a profiler finds of a training that keeps what each step made, or does not.
func profiled(env *tensor.Env, steps int, mistake bool) []prof.Finding {
	var all []*tensor.Tensor
	model := nn.NewLinear(env, 64, 64)
	p := prof.New(prof.Config{Wait: 1, Warmup: 1, Active: steps - 2, Repeat: 1, Memory: true})
	watched := env.Profiled(p)
	for range steps {
		watched.Do(func(env *tensor.Env) *tensor.Tensor {
			y := model.Forward(env.Ones(256, 64))
			if mistake {
				all = append(all, y.Keep())
			}
			return nil
		})
		p.Step()
	}
	p.Stop()
	return p.Last().Findings()
}

// TestKept: the finding of a profile names the line that keeps, and there is none where nothing is kept.
func TestKept(t *testing.T) {
	for _, device := range []string{"cpu", "sim:0"} {
		for _, mistake := range []bool{true, false} {
			env, err := tensor.Fresh(device)
			if err != nil {
				t.Fatal(err)
			}
			found := profiled(env, 6, mistake)
			i := slices.IndexFunc(found, func(f prof.Finding) bool {
				return f.Name == "kept-across-steps" && strings.HasPrefix(f.Line, "mistakes_test.go:")
			})
			if (i >= 0) != mistake {
				t.Errorf("%s, mistake %v: found %v", device, mistake, found)
			}
		}
	}
}

// TestRounded: prof.Precision counts the gradients that a program without a scale loses.
func TestRounded(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if err := L20Wrong(env, nil, &got); err != nil || got.String() != "the largest gradient is 0\n" {
		t.Errorf("%q, %v", &got, err)
	}
}
