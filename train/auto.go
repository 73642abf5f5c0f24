package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/tensor"
)

// usualSlowdown is that of --recompute auto, unless somebody says otherwise.
const usualSlowdown = 1.3

// budget is what a choice of parts keeps to; false where the run chooses none.
func (c *Config) budget() (b plan.Budget, chooses bool) {
	kind, bytes, sized := strings.Cut(string(c.Recompute), ":")
	if kind != string(RecomputeAuto) {
		return b, false
	}
	if sized {
		b.Bytes, _ = render.ParseBytes(bytes) // which was checked
	} else {
		b.Slowdown = cmp.Or(c.Slowdown, usualSlowdown)
	}
	return b, true
}

// chooseRecomputed chooses what is recomputed, where that is left to the run.
func (r *run) chooseRecomputed(ctx context.Context) error {
	b, chooses := r.budget()
	if !chooses || r.again != nil {
		return nil
	}
	choice, err := plan.Recompute(r.env.Device(), b, func(env *tensor.Env, begin func()) error { return r.twoSteps(ctx, env, begin) })
	var tight *plan.TightError
	switch {
	case errors.As(err, &tight):
		return &Error{Text: fmt.Sprintf("--recompute %s: a step needs %s at least, whatever is recomputed", r.Recompute, render.Bytes(tight.Least)),
			Hint: "give more bytes, or --accumulate N or a smaller --batch beside", Err: err}
	case ctx.Err() != nil:
		return ErrInterrupted
	case err != nil:
		return err
	}
	r.again = tensor.PartsAt(choice.Parts...)
	r.Watch.Note(chosen(choice))
	return nil
}

// chosen tells a choice.
func chosen(c *plan.Recomputation) string {
	if len(c.Parts) == 0 {
		return "nothing is recomputed: a step needs " + render.Bytes(c.Peak) + ", and no choice of parts does better"
	}
	list := strings.Join(c.Parts[:min(len(c.Parts), 4)], ", ")
	if n := len(c.Parts) - 4; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("recomputed are %s: a step needs %s in place of %s, and takes about %.2f times as long", list, render.Bytes(c.Peak), render.Bytes(c.Without), c.Slowdown)
}

// twoSteps makes what the run has in env, and makes two steps; begin is called between them.
func (r *run) twoSteps(ctx context.Context, env *tensor.Env, begin func()) error {
	q, err := r.double(env, plan.Setting{Batch: r.Batch, Parts: 1})
	if err != nil {
		return err
	}
	q.Recompute, q.Capture, q.Steps, q.Watch = RecomputeNone, false, 2, turns{between: begin}
	if err := q.furnish(ctx); err != nil {
		return err
	}
	return q.walk(ctx)
}

// turns is a watcher that is called between steps.
type turns struct {
	silent
	between func()
}

// Attach implements [Attached].
func (turns) Attach(*tensor.Env) {}

// Turn implements [Attached].
func (t turns) Turn() { t.between() }
