package prof

import (
	"io"

	"github.com/google/pprof/profile"

	"github.com/warpline-ml/warpline/internal/durable"
)

// heapTypes are the sample types of a heap's profile.
var heapTypes = []string{"inuse_objects", "count", "inuse_space", "bytes", "inuse_requested", "bytes", "alloc_objects", "count", "alloc_space", "bytes"}

// WriteHeap writes what the devices' memory holds as a profile for go tool pprof, with the calls that led to each allocation, the
// operation as the innermost. Labels are the kind (parameter, activation, …), the module, the operation and the device. Samples
// are blocks in use, their bytes as the allocator counts them (rounded up), the bytes that were asked for, and the blocks and
// bytes that were taken in the events that are kept, given back since or not. The file is there whole or not at all.
func (h *History) WriteHeap(path string) error {
	logs, err := h.logs()
	if err != nil {
		return err
	}
	b := newPprof(heapTypes...)
	b.out.DefaultSampleType = "inuse_space"
	for _, l := range logs {
		b.out.TimeNanos, b.out.DurationNanos = l.books.begun.UnixNano(), l.at
		b.heap(l)
	}
	return durable.WriteFile(path, func(w io.Writer) error { return b.out.Write(w) })
}

// heap adds a sample for each account.
func (b *pprofBuilder) heap(l *memoryLog) {
	led := l.ledger(func(*ledger, *change) {})
	for i := range led.all {
		a := &led.all[i]
		if a.count == 0 && a.made == 0 {
			continue
		}
		h := led.holder(a)
		labels := map[string][]string{"kind": {h.Label}, "op": {h.Op}, "device": {l.name}}
		if h.Module != "" {
			labels["module"] = []string{h.Module}
		}
		calls := []*profile.Location{b.location(frame{Function: h.Op})}
		for _, f := range l.books.calls(a.stack) {
			calls = append(calls, b.location(frame{Function: f.Function, File: f.File, Line: f.Line}))
		}
		b.out.Sample = append(b.out.Sample, &profile.Sample{Location: calls, Value: []int64{a.count, a.size, a.bytes, a.made, a.madeSize}, Label: labels})
	}
}
