// Package cpufeat describes the processor and chooses the instruction sets
// that kernels may use. Tests run every kernel on every level by Set.
package cpufeat

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// A Level is a set of instructions that kernels are written for. Each level
// includes the ones below.
type Level uint8

// The levels. Kernels for ARM use Generic until there are NEON ones.
const (
	Generic Level = iota // Go without assembly
	AVX2                 // AVX2, FMA and F16C: x86-64-v3
	AVX512               // AVX-512 F, BW, CD, DQ and VL: x86-64-v4
)

var names = []string{"generic", "avx2", "avx512"}

// String returns the name that ParseLevel reads.
func (l Level) String() string { return names[l] }

// ParseLevel returns the level of that name if this machine has it.
func ParseLevel(name string) (Level, error) {
	for _, l := range levels {
		if l.String() == name {
			return l, nil
		}
	}
	return Generic, fmt.Errorf("cpufeat: this machine has no level %q; it has %v", name, levels)
}

var (
	levels = detect()
	active atomic.Uint32
)

func init() { active.Store(uint32(levels[len(levels)-1])) }

// Levels returns the levels of this machine, the lowest first. With the build
// tag purego there is Generic alone.
func Levels() []Level { return slices.Clone(levels) }

// Active returns the level that kernels use: the highest, unless Set chose
// another.
func Active() Level { return Level(active.Load()) }

// Set makes kernels use level l, one of Levels, until restore is called. The
// choice is the process's: callers must not run kernels at the same time.
func Set(l Level) (restore func()) {
	if !slices.Contains(levels, l) {
		panic(fmt.Sprintf("cpufeat: level %d is none of %v", l, levels))
	}
	before := active.Swap(uint32(l))
	return func() { active.Store(before) }
}

// A Processor is what is known of the machine's processor.
type Processor struct {
	Model    string   // as its maker writes it; "" if unknown
	Cores    int      // physical cores that the process may see
	Threads  int      // logical processors that the process may use
	Features []string // instruction sets of interest, whatever the build tags
}

// Describe returns the properties of the processor, which it reads from the system once. The caller must not change the
// list of features.
var Describe = sync.OnceValue(func() Processor {
	p := Processor{Threads: runtime.NumCPU(), Features: features()}
	p.Model, p.Cores = system()
	if p.Cores <= 0 {
		p.Cores = p.Threads
	}
	return p
})

// A feature is a named property of the processor.
type feature struct {
	name string
	has  bool
}

// present returns the names of the features that the processor has.
func present(all []feature) []string {
	var list []string
	for _, f := range all {
		if f.has {
			list = append(list, f.name)
		}
	}
	return list
}
