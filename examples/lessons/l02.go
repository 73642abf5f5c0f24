package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/tensor"
)

// L02 is three checks before anything long is started.
func L02(env *tensor.Env, _ Numbers, w io.Writer) error {
	// One: the name opens. An error here says what was looked for and what to do.
	again, err := tensor.Open(env.Device().Name())
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "opens:", again != nil)
	// Two: it has memory. Available is what programs may still take, which is less than what the card has.
	fmt.Fprintln(w, "has memory:", env.Device().Available() > 0)
	// Three: a product comes out right. A sum of 64 ones for each of 16 elements, and that of all of them.
	fmt.Fprintln(w, "computes:", env.Ones(4, 64).MatMul(env.Ones(64, 4)).Sum().Item() == 4*4*64)
	return nil
}
