package tensor

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/warpline-ml/warpline/internal/device"
)

// What leaves a device's memory for the host's and comes back is copied on a queue of its own, beside the program's work:
// all of it in one order, so that pinned memory may serve again as soon as its last copy was asked for.

// sideQueue is that queue of a device, opened when something first uses it, and what lies in the host's memory.
type sideQueue struct {
	once   sync.Once
	q      *queue
	pinner device.Pinner // nil: nothing is copied, on a device that has no memory

	mu           sync.Mutex
	parked, peak int64 // bytes
}

// side is the device's queue of copies to the host's memory and back.
func (d *Device) side() *sideQueue {
	s := &d.aside
	s.once.Do(func() {
		s.q = d.newQueue()
		s.pinner, _ = device.As[device.Pinner](s.q.q)
	})
	return s
}

// Parks is why values cannot be moved from a device's memory to the host's for a while, as Env.Offload does, or empty where
// they can.
func (d *Device) Parks() (why string) {
	switch {
	case d.info.Host || d.info.Near:
		return "the memory of " + d.name + " is the host's"
	case d.info.Null || d.side().pinner != nil:
		return ""
	}
	return d.name + " has no copies to the host that nobody waits for"
}

// Parked is how many bytes of values lie in the host's memory now, and were there at most.
func (d *Device) Parked() (now, peak int64) {
	d.aside.mu.Lock()
	defer d.aside.mu.Unlock()
	return d.aside.parked, d.aside.peak
}

// berth is pinned memory of the host. What is not given back goes when nothing leads to it.
type berth struct{ *mooring }

// mooring is a berth's inside, which its end needs.
type mooring struct {
	side *sideQueue
	mem  device.Mem
	n    int64
	once sync.Once
}

// berth takes pinned memory of n bytes.
func (s *sideQueue) berth(op string, n int64) *berth {
	b := &berth{&mooring{side: s, n: n}}
	if s.pinner != nil {
		mem, err := s.pinner.Pin(n)
		if err != nil {
			raiseErr(op, "", fmt.Errorf("%d bytes of the host's memory: %w", n, err))
		}
		b.mem = mem
	}
	s.count(n)
	runtime.AddCleanup(b, (*mooring).leave, b.mooring)
	return b
}

func (s *sideQueue) count(n int64) {
	s.mu.Lock()
	s.parked += n
	s.peak = max(s.peak, s.parked)
	s.mu.Unlock()
}

// leave gives the memory back. Copies that were asked for before are done before those of its next user.
func (m *mooring) leave() {
	m.once.Do(func() {
		m.side.count(-m.n)
		if m.side.pinner != nil {
			m.side.pinner.Unpin(m.mem)
		}
	})
}

// out copies a value of b's size to the host, in on it copies it back, after what the side queue was asked before.
func (b *berth) out(src device.Arg) { b.move(device.Arg{Mem: b.mem}, src, device.CopyDownload) }
func (b *berth) in(dst device.Arg)  { b.move(dst, device.Arg{Mem: b.mem}, device.CopyUpload) }

func (b *berth) move(dst, src device.Arg, what string) {
	s := b.side
	start := s.q.copies()
	if s.pinner != nil {
		s.q.mu.Lock()
		err := s.pinner.Move(dst, src, b.n)
		s.q.mu.Unlock()
		if err != nil {
			raiseErr("Offload", "", err)
		}
	}
	s.q.copied(s.q.dev.base, what, dst, src, b.n, start)
	runtime.KeepAlive(b)
}

// await makes q wait for a mark of another queue.
func (q *queue) await(m device.Mark, of *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dev.stream.Emit(device.Event{Kind: device.KindWait, What: device.WaitQueue, Queue: q.id, Other: of.id})
	if err := q.q.Wait(m); err != nil {
		raiseErr("Wait", "", err)
	}
}
