package tensor

import (
	"sync/atomic"
	"weak"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/rng"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// scope is a lifetime of values and of the graph recorded in it, with a random path.
type scope struct {
	heap.Scope
	dev    *Device
	parent *scope
	home   *scope              // s itself; of a chain's, the scope that it is a part of: its graph and random path are that one's
	begun  uint64              // sequence number of the last node before it
	ended  atomic.Bool         // by its opener; holders may keep it open
	block  bool                // of Do, Try or Chain: when closed, its env stands for the parent's
	random *stream             // its random path
	own    stream              // where it has one of its own
	moving weak.Pointer[block] // the last of its blocks whose values go to the host's memory, which its graph keeps
}

func newScope(d *Device, parent *scope, key rng.Key) *scope {
	s := &scope{dev: d, parent: parent, begun: nodeSeq.Load()}
	s.home, s.random = s, &s.own
	s.own.key, s.own.step = key, recordings.step()
	d.heap.Open(&s.Scope, parent.owner())
	return s
}

// owner is what s owns storages by; nil for no scope.
func (s *scope) owner() *heap.Scope {
	if s == nil {
		return nil
	}
	return &s.Scope
}

// owns tells whether a storage ends with s.
func (s *scope) owns(st *heap.Storage) bool { return s.dev.heap.Owner(st) == &s.Scope }

// What releases values, and what to do about it.
var (
	turnEnd  = &heap.Cause{By: "the end of its batch", Hint: "t.Keep() keeps a value beyond its batch"}
	blockEnd = &heap.Cause{By: "the end of its Do or Try block", Hint: "return it from the block, or t.Keep()"}
	ranBack  = &heap.Cause{By: "Backward", Hint: "call t.Keep() or t.Detach() before Backward, or use BackwardRetain"}
	stepped  = &heap.Cause{By: "Step, which consumes gradients", Hint: "read it before Step"}
	slotSet  = &heap.Cause{By: "Slot.Set", Hint: "t.Keep() keeps the old value too"}
	released = &heap.Cause{By: "Release", Hint: "release it behind its last use"}
	replaced = &heap.Cause{By: "a new value for its parameter", Hint: "take the handle again from the model"}
	internal = &heap.Cause{By: "its operation, as a temporary", Hint: "t.Keep() within the operation keeps it"}
)

// storage allocates n bytes in a scope of e that is open, for what is made of in. Its site is e's own or, when that is nil,
// begins skip calls above storage.
//
//go:noinline
func (s *scope) storage(e *Env, n int64, code ir.Code, skip int, in []*Tensor, o *device.Origin) *heap.Ref {
	if o == nil && s.dev.stream.WantsWork() {
		origin := e.origin(1 + skip)
		o = &origin
	}
	site := e.site
	switch {
	case o != nil:
		site = o.Site
	case site == nil:
		site = callsite.At(1 + skip)
	}
	ref, err := s.New(n, &code.Row().Name, e.onQueue().id, site, near(in), o)
	if err != nil {
		s.dev.outOfMemory(e, n, code, err, in, o)
	}
	if step := recordings.step(); step != nil {
		step.makes(ref)
	}
	return ref
}

// scratch allocates what one kernel works in, on in.
//
//go:noinline
func (s *scope) scratch(e *Env, n int64, code ir.Code, in []*Tensor, o *device.Origin) *heap.Ref {
	if o == nil && s.dev.stream.WantsWork() {
		origin := e.origin(2)
		o = &origin
	}
	ref, err := s.NewScratch(n, &code.Row().Name, e.onQueue().id, near(in), o)
	if err != nil {
		s.dev.outOfMemory(e, n, code, err, in, o)
	}
	if ref.SetUse(workspace); o != nil && s.dev.stream.Wants(device.KindRelabel) {
		s.dev.tellUse(ref.Storage, device.LabelWorkspace, "", o)
	}
	if step := recordings.step(); step != nil {
		step.makes(ref)
	}
	return ref
}

// near is the path of the first parameter among operands or, where there is none, of the one that the first of them was
// made of that was made of one; or nil.
func near(in []*Tensor) *string {
	var from *string
	for _, t := range in {
		if l := t.parameter(); l != nil {
			if name := l.name.Load(); name != nil {
				return &name[0]
			}
			return nil
		}
		if from == nil {
			from = t.st.Near
		}
	}
	return from
}

var workspace = &heap.Use{Label: device.LabelWorkspace}

// alive panics if t was released.
func (t *Tensor) alive(op string) {
	t.present()
	if t.st.Gone() != nil {
		t.dead(op)
	}
}

func (t *Tensor) dead(op string) {
	why := t.st.Gone()
	raise(op, why.Hint, "the result of %s at %s was released by %s and is used", t.st.What(), t.st.Site.String(), why.By)
}

// Scope is an open lifetime, for packages that own loops. Users see it as a batch. It may be used by several goroutines at
// once.
type Scope struct{ s *scope }

// Scope derives an env whose new values live until End. The path of stable indices is folded into its random key.
func (e *Env) Scope(path ...uint64) (*Env, Scope) {
	s := newScope(e.dev, e.live(), e.folded(path))
	c := *e
	c.scope, c.seeded = s, nil
	return &c, Scope{s}
}

// Hold keeps the scope open until the returned function is called. The zero Scope, which no Env.Scope made, has nothing to
// keep.
func (s Scope) Hold() (release func()) {
	if s.s == nil {
		return func() {}
	}
	s.s.Retain()
	var once atomic.Bool
	return func() {
		if once.CompareAndSwap(false, true) {
			s.s.End(turnEnd)
		}
	}
}

// End closes the scope, unless somebody holds it. Only the first End counts.
func (s Scope) End() {
	if s.s != nil && s.s.ended.CompareAndSwap(false, true) {
		s.s.End(turnEnd)
		s.s.dev.heap.NextTurn()
	}
}
