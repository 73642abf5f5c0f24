package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// flags are those of every module of a target. -ffp-contract=on makes a*b+c of one expression an explicit fma and gives
// everything else an explicit rounding, so that ptxas has nothing left to fuse.
func flags(target string) []string {
	isa := "+ptx74" // what the drivers since 470 take
	if target == "sm_90a" {
		isa = "+ptx80" // the first that has it
	}
	return []string{
		"-x", "cuda", "-std=c++20", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=" + target,
		"-Xclang", "-target-feature", "-Xclang", isa, "-O3", "-ffp-contract=on", "-fno-jump-tables",
		"-gline-directives-only", "-fno-verbose-asm", "-Wall", "-Werror", "-Wno-unused-function",
	}
}

// unit is a module to be made.
type unit struct {
	source, name, target string
	defines              []string
	later                bool // no card before the target needs it
}

func (u unit) module() *kernels.Module { return &kernels.Module{Name: u.name, Target: u.target} }

func (u unit) path(ext string) string { return u.module().Path(ext) }

// text is the committed text.
func (u unit) text() (string, error) {
	text, err := u.module().Text(os.DirFS("."))
	return string(text), err
}

// head is the first line of the module's text. It holds what decides whether the text is up to date.
func (u unit) head(hash string) string { return fmt.Sprintf("// %s; %s\n", u.origin(), hash) }

func (u unit) origin() string { return strings.Join(append([]string{u.source}, u.defines...), " ") }

// compile makes the module's text, and writes its table of lines.
func (u unit) compile(hash string) (string, error) {
	made, err := u.clang()
	if err != nil {
		return "", err
	}
	m, err := ptx.Parse(string(made))
	if err != nil {
		return "", fmt.Errorf("%s: %w", u.name, err)
	}
	lines := ptx.Lines(m)
	text := u.head(hash) + ptx.Canonical(m)
	if err := ptx.Same(string(made), text+lines); err != nil {
		return "", fmt.Errorf("%s in canonical form is not what %s made: %w", u.name, compiler, err)
	}
	return text, replace(u.path(".lines"), lines)
}

// clang is the module as the compiler writes it.
func (u unit) clang() ([]byte, error) {
	resources, err := exec.Command(compiler, "-print-resource-dir").Output()
	if err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	args := append(flags(u.target), u.defines...)
	args = append(args, "-ffile-prefix-map="+here+"=.", "-ffile-prefix-map="+strings.TrimSpace(string(resources))+"=clang", "-S", u.source, "-o", "-")
	cmd := exec.Command(compiler, args...)
	made, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%s as %s for %s: %w\n%s", u.source, u.name, u.target, err, exit.Stderr)
	}
	return made, err
}

// form counts the forms in which package ptx has printed the modules: text of an older one is stale.
const form = 2

// hash is over everything that the PTX depends on.
func (u unit) hash(version string) (string, error) {
	files := []string{u.source}
	h := sha256.New()
	fmt.Fprintln(h, form, version, flags(u.target), u.defines)
	for i := 0; i < len(files); i++ {
		text, err := os.ReadFile(files[i])
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", files[i], len(text), text)
		for _, g := range included.FindAllSubmatch(text, -1) {
			if name := path.Join(path.Dir(files[i]), string(g[1])); !slices.Contains(files, name) {
				files = append(files, name)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

var included = regexp.MustCompile(`(?m)^#include "([^"]+)"`)

// describe reads the kernels of a module's text.
func (u unit) describe(text, hash string) (*kernels.Module, error) {
	m, err := ptx.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.path(".ptx"), err)
	}
	for _, e := range ptx.Check(m) {
		return nil, fmt.Errorf("%s: %w", u.path(".ptx"), e)
	}
	d := &kernels.Module{Name: u.name, Target: u.target, Source: u.origin(), Hash: hash, Later: u.later}
	for f := range m.Funcs() {
		if f.Entry && f.Body != nil {
			d.Kernels = append(d.Kernels, kernel(m, f))
		}
	}
	return d, nil
}

func kernel(m *ptx.Module, f *ptx.Func) *kernels.Kernel {
	k := &kernels.Kernel{Name: f.Name, Shared: shared(m, f), Instructions: map[string]int{}}
	offsets, _ := ptx.Layout(f.Params)
	for i, v := range f.Params {
		k.Params = append(k.Params, kernels.Param{int(offsets[i]), int(v.Size())})
	}
	if n, ok := f.Directive("maxntid"); ok {
		k.MaxThreads = 1
		for _, d := range n {
			k.MaxThreads *= int(d)
		}
	}
	for in := range f.Insts() {
		k.Instructions[in.Class().String()]++
	}
	return k
}

// shared sums the module's shared variables that a kernel names.
func shared(m *ptx.Module, f *ptx.Func) (bytes int) {
	used := map[string]bool{}
	for in := range f.Insts() {
		for _, o := range in.Args {
			name(o, used)
		}
	}
	for v := range m.Vars() {
		if v.Space == ptx.Shared && used[v.Name] {
			bytes += int(v.Size())
		}
	}
	return bytes
}

func name(o ptx.Operand, used map[string]bool) {
	switch o := o.(type) {
	case *ptx.Sym:
		used[o.Name] = true
	case *ptx.Addr:
		name(o.Base, used)
	}
}
