package libcuda

import (
	"fmt"
	"os"
	"runtime"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// Error says why there is no driver to work with.
type Error struct {
	Result driver.Result // of cuInit; Success if no library was taken
	Text   string        // what is wrong
	Hint   string        // what to do
	Tried  []string      // where a search found no library; nil of other errors
}

// Error is the text and the hint.
func (e *Error) Error() string { return e.Text + "; " + e.Hint }

// Results of cuInit that mean something else than in other calls, or only come from it.
const (
	insufficientDriver driver.Result = 35
	callNeedsNewer     driver.Result = 36
	deviceUnavailable  driver.Result = 46
	operatingSystem    driver.Result = 304
)

const (
	update     = "update the NVIDIA driver to 470 or newer"
	orSimulate = "; the device sim:0 needs none"
)

// hints tell what to do about a failed cuInit.
var hints = map[driver.Result]string{
	driver.OutOfMemory: "free memory, or raise the limit on address space (ulimit -v) or of the container",
	driver.NotInitialized: "restart the program; if it stays, reload nvidia_uvm, with uvm_disable_hmm=1 " +
		"where the open kernel modules 570 to 580 run",
	insufficientDriver: update,
	callNeedsNewer:     update,
	deviceUnavailable: "another process holds the card exclusively: wait for it, or set the compute mode back " +
		"with nvidia-smi -c 0",
	driver.NoDevice: "see whether nvidia-smi lists a card; a container must be started with it (--gpus all)" +
		orSimulate,
	driver.InvalidDevice: "see that CUDA_VISIBLE_DEVICES names cards that nvidia-smi -L lists",
	operatingSystem: "look at the permissions of /dev/nvidia*, the container's device rules and the limits " +
		"(ulimit -a)",
	driver.SystemNotReady: "start nvidia-fabricmanager, in the driver's very version, and wait until it has set up " +
		"the NVSwitches",
	driver.DriverMismatch: "the driver was updated under a running system: reboot, or unload and load its kernel " +
		"modules",
	driver.CompatNotSupported: "take the folder of the forward-compatibility package (cuda/compat) out of " +
		"LD_LIBRARY_PATH, or update the NVIDIA driver",
	driver.Unknown: "load nvidia_uvm (nvidia-modprobe -c 0 -u), or reload it after a suspend; dmesg may say more",
}

// initFailed is the error of a driver that is there and does not start.
func initFailed(r driver.Result, path string) *Error {
	hint, ok := hints[r]
	if !ok {
		hint = "look at nvidia-smi and dmesg; reinstall the NVIDIA driver if they show nothing"
	}
	text := fmt.Sprintf("the NVIDIA driver (%s) does not start: %v", path, driver.Check("cuInit", r))
	if v, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set && (r == driver.NoDevice || r == driver.InvalidDevice) {
		text += fmt.Sprintf(" (it is %q)", v)
	}
	return &Error{Result: r, Text: text, Hint: hint}
}

func tooOld(text string) *Error {
	return &Error{Result: insufficientDriver, Text: text, Hint: update}
}

func onlyStub(path string) *Error {
	return &Error{
		Result: driver.StubLibrary,
		Text:   fmt.Sprintf("no NVIDIA driver: the only libcuda is the CUDA toolkit's stub (%s)", path),
		Hint:   "take the stub's folder out of LD_LIBRARY_PATH, and install the NVIDIA driver" + orSimulate,
	}
}

func badPath(text string) *Error {
	return &Error{Text: text, Hint: "set " + PathEnv + " to the full path of the NVIDIA driver's library, or unset it"}
}

func unavailable(err error) *Error {
	if runtime.GOOS == "darwin" {
		return &Error{Text: "there is no CUDA on macOS", Hint: "take the device cpu, or sim:0 for a simulated GPU"}
	}
	return &Error{
		Text: "no CUDA: " + err.Error(),
		Hint: "use a program built without the tag nocuda, on Linux or Windows; or take the device sim:0",
	}
}

// kernelModule is there while the kernel's half of the driver is loaded, seen from inside of containers too.
const kernelModule = "/proc/driver/nvidia/version"

func noLibrary(tried []string) *Error {
	if runtime.GOOS == "windows" {
		return &Error{
			Text: "no NVIDIA driver: there is no nvcuda.dll in System32",
			Hint: "install the NVIDIA driver, or set " + PathEnv + " to the path of its nvcuda.dll" + orSimulate,
		}
	}
	e := &Error{
		Text:  fmt.Sprintf("no NVIDIA driver: libcuda.so.1 is in none of the %d places where it may be", len(tried)),
		Hint:  "install the NVIDIA driver, or set " + PathEnv + " to the path of its libcuda.so.1" + orSimulate,
		Tried: tried,
	}
	if _, err := os.Stat(kernelModule); err == nil {
		e.Hint = "the kernel has the driver: start the container with --gpus all and " +
			"NVIDIA_DRIVER_CAPABILITIES=compute,utility, or install the driver's libraries"
	}
	return e
}
