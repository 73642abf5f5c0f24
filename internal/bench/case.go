package bench

import (
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Case is something to measure, at a size n whose meaning is its own.
type Case struct {
	Bench string
	Name  string
	Help  string
	Sizes []int         // without --n
	Unit  string        // of the rate
	Asked bool          // only for those who name it
	Own   bool          // n is of its own kind: another than its sizes is only for those who name it
	Host  bool          // of the host's own time: a device without arithmetic has no figure of it
	Free  bool          // nothing limits it but the program itself: it has no ceiling
	Only  []dtype.DType // what it can be measured in; nil: f32, f64, bf16 and f16

	// Make prepares a case on a device. It may panic with a tensor.Error.
	Make func(env *tensor.Env, n int, dt dtype.DType) (Work, error)
}

// Work is a case that is ready to run.
type Work struct {
	Turn   func()  // once; the device may still be at work when it returns
	Amount float64 // of the unit in a turn; 0 for GFLOP/s, GB/s and turns/s, which are counted
	Close  func()  // may be nil
	Bytes  float64 // of a turn, where no launch tells: the ceiling is that of memory
}

// The dtypes that cases of networks take: others than float32 are those of products alone.
var mixed = []dtype.DType{dtype.F32, dtype.BF16, dtype.F16}

var single = []dtype.DType{dtype.F32}

func (c *Case) takes(dt dtype.DType) bool { return c.Only == nil || slices.Contains(c.Only, dt) }

// scoped is f in a scope of its own, as a batch has.
func scoped(env *tensor.Env, f func(e *tensor.Env)) func() {
	return func() {
		e, s := env.Scope(0)
		defer s.End()
		f(e)
	}
}

// drawn are normal numbers of a dtype.
func drawn(env *tensor.Env, dt dtype.DType, shape ...int) *tensor.Tensor {
	return cast(env.Randn(shape...), dt)
}

func cast(x *tensor.Tensor, dt dtype.DType) *tensor.Tensor {
	if dt == dtype.F32 {
		return x
	}
	return x.Cast(dt)
}
