package device

import (
	"fmt"
	"maps"
	"sync"
)

// Work is what a device was asked for. Bytes and floating-point operations are those of the operations' costs
// ([ir.Op.Cost]), not what caches made of them.
type Work struct {
	Kernels  int64 `json:"kernels"` // started; on a device that computes in the caller, operations
	Blocks   int64 `json:"blocks"`  // of threads
	FLOPs    int64 `json:"flops"`
	Read     int64 `json:"read"`    // bytes
	Written  int64 `json:"written"` // bytes
	Fills    int64 `json:"fills"`   // of memory with zeros, beside kernels
	Filled   int64 `json:"filled"`  // bytes
	Copies   int64 `json:"copies"`
	Copied   int64 `json:"copied"` // bytes
	Waits    int64 `json:"waits"`  // of the host
	Allocs   int64 `json:"allocs"`
	Segments int64 `json:"segments"` // that the device was asked for
	Modules  int64 `json:"modules"`  // of kernels that were compiled
}

// Add counts one event.
func (w *Work) Add(e *Event) {
	switch e.Kind {
	case KindLaunch, KindFill:
		w.launch(e)
	case KindCopy:
		w.Copies++
		w.Copied += e.Bytes
	case KindWait:
		if e.What != WaitQueue {
			w.Waits++
		}
	case KindAlloc:
		w.Allocs++
	case KindSegmentAlloc:
		w.Segments++
	case KindModuleLoad:
		w.Modules++
	}
}

func (w *Work) launch(e *Event) {
	k := e.Kernel
	if e.Step == 0 { // the first piece of the work stands for the whole operation
		w.FLOPs += k.FLOPs
		w.Read += k.Bytes - k.Written()
		w.Written += k.Written()
	}
	if e.Kind == KindFill {
		w.Fills++
		w.Filled += e.Bytes
		return
	}
	w.Kernels++
	if len(k.Steps) > 0 {
		w.Blocks += k.Steps[e.Step].Blocks()
	}
}

// String is the work on one line.
func (w Work) String() string {
	return fmt.Sprintf("%d kernels of %d blocks, %d floating-point operations, %d bytes read and %d written, %d fills, %d copies of %d bytes, %d waits",
		w.Kernels, w.Blocks, w.FLOPs, w.Read, w.Written, w.Fills, w.Copies, w.Copied, w.Waits)
}

// Tally is an observer that counts, in all and by operation. It may be used by several goroutines at once.
type Tally struct {
	mu  sync.Mutex
	all Work
	ops map[string]Work
}

// Observe counts an event.
func (t *Tally) Observe(e *Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all.Add(e)
	if e.Kernel != nil {
		if t.ops == nil {
			t.ops = map[string]Work{}
		}
		op := t.ops[e.Kernel.What()]
		op.Add(e)
		t.ops[e.Kernel.What()] = op
	}
}

// Work is what was counted so far, and by operation what launches and fills there were.
func (t *Tally) Work() (all Work, ops map[string]Work) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all, maps.Clone(t.ops)
}
