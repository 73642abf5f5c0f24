package tensor

import (
	"cmp"
	"log"
	"slices"
	"sync"

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

// What the host waited for.
const (
	whatRead   = "read"
	whatCopy   = "copy"
	whatUpload = "upload" // too much is on its way
	whatMemory = "memory" // to give cached memory back; never a failure, because without it the memory would not do
)

// insteadOf is what to do about a wait.
var insteadOf = map[string]string{
	whatRead:   "keep the value on the device, or ask by Later and read it in a later step",
	whatCopy:   "keep the value on the device",
	whatUpload: "upload less in a step, or keep on the device what does not change",
}

// syncBook counts the waits of a device.
type syncBook struct {
	mu     sync.Mutex
	policy Waits
	counts map[SyncPoint]int // by point without count
}

// OnWait sets the policy for waits from now on.
func (d *Device) OnWait(w Waits) {
	d.syncs.mu.Lock()
	d.syncs.policy = w
	d.syncs.mu.Unlock()
}

// Syncs lists the lines at which the host has waited for the device, the most frequent first. A device that computes in
// the caller (the CPU) has none.
func (d *Device) Syncs() []SyncPoint {
	d.syncs.mu.Lock()
	defer d.syncs.mu.Unlock()
	var all []SyncPoint
	for p, n := range d.syncs.counts {
		p.Count = n
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b SyncPoint) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Line, b.Line), cmp.Compare(a.What, b.What))
	})
	return all
}

// ResetSyncs forgets the waits so far.
func (d *Device) ResetSyncs() {
	d.syncs.mu.Lock()
	clear(d.syncs.counts)
	d.syncs.mu.Unlock()
}

// waits notes that the host is about to wait for d.
func (d *Device) waits(what string) {
	if d.info.Host || d.info.Null {
		return
	}
	p := SyncPoint{What: what, Line: userLine()}
	d.syncs.mu.Lock()
	if d.syncs.counts == nil {
		d.syncs.counts = map[SyncPoint]int{}
	}
	d.syncs.counts[p]++
	first, policy := d.syncs.counts[p] == 1, d.syncs.policy
	d.syncs.mu.Unlock()
	switch {
	case policy == FailWaits && what != whatMemory:
		raise(what, insteadOf[what], "the host would wait for %s here", d.name)
	case policy != AllowWaits && first:
		log.Printf("%s: the host waits for %s (%s)", p.Line, d.name, what)
	}
}

// policies are the values of WARPLINE_SYNC.
var policies = map[device.Waits]Waits{device.AllowWaits: AllowWaits, device.WarnWaits: WarnWaits, device.FailWaits: FailWaits}

func waitsFromEnvironment() (Waits, error) {
	s, err := device.FromEnvironment()
	return policies[s.Waits], err
}
