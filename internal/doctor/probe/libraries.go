package probe

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/doctor"
)

// sonames are libraries of the driver, by the names under which they are asked for.
var sonames = []string{"libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4"}

// stems are libraries for compute, of any major version.
var stems = []string{"libcudart.so", "libcublas.so", "libcublasLt.so", "libcudnn.so", "libnccl.so", "libnvrtc.so", "libnvJitLink.so"}

// usualFolders are where the loader looks last, and where drivers put their libraries beside it.
var usualFolders = []string{"/lib64", "/usr/lib64", "/lib", "/usr/lib"}

// driverFolders are those of drivers that the loader may not know.
var driverFolders = map[string][]string{
	"amd64": {"/usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/nvidia/current"},
	"arm64": {"/usr/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu/nvidia", "/usr/lib/aarch64-linux-gnu/tegra"},
	"":      {"/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/run/opengl-driver/lib", "/var/lib/snapd/lib/gl", "/usr/lib64/nvidia", "/usr/local/cuda/compat"},
}

// found is a file for a name, and which rule of the loader gave it.
type found struct{ path, why string }

// loader finds libraries as ld.so does: LD_LIBRARY_PATH, its cache, its own folders; then, as this program does, folders of drivers.
type loader struct {
	tree
	env   []string            // LD_LIBRARY_PATH
	cache map[string][]string // by name
	arch  string
}

func (p *prober) libraries() {
	if p.facts.OS != "linux" {
		return
	}
	l := &loader{tree: p.tree, arch: p.facts.Arch, cache: ldCache(p.path("/etc/ld.so.cache"))}
	for dir := range strings.SplitSeq(p.facts.Env["LD_LIBRARY_PATH"], ":") {
		if dir != "" {
			l.env = append(l.env, dir)
		}
	}
	for _, name := range sonames {
		p.facts.Libraries = append(p.facts.Libraries, l.library(name, l.find(name, p.facts.Platform.WSL)))
	}
	for _, stem := range stems {
		if hits := l.findMajor(stem); len(hits) > 0 {
			lib := l.library(stem, hits)
			lib.Missing = l.missing(lib)
			p.facts.Libraries = append(p.facts.Libraries, lib)
		}
	}
}

// find lists the files of a name in the order in which they are tried.
func (l *loader) find(name string, wsl bool) (out []found) {
	add := func(path, why string) {
		if l.there(path) && !slices.ContainsFunc(out, func(f found) bool { return l.real(f.path) == l.real(path) }) {
			out = append(out, found{path, why})
		}
	}
	if wsl {
		add("/usr/lib/wsl/lib/"+name, "driver")
	}
	for _, dir := range l.env {
		add(dir+"/"+name, "LD_LIBRARY_PATH")
	}
	for _, path := range l.cache[name] {
		add(path, "cache")
	}
	for _, dir := range usualFolders {
		add(dir+"/"+name, "default")
	}
	for _, dir := range slices.Concat(driverFolders[l.arch], driverFolders[""]) {
		add(dir+"/"+name, "driver")
	}
	return out
}

// findMajor finds the libraries libX.so.N of any N, the newest first where one rule gives several.
func (l *loader) findMajor(stem string) (out []found) {
	for _, dir := range l.env {
		for _, name := range l.matching(dir, stem) {
			out = append(out, found{dir + "/" + name, "LD_LIBRARY_PATH"})
		}
	}
	var cached []string
	for name, paths := range l.cache {
		if isMajor(name, stem) {
			cached = append(cached, paths...)
		}
	}
	slices.Sort(cached)
	slices.Reverse(cached)
	for _, path := range cached {
		out = append(out, found{path, "cache"})
	}
	return slices.DeleteFunc(out, func(f found) bool { return !l.there(f.path) })
}

func (l *loader) matching(dir, stem string) (out []string) {
	for _, name := range l.list(dir) {
		if isMajor(name, stem) {
			out = append(out, name)
		}
	}
	slices.Reverse(out)
	return out
}

// isMajor reports whether a name is the stem with one number: libcudart.so.12.
func isMajor(name, stem string) bool {
	rest, ok := strings.CutPrefix(name, stem+".")
	return ok && rest != "" && strings.Trim(rest, "0123456789") == "" || name == "libcudart.so.11.0" && stem == "libcudart.so"
}

// library describes the first of hits, with the others below it.
func (l *loader) library(name string, hits []found) doctor.Library {
	if len(hits) == 0 {
		return doctor.Library{Name: name}
	}
	lib := l.describe(name, hits[0])
	for _, h := range hits[1:] {
		other := l.describe(name, h)
		other.Needs = nil
		lib.Others = append(lib.Others, other)
	}
	return lib
}

var suffixForm = regexp.MustCompile(`\.so\.([0-9.]+)$`)

func (l *loader) describe(name string, f found) doctor.Library {
	lib := doctor.Library{Name: name, Path: f.path, Real: l.real(f.path), Why: f.why}
	if m := suffixForm.FindStringSubmatch(path.Base(lib.Real)); m != nil {
		lib.Version = m[1]
	}
	if info, err := os.Stat(l.path(lib.Real)); err == nil {
		lib.Size = info.Size()
	}
	file, err := elf.Open(l.path(lib.Real))
	if err != nil {
		return lib
	}
	defer file.Close()
	lib.Bits = 32
	if file.Class == elf.ELFCLASS64 {
		lib.Bits = 64
	}
	lib.Needs, _ = file.ImportedLibraries()
	return lib
}

// missing are libraries of NVIDIA's that one needs and that neither its own folder nor the loader has.
func (l *loader) missing(lib doctor.Library) (out []string) {
	for _, need := range lib.Needs {
		known := slices.ContainsFunc(stems, func(s string) bool { return strings.HasPrefix(need, s) })
		if known && !l.there(path.Dir(lib.Real)+"/"+need) && len(l.find(need, false)) == 0 {
			out = append(out, need)
		}
	}
	return out
}

// The newer form of ld.so.cache: a magic, the number of entries and of bytes of strings, twenty bytes of other things, then
// entries of flags, name, path, and eight bytes more. It may follow the older form.
const (
	cacheMagic = "glibc-ld.so.cache1.1"
	cacheHead  = 48
	cacheEntry = 24
	mostCache  = 16 << 20
)

// ldCache reads the loader's cache of 64-bit libraries: their paths by name, in its order.
func ldCache(name string) map[string][]string {
	b, err := os.ReadFile(name)
	if err != nil || len(b) > mostCache {
		return nil
	}
	at := strings.Index(string(b), cacheMagic)
	if at < 0 || len(b)-at < cacheHead {
		return nil
	}
	b = b[at:]
	out := map[string][]string{}
	n := int(binary.NativeEndian.Uint32(b[len(cacheMagic):]))
	for i := range n {
		e := cacheHead + i*cacheEntry
		if e+cacheEntry > len(b) {
			break
		}
		flags := binary.NativeEndian.Uint32(b[e:])
		key, path := text(b, binary.NativeEndian.Uint32(b[e+4:])), text(b, binary.NativeEndian.Uint32(b[e+8:]))
		if flags>>8&0xff != 0 && key != "" { // 0 is of 32 bits; others name the 64-bit ABI
			out[key] = append(out[key], path)
		}
	}
	return out
}

// text is the string at an offset of the cache, "" of one that is outside.
func text(b []byte, at uint32) string {
	if int64(at) >= int64(len(b)) {
		return ""
	}
	s, _, _ := strings.Cut(string(b[at:min(int64(len(b)), int64(at)+4096)]), "\x00")
	return s
}
