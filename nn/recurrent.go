package nn

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/tensor"
)

// RecurrentConfig describes [NewLSTM], [NewGRU] and [NewRNN]. The zero value is PyTorch's default.
type RecurrentConfig struct {
	Layers        int // 0 means 1
	Bidirectional bool
	BatchFirst    bool    // values are [n, t, ...], not [t, n, ...]
	Dropout       float64 // of what a layer hands on to the next, while training
	NoBias        bool
	Proj          int  // of [LSTM]: the width of a projection of its results; 0: none
	ReLU          bool // of [RNN]: ReLU in place of tanh
}

// RecurrentState is what a recurrent layer starts from and ends with: of each layer and direction, forward before backward.
type RecurrentState struct {
	H *tensor.Tensor // [layers·directions, n, width of results]; nil: zeros
	C *tensor.Tensor // [layers·directions, n, hidden] of an LSTM; nil: zeros
}

// LSTM is PyTorch's, of t steps of n samples [t, n, in] to [t, n, directions·hidden] (Hochreiter and Schmidhuber, 1997):
//
//	i, f, o = σ(Wᵢx + Rᵢh + b), …; g = tanh(…);  c = f·c + i·g;  h = o·tanh(c)
//
// With a projection h is Wₕᵣ times that. Without one, and without lengths, what a layer of one direction gives are the states that its
// gradient needs: behind a result that was written over in place [tensor.Tensor.Backward] fails, as behind PyTorch's.
type LSTM struct{ recurrent }

// GRU is PyTorch's, of t steps of n samples [t, n, in] to [t, n, directions·hidden] (Cho et al., 2014):
//
//	r, z = σ(Wx + Rh + b);  m = tanh(Wₙx + bᵢₙ + r·(Rₙh + bₕₙ));  h = (1-z)·m + z·h
type GRU struct{ recurrent }

// RNN is the plain recurrent layer, of t steps of n samples [t, n, in] to [t, n, directions·hidden]: h = tanh(Wx + Rh + b).
type RNN struct{ recurrent }

// NewLSTM makes a layer of the given widths. Weights are drawn uniformly from ±1/√hidden.
func NewLSTM(env *tensor.Env, in, hidden int, c RecurrentConfig) *LSTM {
	return &LSTM{newRecurrent(env, "nn.NewLSTM", lstmUnit{}, in, hidden, c)}
}

// NewGRU makes a layer of the given widths. Weights are drawn uniformly from ±1/√hidden.
func NewGRU(env *tensor.Env, in, hidden int, c RecurrentConfig) *GRU {
	return &GRU{newRecurrent(env, "nn.NewGRU", gruUnit{}, in, hidden, c)}
}

// NewRNN makes a layer of the given widths. Weights are drawn uniformly from ±1/√hidden.
func NewRNN(env *tensor.Env, in, hidden int, c RecurrentConfig) *RNN {
	return &RNN{newRecurrent(env, "nn.NewRNN", rnnUnit{c.ReLU}, in, hidden, c)}
}

// Forward runs the layer from zeros.
func (l *LSTM) Forward(x *tensor.Tensor) *tensor.Tensor { return l.module(l, x) }

// Forward runs the layer from zeros.
func (l *GRU) Forward(x *tensor.Tensor) *tensor.Tensor { return l.module(l, x) }

// Forward runs the layer from zeros.
func (l *RNN) Forward(x *tensor.Tensor) *tensor.Tensor { return l.module(l, x) }

// recurrent is what the recurrent layers share.
type recurrent struct {
	Weights map[string]*tensor.Tensor `nn:""` // by PyTorch's names: weight_ih_l0, bias_hh_l1_reverse
	Hidden  int
	RecurrentConfig
	unit unit
}

