package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/pickle"
)

// small is a snapshot of one segment with some blocks, and of so many steps that each allocate twice and free once less than
// they keep.
type small struct {
	blocks       []any
	steps, keeps int
	more         []any // events
	cut          int   // bytes that are missing at the end
	bare         bool  // no segments
}

func (s small) file(t *testing.T) []byte {
	t.Helper()
	segments := []any{pickle.Of("device", 0, "address", 4096, "total_size", 64*mib, "allocated_size", 32*mib, "active_size", 32*mib, "blocks", s.blocks)}
	if s.bare {
		segments = []any{}
	}
	events := slices.Clone(s.more)
	event := func(action string, addr int, size int64) {
		events = append(events, pickle.Of("action", action, "addr", addr, "size", size, "time_us", len(events), "frames", inForward))
	}
	for step := range s.steps {
		event("alloc", 2*step, 8*mib)
		event("alloc", 2*step+1, 8*mib)
		event("free_completed", 2*step, 8*mib)
		if step >= s.keeps {
			event("free_completed", 2*step+1, 8*mib)
		}
	}
	var b bytes.Buffer
	if err := pickle.Encode(&b, pickle.Of("segments", segments, "device_traces", []any{events})); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()[:b.Len()-s.cut]
}

var (
	halfUsed    = []any{pickle.Of("address", 4096, "size", 32*mib, "state", "active_allocated"), pickle.Of("address", 4096+32*mib, "size", mib, "state", "inactive")}
	oom         = []any{pickle.Of("action", "oom", "device_free", mib, "size", 64*mib, "time_us", 0, "frames", inForward)}
	calledEmpty = []any{pickle.Of("action", "segment_free", "addr", 1, "size", mib, "time_us", 0, "frames", emptying)}
	givenBack   = []any{pickle.Of("action", "segment_free", "addr", 1, "size", mib, "time_us", 0, "frames", inForward)}
)

// TestChecked: what is said to be well is what a file has: each line with a file that earns it, and a near one that does not.
func TestChecked(t *testing.T) {
	for _, c := range []struct {
		line       string
		earns, not small
	}{
		{"no fragmentation", small{blocks: halfUsed}, small{steps: 1}},
		{"fits without new memory", small{blocks: halfUsed}, small{blocks: nil}},
		{"steady: 4 allocations", small{steps: 2}, small{blocks: halfUsed}},
		{"no growth from step to step", small{blocks: halfUsed, steps: 12, keeps: 2}, small{blocks: halfUsed, steps: 5, keeps: 2}},
		{"no request failed", small{steps: 2}, small{steps: 2, more: oom}},
		{"no request failed", small{steps: 2}, small{more: givenBack}},
		{"the peak is", small{steps: 2}, small{steps: 2, bare: true}},
		{"are one empty_cache()", small{steps: 2, more: calledEmpty}, small{steps: 2, more: givenBack}},
		{"steady: 4 allocations", small{steps: 2}, small{steps: 2, cut: 9}},
		{"no fragmentation", small{blocks: halfUsed, steps: 2}, small{blocks: halfUsed, steps: 2, cut: 9}},
	} {
		says := func(s small) bool {
			r := diagnose(t, s.file(t))
			return slices.ContainsFunc(r.Checked, func(text string) bool { return strings.Contains(text, c.line) })
		}
		if !says(c.earns) {
			t.Errorf("%q is not said of %+v", c.line, c.earns)
		}
		if says(c.not) {
			t.Errorf("%q is said of %+v", c.line, c.not)
		}
	}
}

// TestUnjudged: what a file leaves open is named, and what its memory would have fitted is told.
func TestUnjudged(t *testing.T) {
	for want, s := range map[string]small{
		"fragmentation, since the file has no blocks": {steps: 2},
		"growth and the peak, since the file has no":  {blocks: halfUsed},
		"since the trace shows 5 steps and 6 are":     {blocks: halfUsed, steps: 5, keeps: 2},
		"headroom: 48.0 MiB in use at most":           {blocks: halfUsed, steps: 2},
		"it fits from 3.81 GiB":                       {blocks: halfUsed},
		"cut at byte":                                 {blocks: halfUsed, cut: 5},
	} {
		if notes := strings.Join(diagnose(t, s.file(t)).Notes, "\n"); !strings.Contains(notes, want) {
			t.Errorf("%+v: %q does not say %q", s, notes, want)
		}
	}
}

// TestTimelineChecked: the same of timelines.
func TestTimelineChecked(t *testing.T) {
	steps := func(n int) string {
		rows := []string{"[-1, 1, 100, 0]"}
		for i := range n {
			rows = append(rows, fmt.Sprintf("[%d, 2, 50, 4], [%d, 4, -50, 4]", 2*i, 2*i+1))
		}
		return "[" + strings.Join(rows, ", ") + "]"
	}
	says := func(text string) string {
		r, err := DiagnoseTimeline(context.Background(), "file", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(append(r.Checked, r.Notes...), "\n")
	}
	for _, c := range []struct{ line, earns, not string }{
		{"no growth from step to step", steps(8), steps(5)},
		{"could not be judged: growth", steps(5), steps(8)},
		{"the peak is 150 B, of which 100 B is parameter", steps(1), "[[0, 3, 0, 0]]"},
		{"the peak is", steps(1), strings.TrimSuffix(steps(1), "]")},
	} {
		if got := says(c.earns); !strings.Contains(got, c.line) {
			t.Errorf("%q is not said: %s", c.line, got)
		}
		if got := says(c.not); strings.Contains(got, c.line) {
			t.Errorf("%q is said: %s", c.line, got)
		}
	}
}
