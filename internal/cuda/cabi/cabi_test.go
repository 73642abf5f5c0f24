package cabi_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/cabi"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// memory is some memory of a process that has no other: what lies elsewhere can be neither read nor written.
type memory struct{ hostmem.Block }

func (m memory) part(addr uintptr, n int) ([]byte, error) {
	if addr < m.Addr || addr-m.Addr > uintptr(m.Size) || n > m.Size-int(addr-m.Addr) {
		return nil, os.ErrInvalid
	}
	return m.Bytes()[addr-m.Addr:][:n], nil
}

func (m memory) Read(p []byte, addr uintptr) error {
	from, err := m.part(addr, len(p))
	copy(p, from)
	return err
}

func (m memory) Write(addr uintptr, p []byte) error {
	to, err := m.part(addr, len(p))
	copy(to, p)
	return err
}

func (m memory) Alloc(int) (hostmem.Block, error) { return hostmem.Block{}, os.ErrInvalid }
func (m memory) Free(hostmem.Block) error         { return nil }

func thread(t *testing.T, n int) (*cabi.Thread, memory) {
	t.Helper()
	b, err := hostmem.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Free() })
	m := memory{b}
	s, err := simcuda.New(simcuda.Config{Checks: gpusim.AllChecks, Collect: true, Host: m})
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	p := cabi.NewProcess(s.API(), m)
	return p.NewThread(), m
}

func call(t *testing.T, th *cabi.Thread, name string, a ...uint64) driver.Result {
	t.Helper()
	f, ok := cabi.Find(name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	var args cabi.Args
	copy(args[:], a)
	return th.Call(f, &args)
}

// TestHostile calls every function with arguments that are nonsense, before and after there is a context: with an answer each time,
// and none that it has succeeded where something had to be read.
func TestHostile(t *testing.T) {
	th, m := thread(t, 1<<16)
	base := uint64(m.Addr)
	for round := range 2 {
		for _, name := range cabi.Names() {
			for _, w := range []uint64{0, 1, 7, ^uint64(0), 1 << 63, base, base + 1<<16 - 3, 0x700000000000, 1 << 40} {
				clear(m.Bytes())
				var a []uint64
				for range 12 {
					a = append(a, w)
				}
				r := call(t, th, name, a...)
				if strings.HasPrefix(name, "cuModuleLoad") && r == driver.Success {
					t.Errorf("%s of %#x succeeded", name, w)
				}
				if strings.HasPrefix(name, "cuCtxSetCurrent") || strings.HasPrefix(name, "cuCtxDestroy") || strings.HasPrefix(name, "cuDevicePrimary") {
					begin(t, th, m, round > 0)
				}
			}
		}
		begin(t, th, m, true)
	}
}

// begin makes a context current.
func begin(t *testing.T, th *cabi.Thread, m memory, really bool) {
	t.Helper()
	at := uint64(m.Addr) + 128
	if !really {
		return
	}
	if r := call(t, th, "cuInit"); r != driver.Success {
		t.Fatal(r)
	}
	for th.DevicePrimaryCtxRelease(0) == driver.Success {
	}
	if r := call(t, th, "cuCtxCreate_v2", at, 0, 0); r != driver.Success {
		t.Fatal(r)
	}
}

// TestRefusal finds words for what is not there.
func TestRefusal(t *testing.T) {
	for name, want := range map[string]string{"cuMemAlloc": "cuMemAlloc_v2", "cuMemcpyHtoD": "cuMemcpyHtoD_v2", "cuArrayCreate_v2": "use memory",
		"cuNonsense": "does not have it", "cuIpcOpenMemHandle_v2": "one process"} {
		if _, ok := cabi.Find(name); ok || !strings.Contains(cabi.Refusal(name), want) {
			t.Errorf("%s: %s", name, cabi.Refusal(name))
		}
	}
	if _, ok := cabi.Find("cuLaunchKernel_ptsz"); !ok {
		t.Error("no form for default streams of threads")
	}
}
