package pyenv

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/fatbin"
)

// containers is how many of a library's containers are looked at. The files of a library are compiled for the same
// architectures, but for a few, so the first tell.
const containers = 64

// frameworks returns PyTorch, JAX and TensorFlow as import finds them.
func (s *Search) frameworks(e *Environment) []Framework {
	var all []Framework
	for _, f := range []struct {
		name, folder string
		tell         func(*Search, *Environment, *Framework)
	}{{"torch", "torch", (*Search).torch}, {"jax", "jaxlib", (*Search).jax}, {"tensorflow", "tensorflow", (*Search).tensorflow}} {
		copies := s.copies(e.Sites, f.folder)
		if len(copies) == 0 {
			continue
		}
		found := Framework{Name: f.name, Path: copies[0].Path, By: copies[0].By, Version: copies[0].Version, Copies: copies[1:]}
		f.tell(s, e, &found)
		found.Nightly = strings.Contains(found.Version, ".dev")
		all = append(all, found)
	}
	return all
}

// copies returns where import would find a package, in its order.
func (s *Search) copies(sites []Site, folder string) []Copy {
	var all []Copy
	for _, site := range sites {
		dir := site.Path + "/" + folder
		switch {
		case s.isFile(dir + "/__init__.py"):
			all = append(all, Copy{Path: dir, By: site.By, Version: s.versionFile(dir + "/version.py")["__version__"]})
		case s.isFile(dir + ".py"):
			all = append(all, Copy{Path: dir + ".py", By: site.By})
		}
	}
	return all
}

var assignment = regexp.MustCompile(`^_*(\w+?)_*\s*(?::[^=]*)?=\s*(?:['"]([^'"]*)['"]|None)`)

// versionFile reads the assignments of texts in a file of Python: __version__ = '2.15.0+cu132', cuda: Optional[str] = '13.2'.
func (s *Search) versionFile(path string) map[string]string {
	all := map[string]string{}
	s.lines(path, func(line string) bool {
		if m := assignment.FindStringSubmatch(line); m != nil {
			name := m[1]
			if strings.HasPrefix(line, "_") {
				name = "__" + name + "__"
			}
			if all[name] == "" {
				all[name] = m[2]
			}
		}
		return len(all) < 100
	})
	return all
}

// torch tells of a copy of PyTorch.
func (s *Search) torch(e *Environment, f *Framework) {
	v := s.versionFile(f.Path + "/version.py")
	f.Version, f.CUDA, f.ROCm = v["__version__"], v["cuda"], v["hip"]
	switch {
	case f.CUDA != "":
		f.Device = "cuda"
	case f.ROCm != "":
		f.Device = "rocm"
	case v["xpu"] != "":
		f.Device = "xpu"
	case f.Version != "":
		f.Device = "cpu"
	}
	s.provenance(e, f, "torch", "pytorch", "pytorch-cpu", "pytorch-gpu")
	if f.Device == "cuda" {
		s.code(f, f.Path+"/lib/", e.Root+"/lib/", e.Root+"/Library/bin/")
	}
}

// provenance says how a framework was installed: by which distribution, of those that may have it.
func (s *Search) provenance(e *Environment, f *Framework, names ...string) {
	site := filepath.Dir(f.Path)
	for _, p := range e.Packages {
		if !slices.Contains(names, p.Name) || p.Site != "" && p.Site != site {
			continue
		}
		if f.Version == "" {
			f.Version = p.Version
		}
		if p.Installer == "conda" {
			f.Source = "conda"
			return
		}
		f.Source = "wheel"
		if CompareVersions(p.Version, f.Version) != 0 {
			f.Recorded = p.Version
		}
	}
	if f.Source == "" && f.By == ".pth file" {
		f.Source = "source"
	}
}

// torchLibraries are those with device code; older versions were cut in several.
var torchLibraries = []string{"libtorch_cuda.so", "torch_cuda.dll", "libtorch_cuda_cu.so", "torch_cuda_cu.dll", "libtorch_cuda_cpp.so", "torch_cuda_cpp.dll"}

// code reads for which GPUs PyTorch's library has code, and how the loader treats it.
func (s *Search) code(f *Framework, dirs ...string) {
	for _, dir := range dirs {
		for _, name := range torchLibraries {
			if s.isFile(dir + name) {
				s.library(f, dir+name)
				if len(f.Code) > 0 {
					return
				}
			}
		}
	}
}

