package simrun

import (
	"context"
	"errors"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// Target is a kernel with its arguments on a device of its own, ready for a launch that a debugger looks at.
type Target struct{ j *job }

// Open readies what c says. Two targets of one Config behave alike, whatever happened to the other.
func Open(c Config) (*Target, error) {
	j, err := prepare(c)
	if err != nil {
		return nil, err
	}
	return &Target{j}, nil
}

// Launch runs the kernel once, until its end or until stop is closed. The findings are in the Result, of which nothing else but
// the output is meant to be read.
func (t *Target) Launch(stop <-chan struct{}, d gpusim.Debugger) (*Result, error) {
	o := t.j.options
	o.Debug, o.Stop, o.Counters = d, stop, false
	rep, err := t.j.dev.Launch(t.j.kernel, t.j.grid, t.j.block, t.j.shared, t.j.params, o)
	var fault *gpusim.Fault
	switch {
	case errors.Is(err, gpusim.ErrStopped):
		return nil, context.Canceled
	case err != nil && !errors.As(err, &fault):
		return nil, refused(err)
	}
	return t.j.result(rep, fault), nil
}

// Kernel, Grid and Block are what is launched.
func (t *Target) Kernel() string { return t.j.kernel.Name }

// Grid is the number of blocks by dimension.
func (t *Target) Grid() [3]int { return t.j.grid }

// Block is the number of threads by dimension.
func (t *Target) Block() [3]int { return t.j.block }

// Argument is a buffer among the kernel's arguments.
type Argument struct {
	Addr  uint64
	Bytes int
	Type  string // of its elements, as words have it: "f32"
}

// Argument is the buffer that argument i names; false if it is none.
func (t *Target) Argument(i int) (Argument, bool) {
	if i < 0 || i >= len(t.j.args) || t.j.args[i].addr == 0 {
		return Argument{}, false
	}
	a := &t.j.args[i]
	return Argument{a.addr, a.bytes, a.elem.name}, true
}

// Memory is the bytes of the allocation that has an address, and the offset of the address in it. Nobody may launch meanwhile, but
// for a launch that waits for its debugger.
func (t *Target) Memory(addr uint64) (data []byte, offset uint64, err error) {
	a := t.j.dev.Find(addr)
	if a == nil || a.Data == nil {
		return nil, 0, advice.Failf("arg0 and its like name the kernel's buffers", "%#x is in no allocation; the nearest: %s", addr, t.j.dev.Nearest(addr))
	}
	return a.Data, addr - a.Lo, nil
}

// Finding puts a finding into the words of a run.
func (t *Target) Finding(f gpusim.Finding) Finding { return t.j.file.finding(f, f.Check.String()) }

// PTX is the file's name and its lines.
func (t *Target) PTX() (name string, lines []string) { return t.j.file.path, t.j.file.lines }

// SourceLine is the text at "file:line", empty if the source is not there.
func (t *Target) SourceLine(place string) string { return t.j.file.sourceLine(place) }

// SourceLines are all lines of a source that .file names, nil if it is not there.
func (t *Target) SourceLines(name string) []string {
	t.j.file.sourceLine(name + ":1")
	return t.j.file.sources[name]
}

// Inlined are the places into which the source of a PTX line was inlined, the innermost first.
func (t *Target) Inlined(line int) []string { return t.j.file.inlined(t.j.kernel.Name, line) }
