package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/tensor"
)

// L15 makes values on the device that uses them.
func L15(env *tensor.Env, n Numbers, w io.Writer) error {
	// Drawn on the device: nothing crosses the bus.
	x := env.Randn(n["n"], n["n"])
	// On the device of another value, with its shape.
	zero := x.ZerosLike()
	fmt.Fprintln(w, "both in one place:", x.Env().Device() == zero.Env().Device(), zero.Shape())
	// A second card is another env, by index. Here it is the same name again, and the same device.
	again, err := tensor.Open(env.Device().Name())
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "a name is a device:", again.Device().Name() == env.Device().Name())
	return nil
}

// L15Wrong makes values on the host and moves them, in every step.
func L15Wrong(env *tensor.Env, n Numbers, w io.Writer) error {
	// The host is a device as well.
	host, err := tensor.Open("cpu")
	if err != nil {
		return err
	}
	// Bytes that cross the bus, in three steps.
	var moved int64
	for range 3 {
		// The mistake: memory at the host, a copy over the bus and a second allocation, for numbers that the device can draw itself.
		moved += host.Randn(n["n"], n["n"]).To(env).Bytes() //warpline:ok V14
	}
	fmt.Fprintf(w, "%d bytes crossed the bus in 3 steps\n", moved)
	return nil
}
