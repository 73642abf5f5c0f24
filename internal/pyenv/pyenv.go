// Package pyenv finds the Python environments of a machine and says what is installed in each for training on a GPU: builds of
// PyTorch, JAX and TensorFlow, the GPUs that they have code for, the libraries that they ask for and those that they get. All of it is
// read from files; no interpreter runs, so a broken environment tells as much as a whole one.
//
// What people read of it is docs/environments.md.
//
// What is found is facts. Judging them (Unmet, Serves, MinDriver) is pure functions over these. The tags "bundle" are forms of package
// doctor: in which a text may leave the machine.
package pyenv

import (
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/fatbin"
)

// Found is what Search.Find knows.
type Found struct {
	OS           string         `json:"os" bundle:"word"` // as in GOOS
	Environments []*Environment `json:"environments"`
	Loader       []Library      `json:"loader,omitempty"`    // NVIDIA's and PyTorch's libraries in the folders of LD_LIBRARY_PATH, in its order
	Local        []Copy         `json:"local,omitempty"`     // torch in the working directory, which comes before all others in python -c, python -m and notebooks
	Variables    []Variable     `json:"variables,omitempty"` // of the process's environment, that change what Python imports and loads
	Notes        []string       `json:"notes,omitempty"`
}

// Variable is one of the process's environment.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Kind is what made an environment.
type Kind string

// Kinds.
const (
	Venv  Kind = "venv"  // python -m venv, virtualenv, uv, poetry
	Conda Kind = "conda" // conda, mamba, micromamba, pixi
	Base  Kind = "base"  // an interpreter with its own packages
)

// How an environment was found that a person uses without naming it.
const (
	ByVenv  = "VIRTUAL_ENV"
	ByConda = "CONDA_PREFIX"
	ByPath  = "PATH"

	ByProcess = "process" // that was pointed at
)

// Active says whether a person at this terminal uses the environment: it is activated, the first in PATH, or lies in the working
// directory.
func (e *Environment) Active() bool {
	return slices.ContainsFunc(e.By, func(by string) bool {
		return by == ByVenv || by == ByConda || by == ByPath || by == ByProcess || strings.HasPrefix(by, "./")
	})
}

// Environment is one Python with its packages.
type Environment struct {
	Root        string      `json:"root" bundle:"place"`
	Kind        Kind        `json:"kind" bundle:"word"`
	By          []string    `json:"by" bundle:"origin"` // what named it: VIRTUAL_ENV, PATH, kernel NAME, …
	Interpreter string      `json:"interpreter,omitempty" bundle:"place"`
	Python      string      `json:"python,omitempty" bundle:"release-number"` // 3.11.7, or 3.11 where only that is known
	Machine     string      `json:"machine,omitempty" bundle:"word"`          // that the interpreter is for: x86_64, arm64, universal
	BaseGone    string      `json:"base_gone,omitempty" bundle:"place"`       // the folder of the interpreter that a venv was made from, which is no longer there
	Sites       []Site      `json:"sites"`
	Packages    []Package   `json:"packages,omitempty"` // those that matter to training on a GPU
	Frameworks  []Framework `json:"frameworks,omitempty"`
	Leftovers   []string    `json:"leftovers,omitempty"` // of upgrades that were broken off: ~orch
}

// Site is a folder that import looks in.
type Site struct {
	Path string `json:"path" bundle:"place"`
	By   string `json:"by" bundle:"origin"` // working directory, PYTHONPATH, user site, site-packages, .pth file
}

// Package is a distribution that is installed.
type Package struct {
	Name      string        `json:"name" bundle:"package"` // normalized: nvidia-cublas-cu12
	Version   string        `json:"version" bundle:"release-number"`
	Site      string        `json:"site,omitempty" bundle:"place"` // empty: of conda
	Build     string        `json:"build,omitempty"`               // the wheel's tag, or conda's build string
	Installer string        `json:"installer,omitempty" bundle:"word"`
	Requires  []Requirement `json:"requires,omitempty"` // those that apply here, of packages that matter
	Damaged   []Damage      `json:"damaged,omitempty"`
}

// Damage is a library that is not what its package's RECORD says.
type Damage struct {
	Path string `json:"path" bundle:"place"`
	Want int64  `json:"want"` // bytes
	Have int64  `json:"have"` // bytes; -1: the file is missing
}

// Framework is the copy of PyTorch, JAX or TensorFlow that import finds.
type Framework struct {
	Name     string       `json:"name" bundle:"word"` // torch, jax, tensorflow
	Version  string       `json:"version" bundle:"release-number"`
	Path     string       `json:"path" bundle:"place"`                    // of the folder that is imported
	By       string       `json:"by" bundle:"origin"`                     // how import comes to it, as in Site
	Device   string       `json:"device" bundle:"word"`                   // cpu, cuda, rocm, xpu, metal
	CUDA     string       `json:"cuda,omitempty" bundle:"release-number"` // that it was built with: 12.8, or 12
	ROCm     string       `json:"rocm,omitempty" bundle:"release-number"`
	Source   string       `json:"source,omitempty" bundle:"word"` // wheel, conda, source
	Nightly  bool         `json:"nightly,omitempty"`
	Recorded string       `json:"recorded,omitempty" bundle:"release-number"` // the version that the installed distribution has, where it is another
	Library  string       `json:"library,omitempty" bundle:"place"`           // with device code
	Code     []fatbin.Row `json:"code,omitempty"`                             // for which most of the library has code
	Unread   string       `json:"unread,omitempty"`                           // why the library's code could not be told
	Needs    []string     `json:"needs,omitempty" bundle:"library"`           // libraries that it asks the loader for
	OwnFirst bool         `json:"own_first,omitempty"`                        // it looks in its own folders before LD_LIBRARY_PATH (RPATH)
	Copies   []Copy       `json:"copies,omitempty"`                           // that are not imported, since this one comes first
}

// Copy is another copy of a framework.
type Copy struct {
	Path    string `json:"path" bundle:"place"`
	By      string `json:"by" bundle:"origin"`
	Version string `json:"version,omitempty" bundle:"release-number"`
}

// Library is a shared library of a folder that the loader looks in.
type Library struct {
	Name    string `json:"name" bundle:"library"` // as programs ask for it: libcublas.so.12
	Path    string `json:"path" bundle:"place"`
	Version string `json:"version,omitempty" bundle:"release-number"` // of the file: 12.1.3.1
}

// Framework returns the framework of a name, or nil.
func (e *Environment) Framework(name string) *Framework {
	for i := range e.Frameworks {
		if e.Frameworks[i].Name == name {
			return &e.Frameworks[i]
		}
	}
	return nil
}

// Package returns the installed distribution of a normalized name that comes first, or nil.
func (e *Environment) Package(name string) *Package {
	for i := range e.Packages {
		if e.Packages[i].Name == name {
			return &e.Packages[i]
		}
	}
	return nil
}

// Serves returns the code of a framework that a card of a compute capability runs: machine code if there is some, else PTX.
func (f *Framework) Serves(compute [2]int) (fatbin.Row, bool) {
	for _, r := range f.Code { // machine code comes before PTX
		if r.Runs(compute) {
			return r, true
		}
	}
	return fatbin.Row{}, false
}
