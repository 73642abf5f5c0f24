package simrun

import (
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Finding is something that a check found, with the lines concerned.
type Finding struct {
	Finding    bool      `json:"finding"` // marks a JSON line: always true
	Check      string    `json:"check"`   // or the driver's error for a trap, an assertion or a limit
	Kernel     string    `json:"kernel"`
	Block      [3]uint32 `json:"block"`
	Thread     [3]uint32 `json:"thread"`
	Line       int       `json:"ptx_line"`
	PTX        string    `json:"ptx"`          // the text of that line
	Source     string    `json:"source"`       // "file:line", empty without .loc
	SourceText string    `json:"source_text"`  // the text of that line, empty without the file
	Inlined    string    `json:"inlined_at"`   // "file:line" into which the source was inlined; empty if it was not
	Callers    []string  `json:"inlined_into"` // all of these, the innermost first
	Message    string    `json:"message"`
	Space      string    `json:"space"`
	Address    string    `json:"address"`    // hexadecimal: JSON's numbers hold 53 bits
	Size       int       `json:"size"`       // bytes
	Allocation string    `json:"allocation"` // concerned, or the nearest
	Count      int       `json:"count"`

	callerTexts []string // the text of the lines of Callers
	kind        kind
}

// kind is what findings have in common that differ in their lines of PTX only, where there are lines of the source.
type kind struct{ check, kernel, what, at, into, other string }

func kindOf(f gpusim.Finding, check, into string) kind {
	place := func(source string, line int) string {
		if source == "" {
			return strconv.Itoa(line)
		}
		return source
	}
	return kind{check, f.Kernel, f.Msg, place(f.Source, f.Line), into, place(f.Other.Source, f.Other.Line)}
}

// Class is the number of instructions of one class that warps executed.
type Class struct {
	Name  string `json:"name"`
	Count uint64 `json:"count"`
}

// Out is a buffer that was asked for.
type Out struct {
	Arg   int      `json:"arg"`
	File  string   `json:"file"` // empty: it was to be seen only
	Type  string   `json:"type"` // on the device
	Shape []int    `json:"shape"`
	First []string `json:"first"` // elements
}

// Fault is the driver's error that ended a kernel.
type Fault struct {
	Code int    `json:"code"`
	Name string `json:"name"`
}

// Occupancy is how many blocks of the kernel fit on a multiprocessor.
type Occupancy struct {
	Blocks  int     `json:"blocks"`
	Warps   int     `json:"warps"`
	Ratio   float64 `json:"ratio"` // of the warps that a multiprocessor holds
	Limiter string  `json:"limiter"`
	Change  string  `json:"change"` // what would let more fit; empty where nothing can
}

// Sampled is by how much counts that are scaled from some blocks may be off, as shares: half of an interval of 95 %, from how much the
// blocks that ran differ.
type Sampled struct {
	Instructions float64 `json:"instructions"`
	Sectors      float64 `json:"global_sectors"`
	Wavefronts   float64 `json:"shared_wavefronts"`
}

// Result is what a run found, counted and wrote.
type Result struct {
	Final            bool        `json:"final"` // marks the last JSON line: always true
	Kernel           string      `json:"kernel"`
	Target           string      `json:"target"` // of the module: sm_80
	Card             string      `json:"card"`
	Grid             [3]int      `json:"grid"`
	Block            [3]int      `json:"block"`
	Checks           string      `json:"checks"`
	Findings         []Finding   `json:"-"`
	Found            int         `json:"findings"`
	Fault            *Fault      `json:"fault"`
	Instructions     uint64      `json:"instructions"`      // executed by warps
	LaneInstructions uint64      `json:"lane_instructions"` // executed by lanes
	Lanes            float64     `json:"lanes"`             // average share of active lanes
	Classes          []Class     `json:"classes"`           // the most frequent first
	Branches         uint64      `json:"branches"`
	Divergent        uint64      `json:"divergent_branches"`
	GlobalRequests   uint64      `json:"global_requests"`
	GlobalSectors    uint64      `json:"global_sectors"` // of 32 bytes
	SharedRequests   uint64      `json:"shared_requests"`
	SharedWavefronts uint64      `json:"shared_wavefronts"`
	BankConflicts    uint64      `json:"bank_conflicts"`
	Registers        int         `json:"registers"`    // per thread
	RegistersBy      string      `json:"registers_by"` // where that is from
	Shared           int         `json:"shared_bytes"` // per block
	Occupancy        Occupancy   `json:"occupancy"`
	Output           string      `json:"output"` // of printf
	Outs             []Out       `json:"outs"`
	Counted          int         `json:"counted_blocks"`
	SampleError      *Sampled    `json:"sample_error"` // null where all blocks ran, or so few that nothing tells
	Model            *Model      `json:"model"`        // null after a fault
	Lines            []Line      `json:"lines"`
	Advice           []Hint      `json:"advice"`
	Against          *Comparison `json:"against"` // null without
	Device           *OnDevice   `json:"device"`  // null without
	Notes            []string    `json:"notes"`

	shownLines int
}

func (j *job) result(rep *gpusim.Report, fault *gpusim.Fault) *Result {
	c := rep.Counters
	r := &Result{Final: true, Kernel: j.kernel.Name, Target: j.file.module.Target.String(), Card: j.dev.Card.Name, Grid: j.grid, Block: j.block, Checks: j.options.Checks.String(),
		Instructions: c.Instructions, LaneInstructions: c.LaneInstructions, Lanes: c.LaneUtilisation(), Classes: classes(c.ByClass),
		Branches: c.Branches, Divergent: c.Divergent, GlobalRequests: c.GlobalRequests, GlobalSectors: c.GlobalSectors,
		SharedRequests: c.SharedRequests, SharedWavefronts: c.SharedWavefronts, BankConflicts: c.SharedConflicts,
		Registers: rep.Registers, RegistersBy: byLiveness, Shared: rep.Shared, Occupancy: j.occupancy(rep.Registers, rep.Shared), Output: string(rep.Output),
		Counted: rep.Counted, Lines: []Line{}, Outs: []Out{}, Notes: append([]string{}, rep.Notes...)}
	r.SampleError = (*Sampled)(rep.Sampled)
	r.Findings = j.file.findings(rep, fault)
	if fault != nil {
		r.Fault = &Fault{int(fault.Code), fault.Code.String()}
	}
	r.Found = len(r.Findings)
	return r
}

// occupancy is how much of the kernel fits on a multiprocessor, with so many registers a thread and bytes a block.
func (j *job) occupancy(registers, shared int) Occupancy {
	o := j.dev.Card.Occupancy(registers, j.threads(), shared)
	return Occupancy{o.Blocks, o.Warps, o.Ratio, o.Limiter, estimate.Raise(j.card.SM(), o, registers, j.threads(), shared)}
}

func classes(by map[string]uint64) []Class {
	list := []Class{}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		list = append(list, Class{name, by[name]})
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Count > list[j].Count })
	return list
}

// classNames are the classes of instructions.
func classNames() []string {
	list := make([]string, 0, ptx.Classes)
	for c := range ptx.Classes {
		list = append(list, c.String())
	}
	return list
}

// Summary is one line on what was found.
func (r *Result) Summary() string {
	if r.Found == 0 {
		return "no finding by " + strings.ReplaceAll(r.Checks, ",", ", ")
	}
	return plural(len(groups(r.Findings)), "finding")
}
