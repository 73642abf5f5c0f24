package prof

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

// Profile is a window of a program's work. It does not change.
type Profile struct {
	Devices []Device
	Took    time.Duration // from the window's beginning to the end of the last device's work in it
	Dropped int           // events that came after as many as Config.Events
	Err     error         // why a device's times are missing

	all   []record // by the host's time
	sites []callsite.Site
	words []string
	steps []boundary
}

// Device is one whose work a profile has.
type Device struct {
	Name       string
	Properties tensor.Properties
	Timed      bool // it tells when it works
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
	Name  string
	Calls int           // launches; of kernels, those of that kernel
	Self  time.Duration // of the device
	Total time.Duration // Self and, of a range, what ranges within it did
	Host  time.Duration // in which the host asked for it; on a CPU, where that is the work itself, 0
	Bytes int64         // read and written by the operations' plans, or copied
	FLOPs int64
	Line  string // of the program that most of Self is of
	Op    string // that most of Self is of
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
func (e *record) work() bool {
	return e.kind == device.KindLaunch || e.kind == device.KindFill || e.kind == device.KindCopy
}

// device is how long the device worked on e.
func (e *record) device() time.Duration { return time.Duration(max(0, e.ended-e.began)) }

// onHost reports whether the call that asked for e did it.
func (e *record) onHost() bool { return e.began == e.start && e.ended == e.start+e.took }

// tally is a row under way.
type tally struct {
	Row
	lines, ops map[string]time.Duration
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
	lines := p.lines()
	for i := range p.all {
		e := &p.all[i]
		if !e.work() {
			continue
		}
		t := at(p.name(e, by, lines))
		t.add(e, by, p, lines[e.site])
		t.Total += e.device()
		if by == Module {
			for _, outer := range outside(e.part) {
				at(outer).Total += e.device()
			}
		}
	}
	var out []Row
	for t := range maps.Values(rows) {
		t.Line, t.Op = longest(t.lines), longest(t.ops)
		out = append(out, t.Row)
	}
	slices.SortFunc(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// add counts e. The first step of a launch stands for its bytes and its call; rows of kernels count each.
func (t *tally) add(e *record, by By, p *Profile, line string) {
	d := e.device()
	t.Self += d
	t.lines[line] += d
	t.ops[p.op(e)] += d
	if e.step > 0 && by != Kernel {
		return
	}
	t.Calls++
	if !e.onHost() && e.step == 0 {
		t.Host += time.Duration(e.took)
	}
	switch {
	case e.kernel == nil:
		t.Bytes += e.bytes
	case e.step == 0:
		t.Bytes += e.kernel.Bytes
		t.FLOPs += e.kernel.FLOPs
	}
}

func longest(m map[string]time.Duration) string {
	if len(m) == 0 {
		return ""
	}
	return slices.MaxFunc(slices.Sorted(maps.Keys(m)), func(a, b string) int { return cmp.Compare(m[a], m[b]) })
}

// outside are the names of the ranges around r, each once and not r's own.
func outside(r *device.Range) (names []string) {
	if r == nil {
		return nil
	}
	for o := r.Parent; o != nil; o = o.Parent {
		if o.Name != r.Name && !slices.Contains(names, o.Name) {
			names = append(names, o.Name)
		}
	}
	return names
}

// lines are the lines of the program that sites are of.
func (p *Profile) lines() []string {
	out := make([]string, len(p.sites))
	for i := range p.sites {
		out[i] = p.sites[i].String()
	}
	return out
}

// name is what e counts under.
func (p *Profile) name(e *record, by By, lines []string) string {
	switch by {
	case Module:
		if e.part == nil {
			return "(no range)"
		}
		return e.part.Name
	case Line:
		return lines[e.site]
	case Shape:
		if e.kernel != nil {
			return e.kernel.Op.String()
		}
	case Kernel:
		return p.kernel(e)
	}
	return p.op(e)
}

func (p *Profile) op(e *record) string {
	if e.kernel != nil {
		return e.kernel.Op.Code.String()
	}
	return copyName(p.words[e.word])
}

// kernel is the name of what the device does for e.
func (p *Profile) kernel(e *record) string {
	switch {
	case e.kind == device.KindFill:
		return "Memset (Device)"
	case e.kernel == nil:
		return copyName(p.words[e.word])
	case len(e.kernel.Steps) > int(e.step):
		return e.kernel.Steps[e.step].Name
	}
	return e.kernel.Op.Code.String()
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
	Copies time.Duration // of Busy, in which nothing but copies ran
	Idle   time.Duration // no device worked
	Waits  time.Duration // the host waited for a device
	Sum    time.Duration // of all work, where work side by side counts twice
	Steps  int           // that began in it
	Calls  int
}

// Summary tells where the window went.
func (p *Profile) Summary() Summary {
	s := Summary{Took: p.Took, Steps: len(p.steps)}
	var computes, all []span
	for i := range p.all {
		e := &p.all[i]
		switch {
		case e.kind == device.KindWait && p.words[e.word] != device.WaitQueue:
			s.Waits += time.Duration(e.took)
		case e.work():
			s.Calls++
			s.Sum += e.device()
			if e.ended > e.began {
				all = append(all, span{e.began, e.ended})
				if e.kind != device.KindCopy {
					computes = append(computes, span{e.began, e.ended})
				}
			}
		}
	}
	s.Busy = union(all)
	s.Copies = s.Busy - union(computes)
	s.Idle = max(0, s.Took-s.Busy)
	return s
}

type span struct{ began, ended int64 }

// union is the time that spans cover.
func union(spans []span) (sum time.Duration) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.began, b.began) })
	end := int64(-1 << 62)
	for _, s := range spans {
		if s.ended > end {
			sum += time.Duration(s.ended - max(s.began, end))
			end = s.ended
		}
	}
	return sum
}
