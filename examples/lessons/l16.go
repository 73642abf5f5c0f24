package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// L16 moves a value and a model, and brings numbers back.
func L16(env *tensor.Env, n Numbers, w io.Writer) error {
	// Values of the host are those of the device called cpu.
	host, err := tensor.Open("cpu")
	if err != nil {
		return err
	}
	// To copies where the device is another one; x itself stays where it was.
	x := host.Arange(n["n"])
	moved := x.To(env)
	fmt.Fprintln(w, "the copy is there, the first one here:", moved.Env().Device() == env.Device(), x.Env().Device().OnHost())
	// A Go slice of a value's numbers is a copy: there is no pointer into the device's memory, and nothing to move first.
	fmt.Fprintln(w, moved.Floats())
	// A model moves in place: its parameters' handles stay, so an optimizer that knows them goes on.
	model := nn.NewLinear(host, n["n"], 1)
	nn.To(env, model)
	d, err := nn.DeviceOf(model)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "the model went along:", d == env.Device())
	return nil
}
