package prof

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/tensor"
)

// Profile is a window of a program's work. It does not change.
type Profile struct {
	Devices []Device
	Took    time.Duration // from the window's beginning to the end of the last device's work in it
	Dropped int           // events that came after as many as Config.Events
	Err     error         // why a device's times are missing

	// Unreached are the parameters that no gradient reached, where the program says so: an optimizer's Report names them.
	Unreached []string

	// Memory is what a History recorded of a step, where the program gives it: by device.
	Memory []*Timeline

	growing []finding.Growth
	cold    bool // the window begins with the program's first step, which pays for what is made once

	all     []record   // by the host's time
	whats   []activity // what they are of
	kernels []kernel
	ranges  []part
	sites   []stack
	times   []interval
	steps   []boundary
	blocks  []block // of memory, by the host's time
}

// activity is all of an event that is the same each time that a program comes to its place.
type activity struct {
	kind     device.Kind
	Kind     string `json:"kind"`
	Device   uint8  `json:"device"`
	Queue    uint8  `json:"queue"`
	Step     uint16 `json:"step,omitempty"` // of the kernel's
	Backward bool   `json:"backward,omitempty"`
	Captured bool   `json:"captured,omitempty"` // of a captured step, which is one launch unless each is timed
	Hosted   bool   `json:"hosted,omitempty"`   // the call that asked for it did it
	Bytes    int64  `json:"bytes"`
	Text     string `json:"text,omitempty"`   // what a copy or wait is; of launches the paths of parameters
	Kernel   uint32 `json:"kernel,omitempty"` // from 1; 0: none
	Site     uint32 `json:"site"`
}

// kernel is an operation as a device runs it.
type kernel struct {
	Op    string        `json:"op"`
	Shape string        `json:"shape"` // the operation with the types of its operands
	FLOPs int64         `json:"flops"`
	Bytes int64         `json:"bytes"`
	Ins   []operand     `json:"ins"`
	Steps []device.Step `json:"steps"`
}

type operand struct {
	Dims []int  `json:"dims"`
	Type string `json:"type"`
}

// part is a range.
type part struct {
	Name   string `json:"name"`
	Parent uint32 `json:"parent,omitempty"` // from 1; 0: none
}

// stack is the calls that led to an event, the innermost first.
type stack struct {
	Line   string  `json:"line"` // the program's own
	Frames []frame `json:"frames"`
}

type frame struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Line     int    `json:"line"`
}

// interval is when a device worked, in nanoseconds since the window's beginning.
type interval struct{ began, ended int64 }

// entry is an event of a profile.
type entry struct {
	*record
	*activity
	kernel *kernel // nil for none
	interval
	known bool // the interval
}

// at is the event of a number.
func (p *Profile) at(i int) (e entry) {
	e.record = &p.all[i]
	e.activity = &p.whats[e.what]
	if e.Kernel > 0 {
		e.kernel = &p.kernels[e.Kernel-1]
	}
	switch {
	case e.span > 0:
		e.interval, e.known = p.times[e.span-1], p.Err == nil
	case e.Hosted:
		e.interval, e.known = interval{e.start, e.start + e.took}, true
	}
	return e
}

// Device is one whose work a profile has.
type Device struct {
	Name       string
	Properties tensor.Properties
	Timed      bool // it tells when it works
	Modelled   bool // its times, and those of its host, are a simulated GPU's

	Stamping time.Duration // of the host for one of the marks by which the device tells when it works, two for each launch and copy

	Began *usage `json:",omitempty"` // its memory at the window's beginning, where Config.Memory is
}

// By is what rows of a profile are of.
type By uint8

// The kinds of rows.
const (
	Op     By = iota // an operation of package tensor, forward and backward
	Module           // a module's forward, or another range, with the gradients of what it did
	Line             // a line of the program, with the gradients of what it called
	Shape            // an operation with the types of its operands
	Kernel           // a kernel of the device, or what the host did in its place
)

