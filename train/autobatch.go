package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/tensor"
)

// limit keeps the run to the memory that it is given, until unlimit is called.
func (r *run) limit(d *tensor.Device) error {
	switch {
	case r.Memory == 0:
		return nil
	case d.OnHost():
		d.SetLimit(r.Memory)
		r.unlimit = func() { d.SetLimit(0) }
		return nil
	}
	total := d.Properties().Memory
	if r.Memory > total {
		return fail(fmt.Sprintf("give --memory %d or less", total), "--memory %d is more than the %d bytes of %s", r.Memory, total, d.Name())
	}
	r.unlimit = func() { _ = d.SetMemoryFraction(1) }
	return d.SetMemoryFraction(float64(r.Memory) / float64(total))
}

// fill makes the batch the largest that fits on the run's device, by dry runs, and tries it there.
func (r *run) fill(ctx context.Context) error {
	c := r.Config
	c.AutoBatch, c.Memory = false, 0
	c.Batch = max(1, int(c.Accumulate)) // for what looks at it before it is chosen
	p, err := planned(c)
	if err != nil {
		return err
	}
	defer p.job.close()
	d := r.env.Device()
	has := d.Available()
	if r.Memory > 0 {
		has = min(has, r.Memory)
	}
	limit := int64(float64(has) * (1 - r.Reserve))
	report, err := plan.LargestBatch(d.Name(), limit, p.mostBatch()/p.unit(), func(env *tensor.Env, n int) error {
		_, err := p.rehearse(ctx, env, plan.Setting{Batch: n * p.unit(), Parts: 1})
		return err
	})
	if err != nil {
		return err
	}
	n := report.LargestBatch * p.unit()
	if n == 0 {
		return fail(fmt.Sprintf("give a device with %s, or a smaller model", render.Bytes(report.Requested)), "not even one sample fits in the %s that --batch auto may take of %s", render.Bytes(limit), d.Name())
	}
	if n, err = r.verified(ctx, p, n); err != nil {
		return err
	}
	r.Batch = n
	what := report.LimitedBy
	if what != "samples" {
		what = "memory, most of it for: " + what
	}
	r.Watch.Note(fmt.Sprintf("--batch auto is %d, of up to %s on %s; what limits it is %s", n, render.Bytes(limit), d.Name(), what))
	return nil
}

// verified is the largest batch from n down with which the run's first steps really fit. What is not there yet on the device, such
// as memory that others took meanwhile, no dry run knows.
func (r *run) verified(ctx context.Context, p *run, n int) (int, error) {
	for ; n > 0; n -= p.unit() * max(1, n/p.unit()/shrink) {
		failed, err := tensor.Try(r.env, func(env *tensor.Env) error {
			_, err := p.pace(ctx, env, plan.Setting{Batch: n, Parts: 1})
			return err
		})
		var short *tensor.OOMError
		if !errors.As(err, &short) {
			r.env.Device().Collect() // the model that was tried
			r.env.Device().ResetPeak()
			return n, cmp.Or(err, failed)
		}
		r.Watch.Note(fmt.Sprintf("a batch of %d should fit, and does not", n))
	}
	return 0, fail("give --batch", "no batch fits on %s, although one should", r.env.Device().Name())
}

// shrink is the part of a batch that did not fit by which the next is smaller.
const shrink = 16
