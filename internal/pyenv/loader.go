package pyenv

import (
	"path/filepath"
	"regexp"
	"strings"
)

// shared are the libraries whose copies get into each other's way, with the package that brings each (without -cu12 and the like).
var shared = map[string]string{
	"libcublas": "nvidia-cublas", "libcublasLt": "nvidia-cublas", "libcudart": "nvidia-cuda-runtime", "libnvrtc": "nvidia-cuda-nvrtc",
	"libcufft": "nvidia-cufft", "libcurand": "nvidia-curand", "libcusolver": "nvidia-cusolver", "libcusparse": "nvidia-cusparse",
	"libcusparseLt": "nvidia-cusparselt", "libnvJitLink": "nvidia-nvjitlink", "libnccl": "nvidia-nccl", "libcupti": "nvidia-cuda-cupti",
	"libcudnn": "nvidia-cudnn", "libcudnn_ops": "nvidia-cudnn", "libcudnn_cnn": "nvidia-cudnn", "libcudnn_graph": "nvidia-cudnn",
	"libcudnn_ops_infer": "nvidia-cudnn", "libcudnn_cnn_infer": "nvidia-cudnn", "libtorch_cuda": "torch", "libc10": "torch",
}

var library = regexp.MustCompile(`^(lib\w+)\.so(?:\.(\d+))?((?:\.\d+)*)$`)

// loader returns the libraries of shared in the folders of LD_LIBRARY_PATH: of each name the first, which is the one that is loaded.
func (s *Search) loader() []Library {
	var all []Library
	if s.OS != "linux" {
		return nil
	}
	known := map[string]bool{}
	for i, dir := range s.list("LD_LIBRARY_PATH") {
		if i == 32 {
			break
		}
		for _, file := range s.names(dir) {
			m := library.FindStringSubmatch(file)
			if m == nil || shared[m[1]] == "" || m[3] != "" || m[2] == "" && shared[m[1]] != "torch" {
				continue // programs ask for lib.so.MAJOR
			}
			if path := filepath.Join(dir, file); !known[file] && s.isFile(path) {
				known[file] = true
				all = append(all, Library{Name: file, Path: path, Version: versionOfFile(s.resolve(path))})
			}
		}
	}
	return all
}

// versionOfFile returns 12.1.3.1 of libcublas.so.12.1.3.1, which libcublas.so.12 is a link to; empty where it tells no more than
// the major version.
func versionOfFile(path string) string {
	m := library.FindStringSubmatch(filepath.Base(path))
	if m == nil || m[3] == "" {
		return ""
	}
	return m[2] + m[3]
}

// Clash is a library of LD_LIBRARY_PATH that is loaded in place of the one that was installed with a framework.
type Clash struct {
	Library Library
	Package Package // that has the other
	Older   bool    // the loaded one is older, as far as its file tells
}

// Clashes returns the libraries of the loader's folders that are loaded in place of those that the environment has for a framework:
// of the same name and another version.
func (f *Found) Clashes(e *Environment, w *Framework) []Clash {
	var all []Clash
	for _, l := range f.Loader {
		p := e.provider(l.Name)
		if p == nil || l.Version == "" || w.OwnFirst && w.needs(l.Name) || strings.HasPrefix(l.Path, w.Path+"/") || p.Site != "" && strings.HasPrefix(l.Path, p.Site+"/") {
			continue
		}
		if order := compareShortest(l.Version, p.Version); order != 0 {
			all = append(all, Clash{l, *p, order < 0})
		}
	}
	return all
}

func (w *Framework) needs(name string) bool {
	for _, n := range w.Needs {
		if n == name {
			return true
		}
	}
	return false
}

// provider returns the package that brings a library of a name: libcublas.so.12 is of nvidia-cublas-cu12, or of nvidia-cublas of
// version 12.
func (e *Environment) provider(name string) *Package {
	m := library.FindStringSubmatch(name)
	if m == nil || shared[m[1]] == "torch" {
		return nil
	}
	for i := range e.Packages {
		p := &e.Packages[i]
		stem := cuSuffix.ReplaceAllString(p.Name, "")
		major, _, _ := strings.Cut(p.Version, ".")
		if stem == shared[m[1]] && major == m[2] {
			return p
		}
	}
	return nil
}

var cuSuffix = regexp.MustCompile(`-cu\d+$`)

// compareShortest compares as many numbers as both have: 9.1.0 and 9.1.0.70 are the same.
func compareShortest(a, b string) int {
	x, _ := split(a)
	y, _ := split(b)
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] - y[i]
		}
	}
	return 0
}
