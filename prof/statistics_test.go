package prof_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// network is two Linear with a ReLU between them and the mean of squares as loss, in float64 by hand.
type network struct {
	in, hidden, out, batch int
	w1, b1, w2, b2, x      []float64
}

// values are what a look must find, by path and field.
func (n *network) values() map[string][]float64 {
	product := func(x, w, b []float64, in, out int) []float64 {
		y := make([]float64, n.batch*out)
		for r := range n.batch {
			for o := range out {
				s := b[o]
				for i := range in {
					s += x[r*in+i] * w[o*in+i]
				}
				y[r*out+o] = s
			}
		}
		return y
	}
	gradients := func(g, x []float64, in, out int) (w, b []float64) {
		w, b = make([]float64, out*in), make([]float64, out)
		for r := range n.batch {
			for o := range out {
				b[o] += g[r*out+o]
				for i := range in {
					w[o*in+i] += g[r*out+o] * x[r*in+i]
				}
			}
		}
		return w, b
	}
	h := product(n.x, n.w1, n.b1, n.in, n.hidden)
	a := slices.Clone(h)
	for i := range a {
		a[i] = max(0, a[i])
	}
	y := product(a, n.w2, n.b2, n.hidden, n.out)
	dy, da := make([]float64, len(y)), make([]float64, len(a))
	for i := range y {
		dy[i] = 2 * y[i] / float64(len(y))
	}
	for r := range n.batch {
		for o := range n.out {
			for i := range n.hidden {
				da[r*n.hidden+i] += dy[r*n.out+o] * n.w2[o*n.hidden+i]
			}
		}
	}
	dh := slices.Clone(da)
	for i := range dh {
		if h[i] <= 0 {
			dh[i] = 0
		}
	}
	dw1, db1 := gradients(dh, n.x, n.in, n.hidden)
	dw2, db2 := gradients(dy, a, n.hidden, n.out)
	return map[string][]float64{
		"0 output": h, "1 output": a, "2 output": y, "0 gradient": dh, "1 gradient": da, "2 gradient": dy,
		"0 weights": append(slices.Clone(n.w1), n.b1...), "2 weights": append(slices.Clone(n.w2), n.b2...),
		"0 weight gradients": append(dw1, db1...), "2 weight gradients": append(dw2, db2...),
	}
}

// figures are those of a row by field.
func figures(r *prof.ModuleValues) map[string]*prof.Values {
	return map[string]*prof.Values{"output": r.Output, "gradient": r.Gradient, "weights": r.Weights, "weight gradients": r.WeightGradients}
}

// TestStatistics compares a look with the same network in float64: plain, recomputed, in two parts and scaled, with a unit that gives 0 for
// the whole batch.
func TestStatistics(t *testing.T) {
	const dead = 3
	for _, device := range []string{"cpu", "sim:0"} {
		for _, mode := range []string{"plain", "recomputed", "in parts", "scaled"} {
			t.Run(device+" "+mode, func(t *testing.T) {
				env, err := tensor.Fresh(device)
				if err != nil {
					t.Fatal(err)
				}
				rnd := rand.New(rand.NewPCG(1, 2))
				n := network{in: 5, hidden: 7, out: 3, batch: 4}
				draw := func(k int) []float64 {
					v := make([]float64, k)
					for i := range v {
						v[i] = float64(float32(rnd.NormFloat64()))
					}
					return v
				}
				n.w1, n.b1, n.w2, n.b2, n.x = draw(n.in*n.hidden), draw(n.hidden), draw(n.hidden*n.out), draw(n.out), draw(n.batch*n.in)
				n.b1[dead] = -100
				model := nn.Sequential{nn.NewLinear(env, n.in, n.hidden), nn.ReLU{}, nn.NewLinear(env, n.hidden, n.out)}
				for path, v := range map[string][]float64{"0.weight": n.w1, "0.bias": n.b1, "2.weight": n.w2, "2.bias": n.b2} {
					nn.Init(model, func(at string, p *tensor.Tensor) {
						if at == path {
							p.In(env.NoGrad()).CopyInPlace(floats32(env, v, p.Shape()...))
						}
					})
				}
				forward, scale := model.Forward, 1.0
				if mode == "recomputed" {
					forward = nn.Recompute(model).Forward
				}
				if mode == "scaled" {
					scale = 1024
				}
				x := floats32(env, n.x, n.batch, n.in)
				s := prof.NewStatistics(model)
				s.Begin()
				for _, part := range halves4(x, mode == "in parts") {
					forward(part).Square().Sum().Scale(scale / float64(n.batch*n.out)).Backward()
				}
				table := s.End(scale).Values()
				if s.End(1) != nil {
					t.Error("a look ended twice")
				}
				if len(table) != 3 {
					t.Fatalf("%d rows:\n%v", len(table), table)
				}
				for i := range table {
					r := &table[i]
					for field, got := range figures(r) {
						want := n.values()[r.Path+" "+field]
						if (got == nil) != (want == nil) {
							t.Errorf("%s %s: %v", r.Path, field, got)
						} else if got != nil {
							compare(t, r.Path+" "+field, got, want)
						}
					}
				}
				if r := &table[0]; r.Units != n.hidden || !slices.Equal(r.Idle, []int{dead}) || r.Kind != "Linear" {
					t.Errorf("units of the first: %d, idle %v, %s", r.Units, r.Idle, r.Kind)
				}
				if text := table.String(); !strings.Contains(text, "1 of 7") || !strings.Contains(text, "ReLU") {
					t.Error(text)
				}
			})
		}
	}
}

