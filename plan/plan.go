// Package plan finds what a program needs by running it on a device that computes nothing: memory that has run out is explained
// by what would have fitted.
//
//	var oom *tensor.OOMError
//	if errors.As(err, &oom) {
//		plan.Explain(oom, plan.Program{Batch: 64, Smaller: "Size: %d", Run: train})
//		oom.WriteText(os.Stderr)
//	}
//
// Where train makes its model in the env that it is given, and makes two or three steps of a batch size that it is given.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/warpline-ml/warpline/tensor"
)

// Program is a program that can be run again from its start.
type Program struct {
	// Run makes everything that the program has on the device in env, and runs it until it holds the most it ever does: a
	// training for two steps at least, since an optimizer makes its state in the first. Values mean nothing there, so it must
	// not wait for some, and what it does beside, such as writing files, it does again, some thirty times. An error that is
	// context.Canceled ends the explanation.
	Run func(env *tensor.Env, s Setting) error

	// Pace is Run by the few steps that tell how long one takes, for [Report.Weigh]; nil: those of Run do.
	Pace func(env *tensor.Env, s Setting) error

	Batch    int     // samples of a step
	Smaller  string  // how to choose another number, with %d: "--batch %d"; "": Run has no batch
	Multiple int     // what numbers of samples are multiples of: the parts in which Run takes a batch anyway; 0: 1
	Split    string  // how to take a batch in equal parts, with %d: "--accumulate %d"; "": Run does not look at Setting.Parts
	Levers   []Lever // what else Run can do
}

// Setting is what a program runs with.
type Setting struct {
	Batch  int      // samples of a step
	Parts  int      // in which the batch is taken, one after another; 1: whole
	Levers []string // those that are on, by name
}

// On tells whether a lever is on.
func (s *Setting) On(lever string) bool { return slices.Contains(s.Levers, lever) }

// Lever is something that a program can do to need less.
type Lever struct {
	Name  string // for Setting.On
	Flag  string // what a person changes: "--recompute"
	Cost  string // what it costs: "one more forward pass"
	Whole bool   // it cannot be with a batch in parts
	Less  bool   // another lever does the same and more: it is not tried beside others
	Tries bool   // it chooses by many runs itself: Explain leaves it out
}

// Explain adds to an out-of-memory what would have fitted: the largest batch, and which levers save how much of what the program
// holds at most, alone or together, by running the program again under the same limit. It counts nothing that the device held
// beside the program. The error is one of the program, which does not run elsewhere as it did; the report is as before then.
func Explain(e *tensor.OOMError, p Program) error {
	p.Levers = slices.DeleteFunc(slices.Clone(p.Levers), func(l Lever) bool { return l.Tries })
	x := &explainer{e: e, p: p}
	x.whole = Setting{Batch: p.Batch, Parts: 1}
	if err := x.explain(); err != nil {
		return fmt.Errorf("the program was run again to explain an out-of-memory, and failed: %w", err)
	}
	return nil
}

// explainer is an explanation under way.
type explainer struct {
	e     *tensor.OOMError
	p     Program
	whole Setting // the program as it is
	most  int64   // that it holds at once
	found []tensor.Lever
	idle  []string // flags of levers that do not help after all
	ended error    // by which the program says that enough is enough
}

func (x *explainer) explain() error {
	most, err := x.peak(tensor.Rehearsal{}, x.whole, false)
	if err != nil {
		return err
	}
	x.most = most
	largest := x.p.Batch
	_, failed := x.peak(tensor.Rehearsal{Limit: 1}, x.whole, false)
	if failed != nil {
		largest = x.largest(x.whole, x.p.Batch)
		x.single(largest)
		if !slices.ContainsFunc(x.found, func(l tensor.Lever) bool { return l.Fits }) {
			x.together()
		}
	}
	least := x.whole
	least.Batch, least.Levers = min(max(1, x.p.Multiple), x.p.Batch), x.helpful()
	needed, atLeast := x.needed(x.whole), x.needed(least)
	if x.ended != nil {
		return x.ended
	}
	r := &x.e.Report
	r.Rehearsed, r.Batch, r.LargestBatch, r.Needed, r.Least = true, x.p.Batch, largest, needed, atLeast
	x.acquit(failed)
	if x.most > x.e.Within() { // one piece or many, it would not do
		r.Stuck = 0
		r.Levers = slices.DeleteFunc(r.Levers, func(l tensor.Lever) bool { return strings.HasPrefix(l.Flag, tensor.LeverEarly) })
	}
	r.Levers = slices.DeleteFunc(r.Levers, func(l tensor.Lever) bool { return slices.Contains(x.idle, l.Flag) })
	if x.p.Split != "" {
		r.Levers = slices.DeleteFunc(r.Levers, func(l tensor.Lever) bool { return strings.HasPrefix(l.Flag, "data.Split") })
	}
	r.Suggest(x.found...)
	return nil
}

