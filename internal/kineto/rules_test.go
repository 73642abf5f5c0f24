package kineto

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/kineto/tracetest"
)

const ms = 1_000_000

// brokenTrainings break one thing each of a training that is well, and name the rule that must say so; also are rules that
// may speak beside it, since one thing leads to another.
var brokenTrainings = []struct {
	rule     string
	training func(tracetest.Options) []byte
	change   func(o *tracetest.Options)
	also     []string
}{
	{"no-gpu-events", tracetest.ResNet, func(o *tracetest.Options) { o.NoDevice = true }, nil},
	{"loader-bound", tracetest.ResNet, func(o *tracetest.Options) { o.Loader = 600 * ms }, nil},
	{"waits-in-loop", tracetest.ResNet, func(o *tracetest.Options) { o.Items = 8; o.HostCost = 200_000 }, []string{"host-bound", "exposed-copies"}},
	{"launch-bound", tracetest.GPT, func(o *tracetest.Options) { o.Tiny2 = true; o.HostCost = 30_000 }, []string{"exposed-communication"}},
	{"host-bound", tracetest.GPT, func(o *tracetest.Options) { o.HostCost = 2 * ms }, nil},
	{"slow-calls", tracetest.GPT, func(o *tracetest.Options) { o.Malloc = true; o.Items = 1 }, []string{"waits-in-loop"}},
	{"pauses", tracetest.GPT, func(o *tracetest.Options) { o.Pauses = true; o.Items = 1 }, []string{"waits-in-loop"}},
	{"recompilation", tracetest.GPT, func(o *tracetest.Options) { o.Loads = true; o.Items = 1 }, []string{"waits-in-loop"}},
	{"periodic-work", tracetest.GPT, func(o *tracetest.Options) { o.Checkpoint = true; o.Items = 1 }, []string{"waits-in-loop", "exposed-copies"}},
	{"pageable-copies", tracetest.ResNet, func(o *tracetest.Options) { o.Pageable = true }, []string{"exposed-copies", "waits-in-loop"}},
	{"tiny-copies", tracetest.GPT, func(o *tracetest.Options) { o.Tiny = 400 }, nil},
	{"exposed-copies", tracetest.GPT, func(o *tracetest.Options) { o.Copies = 1 << 29 }, nil},
	{"no-tensor-cores", tracetest.GPT, func(o *tracetest.Options) { o.Float32, o.Volta = true, true }, nil},
	{"no-tf32", tracetest.GPT, func(o *tracetest.Options) { o.Float32 = true }, nil},
	{"misaligned-shapes", tracetest.GPT, func(o *tracetest.Options) { o.Odd = true }, nil},
	{"few-blocks", tracetest.ResNet, func(o *tracetest.Options) { o.FewBlocks = true }, nil},
	{"under-filled", tracetest.ResNet, func(o *tracetest.Options) { o.Idle = 200 * ms }, nil},
	{"memory-bound", tracetest.ResNet, func(o *tracetest.Options) { o.Elementary = true }, nil},
	{"slow-attention", tracetest.GPT, func(o *tracetest.Options) { o.Scores = true }, nil},
	{"unfused-optimizer", tracetest.GPT, func(o *tracetest.Options) { o.Unfused = true; o.Items = 1 }, []string{"waits-in-loop"}},
	{"exposed-communication", tracetest.GPT, func(o *tracetest.Options) { o.Exposed = true }, nil},
	{"small-messages", tracetest.GPT, func(o *tracetest.Options) { o.Messages = 60 }, nil},
	{"never-zeroed", tracetest.GPT, func(o *tracetest.Options) { o.Summed = true }, nil},
	{"zeroing", tracetest.GPT, func(o *tracetest.Options) { o.Zeroed = true }, nil},
	{"reduces-each-pass", tracetest.GPT, func(o *tracetest.Options) { o.Accumulate, o.Sync, o.Exposed = 4, true, true }, []string{"exposed-communication"}},
	{"data-parallel", tracetest.GPT, func(o *tracetest.Options) { o.Replicated = 4 }, nil},
	{"gloo", tracetest.GPT, func(o *tracetest.Options) { o.Gloo = true }, nil},
	{"memory-near-limit", tracetest.GPT, func(o *tracetest.Options) { o.Reserved = 79 << 30 }, nil},
}

