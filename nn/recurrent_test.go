package nn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

func init() {
	type env = tensor.Env
	maps.Copy(forwards, map[string]forward{
		"LSTM": recurrentCase(func(e *env, in, hidden int, c RecurrentConfig) *recurrent {
			return &NewLSTM(e, in, hidden, c).recurrent
		}),
		"GRU": recurrentCase(func(e *env, in, hidden int, c RecurrentConfig) *recurrent { return &NewGRU(e, in, hidden, c).recurrent }),
		"RNN": recurrentCase(func(e *env, in, hidden int, c RecurrentConfig) *recurrent { return &NewRNN(e, in, hidden, c).recurrent }),
		"LSTMCell": func(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
			h, cell := loaded(c, NewLSTMCell(c.env(), in["x"].Dim(-1), c.Attrs.int("hidden", 0), c.cell())).Forward(in["x"], in["h"], in["c"])
			return []*tensor.Tensor{h, cell}
		},
		"GRUCell": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
			return loaded(c, NewGRUCell(c.env(), in["x"].Dim(-1), c.Attrs.int("hidden", 0), c.cell())).Forward(in["x"], in["h"])
		}),
		"RNNCell": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
			return loaded(c, NewRNNCell(c.env(), in["x"].Dim(-1), c.Attrs.int("hidden", 0), c.cell())).Forward(in["x"], in["h"])
		}),
	})
}

func (c *goldenCase) cell() CellConfig {
	return CellConfig{NoBias: c.Attrs["bias"] == false, ReLU: c.Attrs.text("nonlinearity") == "relu"}
}

func (c *goldenCase) recurrent() RecurrentConfig {
	return RecurrentConfig{Layers: c.Attrs.int("num_layers", 1), Bidirectional: c.Attrs.flag("bidirectional"), BatchFirst: c.Attrs.flag("batch_first"),
		Dropout: c.Attrs.number("dropout", 0), NoBias: c.Attrs["bias"] == false, Proj: c.Attrs.int("proj_size", 0), ReLU: c.Attrs.text("nonlinearity") == "relu"}
}

