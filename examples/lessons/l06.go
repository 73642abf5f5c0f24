package lessons

import (
	"fmt"
	"io"
	"strings"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// Ticket is a batch: floating features, a mask of bools, whole numbers as labels.
type Ticket struct {
	Features, Mask, Labels *tensor.Tensor
}

// ticketBatch is a batch of n on env's device.
func ticketBatch(env *tensor.Env, n int) Ticket {
	return Ticket{
		Features: env.Ones(n, 128, 768),
		Mask:     env.Ones(n, 128).GtScalar(0),
		Labels:   env.RandInt(0, 3, n),
	}
}

// L06 moves a whole batch at once, so that no field can be forgotten.
func L06(env *tensor.Env, n Numbers, w io.Writer) error {
	// The batch is made on the host, as a loader does.
	host, err := tensor.Open("cpu")
	if err != nil {
		return err
	}
	b := ticketBatch(host, n["batch"])
	// Move walks structs, maps and slices, and returns a batch of the same kind.
	b = tensor.Move(env, b)
	// Preflight looks at every tensor, and names each that is elsewhere by its path.
	if err := nn.Preflight(env, nil, b); err != nil {
		return err
	}
	fmt.Fprintln(w, "features", b.Features.DType(), b.Features.Shape())
	fmt.Fprintln(w, "mask    ", b.Mask.DType(), b.Mask.Shape())
	fmt.Fprintln(w, "labels  ", b.Labels.DType(), b.Labels.Shape())
	return nil
}

// L06Wrong moves field by field, and forgets one.
func L06Wrong(env *tensor.Env, n Numbers, w io.Writer) error {
	// Another device than env: the one that the batch comes from.
	away, err := elsewhere(env)
	if err != nil {
		return err
	}
	// Field by field, two of three are moved, or made, where they belong.
	b := ticketBatch(away, n["batch"])
	b.Features = b.Features.To(env) //warpline:ok R01
	b.Labels = b.Labels.To(env)
	// The mistake: b.Mask stays. Attention would fail at its first use, after all that comes before it.
	err = nn.Preflight(env, nil, b)
	// The error names the field that stayed, and no other.
	alone := err != nil && strings.Contains(err.Error(), "Mask on") && !strings.Contains(err.Error(), "Labels")
	fmt.Fprintln(w, "the check before the run names Mask alone:", alone)
	return nil
}
