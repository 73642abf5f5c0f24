package train

import (
	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// streams are the rows of a batch of text of a model that reads piece by piece: each goes on where it ended in the batch before. What
// the model remembers of them belongs to a checkpoint.
type streams struct {
	H, C *tensor.Tensor // [layers, rows, width]
	row  int            // that the next part of the batch begins with
}

// newStreams begins the rows; nil for other models.
func newStreams(env *tensor.Env, m nn.Module, rows int) *streams {
	reader, ok := m.(zoo.Reader)
	if !ok {
		return nil
	}
	s := &streams{}
	env.NoGrad().Tidy(func(e *tensor.Env) *tensor.Tensor {
		zero := reader.Begin(e, rows)
		s.H, s.C = tensor.NewBuffer(zero.H), tensor.NewBuffer(zero.C)
		return nil
	})
	return s
}

// begin is called before each step. The first batch of an epoch is the beginning of each row.
func (s *streams) begin(first bool) {
	if s != nil && first {
		s.H.FillInPlace(0)
		s.C.FillInPlace(0)
	}
}

// rewind goes to the first part of the batch.
func (s *streams) rewind() {
	if s != nil {
		s.row = 0
	}
}

// loss is that of the next part of the batch, which goes on from what is remembered of its rows, and is remembered.
func (s *streams) loss(m zoo.Reader, head Head, x, labels *tensor.Tensor) (loss *tensor.Tensor) {
	lo, hi := s.row, s.row+x.Dim(0)
	s.row = hi
	of := func(t *tensor.Tensor) *tensor.Tensor { return t.In(x.Env()).Slice(1, lo, hi) }
	before := nn.RecurrentState{H: of(s.H).Clone(), C: of(s.C).Clone()} // the gradient needs it
	var end nn.RecurrentState
	if head == HeadWhole {
		var scores *tensor.Tensor
		scores, end = m.ForwardFrom(x, before)
		loss = nn.CrossEntropy(scores, labels)
	} else {
		loss, end = m.LossFrom(x, labels, before)
	}
	model.Remember(nn.RecurrentState{H: of(s.H), C: of(s.C)}, end)
	return loss
}
