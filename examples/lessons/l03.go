package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// L03 runs unchanged on the host, on a card and on a simulated card: nothing in it names a device but env, which a program of its
// own gets from tensor.Best().
func L03(env *tensor.Env, _ Numbers, w io.Writer) error {
	// 0 to 5 as int64, made where env is. No copy from the host is needed.
	x := env.Arange(6)
	// Six numbers as two rows of three: a view, nothing moves.
	x = x.Reshape(2, 3).Cast(dtype.F32)
	// Doubled, then summed along each row: 2·(0+1+2) and 2·(3+4+5).
	y := x.Scale(2).Sum(1)
	// Floats copies to the host, and waits for the device to be done.
	fmt.Fprintln(w, y.Floats())
	return nil
}
