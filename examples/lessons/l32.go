package lessons

import (
	"fmt"
	"io"
	"strings"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// L32 asks a value, a model and a device what there is to know.
func L32(env *tensor.Env, n Numbers, w io.Writer) error {
	// A layer to ask about.
	model := nn.NewLinear(env, n["n"], 2)
	// A value: dtype, shape, device, bytes, and whether a graph belongs to it.
	info := model.Forward(env.Ones(1, n["n"])).Info()
	fmt.Fprintln(w, "info names dtype and device:", strings.Contains(info, "f32") && strings.Contains(info, env.Device().Name()))
	// A model against a device: nil, or every parameter that is elsewhere.
	fmt.Fprintln(w, "the model is here:", nn.Preflight(env, model, nil) == nil)
	// A device: what is live, what is reserved, what was most, in a line for the log.
	fmt.Fprintln(w, "memory in a line:", strings.Count(strings.TrimSpace(env.Device().Memory().String()), "\n") == 0)
	return nil
}
