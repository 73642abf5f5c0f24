package device

import (
	"slices"
	"time"

	"github.com/warpline-ml/warpline/internal/callsite"
)

// Kind says what an [Event] is of. [EventKinds] tells which engines have events of it.
type Kind uint8

// The kinds of events. Those of work are told when the device has been asked for it, not when it is done.
const (
	KindLaunch        Kind = iota // a kernel of a launch's plan
	KindFill                      // of memory with zeros, as a part of a launch's plan
	KindCopy                      // What is one of the copies
	KindWait                      // What is one of the waits
	KindMark                      // a point in a queue's work
	KindRange                     // a range opens, or ends
	KindAlloc                     // a block is handed out; What is the operation that it is for
	KindFreeRequested             // its user let a block go
	KindFreeCompleted             // the queues that used a block are done with it: it may be handed out again
	KindSegmentAlloc              // the device gave memory
	KindSegmentFree               // the device got memory back
	KindMap                       // pages were put behind addresses
	KindUnmap                     // pages were taken away
	KindOutOfMemory               // an allocation failed
	KindRelabel                   // memory serves for something: What is one of the labels
	KindModuleLoad                // kernels were compiled; What is their module
	KindBackward                  // a walk over recorded operations begins, or ends: Bytes is what they keep for it
	kindCount
)

// What the host waits for, in events of [KindWait], and WaitQueue, where a queue waits and the host does not.
const (
	WaitQueue  = "queue"
	WaitRead   = "read"
	WaitCopy   = "copy"
	WaitUpload = "upload" // too much is on its way
	WaitMemory = "memory" // all work, to give cached memory back to the device
	WaitSync   = "sync"   // all work, because the program says so
)

// Where copies go, in events of [KindCopy].
const (
	CopyUpload   = "upload"   // from the host
	CopyDownload = "download" // to the host
	CopyWithin   = "within"   // the device
	CopyPeer     = "peer"     // from another device
)

// Labels of memory, of [KindRelabel].
const (
	LabelParameter = "parameter"
	LabelBuffer    = "buffer"          // state that no gradient reaches
	LabelGradient  = "gradient"        // of a parameter
	LabelState     = "optimizer state" // beside a parameter
	LabelSaved     = "activation"      // what a gradient rule needs again, and nothing else named before
	LabelWorkspace = "workspace"       // what one kernel works in
	LabelBatch     = "batch"           // what a loader brought
	LabelOther     = "other"           // memory that nothing has named: values on their way
)

// Labels lists them, those that live longest first.
func Labels() []string {
	return []string{LabelParameter, LabelBuffer, LabelState, LabelGradient, LabelSaved, LabelBatch, LabelWorkspace, LabelOther}
}

// KindInfo is what is known of a kind of events.
type KindInfo struct {
	Kind    Kind
	Name    string
	Bytes   bool     // its events have a size
	Engines []string // by kind of device; nil: all
}

// EventKinds lists what each kind is called and which engines' devices have events of it; those of [KindMap] and [KindUnmap]
// where segments are expandable.
func EventKinds() []KindInfo { return kinds[:] }

var kinds = [kindCount]KindInfo{
	KindLaunch:        {KindLaunch, "launch", true, nil},
	KindFill:          {KindFill, "fill", true, []string{"cuda", "sim", "null"}},
	KindCopy:          {KindCopy, "copy", true, nil},
	KindWait:          {KindWait, "wait", false, nil},
	KindMark:          {KindMark, "mark", false, nil},
	KindRange:         {KindRange, "range", false, nil},
	KindAlloc:         {KindAlloc, "alloc", true, nil},
	KindFreeRequested: {KindFreeRequested, "free-requested", true, nil},
	KindFreeCompleted: {KindFreeCompleted, "free-completed", true, nil},
	KindSegmentAlloc:  {KindSegmentAlloc, "segment-alloc", true, nil},
	KindSegmentFree:   {KindSegmentFree, "segment-free", true, nil},
	KindMap:           {KindMap, "map", true, []string{"cuda", "sim", "null"}},
	KindUnmap:         {KindUnmap, "unmap", true, []string{"cuda", "sim", "null"}},
	KindOutOfMemory:   {KindOutOfMemory, "out-of-memory", true, nil},
	KindRelabel:       {KindRelabel, "relabel", true, nil},
	KindModuleLoad:    {KindModuleLoad, "module-load", true, []string{"cuda", "sim"}},
	KindBackward:      {KindBackward, "backward", false, nil},
}

// String is the kind's name: "free-requested".
func (k Kind) String() string {
	if k < kindCount {
		return kinds[k].Name
	}
	return "unknown"
}

// Origin is what work is attributed to.
type Origin struct {
	// Site is where the program asked: of an operation, where it was called, for its gradient too. Nil when not recorded.
	Site *callsite.Site
	// Paths are those of the parameters among the operands, in the operands' order; each once.
	Paths []string
	// Range is the innermost one that was open where the operation was called; nil for none.
	Range *Range
	// Seq is the number of the recorded operation that the work is a part of, forward or backward; 0 for none.
	Seq      uint64
	Backward bool
}

// Range is a part of a program's work under a name.
type Range struct {
	Name   string // of a module, its path: "blocks.0.attn"
	Parent *Range // in which it was opened; nil for none
	Number uint64 // later ones have larger numbers
	Of     any    // what opened it, for those who know it
}

// Within tells whether r is a range or was opened in it. No range is within nil.
func (r *Range) Within(outer *Range) bool {
	for ; r != nil; r = r.Parent {
		if r == outer {
			return true
		}
	}
	return false
}

// Event is something that a device was asked to do, or that happened to its memory. Observers get it on the goroutine that
// asked, and it is theirs for the call: [Event.Clone] is for keeping.
type Event struct {
	Kind Kind
	Origin
	Queue int           // by number
	Start time.Duration // when the host began to ask, by [Stream.Now]
	Took  time.Duration // by the same clock
	Span                // on the device, where somebody asked for times and it tells them: [Stream.Time]
	What  string        // see the kinds
	Bytes int64         // moved, filled, asked for, taken or given back; of a launch, read and written by its plan
	Mem   Mem           // of events of memory

	// Of launches and fills.
	Kernel   *Kernel
	Step     int // of Kernel.Steps
	Args     []Arg
	Params   *Params
	Captured bool // of the run of a captured step: one by one only where times are asked for, or the device has no other way

	Dst, Src Arg   // of a copy; the Go program's own memory has address 0
	Other    int   // of a wait of a queue: for which queue
	End      bool  // of a range, or of a walk back
	Err      error // why the device refused
}

// deepest is how many frames Stack has at most.
const deepest = 64

// Stack is the calls that led to the event, innermost first, as program counters; more than Site has, and slower. It is for
// the time of the observer's call.
//
//go:noinline
func (e *Event) Stack() []uintptr { return callsite.Stack(1, make([]uintptr, deepest)) }

// Goroutine is the number of the goroutine that asked, as Go's own traces have it. It is for the time of the observer's
// call.
func (e *Event) Goroutine() uint64 { return callsite.Goroutine() }

// Clone is a copy of e that may be kept. Types, kernels and ranges are shared: they do not change.
func (e *Event) Clone() *Event {
	c := *e
	if e.Site != nil {
		site := *e.Site
		c.Site = &site
	}
	c.Paths = slices.Clone(e.Paths)
	c.Args = slices.Clone(e.Args)
	if e.Params != nil {
		p := *e.Params
		p.Origin = c.Origin
		c.Params = &p
	}
	return &c
}
