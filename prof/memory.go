package prof

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/tensor"
)

// Footprint is what a part of a program did to a device's memory. Sizes are bytes that the program asked for, as those of
// [tensor.Memory]; where the allocator's blocks are meant, which are larger, it says so.
type Footprint struct {
	Device    string
	Before    int64 // in use when it began
	Peak      int64 // most in use at once
	Net       int64 // in use when it ended, less Before
	Kept      int64 // what the forward kept for the backward: see Memory
	Allocated int64 // most of blocks in use at once
	Reserved  int64 // most of segments that the allocator had from the device
	Kinds     []Kind
	Top       []Holder
}

// Kind is the memory of a label of package device (parameter, gradient, activation, …) at a moment.
type Kind struct {
	Label string
	Bytes int64
}

// Holder is memory in use that one operation at one line of the program asked for.
type Holder struct {
	Label  string `json:"label"`  // what it serves for
	Module string `json:"module"` // the one whose parameter it serves, or in which it was asked for; "" for none
	Line   string `json:"line"`   // of the program, "train.go:12"
	Op     string `json:"op"`
	Bytes  int64  `json:"bytes"`
	Count  int    `json:"count"` // values
}

// Memory runs f and tells what it did to the memory of env's device, by whatever goroutine: to the byte, on every engine.
// Scopes may lie within each other; each has its own peak.
//
//	m := prof.Memory(env, func() { step() })
//	fmt.Println(m)
//
// Kept counts each value once that recorded operations need again for their gradients and that is no parameter: the most
// that any Backward in f found when it began or, if none began, what is held when f ends; without what was held before f. A
// batch that a first layer needs again is a part of it, and what Recompute dropped is not.
//
// Kinds and Top are of the moment of the peak, the largest first. If f panics, Memory does.
func Memory(env *tensor.Env, f func()) Footprint { return footprint(env, f, memoryKinds) }

// MemoryKinds is the Kinds of [Memory], of a program that runs as if nobody looked: who asks for modules has their handles of values
// live on, which Go's collector would have found unreachable, and a peak may then be some bytes higher.
func MemoryKinds(env *tensor.Env, f func()) []Kind {
	return footprint(env, f, changeKinds).Kinds
}

// footprint is Memory by events of some kinds.
func footprint(env *tensor.Env, f func(), of []device.Kind) Footprint {
	d := env.Device()
	m := Footprint{Device: d.Name()}
	l := newLedger(newBooks(d.Now, false))
	var before int64
	w := observing(d, func(v *tensor.Inventory) {
		l.begin(l.books.there(v))
		before = v.Kept
		m.Before = l.inUse
	}, func(e *device.Event) {
		c := l.books.change(e)
		l.apply(&c)
	}, of)
	defer w.stop()
	f()
	w.look(func(v *tensor.Inventory) {
		l.kept = max(l.kept, v.Kept)
		m.Net = l.inUse - m.Before
	})
	w.stop()
	m.Kept = max(0, l.kept-before)
	m.Peak, m.Allocated, m.Reserved = l.peak, l.mostUsed, l.mostTaken
	m.Top = l.holders(func(b *balance) (int64, int64) { return b.peakBytes, b.peakCount })
	m.Kinds = kinds(m.Top)
	return m
}

// String is one line.
func (m Footprint) String() string {
	net := render.Bytes(m.Net)
	if m.Net > 0 {
		net = "+" + net
	}
	s := fmt.Sprintf("peak %s on %s, net %s, kept for backward %s", render.Bytes(m.Peak), m.Device, net, render.Bytes(m.Kept))
	var parts []string
	for _, k := range m.Kinds[:min(3, len(m.Kinds))] {
		parts = append(parts, k.Label+" "+render.Bytes(k.Bytes))
	}
	if len(parts) > 0 {
		s += "; at the peak " + strings.Join(parts, ", ")
	}
	return s
}

// holders are balances by what people know them by, the largest first.
func (l *ledger) holders(of func(*balance) (bytes, count int64)) []Holder {
	rows := map[Holder]*Holder{}
	for i := range l.all {
		b := &l.all[i]
		bytes, count := of(b)
		if count == 0 {
			continue
		}
		key := l.holder(b)
		if rows[key] == nil {
			h := key
			rows[key] = &h
		}
		rows[key].Bytes += bytes
		rows[key].Count += int(count)
	}
	var out []Holder
	for h := range maps.Values(rows) {
		out = append(out, *h)
	}
	sorting.By(out, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Label, b.Label), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Op, b.Op))
	})
	return out
}

// holder names an account.
func (l *ledger) holder(b *balance) Holder {
	c := change{path: b.path, module: b.module}
	return Holder{Label: l.books.words[b.label], Module: l.books.part(&c), Line: l.books.line(b.stack), Op: l.books.words[b.op]}
}

// kinds adds holders up by label, the largest first.
func kinds(of []Holder) []Kind {
	sums := map[string]int64{}
	for _, h := range of {
		sums[h.Label] += h.Bytes
	}
	var out []Kind
	for _, label := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, Kind{label, sums[label]})
	}
	sorting.By(out, func(a, b Kind) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}
