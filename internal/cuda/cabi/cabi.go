// Package cabi calls a table of the driver (package driver) as C calls the driver's library: by the names of the functions, with
// arguments as registers and stack hold them, and pointers into the memory of the process that calls, which may be another one.
//
//	cabi.go      processes, threads, arguments, results
//	device.go    devices and contexts
//	module.go    modules, functions, libraries
//	image.go     what a program may hand over as a module
//	memory.go    allocations, copies, fills
//	stream.go    streams, events, captures
//	launch.go    launches and their parameters
//	graph.go     graphs
//	tensormap.go tensor maps
//	refuse.go    why there is no more
//
// What the table has no function for is made of those that it has where that is the same to a program, and otherwise refused by
// name, with what to do.
package cabi

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// Args are what the registers and the stack of a caller hold where arguments are. Of types shorter than a word the rest is
// anything, as is what lies behind the last argument.
type Args [15]uint64

func (a *Args) int(i int) int       { return int(int32(a[i])) }
func (a *Args) u32(i int) uint32    { return uint32(a[i]) }
func (a *Args) dim(i int) [3]uint32 { return [3]uint32{a.u32(i), a.u32(i + 1), a.u32(i + 2)} }

// Process is what the threads of a process that uses the driver share.
type Process struct {
	*driver.API
	Memory   hostmem.Memory                    // of the process
	ReadFile func(name string) ([]byte, error) // a file by the name that the process has for it
	Keep     func(text string) uint64          // the address of a text in the process, for as long as it lives; 0: no room

	// Offer is told, before MemHostAlloc is called, where the process has set memory aside for it: the first argument of cuMemHostAlloc
	// is that place then, and not where the address goes. Nil where the table makes memory that the process sees.
	Offer func(addr uintptr, bytes int64)

	mu      sync.Mutex
	devices map[driver.Context]driver.Device
	ranges  []allocation // by address
	streams map[driver.Stream]streamState
	layouts map[driver.Function]layout
	texts   map[string]uint64
	modules map[driver.Module][]byte // the images that they were made of
}

// NewProcess is a process that has not called yet.
func NewProcess(api *driver.API, m hostmem.Memory) *Process {
	return &Process{API: api, Memory: m, devices: map[driver.Context]driver.Device{}, streams: map[driver.Stream]streamState{},
		layouts: map[driver.Function]layout{}, texts: map[string]uint64{}, modules: map[driver.Module][]byte{}}
}

// Thread is a thread of a process. The table knows it by the thread that Call runs on, which must be the same each time.
type Thread struct {
	*Process
	below   []driver.Context // those pushed below the current one
	implied driver.Stream    // what stream 0 is in this call
	why     string           // of a refusal in this package
	bare    bool             // the call needs no context, in which others may have failed before
}

// NewThread is a thread that has not called yet.
func (p *Process) NewThread() *Thread { return &Thread{Process: p} }

// End forgets what the table knows of the thread.
func (t *Thread) End() {
	t.CtxSetCurrent(0)
	t.ThreadExchangeStreamCaptureMode(driver.CaptureGlobal)
}

// A Function is one of the driver's.
type Function struct {
	call      func(t *Thread, a *Args) driver.Result
	perThread bool // stream 0 is that of the thread
	bare      bool // needs no context
}

// Find is the function of a name of C, and whether there is one. Names ending in _ptsz and _ptds are those by which programs call
// that were compiled for default streams of their threads.
func Find(name string) (Function, bool) {
	var f Function
	for _, ending := range []string{"_ptsz", "_ptds"} {
		if base, ok := strings.CutSuffix(name, ending); ok {
			name, f.perThread = base, true
		}
	}
	f.call = functions[name]
	f.bare = strings.HasPrefix(name, "cuInit") || strings.HasPrefix(name, "cuD") || strings.HasPrefix(name, "cuGetError")
	return f, f.call != nil
}

// Call calls a function.
func (t *Thread) Call(f Function, a *Args) driver.Result {
	t.why, t.implied, t.bare = "", 0, f.bare
	if f.perThread {
		t.implied = driver.StreamPerThread
	}
	return f.call(t, a)
}

// Why explains the last refusal, as far as somebody knows.
func (t *Thread) Why() string {
	if t.why != "" || t.bare || t.Explain == nil {
		return t.why
	}
	return t.Explain()
}

// refuse answers with an error and says why.
func (t *Thread) refuse(r driver.Result, why string) driver.Result {
	t.why = why
	return r
}

// handler is what a function does.
type handler = func(t *Thread, a *Args) driver.Result

var functions = map[string]handler{}

// add adds functions to the table, which is whole when the program begins.
func add(list map[string]handler) bool {
	maps.Copy(functions, list)
	return true
}

// done ignores what it is asked for, which changes nothing in a simulation.
func done(*Thread, *Args) driver.Result { return driver.Success }

func (t *Thread) stream(w uint64) driver.Stream {
	if w == 0 {
		return t.implied
	}
	return driver.Stream(w)
}

func device(w uint64) driver.Device { return driver.Device(int32(w)) }

