package nn

import (
	"fmt"

	"github.com/warpline-ml/warpline/tensor"
)

// Snapshot is the buffers of a model as they were: running statistics, which a forward pass moves, and which a step that is begun
// again must find where they were.
type Snapshot struct{ pairs [][2]*tensor.Tensor } // in the model, and here

// NewSnapshot takes the buffers of a model as they are.
func NewSnapshot(model any) *Snapshot {
	s := &Snapshot{}
	for _, b := range Buffers(model) {
		s.pairs = append(s.pairs, [2]*tensor.Tensor{b, tensor.NewBuffer(b.Detach())})
	}
	return s
}

// Take takes them anew, by a copy on the device.
func (s *Snapshot) Take() {
	for _, p := range s.pairs {
		p[1].CopyInPlace(p[0].Detach())
	}
}

// Restore puts them back into the model.
func (s *Snapshot) Restore() {
	for _, p := range s.pairs {
		p[0].CopyInPlace(p[1].Detach())
	}
}

// String tells how many buffers there are.
func (s *Snapshot) String() string { return fmt.Sprintf("snapshot of %d buffers", len(s.pairs)) }
