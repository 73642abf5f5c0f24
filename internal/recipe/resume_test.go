package recipe_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/formula"
	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// student is a model that an optimizer trains.
type student struct {
	env   *tensor.Env
	model nn.Sequential
	opt   optim.Optimizer
}

func newStudent(t *testing.T, o *recipe.Optimizer, device string, dt dtype.DType, s recipe.Step) *student {
	t.Helper()
	env, err := tensor.Fresh(device)
	if err != nil {
		t.Fatal(err)
	}
	env = env.Seed(9)
	m := nn.Sequential{nn.NewLinear(env, 5, 70), nn.Tanh{}, nn.NewLinear(env, 70, 70), nn.NewLayerNorm(env, 70), nn.NewLinear(env, 70, 3)} // of which one has enough elements for codes of 8 bits
	if dt != dtype.F32 {
		nn.Cast(m, dt)
	}
	s.LR, s.WeightDecay = 0.02, 0.1
	return &student{env, m, o.Make(nn.Params(m), s)}
}

// steps go from one step to another.
func (s *student) steps(from, to int) {
	for i := from; i < to; i++ {
		e, scope := s.env.Scope(uint64(i))
		dt := s.model[0].(*nn.Linear).Weight.DType()
		s.opt.SetLR(0.02 / float64(1+i))
		s.model.Forward(e.Randn(4, 5).Cast(dt)).Sub(e.Randn(4, 3).Cast(dt)).Square().Mean().Backward()
		s.opt.Step()
		scope.End()
	}
}

// all is weights and state.
func (s *student) all() map[string][]float64 {
	out := map[string][]float64{}
	for name, p := range nn.Params(s.model) {
		out[name] = p.Floats()
	}
	for name, v := range s.opt.State() {
		out["state of "+name] = v.Floats()
	}
	for name, n := range s.opt.Counters() {
		out["count of "+name] = []float64{float64(n)}
	}
	return out
}

func differ(a, b map[string][]float64) (names []string) {
	for name := range a {
		if !slices.Equal(a[name], b[name]) {
			names = append(names, name)
		}
	}
	for name := range b {
		if a[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestResumed: on every engine, with parameters of every dtype and rounding, what an optimizer keeps, loaded into another of its kind
// beside the weights, goes on to the same bytes.
func TestResumed(t *testing.T) {
	spread := testutil.NewSpread(t, testutil.Seed(t), 4)
	for i := range recipe.Optimizers {
		o := &recipe.Optimizers[i]
		for _, c := range []struct {
			device   string
			dt       dtype.DType
			rounding optim.Rounding
		}{
			{"cpu", dtype.F32, 0}, {"cpu", dtype.F64, 0}, {"sim:0", dtype.F32, 0},
			{"cpu", dtype.BF16, optim.Nearest}, {"cpu", dtype.BF16, optim.Kahan}, {"cpu", dtype.BF16, optim.Stochastic}, {"sim:0", dtype.BF16, optim.Kahan},
		} {
			name := fmt.Sprint(o.Name, " ", c.device, " ", c.dt, " ", c.rounding)
			if !spread.Takes(name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				step := recipe.Step{Rounding: c.rounding, Seed: 3}
				whole := newStudent(t, o, c.device, c.dt, step)
				whole.steps(0, 6)
				first, second := newStudent(t, o, c.device, c.dt, step), newStudent(t, o, c.device, c.dt, step)
				first.steps(0, 3)
				state := maps.Collect(first.opt.State())
				if err := second.opt.Load(state, first.opt.Counters()); err != nil {
					t.Fatal(err)
				}
				for from, to := range nn.Zip(first.model, second.model) {
					to.CopyInPlace(from.Detach().To(to.Env()))
				}
				second.steps(3, 6)
				if names := differ(whole.all(), second.all()); len(names) > 0 {
					t.Errorf("3 and 3 steps leave other %q than 6", names)
				}
				if names := differ(whole.all(), first.all()); len(names) < 5 {
					t.Errorf("the last steps change only %q", names)
				}
			})
		}
	}
}

// TestGroupRates: of two groups, the one whose rate is 0 stays, and with equal rates there are no groups.
func TestGroupRates(t *testing.T) {
	for i := range recipe.Optimizers {
		o := &recipe.Optimizers[i]
		t.Run(o.Name, func(t *testing.T) {
			rule := func(path string, p *tensor.Tensor, r *optim.Rates) {
				if p.Rank() == 1 {
					r.Group = 1
				}
			}
			trained := func(rule optim.Rule, rate float64) map[string][]float64 {
				s := newStudent(t, o, "cpu", dtype.F32, recipe.Step{Rule: rule})
				if g, ok := s.opt.(interface{ SetGroupLR(int, float64) }); rate >= 0 {
					if !ok {
						t.Fatal("groups have no rates")
					}
					g.SetGroupLR(1, rate)
				}
				s.steps(0, 1)
				return s.all()
			}
			plain := func(string, *tensor.Tensor, *optim.Rates) {}
			before := newStudent(t, o, "cpu", dtype.F32, recipe.Step{Rule: plain}).all()
			all, same, still := trained(plain, -1), trained(rule, 0.02), trained(rule, 0)
			if names := differ(all, same); len(names) > 0 {
				t.Errorf("two groups of one rate leave other %q", names)
			}
			for name, v := range before {
				if strings.Contains(name, " of ") {
					continue
				}
				stays := slices.Equal(v, still[name])
				if vector := len(v) != 350 && len(v) != 4900 && len(v) != 210; stays != vector {
					t.Errorf("%s stays: %v, of the group without a rate: %v", name, stays, vector)
				}
			}
		})
	}
}

// TestFormula: what an optimizer keeps of a matrix is what plan's formula says that it keeps.
func TestFormula(t *testing.T) {
	const side, momentum = 512, "momentum" // which is sgd with a setting
	for _, f := range formula.Optimizers {
		step, name := recipe.Step{LR: 0.1}, f.Name
		if name == momentum {
			step.Values, name = recipe.Values{momentum: 0.9}, "sgd"
		}
		o := recipe.OptimizerOf(name)
		if o == nil {
			t.Errorf("plan knows %s, and train does not", name)
			continue
		}
		env, err := tensor.Fresh("cpu")
		if err != nil {
			t.Fatal(err)
		}
		w := tensor.NewParam(env.Ones(side, side))
		opt := o.Make(func(yield func(string, *tensor.Tensor) bool) { yield("w", w) }, step)
		w.Square().Sum().Backward()
		opt.Step()
		bytes := 0.
		for _, s := range opt.State() {
			bytes += float64(s.Bytes())
		}
		if each := bytes / side / side; math.Abs(each-f.Full) > 0.02 {
			t.Errorf("%s keeps %v bytes for each weight, and plan says %v", f.Name, each, f.Full)
		}
	}
}
