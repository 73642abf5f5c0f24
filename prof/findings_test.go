package prof_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// noise is a source of pictures of noise, each of which takes a while to come.
type noise struct{ slow time.Duration }

func (noise) Len() int { return 512 }

func (noise) Fields() []data.Field {
	return []data.Field{{DType: dtype.F32, Shape: []int{64}}, {DType: dtype.I64}}
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

// sick is a training with a mistake: what its loop does with a batch and the loss of it.
type sick struct {
	rule    string
	devices []string
	slow    time.Duration // of each sample
	after   func(t *testing.T, b *data.Pair, loss *tensor.Tensor)
}

// kept are values that a program keeps by mistake.
var kept []*tensor.Tensor

var trainings = []sick{
	{"loader-bound", []string{"cpu"}, 2 * time.Millisecond, nil},
	{"host-bound", []string{"cpu"}, 0, func(*testing.T, *data.Pair, *tensor.Tensor) { time.Sleep(30 * time.Millisecond) }},
	{"kept-across-steps", []string{"cpu", "sim:h100-80:4", "null:h100-80"}, 0, func(_ *testing.T, b *data.Pair, _ *tensor.Tensor) {
		kept = append(kept, b.X.MatMul(b.X.Transpose(0, 1)).Keep()) // the mistake
	}},
}

// TestFindings: each mistake in a training is found, at its line where there is one.
func TestFindings(t *testing.T) {
	for _, s := range trainings {
		for _, name := range s.devices {
			p := s.train(t, name)
			found := p.Findings()
			i := slices.IndexFunc(found, func(f prof.Finding) bool { return f.Rule == s.rule })
			if i < 0 {
				t.Errorf("%s on %s: found %+v", s.rule, name, found)
				continue
			}
			if s.rule == "kept-across-steps" && !strings.HasPrefix(found[i].Line, "findings_test.go:") {
				t.Errorf("%s on %s: blames %s", s.rule, name, found[i].Line)
			}
		}
	}
}

// TestNoGrowth: a training that keeps nothing does not grow, on any engine.
func TestNoGrowth(t *testing.T) {
	for _, e := range engines {
		p := (&sick{}).train(t, e.name)
		for _, f := range p.Findings() {
			if f.Rule == "kept-across-steps" {
				t.Errorf("%s: %v", e.name, f.String())
			}
		}
	}
}

// train makes eight steps, and returns the profile of the last five.
func (s *sick) train(t *testing.T, name string) *prof.Profile {
	env, err := tensor.Fresh(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { kept = nil }()
	m := nn.Sequential{nn.NewLinear(env, 64, 64), nn.ReLU{}, nn.NewLinear(env, 64, 10)}
	opt := optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 0.1})
	p := prof.New(prof.Config{Skip: 2, Warmup: 1, Active: 5, Repeat: 1})
	for b, err := range data.Batches(env.Profiled(p), data.Source[data.Pair](noise{s.slow}), data.Config{Size: 64, Steps: 8}) {
		if err != nil {
			t.Fatal(err)
		}
		loss := nn.CrossEntropy(m.Forward(b.X), b.Y)
		if s.after != nil {
			s.after(t, b, loss)
		}
		loss.Backward()
		opt.Step()
		p.Step()
	}
	p.Stop()
	if p.Last() == nil || p.Last().Err != nil {
		t.Fatalf("%s: profile %+v", name, p.Last())
	}
	return p.Last()
}
