package model

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// TriageConfig describes a classifier of sets of vectors.
type TriageConfig struct {
	Tokens   int `json:"tokens"`   // vectors of a sample, with padding
	Features int `json:"features"` // of a vector
	Outcomes int `json:"outcomes"` // classes
}

// Triage tells apart sets of tokens, of which few may matter: each token by itself becomes units, of each the most over the tokens
// goes into two layers more (Zaheer et al., 2017, Deep Sets).
type Triage struct {
	Token  *nn.Linear
	Hidden *nn.Linear
	Head   *nn.Linear
}

// NewTriage makes a model with so many units in both layers.
func NewTriage(env *tensor.Env, c TriageConfig, hidden int) *Triage {
	return &Triage{nn.NewLinear(env, c.Features, hidden), nn.NewLinear(env, hidden, hidden), nn.NewLinear(env, hidden, c.Outcomes)}
}

// ForwardMasked gives scores [n, outcomes] of x [n, tokens, features], of which those count that the mask [n, tokens] has as true.
func (m *Triage) ForwardMasked(x, mask *tensor.Tensor) *tensor.Tensor {
	n, tokens := mask.Dim(0), mask.Dim(1)
	units := m.Token.Forward(x)
	most := tensor.Where(mask.Reshape(n, tokens, 1), units, units.Env().FullOf(units.DType(), 0)).ReLU().Max(1)
	return m.Head.Forward(m.Hidden.Forward(most).ReLU())
}

// Forward is ForwardMasked of x [n, tokens, features + 1], whose last feature is the mask: 0 for padding.
func (m *Triage) Forward(x *tensor.Tensor) *tensor.Tensor {
	n, tokens, last := x.Dim(0), x.Dim(1), x.Dim(2)-1
	mask := x.Slice(2, last, last+1).Reshape(n, tokens).Cast(dtype.Bool)
	return m.ForwardMasked(x.Slice(2, 0, last), mask)
}
