package libcuda

import (
	"fmt"
	"os"
	"runtime"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// Error says why there is no driver to work with. The text and the hint are those of an [advice.Error], which errors.As
// finds, too.
type Error struct {
	told
	Result driver.Result // of cuInit; Success if the driver did not come so far
	Tried  []string      // where a search found no library; nil of other errors
}

// Searched is Tried, for packages that know no libcuda.
func (e *Error) Searched() []string { return e.Tried }

// told is embedded under a name that leaves that of its method free.
type told = advice.Error

// Unwrap returns the text with the hint, and by them the cause.
func (e *Error) Unwrap() error { return &e.told }

const (
	update     = "update the NVIDIA driver to 470 or newer"
	orSimulate = "; the device sim:0 needs none"
)

func fail(hint, format string, args ...any) *Error {
	return &Error{told: *advice.Failf(hint, format, args...)}
}

// initFailed is the error of a driver that is there and does not start.
func initFailed(call string, r driver.Result, path string) *Error {
	cause := &driver.Error{Call: call, Result: r}
	hint := cause.Hint()
	if hint == "" {
		hint = "look at nvidia-smi and dmesg; reinstall the NVIDIA driver if they show nothing"
	}
	e := fail(hint, "the NVIDIA driver (%s) does not start: %v", path, cause)
	if v, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set && (r == driver.NoDevice || r == driver.InvalidDevice) {
		e.Text += fmt.Sprintf(" (it is %q)", v)
	}
	e.Result = r
	return e
}

func onlyStub(path string) *Error {
	e := fail("take the stub's folder out of LD_LIBRARY_PATH, and install the NVIDIA driver"+orSimulate,
		"no NVIDIA driver: the only libcuda is the CUDA toolkit's stub (%s)", path)
	e.Result = driver.StubLibrary
	return e
}

func badPath(text string) *Error {
	return fail("set "+PathEnv+" to the full path of the NVIDIA driver's library, or unset it", "%s", text)
}

func unavailable(err error) *Error {
	if runtime.GOOS == "darwin" {
		return fail("take the device cpu, or sim:0 for a simulated GPU", "there is no CUDA on macOS")
	}
	return fail("use a program built without the tag nocuda, on Linux or Windows; or take the device sim:0", "no CUDA: %v", err)
}

func noLibrary(tried []string) *Error {
	if runtime.GOOS == "windows" {
		return fail("install the NVIDIA driver, or set "+PathEnv+" to the path of its nvcuda.dll"+orSimulate,
			"no NVIDIA driver: there is no nvcuda.dll in System32")
	}
	e := fail("install the NVIDIA driver, or set "+PathEnv+" to the path of its libcuda.so.1"+orSimulate,
		"no NVIDIA driver: libcuda.so.1 is in none of the %d places where it may be", len(tried))
	e.Tried = tried
	if _, err := os.Stat(driver.KernelModule); err == nil {
		e.Hint = "the kernel has the driver: start the container with --gpus all and " +
			"NVIDIA_DRIVER_CAPABILITIES=compute,utility, or install the driver's libraries"
	}
	return e
}
