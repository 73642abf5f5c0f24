// Package cpufeat describes the processor and chooses the instruction sets
// that kernels may use. Tests run every kernel on every level by Set.
package cpufeat

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A Level is a set of instructions that kernels are written for. On x86-64
// each level includes the ones below.
type Level uint8

// The levels.
const (
	Generic    Level = iota // Go without assembly
	AVX2                    // AVX2, FMA and F16C: x86-64-v3
	AVX512                  // AVX-512 F, BW, CD, DQ and VL: x86-64-v4
	AVX512BF16              // and products of pairs of bfloat16
	NEON                    // the vectors of ARM's 64-bit processors
)

var names = []string{"generic", "avx2", "avx512", "avx512bf16", "neon"}

// String returns the name that ParseLevel reads.
func (l Level) String() string { return names[l] }

// ParseLevel returns the level of that name if this machine has it.
func ParseLevel(name string) (Level, error) {
	if i := slices.IndexFunc(levels, func(l Level) bool { return l.String() == name }); i >= 0 {
		return levels[i], nil
	}
	if slices.Contains(names, name) {
		return Generic, fmt.Errorf("this machine has no level %s, or this build no kernels for it; there are %s", name, list(levels))
	}
	return Generic, fmt.Errorf("there is no level %q; this machine has %s", name, list(levels))
}

func list(levels []Level) string {
	var b strings.Builder
	for i, l := range levels {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(l.String())
	}
	return b.String()
}

// Env is the environment variable that names the level of a process.
const Env = "WARPLINE_CPU"

var (
	levels = detect()
	active atomic.Uint32
	refuse error // of Env
)

func init() {
	l := best(levels, Describe)
	if name := os.Getenv(Env); name != "" {
		asked, err := ParseLevel(name)
		if err != nil {
			refuse = fmt.Errorf("%s=%s: %w", Env, name, err)
		} else {
			l = asked
		}
	}
	active.Store(uint32(l))
}

// best is the level that a processor is fastest at, by its features and the
// table of models alone and never by a measurement: a run that is resumed on
// the same machine has the same level.
func best(levels []Level, describe func() Processor) Level {
	l := levels[len(levels)-1]
	if l == AVX512BF16 && !describe().FastPairs() {
		return AVX512
	}
	return l
}

// Check returns what is wrong with the environment variable [Env]. Devices that
// compute on this processor, and programs, refuse what it refuses.
func Check() error { return refuse }

// Levels returns the levels of this machine, the lowest first. With the build
// tag purego there is Generic alone.
func Levels() []Level { return slices.Clone(levels) }

// Active returns the level that kernels use: the one that the environment
// variable [Env] names, or the best by the table of models, unless Set chose
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
	ID       ID       // by which it is found in the table of models
	Cores    int      // physical cores that the process may see
	Threads  int      // logical processors that the process may use
	Features []string // instruction sets of interest, whatever the build tags
}

// Describe returns the properties of the processor, which it reads from the system once. The caller must not change the
// list of features.
var Describe = sync.OnceValue(func() Processor {
	p := Processor{Threads: runtime.NumCPU(), Features: features(), ID: identify()}
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
