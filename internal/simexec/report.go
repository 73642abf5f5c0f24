package simexec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/simrun"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Result is how a program ended, and what it did on the cards.
type Result struct {
	Final     bool             `json:"final"` // marks the last JSON line: always true
	Command   []string         `json:"command"`
	Card      string           `json:"card"`
	Checks    string           `json:"checks"`
	Status    int              `json:"status"`    // of the program; 128 and the number of the signal that ended it
	Signal    string           `json:"signal"`    // that ended it; empty if it ended by itself
	Processes int              `json:"processes"` // that called the driver
	Calls     int64            `json:"calls"`
	Findings  []simrun.Finding `json:"-"`
	Found     int              `json:"findings"`
	Kernels   []Kernel         `json:"kernels"` // by instructions
	Advice    []simrun.Hint    `json:"advice"`  // about the launch of each kernel that did most
	Failed    []Failed         `json:"failed_calls"`
	Leaks     []Leak           `json:"leaks"` // of processes that ended by themselves
	Notes     []string         `json:"notes"`

	found  simrun.Collection
	leaked []simcuda.Leak
}

// Leak is memory that a process had when it ended.
type Leak struct {
	Kind    string `json:"kind"`
	Address string `json:"address"`
	Bytes   int64  `json:"bytes"`
	By      string `json:"by"` // the call that gave it
	Number  int    `json:"allocation"`
}

// Kernel is what the launches of the kernels of a name did.
type Kernel struct {
	Name             string `json:"kernel"`
	Launches         int    `json:"launches"`
	Instructions     uint64 `json:"instructions"` // of warps
	LaneInstructions uint64 `json:"lane_instructions"`
	GlobalRequests   uint64 `json:"global_requests"`
	GlobalSectors    uint64 `json:"global_sectors"`
	SharedRequests   uint64 `json:"shared_requests"`
	SharedWavefronts uint64 `json:"shared_wavefronts"`
	BankConflicts    uint64 `json:"bank_conflicts"`
}

// Failed is a call that was answered with an error.
type Failed struct {
	Call  string `json:"call"`
	Code  int    `json:"code"`
	Name  string `json:"name"`
	Why   string `json:"why"`
	Hint  string `json:"hint,omitempty"`
	Count int    `json:"count"`
}

// hints are what to do about modules that the card or its driver does not take.
var hints = map[driver.Result]string{
	driver.NoBinaryForGPU:        "hand over PTX for the card's compute capability or an older one, or choose another card with --card",
	driver.UnsupportedPTXVersion: "compile for an older PTX version, as clang does with --cuda-feature=+ptx86, or write that as the text's .version",
}

// most bounds what is kept of findings, failed calls and notes.
const most = 256

// report gathers, from all processes.
type report struct {
	calls atomic.Int64

	mu      sync.Mutex
	r       Result
	kernels map[string]*ran
	calling map[Failed]int // without counts, to places in r.Failed
}

func newReport(c Config, sim simcuda.Config) *report {
	return &report{r: Result{Final: true, Command: c.Command, Card: sim.Card, Checks: (sim.Checks | gpusim.Memcheck).String(), Failed: []Failed{}, Notes: []string{}},
		kernels: map[string]*ran{}, calling: map[Failed]int{}}
}

// ran adds a launch of a kernel of a module, whose text is its image.
func (p *report) ran(r simcuda.Run, image []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Kernel != "" {
		k := p.kernels[r.Kernel]
		if k == nil {
			k = &ran{Kernel: Kernel{Name: r.Kernel}}
			p.kernels[r.Kernel] = k
		}
		k.add(r.Report.Counters)
		k.keep(p.r.Card, r.Report, image)
	}
	for _, n := range r.Report.Notes {
		p.note(r.Kernel + ": " + n)
	}
	if len(r.Report.Findings) > 0 || r.Fault != nil {
		for _, f := range simrun.NewModule(image).Findings(r.Report, r.Fault) {
			p.r.found.Add(f, most)
		}
	}
}

// ran is a kernel, with what advice goes by: its launch that did most, of a module whose text is image, and what synccheck said of any.
type ran struct {
	Kernel
	most   gpusim.Report
	did    uint64
	lines  []gpusim.Line
	image  []byte
	advice []simrun.Hint
}

func (k *ran) keep(card string, r *gpusim.Report, image []byte) {
	for _, f := range r.Advice {
		k.advise(card, f, image)
	}
	c := &r.Counters
	if did := c.Instructions + c.GlobalSectors + c.SharedWavefronts; did > k.did && r.Work.Blocks > 0 {
		k.did, k.lines, k.image = did, r.Lines(), image
		k.most = gpusim.Report{Counters: *c, Work: r.Work, Registers: r.Registers}
	}
}

// advise keeps what was said of a line, in the words of the module that it is a line of: others may have a kernel of the same name.
func (k *ran) advise(card string, f gpusim.Finding, image []byte) {
	for i := range k.advice {
		if a := &k.advice[i]; a.Line == f.Line && a.Message == f.Msg {
			a.Count += f.Count
			return
		}
	}
	if len(k.advice) < most {
		k.advice = append(k.advice, simrun.NewModule(image).Hints(card, k.Name, &gpusim.Report{Advice: []gpusim.Finding{f}}, nil)...)
	}
}

func (k *Kernel) add(c gpusim.Counters) {
	k.Launches++
	k.Instructions += c.Instructions
	k.LaneInstructions += c.LaneInstructions
	k.GlobalRequests += c.GlobalRequests
	k.GlobalSectors += c.GlobalSectors
	k.SharedRequests += c.SharedRequests
	k.SharedWavefronts += c.SharedWavefronts
	k.BankConflicts += c.SharedConflicts
}