// library reads a library with device code.
func (s *Search) library(f *Framework, path string) {
	f.Library = path
	c, err := fatbin.Open(s.real(path), containers)
	switch {
	case errors.Is(err, fatbin.ErrNone):
		f.Unread = "no device code in it"
	case err != nil:
		f.Unread = strings.ReplaceAll(err.Error(), s.real(path), path)
	default:
		f.Code = c.Common()
		if c.Broken != 0 {
			f.Unread = "cut or broken at byte " + strconv.FormatInt(c.Broken, 10)
		}
	}
	if d, err := fatbin.Dynamic(s.real(path)); err == nil {
		f.Needs, f.OwnFirst = d.Needed, len(d.RPath) > 0 && len(d.RunPath) == 0
	}
}

var cudaPlugin = regexp.MustCompile(`^jax-cuda(\d+)-plugin$`)

// jax tells of JAX: jaxlib alone computes on the CPU, plugins bring the rest. Until 0.4.2x jaxlib itself was built for CUDA.
func (s *Search) jax(e *Environment, f *Framework) {
	f.Device = "cpu"
	s.provenance(e, f, "jaxlib")
	p := e.Package("jaxlib")
	if p != nil && f.Version == "" {
		f.Version = p.Version
	}
	if p != nil {
		if _, local, ok := strings.Cut(p.Version, "+cuda"); ok {
			major, _, _ := strings.Cut(local, ".")
			f.Device, f.CUDA = "cuda", major
			s.library(f, f.Path+"/xla_extension.so")
		}
	}
	for _, p := range e.Packages {
		m := cudaPlugin.FindStringSubmatch(p.Name)
		switch {
		case m != nil:
			f.Device, f.CUDA = "cuda", m[1]
			s.library(f, p.Site+"/jax_plugins/xla_cuda"+m[1]+"/xla_cuda_plugin.so")
		case strings.HasPrefix(p.Name, "jax-rocm") && f.Device == "cpu":
			f.Device = "rocm"
		case p.Name == "jax-metal" && f.Device == "cpu":
			f.Device = "metal"
		}
	}
}

var (
	infoText = regexp.MustCompile(`'(cuda_version)': '([^']*)'|'(cuda_version)', '([^']*)'|"cuda_version"[:,] ?"([^"]*)"`)
	infoCode = regexp.MustCompile(`["']cuda_compute_capabilities["'][:,] ?\[([^\]]*)\]`)
	infoFlag = regexp.MustCompile(`["']is_(cuda|rocm)_build["'][:,] ?True`)
	targets  = regexp.MustCompile(`(sm|compute)_(\d+)(a?)`)
)

// tensorflow tells of TensorFlow, which says of its build what the others do not.
func (s *Search) tensorflow(e *Environment, f *Framework) {
	f.Device = "cpu"
	s.provenance(e, f, "tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel", "tensorflow-macos", "tf-nightly")
	info := s.text(f.Path+"/python/platform/build_info.py", 64<<10)
	m := infoFlag.FindSubmatch(info)
	if m == nil {
		if e.Package("tensorflow-metal") != nil {
			f.Device = "metal"
		}
		return
	}
	f.Device = string(m[1])
	if v := infoText.FindSubmatch(info); v != nil {
		f.CUDA = tensorflowCUDA(string(v[2]) + string(v[4]) + string(v[5]))
	}
	if list := infoCode.FindSubmatch(info); list != nil {
		f.Library = f.Path + "/python/platform/build_info.py"
		f.Code = named(string(list[1]))
	}
}

// tensorflowCUDA reads "12.5.1", and "64_112" as Windows has it: 11.2.
func tensorflowCUDA(v string) string {
	if short, ok := strings.CutPrefix(v, "64_"); ok && len(short) >= 3 {
		return short[:2] + "." + short[2:]
	}
	return minorOf(v)
}

// named reads targets by their names. Code that is named compute_N is PTX, with machine code for N beside it.
func named(list string) []fatbin.Row {
	var code, ptx []fatbin.Row
	for _, m := range targets.FindAllStringSubmatch(list, 64) {
		sm, err := strconv.Atoi(m[2])
		if err != nil || sm > 10_000 {
			continue
		}
		t := fatbin.Target{SM: sm, Exact: m[3] == "a"}
		code = append(code, fatbin.Row{Target: t, Containers: 1})
		if m[1] == "compute" {
			t.PTX = true
			ptx = append(ptx, fatbin.Row{Target: t, Containers: 1})
		}
	}
	return append(code, ptx...)
}
