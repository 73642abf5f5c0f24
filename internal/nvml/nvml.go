// Package nvml reads what NVIDIA's management library tells about cards: memory, utilisation, power, clocks and why they are
// low, links, errors, instances, processes. The library is opened at run time, without cgo.
//
// Every function of the library is optional, and cards tell different things: what one does not tell is in [Device.Lacks]
// with the reason, and never a zero. Numbers, layouts and meanings are those of nvml.h.
package nvml

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/dl"
)

// PathEnv is the environment variable that names the library to be used instead of the one that is found.
const PathEnv = "WARPLINE_NVML"

// Library is the management library, initialised. It may be used by several goroutines at once.
type Library struct {
	api  *api
	Path string // that it was opened by
}

// Open finds and initialises the library. The error is an *[advice.Error], whose Err is a [Return] where the library gave
// one.
func Open() (*Library, error) {
	if err := dl.Available(); err != nil {
		return nil, advice.Failf("use a program built without the tag nocuda, on Linux or Windows", "no NVML: %v", err)
	}
	paths := dl.DriverPaths("libnvidia-ml.so.1", "nvml.dll")
	if path := os.Getenv(PathEnv); path != "" {
		if !filepath.IsAbs(path) {
			return nil, advice.Failf("set it to the full path of NVIDIA's management library, or unset it", "%s=%q is not an absolute path", PathEnv, path)
		}
		paths = []string{path}
	}
	var first error
	for _, path := range paths {
		lib, err := dl.Open(path)
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		l := &Library{bind(lib), path}
		if r := call(l.api.init); r != Success {
			return nil, initFailed(r, path)
		}
		return l, nil
	}
	return nil, notFound(first, len(paths))
}

func notFound(first error, tried int) error {
	if os.Getenv(PathEnv) != "" {
		return advice.Failf("set "+PathEnv+" to the full path of NVIDIA's management library, or unset it", "%s: %v", PathEnv, first)
	}
	hint := "install the NVIDIA driver"
	if runtime.GOOS == "linux" {
		hint += "; in a container, NVIDIA_DRIVER_CAPABILITIES must have utility"
	}
	return advice.Failf(hint, "NVIDIA's management library (NVML) is in none of the %d places where it may be", tried)
}

// initHints are what to do about a library that does not start.
var initHints = map[Return]string{
	DriverNotLoaded:  "load the driver: modprobe nvidia; dmesg says why it is not",
	VersionMismatch:  "the driver was updated and the kernel has the old one: reboot, or unload its modules and load them again",
	NoPermission:     "this user may not open /dev/nvidiactl: look at its group, and at the container's devices",
	OperatingSystem:  "the system keeps the card's device from this process: a container may have lost it, start it again",
	GPUNotFound:      "no card is there: lspci shows whether the system sees one",
	FunctionNotFound: "the library is none of a driver of this decade: update the NVIDIA driver",
}

func initFailed(r Return, path string) error {
	return &advice.Error{Text: fmt.Sprintf("NVML (%s) does not start: %v", path, r), Err: r,
		Hint: cmp.Or(initHints[r], "nvidia-smi and dmesg may say more")}
}

// Error makes a Return the cause of an error.
func (r Return) Error() string { return r.String() }

// Close ends the use of the library, which stays loaded: it may have threads.
func (l *Library) Close() { call(l.api.shutdown) }

// Versions are those of the driver and of CUDA that it supports, "535.54.03" and "12.2"; empty where they are not told.
func (l *Library) Versions() (driver, cuda string) {
	driver, _ = text(l.api.driverVersion)
	if v, r := number(l.api.cudaVersion); r == Success {
		cuda = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	return driver, cuda
}

// mostDevices is beyond what a machine has.
const mostDevices = 1024

// Count is the number of cards.
func (l *Library) Count() (int, error) {
	n, r := number(l.api.count)
	if r == Success && n > mostDevices {
		r = unreasonableCount
	}
	if r != Success {
		return 0, &advice.Error{Text: fmt.Sprintf("NVML does not tell how many cards there are: %v", r), Hint: "nvidia-smi and dmesg may say more", Err: r}
	}
	return int(n), nil
}
