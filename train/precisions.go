package train

import (
	"context"
	"math"
	"runtime"
	"time"

	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// PrecisionRun is a run in one precision beside the same run in another, and a line of JSON.
type PrecisionRun struct {
	Task      string    `json:"task"`
	AMP       AMP       `json:"amp"`
	Device    string    `json:"device"`
	Modelled  bool      `json:"modelled"` // MS is told by the virtual clock of a simulated card
	Steps     int       `json:"steps"`
	MS        float64   `json:"ms"` // of a step, the mean after the first ones
	Loss      float64   `json:"loss"`
	ValLoss   *float64  `json:"val_loss,omitempty"`
	Peak      int64     `json:"peak_bytes"`
	Kinds     Kinds     `json:"by_kind"`
	Apart     float64   `json:"worst_parameter_difference"` // from the first run: |this - that|, at most
	ApartAt   string    `json:"worst_parameter,omitempty"`  // its path
	Scale     *float64  `json:"scale,omitempty"`
	Skipped   *int      `json:"skipped_steps,omitempty"`
	Losses    []float64 `json:"losses"` // step by step; those of steps without a loss are left out
	LossSteps []int     `json:"-"`      // whose they are
}

// Kinds are the bytes of a run by what they serve for. Casts are 16-bit copies of weights that are kept from step to step.
type Kinds struct {
	Weights     int64 `json:"weights"`
	Casts       int64 `json:"casts"`
	Gradients   int64 `json:"gradients"`
	Optimizer   int64 `json:"optimizer"`
	Activations int64 `json:"activations"`
}

// warm is how many steps pay for what later ones find ready.
const warm = 3

// ComparePrecisions trains as c says in each precision, with the same seed, and compares what comes of it with the first.
// Nothing is written. told, unless it is nil, is called with each run that is done, and with the steps of the one under way.
func ComparePrecisions(ctx context.Context, c Config, amps []AMP, told func(r *PrecisionRun), step func(a AMP, done int)) ([]PrecisionRun, error) {
	if len(amps) < 2 {
		return nil, fail("name two or more of the precisions", "there is nothing to compare: %d given", len(amps))
	}
	var runs []PrecisionRun
	var first map[string][]float64
	root, err := machine.Open(c.Device, func(string) {})
	if err != nil {
		return nil, err
	}
	if !root.Device().Computes() {
		return nil, fail("give a device that computes, as sim:a100-80; train --dry-run CARD --amp bf16 tells the memory", "%s computes nothing that could be compared", root.Device().Name())
	}
	before := (&gauge{env: root}).rest()
	for _, a := range amps {
		own := c
		own.AMP, own.Out, own.Resume = a, "", false
		g := &gauge{step: func(done int) { step(a, done) }}
		result, err := Run(ctx, own, g)
		if err != nil {
			return runs, err
		}
		r := g.run(result, before)
		r.Task, r.AMP = c.Task, a
		if first == nil {
			first = g.weights
		}
		r.Apart, r.ApartAt = furthest(g.weights, first)
		runs = append(runs, r)
		if told != nil {
			told(&r)
		}
		before = g.rest()
	}
	return runs, nil
}

// numbers are the parameters of a model, on the host.
func numbers(m nn.Module) map[string][]float64 {
	out := map[string][]float64{}
	for path, p := range nn.Params(m) {
		out[path] = p.Floats()
	}
	return out
}

// furthest is the largest difference of a parameter's elements, and the path of the parameter.
func furthest(a, b map[string][]float64) (worst float64, at string) {
	for path, values := range a {
		for i, v := range values {
			if d := math.Abs(v - b[path][i]); d > worst || math.IsNaN(d) {
				worst, at = d, path
			}
		}
	}
	return worst, at
}

// gauge is a Watcher that measures steps by the clock of the device's host, and what casts are kept between them.
type gauge struct {
	silent
	step     func(done int)
	device   string
	modelled bool
	env      *tensor.Env
	turns    []time.Duration
	casts    int64
	used     int64
	weights  map[string][]float64 // that the run has come to
}

// run is what a run has come to, without what the one before has left on the device.
func (g *gauge) run(result *Result, before *gauge) PrecisionRun {
	m := &result.Memory
	r := PrecisionRun{
		Device: g.device, Modelled: g.modelled, Steps: result.Steps, MS: g.ms(), Loss: result.Loss, ValLoss: result.ValLoss, Peak: result.PeakBytes - before.used,
		Kinds: Kinds{m.Weights, max(0, g.casts-before.casts), m.Gradients, m.Optimizer, m.Activations}, Scale: result.Scale, Skipped: result.Left,
	}
	for _, s := range result.Log {
		r.Losses, r.LossSteps = append(r.Losses, s.Loss), append(r.LossSteps, s.Step)
	}
	return r
}

// rest is what a run that nobody refers to leaves on its device: the collector may not have been there yet.
func (g *gauge) rest() *gauge {
	runtime.GC()
	runtime.GC()
	left := &gauge{env: g.env, used: g.env.Device().Memory().Used}
	left.count()
	return left
}

// Attach implements [Attached].
func (g *gauge) Attach(env *tensor.Env) {
	g.env, g.device = env, env.Device().Name()
	_, g.modelled = env.Device().Clock()
}

// Turn implements [Attached].
func (g *gauge) Turn() {
	g.turns = append(g.turns, g.env.Device().Now())
	g.count()
}

// count takes the casts that are there now, if they are more than before.
func (g *gauge) count() {
	g.env.Device().Inventory(func(all *tensor.Inventory) {
		sum := int64(0)
		for i := range all.Values {
			if v := &all.Values[i]; v.Op == ir.Cast.String() || v.Op == ir.CastAll.String() {
				sum += v.Bytes
			}
		}
		g.casts = max(g.casts, sum)
	})
}

// Step implements [Watcher].
func (g *gauge) Step(s Step) { g.step(s.Step) }

// ms is the mean of the steps after the first ones; 0 where there is one step.
func (g *gauge) ms() float64 {
	n := len(g.turns)
	if n < 2 {
		return 0
	}
	from := min(warm, n-2)
	return float64(g.turns[n-1]-g.turns[from]) / float64(time.Millisecond) / float64(n-1-from)
}