func newRecurrent(env *tensor.Env, op string, u unit, in, hidden int, c RecurrentConfig) recurrent {
	c.Layers = max(c.Layers, 1)
	if in < 1 || hidden < 1 || c.Proj < 0 || c.Proj >= hidden && c.Proj > 0 || !(c.Dropout >= 0 && c.Dropout <= 1) {
		tensor.Raise(op, "widths are positive, a projection is narrower than what it projects, dropout is a share", "%d inputs, %d hidden, %+v", in, hidden, c)
	}
	if _, ok := u.(lstmUnit); c.Proj > 0 && !ok {
		tensor.Raise(op, "use an LSTM, or a Linear behind the layer", "a projection")
	}
	l := recurrent{Weights: map[string]*tensor.Tensor{}, Hidden: hidden, RecurrentConfig: c, unit: u}
	bound := fanBound(hidden)
	rows := u.gates() * hidden
	for layer := range c.Layers {
		for _, suffix := range l.suffixes(layer) {
			l.Weights["weight_ih"+suffix] = uniform(env, bound, rows, in)
			l.Weights["weight_hh"+suffix] = uniform(env, bound, rows, l.width())
			if !c.NoBias {
				l.Weights["bias_ih"+suffix] = uniform(env, bound, rows)
				l.Weights["bias_hh"+suffix] = uniform(env, bound, rows)
			}
			if c.Proj > 0 {
				l.Weights["weight_hr"+suffix] = uniform(env, bound, c.Proj, hidden)
			}
		}
		in = l.width() * l.directions()
	}
	return l
}

// String tells the widths.
func (l *recurrent) String() string {
	w := l.Weights["weight_ih_l0"]
	if w == nil {
		return "recurrent layer without weights"
	}
	return fmt.Sprintf("recurrent layer of %d inputs, %d hidden, %d layers of %d directions", w.Dim(1), l.Hidden, l.Layers, l.directions())
}

// suffixes end the names of a layer's weights, of each direction.
func (l *recurrent) suffixes(layer int) []string {
	all := []string{fmt.Sprintf("_l%d", layer)}
	if l.Bidirectional {
		all = append(all, all[0]+"_reverse")
	}
	return all
}

// width is that of a direction's results.
func (l *recurrent) width() int {
	if l.Proj > 0 {
		return l.Proj
	}
	return l.Hidden
}

func (l *recurrent) directions() int {
	if l.Bidirectional {
		return 2
	}
	return 1
}

// products counts those of all weights.
func (l *recurrent) products(x, _ *tensor.Tensor) int {
	matrices := 0
	for _, w := range l.Weights {
		if w.Rank() == 2 {
			matrices += w.Size()
		}
	}
	return x.Size() / max(x.Dim(-1), 1) * matrices
}

func (l *recurrent) module(outer Module, x *tensor.Tensor) *tensor.Tensor {
	in := enter(outer, x)
	y, _ := l.Run(in.x, RecurrentState{}, nil)
	return in.leave(y)
}

// Run is the layer from a state, with the state that it ends in. x may have no dimension of samples; then states have none
// either. lengths, int64 [n], says how many steps of each sample count, in place of PyTorch's packed sequences: what comes
// behind has no effect, its results are zeros, the state is that of the last step that counts, and the backward direction
// begins there. nil: all.
func (l *recurrent) Run(x *tensor.Tensor, s RecurrentState, lengths *tensor.Tensor) (*tensor.Tensor, RecurrentState) {
	if x.Rank() == 2 {
		return l.single(x, s, lengths)
	}
	l.check(x, s, lengths)
	if l.BatchFirst {
		x = x.Transpose(0, 1)
	}
	mask := counted(x, lengths)
	var hs, cs []*tensor.Tensor
	for layer := range l.Layers {
		var ys []*tensor.Tensor
		for d, suffix := range l.suffixes(layer) {
			out := l.scan(suffix, d == 1, mask).apply(x, pick(s.H, len(hs)), pick(s.C, len(hs)))
			ys, hs = append(ys, out[0]), append(hs, out[1])
			if len(out) > 2 {
				cs = append(cs, out[2])
			}
		}
		if x = ys[0]; len(ys) == 2 {
			x = tensor.Cat(-1, ys...)
		}
		if layer < l.Layers-1 && l.Dropout > 0 {
			x = x.Dropout(l.Dropout)
		}
	}
	end := RecurrentState{H: tensor.Stack(0, hs...)}
	if cs != nil {
		end.C = tensor.Stack(0, cs...)
	}
	if l.BatchFirst {
		x = x.Transpose(0, 1)
	}
	return x, end
}