// acquit takes values kept from turn to turn for no mistake after all where the program runs out of memory again without having
// kept them.
func (x *explainer) acquit(failed error) {
	var again *tensor.OOMError
	if !errors.As(failed, &again) {
		return
	}
	for _, l := range slices.Clone(x.e.Levers) {
		if strings.HasPrefix(l.Flag, tensor.LeverLetGo) && !slices.ContainsFunc(again.Levers, func(o tensor.Lever) bool { return o.Fault && o.Line == l.Line }) {
			l.Fault = false
			x.e.Suggest(l)
		}
	}
}

// peak runs the program, and is the most that it held at once. The error is the program's, whatever it panics with: values mean
// nothing, and it may have come to rely on some.
func (x *explainer) peak(r tensor.Rehearsal, s Setting, noGrad bool) (most int64, err error) {
	if x.ended != nil {
		return 0, x.ended
	}
	env, err := x.e.Rehearse(r)
	if err != nil {
		return 0, err
	}
	dev := env.Device()
	if noGrad {
		env = env.NoGrad()
	}
	if err = x.run(env, s); errors.Is(err, context.Canceled) {
		x.ended = err
	}
	return dev.Memory().Peak, err
}

// run runs the program once, in a scope that is closed after it.
func (x *explainer) run(env *tensor.Env, s Setting) (err error) {
	return performed(env, func(env *tensor.Env) error { return x.p.Run(env, s) })
}

// performed is how a program ends in a scope that is closed after it, a panic among the ways.
func performed(env *tensor.Env, run func(env *tensor.Env) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it panics: %v", v)
		}
	}()
	_, failed := tensor.Try(env, func(env *tensor.Env) int {
		err = run(env)
		return 0
	})
	return cmp.Or(failed, err)
}

// fits tells whether the program runs under the limit. One that fails for another reason does not.
func (x *explainer) fits(s Setting) bool {
	_, err := x.peak(tensor.Rehearsal{Limit: 1}, s, false)
	return err == nil
}

// largest is the largest batch below a number that fits; 0: none.
func (x *explainer) largest(s Setting, below int) int {
	if x.p.Smaller == "" {
		return 0
	}
	step := max(1, x.p.Multiple)
	low, high := 0, (below+step-1)/step
	for high-low > 1 {
		middle := low + (high-low)/2
		if s.Batch = middle * step; x.fits(s) {
			low = middle
		} else {
			high = middle
		}
	}
	return low * step
}

// needed is the limit in bytes under which the program runs, to two percent; without a limit to compare with, what it holds at
// most; 0: it fails for another reason.
func (x *explainer) needed(s Setting) int64 {
	peak, err := x.peak(tensor.Rehearsal{}, s, false)
	limit := float64(x.e.Within())
	if err != nil || limit == 0 || peak == 0 {
		return peak
	}
	// A program that nothing limits holds what a limit would collect, and less than the allocator takes, by rounding and fragments.
	low, high := float64(peak)/2/limit, (2*float64(peak)+segments)/limit
	for high-low > low/50 {
		middle := (low + high) / 2
		if _, err := x.peak(tensor.Rehearsal{Limit: middle}, s, false); err == nil {
			high = middle
		} else {
			low = middle
		}
	}
	return int64(high * limit)
}

// segments is more than the least that an allocator takes of a device, for however little.
const segments = 64 << 20

// try adds what a lever saves, if anything.
func (x *explainer) try(l tensor.Lever, s Setting) (fits bool) {
	peak, err := x.peak(tensor.Rehearsal{}, s, false)
	if err != nil || peak >= x.most {
		return false
	}
	l.Saves, l.Fits, l.Tried = x.most-peak, x.fits(s), true
	x.found = append(x.found, l)
	return l.Fits
}

// single tries each lever alone.
func (x *explainer) single(largest int) {
	for _, l := range x.p.Levers {
		s := x.whole
		s.Levers = []string{l.Name}
		x.try(tensor.Lever{Flag: l.Flag, Cost: l.Cost}, s)
	}
	x.parts(x.whole, nil)
	if largest > 0 {
		x.try(x.smaller(largest), Setting{Batch: largest, Parts: 1})
	}
	x.outside()
}

