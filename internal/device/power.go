package device

import (
	"context"
	"time"
)

// As finds what v, a [Device], a [Queue] or a [Mark], can do beyond its interface: v itself or something it wraps that is
// a T. A wrapper shows what it wraps by a method Unwrap that returns a Device, a Queue or a Mark.
func As[T any](v any) (T, bool) {
	for v != nil {
		if t, ok := v.(T); ok {
			return t, true
		}
		switch w := v.(type) {
		case interface{ Unwrap() Device }:
			v = w.Unwrap()
		case interface{ Unwrap() Queue }:
			v = w.Unwrap()
		case interface{ Unwrap() Mark }:
			v = w.Unwrap()
		default:
			v = nil
		}
	}
	var none T
	return none, false
}

// Power is an interface that an engine may fill beyond [Device] and [Queue].
type Power struct {
	Name string           // of the interface
	Of   string           // what has it: "device", "queue" or "mark"
	In   func(v any) bool // whether As finds it
	Bare func(v any) bool // whether v has it itself, unwrapped
}

func power[T any](name, of string) Power {
	return Power{name, of, func(v any) bool { _, ok := As[T](v); return ok }, func(v any) bool { _, ok := v.(T); return ok }}
}

// Powers lists them all.
func Powers() []Power {
	return []Power{
		power[Meter]("Meter", "device"),
		power[Mapper]("Mapper", "device"),
		power[Prober]("Prober", "device"),
		power[Compiler]("Compiler", "device"),
		power[Loader]("Loader", "device"),
		power[Linked]("Linked", "device"),
		power[Source]("Source", "device"),
		power[Clock]("Clock", "device"),
		power[Stager]("Stager", "queue"),
		power[Peer]("Peer", "queue"),
		power[Pinner]("Pinner", "queue"),
		power[Checker]("Checker", "queue"),
		power[Timer]("Timer", "queue"),
		power[Capturer]("Capturer", "queue"),
		power[Waiter]("Waiter", "mark"),
	}
}

// Waiter is a [Mark] that the host can wait for. Any goroutine may, while others use the queue. What went wrong shows in
// the next call on the queue.
type Waiter interface {
	Mark
	Wait()
}

// Fetch is a copy to the host that nobody waits for yet.
type Fetch interface {
	Waiter
	// Take writes the bytes of a Fetch that is done to dst, once, or returns what went wrong on the device before. It
	// counts as a call on the queue.
	Take(dst []byte) error
}

// Stager is a [Queue] that copies to and from the host by way of memory that the engine keeps, so that the host waits for
// no copy it did not ask to wait for. Where a queue is none, the host copies by Copy and Sync.
type Stager interface {
	// Fetch asks for n bytes; for none, it asks what went wrong up to here.
	Fetch(src Arg, n int64) (Fetch, error)
	// Upload copies src, which it has read when it returns. It waits where Crowded is not nil.
	Upload(dst Arg, src []byte) error
	// Crowded is what the host has to wait for before it uploads more; nil if nothing.
	Crowded() Waiter
	// Stage copies src to memory that a later Send uploads. Unlike the other methods it may be called by any goroutine.
	Stage(src []byte) (Staged, error)
	// Send uploads what this or another queue of the device has staged, and uses it up. It waits where Crowded is not nil.
	Send(dst Arg, s Staged) error
}

// Staged is data in memory that an engine copies from.
type Staged interface {
	// Drop gives the memory back, unless Send did. Any goroutine may call it.
	Drop()
}

// Pinner is a [Queue] that copies between the device's memory and memory of the host that the system does not move, so that nobody
// waits.
type Pinner interface {
	// Pin takes n bytes of such memory. Any goroutine may call it, and Unpin.
	Pin(n int64) (Mem, error)
	// Unpin gives it back, for whoever takes it next and uses it on the same queue: copies under way may still read it.
	Unpin(Mem)
	// Move copies n bytes from pinned memory to the device's, or the other way.
	Move(dst, src Arg, n int64) error
}

// Peer is a [Queue] that copies from other devices of its engine.
type Peer interface {
	// CopyFrom moves n bytes of another device's memory, and reports false if it cannot for that device. It is not
	// ordered with the work of other queues. Of no bytes, it only tells.
	CopyFrom(dst Arg, from Device, src Arg, n int64) (bool, error)
}

