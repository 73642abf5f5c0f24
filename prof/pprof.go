package prof

import (
	"io"
	"time"

	"github.com/google/pprof/profile"

	"github.com/warpline-ml/warpline/internal/durable"
)

// WritePprof writes the device's time as a profile for go tool pprof, with the calls of the program that led to the work, the
// operation as the innermost. Labels are the module, the operation, the kernel and the device; sample types the device's
// time, launches, bytes and FLOP. The file is there whole or not at all.
func (p *Profile) WritePprof(path string) error {
	return durable.WriteFile(path, p.pprof(func(e *entry) []int64 {
		values := []int64{int64(e.worked()), 0, 0, 0}
		if e.Step == 0 {
			values[1] = 1
			values[2], values[3] = e.cost()
		}
		return values
	}, "device", "nanoseconds", "calls", "count", "bytes", "bytes", "flops", "count"))
}

// WriteHostPprof is WritePprof of the time in which the host asked for the work: the driver's, and the waits.
func (p *Profile) WriteHostPprof(path string) error {
	return durable.WriteFile(path, p.pprof(func(e *entry) []int64 {
		if e.Step > 0 || e.Hosted {
			return []int64{0, 0}
		}
		return []int64{e.took, 1}
	}, "host", "nanoseconds", "calls", "count"))
}

// pprof makes a profile of values of each piece of work.
func (p *Profile) pprof(values func(e *entry) []int64, types ...string) func(w io.Writer) error {
	b := newPprof(types...)
	b.out.DurationNanos = int64(p.Took)
	b.out.TimeNanos = time.Now().UnixNano() - int64(p.Took)
	stacks := make([][]*profile.Location, len(p.sites))
	for i := range p.sites {
		for _, f := range p.sites[i].Frames {
			stacks[i] = append(stacks[i], b.location(f))
		}
	}
	for i := range p.all {
		e := p.at(i)
		if !e.work() {
			continue
		}
		labels := map[string][]string{"op": {e.op()}, "kernel": {e.deed()}, "device": {p.Devices[e.Device].Name}}
		if e.part > 0 {
			labels["module"] = []string{p.ranges[e.part-1].Name}
		}
		b.out.Sample = append(b.out.Sample, &profile.Sample{
			Location: append([]*profile.Location{b.location(frame{Function: e.op()})}, stacks[e.Site]...),
			Value:    values(&e), Label: labels})
	}
	return b.out.Write
}

type pprofBuilder struct {
	out       profile.Profile
	functions map[place]*profile.Function // of line 0
	locations map[place]*profile.Location
}

// newPprof is a profile of sample types, each with its unit.
func newPprof(types ...string) *pprofBuilder {
	b := &pprofBuilder{functions: map[place]*profile.Function{}, locations: map[place]*profile.Location{}}
	for i := 0; i < len(types); i += 2 {
		b.out.SampleType = append(b.out.SampleType, &profile.ValueType{Type: types[i], Unit: types[i+1]})
	}
	b.out.DefaultSampleType = types[0]
	return b
}

// place is a line of a function of a file.
type place struct {
	function, file string
	line           int
}

// location is that of a line of a function.
func (b *pprofBuilder) location(f frame) *profile.Location {
	key := place{f.Function, f.File, 0}
	fn := b.functions[key]
	if fn == nil {
		fn = &profile.Function{ID: uint64(len(b.functions) + 1), Name: f.Function, SystemName: f.Function, Filename: f.File}
		b.functions[key] = fn
		b.out.Function = append(b.out.Function, fn)
	}
	key.line = f.Line
	l := b.locations[key]
	if l == nil {
		l = &profile.Location{ID: uint64(len(b.locations) + 1), Line: []profile.Line{{Function: fn, Line: int64(f.Line)}}}
		b.locations[key] = l
		b.out.Location = append(b.out.Location, l)
	}
	return l
}