func floats32(env *tensor.Env, v []float64, shape ...int) *tensor.Tensor {
	f := make([]float32, len(v))
	for i := range v {
		f[i] = float32(v[i])
	}
	return tensor.From(env, f, shape...)
}

// halves4 is a batch of four, or its halves.
func halves4(x *tensor.Tensor, parts bool) []*tensor.Tensor {
	if parts {
		return []*tensor.Tensor{x.Slice(0, 0, 2), x.Slice(0, 2, 4)}
	}
	return []*tensor.Tensor{x}
}

func compare(t *testing.T, what string, got *prof.Values, v []float64) {
	t.Helper()
	squares, most, none := 0.0, 0.0, 0
	for _, x := range v {
		squares += x * x
		most = max(most, math.Abs(x))
		if x == 0 {
			none++
		}
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-5*math.Abs(b)+1e-9 }
	n := float64(len(v))
	if got.Elements != len(v) || !near(got.RMS, math.Sqrt(squares/n)) || !near(got.Max, most) || !near(got.Zeros, float64(none)/n) {
		t.Errorf("%s: %+v, want %d elements, rms %v, most %v, zeros %v", what, *got, len(v), math.Sqrt(squares/n), most, float64(none)/n)
	}
}

// TestStatisticsNone: what has no number is null in JSON, a batch of nothing is told as such, and integers are left alone.
func TestStatisticsNone(t *testing.T) {
	env := tensor.Best()
	model := nn.Sequential{nn.NewLinear(env, 2, 2)}
	s := prof.NewStatistics(model)
	s.Begin()
	model.Forward(env.Full(math.Inf(1), 1, 2).In(env.NoGrad()))
	model.Forward(env.Zeros(0, 2).In(env.NoGrad()))
	look := s.End(1)
	table := look.Values()
	raw, err := json.Marshal(table)
	if err != nil || !strings.Contains(string(raw), `"rms":null`) || strings.Contains(string(raw), `"gradient"`) {
		t.Errorf("%s, %v", raw, err)
	}
	if r := table[0]; r.Output.Elements != 2 || r.WeightGradients != nil || r.Units != 0 {
		t.Errorf("%+v", r)
	}
	s.Begin()
	defer s.Drop()
	_, err = env.Try(func(*tensor.Env) *tensor.Tensor { s.Begin(); return nil })
	if err == nil || !strings.Contains(fmt.Sprint(err), "under way") {
		t.Errorf("a second look: %v", err)
	}
}

// TestStatisticsMemory: a look leaves nothing on the device when it is read, and the step's own values end as before.
func TestStatisticsMemory(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	model := nn.Sequential{nn.NewLinear(env, 64, 64), nn.Tanh{}, nn.NewLinear(env, 64, 64)}
	kept := func(look bool) int64 {
		inner, scope := env.Scope()
		defer scope.End()
		s := prof.NewStatistics(model)
		if look {
			s.Begin()
		}
		y := model.Forward(inner.Ones(32, 64).Cast(dtype.F32)).Square().Sum()
		before := env.Device().Memory().Used
		s.Drop()
		y.Backward()
		for _, p := range nn.Params(model) {
			p.DropGrad()
		}
		return before
	}
	kept(false)
	if a, b := kept(false), kept(true); b-a > 4096 {
		t.Errorf("a look keeps %d bytes of a step that keeps %d", b-a, a)
	}
}
