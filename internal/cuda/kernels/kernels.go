// Package kernels has the engine's GPU kernels: CUDA C++ in src and, in ptx, what clang makes of it for each target, with
// index.json, which says of every kernel what a reader would count, and kernels.json, what the engine wants of it. A module
// much like its sibling of another element type is there as edits of that one. The PTX is committed, so that nobody needs
// the compiler to build; go generate makes it anew where a source has changed.
//
// A source names the modules it is compiled into in lines of the form
//
//	//warpline:module NAME [-DMACRO=VALUE …] [@TARGET …]
//
// One module is what a driver compiles at once: keep to it what a training needs together, a family for an element type,
// without the sizes and variants that it needs instead. The target is sm_80 where none is named: the base, which has every
// module. Another target has modules for the cards that it is for, and they take the place of the base's there.
//
// Cards of compute capability 7.5 get the base's text with their target's name in it where that is all it takes, which
// needs no file. What holds an instruction that they lack is compiled for them from the same source. A module whose line
// names targets and not sm_75 they do without: products in TF32, in whose place theirs are of float32.
package kernels

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

//go:generate go run ./gen

// Base is the target that has every module.
const Base = "sm_80"

// Older is the target of the cards before the base.
const Older = "sm_75"

// Retarget is the text of a module of the base with the older target's name.
func Retarget(text []byte) []byte {
	return bytes.Replace(text, []byte("\n.target "+Base+"\n"), []byte("\n.target "+Older+"\n"), 1)
}

// Library is the modules of some targets.
type Library struct {
	files   fs.FS
	targets []string  // that there are files of, the latest card's first
	modules []*Module // of these targets

	mu   sync.Mutex
	sets map[string]*Set // by its targets
}

// Open reads a library: kernels.json, and files of all or some of the targets that it lists.
func Open(files fs.FS) (*Library, error) {
	text, err := fs.ReadFile(files, "kernels.json")
	if err != nil {
		return nil, err
	}
	ix, err := ParseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("kernels.json: %w", err)
	}
	l := &Library{files: files, sets: map[string]*Set{}}
	for target := range ix.Flags {
		if _, err := fs.Stat(files, "ptx/"+target); err == nil {
			l.targets = append(l.targets, target)
		}
	}
	slices.SortFunc(l.targets, func(a, b string) int { return slices.Compare(rank(b), rank(a)) })
	for _, m := range ix.Modules {
		if slices.Contains(l.targets, m.Target) {
			m.library = l
			for _, k := range m.Kernels {
				k.Module = m
			}
			l.modules = append(l.modules, m)
		}
	}
	return l, nil
}

// Embedded is the library that is part of the program: the base and what is before it, or all targets in a build with the
// tag packed.
var Embedded = sync.OnceValue(func() *Library {
	l, err := Open(embedded())
	if err != nil {
		panic(fmt.Sprintf("kernels: the embedded modules: %v", err)) // made by gen, checked by a test
	}
	return l
})

// rank orders targets by the cards that they are for.
func rank(target string) []int {
	sm, only := capability(target)
	if only {
		return []int{sm, 1}
	}
	return []int{sm, 0}
}

// capability is the compute capability, times ten, that a target needs, and whether it is for no other.
func capability(target string) (sm int, only bool) {
	number, only := strings.CutSuffix(strings.TrimPrefix(target, "sm_"), "a")
	if _, err := fmt.Sscan(number, &sm); err != nil {
		panic("kernels: a target named " + target) // a folder of ptx that gen does not make
	}
	return sm, only
}

// Set is the modules that a card gets. Cards with the same set get the same bits.
type Set struct {
	Targets []string // whose modules it has, those before others of the same name
	modules []*Module
	kernels map[string]*Kernel
}

// For is the set of a compute capability. It is an error if a module is missing.
func (l *Library) For(compute [2]int) (*Set, error) {
	var targets []string
	for _, t := range l.targets {
		if sm, only := capability(t); sm == compute[0]*10+compute[1] || sm < compute[0]*10+compute[1] && !only {
			targets = append(targets, t)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := strings.Join(targets, " ")
	if l.sets[key] == nil {
		l.sets[key] = l.set(targets)
	}
	if missing := l.missing(l.sets[key]); missing > 0 {
		return nil, fmt.Errorf("%d of the kernels' modules are not compiled for compute capability %d.%d", missing, compute[0], compute[1])
	}
	return l.sets[key], nil
}

func (l *Library) set(targets []string) *Set {
	s := &Set{kernels: map[string]*Kernel{}}
	byName := map[string]*Module{}
	for _, t := range targets {
		n := len(byName)
		for _, m := range l.modules {
			if m.Target == t && byName[m.Name] == nil {
				byName[m.Name] = m
				s.modules = append(s.modules, m)
			}
		}
		if len(byName) > n {
			s.Targets = append(s.Targets, t)
		}
	}
	if slices.Contains(targets, Older) && !slices.Contains(targets, Base) {
		s.modules = append(s.modules, l.retargeted(byName)...)
	}
	slices.SortFunc(s.modules, func(a, b *Module) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range s.modules {
		for _, k := range m.Kernels {
			s.kernels[k.Name] = k
		}
	}
	return s
}

// retargeted is what the older target has of the base's, beside the modules of its own.
func (l *Library) retargeted(own map[string]*Module) (modules []*Module) {
	for _, m := range l.modules {
		if m.Target != Base || m.Later || own[m.Name] != nil {
			continue
		}
		older := &Module{Name: m.Name, Target: Older, Source: m.Source, Hash: m.Hash, like: m}
		for _, k := range m.Kernels {
			k := *k
			k.Module = older
			older.Kernels = append(older.Kernels, &k)
		}
		modules = append(modules, older)
	}
	return modules
}

// missing is how many modules of the base a set lacks that every card needs.
func (l *Library) missing(s *Set) (n int) {
	for _, m := range l.modules {
		if m.Target == Base && !m.Later && !slices.ContainsFunc(s.modules, func(have *Module) bool { return have.Name == m.Name }) {
			n++
		}
	}
	return n
}

// Modules lists the modules of all targets.
func (l *Library) Modules() []*Module { return l.modules }

// Find returns the kernel of a name, which is unique over all modules.
func (s *Set) Find(name string) (*Kernel, bool) {
	k, ok := s.kernels[name]
	return k, ok
}

// Modules lists the modules, sorted by name.
func (s *Set) Modules() []*Module { return s.modules }