// TestCellSteps: a cell with a layer's weights does what the layer does, and tells what does not fit.
func TestCellSteps(t *testing.T) {
	env := freshEnv(t)
	l, c := NewLSTM(env, 3, 4, RecurrentConfig{}), NewLSTMCell(env, 3, 4, CellConfig{})
	c.WeightIH, c.WeightHH, c.BiasIH, c.BiasHH = l.Weights["weight_ih_l0"], l.Weights["weight_hh_l0"], l.Weights["bias_ih_l0"], l.Weights["bias_hh_l0"]
	x := env.Randn(5, 2, 3)
	want, end := l.Run(x, RecurrentState{}, nil)
	var h, s *tensor.Tensor
	for i := range 5 {
		h, s = c.Forward(x.Select(0, i), h, s)
		if d := h.Sub(want.Select(0, i)).Abs().Max().Item(); d > 1e-6 {
			t.Errorf("step %d differs by %v", i, d)
		}
	}
	if d := s.Sub(end.C.Select(0, 0)).Abs().Max().Item(); d > 1e-6 {
		t.Errorf("the state differs by %v", d)
	}
	for name, f := range map[string]func(){
		"width":      func() { c.Forward(env.Ones(2, 4), nil, nil) },
		"rank":       func() { c.Forward(env.Ones(2, 2, 3), nil, nil) },
		"state":      func() { c.Forward(env.Ones(2, 3), env.Ones(3, 4), nil) },
		"hidden":     func() { NewGRUCell(env, 3, 0, CellConfig{}) },
		"zero value": func() { new(RNNCell).Forward(env.Ones(2, 3), nil) },
	} {
		if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// recurrentCase runs a layer of a kind with the case's options.
func recurrentCase(build func(env *tensor.Env, in, hidden int, c RecurrentConfig) *recurrent) forward {
	return func(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
		x := in["x"]
		l := build(x.Env(), x.Dim(-1), c.Attrs.int("hidden", 0), c.recurrent())
		for name := range l.Weights {
			l.Weights[name] = c.param(name)
		}
		y, end := l.Run(x, RecurrentState{in["h"], in["c"]}, in["lengths"])
		if end.C == nil {
			return []*tensor.Tensor{y, end.H}
		}
		return []*tensor.Tensor{y, end.H, end.C}
	}
}

// TestRecurrentModule: a layer is a Module with PyTorch's names, takes samples without a batch, and drops out between its
// layers in training only.
func TestRecurrentModule(t *testing.T) {
	env := freshEnv(t)
	l := NewLSTM(env, 3, 4, RecurrentConfig{Layers: 2, Bidirectional: true, Proj: 2, Dropout: 0.5})
	names := map[string][]int{}
	for path, p := range Params(Sequential{l}) {
		names[path] = p.Shape()
	}
	for name, shape := range map[string][]int{"0.weight_ih_l0": {16, 3}, "0.weight_hh_l1_reverse": {16, 2}, "0.weight_ih_l1": {16, 4},
		"0.bias_hh_l0_reverse": {16}, "0.weight_hr_l1": {2, 4}} {
		if got := names[name]; len(got) != len(shape) || got[0] != shape[0] {
			t.Errorf("%s has shape %v, want %v", name, got, shape)
		}
	}
	if len(names) != 20 {
		t.Errorf("%d parameters, want 20", len(names))
	}
	x := env.Randn(5, 3, 3)
	y := l.Forward(x.In(env.Eval()))
	one, end := l.Run(x.Select(1, 1).In(env.Eval()), RecurrentState{}, nil)
	if d := y.Select(1, 1).Sub(one).Abs().Max().Item(); d > 1e-6 || end.H.Rank() != 2 || end.C.Dim(1) != 4 {
		t.Errorf("one sample differs by %v; states %v", d, end.H.Shape())
	}
	if d := l.Forward(x).Sub(y).Abs().Max().Item(); d == 0 {
		t.Error("nothing was dropped in training")
	}
	if s := Summary(l, 5, 3, 3).String(); !strings.Contains(s, "LSTM") {
		t.Errorf("no LSTM in\n%s", s)
	}
	twin := Clone(l)
	if d := twin.Forward(x.In(env.Eval())).Sub(y).Abs().Max().Item(); d != 0 {
		t.Errorf("a clone differs by %v", d)
	}
}

// TestRecurrentRetain: a graph that is kept gives its gradients again: no walk writes over what was saved.
func TestRecurrentRetain(t *testing.T) {
	env := freshEnv(t)
	l, x := NewLSTM(env, 3, 4, RecurrentConfig{}), env.Randn(5, 2, 3)
	loss := l.Forward(x).Square().Sum()
	loss.BackwardRetain()
	w := l.Weights["weight_hh_l0"]
	once := w.Grad().Clone()
	loss.Backward()
	if d := w.Grad().Sub(once.Scale(2)).Abs().Max().Item(); d != 0 || once.Abs().Max().Item() == 0 {
		t.Errorf("gradients of two walks differ from twice those of one by %v", d)
	}
}

// TestLSTMStatesAreOneWay walks dtypes of weights and of states, directions, runs with and without gradients, and autocast: samples of equal
// lengths, whose states are copied for their masks, give what samples without lengths give, whose states are written behind
// each other, in the same dtype and to the bit, as results, as states and as gradients.
func TestLSTMStatesAreOneWay(t *testing.T) {
	root := freshEnv(t)
	cases := 0
	for _, weights := range []dtype.DType{dtype.F32, dtype.F64, dtype.BF16} {
		for _, states := range []dtype.DType{dtype.Invalid, dtype.F32, dtype.F64, dtype.BF16} {
			for _, c := range []RecurrentConfig{{}, {Layers: 2, Bidirectional: true}} {
				l := NewLSTM(root, 3, 4, c)
				Cast(l, weights)
				x := root.Randn(5, 2, 3).Cast(weights).RequireGrad()
				var h, cell *tensor.Tensor
				if states != dtype.Invalid {
					shape := []int{1, 2, 4}
					if c.Layers > 0 {
						shape[0] = 4
					}
					h, cell = root.Randn(shape...).Cast(states), root.Randn(shape...).Cast(states)
				}
				run := func(e *tensor.Env, lengths *tensor.Tensor) (out []*tensor.Tensor, err error) {
					_, err = e.Try(func(e *tensor.Env) *tensor.Tensor {
						y, end := l.Run(x.In(e), RecurrentState{h, cell}, lengths)
						out = []*tensor.Tensor{y.Detach(), end.H.Detach(), end.C.Detach()}
						if y.Recorded() {
							y.Square().Sum().Add(end.H.Sum()).Backward()
							out = append(out, x.Grad().Clone())
							x.DropGrad()
							for _, p := range Params(l) {
								out = append(out, p.Grad().Clone())
								p.DropGrad()
							}
						}
						for i, v := range out {
							out[i] = v.Keep()
						}
						return nil
					})
					return out, err
				}
				for way, e := range map[string]*tensor.Env{"with gradients": root, "without": root.NoGrad(),
					"autocast": root.Autocast(dtype.BF16), "autocast without": root.Autocast(dtype.F16).NoGrad()} {
					name := fmt.Sprintf("weights in %s, states in %s, %+v, %s", weights, states, c, way)
					want, err := run(e, tensor.From(root, []int64{5, 5}, 2))
					got, err2 := run(e, nil)
					if (err == nil) != (err2 == nil) {
						t.Errorf("%s: with lengths %v, without %v", name, err, err2)
						continue
					}
					if err == nil {
						cases++
					}
					for i := range want {
						if got[i].DType() != want[i].DType() || !slices.Equal(got[i].Floats(), want[i].Floats()) {
							t.Errorf("%s: value %d is %v, with lengths %v", name, i, got[i], want[i])
						}
					}
				}
			}
		}
	}
	if cases < 60 {
		t.Errorf("%d cases ran", cases)
	}
}

// TestLSTMRecorded: a layer is recorded as a program, which follows its operand.
func TestLSTMRecorded(t *testing.T) {
	env := freshEnv(t).NoGrad()
	l := NewLSTM(env, 3, 4, RecurrentConfig{Layers: 2, Bidirectional: true})
	x := env.Randn(5, 2, 3)
	p, y := tensor.Record(x, l.Forward)
	next := env.Randn(5, 2, 3)
	p.Run(next)
	if want := l.Forward(next); !slices.Equal(y.Floats(), want.Floats()) {
		t.Errorf("the program gives %v, want %v", y, want)
	}
}

// TestLSTMResult: what an LSTM gives is what its gradient needs, so that writing over it is refused behind it, as PyTorch's does; the
// last state is one's own, and holds no other.
func TestLSTMResult(t *testing.T) {
	env := freshEnv(t)
	l := NewLSTM(env, 3, 4, RecurrentConfig{})
	run := func(e *tensor.Env) (y *tensor.Tensor, end RecurrentState) {
		return l.Run(e.Randn(50, 2, 3), RecurrentState{}, nil)
	}
	y, end := run(env)
	end.H.AddInPlace(env.Ones(1))
	y.Square().Sum().Backward()
	y, _ = run(env)
	y.AddInPlace(env.Ones(1))
	if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { y.Sum().Backward(); return nil }); err == nil || !strings.Contains(err.Error(), "in place") {
		t.Errorf("behind a result that was written over: %v", err)
	}
	before := env.Device().Memory().Used
	end = tensor.Do(env.NoGrad(), func(e *tensor.Env) RecurrentState { _, end := run(e); return end })
	if used := env.Device().Memory().Used - before; used != end.H.Bytes()+end.C.Bytes() {
		t.Errorf("%d bytes are left of states of %d and %d", used, end.H.Bytes(), end.C.Bytes())
	}
}

// TestRecurrentErrors tells what does not fit.
func TestRecurrentErrors(t *testing.T) {
	env := freshEnv(t)
	l := NewGRU(env, 3, 4, RecurrentConfig{})
	for name, f := range map[string]func(){
		"width":      func() { l.Forward(env.Ones(2, 2, 4)) },
		"rank":       func() { l.Forward(env.Ones(3)) },
		"steps":      func() { l.Forward(env.Ones(0, 2, 3)) },
		"state":      func() { l.Run(env.Ones(2, 2, 3), RecurrentState{H: env.Ones(1, 3, 4)}, nil) },
		"lengths":    func() { l.Run(env.Ones(2, 2, 3), RecurrentState{}, env.Arange(3)) },
		"projection": func() { NewGRU(env, 3, 4, RecurrentConfig{Proj: 2}) },
		"wide":       func() { NewLSTM(env, 3, 4, RecurrentConfig{Proj: 4}) },
		"zero value": func() { new(LSTM).Forward(env.Ones(2, 2, 4)) },
	} {
		if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestRecurrentAutocast walks units, layers, directions and projections: in 16 bits all run forth and back, gradients have the
// dtypes of what they are of, and all is near what float32 gives.
func TestRecurrentAutocast(t *testing.T) {
	root := freshEnv(t)
	kinds := map[string]func(c RecurrentConfig) *recurrent{
		"LSTM": func(c RecurrentConfig) *recurrent { return &NewLSTM(root, 3, 4, c).recurrent },
		"GRU":  func(c RecurrentConfig) *recurrent { return &NewGRU(root, 3, 4, c).recurrent },
		"RNN":  func(c RecurrentConfig) *recurrent { return &NewRNN(root, 3, 4, c).recurrent },
	}
	for kind, build := range kinds {
		for i := range 8 {
			c := RecurrentConfig{Layers: 1 + i&1, Bidirectional: i&2 != 0}
			if i&4 != 0 {
				if c.Proj = 2; kind != "LSTM" {
					continue
				}
			}
			l, x := build(c), root.Randn(5, 2, 3).RequireGrad()
			run := func(e *tensor.Env) map[string]*tensor.Tensor {
				y, end := l.Run(x.In(e), RecurrentState{}, nil)
				y.Square().Sum().Add(end.H.Sum()).Backward()
				out := map[string]*tensor.Tensor{"y": y.Detach(), "x": x.Grad().Clone()}
				for name, w := range l.Weights {
					out[name] = w.Grad().Clone()
					w.DropGrad()
				}
				x.DropGrad()
				return out
			}
			want := run(root)
			for _, d := range []dtype.DType{dtype.BF16, dtype.F16} {
				for name, got := range run(root.Autocast(d)) {
					w := want[name]
					off, most := got.Cast(dtype.F32).Sub(w).Abs().Max().Item(), 0.05*max(1, w.Abs().Max().Item())
					if name != "y" && got.DType() != dtype.F32 || !(off <= most) {
						t.Errorf("%s %+v in %s: %s is %s, %v from float32's, at most %v", kind, c, d, name, got.Info(), off, most)
					}
				}
			}
		}
	}
}
