package libcuda_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
	"github.com/warpline-ml/warpline/internal/dl"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// refused opens path, which must fail in one line with all of the words.
func refused(t *testing.T, path string, result driver.Result, words ...string) *libcuda.Source {
	t.Helper()
	t.Setenv(libcuda.PathEnv, path)
	api, src, err := libcuda.Open()
	var e *libcuda.Error
	if !errors.As(err, &e) || api != nil || src == nil {
		t.Fatalf("Open gives %v, %v, %v", api, src, err)
	}
	if strings.Contains(err.Error(), "\n") || e.Text == "" || e.Hint == "" || e.Result != result {
		t.Errorf("result %v, want %v; want one line with a hint:\n%v", e.Result, result, err)
	}
	var a *advice.Error
	if !errors.As(err, &a) || a.Error() != err.Error() || a.Hint != e.Hint || strings.Contains(err.Error(), e.Hint) {
		t.Errorf("text and hint apart: %+v, %+v", a, e)
	}
	for _, w := range words {
		if !strings.Contains(e.Text+"; "+e.Hint, w) {
			t.Errorf("%q is not in:\n%v; %s", w, err, e.Hint)
		}
	}
	return src
}

// built skips where this build opens no libraries: Open says so, too.
func built(t *testing.T) {
	t.Helper()
	if err := dl.Available(); err != nil {
		t.Skip(err)
	}
}

func TestUnavailable(t *testing.T) {
	if dl.Available() == nil {
		t.Skip("this build opens libraries; run with the tag nocuda")
	}
	src := refused(t, "/lib/libcuda.so.1", driver.Success, "CUDA", "sim:0")
	if len(src.Probes) != 0 {
		t.Errorf("probes: %v", src.Probes)
	}
}

func TestInitFails(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "5,6")
	f := &fake{Rand: testutil.Rand(t)}
	path := shimtest.Install(t, f.api())
	for result, words := range map[driver.Result][]string{
		driver.NotInitialized:     {"CUDA_ERROR_NOT_INITIALIZED", "uvm_disable_hmm"},
		driver.StubLibrary:        {"stub", path, "LD_LIBRARY_PATH", "sim:0"},
		driver.NeedsNewerDriver:   {"CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "update the NVIDIA driver"},
		950:                       {"CUDA_ERROR_OF_TOMORROW (950): nobody knew of it", "reinstall"}, // named by the library
		driver.NoDevice:           {"CUDA_ERROR_NO_DEVICE (100)", `"5,6"`, "nvidia-smi", "--gpus all"},
		driver.SystemNotReady:     {"nvidia-fabricmanager"},
		driver.DriverMismatch:     {"reboot"},
		driver.CompatNotSupported: {"cuda/compat"},
		driver.Unknown:            {"nvidia_uvm"},
		driver.OperatingSystem:    {"CUDA_ERROR_OPERATING_SYSTEM", "/dev/nvidia"},
		driver.DeviceNotLicensed:  {"CUDA_ERROR_DEVICE_NOT_LICENSED", "license"},
		777:                       {"CUDA error 777", "reinstall"},
	} {
		f.result = result
		src := refused(t, path, result, words...)
		if len(src.Probes) != 1 || src.Probes[0].Path != path || src.Probes[0].Err == nil {
			t.Errorf("probes: %v", src.Probes)
		}
	}
	f.result = driver.Success
	open(t, path) // the library is as good as before
}