func judged(t *testing.T, trace []byte) *finding.Report {
	t.Helper()
	r, err := Diagnose(context.Background(), "trace.json", bytes.NewReader(trace))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestHealthy: trainings that run well have no finding, whatever the form of the file.
func TestHealthy(t *testing.T) {
	for name, training := range map[string]func(tracetest.Options) []byte{"ResNet": tracetest.ResNet, "GPT": tracetest.GPT} {
		for _, steps := range []int{2, 5, 12} {
			r := judged(t, training(tracetest.Options{Steps: steps}))
			for i := range r.Findings {
				t.Errorf("%s of %d steps: %s", name, steps, r.Findings[i].String())
			}
			if busy := r.Figures["window_busy_us"].(float64) / r.Figures["window_us"].(float64); busy < 0.9 {
				t.Errorf("%s of %d steps: busy %.3f of the window, which is not that of the device's work", name, steps, busy)
			}
			if notes := strings.Join(r.Notes, "; "); !strings.Contains(notes, "headroom: the device is busy 9") {
				t.Errorf("%s tells no headroom: %s", name, notes)
			}
			if len(r.Checked) == 0 || r.Figures["window_steps"] != steps {
				t.Errorf("%s: checked %v over %v steps", name, r.Checked, r.Figures["window_steps"])
			}
		}
	}
}

// TestRules: every rule finds what is broken for it, and no rule speaks of what is not.
func TestRules(t *testing.T) {
	for _, b := range brokenTrainings {
		t.Run(b.rule, func(t *testing.T) {
			o := tracetest.Options{Steps: 8}
			b.change(&o)
			r := judged(t, b.training(o))
			var names []string
			for i := range r.Findings {
				f := &r.Findings[i]
				names = append(names, f.Name)
				if f.Name != b.rule && !slices.Contains(b.also, f.Name) {
					t.Errorf("beside it: %s", f.String())
				}
				complete(t, f)
			}
			if !slices.Contains(names, b.rule) {
				t.Errorf("says %v; figures %v", names, windowFigures(r))
			}
		})
	}
}

func windowFigures(r *finding.Report) map[string]any {
	f := map[string]any{}
	for k, v := range r.Figures {
		if strings.HasPrefix(k, "idle") || strings.HasPrefix(k, "window") || strings.HasPrefix(k, "launch") || k == "families" || k == "syncs" {
			f[k] = v
		}
	}
	return f
}

// complete: a finding says all that it must.
func complete(t *testing.T, f *finding.Finding) {
	t.Helper()
	if f.Rule == "" || f.Title == "" || f.Fix == "" || f.DisprovedBy == "" || f.Confidence == "" || f.Gain.Text == "" || len(f.Evidence) == 0 {
		t.Errorf("%+v leaves something out", f)
	}
	for _, e := range f.Evidence {
		if e.Text == "" {
			t.Errorf("%s: evidence without text", f.Name)
		}
	}
}

// TestNearMisses: what is next to a broken training, and well by its rule.
func TestNearMisses(t *testing.T) {
	for _, c := range []struct {
		rule   string
		change func(o *tracetest.Options)
		file   func(*file)
	}{
		{"reduces-each-pass", func(o *tracetest.Options) { o.Accumulate, o.Exposed = 4, true }, nil},
		{"reduces-each-pass", func(o *tracetest.Options) { o.Accumulate, o.Sync = 4, true }, nil},
		{"reduces-each-pass", func(o *tracetest.Options) { o.Exposed = true }, nil},
		{"never-zeroed", func(o *tracetest.Options) { o.Zeroed = true }, nil},
		{"never-zeroed", func(o *tracetest.Options) { o.Summed = true }, renamedAs("Optimizer.step#AdamW.step", "Optimizer.zero_grad#AdamW.zero_grad")},
		{"never-zeroed", func(o *tracetest.Options) { o.Summed = true }, renamedAs("aten::add_", "aten::detach")},
		{"never-zeroed", func(o *tracetest.Options) { o.Summed = true }, renamedAs("aten::mm", "aten::zero_")},
		{"zeroing", func(o *tracetest.Options) { o.Zeroed = true }, renamedAs("Optimizer.zero_grad#AdamW.zero_grad", "zeros")},
		{"data-parallel", func(o *tracetest.Options) { o.Replicated = 1 }, nil},
		{"data-parallel", func(o *tracetest.Options) { o.Replicated = 4 }, renamedAs("DataParallel.forward", "DistributedDataParallel.forward")},
		{"gloo", func(*tracetest.Options) {}, renamedAs("Optimizer.step#AdamW.step", "gloo:all_reduce")},
	} {
		o := tracetest.Options{Steps: 8}
		c.change(&o)
		trace := tracetest.GPT(o)
		if c.file != nil {
			trace = changed(t, trace, c.file)
		}
		for _, f := range judged(t, trace).Findings {
			if f.Name == c.rule {
				t.Errorf("%+v: %s", o, f.String())
			}
		}
	}
}

// TestEveryRuleIsBroken: a new rule needs a training that is broken for it.
func TestEveryRuleIsBroken(t *testing.T) {
	for _, r := range rules {
		found := false
		for _, b := range brokenTrainings {
			found = found || b.rule == r.name
		}
		if !found {
			t.Errorf("nothing is broken for the rule %s", r.name)
		}
	}
}
