package snapshot

import (
	"bytes"
	"testing"

	"github.com/warpline-ml/warpline/internal/pickle"
)

const mib = 1 << 20

// world is a training of which a snapshot is made: a decoder of 50 layers on a card with plenty of memory. Its zero value is
// healthy. A step makes an activation a layer, then a gradient a layer while activations go, then a temporary a layer in the
// optimizer, and frees the gradients: memory ends each step where it began. 100 parameters and as many states of 8 MiB were
// there before.
type world struct {
	steps int // 12 if 0

	kept      func(step int) int64 // bytes that a step leaves behind, by its number
	keptLine  int                  // of train.py, or another in each step if 0
	drops     int                  // a step after which all that was left goes; 0: none
	stuck     int64                // inactive bytes beside live blocks, in segments of 200 MiB
	settings  pickle.Dict
	expand    bool // segments are expandable
	pool      bool // segments with stuck bytes are of a private pool
	retries   int
	firstStep bool  // the states are made in the trace
	small     int64 // of an activation; 20 MiB if 0
	oom       int64 // a request that fails at the end, with 1 GiB left
	empties   int   // calls of empty_cache()
	again     bool  // what they give back is asked for again
	evaluates string
	evalKeeps int // of 100 allocations of the evaluation, how many stay until its end
	device    int

	events []any
	now    int64
	next   int64
	live   []any // segments
}

func call(name, file string, line int) pickle.Dict {
	return pickle.Of("name", name, "filename", file, "line", line)
}

// native are the calls that lie innermost in each stack.
var native = []any{call("torch::unwind::unwind()", "??", 0), call("at::_ops::empty_strided::call(c10::ArrayRef<c10::SymInt>)", "??", 0)}

func calls(frames ...any) *pickle.Shared {
	return &pickle.Shared{Value: append(append([]any{}, native...), frames...)}
}

var (
	main0      = call("main", "/home/me/train.py", 90)
	inForward  = calls(call("forward", "/home/me/model.py", 41), call("_call_impl", "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", 1700), main0)
	inBackward = calls(call("backward", "/venv/lib/python3.12/site-packages/torch/autograd/__init__.py", 340), call("train", "/home/me/train.py", 50), main0)
	inStep     = calls(call("_multi_tensor_adamw", "/venv/lib/python3.12/site-packages/torch/optim/adamw.py", 380), call("train", "/home/me/train.py", 52), main0)
	emptying   = calls(call("THCPModule_emptyCache(_object*, _object*)", "Module.cpp", 0), call("empty_cache", "/venv/lib/python3.12/site-packages/torch/cuda/memory.py", 222), call("train", "/home/me/train.py", 60), main0)
)

func (w *world) event(action string, addr, size int64, stack *pickle.Shared) {
	w.now += 10
	w.events = append(w.events, pickle.Of("action", action, "addr", addr, "size", size, "stream", 0, "time_us", w.now, "frames", stack))
}

// alloc is the address of new memory, of which each has its own.
func (w *world) alloc(size int64, stack *pickle.Shared) int64 {
	w.next += 1 << 30
	w.event("alloc", w.next, size, stack)
	return w.next
}

func (w *world) free(addr, size int64) {
	w.event("free_requested", addr, size, calls())
	w.event("free_completed", addr, size, calls())
}

// segment is memory of the driver with blocks in it: their bytes, negative where they are inactive.
func (w *world) segment(stack *pickle.Shared, private bool, sizes ...int64) {
	w.next += 1 << 30
	var total, used int64
	var blocks []any
	for _, size := range sizes {
		state := "inactive"
		if size > 0 {
			state, used = "active_allocated", used+size
		}
		blocks = append(blocks, pickle.Of("address", w.next+total, "size", max(size, -size), "requested_size", max(size, 0), "state", state, "frames", stack))
		total += max(size, -size)
	}
	id := pickle.Tuple{0, 0}
	if private {
		id = pickle.Tuple{1, 0}
	}
	w.live = append(w.live, pickle.Of("device", w.device, "address", w.next, "total_size", total, "allocated_size", used, "active_size", used,
		"requested_size", used, "stream", 0, "segment_type", "large", "segment_pool_id", id, "is_expandable", w.expand, "frames", calls(), "blocks", blocks))
}

const layers = 50

func (w *world) train() {
	size := w.small
	if size == 0 {
		size = 20 * mib
	}
	var left [][2]int64
	for step := range w.steps {
		var activations []int64
		for range layers {
			activations = append(activations, w.alloc(size, inForward))
		}
		var gradients []int64
		for i := range layers {
			gradients = append(gradients, w.alloc(16*mib, inBackward))
			w.free(activations[layers-1-i], size)
		}
		if w.firstStep && step == 0 {
			for range 100 {
				w.alloc(8*mib, inStep)
			}
		}
		for range layers {
			w.free(w.alloc(mib, inStep), mib)
		}
		for _, g := range gradients {
			w.free(g, 16*mib)
		}
		if w.kept != nil && w.kept(step) > 0 {
			line := w.keptLine
			if line == 0 {
				line = 100 + step
			}
			left = append(left, [2]int64{w.alloc(w.kept(step), calls(call("train", "/home/me/train.py", line), main0)), w.kept(step)})
		}
		if w.drops > 0 && step == w.drops {
			for _, l := range left {
				w.free(l[0], l[1])
			}
		}
		if step < w.empties {
			w.event("segment_free", 1, 200*mib, emptying)
			w.event("segment_free", 2, 200*mib, emptying)
			if w.again {
				w.event("segment_alloc", 1, 200*mib, inForward)
				w.event("segment_alloc", 2, 200*mib, inForward)
			}
		}
		if step < w.retries {
			w.event("segment_free", 1, 200*mib, inForward)
			w.event("segment_alloc", 2, 200*mib, inForward)
		}
	}
	w.evaluate()
	if w.oom > 0 {
		for range layers {
			w.alloc(size, inForward)
		}
		w.events = append(w.events, pickle.Of("action", "oom", "device_free", 1<<30, "size", w.oom, "stream", 0, "time_us", w.now, "frames", inForward))
	}
}

// evaluate runs 100 layers of a function of the program.
func (w *world) evaluate() {
	if w.evaluates == "" {
		return
	}
	stack := calls(call("forward", "/home/me/model.py", 41), call(w.evaluates, "/home/me/train.py", 70), main0)
	var kept []int64
	for i := range 100 {
		addr := w.alloc(20*mib, stack)
		if i < w.evalKeeps {
			kept = append(kept, addr)
		} else {
			w.free(addr, 20*mib)
		}
	}
	for _, addr := range kept {
		w.free(addr, 20*mib)
	}
}

// file is the snapshot.
func (w *world) file(t testing.TB) []byte {
	t.Helper()
	if w.steps == 0 {
		w.steps = 12
	}
	w.next = 1 << 40
	w.train()
	for range 50 {
		w.segment(calls(), false, 16*mib, 16*mib)
	}
	w.segment(calls(), false, -1000*mib, -24*mib)
	for left := w.stuck; left > 0; left -= 190 * mib {
		n := min(left, 190*mib)
		w.segment(inForward, w.pool, -n, 200*mib-n)
	}
	traces := make([]any, w.device+1)
	for i := range traces {
		traces[i] = []any{}
	}
	traces[w.device] = w.events
	settings := append(pickle.Of("expandable_segments", w.expand), w.settings...)
	var b bytes.Buffer
	if err := pickle.Encode(&b, pickle.Of("segments", w.live, "device_traces", traces, "allocator_settings", settings, "external_annotations", []any{})); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
