//go:build linux && (amd64 || arm64) && !nocuda

package dl

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

func symbol(t testing.TB, library, name string) Proc {
	t.Helper()
	l, err := Open(library)
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// buffers are heap memory that C may write to.
var buffers = sync.Pool{New: func() any { return new([4096]byte) }}

// format has the C library print the arguments that follow the format.
func format(p Proc, layout string, args ...uintptr) string {
	out, in := buffers.Get().(*[4096]byte), buffers.Get().(*[4096]byte)
	defer buffers.Put(out)
	defer buffers.Put(in)
	in[copy(in[:], layout)] = 0
	n := p.Call(append([]uintptr{uintptr(unsafe.Pointer(out)), 4096, uintptr(unsafe.Pointer(in))}, args...)...)
	return string(out[:n])
}

// Every argument must arrive, those in registers and those on the stack.
func TestArguments(t *testing.T) {
	snprintf := symbol(t, "libc.so.6", "snprintf")
	for n := 0; n <= MaxArgs-3; n++ {
		var args []uintptr
		var want []string
		for i := range n {
			v := uintptr(0x1234567890abcdef) * uintptr(i*i+1)
			args, want = append(args, v), append(want, fmt.Sprintf("%x", v))
		}
		layout := strings.TrimSpace(strings.Repeat("%lx ", n))
		if got := format(snprintf, layout, args...); got != strings.Join(want, " ") {
			t.Errorf("%d arguments arrive as %q, want %q", n+3, got, want)
		}
	}
}

func TestResultIsSigned(t *testing.T) {
	atoi := symbol(t, "libc.so.6", "atoi")
	text := buffers.Get().(*[4096]byte)
	defer buffers.Put(text)
	copy(text[:], "-2147483648\x00")
	if got := atoi.Call(uintptr(unsafe.Pointer(text))); got != -1<<31 {
		t.Errorf("atoi gives %d", got)
	}
}

func TestTooManyArguments(t *testing.T) {
	abs := symbol(t, "libc.so.6", "abs")
	defer func() {
		if r := recover(); r == nil {
			t.Error("no panic")
		}
	}()
	abs.Call(make([]uintptr, MaxArgs+30)...)
}

func TestErrors(t *testing.T) {
	if _, err := Open("/nonexistent/libnothing.so"); err == nil || !strings.Contains(err.Error(), "/nonexistent/libnothing.so") {
		t.Errorf("Open: %v", err)
	}
	l, err := Open("libc.so.6")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Lookup("cuNothing"); err == nil || !strings.Contains(err.Error(), "libc.so.6 has no symbol cuNothing") {
		t.Errorf("Lookup: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestFile(t *testing.T) {
	if f := symbol(t, "libc.so.6", "abs").File(); !strings.Contains(f, "libc") {
		t.Errorf("abs is in %q", f)
	}
	if f := Proc(0).File(); f != "" {
		t.Errorf("0 is in %q", f)
	}
}

func FuzzMapping(f *testing.F) {
	f.Add("7f00-7fff r-xp 00000000 fe:00 12 /usr/lib/a b.so (deleted)", uint64(0x7f10))
	f.Add("7f00-7fff rw-p 00000000 00:00 0", uint64(0x7f00))
	f.Add("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", uint64(0))
	f.Fuzz(func(t *testing.T, line string, addr uint64) {
		path, ok := mapping(line, addr)
		if path != "" && (!ok || path[0] != '/' || !strings.HasSuffix(line, path)) {
			t.Errorf("%q: path %q, %v", line, path, ok)
		}
	})
}

// deep uses n KiB of stack, so that the stack of a callback has to move.
func deep(n int) int {
	var a [1024]byte
	if n == 0 {
		return 0
	}
	a[n%1024] = 1
	return deep(n-1) + int(a[n%1024])
}

// Callbacks run on the calling goroutine, whose stack they may move; results of calls must survive that.
func TestCallback(t *testing.T) {
	qsort := symbol(t, "libc.so.6", "qsort")
	calls := 0
	less := Callback(func(a, b *int32) int32 {
		calls++
		if deep(calls%64*16) < 0 {
			return 0
		}
		if calls%16 == 0 {
			runtime.GC()
		}
		return *a - *b
	})
	var wg sync.WaitGroup
	wg.Go(func() { // a fresh goroutine has a small stack
		values := buffers.Get().(*[4096]byte)
		defer buffers.Put(values)
		ints := (*[64]int32)(unsafe.Pointer(values))
		for i := range ints {
			ints[i] = int32(i * 37 % 64)
		}
		qsort.Call(uintptr(unsafe.Pointer(ints)), uintptr(len(ints)), 4, uintptr(less))
		for i, v := range ints {
			if v != int32(i) {
				t.Errorf("sorted[%d] = %d", i, v)
			}
		}
	})
	wg.Wait()
	if calls == 0 {
		t.Error("never called back")
	}
}

func TestCallDoesNotAllocate(t *testing.T) {
	if !assembly {
		t.Skip("the build tag purego: calls go through purego.SyscallN, which allocates")
	}
	abs := symbol(t, "libc.so.6", "abs")
	if n := testing.AllocsPerRun(100, func() { abs.Call(5, 1, 1, 1, 256, 1, 1, 0, 0, 0, 0) }); n != 0 {
		t.Errorf("%v allocations in a call", n)
	}
}

func BenchmarkCall1(b *testing.B) {
	abs := symbol(b, "libc.so.6", "abs")
	b.ReportAllocs()
	for b.Loop() {
		abs.Call(5)
	}
}

func BenchmarkCall11(b *testing.B) {
	abs := symbol(b, "libc.so.6", "abs")
	b.ReportAllocs()
	for b.Loop() {
		abs.Call(5, 1, 1, 1, 256, 1, 1, 0, 0, 0, 0)
	}
}

func BenchmarkSyscallN1(b *testing.B) {
	abs := uintptr(symbol(b, "libc.so.6", "abs"))
	b.ReportAllocs()
	for b.Loop() {
		purego.SyscallN(abs, 5)
	}
}

func BenchmarkSyscallN11(b *testing.B) {
	abs := uintptr(symbol(b, "libc.so.6", "abs"))
	b.ReportAllocs()
	for b.Loop() {
		purego.SyscallN(abs, 5, 1, 1, 1, 256, 1, 1, 0, 0, 0, 0)
	}
}
