package bench

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/tensor"
)

// measure makes a job's row.
func (r *runner) measure(ctx context.Context, j job) (row Row, err error) {
	defer machine.Recovered(&err)
	env, err := tensor.Fresh(r.Device)
	if err != nil {
		return row, machine.Explain(r.Device, err)
	}
	env, scope := env.Scope(0)
	defer func() {
		scope.End()
		env.Device().Collect()
		err = errors.Join(err, env.Device().EmptyCache())
	}()
	w, err := j.Make(env, j.n, r.dt)
	if err != nil {
		return row, err
	}
	if w.Close != nil {
		defer w.Close()
	}
	row = Row{Bench: j.Bench, Case: j.Name, N: j.n, DType: r.dt.String(), Device: r.Device, Threads: r.Threads, Modelled: r.planned, Unit: j.Unit}
	w.Turn() // plans, and what only the first turn allocates
	env.Device().ResetPeak()
	launches := Record(env.Device(), w.Turn)
	amount, floor := r.amount(j, &w, launches), 0.0
	var seconds []float64
	if r.planned {
		row.Model = r.machine.Model(launches)
		seconds, floor = []float64{row.Model.Seconds()}, row.Model.Floor
	} else {
		if seconds, err = r.turns(ctx, env, &w); err != nil {
			return row, err
		}
		floor = r.machine.Floor(launches, w.Bytes)
		row.Profile = r.machine.profile(env, w.Turn)
	}
	row.fill(seconds, amount, floor, j.Free)
	row.extras(env.Device().Memory().Peak)
	return row, nil
}

// amount is how much of its unit a turn of a job is.
func (r *runner) amount(j job, w *Work, l Launches) float64 {
	switch j.Unit {
	case "GFLOP/s":
		return float64(l.FLOPs()) / 1e9
	case "GB/s":
		return float64(l.Traffic()) / 1e9
	}
	return w.Amount
}

// turns are the seconds of a turn, in as many rounds as were asked for, each long enough for the clock. What takes long is
// measured less often, and an interrupt ends it.
func (r *runner) turns(ctx context.Context, env *tensor.Env, w *Work) (seconds []float64, err error) {
	const patience = 10 // seconds
	one := seconds1(env, w.Turn, 1)
	n := max(1, int(r.Time.Seconds()/one))
	rounds := max(min(r.Rounds, 3), min(r.Rounds, int(patience/(float64(n)*one))))
	for range rounds {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r.machine.Refresh()
		seconds = append(seconds, seconds1(env, w.Turn, n))
	}
	return seconds, nil
}

// seconds1 is the time of one of n turns, and the device's when it is done.
func seconds1(env *tensor.Env, turn func(), n int) float64 {
	turn() // the ceilings had the caches
	env.Sync()
	start := time.Now()
	for range n {
		turn()
	}
	env.Sync()
	return time.Since(start).Seconds() / float64(n)
}

// fill sets a row's figures from the seconds of its turns, each of so many units, and from the least seconds of one.
func (r *Row) fill(seconds []float64, amount, floor float64, free bool) {
	s := slices.Sorted(slices.Values(seconds))
	middle := s[len(s)/2]
	r.Median, r.Low, r.High = amount/middle, amount/s[len(s)-1], amount/s[0]
	r.MS = 1e3 * middle
	if floor > 0 && !free {
		ceiling, share := amount/floor, floor/middle
		r.Ceiling, r.Share = &ceiling, &share
	}
}

// extras sets what scripts read of a bench, and leaves the rest out.
func (r *Row) extras(peak int64) {
	switch r.Bench {
	case "gemm":
		r.GFLOPS, r.MS = r.Median, 0
	case "train":
		r.PeakBytes = peak
	case "data":
		r.MS = 0
	}
	if r.Case == "add-4" || r.Case == "add-4-grad" {
		r.MS /= burst
	}
}

// Launch is an operation that a device was asked for.
type Launch struct {
	*device.Kernel
	Took float64 // seconds of the host's call, which on a processor has done the work
}

// Launches are those of a turn.
type Launches []Launch

// Record lists the launches of f.
func Record(d *tensor.Device, f func()) (list Launches) {
	stop := d.Observe(func(e *device.Event) {
		if e.Step == 0 {
			list = append(list, Launch{e.Kernel, e.Took.Seconds()})
		}
	}, device.KindLaunch, device.KindFill)
	f()
	stop()
	return list
}

// FLOPs are the floating-point operations of all.
func (l Launches) FLOPs() (n int64) {
	for _, k := range l {
		n += k.FLOPs
	}
	return n
}

// Traffic is the bytes that all move, if each reads its operands and writes its results through caches: what is written is
// fetched before.
func (l Launches) Traffic() (n int64) {
	for _, k := range l {
		n += k.Bytes + k.Written()
	}
	return n
}