// word is a type of results. An int is an int of C, of 32 bits.
type word interface {
	~int | ~int32 | ~uint32 | ~int64 | ~uintptr | ~uint64
}

// encoded is a value as C lays it out.
func encoded[T word](v T) []byte {
	switch any(v).(type) {
	case int64, uint64:
	case uintptr:
	case int, int32, uint32:
		return binary.LittleEndian.AppendUint32(nil, uint32(v))
	default:
		if binary.Size(v) == 4 {
			return binary.LittleEndian.AppendUint32(nil, uint32(v))
		}
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(v))
}

// write puts bytes where the caller wants them.
func (t *Thread) write(at uint64, p []byte) driver.Result {
	if at == 0 {
		return t.refuse(driver.InvalidValue, "a result is to go to a null pointer")
	}
	if err := t.Memory.Write(uintptr(at), p); err != nil {
		return t.refuse(driver.InvalidValue, err.Error())
	}
	return driver.Success
}

// read takes bytes from the caller.
func (t *Thread) read(at uint64, n int) ([]byte, driver.Result) {
	if at == 0 {
		return nil, t.refuse(driver.InvalidValue, "an argument is a null pointer")
	}
	p := make([]byte, n)
	if err := t.Memory.Read(p, uintptr(at)); err != nil {
		return nil, t.refuse(driver.InvalidValue, err.Error())
	}
	return p, driver.Success
}

// words reads words from the caller.
func (t *Thread) words(at uint64, n int) ([]uint64, driver.Result) {
	if n == 0 {
		return nil, driver.Success
	}
	p, r := t.read(at, 8*n)
	if r != driver.Success {
		return nil, r
	}
	list := make([]uint64, n)
	for i := range list {
		list[i] = binary.LittleEndian.Uint64(p[8*i:])
	}
	return list, r
}

// text reads a string of C, of at most limit bytes.
func (t *Thread) text(at uint64, limit int) ([]byte, driver.Result) {
	const page = 4096
	var all []byte
	for len(all) < limit {
		p, r := t.read(at, page-int(at%page)) // up to the next page, which may not be there
		if r != driver.Success {
			return nil, r
		}
		for i, c := range p {
			if c == 0 {
				return append(all, p[:i]...), r
			}
		}
		all = append(all, p...)
		at += uint64(len(p))
	}
	return nil, t.refuse(driver.InvalidValue, "a text has no end")
}

// maxName is more than any name has.
const maxName = 1 << 16

// give puts a result where the caller wants it.
func give[T word](t *Thread, at uint64) func(T, driver.Result) driver.Result {
	return func(v T, r driver.Result) driver.Result {
		if r != driver.Success {
			return r
		}
		return t.write(at, encoded(v))
	}
}

// giveTwo puts two results where the caller wants them, and leaves out one that it does not want.
func giveTwo[T, U word](t *Thread, at, and uint64) func(T, U, driver.Result) driver.Result {
	return func(v T, u U, r driver.Result) driver.Result {
		if r == driver.Success && at != 0 {
			r = t.write(at, encoded(v))
		}
		if r == driver.Success && and != 0 {
			r = t.write(and, encoded(u))
		}
		return r
	}
}

// giveText puts a text and its end into a buffer, as far as it fits.
func (t *Thread) giveText(at uint64, n int) func(string, driver.Result) driver.Result {
	return func(s string, r driver.Result) driver.Result {
		if r != driver.Success {
			return r
		}
		if n <= 0 {
			return t.refuse(driver.InvalidValue, "a buffer of no bytes")
		}
		return t.write(at, append([]byte(s[:min(len(s), n-1)]), 0))
	}
}

// kept gives the address of a text that lasts.
func (t *Thread) kept(at uint64, text string) driver.Result {
	t.mu.Lock()
	addr := t.texts[text]
	if addr == 0 && t.Keep != nil {
		addr = t.Keep(text)
		t.texts[text] = addr
	}
	t.mu.Unlock()
	if addr == 0 {
		return t.refuse(driver.OutOfMemory, "no room for a text")
	}
	return t.write(at, encoded(addr))
}

var _ = add(map[string]handler{
	"cuInit":             func(t *Thread, a *Args) driver.Result { return t.Init(a.u32(0)) },
	"cuDriverGetVersion": func(t *Thread, a *Args) driver.Result { return give[int](t, a[0])(t.DriverGetVersion()) },
	"cuGetErrorName": func(t *Thread, a *Args) driver.Result {
		return t.named(a, driver.Result.String)
	},
	"cuGetErrorString": func(t *Thread, a *Args) driver.Result {
		return t.named(a, driver.Result.Meaning)
	},
	"cuProfilerInitialize": done, "cuProfilerStart": done, "cuProfilerStop": done,
})

func (t *Thread) named(a *Args, of func(driver.Result) string) driver.Result {
	r := driver.Result(a.int(0))
	if !r.Known() {
		t.write(a[1], make([]byte, 8))
		return driver.InvalidValue
	}
	return t.kept(a[1], of(r))
}

// Names are the functions that there are, in order.
func Names() []string { return slices.Sorted(maps.Keys(functions)) }
