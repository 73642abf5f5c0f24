package tensor

import (
	"cmp"
	"log"
	"sort"
	"sync"
	"time"

	"github.com/warpline-ml/warpline/internal/device"
)

// Waits says what happens where the host waits for a device without having been asked to by Env.Sync: where it reads
// values (Item, Floats, printing), copies them to another device, or uploads faster than the device takes it.
type Waits uint8

// The policies. All of them count; the environment variable WARPLINE_SYNC sets the one that devices begin with: "warn"
// or "error".
const (
	AllowWaits Waits = iota
	WarnWaits        // log the first wait of each line of the program
	FailWaits        // panic with an *Error
)

// SyncPoint is a line of the program at which the host has waited for the device.
type SyncPoint struct {
	What  string // "read", "copy", "upload" or "memory"
	Line  string
	Count int
}

// insteadOf is what to do about a wait. Those for memory are never a failure: without them it would not do.
var insteadOf = map[string]string{
	device.WaitRead:   "keep the value on the device, or ask by Later and read it in a later step",
	device.WaitCopy:   "keep the value on the device",
	device.WaitUpload: "upload less in a step, or keep on the device what does not change",
}

// book counts events by what they are and the line of the program.
type book struct {
	mu     sync.Mutex
	counts map[SyncPoint]int // by point without count
}

// note counts an event, and tells whether it is the first of its point.
func (b *book) note(e *device.Event) (p SyncPoint, first bool) {
	p = SyncPoint{What: e.What, Line: e.Site.String()}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counts == nil {
		b.counts = map[SyncPoint]int{}
	}
	b.counts[p]++
	return p, b.counts[p] == 1
}

// points lists what was counted, the most frequent first.
func (b *book) points() []SyncPoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []SyncPoint
	for p, n := range b.counts {
		p.Count = n
		all = append(all, p)
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Line, b.Line), cmp.Compare(a.What, b.What)) < 0
	})
	return all
}

func (b *book) reset() {
	b.mu.Lock()
	clear(b.counts)
	b.mu.Unlock()
}

// OnWait sets the policy for waits from now on.
func (d *Device) OnWait(w Waits) { d.policy.Store(int32(w)) }

// Syncs lists the lines at which the host has waited for the device, the most frequent first. A device that computes in
// the caller (the CPU) has none.
func (d *Device) Syncs() []SyncPoint { return d.syncs.points() }

// ResetSyncs forgets the waits so far.
func (d *Device) ResetSyncs() { d.syncs.reset() }

// noteWait is the observer of the device's waits: those that the program did not ask for by name.
func (d *Device) noteWait(e *device.Event) {
	if e.What == device.WaitQueue || e.What == device.WaitSync {
		return
	}
	p, first := d.syncs.note(e)
	policy := Waits(d.policy.Load())
	if first && (policy == WarnWaits || policy == FailWaits && e.What == device.WaitMemory) {
		log.Printf("%s: the host waits for %s (%s)", p.Line, d.name, p.What)
	}
}

// wait is one of the host for a device, under way.
type wait struct {
	queue *queue // nil: none
	what  string
	start time.Duration
}

// waits begins a wait for q, unless the policy refuses it. A device that computes in the caller has none.
func (d *Device) waits(what string, q *queue) wait {
	if d.info.Host || d.info.Null {
		return wait{}
	}
	w := wait{q, what, d.stream.Now()}
	if hint, unasked := insteadOf[what]; unasked && Waits(d.policy.Load()) == FailWaits {
		w.over()
		raise(what, hint, "the host would wait for %s here", d.name)
	}
	return w
}

// over ends a wait.
func (w *wait) over() {
	if w.queue != nil {
		w.queue.dev.stream.Emit(device.Event{Kind: device.KindWait, What: w.what, Queue: w.queue.id, Start: w.start, Took: w.queue.dev.stream.Now() - w.start})
	}
}

// policies are the values of WARPLINE_SYNC.
var policies = map[device.Waits]Waits{device.AllowWaits: AllowWaits, device.WarnWaits: WarnWaits, device.FailWaits: FailWaits}
