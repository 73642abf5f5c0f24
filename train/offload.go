package train

import (
	"fmt"

	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/tensor"
)

// Offload is what of a run lies in the host's memory while nothing needs it. The zero value is [OffloadNone]. Losses are the same
// bit for bit.
type Offload string

// The values of Offload.
const (
	OffloadNone        Offload = "none"
	OffloadActivations Offload = "activations" // what blocks keep for the backward pass
	OffloadOptimizer   Offload = "optimizer"   // the optimizer's state, between steps
	OffloadBoth        Offload = "both"
)

// Offloads are the values of [Offload].
var Offloads = []string{string(OffloadNone), string(OffloadActivations), string(OffloadOptimizer), string(OffloadBoth)}

// ParseOffload reads a value of [Offload].
func ParseOffload(text string) (Offload, error) {
	return word("offload", text, Offloads, OffloadNone)
}

func (o Offload) activations() bool { return o == OffloadActivations || o == OffloadBoth }
func (o Offload) optimizer() bool   { return o == OffloadOptimizer || o == OffloadBoth }

// checkOffload refuses values that do not exist, and what does not go together.
func (c *Config) checkOffload() error {
	o, err := ParseOffload(string(c.Offload))
	switch {
	case err != nil:
		return err
	case o != OffloadNone && c.Capture:
		return fail("leave one of them out", "--offload %s copies to the host's memory in each step, and --capture makes a step one launch", o)
	}
	return nil
}

// offloading is env with what goes to the host's memory, and the optimizer with it.
func (r *run) offloading(env *tensor.Env) *tensor.Env {
	if r.Offload.activations() {
		return env.Offload()
	}
	return env
}

// offloads says where nothing comes of --offload.
func (r *run) offloads() {
	if r.Offload == "" || r.Offload == OffloadNone {
		return
	}
	if why := r.env.Device().Parks(); why != "" {
		r.Watch.Note(fmt.Sprintf("--offload %s moves nothing: %s", r.Offload, why))
	}
}

// offloadLevers are the values that keep less on the device than the run's.
func (r *run) offloadLevers() (levers []plan.Lever) {
	if r.Capture || r.env != nil && r.env.Device().Parks() != "" {
		return nil
	}
	for _, o := range []Offload{OffloadActivations, OffloadOptimizer} {
		if r.Offload == OffloadNone || r.Offload == "" {
			levers = append(levers, plan.Lever{Name: string(o), Flag: "--offload " + string(o), Cost: offloadCosts[o], Less: true})
		}
	}
	if r.Offload != OffloadBoth {
		levers = append(levers, plan.Lever{Name: string(OffloadBoth), Flag: "--offload both", Cost: "copies to the host's memory and back"})
	}
	return levers
}

var offloadCosts = map[Offload]string{
	OffloadActivations: "copies of what blocks keep to the host's memory and back",
	OffloadOptimizer:   "copies of the optimizer's state to the device and back, each step",
}

// with is the value with a setting's levers.
func (o Offload) with(s *plan.Setting) Offload {
	for _, lever := range []Offload{OffloadBoth, OffloadActivations, OffloadOptimizer} {
		if s.On(string(lever)) {
			return lever
		}
	}
	return o
}
