package kineto

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/kineto/tracetest"
)

// file is a trace as a test changes it.
type file struct {
	t   *testing.T
	doc map[string]any
}

// without is a trace less the events that drop picks, and changed by it.
func (f *file) without(drop func(e map[string]any) bool) {
	var kept []any
	for _, e := range f.doc["traceEvents"].([]any) {
		if !drop(e.(map[string]any)) {
			kept = append(kept, e)
		}
	}
	f.doc["traceEvents"] = kept
}

func lacking(key, word string) func(*file) {
	return func(f *file) {
		f.without(func(e map[string]any) bool { return strings.Contains(e[key].(string), word) })
	}
}

func lackingArgument(words ...string) func(*file) {
	return func(f *file) {
		f.without(func(e map[string]any) bool {
			for _, w := range words {
				delete(e["args"].(map[string]any), w)
			}
			return false
		})
	}
}

// renamed gives all events of a category a name.
func renamed(category, name string) func(*file) {
	return func(f *file) {
		f.without(func(e map[string]any) bool {
			if e["cat"] == category {
				e["name"] = name
			}
			return false
		})
	}
}

// renamedAs gives events of a name another.
func renamedAs(from, to string) func(*file) {
	return func(f *file) {
		f.without(func(e map[string]any) bool {
			if e["name"] == from {
				e["name"] = to
			}
			return false
		})
	}
}

func onDevice(e map[string]any) bool {
	return e["cat"] == "kernel" || strings.HasPrefix(e["cat"].(string), "gpu_mem")
}

func timeless(f *file) {
	f.without(func(e map[string]any) bool {
		if onDevice(e) {
			e["ts"] = "NaN"
		}
		return false
	})
}

// unseen are, for each rule, a training that is well by it, and what the file is changed to, so that nobody can say so.
var unseen = []struct {
	rule   string
	earns  func(o *tracetest.Options)
	change func(f *file)
}{
	{"no-gpu-events", nil, timeless},
	{"loader-bound", func(o *tracetest.Options) { o.Idle = 20 * ms }, lacking("name", "enumerate(DataLoader)")},
	{"waits-in-loop", nil, lacking("cat", "cuda_runtime")},
	{"launch-bound", func(o *tracetest.Options) { o.Idle = 200 * ms }, lacking("cat", "cuda_runtime")},
	{"host-bound", func(o *tracetest.Options) { o.Idle = 200 * ms }, lacking("cat", "cuda_runtime")},
	{"slow-calls", nil, lacking("cat", "cuda_runtime")},
	{"recompilation", nil, lacking("cat", "cuda_runtime")},
	{"pauses", nil, lackingArgument("correlation")},
	{"periodic-work", nil, lacking("name", "ProfilerStep")},
	{"pageable-copies", nil, renamed("gpu_memcpy", "CopyHostToDevice")},
	{"tiny-copies", nil, lackingArgument("bytes")},
	{"exposed-copies", nil, lacking("cat", "gpu_memcpy")},
	{"no-tensor-cores", func(o *tracetest.Options) { o.Volta = true }, renamed("kernel", "my_kernel")},
	{"no-tf32", nil, renamed("kernel", "my_kernel")},
	{"misaligned-shapes", nil, lackingArgument("Input Dims")},
	{"few-blocks", nil, lackingArgument("blocks per SM")},
	{"memory-bound", nil, renamed("kernel", "my_kernel")},
	{"slow-attention", nil, lackingArgument("Input Dims")},
	{"unfused-optimizer", nil, lacking("name", "Optimizer.step")},
	{"exposed-communication", nil, lacking("name", "nccl")},
	{"small-messages", nil, lackingArgument("In msg nelems", "Out msg nelems")},
	{"never-zeroed", nil, lacking("name", "AccumulateGrad")},
	{"zeroing", nil, lacking("name", "Optimizer.zero_grad")},
	{"reduces-each-pass", nil, lacking("name", "DistributedDataParallel.forward")},
	{"data-parallel", nil, lacking("name", "ProfilerStep")},
	{"gloo", nil, func(f *file) { delete(f.doc, "distributedInfo") }},
	{"memory-near-limit", func(o *tracetest.Options) { o.Reserved = 20 << 30 }, lacking("name", "[memory]")},
	{"under-filled", nil, lacking("name", "ProfilerStep")},
}

