package kineto

import "slices"

// Trace is what is kept of one file: of one process, or rank, unless several were merged.
type Trace struct {
	Rank    int            // of the job; -1 where the file does not say
	World   int            // processes of the job; 0 where the file does not say
	Backend string         // of the job's communication: "nccl"
	NCCL    string         // its version
	Groups  []ProcessGroup // process groups, as the file lists them
	Devices []Device       // deviceProperties
	Base    int64          // nanoseconds since 1970 to which times are relative; 0 where they are absolute, or relative to nothing known
	Bytes   int64          // of the file that were read, decompressed

	Steps       []Step       // ProfilerStep#N of the host, by start
	Kernels     []Kernels    // of the window that is judged, the longest first, with copies and memory sets; of Diagnose
	Judged      Window       // that window; of Diagnose
	Collectives []Collective // by start
	Path        []Part       // the critical path of that window, the longest parts first; of Diagnose
	Marked      int          // steps that the window has; of Diagnose
	Span        Window       // from the first to the last event that took time, of host and device
	Drawing     *Drawing     // for pictures; of Diagnose

	legs      []leg // of Path's collectives
	eventsAt  int64 // of the file, where the events begin
	counts    counts
	names     *interner
	tracks    []track
	host      []event // calls, by start
	device    []event // kernels, copies and memsets, by start
	ops       []event // operators and annotations
	functions []event
	syncs     []event
	bytes     []int64 // of copies and memsets
	launch    []int32 // of device[i], the call that launched it; -1
	classes   []class // of names

	control, badUTF8 int64    // characters and strings that should not be
	early            int      // kernels that began before they were launched
	peakBytes        [2]int64 // allocated and reserved by PyTorch on a device at most
}

// Window is a stretch of time, in nanoseconds.
type Window struct{ Start, End int64 }

// Dur is how long it is, in nanoseconds.
func (w Window) Dur() int64 { return w.End - w.Start }

// Step is one step of the training, as the profiler marked it on the host, and what the device and the loader did within
// these marks, in nanoseconds.
type Step struct {
	Number int
	Window
	Busy    int64 // the device did anything
	Compute int64 // kernels that do not communicate
	Comm    int64 // kernels that do
	Loader  int64 // the host waited for a batch
}

// Kernels is all that the kernels of one name did.
type Kernels struct {
	Name   string
	Family string
	Count  int
	NS     int64 // summed over streams
}

// ProcessGroup is a process group of the job.
type ProcessGroup struct {
	Name  string `json:"pg_name"`
	Desc  string `json:"pg_desc"`
	Size  int    `json:"pg_size"`
	Ranks []int  `json:"ranks"`
}

// Device is what the file says of a card; zeros where it does not.
type Device struct {
	ID     int    `json:"id"`
	Name   string `json:"name"`
	Memory int64  `json:"totalGlobalMem"`
	Major  int    `json:"computeMajor"`
	Minor  int    `json:"computeMinor"`
	SMs    int    `json:"numSms"`
}

// Collective is one kernel of communication, with what the recorder wrote about it.
type Collective struct {
	Kernel string // its name
	Name   string // of the operation: "allreduce"; "" where the file does not say
	Group  string // name of the process group; "" where the file does not say
	Ranks  string // its ranks, as the recorder wrote them
	Size   int    // of the group; 0 where the file does not say
	Seq    int64  // number of the operation within the group, by the recorder; -1 where it wrote none
	Order  int    // number of the operation among those of its group and name in this file, by launch
	In     int64  // elements
	Out    int64  // elements
	DType  string
	P2P    bool // sent or received by one: never compared among ranks
	Device int
	Stream int64
	Window
	Launched int64 // when the call that launched it began; its Start where that is unknown
}

// Name is the text of an event's name.
func (t *Trace) Name(e *event) string { return t.names.names[e.name] }

// shed lets go of the events, which are most of a trace: what stays is what comparing ranks needs. Read keeps them.
func (t *Trace) shed() {
	t.host, t.device, t.ops, t.functions, t.syncs, t.launch, t.bytes = nil, nil, nil, nil, nil, nil, nil
	t.names, t.classes, t.tracks = nil, nil, nil
}

// sorted puts events in the order of their starts; those around others come first. There are millions: package sorting would take
// as much memory again, and three times as long.
func sorted(events []event) {
	byStart := func(a, b event) int { return byStart(&a, &b) }
	if !slices.IsSortedFunc(events, byStart) {
		slices.SortFunc(events, byStart)
	}
}

func byStart(a, b *event) int {
	switch {
	case a.start != b.start:
		if a.start < b.start {
			return -1
		}
		return 1
	case a.dur > b.dur:
		return -1
	case a.dur < b.dur:
		return 1
	}
	return 0
}
