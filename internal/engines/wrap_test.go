package engines_test

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/device/devicetest"
	_ "github.com/warpline-ml/warpline/internal/engines"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// wrapped is a device in a wrapper that can nothing but the core interface, and shows what is inside.
type wrapped struct{ device.Device }

func (w wrapped) Unwrap() device.Device { return w.Device }

func (w wrapped) NewQueue() (device.Queue, error) {
	q, err := w.Device.NewQueue()
	if err != nil {
		return nil, err
	}
	return wrappedQueue{q}, nil
}

type wrappedQueue struct{ device.Queue }

func (w wrappedQueue) Unwrap() device.Queue { return w.Queue }

func (w wrappedQueue) Record() (device.Mark, error) {
	m, err := w.Queue.Record()
	if err != nil {
		return nil, err
	}
	return wrappedMark{m}, nil
}

type wrappedMark struct{ device.Mark }

func (w wrappedMark) Unwrap() device.Mark { return w.Mark }

// opaque is a device that has lost its powers: an engine that offers the core alone.
type opaque struct{ device.Device }

func (o opaque) NewQueue() (device.Queue, error) {
	q, err := o.Device.NewQueue()
	if err != nil {
		return nil, err
	}
	return struct{ device.Queue }{q}, nil
}

func twice(d device.Device) device.Device { return wrapped{wrapped{d}} }
func alone(d device.Device) device.Device { return opaque{d} }

// kinds are those of the engines that have a device here: all but that of NVIDIA's cards, where there is none.
var kinds = slices.DeleteFunc(device.Kinds(), func(kind string) bool {
	return kind == "cuda" && !slices.Contains(device.Here(), "cuda:0")
})

func open(t *testing.T, name string) device.Device {
	t.Helper()
	d, _, err := device.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// shared is a device that outlives its users.
type shared struct{ device.Device }

func (shared) Close() error            { return nil }
func (s shared) Unwrap() device.Device { return s.Device }

// with is a device, a queue of it and a mark of that.
func with(t *testing.T, d device.Device) map[string]any {
	t.Helper()
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	m, err := q.Record()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"device": d, "queue": q, "mark": m}
}

// TestPowers: each power of each engine is found through two wrappers, and no engine lacks all.
func TestPowers(t *testing.T) {
	had := map[string]bool{}
	for _, kind := range kinds {
		bare, deep := with(t, open(t, kind)), with(t, twice(open(t, kind)))
		for _, p := range device.Powers() {
			own := p.Bare(bare[p.Of])
			had[p.Name] = had[p.Name] || own
			if p.Bare(deep[p.Of]) {
				t.Errorf("%s: the wrapper is a %s itself: it hides nothing", kind, p.Name)
			}
			if got := p.In(deep[p.Of]); got != own {
				t.Errorf("%s: its %s is a %s: %v; through two wrappers: %v", kind, p.Of, p.Name, own, got)
			}
		}
	}
	for _, p := range device.Powers() {
		if !had[p.Name] {
			t.Errorf("no engine is a %s", p.Name)
		}
	}
}

// some are op codes of each way that an engine launches: with scratch memory, with parameters, with faults, in place.
var some = []ir.Code{ir.Add, ir.Copy, ir.Full, ir.MatMul, ir.Sum, ir.Gather, ir.CrossEntropy, ir.AdamW, ir.Uniform}

// TestWrappedEngines: what package device promises holds through two wrappers, and on a device without powers.
func TestWrappedEngines(t *testing.T) {
	for _, kind := range kinds {
		for name, wrap := range map[string]func(device.Device) device.Device{"wrapped": twice, "alone": alone} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				d := shared{open(t, kind)}
				get := func() device.Device { return wrap(d) }
				if d.Info().Null {
					devicetest.Contract(t, get)
					return
				}
				devicetest.RunCodes(t, get, some...)
			})
		}
	}
}

// TestWrappedPrograms: a step of training has the same bits through two wrappers and without any power.
func TestWrappedPrograms(t *testing.T) {
	for _, kind := range kinds {
		want := program(t, kind)
		for name, wrap := range map[string]func(device.Device) device.Device{"wrapped": twice, "alone": alone} {
			as := name + "-" + kind
			device.Register(as, device.Engine{Open: func(n device.Name) (device.Device, error) {
				return wrap(open(t, device.Name{Kind: kind, Index: n.Index}.String())), nil
			}})
			if got := program(t, as); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", as, got, want)
			}
		}
	}
}

// program is the losses of a few steps, and of a value that has been to another device and back. Where the second device
// is the host's own, that is the first.
func program(t *testing.T, kind string) []float64 {
	t.Helper()
	e, err := tensor.Fresh(kind)
	if err != nil {
		t.Fatal(err)
	}
	e = e.Seed(7)
	model := nn.Sequential{nn.NewLinear(e, 5, 7), nn.ReLU{}, nn.NewLinear(e, 7, 3)}
	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 0.01, Clip: 1})
	var losses []float64
	var late []*tensor.Pending
	for range 3 {
		x := e.Randn(4, 5)
		loss := nn.CrossEntropy(model.Forward(x), tensor.From(e, []int64{0, 2, 1, 0}, 4))
		loss.Backward()
		opt.Step()
		late = append(late, loss.Later())
	}
	for _, p := range late {
		losses = append(losses, p.Value())
	}
	other := e
	if !open(t, kind).Info().Host {
		if other, err = tensor.Open(device.Name{Kind: kind, Index: 1}.String()); err != nil {
			t.Fatal(err)
		}
	}
	return append(losses, e.Randn(300).To(other).To(e).Sum().Item())
}
