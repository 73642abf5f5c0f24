// Package shimtest makes a shared library that looks like the NVIDIA driver's, for tests on machines without one. It is
// imported from _test files only.
//
// The library is a small C program, compiled by the system's compiler, with the functions and prototypes of the CUDA
// driver API. [Install] has it forward every call to a table of functions, a simulated GPU's for example, so that code
// runs against that table through the real bindings; [NoOp] has it answer at once and count.
//
// The library checks the memory that it is handed (null and misaligned pointers, structures, tags); what it finds fails
// the test at its end. It takes images that are text only.
package shimtest

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/dl"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// Install returns the path of a library that forwards to api, without the functions that an older driver lacks, named as
// symbols. Set WARPLINE_LIBCUDA to it. It serves until the test ends. The functions of api run on the thread of the
// caller; those that only a simulated GPU has cannot be reached through the library.
//
// Without a C compiler the test is skipped, naming those looked for.
func Install(t testing.TB, api *driver.API, without ...string) (path string) {
	t.Helper()
	s := load(t, without)
	s.install(t, api)
	s.checkAtEnd(t)
	return s.path
}

// NoOp returns the path of a library whose functions succeed at once, with plausible results: one A100 whose memory is
// never touched. counts returns how often each function was called, by symbol.
func NoOp(t testing.TB, without ...string) (path string, counts func() map[string]int) {
	t.Helper()
	s := load(t, without)
	s.checkAtEnd(t)
	return s.path, s.counts
}

// shim is a loaded copy of the library, which has its own static data.
type shim struct {
	path     string
	lib      *dl.Library
	api      *driver.API // nil when the test is over; installed guards it
	names    []string    // by the library's numbers
	handlers []handler   // likewise
}

func load(t testing.TB, without []string) *shim {
	t.Helper()
	s := &shim{path: filepath.Join(t.TempDir(), "libcuda.so.1")}
	if err := os.WriteFile(s.path, compiled(t, without), 0o777); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.lib, err = dl.Open(s.path); err != nil {
		t.Fatal(err)
	}
	s.names = strings.Fields(cstring(s.symbol("shim_names")))
	for _, name := range s.names {
		h, ok := handlers[name]
		if !ok {
			t.Fatalf("the library has %s, shimtest has no handler for it", name)
		}
		s.handlers = append(s.handlers, h)
	}
	return s
}

// symbol is the address of one of the library's own symbols, which it always has.
func (s *shim) symbol(name string) uintptr {
	p, err := s.lib.Lookup(name)
	if err != nil {
		panic(err)
	}
	return uintptr(p)
}

func (s *shim) counts() map[string]int {
	m := map[string]int{}
	for i, n := range hostmem.Slice[uint64](s.symbol("shim_counts"), len(s.names)) {
		if n > 0 {
			m[s.names[i]] = int(n)
		}
	}
	return m
}

func (s *shim) faults() string { return cstring(s.symbol("shim_faults")) }

func (s *shim) checkAtEnd(t testing.TB) {
	t.Cleanup(func() {
		if f := s.faults(); f != "" {
			t.Errorf("the driver shim was called with bad arguments:\n%s", f)
		}
	})
}

// installed are all shims, by the number that they hand to the one callback: callbacks live for ever.
var installed struct {
	sync.RWMutex
	shims []*shim
}

var receiver = sync.OnceValue(func() dl.Proc { return dl.Callback(dispatch) })

// dispatch is called by the library.
func dispatch(id, op, words uintptr) uintptr {
	installed.RLock()
	s := installed.shims[id]
	api := s.api
	installed.RUnlock()
	if api == nil {
		return uintptr(driver.Deinitialized)
	}
	return uintptr(s.handlers[op](api, hostmem.Slice[uint64](words, 16)))
}

// uninstall lets the table go, with the memory of the GPUs behind it.
func (s *shim) uninstall() {
	installed.Lock()
	s.api = nil
	installed.Unlock()
}

func (s *shim) install(t testing.TB, api *driver.API) {
	t.Helper()
	t.Cleanup(s.uninstall)
	installed.Lock()
	s.api = api
	id := len(installed.shims)
	installed.shims = append(installed.shims, s)
	installed.Unlock()
	table, err := hostmem.Alloc(24) // struct shim_table
	if err != nil {
		t.Fatal(err)
	}
	defer table.Free()
	words := hostmem.Slice[uint64](table.Addr, 3)
	words[0], words[1], words[2] = 24, uint64(id), uint64(receiver())
	if r := dl.Proc(s.symbol("shim_install")).Call(table.Addr); r != 0 {
		t.Fatalf("shim_install: %d: %s", r, s.faults())
	}
}

// cstring is the C string at addr.
func cstring(addr uintptr) string {
	var b []byte
	for ; ; addr++ {
		c := hostmem.Bytes(addr, 1)[0]
		if c == 0 {
			return string(b)
		}
		b = append(b, c)
	}
}
