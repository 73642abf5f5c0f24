package tensor

import (
	"slices"
	"weak"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// Offload derives an env in which models move what their blocks keep for Backward to the host's memory, and back before it
// is needed: nn's containers, and the models of package model; see [Env.Recompute] for what a block is. Losses and gradients
// are the same bit for bit. A device whose memory is the host's has nothing to gain, and moves nothing: [Device.Parks].
func (e *Env) Offload() *Env { return e.with(func(c *Env) { c.offload = on }) }

var offloaded = &heap.Cause{By: "Offload, which moved it to the host's memory", Hint: "return it from the block, or t.Keep()"}

// leastParked is what is worth a copy.
const leastParked = 4 << 10

// block is what one block of a model keeps, on its way to the host's memory and back. While it is on its way out it is still
// on the device, until the next block has run: so the copy has that long.
type block struct {
	first    *node  // that Backward comes to; its scope is the block's: graphs move
	queue    *queue // whose work its memory is ordered with
	items    []*parkedValue
	previous *block // of the same graph
	next     *block // which moves what this one leaves to it
	result   *heap.Ref
	results  []keptBy // that keep the result, which is left to the next block
	state    blockState
	moved    device.Mark // the end of its copies
}

type blockState uint8

const (
	blockLeaving blockState = iota
	blockAway
	blockComing
	blockHere
)

// parkedValue is a storage with what keeps it.
type parkedValue struct {
	st    *heap.Ref // on the device; nil while it is away
	berth *berth
	keeps []keptBy
	input bool // of the block: its scope may still need it
}

type keptBy struct {
	n *node
	k *kept
}

// Offload runs f(x) and moves what its graph kept to the host's memory, while what follows runs; Backward brings it back,
// the values of one block while it walks through the block behind.
func Offload(x *Tensor, f func(*Tensor) *Tensor) *Tensor {
	x.alive("Offload")
	d := x.env.dev
	if d.Parks() != "" {
		return f(x)
	}
	uncapturable("Offload", "leave one of both out", "copies to the host's memory are no part of a captured step")
	before := nodeSeq.Load()
	y := f(x)
	y.present()
	nodes := nodesSince(y.node, before)
	if len(nodes) == 0 {
		return y
	}
	b := &block{first: nodes[0], queue: x.env.onQueue(), result: y.st}
	home := nodes[0].scope
	p := home.moving.Value()
	b.collect(nodes, x.st, p)
	if p != nil && p.state == blockLeaving && !p.first.ran {
		p.settle()
		if slices.Contains(nodesSince(y.node, p.first.seq-1), p.first) {
			b.previous = p
		}
		if b.previous == p || p.result.Storage == x.st.Storage {
			p.next = b
		}
	}
	home.moving = weak.Make(b)
	b.leave()
	return y
}

func (b *block) dev() *Device { return b.first.scope.dev }

// collect finds what is worth moving: storages that only the queue at hand has used. The result is left to the next block.
func (b *block) collect(nodes []*node, x *heap.Ref, before *block) {
	byStorage := map[*heap.Storage]*parkedValue{}
	slices.Reverse(nodes)
	for _, n := range nodes {
		if n.scope != b.first.scope {
			continue
		}
		for i := range n.keep {
			k := &n.keep[i]
			switch {
			case !k.held || k.st == nil || k.st.Bytes() < leastParked || !k.st.Sole(b.queue.id):
				continue
			case k.st.Storage == b.result.Storage:
				b.results = append(b.results, keptBy{n, k})
				continue
			}
			v := byStorage[k.st.Storage]
			if v == nil {
				v = &parkedValue{st: k.st, input: k.st.Storage == x.Storage}
				if v.input && before != nil && before.result.Storage == x.Storage {
					v.keeps = before.results
				}
				byStorage[k.st.Storage] = v
				b.items = append(b.items, v)
			}
			v.keeps = append(v.keeps, keptBy{n, k})
		}
		if n.odds().block == nil { // of a block within
			n.oddly().block = b
		}
	}
}

// leave begins the copies to the host.
func (b *block) leave() {
	side := b.dev().side()
	side.q.after(b.queue)
	for _, v := range b.items {
		v.berth = side.berth("Offload", v.st.Bytes())
		v.berth.out(device.Arg{Mem: v.st.Block().Mem()})
		v.st.UsedBy(side.q.id)
	}
	b.moved = side.q.mark()
}

// settle lets go of the device's memory once the copies are made, unless somebody else needs a value there after all.
func (b *block) settle() {
	if b.state != blockLeaving {
		return
	}
	b.land()
	b.state = blockAway
	b.items = slices.DeleteFunc(b.items, func(v *parkedValue) bool {
		away := v.movable(b.dev())
		if away {
			v.letGo(b.dev())
		} else {
			v.berth.leave()
		}
		return !away
	})
}

// land makes the program's queue wait for the block's copies.
func (b *block) land() {
	side := b.dev().side()
	b.queue.await(b.moved, side.q)
	for _, v := range b.items {
		v.st.Ordered(side.q.id)
	}
}

// movable tells whether nothing but the block's nodes holds the value, and nobody wrote to it.
func (v *parkedValue) movable(d *Device) bool {
	if v.st.Gone() != nil || v.st.Holds() != len(v.keeps) || v.input && !d.heap.Orphaned(v.st.Storage) {
		return false
	}
	return !slices.ContainsFunc(v.keeps, func(b keptBy) bool { return b.n.ran || b.k.st != v.st || b.k.version != v.st.Version() })
}

func (v *parkedValue) letGo(d *Device) {
	l := d.heap.Lock()
	defer l.Unlock()
	st := v.st.Storage
	for _, b := range v.keeps {
		l.EndHold(st, b.k.away, offloaded)
		b.k.st, b.k.away = nil, nil
	}
	v.st = nil
}

// fetch begins the copies back to the device.
func (b *block) fetch() {
	if b.state != blockAway {
		return
	}
	b.state = blockComing
	side := b.dev().side()
	s := b.first.scope
	e := &Env{dev: s.dev, scope: s, queue: b.queue, grad: off}
	for _, v := range b.items {
		v.st = s.storage(e, v.berth.n, ir.Copy, 0, nil, nil)
	}
	side.q.after(b.queue)
	for _, v := range b.items {
		v.berth.in(device.Arg{Mem: v.st.Block().Mem()})
		v.berth.leave()
		v.st.UsedBy(side.q.id)
		v.restore(s.dev)
	}
	b.moved = side.q.mark()
}

// restore makes the nodes that are still to run owners of the value again.
func (v *parkedValue) restore(d *Device) {
	v.st.MarkPerishable()
	v.st.MarkSaved()
	for _, b := range v.keeps {
		if b.n.ran {
			continue
		}
		b.k.st, b.k.away, b.k.version = v.st, b.n.scope.Hold(v.st.Storage), v.st.Version()
	}
	d.heap.Orphan(v.st.Storage, ranBack)
}

// reach has the block's values on the device when Backward comes to one of its nodes, and those of the block before on the
// way.
func (b *block) reach() {
	if b.state == blockHere {
		return
	}
	b.fetch()
	leaving := b.state == blockLeaving
	b.land()
	b.state = blockHere
	if leaving {
		for _, v := range b.items {
			v.berth.leave()
		}
	}
	b.items = nil
	if b.previous != nil {
		b.previous.fetch()
	}
}