// left adds what a process has not freed, and calls that were refused because of what it had freed.
func (p *report) left(leaks []simcuda.Leak, misuses []simcuda.Misuse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.r.leaked = append(p.r.leaked, leaks...)
	for _, m := range misuses {
		p.r.found.Add(simrun.Told("memory", "call of the program", m.String()), most)
	}
}

// failed counts a call that was answered with an error, and reports whether it is the first of its kind.
func (p *report) failed(call string, r driver.Result, why string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := Failed{Call: call, Code: int(r), Name: r.String(), Why: why, Hint: hints[r]}
	i, known := p.calling[key]
	if !known {
		if len(p.r.Failed) >= most {
			return false
		}
		i = len(p.r.Failed)
		p.calling[key] = i
		p.r.Failed = append(p.r.Failed, key)
	}
	p.r.Failed[i].Count++
	return !known
}

// began counts a process that calls.
func (p *report) began() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.r.Processes++
}

// add adds a note.
func (p *report) add(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(text)
}

// note adds a note that is not there yet.
func (p *report) note(text string) {
	if len(p.r.Notes) < most && !slices.Contains(p.r.Notes, text) {
		p.r.Notes = append(p.r.Notes, text)
	}
}

// result is all of it, once the program has ended.
func (p *report) result() *Result {
	r := &p.r
	r.Calls = p.calls.Load()
	r.Findings, r.Found = r.found.Findings, len(r.found.Findings)
	r.Leaks = []Leak{}
	for _, l := range r.leaked[:min(len(r.leaked), most)] {
		r.Leaks = append(r.Leaks, Leak{l.Kind.String(), fmt.Sprintf("%#x", l.Addr), l.Bytes, l.By, l.Number})
	}
	r.Kernels, r.Advice = []Kernel{}, []simrun.Hint{}
	for _, k := range p.kernels {
		r.Kernels = append(r.Kernels, k.Kernel)
	}
	sorting.By(r.Kernels, func(a, b Kernel) int {
		return cmp.Or(cmp.Compare(b.Instructions, a.Instructions), cmp.Compare(a.Name, b.Name))
	})
	for _, k := range r.Kernels {
		k := p.kernels[k.Name]
		list := append(k.advice, simrun.NewModule(k.image).Hints(r.Card, k.Name, &k.most, k.lines)...)
		r.Advice = append(r.Advice, list[:min(len(list), most-len(r.Advice))]...)
	}
	return r
}

// Text is the result for people, in at most width columns where it is a table.
func (r *Result) Text(width int) string {
	var b strings.Builder
	b.WriteString(r.found.Text())
	if len(r.Kernels) > 0 {
		b.WriteString("\n" + r.table().String(width))
	}
	for i := range r.Advice {
		fmt.Fprintf(&b, "%s  kernel    %s\n", r.Advice[i].Text(), r.Advice[i].Kernel)
	}
	if text := simcuda.LeakText(r.leaked); text != "" && r.Signal == "" {
		b.WriteString("\n" + text)
	}
	if len(r.Failed) > 0 {
		b.WriteString("\ncalls that failed\n")
	}
	for _, f := range r.Failed {
		fmt.Fprintf(&b, "  %s: %s (%d)%s", f.Call, f.Name, f.Code, times(f.Count))
		if f.Why != "" {
			b.WriteString(": " + f.Why)
		}
		b.WriteByte('\n')
		if f.Hint != "" {
			fmt.Fprintf(&b, "    hint: %s\n", f.Hint)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	if r.Signal != "" {
		fmt.Fprintf(&b, "%s was ended by a signal: %s\n", r.Command[0], r.Signal)
	}
	b.WriteString(r.summary() + "\n")
	return b.String()
}

func (r *Result) table() render.Table {
	t := render.Table{Header: []string{"kernel", "launches", "instructions", "lanes", "sectors", "a request", "wavefronts", "conflicts"},
		Right: []bool{false, true, true, true, true, true, true, true}}
	for _, k := range r.Kernels {
		lanes, a := "", ""
		if k.Instructions > 0 {
			lanes = render.Percent(float64(k.LaneInstructions) / float64(k.Instructions) / 32)
		}
		if k.GlobalRequests > 0 {
			a = fmt.Sprintf("%.2f", float64(k.GlobalSectors)/float64(k.GlobalRequests))
		}
		t.Rows = append(t.Rows, []string{k.Name, strconv.Itoa(k.Launches), number(k.Instructions), lanes, number(k.GlobalSectors), a,
			number(k.SharedWavefronts), number(k.BankConflicts)})
	}
	return t
}

// plural is a number of things.
func plural(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "h"):
		thing += "e"
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func times(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(", %d times", n)
}

// summary is one line on what was found.
func (r *Result) summary() string {
	launches := 0
	for _, k := range r.Kernels {
		launches += k.Launches
	}
	did := fmt.Sprintf("%s, %s on %s: ", plural(int(r.Calls), "call"), plural(launches, "launch"), r.Card)
	switch n := r.found.Groups(); {
	case r.Processes == 0:
		return "the program did not call the driver: no libcuda.so.1 was loaded from LD_LIBRARY_PATH"
	case n > 0:
		return did + plural(n, "finding")
	}
	return did + "no finding by " + strings.ReplaceAll(r.Checks, ",", ", ")
}
