package finding

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// healthy are ten steps of 100 ms in which nothing is wrong.
func healthy() Facts {
	return Facts{
		Device: "cuda:0", Took: 1000 * ms, Steps: 10, Timed: true,
		Busy: 960 * ms, Copies: 10 * ms, Idle: Idle{Loader: 10 * ms, Wait: 10 * ms, Host: 20 * ms},
		Launches: 4000, LaunchHost: 20 * ms, Kernel: 200 * time.Microsecond,
		Waits:    []Wait{{"read", "main.go:30", 10, 300 * ms, 10 * ms}},
		Moves:    []Move{{What: "Memcpy HtoD (Pinned -> Device)", Line: "main.go:12", Count: 10, Bytes: 10 << 20, Took: 10 * ms, Median: 1 << 20}},
		Products: 700 * ms, Wide: 10 * ms, Tensor: 14.8, Elementwise: 150 * ms,
	}
}

type bug struct {
	rule, line string
	make       func(f *Facts)
	gain       time.Duration // of a step
}

// bugs change healthy facts so that a rule speaks, of the line given.
var bugs = []bug{
	{"loader-bound", "", func(f *Facts) { f.Busy, f.Idle.Loader = 700*ms, 270*ms }, 27 * ms},
	{"waits-in-loop", "main.go:30", func(f *Facts) { f.Busy, f.Waits[0].Idle, f.Idle.Wait = 900*ms, 70*ms, 70*ms }, 7 * ms},
	{"waits-in-loop", "main.go:31", func(f *Facts) { f.Waits = append(f.Waits, Wait{"read", "main.go:31", 500, 10 * ms, ms}) }, ms / 10},
	{"launch-bound", "", func(f *Facts) { f.Busy, f.Idle.Host, f.Kernel = 300*ms, 680*ms, 3*time.Microsecond }, 68 * ms},
	{"launch-bound", "", func(f *Facts) { f.Busy, f.Idle.Host, f.Kernel, f.Watching = 300*ms, 680*ms, 3*time.Microsecond, 80*ms }, 60 * ms},
	{"launch-bound", "", func(f *Facts) { f.Busy, f.Idle.Host, f.Kernel, f.Captured = 300*ms, 680*ms, 3*time.Microsecond, 80*ms }, 60 * ms},
	{"host-bound", "", func(f *Facts) { f.Busy, f.Idle.Host = 500*ms, 480*ms }, 48 * ms},
	{"host-bound", "", func(f *Facts) { f.Busy, f.Idle.Host, f.Pauses, f.Kernel = 500*ms, 480*ms, 470*ms, 3*time.Microsecond }, 47 * ms},
	{"host-bound", "", func(f *Facts) { f.OnHost, f.Busy, f.Idle.Host = true, 500*ms, 480*ms }, 48 * ms},
	{"tiny-copies", "main.go:14", func(f *Facts) {
		f.Moves = append(f.Moves, Move{What: "Memcpy HtoD (Pinned -> Device)", Line: "main.go:14", Count: 400, Bytes: 400 << 10, Took: 4 * ms, Host: 8 * ms, Median: 1 << 10})
	}, 390 * time.Microsecond},
	{"exposed-copies", "main.go:12", func(f *Facts) { f.Copies = 120 * ms }, 12 * ms},
	{"no-tensor-cores", "main.go:20", func(f *Facts) { f.Wide, f.WideLine = 600*ms, "main.go:20" }, 40 * ms},
	{"memory-bound", "", func(f *Facts) { f.Elementwise = 400 * ms }, 20 * ms},
	{"no-gradient", "", func(f *Facts) { f.NoGradient = []string{"head.bias"} }, 0},
	{"kept-across-steps", "main.go:33", func(f *Facts) { f.Growing = []Growth{{"main.go:33", "activations", 1 << 20, 9}} }, 0},
}

// TestRules: every rule finds its bug, alone, at its line and with its gain; a healthy training has no finding.
func TestRules(t *testing.T) {
	f := healthy()
	if found := Judge(&f); len(found) != 0 {
		t.Errorf("a healthy training: %v", found)
	}
	for _, name := range Rules() {
		if !slices.ContainsFunc(bugs, func(b bug) bool { return b.rule == name }) {
			t.Errorf("no bug for the rule %s", name)
		}
	}
	for _, b := range bugs {
		f := healthy()
		b.make(&f)
		found := Judge(&f)
		if len(found) != 1 || found[0].Name != b.rule || found[0].Line != b.line || found[0].Gain.Step().Round(time.Microsecond) != b.gain {
			t.Errorf("%s: found %+v, want it alone at %q with %v", b.rule, found, b.line, b.gain)
			continue
		}
		text := found[0].String()
		for _, want := range []string{b.rule, b.line, found[0].Fix, found[0].Evidence[0].Text} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", b.rule, want, text)
			}
		}
	}
}

// TestOrder: what costs most comes first, five at most, and a model's times are called so.
func TestOrder(t *testing.T) {
	f := healthy()
	for _, b := range bugs {
		b.make(&f)
	}
	f.Modelled = true
	found := Judge(&f)
	if len(found) != most || !slices.IsSortedFunc(found, func(a, b Finding) int { return int(b.Gain.Step() - a.Gain.Step()) }) {
		t.Errorf("findings %v", found)
	}
	if !strings.Contains(found[0].String(), "modelled") {
		t.Errorf("a model's gain is not called so:\n%s", found[0].String())
	}
}

// TestEmpty: nothing recorded is nothing wrong.
func TestEmpty(t *testing.T) {
	if found := Judge(new(Facts)); len(found) != 0 {
		t.Errorf("of nothing: %v", found)
	}
}

// TestChecked: what a device cannot show is not said to have been looked at.
func TestChecked(t *testing.T) {
	card, host := healthy(), Facts{Timed: true, OnHost: true}
	for name, c := range map[string]struct {
		facts *Facts
		of    string
		not   string
	}{"card": {&card, "products beside tensor cores", "?"}, "host": {&host, "waits for batches", "tensor cores"}, "no times": {&Facts{}, "grows", "copies"}} {
		if text := Checked(c.facts); !strings.Contains(text, c.of) || strings.Contains(text, c.not) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestGainText: a time is said to be of what it is of.
func TestGainText(t *testing.T) {
	for want, f := range map[string]Finding{
		"some 3.00 ms a step (by a replay)":                   {Gain: Saves(3*time.Millisecond, "by a replay")},
		"some 3.00 ms a step, as modelled (by a replay)":      {Gain: Saves(3*time.Millisecond, "by a replay"), Modelled: true},
		"some 3.00 ms of the whole (the trace marks nothing)": {Gain: Gain{Text: "the trace marks nothing", StepUS: 3000, Whole: true}},
		"1.00 KiB (of rows)":                                  {Gain: Gain{Text: "of rows", Bytes: 1024}},
		"the run works":                                       {Gain: Gain{Text: "the run works"}},
	} {
		if got := f.GainText(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