var byNames = []string{"op", "module", "line", "shape", "kernel"}

// String is "op", "module", "line", "shape" or "kernel".
func (b By) String() string { return byNames[b] }

// Row is the work of a name.
type Row struct {
	Name  string        `json:"name"`
	Calls int           `json:"calls"`    // launches; of kernels, those of that kernel
	Self  time.Duration `json:"self_ns"`  // of the device
	Total time.Duration `json:"total_ns"` // Self and, of a range, what ranges within it did
	Host  time.Duration `json:"host_ns"`  // in which the host asked for it; on a CPU, where that is the work itself, 0
	Bytes int64         `json:"bytes"`    // read and written by the operations' plans, or copied
	FLOPs int64         `json:"flops"`
	Roof  time.Duration `json:"roof_ns,omitempty"` // that the device needs at least, by its published figures; 0 where these are not known
	Bound string        `json:"bound,omitempty"`   // what Roof is of: "memory" or "compute"; "latency" where it is a small part of Self
	Line  string        `json:"line"`              // of the program that most of Self is of
	Op    string        `json:"op"`                // that most of Self is of
}

// Mean is Self for each call.
func (r *Row) Mean() time.Duration { return r.Self / time.Duration(max(r.Calls, 1)) }

// Bandwidth is bytes a second while the device worked on it; 0 where there is no time.
func (r *Row) Bandwidth() float64 { return rate(r.Bytes, r.Self) }

// Speed is floating-point operations a second while the device worked on it; 0 where there is no time.
func (r *Row) Speed() float64 { return rate(r.FLOPs, r.Self) }

