package model

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/rng"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// LSTMConfig describes an [LSTM].
type LSTMConfig struct {
	Vocab     int     `json:"vocab_size"`
	Embedding int     `json:"embedding"` // width of tokens
	Layers    int     `json:"layers"`
	Width     int     `json:"width"`   // of each layer
	Dropout   float64 `json:"dropout"` // of what each layer gives
}

// Check reports sizes that no model can have.
func (c LSTMConfig) Check() error {
	if min(c.Vocab, c.Embedding, c.Layers, c.Width) < 1 || max(c.Vocab, c.Embedding, c.Layers, c.Width) > 1<<24 {
		return errors.New("vocab, embedding, layers and width must be from 1 to 16777216")
	}
	if !(c.Dropout >= 0 && c.Dropout < 1) {
		return fmt.Errorf("dropout %v is not in [0, 1)", c.Dropout)
	}
	return nil
}

// LSTM is a language model: a token embedding, layers of [nn.LSTM], and scores by a linear layer without bias. It reads a text piece by
// piece: each piece goes on from the state that the one before has left.
type LSTM struct {
	Config LSTMConfig
	Embed  *nn.Embedding `nn:"embed"`
	RNN    *nn.LSTM      `nn:"rnn"`
	Head   *nn.Linear    `nn:"head"`
}

// NewLSTM draws weights as PyTorch does, but for the biases of forget gates, which are 1 higher: what a new model has seen it keeps for
// a while (Jozefowicz et al., 2015).
func NewLSTM(env *tensor.Env, c LSTMConfig) *LSTM {
	m := &LSTM{c, nn.NewEmbedding(env, c.Vocab, c.Embedding),
		nn.NewLSTM(env, c.Embedding, c.Width, nn.RecurrentConfig{Layers: c.Layers, Dropout: c.Dropout}), nn.NewLinearNoBias(env, c.Width, c.Vocab)}
	nn.Init(m.RNN, func(path string, p *tensor.Tensor) {
		if strings.HasPrefix(path, "bias_ih") {
			env.NoGrad().Tidy(func(e *tensor.Env) *tensor.Tensor {
				forget := p.In(e).Slice(0, c.Width, 2*c.Width)
				return forget.CopyInPlace(forget.AddScalar(1))
			})
		}
	})
	return m
}

// Begin is the state of so many rows of which nothing is read yet.
func (m *LSTM) Begin(env *tensor.Env, rows int) nn.RecurrentState {
	zeros := func() *tensor.Tensor { return env.FullOf(dtype.F32, 0, m.Config.Layers, rows, m.Config.Width) }
	return nn.RecurrentState{H: zeros(), C: zeros()}
}

// hidden is what the last layer gives, [positions, batch, width].
func (m *LSTM) hidden(tokens *tensor.Tensor, s nn.RecurrentState) (*tensor.Tensor, nn.RecurrentState) {
	y, end := m.RNN.Run(m.Embed.Forward(tokens.Transpose(0, 1)), s, nil)
	return y.Dropout(m.Config.Dropout), end
}

// ForwardFrom gives scores [batch, positions, vocab] of the next token for tokens i64[batch, positions] that go on from a state, and
// the state behind them.
func (m *LSTM) ForwardFrom(tokens *tensor.Tensor, s nn.RecurrentState) (scores *tensor.Tensor, end nn.RecurrentState) {
	y, end := m.hidden(tokens, s)
	return m.Head.Forward(y).Transpose(0, 1), end
}

// Forward is ForwardFrom for the beginning of texts.
func (m *LSTM) Forward(tokens *tensor.Tensor) *tensor.Tensor {
	scores, _ := m.ForwardFrom(tokens, nn.RecurrentState{})
	return scores
}

// LossFrom is the mean cross-entropy of ForwardFrom's scores against the tokens that follow, labels i64[batch, positions], and the state behind the tokens.
func (m *LSTM) LossFrom(tokens, labels *tensor.Tensor, s nn.RecurrentState, opts ...nn.CrossEntropyOption) (loss *tensor.Tensor, end nn.RecurrentState) {
	y, end := m.hidden(tokens, s)
	if m.Head.LoRA != nil {
		return nn.CrossEntropy(m.Head.Forward(y), labels.Transpose(0, 1), opts...), end
	}
	return nn.LinearCrossEntropy(y, m.Head.Weight, labels.Transpose(0, 1), opts...), end
}

// piece is how many tokens are read at once where no gradient needs more.
const piece = 128

// Loss is LossFrom for the beginning of texts. Where no gradient is recorded it takes no more memory for long ones.
func (m *LSTM) Loss(tokens, labels *tensor.Tensor, opts ...nn.CrossEntropyOption) *tensor.Tensor {
	env, n := tokens.Env(), tokens.Dim(1)
	if env.Recording() || len(opts) > 0 || n <= piece {
		loss, _ := m.LossFrom(tokens, labels, nn.RecurrentState{}, opts...)
		return loss
	}
	state, total := m.Begin(env, tokens.Dim(0)), env.FullOf(dtype.F32, 0)
	for lo := 0; lo < n; lo += piece {
		hi := min(lo+piece, n)
		env.Tidy(func(e *tensor.Env) *tensor.Tensor {
			loss, end := m.LossFrom(tokens.In(e).Slice(1, lo, hi), labels.In(e).Slice(1, lo, hi), state)
			Remember(state, end)
			return total.AddInPlace(loss.Scale(float64(hi-lo) / float64(n)))
		})
	}
	return total
}

// Remember writes a state into another of its shape.
func Remember(s, next nn.RecurrentState) {
	s.H.CopyInPlace(next.H.Detach())
	s.C.CopyInPlace(next.C.Detach())
}

// Generate continues a prompt, of at least one token, by n tokens. Each is chosen when the loop asks for it. The weights must not change
// while the loop runs.
func (m *LSTM) Generate(env *tensor.Env, prompt []int64, n int, c SampleConfig) iter.Seq[int64] {
	if len(prompt) == 0 {
		tensor.Raise("LSTM.Generate", "give at least one token, 0 for example", "there is no prompt to continue")
	}
	prompt = slices.Clone(prompt)
	return func(yield func(int64) bool) {
		e, scope := env.NoGrad().Eval().Scope(0)
		defer scope.End()
		state := m.Begin(e, 1)
		stream := rng.Stream{Key: rng.Fold(rng.Key(c.Seed), 1)}
		tokens := prompt
		for i := range n {
			next := choose(m.read(e, uint64(i), tokens, state), c, &stream)
			if tokens = []int64{next}; !yield(next) {
				return
			}
		}
	}
}

// read goes on with tokens, and gives the scores of what follows them.
func (m *LSTM) read(env *tensor.Env, turn uint64, tokens []int64, state nn.RecurrentState) (scores []float64) {
	e, scope := env.Scope(turn)
	defer scope.End()
	for part := range slices.Chunk(tokens, piece) {
		e.Tidy(func(e *tensor.Env) *tensor.Tensor {
			y, end := m.hidden(tokens64(e, part), state)
			Remember(state, end)
			scores = m.Head.Forward(y.Select(0, len(part)-1)).Floats()
			return nil
		})
	}
	return scores
}
