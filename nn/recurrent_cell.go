package nn

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/tensor"
)

// LSTMCell is one step of an [LSTM], for loops of one's own: decoders that read what they wrote, agents, attention between
// steps. A whole sequence goes faster through the layer, which makes one product of all inputs.
type LSTMCell struct{ cell }

// GRUCell is one step of a [GRU].
type GRUCell struct{ cell }

// RNNCell is one step of an [RNN].
type RNNCell struct{ cell }

// CellConfig describes [NewLSTMCell], [NewGRUCell] and [NewRNNCell]. The zero value is PyTorch's default.
type CellConfig struct {
	NoBias bool
	ReLU   bool // of [RNNCell]: ReLU in place of tanh
}

// NewLSTMCell makes a cell of the given widths. Weights are drawn uniformly from ±1/√hidden.
func NewLSTMCell(env *tensor.Env, in, hidden int, c CellConfig) *LSTMCell {
	return &LSTMCell{newCell(env, "nn.NewLSTMCell", lstmUnit{}, in, hidden, c)}
}

// NewGRUCell makes a cell of the given widths. Weights are drawn uniformly from ±1/√hidden.
func NewGRUCell(env *tensor.Env, in, hidden int, c CellConfig) *GRUCell {
	return &GRUCell{newCell(env, "nn.NewGRUCell", gruUnit{}, in, hidden, c)}
}

// NewRNNCell makes a cell of the given widths. Weights are drawn uniformly from ±1/√hidden.
func NewRNNCell(env *tensor.Env, in, hidden int, c CellConfig) *RNNCell {
	return &RNNCell{newCell(env, "nn.NewRNNCell", rnnUnit{c.ReLU}, in, hidden, c)}
}

// Forward gives the next states, [n, hidden], of inputs x[n, in] and the states before; nil: zeros. Without a dimension of
// samples results have none either.
func (l *LSTMCell) Forward(x, h, c *tensor.Tensor) (h2, c2 *tensor.Tensor) {
	return l.step(l, x, h, c)
}

// Forward gives the next state, [n, hidden], of inputs x[n, in] and the state before; nil: zeros. Without a dimension of
// samples the result has none either.
func (l *GRUCell) Forward(x, h *tensor.Tensor) *tensor.Tensor {
	h, _ = l.step(l, x, h, nil)
	return h
}

// Forward gives the next state, [n, hidden], of inputs x[n, in] and the state before; nil: zeros. Without a dimension of
// samples the result has none either.
func (l *RNNCell) Forward(x, h *tensor.Tensor) *tensor.Tensor {
	h, _ = l.step(l, x, h, nil)
	return h
}

// cell is what the cells share.
type cell struct {
	WeightIH *tensor.Tensor `nn:"weight_ih"` // [gates·hidden, in]
	WeightHH *tensor.Tensor `nn:"weight_hh"` // [gates·hidden, hidden]
	BiasIH   *tensor.Tensor `nn:"bias_ih"`   // [gates·hidden], or nil
	BiasHH   *tensor.Tensor `nn:"bias_hh"`   // [gates·hidden], or nil
	unit     unit
}

func newCell(env *tensor.Env, op string, u unit, in, hidden int, c CellConfig) cell {
	if in < 1 || hidden < 1 {
		tensor.Raise(op, "widths are positive", "%d inputs, %d hidden", in, hidden)
	}
	bound, rows := fanBound(hidden), u.gates()*hidden
	l := cell{WeightIH: uniform(env, bound, rows, in), WeightHH: uniform(env, bound, rows, hidden), unit: u}
	if !c.NoBias {
		l.BiasIH, l.BiasHH = uniform(env, bound, rows), uniform(env, bound, rows)
	}
	return l
}

// String tells the widths.
func (l *cell) String() string {
	if l.WeightIH == nil || l.WeightHH == nil {
		return "recurrent cell without weights"
	}
	return fmt.Sprintf("recurrent cell of %d inputs, %d hidden", l.WeightIH.Dim(1), l.WeightHH.Dim(1))
}

// products counts those of both weights.
func (l *cell) products(x, _ *tensor.Tensor) int {
	return x.Size() / max(x.Dim(-1), 1) * (l.WeightIH.Size() + l.WeightHH.Size())
}

// step is the cell, of which outer is the layer.
func (l *cell) step(outer any, x, h, c *tensor.Tensor) (h2, c2 *tensor.Tensor) {
	if l.unit == nil || l.WeightIH == nil || l.WeightHH == nil {
		missing(outer, "weight")
	}
	in := enter(outer, x)
	if x = in.x; x.Rank() == 1 {
		lift := func(t *tensor.Tensor) *tensor.Tensor {
			if t == nil {
				return nil
			}
			return t.Unsqueeze(0)
		}
		if h2, c2 = l.next(lift(x), lift(h), lift(c)); c2 != nil {
			c2 = c2.Squeeze(0)
		}
		h2 = h2.Squeeze(0)
	} else {
		h2, c2 = l.next(x, h, c)
	}
	c2, h2 = in.leavePair(h2, c2)
	return h2, c2
}

func (l *cell) next(x, h, c *tensor.Tensor) (h2, c2 *tensor.Tensor) {
	l.check(x, h, c)
	zeros := func() *tensor.Tensor { return x.Env().FullOf(x.DType(), 0, x.Dim(0), l.WeightHH.Dim(1)) }
	if h == nil {
		h = zeros()
	}
	if c == nil && l.unit.cell() {
		c = zeros()
	}
	h2, c2, _ = l.unit.forward(x.Linear(l.WeightIH, l.BiasIH), h.Linear(l.WeightHH, l.BiasHH), h, c, nil)
	return h2, c2
}

// check refuses shapes that do not fit.
func (l *cell) check(x, h, c *tensor.Tensor) {
	in, hidden := l.WeightIH.Dim(1), l.WeightHH.Dim(1)
	if x.Rank() != 2 || x.Dim(1) != in {
		tensor.Raise("nn.Cell", fmt.Sprintf("they are [samples, %d] or [%[1]d]", in), "inputs of shape %v", x.Shape())
	}
	for _, s := range []*tensor.Tensor{h, c} {
		if want := []int{x.Dim(0), hidden}; s != nil && !slices.Equal(s.Shape(), want) {
			tensor.Raise("nn.Cell", fmt.Sprintf("it is %v", want), "a state of shape %v", s.Shape())
		}
	}
}
