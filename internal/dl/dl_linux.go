//go:build !nocuda && (amd64 || arm64)

package dl

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/ebitengine/purego"
)

const unavailable = ""

// The loader keeps its last error per thread, and purego fetches it by a second call.

func open(name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return result(purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL))
}

func lookup(handle uintptr, symbol string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return result(purego.Dlsym(handle, symbol))
}

func closeLibrary(handle uintptr) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlclose(handle)
}

// result gives the loader's text as a plain error.
func result(handle uintptr, err error) (uintptr, error) {
	if err != nil {
		return 0, errors.New(strings.TrimSpace(err.Error()))
	}
	return handle, nil
}

// Word is Call with all of a result that is a word. It takes twice as long, and allocates.
func (p Proc) Word(args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(uintptr(p), args...)
	return r
}

// Callback returns the address of a C function that calls fn, whose parameters and single result have the size of a
// word at most. It lives as long as the process, which can have 2,000 of them.
func Callback(fn any) Proc { return Proc(purego.NewCallback(fn)) }

// File returns the path of the file that p was loaded from, symbolic links resolved, or "" where that is unknown.
func (p Proc) File() string {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return ""
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		if path, ok := mapping(lines.Text(), uint64(p)); ok {
			return path
		}
	}
	return ""
}

// mapping reads a line "from-to mode offset device inode path" and reports whether addr lies between.
func mapping(line string, addr uint64) (path string, ok bool) {
	var from, to uint64
	if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil || addr < from || addr >= to {
		return "", false
	}
	if i := strings.IndexByte(line, '/'); i >= 0 {
		path = line[i:]
	}
	return path, true
}
