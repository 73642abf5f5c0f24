package prof

import (
	"errors"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

// change is an event of memory as it is kept: 64 bytes, since a history may have a million.
type change struct {
	addr   uint64
	size   int64 // of the block or the segment; of what failed, what the device had free, -1 if unknown
	asked  int64 // of it; of Backward, what is kept for it
	at     int64 // nanoseconds of the host since the beginning
	stack  uint32
	op     uint32 // words: the operation that it is for
	label  uint32
	path   uint32
	module uint32
	queue  uint16
	kind   device.Kind
	end    bool // of Backward
}

// changeKinds are the events that changes are of. With memoryKinds ranges are observed, too, so that programs open them.
var (
	changeKinds = []device.Kind{device.KindAlloc, device.KindFreeRequested, device.KindFreeCompleted, device.KindSegmentAlloc,
		device.KindSegmentFree, device.KindMap, device.KindUnmap, device.KindOutOfMemory, device.KindRelabel, device.KindBackward}
	memoryKinds = append(slices.Clip(changeKinds), device.KindRange)
)

// books number what changes repeat: stacks of program counters and words. The first of each is the empty one.
type books struct {
	begun  time.Time
	from   time.Duration // then, by clock
	clock  func() time.Duration
	deep   bool // stacks of up to 64 frames
	stacks [][]uintptr
	byHash map[uint64][]uint32
	words  []string
	wordOf map[string]uint32

	frames map[uint32][]runtime.Frame // of stacks that were asked for
	lines  map[uint32]string
}

// copy has what b has now, whatever b gets later.
func (b *books) copy() *books {
	return &books{begun: b.begun, from: b.from, clock: b.clock, stacks: b.stacks[:len(b.stacks):len(b.stacks)], words: b.words[:len(b.words):len(b.words)], wordOf: map[string]uint32{device.LabelOther: b.wordOf[device.LabelOther]},
		frames: map[uint32][]runtime.Frame{}, lines: map[uint32]string{}}
}

func newBooks(clock func() time.Duration, deep bool) *books {
	return &books{begun: time.Now(), from: clock(), clock: clock, deep: deep, stacks: [][]uintptr{nil}, byHash: map[uint64][]uint32{}, words: []string{""}, wordOf: map[string]uint32{"": 0},
		frames: map[uint32][]runtime.Frame{}, lines: map[uint32]string{}}
}

// now is how many nanoseconds of the host lie behind the beginning.
func (b *books) now() int64 { return int64(b.clock() - b.from) }

// mostStacks bounds what a deep recursion may add: later stacks are the empty one.
const mostStacks = 1 << 17

// stack numbers a chain of calls. What it is given stays the caller's.
func (b *books) stack(pcs []uintptr) uint32 {
	for len(pcs) > 0 && pcs[len(pcs)-1] == 0 {
		pcs = pcs[:len(pcs)-1]
	}
	if len(pcs) == 0 {
		return 0
	}
	sum := uint64(0)
	for _, pc := range pcs {
		sum = bits.RotateLeft64((sum^uint64(pc))*0x9e3779b97f4a7c15, 29)
	}
	for _, i := range b.byHash[sum] {
		if slices.Equal(b.stacks[i], pcs) {
			return i
		}
	}
	if len(b.stacks) == mostStacks {
		return 0
	}
	i := uint32(len(b.stacks))
	b.stacks = append(b.stacks, slices.Clone(pcs))
	b.byHash[sum] = append(b.byHash[sum], i)
	return i
}

func (b *books) word(s string) uint32 {
	i, ok := b.wordOf[s]
	if !ok {
		i = uint32(len(b.words))
		b.words = append(b.words, s)
		b.wordOf[s] = i
	}
	return i
}

// change is e as it is kept.
func (b *books) change(e *device.Event) change {
	c := change{addr: e.Mem.Addr, size: e.Mem.Size, asked: e.Bytes, at: b.now(), queue: uint16(e.Queue), kind: e.Kind, end: e.End}
	if e.Range != nil {
		c.module = b.word(e.Range.Name)
	}
	switch {
	case b.deep:
		c.stack = b.stack(e.Stack())
	case e.Site != nil:
		c.stack = b.stack(e.Site[:])
	}
	switch e.Kind {
	case device.KindRelabel:
		c.label = b.word(e.What)
		if len(e.Paths) > 0 {
			c.path = b.word(e.Paths[0])
		}
	case device.KindAlloc:
		c.op, c.label = b.word(e.What), b.word(device.LabelOther)
	case device.KindOutOfMemory:
		var oom *tensor.OOMError
		if errors.As(e.Err, &oom) {
			c.size = oom.Free
		}
	}
	return c
}

// there are the changes that would have led to what memory holds: of segments, and of blocks. What waits for other queues
// was let go before.
func (b *books) there(v *tensor.Inventory) (all []change) {
	values := map[uint64]*tensor.Value{}
	for i := range v.Values {
		values[v.Values[i].Mem.Addr] = &v.Values[i]
	}
	for i := range v.Segments {
		s := &v.Segments[i]
		seg := change{addr: s.Mem.Addr, size: s.Mem.Size, asked: s.Mem.Size, queue: uint16(s.Queue), kind: device.KindSegmentAlloc}
		if s.Expandable {
			seg.kind = device.KindMap
		}
		all = append(all, seg)
		for _, x := range s.Blocks {
			if x.State == device.Unused {
				continue
			}
			c := change{addr: x.Mem.Addr, size: x.Mem.Size, asked: x.Requested, queue: uint16(s.Queue), kind: device.KindAlloc, label: b.word(device.LabelOther)}
			if value := values[c.addr]; value != nil && x.State == device.InUse {
				b.name(&c, value)
			}
			all = append(all, c)
			if x.State == device.Pending {
				c.kind = device.KindFreeRequested
				all = append(all, c)
			}
		}
	}
	return all
}

func (b *books) name(c *change, v *tensor.Value) {
	c.op, c.label, c.path = b.word(v.Op), b.word(v.Label), b.word(v.Path)
	if v.Site != nil {
		c.stack = b.stack(v.Site[:])
	}
}

// within are the packages whose calls lead from an operation to the observer of its memory.
var within = []string{callsite.Module + "/prof.", callsite.Module + "/internal/device.", callsite.Module + "/tensor/internal/heap."}

// calls are a stack's, innermost first, from the operation on.
func (b *books) calls(stack uint32) []runtime.Frame {
	if f, ok := b.frames[stack]; ok {
		return f
	}
	f := callsite.Frames(b.stacks[stack])
	first := slices.IndexFunc(f, func(f runtime.Frame) bool {
		return !slices.ContainsFunc(within, func(p string) bool { return strings.HasPrefix(f.Function, p) })
	})
	f = f[max(first, 0):]
	b.frames[stack] = f
	return f
}

// line is the program's in a stack, "file.go:12"; "" for the empty one.
func (b *books) line(stack uint32) string {
	if stack == 0 {
		return ""
	}
	l, ok := b.lines[stack]
	if !ok {
		l = callsite.Line(b.calls(stack))
		b.lines[stack] = l
	}
	return l
}

// part is the module that memory belongs to: the parameter's that it serves, or the range that it was asked for in.
func (b *books) part(c *change) string {
	if path := b.words[c.path]; path != "" {
		return path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return b.words[c.module]
}

// watch observes the memory of a device.
type watch struct {
	dev  *tensor.Device
	stop func()
	mu   sync.Mutex
}

// observing runs begin with what d's memory holds, and then f with each later event of it of some kinds, one at a time, until stop.
func observing(d *tensor.Device, begin func(*tensor.Inventory), f func(*device.Event), of []device.Kind) *watch {
	w := &watch{dev: d}
	d.Inventory(func(v *tensor.Inventory) {
		begin(v)
		w.stop = d.Observe(func(e *device.Event) {
			if e.Kind != device.KindRange {
				w.mu.Lock()
				f(e)
				w.mu.Unlock()
			}
		}, of...)
	})
	return w
}

// look runs f with what the memory holds, between two events.
func (w *watch) look(f func(*tensor.Inventory)) {
	w.dev.Inventory(func(v *tensor.Inventory) {
		w.mu.Lock()
		defer w.mu.Unlock()
		f(v)
	})
}
