// Package libcuda fills the table of [driver] with the functions of the NVIDIA driver's library, opened at run time.
//
// [Open] finds the library, refuses the toolkit's stub, binds the functions and initialises the driver. What it tried is
// kept in a [Source] for those who diagnose; its error says what is wrong and what to do.
//
// Symbols are bound under the names of their current ABI (suffix _v2 where there is one): the plain names of such
// functions still exist in the library with 32-bit device pointers. Required are those without which the engine does
// nothing. The others, which only newer drivers have or nothing but tests and diagnoses call, may be missing: they are
// listed in [Source.Missing] and answer CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, unless there is a substitute.
//
// Where the package was built with the tag nocuda, or for a system without CUDA, Open says so.
package libcuda

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/dl"
)

// PathEnv is the environment variable that names the library to be used instead of the one that is found. The path must
// be absolute.
const PathEnv = "WARPLINE_LIBCUDA"

// Oldest is the version of CUDA that the driver must support: the kernels are PTX 7.4, which came with 11.4 (driver
// 470).
const Oldest = 11040

// Source says where the driver came from, or why there is none.
type Source struct {
	Path    string   // of the library, symbolic links resolved; empty if none was found
	Version int      // of CUDA that the driver supports, 12040 for 12.4
	Missing []string // optional functions that this driver lacks
	Probes  []Probe  // what was tried, in order
}

// Probe is an attempt to open a library.
type Probe struct {
	Path string
	Err  error // nil if this one was taken
}

// Open finds and initialises the driver. The Source is never nil. The error is an *[Error].
func Open() (*driver.API, *Source, error) {
	src := new(Source)
	if err := dl.Available(); err != nil {
		return nil, src, unavailable(err)
	}
	paths, err := candidates()
	if err != nil {
		return nil, src, err
	}
	for _, path := range paths {
		api, err := src.open(path)
		src.Probes = append(src.Probes, Probe{path, err})
		if fatal := (*Error)(nil); errors.As(err, &fatal) {
			return nil, src, fatal
		}
		if err == nil {
			return api, src, nil
		}
	}
	return nil, src, src.notFound()
}

var errStub = errors.New("this is the toolkit's stub, not the driver")

// open tries one library. An *Error ends the search: this is the driver, and it does not work.
func (s *Source) open(path string) (*driver.API, error) {
	if isStub(path) {
		return nil, errStub
	}
	lib, err := dl.Open(path)
	if err != nil {
		return nil, err
	}
	b := binder{lib: lib}
	api := b.bind()
	file := b.file(path)
	if b.err != nil {
		return nil, closing(lib, b.err)
	}
	r := driver.StubLibrary
	if !isStub(file) {
		if filepath.IsAbs(path) {
			openBeside(file)
		}
		r = api.Init(0)
	}
	if r == driver.StubLibrary { // its name would hide the driver from the loader
		return nil, closing(lib, errStub)
	}
	b.learn()
	s.Path, s.Missing = file, b.missing
	if r != driver.Success {
		return nil, initFailed("cuInit", r, file)
	}
	return api, s.checkVersion(api)
}

// ptxCompiler is the part of the driver that compiles PTX.
const ptxCompiler = "libnvidia-ptxjitcompiler.so.1"

// openBeside opens the driver's compiler where it lies beside the driver's library. The library asks for it by its bare
// name: where the loader has not found the one, it would not find the other either, unless it is open.
func openBeside(file string) {
	if runtime.GOOS == "linux" {
		_, _ = dl.Open(filepath.Join(filepath.Dir(file), ptxCompiler)) // if it is nowhere, the first module says so
	}
}

// closing gives back a library that was refused for err.
func closing(lib *dl.Library, err error) error {
	if failed := lib.Close(); failed != nil {
		return fmt.Errorf("%w; closing it: %w", err, failed)
	}
	return err
}

func (s *Source) checkVersion(api *driver.API) error {
	version, r := api.DriverGetVersion()
	if r != driver.Success {
		return initFailed("cuDriverGetVersion", r, s.Path)
	}
	if s.Version = version; version < Oldest {
		return fail(update, "the NVIDIA driver (%s) is too old: it supports CUDA %d.%d", s.Path, version/1000, version%1000/10)
	}
	return nil
}

// isStub reports whether the toolkit keeps its stubs in the library's folder.
func isStub(path string) bool { return filepath.Base(filepath.Dir(path)) == "stubs" }

// notFound is the error of a search that no library ended.
func (s *Source) notFound() error {
	stub, found := "", error(nil)
	var tried []string
	for _, p := range s.Probes {
		tried = append(tried, p.Path)
		if errors.Is(p.Err, errStub) {
			stub = p.Path
		} else if errors.Is(p.Err, errIncomplete) {
			found = p.Err
		}
	}
	switch {
	case found != nil:
		return fail(update, "%v", found)
	case stub != "":
		return onlyStub(stub)
	case os.Getenv(PathEnv) != "":
		return badPath(fmt.Sprintf("%s: %v", PathEnv, s.Probes[0].Err))
	}
	return noLibrary(tried)
}
