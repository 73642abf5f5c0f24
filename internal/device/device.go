// Package device has the two interfaces that every engine fills: a [Device] of six methods and a [Queue] of six. Work is
// described by [ir.Op]; engines never grow when an op is added. What an engine can do beyond these is a power, which [As]
// finds; none is demanded. The caching [Allocator] and the registry of engines are shared by all.
package device

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/warpline-ml/warpline/dtype"
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
	Near      bool   // it imitates a device whose memory the host reads directly
	Wider     string // what it computes in a wider type than a program asks for; "" for nothing
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

// Kernel is an op, or a launch of a kernel of the program's own, made ready for a device. It may be launched by several
// goroutines at once.
type Kernel struct {
	Op        ir.Op
	Name      string // of the program's own kernel, which has no Op; else ""
	Out       []*ir.Type
	Workspace int64 // bytes of scratch memory a launch needs
	FLOPs     int64
	Bytes     int64  // read and written
	Stored    int64  // of these the written ones, where scratch memory is among them; 0: the results
	Steps     []Step // what a launch does, in order; nil where that is one piece of work of the host's
	Impl      any    // the engine's own

	own *Own // nil: of an op
}

// Step is a kernel of the device that a launch starts, or a fill of memory with zeros.
type Step struct {
	Name      string // of the kernel; "" for a fill
	Grid      [3]int // blocks
	Block     [3]int // threads
	Shared    int    // bytes of shared memory that are asked for at the launch
	Static    int    // bytes of shared memory that the kernel has by itself
	Registers int    // of a thread; 0 where that is not known
	Fill      int64  // bytes

	// Numbers are the kernel's parameters as words of 32 bits: sizes and strides. What a launch gives, as addresses, is 1.
	Numbers []int32
}

// Blocks is how many blocks of threads the step has.
func (s *Step) Blocks() int64 { return int64(s.Grid[0]) * int64(s.Grid[1]) * int64(s.Grid[2]) }

// Written is how many of Bytes are written.
func (k *Kernel) Written() (n int64) {
	if k.Stored > 0 {
		return k.Stored
	}
	for _, t := range k.Out {
		n += t.Bytes()
	}
	return min(n, k.Bytes)
}

// Demand lists the bytes that a launch touches of each of its arguments.
func (k *Kernel) Demand() []int64 {
	if k.own != nil {
		return k.own.Need
	}
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

// Param is a scalar of a launch, or a cell in device memory that holds it: what the device itself computes, or what must
// change between the runs of a captured launch.
type Param struct {
	Value uint64
	Cell  Mem // of CellSize bytes with the bits of a Value; none where its size is 0
}

// CellSize is the size of a cell, and its alignment.
const CellSize = 8

// CellError is the error of a launch with a cell for a parameter that the engine's kernel takes by value.
type CellError struct {
	Code  ir.Code
	Param int
}

// Error says which parameter it is.
func (e *CellError) Error() string {
	return fmt.Sprintf("%s takes parameter %d by value, not from a cell in device memory", e.Code, e.Param)
}

// Unwrap tells that it is not supported.
func (e *CellError) Unwrap() error { return ErrUnsupported }

// Params are the scalars of a launch and what it is attributed to. A launch keeps neither Params nor arguments.
type Params struct {
	P [ir.MaxParams]Param
	N int
	Origin
	Times *[]Span // where not nil, a queue that is a [Timer] appends when it began and ended each step
}

// Span is when a device began and ended a piece of work; nil where that is not known.
type Span struct{ Began, Ended Stamp }

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

// Mark is a point in a queue's work.
type Mark interface {
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
	// Record marks the end of the work that the queue has been given.
	Record() (Mark, error)
	// Wait makes what follows wait for a mark of any queue of the engine.
	Wait(Mark) error
	Sync() error
	Close() error
}

// Stage is how many bytes are best fetched or uploaded at once: few enough for the host to work on some while the device
// copies others.
const Stage = 4 << 20

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