// TestChecked: of every rule it is said that what it looks at is well where the file has that, and not where it does not; then it
// is named among what is not judged.
func TestChecked(t *testing.T) {
	for _, r := range rules {
		n := 0
		for _, u := range unseen {
			if u.rule != r.name {
				continue
			}
			n++
			t.Run(r.name, func(t *testing.T) {
				o := tracetest.Options{Steps: 8}
				if u.earns != nil {
					u.earns(&o)
				}
				whole := tracetest.GPT(o)
				if got := judged(t, whole); !slices.Contains(got.Checked, r.looksAt) {
					t.Errorf("it is well, and %v; %v", got.Checked, got.Findings)
				}
				got := judged(t, changed(t, whole, u.change))
				if slices.Contains(got.Checked, r.looksAt) || !slices.Contains(got.Figures["not_judged"].([]string), r.looksAt) {
					t.Errorf("nobody knows, and it says %v; not judged: %v", got.Checked, got.Figures["not_judged"])
				}
				for i := range got.Findings {
					if got.Findings[i].Name == r.name {
						t.Errorf("nobody knows, and it says %s", got.Findings[i].String())
					}
				}
			})
		}
		if n == 0 {
			t.Errorf("no file leaves open what %s looks at", r.name)
		}
	}
}

func changed(t *testing.T, trace []byte, change func(*file)) []byte {
	t.Helper()
	f := &file{t: t}
	d := json.NewDecoder(bytes.NewReader(trace))
	d.UseNumber()
	if err := d.Decode(&f.doc); err != nil {
		t.Fatal(err)
	}
	change(f)
	b, err := json.Marshal(f.doc)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestNotJudged: of a file in which nothing of a device can be looked at, nothing is said to be well, and it says so; only of
// one that was read as a whole it is said that it has no events of a device.
func TestNotJudged(t *testing.T) {
	gpt := tracetest.GPT(tracetest.Options{Steps: 3})
	cutAt := func(word string) []byte { return gpt[:bytes.Index(gpt, []byte(word))] }
	for name, c := range map[string]struct {
		trace []byte
		found bool // R50
	}{
		"cut before the first": {cutAt(`"cat": "gpu_memcpy"`), false},
		"no times":             {changed(t, gpt, timeless), false},
		"only memory sets":     {changed(t, gpt, func(f *file) { f.without(func(e map[string]any) bool { return onDevice(e) }); f.add("gpu_memset") }), false},
		"of no profiler":       {[]byte(`[{"ph": "X", "name": "fusion.3", "pid": 1, "tid": 2, "ts": 1, "dur": 5}]`), false},
		"a broken event":       {[]byte(`[{"ph": "X" "cat"}, {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2}]`), false},
		"without the device":   {tracetest.GPT(tracetest.Options{Steps: 3, NoDevice: true}), true},
		"nothing was recorded": {[]byte(`{"schemaVersion": 1, "traceEvents": []}`), true},
		"only events of no time": {changed(t, gpt, func(f *file) {
			f.without(func(e map[string]any) bool { e["dur"], e["ts"] = 0, 5; return !onDevice(e) })
		}), false},
	} {
		r := judged(t, c.trace)
		if len(r.Checked) > 0 {
			t.Errorf("%s: well are %v", name, r.Checked)
		}
		if found := len(r.Findings) == 1 && r.Findings[0].Rule == "R50"; found != c.found || !c.found && len(r.Findings) > 0 {
			t.Errorf("%s: %v", name, r.Findings)
		}
		if says := strings.Contains(strings.Join(r.Notes, "\n"), "could not be judged"); says == c.found {
			t.Errorf("%s: %v", name, r.Notes)
		}
	}
}

// add adds an event of the device.
func (f *file) add(category string) {
	f.doc["traceEvents"] = append(f.doc["traceEvents"].([]any), map[string]any{"ph": "X", "cat": category, "name": "Memset", "ts": 10100, "dur": 5, "args": map[string]any{"stream": 7}})
}
