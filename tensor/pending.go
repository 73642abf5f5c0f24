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
	fetch device.Fetch // nil where the host reads the device's memory
	t     *Tensor      // a copy, where it does
	event device.Event
}

// Later asks for the only value without waiting for it, as Item has it.
func (t *Tensor) Later() *Pending {
	t.alive("Later")
	if t.Size() != 1 {
		raise("Later", "reduce it first", "shape %v has %d values", t.Shape(), t.Size())
	}
	c := t.quiet().copyTo(t.env.dev.base)
	p := &Pending{dev: t.env.dev, queue: c.env.onQueue(), t: c}
	if p.queue.stager != nil {
		p.fetch = p.queue.fetchOnly(c.wide())
		p.event, p.t = p.fetch, nil
		return p
	}
	p.event = p.queue.record()
	return p
}

// wide is t, a copy of the library's own, as float64; where that is another value, t is released.
func (t *Tensor) wide() *Tensor {
	if t.DType() == dtype.F64 {
		return t
	}
	w := t.apply1(ir.Cast, ir.Attr{DType: dtype.F64}, ir.Params{})
	t.env.dev.drop(t.st.rec, internal)
	return w
}

// fetchOnly asks for a float64, whose memory it gives back.
func (q *queue) fetchOnly(t *Tensor) device.Fetch {
	defer q.dev.drop(t.st.rec, internal)
	q.reads(t.st.rec)
	return q.fetch("Later", t.arg(), t.Bytes())
}

// Ready tells whether Value would return at once.
func (p *Pending) Ready() bool { return p.got || p.done("Ready") }

func (p *Pending) done(op string) bool {
	done, err := p.event.Done()
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
			p.value = p.t.floats()[0]
			p.dev.drop(p.t.st.rec, internal)
			p.t = nil
		}
		p.got, p.fetch, p.event = true, nil, nil
	}
	return p.value
}

func (p *Pending) fetched() float64 {
	if !p.done("Value") {
		p.dev.waits(whatRead)
	}
	var b [8]byte
	p.queue.take("Value", p.fetch, b[:])
	return math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
}
