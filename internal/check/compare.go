package check

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/safetensors"
	"github.com/warpline-ml/warpline/tensor"
)

// losses is how many steps of training are compared.
const losses = 3

// compare does a job on both sides, one after the other: each has the card's memory for itself. The device gets no more
// than the limit for its part, if that is not 0. The error is one after which the device is not to be used.
func (p *torch) compare(ctx context.Context, env *tensor.Env, j job, place string, limit time.Duration) (Comparison, error) {
	c := Comparison{Job: j.name, Shape: j.shape(), DType: j.dt.String(), Allowed: j.allowed()}
	q := question{Job: j.name, Device: place, In: filepath.Join(p.dir, "in"), Out: filepath.Join(p.dir, "out"), Losses: losses, Layers: j.layers, Heads: j.heads, timing: timings}
	var ours, theirs []float64
	var took float64
	err := watch(ctx, limit, func() error {
		err := try(env, func(e *tensor.Env) error {
			named, once := j.build(e, j)
			if err := save(q.In, named); err != nil {
				return err
			}
			ours = results(e, j, once)
			took = timings.measure(e, once)
			c.Work = workOf(e, once)
			return nil
		})
		if err == nil {
			err = env.Device().EmptyCache()
		}
		return err
	})
	var broken error
	if stuck(err) || outOfUse(err) {
		broken = err
	}
	if err == nil {
		c.Ours = took
		theirs, c.Theirs, err = p.ask(&q)
	}
	if err == nil {
		c.Ratio = c.Theirs / c.Ours
		c.Apart, err = apart(ours, theirs)
	}
	if err != nil {
		c.Error = err.Error()
	}
	return c, broken
}

// try runs f in a scope, and makes an error of what it panics with.
func try(env *tensor.Env, f func(e *tensor.Env) error) (err error) {
	if _, failed := env.Try(func(e *tensor.Env) *tensor.Tensor { err = f(e); return nil }); failed != nil {
		return failed
	}
	return err
}

// results are the values of one run, or the losses of several steps.
func results(e *tensor.Env, j job, once turn) (y []float64) {
	turns := 1
	if j.steps {
		turns = losses
	}
	for range turns {
		e.Do(func(e *tensor.Env) *tensor.Tensor {
			y = append(y, once(e).Cast(dtype.F64).Floats()...)
			return nil
		})
	}
	return y
}

// workOf is the work of one turn.
func workOf(e *tensor.Env, once turn) device.Work {
	var tally device.Tally
	stop := e.Device().Observe(tally.Observe)
	e.Do(func(e *tensor.Env) *tensor.Tensor { once(e); return nil })
	stop()
	work, _ := tally.Work()
	return work
}

// timing is how both sides measure a turn of a job that has given its results. After some turns to warm up, in which the
// card leaves its idle clocks, come rounds. In a round so many turns are queued that they fill it, and there is one wait at
// its end, so that a turn's launches run beside the card's work on the turn before. The result is the median of the rounds.
type timing struct {
	Warm   float64 `json:"warm"`   // seconds of warming up; two turns at least
	Round  float64 `json:"round"`  // seconds of a round
	Most   int     `json:"most"`   // turns of a round: as many as a queue takes in good time
	Rounds int     `json:"rounds"` // at most
	Enough float64 `json:"enough"` // seconds after which no round begins
}

var timings = timing{Warm: 0.3, Round: 0.2, Most: 2000, Rounds: 3, Enough: 0.5}

// measure returns the seconds of a turn. What a turn makes is let go at its end.
func (m timing) measure(e *tensor.Env, once turn) float64 {
	took := func(turns int) float64 {
		start := time.Now()
		for range turns {
			e.Do(func(e *tensor.Env) *tensor.Tensor { once(e); return nil })
		}
		e.Sync()
		return time.Since(start).Seconds()
	}
	start := time.Now()
	took(1)
	one := took(1) // which has the memory of the first
	for time.Since(start).Seconds() < m.Warm {
		one = took(1)
	}
	turns := int(min(m.Round/max(one, 1e-9), float64(m.Most-1))) + 1
	var rounds []float64
	for start = time.Now(); len(rounds) == 0 || len(rounds) < m.Rounds && time.Since(start).Seconds() < m.Enough; {
		rounds = append(rounds, took(turns)/float64(turns))
	}
	slices.Sort(rounds)
	return rounds[len(rounds)/2]
}

// apart is |ours - theirs| / |theirs|.
func apart(ours, theirs []float64) (float64, error) {
	if len(ours) != len(theirs) {
		return 0, fmt.Errorf("%d results here, %d from PyTorch", len(ours), len(theirs))
	}
	var d, n float64
	for i := range ours {
		d += (ours[i] - theirs[i]) * (ours[i] - theirs[i])
		n += theirs[i] * theirs[i]
	}
	if v := math.Sqrt(d / max(n, math.SmallestNonzeroFloat64)); v <= math.MaxFloat64 {
		return v, nil
	}
	return 0, errors.New("NaN or infinities among the results")
}

// save writes tensors for PyTorch.
func save(path string, named map[string]*tensor.Tensor) error {
	host, err := tensor.Open("cpu")
	if err != nil {
		return err
	}
	var list []safetensors.Tensor
	for name, t := range named {
		data, err := littleEndian(t.To(host))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, safetensors.Tensor{Name: name, DType: t.DType().Safetensors(), Shape: t.Shape(), Data: data})
	}
	return durable.WriteFile(path, func(w io.Writer) error { return safetensors.Write(w, nil, list) })
}

// littleEndian are the bytes of a tensor, of a dtype that torch.py reads.
func littleEndian(t *tensor.Tensor) (b []byte, err error) {
	switch t.DType() {
	case dtype.F32:
		return binary.Append(nil, binary.LittleEndian, tensor.Data[float32](t))
	case dtype.I64:
		return binary.Append(nil, binary.LittleEndian, tensor.Data[int64](t))
	case dtype.BF16:
		for _, v := range tensor.Data[dtype.BFloat16](t) {
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		}
		return b, nil
	}
	return nil, fmt.Errorf("no job has %s", t.DType())
}
