package tensor_test

import (
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// TestCastAhead: a cast that was made ahead is that of the parameter as it was then, serves until the parameter is written, and
// is in no program.
func TestCastAhead(t *testing.T) {
	env := open(t)
	turn(env, 0, func(e *tensor.Env) {
		w := tensor.NewParam(e.Full(2, 3, 3))
		product := func(x *tensor.Tensor) *tensor.Tensor { return x.Linear(w, nil).Cast(dtype.F32) }
		x := e.Autocast(dtype.BF16).NoGrad().Ones(1, 3)
		equal(t, "before", product(x), 6, 6, 6)
		tensor.CastAhead(list(w))()
		equal(t, "ahead", product(x), 6, 6, 6)
		p, y := tensor.Record(x, product)
		w.FillInPlace(5)
		equal(t, "after a write", product(x), 15, 15, 15)
		p.Run(x)
		equal(t, "a program", y, 15, 15, 15)
		w.Replace(e.Full(7, 3, 3))
		equal(t, "another value", product(x), 21, 21, 21)
	})
}
