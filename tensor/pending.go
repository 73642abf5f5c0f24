package tensor

import (
	"encoding/binary"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Pending is a value on its way to the host, for one goroutine at a time.
type Pending struct {
	got   bool
	value float64

	dev   *Device
	queue *queue
	fetch device.Fetch // nil where the device computes nothing
}

// Later asks for the only value without waiting for it, as Item has it.
func (t *Tensor) Later() *Pending {
	t.alive("Later")
	uncapturable("Later", "return the value, and ask for it after Run", "the host would read a value once, and not in each run")
	if t.Size() != 1 {
		raise("Later", "reduce it first", "shape %v has %d values", t.Shape(), t.Size())
	}
	c := t.wide()
	defer c.drop(internal)
	p := &Pending{dev: t.env.dev, queue: c.env.onQueue()}
	switch {
	case p.dev.info.Null: // that the program sees the value is told once it does
	case p.queue.stager == nil: // what was asked of it is done
		p.got, p.value = true, c.floats()[0]
	default:
		p.fetch = p.queue.fetchOnly(c)
	}
	return p
}

// fetchOnly asks for a float64.
func (q *queue) fetchOnly(t *Tensor) device.Fetch {
	t.st.Reads(q)
	start := q.copies()
	f := q.fetch("Later", t.arg(), t.Bytes())
	q.copied(t.env, device.CopyDownload, ownMemory(t.Bytes()), t.arg(), t.Bytes(), start)
	return f
}

// wide is a copy of t, as float64, in a scope that is open.
func (t *Tensor) wide() *Tensor {
	s := t.env.scope
	for s.Closed() != nil {
		s = s.parent
	}
	c := t.quiet()
	c.env = t.env.dev.base.with(func(e *Env) { e.scope, e.site, e.part = s, t.env.site, t.env.part })
	if t.DType() == dtype.F64 {
		return c.apply1(ir.Copy, ir.Attr{}, ir.Params{})
	}
	return c.apply1(ir.Cast, ir.Attr{DType: dtype.F64}, ir.Params{})
}

// Ready tells whether Value would return at once.
func (p *Pending) Ready() bool { return p.got || p.fetch == nil || p.done("Ready") }

func (p *Pending) done(op string) bool {
	done, err := p.fetch.Done()
	if err != nil {
		raiseErr(op, "", err)
	}
	return done
}

// Value waits for the value and returns it. It is a sync point unless Ready, and then waits for no later work.
func (p *Pending) Value() float64 {
	if !p.got {
		if p.fetch != nil {
			p.value = p.fetched()
		} else {
			p.queue.copied(p.dev.base, device.CopyDownload, ownMemory(8), device.Arg{}, 8, p.queue.copies())
		}
		p.got, p.fetch = true, nil
	}
	return p.value
}

func (p *Pending) fetched() float64 {
	var w wait
	if !p.done("Value") {
		w = p.dev.waits(device.WaitRead, p.queue)
	}
	var b [8]byte
	p.queue.take("Value", p.fetch, b[:])
	w.over()
	return math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
}
