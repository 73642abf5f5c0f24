package kineto

import "strings"

// kind says what an event is, whatever its category is called in the recorder's version.
type kind uint8

const (
	other      kind = iota
	op              // an operator on the host
	call            // of the driver or the runtime
	kernel          // on the device
	copying         // memory copied by the device
	setting         // memory set by the device
	annotation      // a range of the program's on the host
	function        // of Python
	syncing         // a wait as the device's tools saw it
	kinds
)

// categories are the names that kinds have had since PyTorch 1.8, in lower case.
var categories = map[string]kind{
	"operator": op, "cpu_op": op,
	"runtime": call, "cuda_runtime": call, "cuda_driver": call, "driver": call, "hip_runtime": call, "hip_driver": call,
	"xpu_runtime": call, "xpu_driver": call, "mtia_runtime": call, "glow_runtime": call,
	"privateuse1_runtime": call, "privateuse1_driver": call,
	"kernel": kernel, "concurrent_kernel": kernel, "mtia_ccp_events": kernel,
	"memcpy": copying, "gpu_memcpy": copying,
	"memset": setting, "gpu_memset": setting,
	"user_annotation": annotation,
	"python_function": function,
	"cuda_sync":       syncing, "xpu_sync": syncing,
}

// kindOf is the kind of a category, of any case and with spaces or underscores.
func kindOf(category string) kind {
	return categories[strings.ReplaceAll(strings.ToLower(category), " ", "_")]
}

// limits are how many events of a kind are kept: some 3 GB of a trace. Those of the device and their launches come last in
// a file and matter most.
var limits = [kinds]int{op: 3 << 20, call: 3 << 20, kernel: 3 << 20, copying: 1 << 20, setting: 1 << 20,
	annotation: 1 << 19, function: 3 << 19, syncing: 1 << 19}

// event is one thing that took time, in 40 bytes: a trace has millions.
type event struct {
	start, dur int64  // nanoseconds; since Trace.Base, where the file has one
	name       uint32 // Trace.Name
	id         uint32 // the correlation of a call and of what it launched; of an operator, the shapes of its operands
	ext        uint32 // of a kernel, 1 + the index in Trace.Collectives; of an operator the types of its operands; of a function of Python, which it is
	aux        uint32 // of an operator the stack; of a kernel the bits of a float32, blocks per multiprocessor; of copies an index of Trace.bytes
	track      uint16 // Trace.tracks
	kind       kind
	flags      flags
}

// end is when the event was over.
func (e *event) end() int64 { return e.start + e.dur }

type flags uint8

const (
	graphed  flags = 1 << iota // launched by a graph
	noStart                    // correlation 0, or none
	hasStack                   // aux is a stack
)

// track is a row of the trace: a thread of a process, or a stream of a device.
type track struct {
	pid, tid string
	device   int // of a stream; -1 where the row is none
	stream   int64
}
