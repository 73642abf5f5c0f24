// Package nvtx tells a tool that watches the program what it does when: NVIDIA's Nsight Systems, or another that takes the ranges of
// NVTX, version 2 or 3. It is NVTX itself in the part that is called, and needs no library of the toolkit: the tool names its own library
// in the environment of the programs that it starts, that library is opened and asks for a table of functions, and puts its own
// into it. Numbers and structures are those of nvtxTypes.h.
package nvtx

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/dl"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// PathEnv is the environment variable in which a tool names its library.
const PathEnv = "NVTX_INJECTION64_PATH"

// ID is a range that has begun. 0 is none.
type ID uintptr

// Tool is one that has put its functions into the table. It may be used by several goroutines at once.
type Tool struct {
	given            *exports // which the tool keeps addresses of
	start, end, mark dl.Proc  // 0 where the tool does not want to know
}

// Functions of the table that this package calls, by their numbers, and how many tables have at least.
const (
	markA       = 2
	rangeStartA = 5
	rangeEnd    = 7
	slotCount   = 17
)

// Tables by number. All but the first are there to be filled, and never called.
const (
	moduleCore = 1
	moduleLast = 6
)

// What a tool asks for, by number.
const (
	exportCallbacks = 1
	exportVersion   = 3
)

// version is that of the interface which tools are told.
const version = 3

// exports are what a tool asks for. C reads and writes them, so they stay where they are.
type exports struct {
	callbacks struct {
		size      uintptr
		functions dl.Proc
	}
	version struct {
		size       uintptr
		version, _ uint32
		tell       dl.Proc
	}
	core, rest tableOf
}

// tableOf is a table of functions: the addresses of where they are to be put. The first is none.
type tableOf struct {
	at    [slotCount]uintptr
	slots [slotCount]dl.Proc
}

func (t *tableOf) fill() {
	for i := 1; i < slotCount; i++ {
		t.at[i] = address(&t.slots[i])
	}
}

func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

func newExports() *exports {
	e := new(exports)
	e.core.fill()
	e.rest.fill()
	e.callbacks.size, e.callbacks.functions = unsafe.Sizeof(e.callbacks), dl.Callback(e.functions)
	e.version.size, e.version.version, e.version.tell = unsafe.Sizeof(e.version), version, dl.Callback(func(uintptr) uintptr { return 0 })
	return e
}

// export is what a tool calls to get what has a number; 0 for nothing. Of a word only the lower half counts.
func (e *exports) export(id uintptr) uintptr {
	switch uint32(id) {
	case exportCallbacks:
		return address(&e.callbacks)
	case exportVersion:
		return address(&e.version)
	}
	return 0
}

// functions puts the address and the length of a table where the tool says, and answers 1, or 0 where there is no such table.
func (e *exports) functions(module, table, length uintptr) uintptr {
	m := uint32(module)
	if m < moduleCore || m > moduleLast {
		return 0
	}
	t := &e.rest
	if m == moduleCore {
		t = &e.core
	}
	if table != 0 {
		hostmem.Slice[uintptr](table, 1)[0] = address(&t.at)
	}
	if length != 0 {
		hostmem.Slice[uint32](length, 1)[0] = slotCount
	}
	return 1
}

// opened are the tools by the paths of their libraries.
var opened struct {
	sync.Mutex
	tools map[string]*Tool
}

// Attached returns the tool that the environment names; nil where there is none. The error, which is an [*advice.Error], says why it
// cannot be told anything.
func Attached() (*Tool, error) {
	path := os.Getenv(PathEnv)
	if path == "" {
		return nil, nil
	}
	opened.Lock()
	defer opened.Unlock()
	if t := opened.tools[path]; t != nil {
		return t, nil
	}
	t, err := attach(path)
	if err != nil {
		return nil, advice.Failf("start the program under a tool that takes NVTX's ranges, as nsys profile --trace=nvtx,cuda does, or unset "+PathEnv,
			"no ranges for the tool that %s names: %v", PathEnv, err)
	}
	if opened.tools == nil {
		opened.tools = map[string]*Tool{}
	}
	opened.tools[path] = t
	return t, nil
}

func attach(path string) (*Tool, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%q is not an absolute path", path)
	}
	lib, err := dl.Open(path)
	if err != nil {
		return nil, err
	}
	begin, err := lib.Lookup("InitializeInjectionNvtx2")
	if err != nil {
		return nil, err
	}
	e := newExports()
	if r := begin.Call(uintptr(dl.Callback(e.export))); r != 1 {
		return nil, fmt.Errorf("%s does not attach: it answers %d", path, r)
	}
	return &Tool{given: e, start: e.core.slots[rangeStartA], end: e.core.slots[rangeEnd], mark: e.core.slots[markA]}, nil
}

// Start begins a range. Ranges need not nest, and may end on another thread.
func (t *Tool) Start(name string) ID {
	if t.start == 0 {
		return 0
	}
	text := terminated(name)
	id := ID(t.start.Word(address(unsafe.SliceData(text))))
	runtime.KeepAlive(text)
	return id
}

// End ends a range.
func (t *Tool) End(id ID) {
	if t.end != 0 && id != 0 {
		t.end.Call(uintptr(id))
	}
}

// Mark is a moment with a name.
func (t *Tool) Mark(name string) {
	if t.mark != 0 {
		text := terminated(name)
		t.mark.Call(address(unsafe.SliceData(text)))
		runtime.KeepAlive(text)
	}
}

// terminated is a name for C, which ends at the first zero; on the heap, since C may call back and move the stack.
func terminated(name string) []byte {
	name, _, _ = strings.Cut(name, "\x00")
	return slices.Concat([]byte(name), []byte{0})
}
