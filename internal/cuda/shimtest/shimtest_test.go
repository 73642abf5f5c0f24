package shimtest

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/dl"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// memory is a page that C may use.
func memory(t *testing.T) []uint64 {
	t.Helper()
	b, err := hostmem.Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Free(); err != nil {
			t.Error(err)
		}
	})
	return hostmem.Slice[uint64](b.Addr, 512)
}

func addr[T any](p *T) uintptr { return reflect.ValueOf(p).Pointer() }

// The library must notice what bindings can do wrong.
func TestFaults(t *testing.T) {
	m := memory(t)
	at := addr(&m[0])
	tests := []struct {
		symbol string
		args   []uintptr
		prep   func()
		want   string
	}{
		{"cuDeviceGetCount", []uintptr{0}, nil, "cuDeviceGetCount: not so: ALIGNED(count, sizeof *(count))"},
		{"cuDeviceGetCount", []uintptr{at + 2}, nil, "ALIGNED(count, sizeof *(count))"},
		{"cuMemAlloc_v2", []uintptr{at + 4, 16}, nil, "cuMemAlloc_v2: not so: ALIGNED(dptr, sizeof *(dptr))"},
		{"cuMemAlloc_v2", []uintptr{at, math.MaxUint}, nil, "(bytesize) >> 62 == 0"},
		{"cuMemAlloc", []uintptr{at, 16}, nil, "cuMemAlloc: not so: its interface of today"},
		{"cuDeviceGetName", []uintptr{at, 0, 0}, nil, "len > 0"},
		{"cuDeviceGetUuid_v2", []uintptr{0, 0}, nil, "uuid != NULL"},
		{"cuMemGetInfo_v2", []uintptr{at, 0}, nil, "ALIGNED(total, sizeof *(total))"},
		{"cuStreamWaitEvent", []uintptr{8, 8, 1}, nil, "Flags == 0"},
		{"cuModuleLoadDataEx", []uintptr{at, 0, 0, 0, 0}, nil, "image != NULL"},
		{"cuModuleLoadDataEx", []uintptr{at, at, 1, at, at + 8}, func() { m[0], m[1] = 9, 1 }, "options[i] >= CU_JIT_INFO_LOG_BUFFER"},
		{"cuModuleLoadDataEx", []uintptr{at, at, 1, at, at + 8}, func() { m[0], m[1] = 3, uint64(at) }, "(logs[0] == 0) =="},
		{"cuLaunchKernelEx", []uintptr{0, 7, 0, 0}, nil, "ALIGNED(config, 8)"},
		{"cuLaunchKernelEx", []uintptr{at, 7, at, 0}, nil, "kernelParams == NULL"},
		{"cuLaunchKernelEx", []uintptr{at, 7, 0, 0}, func() { m[6] = 1 }, "ALIGNED(config->attrs, 8)"},
		{"cuLaunchKernelEx", []uintptr{at, 7, 0, 0}, func() { m[5], m[6], m[16] = uint64(at)+128, 1, 5 }, "a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION"},
		{"cuLaunchKernelEx", []uintptr{at, 7, 0, 0}, func() { m[5], m[6], m[16] = uint64(at)+128, 1, 4 }, "clusterDim.x > 0"},
		{"cuLaunchKernelEx", []uintptr{at, 7, 0, at + 128}, func() { copy(m[16:], []uint64{2, 8, 1, 8}) }, "extra[0] == (void *)CU_LAUNCH_PARAM_BUFFER_POINTER"},
		{"cuLaunchKernel", []uintptr{7, 1, 1, 1, 1, 1, 1, 0, 0, 0, at},
			func() { copy(m, []uint64{1, uint64(at), 2, uint64(at) + 64}) }, "size > 0"},
	}
	for _, test := range tests {
		clear(m)
		if test.prep != nil {
			test.prep()
		}
		s := load(t, nil)
		if r := dl.Proc(s.symbol(test.symbol)).Call(test.args...); r != int32(driver.InvalidValue) {
			t.Errorf("%s%v gives %d", test.symbol, test.args, r)
		}
		if f := s.faults(); !strings.Contains(f, test.want) || strings.Count(f, "\n") != 1 {
			t.Errorf("%s%v: want one line with %q in %q", test.symbol, test.args, test.want, f)
		}
	}
}

// A fault fails the test at its end.
func TestFaultsFail(t *testing.T) {
	s := load(t, nil)
	rec := &recorder{TB: t}
	s.checkAtEnd(rec)
	rec.end()
	if rec.failed {
		t.Error("failed without a fault")
	}
	dl.Proc(s.symbol("cuDeviceGetCount")).Call(0)
	s.checkAtEnd(rec)
	if rec.end(); !rec.failed {
		t.Error("passed in spite of a fault")
	}
}

// recorder stands for a test.
type recorder struct {
	testing.TB
	end    func()
	failed bool
}

func (r *recorder) Cleanup(f func())      { r.end = f }
func (r *recorder) Errorf(string, ...any) { r.failed = true }

// Copies of the library know their own tables.
func TestTwoTables(t *testing.T) {
	for _, version := range []int{11040, 12080} {
		path := Install(t, &driver.API{DriverGetVersion: func() (int, driver.Result) { return version, driver.Success }})
		lib, err := dl.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		get, err := lib.Lookup("cuDriverGetVersion")
		if err != nil {
			t.Fatal(err)
		}
		m := memory(t)
		if r := get.Call(addr(&m[0])); r != 0 || m[0] != uint64(version) {
			t.Errorf("%d, version %d, want %d", r, m[0], version)
		}
	}
}

func TestCounts(t *testing.T) {
	path, counts := NoOp(t)
	lib, err := dl.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	m := memory(t)
	for i, symbol := range []string{"cuEventCreate", "cuEventCreate", "cuMemAlloc_v2", "cuCtxSynchronize"} {
		p, err := lib.Lookup(symbol)
		if err != nil {
			t.Fatal(err)
		}
		if r := p.Call(addr(&m[i]), 0); r != 0 {
			t.Errorf("%s: %d", symbol, r)
		}
	}
	if m[0] == 0 || m[0] == m[1] || m[2] == 0 {
		t.Errorf("handles and addresses: %#x", m[:3])
	}
	want := map[string]int{"cuEventCreate": 2, "cuMemAlloc_v2": 1, "cuCtxSynchronize": 1}
	if got := counts(); !reflect.DeepEqual(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
}

// The table and the library have the same functions.
func TestComplete(t *testing.T) {
	s := load(t, nil)
	for name := range handlers {
		if _, err := s.lib.Lookup(name); err != nil {
			t.Error(err)
		}
	}
	if len(s.names) != len(handlers) {
		t.Errorf("%d functions, %d handlers", len(s.names), len(handlers))
	}
}