// single runs one sample without a dimension of samples.
func (l *recurrent) single(x *tensor.Tensor, s RecurrentState, lengths *tensor.Tensor) (*tensor.Tensor, RecurrentState) {
	at := 1
	if l.BatchFirst {
		at = 0
	}
	lift := func(t *tensor.Tensor) *tensor.Tensor {
		if t == nil {
			return nil
		}
		return t.Unsqueeze(1)
	}
	y, end := l.Run(x.Unsqueeze(at), RecurrentState{lift(s.H), lift(s.C)}, lengths)
	if end.H = end.H.Squeeze(1); end.C != nil {
		end.C = end.C.Squeeze(1)
	}
	return y.Squeeze(at), end
}

// check refuses shapes that do not fit.
func (l *recurrent) check(x *tensor.Tensor, s RecurrentState, lengths *tensor.Tensor) {
	w := l.Weights["weight_ih_l0"]
	if w == nil || l.unit == nil {
		tensor.Raise("nn.Recurrent", "make layers with nn.NewLSTM, nn.NewGRU or nn.NewRNN", "the layer has no weights")
	}
	samples := 1
	if l.BatchFirst {
		samples = 0
	}
	if x.Rank() != 3 || x.Dim(-1) != w.Dim(1) || x.Dim(1-samples) == 0 {
		tensor.Raise("nn.Recurrent", "values are [steps, samples, width], with BatchFirst [samples, steps, width], of one step or more", "values %v for a width of %d", x.Shape(), w.Dim(1))
	}
	n, rows := x.Dim(samples), l.Layers*l.directions()
	if want := []int{rows, n, l.width()}; s.H != nil && !slices.Equal(s.H.Shape(), want) {
		tensor.Raise("nn.Recurrent", fmt.Sprintf("it is %v", want), "a state H of shape %v", s.H.Shape())
	}
	if want := []int{rows, n, l.Hidden}; s.C != nil && !slices.Equal(s.C.Shape(), want) {
		tensor.Raise("nn.Recurrent", fmt.Sprintf("it is %v", want), "a state C of shape %v", s.C.Shape())
	}
	if lengths != nil && (lengths.Rank() != 1 || lengths.Dim(0) != n || lengths.DType().IsFloat()) {
		tensor.Raise("nn.Recurrent", "give a whole number for each sample", "lengths %s for %d samples", lengths.Info(), n)
	}
}

// counted is which steps count, as bool [t, n, 1], or nil.
func counted(x, lengths *tensor.Tensor) *tensor.Tensor {
	if lengths == nil {
		return nil
	}
	return x.Env().Arange(x.Dim(0)).Unsqueeze(1).Lt(lengths).Unsqueeze(2)
}

// pick is state i of several, or nil.
func pick(s *tensor.Tensor, i int) *tensor.Tensor {
	if s == nil {
		return nil
	}
	return s.Select(0, i)
}

// scan is a layer's run in one direction.
func (l *recurrent) scan(suffix string, reverse bool, mask *tensor.Tensor) *scan {
	return &scan{unit: l.unit, reverse: reverse, mask: mask, hidden: l.Hidden, width: l.width(),
		wih: l.Weights["weight_ih"+suffix], whh: l.Weights["weight_hh"+suffix],
		bih: l.Weights["bias_ih"+suffix], bhh: l.Weights["bias_hh"+suffix], whr: l.Weights["weight_hr"+suffix]}
}