// TestCompilerBeside: of a driver in a folder that the loader does not know, the compiler is opened too.
func TestCompilerBeside(t *testing.T) {
	f := &fake{Rand: testutil.Rand(t)}
	path := shimtest.Install(t, f.api())
	open(t, path) // there is none
	lib, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	compiler := filepath.Join(filepath.Dir(path), "libnvidia-ptxjitcompiler.so.1")
	if err := os.WriteFile(compiler, lib, 0o777); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	if compiler, err = filepath.EvalSymlinks(compiler); err != nil { // as the kernel knows it
		t.Fatal(err)
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err != nil || !strings.Contains(string(maps), compiler) {
		t.Errorf("%s is not open: %v", compiler, err)
	}
}

func TestStubFolder(t *testing.T) {
	built(t)
	refused(t, "/usr/local/cuda/lib64/stubs/libcuda.so", driver.StubLibrary, "/usr/local/cuda/lib64/stubs/libcuda.so")

	// A link leads to the stub, too.
	f := &fake{Rand: testutil.Rand(t)}
	lib, err := os.ReadFile(shimtest.Install(t, f.api()))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	stub, link := filepath.Join(dir, "stubs", "libcuda.so"), filepath.Join(dir, "libcuda.so.1")
	for _, err := range []error{os.Mkdir(filepath.Dir(stub), 0o777), os.WriteFile(stub, lib, 0o777), os.Symlink(stub, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	refused(t, link, driver.StubLibrary, "stub", link)
}

func TestOldDriver(t *testing.T) {
	f := &fake{Rand: testutil.Rand(t)}
	table := f.api()
	table.DriverGetVersion = func() (int, driver.Result) { return 11020, driver.Success }
	refused(t, shimtest.Install(t, table), driver.Success, "too old", "CUDA 11.2", "update")
	refused(t, shimtest.Install(t, table, "cuMemAlloc_v2"), driver.Success, "no symbol cuMemAlloc_v2", "470")
}

// optional are the functions that the engine does not call, or does without.
var optional = []string{"cuDeviceGetUuid_v2", "cuDeviceCanAccessPeer", "cuDevicePrimaryCtxReset_v2", "cuCtxGetCurrent", "cuCtxSynchronize",
	"cuCtxEnablePeerAccess", "cuCtxGetStreamPriorityRange", "cuModuleGetGlobal_v2", "cuFuncLoad", "cuFuncGetAttribute",
	"cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuMemGetInfo_v2", "cuMemAllocAsync", "cuMemFreeAsync", "cuMemHostRegister_v2",
	"cuMemHostUnregister", "cuMemGetAllocationGranularity", "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate", "cuMemRelease", "cuMemMap",
	"cuMemUnmap", "cuMemSetAccess", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2", "cuMemsetD32Async", "cuStreamQuery", "cuEventSynchronize",
	"cuEventElapsedTime", "cuLaunchKernelEx", "cuGetErrorName", "cuGetErrorString"}

// A driver that lacks what the engine does not call opens, and says so of those functions.
func TestBareDriver(t *testing.T) {
	f := &fake{Rand: testutil.Rand(t)}
	api, src := open(t, shimtest.Install(t, f.api(), optional...))
	missing := slices.Sorted(slices.Values(src.Missing))
	if want := slices.Sorted(slices.Values(optional)); !slices.Equal(missing, want) {
		t.Errorf("missing %v, want %v", missing, want)
	}
	if r := api.StreamQuery(3); r != driver.NeedsNewerDriver {
		t.Errorf("a function that is not there gives %v", r)
	}
	if free, total, r := api.MemGetInfo(); free != 0 || total != 0 || r != driver.NeedsNewerDriver {
		t.Errorf("a function that is not there gives %d, %d, %v", free, total, r)
	}
	f.name = ""
	if _, r := api.MemAlloc(512); f.name != "MemAlloc" || r != f.result {
		t.Errorf("%v, %s called", r, f.name)
	}
}

func TestBadPath(t *testing.T) {
	built(t)
	refused(t, "libcuda.so.1", driver.Success, "not an absolute path", libcuda.PathEnv)
	foreign := refused(t, shimtest.Install(t, (&fake{Rand: testutil.Rand(t)}).api(), "cuInit"), driver.Success, "no CUDA driver", "no symbol cuInit", "set "+libcuda.PathEnv)
	if len(foreign.Probes) != 1 {
		t.Errorf("probes: %v", foreign.Probes)
	}
	refused(t, "/nonexistent/libcuda.so.1", driver.Success, "/nonexistent/libcuda.so.1", libcuda.PathEnv)
}

// Whatever the machine has, the search says what it did.
func TestSearch(t *testing.T) {
	built(t)
	t.Setenv(libcuda.PathEnv, "")
	api, src, err := libcuda.Open()
	last := len(src.Probes) - 1
	for i, p := range src.Probes {
		if taken := err == nil && i == last; taken != (p.Err == nil) {
			t.Errorf("probe of %s: %v", p.Path, p.Err)
		}
	}
	if last < 0 || (err == nil) != (api != nil) {
		t.Errorf("%d probes, table %v, error %v", last+1, api != nil, err)
	}
	if err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("want one line of:\n%v", err)
	}
}
