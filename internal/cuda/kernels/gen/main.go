// Gen compiles the kernels with clang-19: no header, library or tool of NVIDIA's. It compiles the modules whose sources,
// flags or compiler have changed, all with -all, prints their PTX in canonical form and writes index.json. Without that
// compiler it leaves the modules as they are and says so. Run it by go generate.
//
// With -pack it puts the modules of all targets into the archive that a build with the tag packed embeds. With -diff it
// compares the instructions in the index with those of another commit's, for a reviewer; with -print it writes out a
// module that is kept as edits of another.
package main

import (
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

func main() {
	only := flag.String("only", "", "compile only the modules whose name begins so, changed or not")
	all := flag.Bool("all", false, "compile all modules, changed or not")
	pack := flag.Bool("pack", false, "make the archive of a release build, and nothing else")
	target := flag.String("target", runtime.GOOS+"/"+runtime.GOARCH, "with -pack: the `system/processor` of the release")
	diff := flag.String("diff", "", "print how the instructions differ from those of a `commit`, and nothing else")
	whole := flag.String("print", "", "print the text of a `module`, as sm_80/copy_4, and nothing else")
	flag.Parse()
	var err error
	switch {
	case *pack:
		err = archive(*target)
	case *diff != "":
		err = compare(os.Stdout, *diff)
	case *whole != "":
		err = write(os.Stdout, *whole)
	default:
		err = generate(func(u unit) bool { return *all || *only != "" && strings.HasPrefix(u.name, *only) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate compiles the modules that anew names or that are stale, and writes the index.
func generate(anew func(u unit) bool) error {
	here, err := exec.Command(compiler, "-dumpversion").Output()
	if err != nil {
		fmt.Fprintf(os.Stderr, "gen: no %s here; the committed PTX stays as it is\n", compiler)
		return nil
	}
	version := "clang " + strings.TrimSpace(string(here))
	old, whole := committed()
	if old.Compiler != "" && old.Compiler != version {
		fmt.Fprintf(os.Stderr, "gen: the committed PTX is of %s, here is %s; it stays as it is\n", old.Compiler, version)
		return nil
	}
	units, err := collect()
	if err != nil {
		return err
	}
	bring := func(u unit) (*kernels.Module, string, error) { return u.bring(version, old, whole, anew(u)) }
	modules, texts, err := each(units, bring)
	more := older(units, modules, texts, old)
	moreModules, moreTexts, moreErr := each(more, bring)
	units, modules, texts = append(more, units...), append(moreModules, modules...), append(moreTexts, texts...)
	if err := errors.Join(store(forms(units, texts)), err, moreErr); err != nil {
		return err
	}
	index := &kernels.Index{Compiler: version, Flags: map[string][]string{}, Modules: modules}
	for _, u := range units {
		index.Flags[u.target] = flags(u.target)
	}
	return errors.Join(replace("index.json", index.String()), replace("kernels.json", index.Bare().String()), sweep(index))
}

// each brings modules and their texts, as many at once as there are processors.
func each(units []unit, bring func(unit) (*kernels.Module, string, error)) ([]*kernels.Module, []string, error) {
	modules, texts, errs := make([]*kernels.Module, len(units)), make([]string, len(units)), make([]error, len(units))
	slots := make(chan struct{}, runtime.NumCPU())
	var wg sync.WaitGroup
	for i, u := range units {
		wg.Go(func() {
			slots <- struct{}{}
			modules[i], texts[i], errs[i] = bring(u)
			<-slots
		})
	}
	wg.Wait()
	return modules, texts, errors.Join(errs...)
}

// older is the units to be made for the older target: of the modules of the base whose text does not stand for it. Of a
// text that is as it was, the index knows.
func older(units []unit, modules []*kernels.Module, texts []string, old *kernels.Index) (more []unit) {
	had := map[string]bool{}
	for _, m := range old.Modules {
		if m.Target == kernels.Older {
			had[m.Name] = true
		}
	}
	for i, u := range units {
		if u.target != kernels.Base || u.later || texts[i] == "" {
			continue
		}
		kept := slices.Contains(old.Modules, modules[i])
		if kept && had[u.name] || !kept && !stands(texts[i]) {
			more = append(more, unit{source: u.source, name: u.name, defines: u.defines, target: kernels.Older})
		}
	}
	return more
}

// stands reports whether a text of the base is one of the older target but for its name.
func stands(text string) bool {
	m, err := ptx.Parse(string(kernels.Retarget([]byte(text))))
	return err == nil && ptx.Check(m) == nil
}

// bring makes a module and its text what its sources say. What the index knows of it is kept where its text is, if the
// index is whole.
func (u unit) bring(version string, old *kernels.Index, whole, anew bool) (*kernels.Module, string, error) {
	hash, err := u.hash(version)
	if err != nil {
		return nil, "", err
	}
	text, err := u.text()
	_, missing := os.Stat(u.path(".lines"))
	if anew = anew || err != nil || missing != nil || !strings.HasPrefix(text, u.head(hash)); anew {
		if text, err = u.compile(hash); err != nil {
			return nil, "", err
		}
	}
	known := find(old, u, hash)
	if known != nil && whole && !anew {
		return known, text, nil
	}
	m, err := u.describe(text, hash)
	switch {
	case err != nil && !anew: // a merge that went wrong, say
		return u.bring(version, old, whole, true)
	case err != nil:
		return nil, "", err
	case known != nil:
		keep(m, known)
	}
	return m, text, nil
}

// keep takes over what gen does not find out by itself.
func keep(m, known *kernels.Module) {
	for _, k := range m.Kernels {
		for _, old := range known.Kernels {
			if old.Name == k.Name {
				k.Registers = old.Registers
			}
		}
	}
}

// committed is the index that there is. Where it cannot be read as a whole, as amid a rebase, it is what its lines say.
func committed() (ix *kernels.Index, whole bool) {
	text, err := os.ReadFile("index.json")
	if err != nil {
		return &kernels.Index{}, false
	}
	if ix, err = kernels.ParseIndex(text); err == nil {
		return ix, true
	}
	return kernels.Salvage(string(text)), false
}

func find(ix *kernels.Index, u unit, hash string) *kernels.Module {
	for _, m := range ix.Modules {
		if m.Name == u.name && m.Target == u.target && m.Hash == hash {
			return m
		}
	}
	return nil
}

// sweep removes files of modules that are no more.
func sweep(ix *kernels.Index) error {
	keep := map[string]bool{}
	for _, m := range ix.Modules {
		keep[m.Path(".ptx")], keep[m.Path(".edits")], keep[m.Path(".lines")] = true, true, true
	}
	files, err := filepath.Glob("ptx/*/*")
	for _, f := range files {
		if !keep[filepath.ToSlash(f)] {
			err = errors.Join(err, os.Remove(f))
		}
	}
	return err
}

// byRow makes the units of sources whose modules follow from rows of ops.
var byRow = map[string]func(source string) ([]unit, error){"//warpline:values": valued, "//warpline:rules": ruled}

// collect reads the sources' module lines.
func collect() ([]unit, error) {
	sources, err := filepath.Glob("src/*.cu")
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
				units = append(units, declared(filepath.ToSlash(source), strings.Fields(rest))...)
			}
			if of := byRow[strings.TrimSpace(line)]; of != nil {
				more, err := of(filepath.ToSlash(source))
				if err != nil {
					return nil, err
				}
				units = append(units, more...)
			}
		}
	}
	slices.SortFunc(units, func(a, b unit) int { return strings.Compare(a.target+" "+a.name, b.target+" "+b.name) })
	return units, nil
}

// declared is the units of a module line, one for each target.
func declared(source string, words []string) (units []unit) {
	var defines, targets []string
	for _, w := range words[1:] {
		if t, ok := strings.CutPrefix(w, "@"); ok {
			targets = append(targets, t)
		} else {
			defines = append(defines, w)
		}
	}
	later := targets != nil && !slices.Contains(targets, kernels.Older)
	if targets == nil {
		targets = []string{kernels.Base}
	}
	for _, t := range targets {
		if t != kernels.Older { // which older finds
			units = append(units, unit{source: source, name: words[0], defines: defines, target: t, later: later && t == kernels.Base})
		}
	}
	return units
}

// replace writes a file where it says something else, so that what did not change keeps its time.
func replace(path, text string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return durable.WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}
