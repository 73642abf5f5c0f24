package check

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/safetensors"
	"github.com/warpline-ml/warpline/tensor"
)

// losses is how many steps of training are compared.
const losses = 3

// compare does a job on both sides, one after the other: each has the card's memory for itself.
func (p *torch) compare(env *tensor.Env, j job, place string) Comparison {
	c := Comparison{Job: j.name, Shape: j.shape(), DType: j.dt.String(), Allowed: j.allowed()}
	q := question{Job: j.name, Device: place, In: filepath.Join(p.dir, "in"), Out: filepath.Join(p.dir, "out"), Losses: losses, Layers: j.layers, Heads: j.heads}
	var ours []float64
	err := try(env, func(e *tensor.Env) error {
		named, once := j.build(e, j)
		if err := save(q.In, named); err != nil {
			return err
		}
		ours = results(e, j, once)
		c.Ours, q.Warm, q.Turns = measure(e, once)
		return nil
	})
	if err == nil {
		err = env.Device().EmptyCache()
	}
	var theirs []float64
	if err == nil {
		theirs, c.Theirs, err = p.ask(&q)
	}
	if err == nil {
		c.Ratio = c.Theirs / c.Ours
		c.Apart, err = apart(ours, theirs)
	}
	if err != nil {
		c.Error = err.Error()
	}
	return c
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

// What is measured takes a fifth of a second, or as many turns as a queue takes in good time.
const (
	measured  = 200 * time.Millisecond
	mostTurns = 2000
)

// measure times turns of a job that has given its results: after warm more, turns of them are queued, and there is one wait
// at the end, so that a turn's launches run beside the card's work on the turn before. What a turn makes is let go at its
// end.
func measure(e *tensor.Env, once turn) (seconds float64, warm, turns int) {
	do := func() { e.Do(func(e *tensor.Env) *tensor.Tensor { once(e); return nil }) }
	var start time.Time
	for warm = range 2 { // the second has the memory of the first, and tells about how long one takes
		start = time.Now()
		do()
		e.Sync()
	}
	warm++
	turns = int(min(measured/max(time.Since(start), 1), mostTurns-1)) + 1
	start = time.Now()
	for range turns {
		do()
	}
	e.Sync()
	return time.Since(start).Seconds() / float64(turns), warm, turns
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
