package kineto

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/kineto/tracetest"
)

func diagnosed(t *testing.T, raw []byte) *finding.Report {
	t.Helper()
	rep, err := Diagnose(t.Context(), "a trace", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// TestAgainst: what was made worse is what changed, by as much as was put in; a trace has not changed against itself.
func TestAgainst(t *testing.T) {
	well, slow := diagnosed(t, tracetest.ResNet(tracetest.Options{Steps: 6})), diagnosed(t, tracetest.ResNet(tracetest.Options{Steps: 6, Loader: 500 * millis}))
	for _, c := range Against(well, well) {
		if c.Difference() != 0 {
			t.Errorf("against itself: %+v", c)
		}
	}
	rows := map[string]Change{}
	for _, c := range Against(well, slow) {
		rows[c.Name] = c
	}
	if d := rows["a step"].Difference(); d < 250_000 || d > 500_000 {
		t.Errorf("500 ms more of the loader, some of them behind the device's work, make the step %v µs longer", d)
	}
	if d := rows["idle: waits for batches"].Difference(); d < 0.9*rows["a step"].Difference() {
		t.Errorf("of it %v µs are waits for batches", d)
	}
	plain := Against(well, diagnosed(t, tracetest.ResNet(tracetest.Options{Steps: 6, Float32: true})))
	gone, come := 0, 0
	for _, c := range plain {
		if c.What == "kernel" && c.Calls[1] == 0 {
			gone++
		}
		if c.What == "kernel" && c.Calls[0] == 0 {
			come++
		}
	}
	if gone == 0 || come == 0 || Against(well, &finding.Report{}) != nil {
		t.Errorf("products in float32: %d kernels gone, %d come", gone, come)
	}
}

// TestAnnotate: all that the file had is still there, the longest queue is that of the figures, and the device is as busy.
func TestAnnotate(t *testing.T) {
	for name, raw := range map[string][]byte{"gpt": tracetest.GPT(tracetest.Options{Steps: 3}), "resnet": tracetest.ResNet(tracetest.Options{Steps: 3, Pageable: true, Loader: 3 * millis})} {
		tr, err := Read(t.Context(), bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := tr.Annotate(&out, bytes.NewReader(raw)); err != nil {
			t.Fatal(err)
		}
		type event struct {
			Ph, Cat, Name string
			Pid           int
			Ts            json.Number
			Args          map[string]any
		}
		var before, after struct{ TraceEvents []event }
		for at, raw := range map[any][]byte{&before: raw, &after: out.Bytes()} {
			if err := json.Unmarshal(raw, at); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		since := map[int]float64{}
		busy := 0.0
		queues := map[string]float64{}
		for _, e := range after.TraceEvents {
			if e.Cat != "warpline" {
				continue
			}
			n++
			at, _ := e.Ts.Float64()
			switch on, is := e.Args["busy"].(float64); {
			case !is:
				queues[e.Name] = e.Args["launched"].(float64)
				if queues[e.Name] < 0 {
					t.Errorf("%s: %+v", name, e)
				}
			case on == 1:
				since[e.Pid] = at
			default:
				busy += at - since[e.Pid]
			}
		}
		for q, left := range queues {
			if left != 0 {
				t.Errorf("%s: %s ends with %v", name, q, left)
			}
		}
		rep := diagnosed(t, raw)
		if want := rep.Figures["busy_us"].(float64); n == 0 || len(queues) == 0 || len(after.TraceEvents)-n != len(before.TraceEvents) || math.Abs(busy-want) > 1 {
			t.Errorf("%s: %d counters, %d events of %d, busy %v of %v µs", name, n, len(after.TraceEvents)-n, len(before.TraceEvents), busy, want)
		}
		if again := diagnosed(t, out.Bytes()); fmt.Sprint(again.Findings) != fmt.Sprint(rep.Findings) {
			t.Errorf("%s: with counters it is judged otherwise", name)
		}
	}
	for text, want := range map[string]string{`{"traceEvents": [` + oneKernel: "not whole", `{"traceEvents": []}`: "no events of a device"} {
		tr, err := Read(t.Context(), strings.NewReader(text))
		if err == nil {
			err = tr.Annotate(new(bytes.Buffer), strings.NewReader(text))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestUnlike: what tells two traces apart besides the program is noted, where both say it.
func TestUnlike(t *testing.T) {
	one := Trace{Rank: 1, World: 8, Devices: []Device{{Name: "A100"}}, Marked: 3}
	for name, c := range map[string]struct {
		change func(t *Trace)
		note   string
	}{
		"alike":     {func(*Trace) {}, ""},
		"rank":      {func(t *Trace) { t.Rank = 0 }, "different ranks, 1 before and 0 after"},
		"no rank":   {func(t *Trace) { t.Rank = -1 }, ""},
		"world":     {func(t *Trace) { t.World = 4 }, "8 ranks before and has 4"},
		"no world":  {func(t *Trace) { t.World = 0 }, ""},
		"card":      {func(t *Trace) { t.Devices = []Device{{Name: "H100"}} }, "A100 before, H100 after"},
		"no card":   {func(t *Trace) { t.Devices = nil }, ""},
		"no steps":  {func(t *Trace) { t.Marked = 0 }, "only one"},
		"more step": {func(t *Trace) { t.Marked = 5 }, ""},
	} {
		other := one
		c.change(&other)
		notes := strings.Join(Unlike(&finding.Report{Detail: &one}, &finding.Report{Detail: &other}), "; ")
		if (notes == "") != (c.note == "") || !strings.Contains(notes, c.note) {
			t.Errorf("%s: %q", name, notes)
		}
	}
}
