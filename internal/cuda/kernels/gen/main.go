// Gen compiles the kernels with clang-19: no header, library or tool of NVIDIA's. Without that compiler it leaves the
// committed files as they are and says so, unless they do not belong to the sources. Run it by go generate.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/ptx"
)

const compiler = "clang-19"

// flags are those of every module. -ffp-contract=on makes a*b+c of one expression an explicit fma and gives everything
// else an explicit rounding, so that ptxas has nothing left to fuse.
var flags = []string{
	"-x", "cuda", "-std=c++20", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_80",
	"-Xclang", "-target-feature", "-Xclang", "+ptx74", "-O3", "-ffp-contract=on", "-fno-jump-tables",
	"-gline-directives-only", "-fno-verbose-asm", "-Wall", "-Werror", "-Wno-unused-function",
}

func main() {
	only := flag.String("only", "", "compile only the modules whose name begins so")
	flag.Parse()
	if err := run(*only); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// unit is a module to be made.
type unit struct {
	source, name string
	defines      []string
}

func run(only string) error {
	version, err := exec.Command(compiler, "-dumpversion").Output()
	if err != nil {
		fmt.Fprintf(os.Stderr, "gen: no %s here; the committed PTX stays as it is\n", compiler)
		return nil
	}
	index := kernels.Index{Compiler: "clang " + strings.TrimSpace(string(version)), Flags: flags}
	old, err := committed()
	if err == nil && old.Compiler != index.Compiler && only == "" {
		fmt.Fprintf(os.Stderr, "gen: the committed PTX is of %s, here is %s; it stays as it is\n", old.Compiler, index.Compiler)
		return nil
	}
	units, err := collect()
	if err != nil {
		return err
	}
	made := make([]*kernels.Module, len(units))
	errs := make([]error, len(units))
	slots := make(chan struct{}, runtime.NumCPU())
	var wg sync.WaitGroup
	for i, u := range units {
		if !strings.HasPrefix(u.name, only) {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			made[i], errs[i] = u.make(index.Compiler)
			<-slots
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if only != "" { // somebody else may have made others in the meantime
		if old, err = committed(); err != nil {
			return err
		}
		for i, u := range units {
			if made[i] == nil {
				made[i] = find(old, u.name)
			}
		}
	}
	index.Modules = slices.DeleteFunc(made, func(m *kernels.Module) bool { return m == nil })
	return errors.Join(write(&index), pack(&index))
}

func committed() (*kernels.Index, error) {
	text, err := os.ReadFile("kernels.json")
	if err != nil {
		return &kernels.Index{}, err
	}
	var ix kernels.Index
	return &ix, json.Unmarshal(text, &ix)
}

func find(ix *kernels.Index, name string) *kernels.Module {
	for _, m := range ix.Modules {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// write has a line for each kernel, so that a change of one is a line of a diff.
func write(ix *kernels.Index) error {
	var b bytes.Buffer
	head := *ix
	head.Modules = nil
	b.Write(line(head))
	b.Truncate(b.Len() - len("null}"))
	for i, m := range ix.Modules {
		fmt.Fprintf(&b, "%s\n{\"Name\": %q, \"Hash\": %q, \"Kernels\": [", separator(i, "["), m.Name, m.Hash)
		for j, k := range m.Kernels {
			fmt.Fprintf(&b, "%s\n\t%s", separator(j, ""), line(k))
		}
		b.WriteString("]}")
	}
	b.WriteString("]}\n")
	return durable.WriteFile("kernels.json", func(w io.Writer) error {
		_, err := w.Write(b.Bytes())
		return err
	})
}

func separator(i int, first string) string {
	if i == 0 {
		return first
	}
	return ","
}

func line(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and integers only
	}
	return b
}

// pack puts the modules and the index into the archive that the binary carries.
func pack(ix *kernels.Index) error {
	return durable.WriteFile("kernels.zip", func(w io.Writer) error {
		z := zip.NewWriter(w)
		z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
		names := []string{"kernels.json"}
		for _, m := range ix.Modules {
			names = append(names, m.Name+".ptx")
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			f, err := z.Create(name)
			if err != nil {
				return err
			}
			if _, err := f.Write(text); err != nil {
				return err
			}
		}
		return z.Close()
	})
}

// collect reads the sources' module lines.
func collect() ([]unit, error) {
	sources, err := filepath.Glob("*.cu")
	if err != nil {
		return nil, err
	}
	var units []unit
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "//warpline:module "); ok {
				words := strings.Fields(rest)
				units = append(units, unit{source: source, name: words[0], defines: words[1:]})
			}
		}
	}
	slices.SortFunc(units, func(a, b unit) int { return strings.Compare(a.name, b.name) })
	return units, nil
}

// make compiles a unit and reads what came of it.
func (u unit) make(compiler string) (*kernels.Module, error) {
	hash, err := u.hash(compiler)
	if err != nil {
		return nil, err
	}
	out := u.name + ".ptx"
	if err := u.compile(out); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	m := &kernels.Module{Name: u.name, Hash: hash}
	if m.Kernels, err = describe(string(text)); err != nil {
		return nil, fmt.Errorf("%s: %w", out, err)
	}
	return m, nil
}

func (u unit) compile(out string) error {
	resources, err := exec.Command(compiler, "-print-resource-dir").Output()
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	args := append(slices.Clone(flags), u.defines...)
	args = append(args, "-ffile-prefix-map="+here+"=.", "-ffile-prefix-map="+strings.TrimSpace(string(resources))+"=clang", "-S", u.source, "-o", out)
	if msg, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s as %s: %w\n%s", u.source, u.name, err, msg)
	}
	return nil
}

// hash is over everything that the PTX depends on.
func (u unit) hash(compiler string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, compiler, flags, u.defines)
	headers, err := filepath.Glob("*.cuh")
	if err != nil {
		return "", err
	}
	for _, name := range append(headers, u.source) {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// describe reads the kernels of a module.
func describe(text string) ([]*kernels.Kernel, error) {
	m, err := ptx.Parse(text)
	if err != nil {
		return nil, err
	}
	for _, e := range ptx.Check(m) {
		return nil, e
	}
	var all []*kernels.Kernel
	for f := range m.Funcs() {
		if !f.Entry || f.Body == nil {
			continue
		}
		k := &kernels.Kernel{Name: f.Name, Shared: shared(m, f)}
		offsets, _ := ptx.Layout(f.Params)
		for i, v := range f.Params {
			k.Params = append(k.Params, kernels.Param{Offset: int(offsets[i]), Size: int(v.Size())})
		}
		if n, ok := f.Directive("maxntid"); ok {
			k.MaxThreads = 1
			for _, d := range n {
				k.MaxThreads *= int(d)
			}
		}
		all = append(all, k)
	}
	return all, nil
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