// Checker is a [Queue] whose device may check accesses: then it is told what an allocator does with its memory.
type Checker interface {
	// Checked reports whether Note is of use.
	Checked() bool
	// Gap is how many bytes an allocator should leave unused behind each block, so that an access that leaves one does not
	// land in the next; 0 where nobody asked for checks.
	Gap() int64
	// Note says that memory is handed out or put back, by the place in the program that tag names, in the order of the
	// queue. Unlike the other methods it may be called by any goroutine.
	Note(m Mem, inUse bool, tag string) error
}

// Timer is a [Queue] that can tell when its device came to a point of its work.
type Timer interface {
	// Stamp is Record for a mark with a time.
	Stamp() (Stamp, error)
}

// Stamp is a [Mark] with the time at which the device came to it.
type Stamp interface {
	Mark
	// Since is the device's time from an earlier stamp of the same device to this one. Both must be done.
	Since(earlier Stamp) (time.Duration, error)
}

// Clock is a [Device] whose host's time may be its own: that of a simulated one passes by what its driver is asked for, and is
// the same in every run.
type Clock interface {
	// HostTime is the time by that clock; false where the host's time is the machine's.
	HostTime() (time.Duration, bool)
	// StampTime is when the device came to a stamp, by the same clock, and when it began what the queue did next, which may have
	// been asked for later. The stamp must be done.
	StampTime(Stamp) (at, next time.Duration, err error)
}

// Linked is a [Device] behind a link to the host, which can tell how quick copies over it are.
type Linked interface {
	// Transfer copies n bytes so many times between host memory, pinned or pageable, and device memory of its own, one after the
	// other, and returns what each took by the device's clock.
	Transfer(n int64, toDevice, pinned bool, times int) ([]time.Duration, error)
}

// Capturer is a [Queue] that can make one launch of many.
type Capturer interface {
	// Capture calls f, and records what it launches on the queue in place of doing it. The memory and the cells that the
	// launches name are what each launch of the graph uses. The error wraps [ErrUnsupported] where the driver has no such thing.
	Capture(f func() error) (Graph, error)
}

// Graph is work that was recorded on a queue. Its methods count as calls on that.
type Graph interface {
	// Launch does the work, after what the queue was given before.
	Launch() error
	// Close gives the graph back, once launches of it under way have ended. Only the first call counts.
	Close() error
}

// Prober is a [Device] that runs kernels from outside the engine.
type Prober interface {
	// DriverVersion is the version of CUDA that the driver supports: 12040 for 12.4.
	DriverVersion() (int, error)
	// Probe compiles a module of PTX and runs its kernel (.param .u64 in, .param .u64 out) once, on one dimension of
	// blocks and threads. The kernel finds a copy of in, and writes over zeros what comes back in out.
	Probe(ptx []byte, kernel string, blocks, threads int, in, out []byte) error
}

// Mapper is a [Device] with addresses apart from memory: reserved first, with memory put behind them page by page. Pages are
// multiples of 2 MiB.
type Mapper interface {
	// Maps tells whether this device, with its driver, can. The other methods are for devices that do.
	Maps() bool
	// Reserve returns n addresses without memory.
	Reserve(n int64) (addr uint64, err error)
	// Unreserve takes back what Reserve returned. Nothing may be mapped there.
	Unreserve(addr uint64, n int64) error
	// Map puts memory behind n reserved addresses, in pages of a size; all or none: the error wraps [ErrOutOfMemory] where the
	// device has too little. The memory's bytes hold anything.
	Map(addr uint64, n, page int64) error
	// Unmap takes the memory of whole pages away, once the work that the device has been given is done.
	Unmap(addr uint64, n int64) error
}

// Meter is a [Device] that knows how much memory nothing has taken yet, in this process or another.
type Meter interface {
	Unused() (bytes int64, ok bool)
}

// Compiler is a [Device] that can have all its kernels compiled ahead of use.
type Compiler interface {
	// Compile says of each module how that ended, of one at a time. A cancelled context leaves the rest for their first
	// use.
	Compile(ctx context.Context, each func(module string, err error))
}
