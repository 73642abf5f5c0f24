package snapshot

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/pickle"
)

func same(n int64) func(int) int64 { return func(int) int64 { return n } }

// reserved of a healthy world: 50 segments of 32 MiB, and one of 1 GiB that is free.
const reserved = 50*32 + 1024

// fixtures are worlds in which a rule speaks, and ones that come near it in which none does.
var fixtures = []struct {
	name string
	rule string // "" for a near miss
	near string // the rule that it nearly is
	line string
	world
}{
	{name: "stuck", rule: "R05", world: world{stuck: 400 * mib}},
	{name: "retries", rule: "R05", world: world{retries: 2}},
	{name: "refused in pieces", rule: "R05", world: world{stuck: 300 * mib, oom: 1200 * mib}},
	{name: "nine percent stuck", near: "R05", world: world{stuck: 250 * mib}},
	{name: "stuck in a graph's pool", near: "R05", world: world{stuck: 400 * mib, pool: true}},
	{name: "whole pages of expandable segments", near: "R05", world: world{stuck: 400 * mib, expand: true}},
	{name: "collected by its threshold", near: "R05", world: world{retries: 2, settings: pickle.Of("garbage_collection_threshold", 0.8)}},
	{name: "leak", rule: "R06", line: "train.py:33", world: world{kept: same(8 * mib), keptLine: 33}},
	{name: "slow leak", rule: "R06", line: "train.py:33", world: world{kept: same(mib / 4), keptLine: 33}},
	{name: "larger than a step's memory", rule: "R06", line: "train.py:33", world: world{kept: same(3000 * mib), keptLine: 33}},
	{name: "a cache that fills", near: "R06", world: world{kept: func(step int) int64 { return int64(max(0, 5-step)) * 8 * mib }, keptLine: 33}},
	{name: "a log of losses", near: "R06", world: world{kept: same(512), keptLine: 33}},
	{name: "kept for some steps", near: "R06", world: world{kept: same(8 * mib), keptLine: 33, drops: 9}},
	{name: "four steps", near: "R06", world: world{kept: same(8 * mib), keptLine: 33, steps: 4}},
	{name: "each line once", near: "R06", world: world{kept: same(8 * mib)}},
	{name: "evaluation with gradients", rule: "R09", line: "model.py:41", world: world{evaluates: "evaluate", evalKeeps: 70}},
	{name: "evaluation without", near: "R09", world: world{evaluates: "evaluate", evalKeeps: 10}},
	{name: "as many in training", near: "R09", world: world{evaluates: "train_epoch", evalKeeps: 70}},
	{name: "first step of the optimizer", rule: "R10", line: "train.py:52", world: world{firstStep: true, small: mib, steps: 1}},
	{name: "states below the peak of activations", near: "R10", world: world{firstStep: true, small: 60 * mib}},
	{name: "full", rule: "R11", line: "model.py:41", world: world{oom: 4096 * mib}},
	{name: "impossible", rule: "R11", line: "model.py:41", world: world{oom: 4096 * 1024 * mib}},
	{name: "full to the brim", near: "R11", world: world{small: 200 * mib}},
	{name: "empty_cache in the loop", rule: "R19", line: "train.py:60", world: world{empties: 5, again: true}},
	{name: "empty_cache twice", near: "R19", world: world{empties: 2, again: true}},
	{name: "empty_cache for good", near: "R19", world: world{empties: 5}},
}

func diagnose(t testing.TB, file []byte) *finding.Report {
	t.Helper()
	r, err := Diagnose(context.Background(), "file", bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRules: every rule speaks of its fixtures, alone, and of no near miss; a healthy training has no finding. On a second
// device it is the same.
func TestRules(t *testing.T) {
	for _, r := range rules {
		var hits, misses int
		for _, f := range fixtures {
			if f.rule == r.id {
				hits++
			}
			if f.near == r.id {
				misses++
			}
		}
		if hits == 0 || misses == 0 {
			t.Errorf("%s has %d fixtures and %d near misses", r.id, hits, misses)
		}
	}
	healthy := world{}
	if r := diagnose(t, healthy.file(t)); len(r.Findings) != 0 || r.Figures["reserved"] != int64(reserved*mib) {
		t.Errorf("a healthy training: %v, %v", r.Findings, r.Figures["reserved"])
	}
	for _, f := range fixtures {
		for _, device := range []int{0, 3} {
			w := f.world
			w.device = device
			t.Run(f.name, func(t *testing.T) { judged(t, diagnose(t, w.file(t)), f.rule, f.line) })
		}
	}
}

// judged checks that a report has the finding of a rule alone, or none, and that it says all that a finding says.
func judged(t *testing.T, r *finding.Report, rule, line string) {
	t.Helper()
	var ids []string
	for _, f := range r.Findings {
		ids = append(ids, f.Rule)
	}
	switch {
	case rule == "":
		if len(ids) > 0 {
			t.Errorf("%v", r.Findings)
		}
		return
	case !slices.Equal(ids, []string{rule}):
		t.Fatalf("found %v: %v", ids, r.Checked)
	}
	f := r.Findings[0]
	if f.Line != line || f.Title == "" || len(f.Evidence) == 0 || f.Fix == "" || f.Gain.Text == "" || f.Confidence == "" || f.DisprovedBy == "" {
		t.Errorf("%+v", f)
	}
	for _, e := range f.Evidence {
		if e.Text == "" || strings.Contains(e.Text, "%!") {
			t.Errorf("%+v", e)
		}
	}
}

// TestGrowthIsMeasured: the figures of a leak are what the world leaked.
func TestGrowthIsMeasured(t *testing.T) {
	w := world{kept: same(8 * mib), keptLine: 33}
	f := diagnose(t, w.file(t)).Findings[0]
	if f.Evidence[0].Value != int64(8*mib) || f.Gain.Bytes%(8*mib) != 0 || f.Confidence != finding.High {
		t.Errorf("%+v", f)
	}
}

// TestMarkedSteps: where the program marks its optimizer's steps, these are the phases.
func TestMarkedSteps(t *testing.T) {
	events := []*Event{}
	var marks []Mark
	for i := range 8 {
		at := int64(100 * i)
		events = append(events, &Event{Action: "alloc", Addr: uint64(i + 1), Size: mib, Time: at, stack: newBooks().none})
		marks = append(marks, Mark{"Optimizer.step#Adam.step", true, 0, at + 10}, Mark{"Optimizer.step#Adam.step", false, 0, at + 20}, Mark{"other", false, 0, at + 30})
	}
	if got := historyOf(events).phases(marks, 0); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Error(got)
	}
	if got := historyOf(events).phases(marks, 1); len(got) != 0 {
		t.Errorf("marks of another device: %v", got)
	}
}

// TestTroughs: by hand.
func TestTroughs(t *testing.T) {
	for _, c := range []struct {
		curve []int64
		want  []int
	}{
		{nil, nil},
		{[]int64{1, 2, 3}, nil},
		{[]int64{0, 10, 0, 10, 0}, []int{2, 4}},
		{[]int64{0, 10, 9, 10, 1, 11, 2, 3, 12, 3}, []int{4, 6, 9}},
		{[]int64{0, 10, 2, 1, 2}, []int{3}},
	} {
		if got := troughs(c.curve); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.curve, got, c.want)
		}
	}
	if slope, fit := line([]int64{3, 5, 7, 9}); slope != 2 || fit != 1 {
		t.Error(slope, fit)
	}
}
