// Package device has the two interfaces that every engine fills: a [Device] of six methods and a [Queue] of six. Work is
// described by [ir.Op]; engines never grow when an op is added. The caching [Allocator] and the registry of engines are
// shared by all.
package device

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/ir"
)

// ErrUnsupported is what Prepare returns, wrapped, for an op the engine has no kernel for: the caller lowers it to
// simpler ops or reports it.
var ErrUnsupported = errors.New("no kernel for this operation")

// ErrOutOfMemory is what Alloc returns, wrapped, when the device has no memory left.
var ErrOutOfMemory = errors.New("out of device memory")

// Info describes a device: plain data.
type Info struct {
	Name      string // as Open takes it: "cpu", "null:a100-80"
	Model     string // what the hardware calls itself
	Memory    int64  // bytes in all; 0 when the system does not tell
	Alignment int64  // of raw allocations, in bytes
	DTypes    []dtype.DType
	Compute   [2]int // compute capability, zero where there is none
	SMs       int    // streaming multiprocessors, 0 where there are none
	Clock     int64  // of a GPU's processors, Hz; 0 when unknown
	Warp      int    // threads that run together, 0 where there are none
	Bus       string // PCI address: "0000:3b:00.0"
	Host      bool   // the host reads its memory directly
	Null      bool   // it has no memory and computes nothing
}

// Mem is memory of a device or of the host, by address. It is a name, not an owner.
type Mem struct {
	Addr uint64
	Size int64 // bytes
	Host bool  // in host memory
}

// Arg is an operand of a launch: memory and an offset in bytes.
type Arg struct {
	Mem    Mem
	Offset int64
}

// Kernel is an op made ready for a device. It may be launched by several goroutines at once.
type Kernel struct {
	Op        ir.Op
	Out       []*ir.Type
	Workspace int64 // bytes of scratch memory a launch needs
	FLOPs     int64
	Bytes     int64 // read and written
	Impl      any   // the engine's own
}

// Demand lists the bytes that a launch touches of each of its arguments.
func (k *Kernel) Demand() []int64 {
	var need []int64
	for _, types := range [][]*ir.Type{k.Out, k.Op.Ins()} {
		for _, t := range types {
			need = append(need, int64(t.Span())*int64(t.DType.Size()))
		}
	}
	if k.Workspace > 0 {
		need = append(need, k.Workspace)
	}
	return need
}

// Fits is an error unless a launch's arguments hold the bytes that it touches: one that runs past its memory may take the
// device with it.
func Fits(need []int64, args []Arg) error {
	if len(args) < len(need) {
		return fmt.Errorf("takes %d arguments, got %d", len(need), len(args))
	}
	for i, n := range need {
		if a := &args[i]; !a.holds(n) {
			return fmt.Errorf("argument %d needs %d bytes, its memory has %d from offset %d", i, n, a.Mem.Size, a.Offset)
		}
	}
	return nil
}

// Copyable is an error unless n bytes are within both ends of a copy.
func Copyable(dst, src Arg, n int64) error {
	for _, a := range [...]Arg{dst, src} {
		if n < 0 || !a.holds(n) {
			return fmt.Errorf("copy of %d bytes with memory of %d from offset %d", n, a.Mem.Size, a.Offset)
		}
	}
	return nil
}

func (a *Arg) holds(n int64) bool { return a.Offset >= 0 && n <= a.Mem.Size-a.Offset }

// Param is a scalar of a launch, or a cell in device memory that holds it (in captured steps).
type Param struct {
	Value uint64
	Cell  Mem
}

// Params are the scalars of a launch and what it is attributed to. A launch keeps neither Params nor arguments.
type Params struct {
	P      [ir.MaxParams]Param
	N      int
	Site   *callsite.Site // where the user's program asked for it; nil when not recorded
	Module string         // path of the parameter among its operands, or ""
}

// Set stores the launch parameters of an op.
func (p *Params) Set(v *ir.Params) {
	for i := range v.N {
		p.P[i] = Param{Value: v.Value[i]}
	}
	p.N = v.N
}

// Device is one place that computes.
type Device interface {
	Info() Info
	Alloc(n int64) (Mem, error) // raw, uncached
	Free(Mem)
	Prepare(op ir.Op) (*Kernel, error)
	NewQueue() (Queue, error)
	Close() error
}

// Event is a point in a queue's work.
type Event interface {
	Done() (bool, error)
}

// Queue runs work in order, asynchronously by contract. Its methods may be called by one goroutine at a time.
type Queue interface {
	// Launch starts a kernel; args are its outputs, its inputs, and its workspace if it needs one. It keeps neither
	// args nor p.
	Launch(k *Kernel, args []Arg, p *Params) error
	// Copy moves n bytes; whether between host and device follows from the Mems. A copy from host memory has read its
	// source when it returns; one to host memory is there after the next Sync.
	Copy(dst, src Arg, n int64) error
	Record() (Event, error)
	Wait(Event) error
	Sync() error
	Close() error
}

// Waiter is an [Event] that the host can wait for. Any goroutine may, while others use the queue. What went wrong shows in
// the next call on the queue.
type Waiter interface {
	Event
	Wait()
}

// Fetch is a copy to the host that nobody waits for yet.
type Fetch interface {
	Waiter
	// Take writes the bytes of a Fetch that is done to dst, once, or returns what went wrong on the device before. It
	// counts as a call on the queue.
	Take(dst []byte) error
}

// Stager is what a [Queue] is whose device copies to and from the host by itself, by way of memory that the engine
// keeps. The queues of all devices are, but for those whose memory the host reads directly, or that have none.
type Stager interface {
	// Fetch asks for n bytes; for none, it asks what went wrong up to here.
	Fetch(src Arg, n int64) (Fetch, error)
	// Upload copies src, which it has read when it returns. It waits where Crowded is not nil.
	Upload(dst Arg, src []byte) error
	// Crowded is what the host has to wait for before it uploads more; nil if nothing.
	Crowded() Waiter
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
	// Note says that memory is handed out or put back, by the place in the program that tag names, in the order of the
	// queue. Unlike the other methods it may be called by any goroutine.
	Note(m Mem, inUse bool, tag string) error
}

// Prober is a [Device] that runs kernels from outside the engine.
type Prober interface {
	// DriverVersion is the version of CUDA that the driver supports: 12040 for 12.4.
	DriverVersion() (int, error)
	// Probe compiles a module of PTX and runs its kernel (.param .u64 in, .param .u64 out) once, on one dimension of
	// blocks and threads. The kernel finds a copy of in, and writes over zeros what comes back in out.
	Probe(ptx []byte, kernel string, blocks, threads int, in, out []byte) error
}

// Stage is how many bytes are best fetched or uploaded at once: few enough for the host to work on some while the device
// copies others.
const Stage = 4 << 20

// Meter is a [Device] that knows how much memory nothing has taken yet, in this process or another.
type Meter interface {
	Unused() (bytes int64, ok bool)
}

// BytesOf views the memory of a slice, whose elements hold no pointers.
func BytesOf[T any](s []T) []byte {
	var e T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(e)))
}

// Lost is an error of a device that is out of use since an earlier error, which it wraps.
type Lost interface {
	error
	OutOfUse()
}

// Blamed is an error of work that a queue was given before the call that returned it.
type Blamed interface {
	error
	// Blame returns the launch, or launches, with the place in the program, and what happened there.
	Blame() (launch, what string)
}
