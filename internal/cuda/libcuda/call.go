package libcuda

import (
	"bytes"
	"sync"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/dl"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// scratch is what a call may point to: heap objects stay where they are, stacks do not. Its contents are those of the
// call before.
type scratch struct {
	out  [2]uint64
	text [256]byte
	keep []byte // input of the call
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// call calls a function, or says that this driver lacks it.
func call(p dl.Proc, args ...uintptr) driver.Result {
	if p == 0 {
		return driver.NeedsNewerDriver
	}
	return driver.Result(p.Call(args...))
}

// get calls a function whose first parameter points to its result.
func get[T any](p dl.Proc, args ...uintptr) (v T, r driver.Result) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	var words [dl.MaxArgs]uintptr
	words[0] = uintptr(unsafe.Pointer(&s.out[0]))
	n := copy(words[1:], args)
	if r = call(p, words[:n+1]...); r == driver.Success {
		v = *(*T)(unsafe.Pointer(&s.out[0]))
	}
	return v, r
}

// getAfter calls a function whose second parameter points to its result.
func getAfter[T any](p dl.Proc, first uintptr) (v T, r driver.Result) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if r = call(p, first, uintptr(unsafe.Pointer(&s.out[0]))); r == driver.Success {
		v = *(*T)(unsafe.Pointer(&s.out[0]))
	}
	return v, r
}

func getInt(p dl.Proc, args ...uintptr) (int, driver.Result) {
	n, r := get[int32](p, args...)
	return int(n), r
}

// getTwo calls a function whose first two parameters point to its results.
func getTwo[T, U any](p dl.Proc, args ...uintptr) (v T, w U, r driver.Result) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	var words [dl.MaxArgs]uintptr
	words[0], words[1] = uintptr(unsafe.Pointer(&s.out[0])), uintptr(unsafe.Pointer(&s.out[1]))
	n := copy(words[2:], args)
	if r = call(p, words[:n+2]...); r == driver.Success {
		v, w = *(*T)(unsafe.Pointer(&s.out[0])), *(*U)(unsafe.Pointer(&s.out[1]))
	}
	return v, w, r
}

// getText calls a function that writes a text of a device.
func getText(p dl.Proc, d driver.Device) (string, driver.Result) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	r := call(p, uintptr(unsafe.Pointer(&s.text[0])), uintptr(len(s.text)), uintptr(d))
	if r != driver.Success {
		return "", r
	}
	return text(s.text[:]), r
}

// named calls f with the address of the name as a C string.
func named[T any](name string, f func(name uintptr) (T, driver.Result)) (T, driver.Result) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.keep = append(append(s.keep[:0], name...), 0)
	return f(uintptr(unsafe.Pointer(&s.keep[0])))
}

// stringOf calls a function that gives the address of a text about a result; empty if it knows none.
func stringOf(p dl.Proc, about driver.Result) string {
	at, r := getAfter[uintptr](p, uintptr(about))
	if r != driver.Success || at == 0 {
		return ""
	}
	for n := 0; n < maxText; n++ {
		if b := hostmem.Bytes(at, n+1); b[n] == 0 {
			return string(b[:n])
		}
	}
	return ""
}

// maxText is longer than what the library says of any result.
const maxText = 1 << 10

// text is a C string.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}
