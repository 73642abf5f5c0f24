package optim

import (
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

// kind is one of the things that an optimizer keeps for a parameter.
type kind struct {
	name  string      // PyTorch's
	value float64     // at first
	copy  bool        // it begins as the parameter's value
	shape []int       // nil: the parameter's
	dt    dtype.DType // 0: the parameter's, or f32 where rounding says so
}

// plain are kinds that begin as zeros.
func plain(names ...string) (list []kind) {
	for _, n := range names {
		list = append(list, kind{name: n})
	}
	return list
}

// keeps says anew what is kept for each parameter.
func (c *core) keeps(of func(s *state) []kind) {
	for _, s := range c.states {
		s.kinds = of(s)
		s.keep = make([]*tensor.Tensor, len(s.kinds))
	}
}

// shape is that of kind i of state.
func (s *state) shape(i int) []int {
	if k := s.kinds[i]; k.shape != nil {
		return k.shape
	}
	return s.p.Shape()
}

// dtype is that of kind i of state: the kind's, or the parameter's, but for float32 moments of one in bfloat16. What those
// leave over is last.
func (s *state) dtype(i int) dtype.DType {
	switch {
	case s.kinds[i].dt != 0:
		return s.kinds[i].dt
	case s.wide && i < s.moments:
		return dtype.F32
	}
	return s.p.DType()
}

// bytes is the size of kind i of state.
func (s *state) bytes(i int) int64 {
	n := int64(s.dtype(i).Size())
	for _, d := range s.shape(i) {
		n *= int64(d)
	}
	return n
}

// first is new state.
func (s *state) first(i int) *tensor.Tensor {
	k := s.kinds[i]
	z := s.p.Env().FullOf(s.dtype(i), k.value, s.shape(i)...)
	if k.copy {
		e, scope := s.p.Env().NoGrad().Scope()
		z.CopyInPlace(s.p.In(e).Cast(s.dtype(i)))
		scope.End()
	}
	z.Label(device.LabelState, s.name)
	return z
}

// fits reports whether a tensor may be kind i of state.
func (s *state) fits(i int, t *tensor.Tensor) bool { return slices.Equal(t.Shape(), s.shape(i)) }

// plain reports a kind that begins as zeros in the parameter's shape.
func (k *kind) plain() bool { return k.value == 0 && !k.copy && k.shape == nil }
