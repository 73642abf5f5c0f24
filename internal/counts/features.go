package counts

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// sum is a quantity of a launch: features, each times a rate, added in the order of their names, for the same bits each time.
type sum []term

type term struct {
	rate    float64
	feature feature
}

// newSum parses features by name, with what each adds. They are those that bench/dryrun/fit.py has: B is a launch's blocks, x, y and z
// the dimensions of its grid, Y the bytes and F the operations of its plan, O and I the elements of results and operands, p7 word 7 of
// its parameters, p7^64 that over 64, rounded up. Products and ratios are written as B*p7/p5.
func newSum(rates map[string]float64) (s sum) {
	for _, name := range slices.Sorted(maps.Keys(rates)) {
		s = append(s, term{rates[name], newFeature(name)})
	}
	return s
}

func (s sum) of(f *Facts) (total float64) {
	for _, t := range s {
		total += float64(t.rate * t.feature(f))
	}
	return total
}

// Facts are what is known of a launch before it.
type Facts struct {
	Bytes, FLOPs int64 // of its plan
	Out, In      int   // elements
	Grid         [3]int
	Numbers      []int32 // of its parameters
}

// FactsOf are those of a step of a plan.
func FactsOf(k *device.Kernel, s *device.Step) *Facts {
	return &Facts{k.Bytes, k.FLOPs, elements(k.Out), elements(k.Op.Ins()), s.Grid, s.Numbers}
}

func (f *Facts) blocks() float64 { return float64(f.Grid[0]) * float64(f.Grid[1]) * float64(f.Grid[2]) }

// feature is a number that is known of a launch before it.
type feature func(f *Facts) float64

func newFeature(name string) feature {
	if first, second, ok := strings.Cut(name, "*"); ok {
		a, b := newFeature(first), newFeature(second)
		return func(f *Facts) float64 { return a(f) * b(f) }
	}
	if first, second, ok := strings.Cut(name, "/"); ok {
		a, b := newFeature(first), newFeature(second)
		return func(f *Facts) float64 { return a(f) / max(1, b(f)) }
	}
	if first, tile, ok := strings.Cut(name, "^"); ok {
		a, side := newFeature(first), float64(max(1, number(tile)))
		return func(f *Facts) float64 { return math.Ceil(a(f) / side) }
	}
	return plain(name)
}

// plain is a feature of one letter, or a word of the parameters.
func plain(name string) feature {
	switch name {
	case "B":
		return func(f *Facts) float64 { return f.blocks() }
	case "Y":
		return func(f *Facts) float64 { return float64(f.Bytes) }
	case "F":
		return func(f *Facts) float64 { return float64(f.FLOPs) }
	case "O":
		return func(f *Facts) float64 { return float64(f.Out) }
	case "I":
		return func(f *Facts) float64 { return float64(f.In) }
	case "x", "y", "z":
		side := name[0] - 'x'
		return func(f *Facts) float64 { return float64(f.Grid[side]) }
	}
	word := number(name[1:])
	return func(f *Facts) float64 { return f.word(word) }
}

// number is one in the name of a feature.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err) // a mistake in the table
	}
	return n
}

// largest is where words begin that may be multipliers which stand for divisions, and no sizes.
const largest = 1 << 20

// word is a word of the parameters, 0 where it is no size.
func (f *Facts) word(i int) float64 {
	if i >= len(f.Numbers) || f.Numbers[i] <= 0 || f.Numbers[i] >= largest {
		return 0
	}
	return float64(f.Numbers[i])
}

func elements(list []*ir.Type) (n int) {
	for _, t := range list {
		n += t.Size()
	}
	return n
}
