package train

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/tensor"
)

// Recompute is what a run computes again in the backward pass, in place of keeping it. The zero value is [RecomputeNone].
// Losses are the same bit for bit.
type Recompute string

// The values of Recompute.
const (
	RecomputeNone      Recompute = "none"
	RecomputeBlock     Recompute = "block"     // of each block of the model its input is kept
	RecomputeAttention Recompute = "attention" // of each attention layer
	RecomputeAuto      Recompute = "auto"      // what saves most within Config.Slowdown; "auto:8GiB": what costs least and needs no more
)

// Recomputes are the values of [Recompute].
var Recomputes = []string{string(RecomputeNone), string(RecomputeBlock), string(RecomputeAttention), string(RecomputeAuto)}

// ParseRecompute reads a value of [Recompute]. Runs of earlier versions have true, which is block, and false.
func ParseRecompute(text string) (Recompute, error) {
	switch text {
	case "true":
		return RecomputeBlock, nil
	case "false", "":
		return RecomputeNone, nil
	}
	if bytes, sized := strings.CutPrefix(text, string(RecomputeAuto)+":"); sized {
		if n, err := render.ParseBytes(bytes); err != nil || n < 1 {
			return "", fail("give a number of bytes, as in auto:8GiB", "--recompute is %q", text)
		}
	} else if !slices.Contains(Recomputes, text) {
		return "", fail("choose one of "+strings.Join(Recomputes, ", ")+", auto:BYTES", "--recompute is %q", text)
	}
	return Recompute(text), nil
}

// UnmarshalJSON reads a value, or the truth value of earlier versions.
func (v *Recompute) UnmarshalJSON(raw []byte) (err error) {
	*v, err = wordOrTruth(raw, ParseRecompute)
	return err
}

// on tells whether anything is recomputed.
func (v Recompute) on() bool { return v != "" && v != RecomputeNone }

// recomputing is env with the parts that are recomputed.
func (r *run) recomputing(env *tensor.Env) *tensor.Env {
	if r.again != nil {
		return env.Recompute(r.again)
	}
	switch r.Recompute {
	case RecomputeBlock:
		return env.Recompute(tensor.PartsOf(tensor.PartBlock))
	case RecomputeAttention:
		return env.Recompute(tensor.PartsOf(tensor.PartAttention))
	}
	return env
}

// checkRecompute refuses values that do not exist, and those that this model has nothing for.
func (c *Config) checkRecompute() error {
	if _, err := ParseRecompute(string(c.Recompute)); err != nil {
		return err
	}
	if c.Given["slowdown"] && c.Recompute != RecomputeAuto {
		return fail("leave --slowdown out, or give --recompute auto", "--slowdown is for --recompute auto, and this run has --recompute %s", c.Recompute)
	}
	if (c.Slowdown != 0 || c.Given["slowdown"]) && !(c.Slowdown >= 1) {
		return fail("give a number from 1 up", "--slowdown is %v", c.Slowdown)
	}
	if c.Recompute == RecomputeAttention && !c.attends() {
		return fail("choose block", "--recompute attention: the model of %s has no attention", c.Task)
	}
	return nil
}

// recomputeLevers are the values that keep less than the run's.
func (r *run) recomputeLevers() (levers []plan.Lever) {
	if r.attends() && !r.Recompute.on() {
		levers = append(levers, plan.Lever{Name: string(RecomputeAttention), Flag: "--recompute attention", Cost: "the attention layers once more", Less: true})
	}
	if !r.Recompute.on() || r.Recompute == RecomputeAttention {
		levers = append(levers, plan.Lever{Name: string(RecomputeBlock), Flag: "--recompute block", Cost: "one more forward pass"})
	}
	if !r.Recompute.on() {
		levers = append(levers, plan.Lever{Name: string(RecomputeAuto), Flag: "--recompute auto", Cost: fmt.Sprintf("as much of it as takes %.1f times a step", cmp.Or(r.Slowdown, usualSlowdown)), Less: true, Tries: true})
	}
	return levers
}

// with is the value with a setting's levers.
func (v Recompute) with(s *plan.Setting) Recompute {
	for _, lever := range []Recompute{RecomputeBlock, RecomputeAttention, RecomputeAuto} {
		if s.On(string(lever)) {
			return lever
		}
	}
	return v
}
