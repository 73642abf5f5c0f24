package snapshot

import (
	"cmp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// history is what the trace of one device tells.
type history struct {
	events  []*Event
	actions map[string]int
	net     int64             // bytes of allocations less those of frees
	curve   []int64           // net after each event
	peak    int               // the event after which most is in use; -1: none
	kinds   map[uint64]string // of blocks that are there at the end, as the program named them
	ooms    []*Event
	emptied []emptied
	retries int
}

// emptied is a burst of segments that went back to the driver because the program asked for it.
type emptied struct {
	segments     int
	bytes, again int64 // given back, and asked for again before the next burst
	stack        *stack
}

// baseline is what was in use before the first event.
func (h *history) baseline(t *state) int64 { return t.allocated - h.net }

func (h *history) peakDelta() int64 {
	if h.peak < 0 {
		return 0
	}
	return h.curve[h.peak]
}

func historyOf(events []*Event) *history {
	h := &history{events: events, actions: map[string]int{}, curve: make([]int64, len(events)), peak: -1, kinds: map[uint64]string{}}
	most := int64(0)
	for i, e := range events {
		h.actions[e.Action]++
		switch e.Action {
		case "alloc":
			h.net += e.Size
			h.kinds[e.Addr] = e.kind
		case "free_completed":
			h.net -= e.Size
			delete(h.kinds, e.Addr)
		case "oom":
			h.ooms = append(h.ooms, e)
		}
		if h.curve[i] = h.net; h.net > most {
			h.peak, most = i, h.net
		}
	}
	h.bursts()
	return h
}

// bursts tells what the program gave back to the driver from what the allocator gave back because memory ran short: that comes
// right before it asks the driver again. (What comes before it gives up is told by that.) Without calls the two look alike, and
// none is a retry.
func (h *history) bursts() {
	for i := 0; i < len(h.events); {
		e := h.events[i]
		if e.Action == "segment_alloc" || e.Action == "segment_map" {
			if n := len(h.emptied); n > 0 {
				h.emptied[n-1].again += e.Size
			}
		}
		if !returns(e) {
			i++
			continue
		}
		burst := emptied{stack: e.stack}
		for ; i < len(h.events) && returns(h.events[i]) && h.events[i].stack.emptyCache == e.stack.emptyCache; i++ {
			burst.segments++
			burst.bytes += h.events[i].Size
		}
		switch {
		case e.stack.emptyCache:
			h.emptied = append(h.emptied, burst)
		case e.stack.known && i < len(h.events) && (h.events[i].Action == "segment_alloc" || h.events[i].Action == "segment_map"):
			h.retries++
		}
	}
}

func returns(e *Event) bool { return e.Action == "segment_free" || e.Action == "segment_unmap" }

// phases are the events at which the program's steps are at the same place: the ends of optimizer steps where the file marks
// them, else the troughs of memory.
func (h *history) phases(marks []Mark, device int) []int {
	var at []int
	for _, m := range marks {
		if m.Begin || m.Device != device || !strings.HasPrefix(m.Name, "Optimizer.step") {
			continue
		}
		i, _ := slices.BinarySearchFunc(h.events, m.Time, func(e *Event, t int64) int {
			if e.Time <= t {
				return -1
			}
			return 1
		})
		if i > 0 {
			at = append(at, i-1)
		}
	}
	if len(at) > growingSteps {
		slices.Sort(at)
		return slices.Compact(at)
	}
	return troughs(h.curve)
}

// open are the allocations of the trace that are in use after an event.
func (h *history) open(after int) map[uint64]int {
	open := map[uint64]int{}
	for i, e := range h.events[:after+1] {
		switch e.Action {
		case "alloc":
			open[e.Addr] = i
		case "free_completed":
			delete(open, e.Addr)
		}
	}
	return open
}

// at are who holds what after an event, of what was there before the trace began too.
func (h *history) at(event int, before int64) []Share {
	all := shares{}
	rest := before + h.curve[event]
	for _, i := range h.open(event) {
		e := h.events[i]
		all.add(e.stack, e.kind, e.Size)
		rest -= e.Size
	}
	if rest > 0 {
		all[share{}] = &Share{Line: kindUnknown, Kind: kindUnknown, Bytes: rest}
	}
	return all.sorted()
}

// keeper is a line of whose allocations some stay in every step.
type keeper struct {
	stack  *stack
	blocks int
	bytes  int64
}

// keepers are the lines whose allocations stay from most of the intervals between phases, and what they keep in all, the
// largest first.
func (h *history) keepers(phases []int) []keeper {
	type kept struct {
		keeper
		intervals map[int]bool
	}
	by := map[share]*kept{}
	for _, i := range h.open(phases[len(phases)-1]) {
		interval, _ := slices.BinarySearch(phases, i)
		if interval == 0 {
			continue // older than the first phase
		}
		e := h.events[i]
		key := share{e.stack.file + e.stack.where(), ""}
		k := by[key]
		if k == nil {
			k = &kept{keeper{stack: e.stack}, map[int]bool{}}
			by[key] = k
		}
		k.blocks++
		k.bytes += e.Size
		k.intervals[interval] = true
	}
	var out []keeper
	for _, k := range by {
		if 5*len(k.intervals) >= 4*(len(phases)-1) {
			out = append(out, k.keeper)
		}
	}
	sorting.By(out, func(a, b keeper) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), strings.Compare(a.stack.where(), b.stack.where()))
	})
	return out
}