func rate(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// work reports whether e is something that a device does.
func (a *activity) work() bool {
	return a.kind == device.KindLaunch || a.kind == device.KindFill || a.kind == device.KindCopy
}

// worked is how long the device worked on e.
func (e *entry) worked() time.Duration { return time.Duration(e.ended - e.began) }

// tally is a row under way.
type tally struct {
	Row
	lines, ops map[string]time.Duration
	roof       roof
}

// Rows are the work of the window by names, the longest Self first. Those of copies are called as in traces.
func (p *Profile) Rows(by By) []Row {
	rows := map[string]*tally{}
	at := func(name string) *tally {
		t := rows[name]
		if t == nil {
			t = &tally{Row: Row{Name: name}, lines: map[string]time.Duration{}, ops: map[string]time.Duration{}}
			rows[name] = t
		}
		return t
	}
	for i := range p.all {
		e := p.at(i)
		if !e.work() {
			continue
		}
		t := at(p.name(&e, by))
		t.add(&e, by, p)
		t.Total += e.worked()
		if by == Module {
			for _, outer := range p.outside(e.part) {
				at(outer).Total += e.worked()
			}
		}
	}
	var out []Row
	for t := range maps.Values(rows) {
		t.Line, t.Op = longest(t.lines), longest(t.ops)
		t.Roof, t.Bound = t.roof.of(t.Self)
		out = append(out, t.Row)
	}
	sorting.By(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// add counts e. The first step of a launch stands for its bytes and its call; rows of kernels count each.
func (t *tally) add(e *entry, by By, p *Profile) {
	d := e.worked()
	t.Self += d
	t.lines[p.sites[e.Site].Line] += d
	t.ops[e.op()] += d
	if e.Step > 0 && by != Kernel {
		return
	}
	t.Calls++
	if e.Step > 0 {
		return
	}
	if !e.Hosted {
		t.Host += time.Duration(e.took)
	}
	bytes, flops := e.cost()
	t.Bytes += bytes
	t.FLOPs += flops
	t.roof.add(e, &p.Devices[e.Device], bytes, flops)
}

// cost is what the launch or copy that e begins moves and computes.
func (e *entry) cost() (bytes, flops int64) {
	if e.kernel == nil {
		return e.Bytes, 0
	}
	return e.kernel.Bytes, e.kernel.FLOPs
}

func longest(m map[string]time.Duration) string {
	if len(m) == 0 {
		return ""
	}
	return slices.MaxFunc(slices.Sorted(maps.Keys(m)), func(a, b string) int { return cmp.Compare(m[a], m[b]) })
}

// outside are the names of the ranges around one, each once and not its own.
func (p *Profile) outside(number uint32) (names []string) {
	if number == 0 {
		return nil
	}
	own := p.ranges[number-1].Name
	for o := p.ranges[number-1].Parent; o != 0; o = p.ranges[o-1].Parent {
		if name := p.ranges[o-1].Name; name != own && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// name is what e counts under.
func (p *Profile) name(e *entry, by By) string {
	switch by {
	case Module:
		if e.part == 0 {
			return "(no range)"
		}
		return p.ranges[e.part-1].Name
	case Line:
		return p.sites[e.Site].Line
	case Shape:
		if e.kernel != nil {
			return e.kernel.Shape
		}
	case Kernel:
		return e.deed()
	}
	return e.op()
}

func (e *entry) op() string {
	if e.kernel != nil {
		return e.kernel.Op
	}
	return copyName(e.Text)
}

// deed is the name of what the device does for e.
func (e *entry) deed() string {
	switch {
	case e.kind == device.KindFill:
		return "Memset (Device)"
	case e.kernel == nil:
		return copyName(e.Text)
	case len(e.kernel.Steps) > int(e.Step):
		return e.kernel.Steps[e.Step].Name
	}
	return e.kernel.Op
}

// copyName is what PyTorch's traces call a copy.
func copyName(what string) string {
	switch what {
	case device.CopyUpload:
		return "Memcpy HtoD (Pinned -> Device)"
	case device.CopyDownload:
		return "Memcpy DtoH (Device -> Pinned)"
	case device.CopyPeer:
		return "Memcpy PtoP (Device -> Device)"
	}
	return "Memcpy DtoD (Device -> Device)"
}

// Summary is where the window went.
type Summary struct {
	Took   time.Duration
	Busy   time.Duration // some device worked: side by side counts once
	Span   time.Duration // from the beginning of the first work to the end of the last
	Copies time.Duration // of Busy, in which nothing but copies and fills with zeros ran
	Idle   time.Duration // no device worked
	Waits  time.Duration // the host waited for a device
	Sum    time.Duration // of all work, where work side by side counts twice
	Steps  int           // that began in it
	Calls  int
}

// Summary tells where the window went.
func (p *Profile) Summary() Summary {
	s := Summary{Took: p.Took, Steps: len(p.steps)}
	var computes, all []interval
	for i := range p.all {
		e := p.at(i)
		switch {
		case e.kind == device.KindWait && e.Text != device.WaitQueue:
			s.Waits += time.Duration(e.took)
		case e.work():
			s.Calls++
			s.Sum += e.worked()
			if e.ended > e.began {
				all = append(all, e.interval)
				if e.kind == device.KindLaunch {
					computes = append(computes, e.interval)
				}
			}
		}
	}
	s.Busy = union(all)
	s.Span = extent(all)
	s.Copies = s.Busy - union(computes)
	s.Idle = max(0, s.Took-s.Busy)
	return s
}

// extent is the time from the first of spans, which are sorted by their beginnings, to the end of all.
func extent(spans []interval) time.Duration {
	if len(spans) == 0 {
		return 0
	}
	end := spans[0].ended
	for _, s := range spans {
		end = max(end, s.ended)
	}
	return time.Duration(end - spans[0].began)
}

// union is the time that spans cover.
func union(spans []interval) (sum time.Duration) {
	sorting.By(spans, func(a, b interval) int { return cmp.Compare(a.began, b.began) })
	end := int64(-1 << 62)
	for _, s := range spans {
		if s.ended > end {
			sum += time.Duration(s.ended - max(s.began, end))
			end = s.ended
		}
	}
	return sum
}