func (x *explainer) smaller(n int) tensor.Lever {
	return tensor.Lever{Flag: fmt.Sprintf(x.p.Smaller, n), Cost: "fewer samples a step"}
}

// costOfParts is what taking a batch in parts costs.
const costOfParts = "smaller products"

// parts adds the fewest equal parts that fit, beside other levers; of parts that do not fit, the most.
func (x *explainer) parts(s Setting, with []Lever) bool {
	var numbers []int
	for n := 2; x.p.Split != "" && n <= s.Batch; n++ {
		if s.Batch%n == 0 {
			numbers = append(numbers, n)
		}
	}
	i := sort.Search(len(numbers), func(i int) bool {
		s.Parts = numbers[i]
		return x.fits(s)
	})
	if len(numbers) == 0 || i == len(numbers) && len(with) > 0 {
		return false
	}
	s.Parts = numbers[min(i, len(numbers)-1)]
	return x.try(joined(append(slices.Clone(with), Lever{Flag: fmt.Sprintf(x.p.Split, s.Parts), Cost: costOfParts})), s)
}

// outside tries what is no part of the program: an env without gradients, and the allocator's settings that were found.
func (x *explainer) outside() {
	for _, l := range x.e.Levers {
		r, noGrad := tensor.Rehearsal{Limit: 1}, strings.HasPrefix(l.Flag, tensor.LeverNoGrad)
		if conf, ok := strings.CutPrefix(l.Flag, tensor.AllocEnv+"="); ok {
			r.AllocConf = conf
		} else if !noGrad {
			continue
		}
		_, err := x.peak(r, x.whole, noGrad)
		l.Tried, l.Fits = true, err == nil
		helps := l.Fits
		if noGrad {
			peak, err := x.peak(tensor.Rehearsal{}, x.whole, true) // an error: it wants the gradients
			helps, l.Saves = err == nil && peak < x.most, x.most-peak
		}
		if helps {
			x.found = append(x.found, l)
		} else {
			x.idle = append(x.idle, l.Flag)
		}
	}
}

// helpful are the levers that save something, by name.
func (x *explainer) helpful() (names []string) {
	for _, l := range x.p.Levers {
		if !l.Less && slices.ContainsFunc(x.found, func(f tensor.Lever) bool { return f.Flag == l.Flag }) {
			names = append(names, l.Name)
		}
	}
	return names
}

// together finds levers that are enough only together: as few as there are, in the program's order, with parts of the batch, and
// at last with a smaller one.
func (x *explainer) together() {
	s := x.whole
	s.Levers = x.helpful()
	switch {
	case x.fits(s):
		x.few(s)
	case x.parts(x.divisible(s)):
	default:
		if n := x.largest(s, x.p.Batch); n > 0 && len(s.Levers) > 0 {
			s.Batch = n
			l := x.smaller(n)
			x.try(joined(append(x.named(s.Levers), Lever{Flag: l.Flag, Cost: l.Cost})), s)
		}
	}
}

// divisible is a setting without the levers that cannot be with parts, and the levers that are left.
func (x *explainer) divisible(s Setting) (Setting, []Lever) {
	left := slices.DeleteFunc(x.named(s.Levers), func(l Lever) bool { return l.Whole })
	s.Levers = nil
	for _, l := range left {
		s.Levers = append(s.Levers, l.Name)
	}
	return s, left
}

// few leaves out levers without which the others are enough.
func (x *explainer) few(s Setting) {
	for _, name := range slices.Clone(s.Levers) {
		fewer := s
		if fewer.Levers = slices.DeleteFunc(slices.Clone(s.Levers), func(o string) bool { return o == name }); x.fits(fewer) {
			s = fewer
		}
	}
	x.try(joined(x.named(s.Levers)), s)
}

func (x *explainer) named(names []string) (levers []Lever) {
	for _, l := range x.p.Levers {
		if slices.Contains(names, l.Name) {
			levers = append(levers, l)
		}
	}
	return levers
}

// joined is several levers as one.
func joined(levers []Lever) tensor.Lever {
	var flags, costs []string
	for _, l := range levers {
		flags, costs = append(flags, l.Flag), append(costs, l.Cost)
	}
	return tensor.Lever{Flag: strings.Join(flags, " "), Cost: strings.Join(costs, ", ")}
}
