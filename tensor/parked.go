package tensor

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Parked is a value of a device that lies in the host's memory between its uses, as optimizer state may. One goroutine at a
// time uses it.
type Parked struct {
	dev   *Device
	typ   *ir.Type
	berth *berth
}

// ParkZeros is a value of t's shape and of dtype dt, all zeros, in the memory of the host of t's device, which must be one that
// [Device.Parks] says nothing against.
func ParkZeros(t *Tensor, dt dtype.DType) *Parked {
	t.alive("ParkZeros")
	p := &Parked{dev: t.env.dev, typ: ir.Dense(dt, t.typ.Shape()...)}
	p.berth = p.dev.side().berth("ParkZeros", p.typ.Bytes())
	if m := p.berth.mem; m.Size > 0 {
		clear(hostmem.Bytes(uintptr(m.Addr), int(m.Size)))
	}
	return p
}

// Park moves a copy of t's value there.
func Park(t *Tensor) *Parked {
	t.alive("Park")
	p := &Parked{dev: t.env.dev, typ: t.typ.AsDense()}
	side, q := p.dev.side(), t.env.onQueue()
	p.berth = side.berth("Park", p.typ.Bytes())
	c := t.quiet().Contiguous()
	side.q.after(q)
	p.berth.out(c.arg())
	q.after(side.q)
	t.dropCopy(c)
	return p
}

// Device is the one that the value is of.
func (p *Parked) Device() *Device { return p.dev }

// DType is the value's.
func (p *Parked) DType() dtype.DType { return p.typ.DType }

// Bytes is the size of the value.
func (p *Parked) Bytes() int64 { return p.typ.Bytes() }

// In is the value in e, an env of its device.
func (p *Parked) In(e *Env) *Tensor {
	side, q := p.dev.side(), e.onQueue()
	t := e.make(ir.Copy, p.typ, 0, nil, nil)
	side.q.after(q)
	p.berth.in(t.arg())
	q.after(side.q)
	return t
}

// String tells the value's type and where it belongs.
func (p *Parked) String() string {
	return p.typ.String() + " of " + p.dev.name + ", in the host's memory"
}

// Value is a copy of the value on the device "cpu", in the root scope. On its way it is on its own device, alone. A device that
// computes nothing has the copy itself.
func (p *Parked) Value() *Tensor {
	if !p.dev.Computes() {
		return p.In(p.dev.base)
	}
	host, err := Open("cpu")
	if err != nil {
		raiseErr("Value", "", err)
	}
	e, scope := p.dev.base.NoGrad().Scope()
	defer scope.End()
	return p.In(e).To(host)
}

// slots is how many groups of values are on the device at once in StreamParked: one in use, one on its way there, one on its
// way back.
const slots = 3

// StreamParked calls use for one group of parked values after the other, with their values on e's device, where use may
// change them. While it works, the values of the next group are on their way, and those of the group before on theirs back.
// All memory is taken before use is called first.
func StreamParked(e *Env, groups [][]*Parked, use func(i int, values []*Tensor)) {
	if len(groups) == 0 {
		return
	}
	uncapturable("StreamParked", "leave one of both out", "copies from the host's memory are no part of a captured step")
	inner, scope := e.NoGrad().Scope()
	defer scope.End()
	c := newConvoy(inner, groups)
	c.fetch(0)
	for i := range groups {
		c.fetch(i + 1)
		c.q.await(c.came[i], c.side.q)
		use(i, c.values(i))
		c.store(i)
	}
	c.end()
}

// convoy is the values of StreamParked on their way. What the side queue is asked for keeps its order: a slot is copied back
// before it is filled again.
type convoy struct {
	env    *Env
	q      *queue
	side   *sideQueue
	groups [][]*Parked
	slots  []*Tensor
	came   []device.Mark
}

func newConvoy(e *Env, groups [][]*Parked) *convoy {
	c := &convoy{env: e, q: e.onQueue(), side: e.dev.side(), groups: groups, came: make([]device.Mark, len(groups))}
	most := 0
	for _, g := range groups {
		n := 0
		for _, p := range g {
			n += room(p)
		}
		most = max(most, n)
	}
	for range min(slots, len(groups)) {
		t := e.make(ir.Copy, ir.Dense(dtype.U8, most), 0, nil, nil)
		t.Label(device.LabelState, "")
		t.st.UsedBy(c.side.q.id)
		c.slots = append(c.slots, t)
	}
	c.side.q.after(c.q)
	return c
}

// room is what a value takes of a slot, in bytes.
func room(p *Parked) int { return int(p.Bytes()+511) &^ 511 }

// values are those of group i in its slot.
func (c *convoy) values(i int) (list []*Tensor) {
	slot, at := c.slots[i%len(c.slots)], 0
	for _, p := range c.groups[i] {
		list = append(list, &Tensor{st: slot.st, typ: p.typ, off: at / p.typ.DType.Size(), env: c.env})
		at += room(p)
	}
	return list
}

// fetch begins the copies of group i to the device.
func (c *convoy) fetch(i int) {
	if i == len(c.groups) {
		return
	}
	for j, t := range c.values(i) {
		c.groups[i][j].berth.in(t.arg())
	}
	c.came[i] = c.side.q.mark()
}

// store begins their copies back.
func (c *convoy) store(i int) {
	c.side.q.after(c.q)
	for j, t := range c.values(i) {
		c.groups[i][j].berth.out(t.arg())
	}
}

// end lets go of the slots once the copies are made.
func (c *convoy) end() {
	c.q.after(c.side.q)
	for _, t := range c.slots {
		t.st.Ordered(c.side.q.id)
	}
}
