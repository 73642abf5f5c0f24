// Package kernels has the engine's GPU kernels: CUDA C++ in .cu files and the PTX that clang makes of them. The PTX is
// committed, so that nobody needs the compiler to build; go generate makes it anew.
//
// A source names the modules it is compiled into in lines of the form
//
//	//warpline:module NAME [-DMACRO=VALUE …]
//
// One module is what a driver compiles at once: keep to it what a training needs together, a family for an element type,
// without the sizes and variants that it needs instead.
package kernels

import (
	"archive/zip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"sync"
)

//go:generate go run ./gen

// archive has the modules' PTX and kernels.json: text that shrinks to an eighth.
//
//go:embed kernels.zip
var archive string

var files = sync.OnceValues(func() (*zip.Reader, error) {
	return zip.NewReader(strings.NewReader(archive), int64(len(archive)))
})

// Param is where a kernel's parameter lies in its parameter buffer, in bytes.
type Param struct{ Offset, Size int }

// Kernel is what is known of a kernel before a driver has seen it.
type Kernel struct {
	Name       string
	Module     string  `json:"-"`
	Params     []Param `json:",omitempty"`
	Shared     int     `json:",omitempty"` // bytes of static shared memory
	MaxThreads int     `json:",omitempty"` // of a block, by __launch_bounds__; 0 without
}

// Size is the number of bytes of the parameter buffer.
func (k *Kernel) Size() int {
	if len(k.Params) == 0 {
		return 0
	}
	last := k.Params[len(k.Params)-1]
	return last.Offset + last.Size
}

// Module is an entry of kernels.json.
type Module struct {
	Name    string
	Hash    string // SHA-256 over source, headers, flags and compiler, as gen computes it
	Kernels []*Kernel
}

// Index is kernels.json.
type Index struct {
	Compiler string
	Flags    []string
	Modules  []*Module
}

var load = sync.OnceValues(func() (map[string]*Kernel, *Index) {
	var ix Index
	text, err := read("kernels.json")
	if err == nil {
		err = json.Unmarshal(text, &ix)
	}
	if err != nil {
		panic(fmt.Sprintf("kernels: the embedded index: %v", err)) // made by gen, checked by a test
	}
	all := map[string]*Kernel{}
	for _, m := range ix.Modules {
		for _, k := range m.Kernels {
			k.Module = m.Name
			all[k.Name] = k
		}
	}
	return all, &ix
})

// Find returns the kernel of a name, which is unique over all modules.
func Find(name string) (*Kernel, bool) {
	all, _ := load()
	k, ok := all[name]
	return k, ok
}

// Modules lists the modules, sorted by name.
func Modules() []*Module {
	_, ix := load()
	return ix.Modules
}

// PTX is the text of a module.
func PTX(module string) ([]byte, error) { return read(module + ".ptx") }

func read(name string) ([]byte, error) {
	f, err := files()
	if err != nil {
		return nil, err
	}
	return fs.ReadFile(f, name)
}
