package kineto

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestVerdicts: what must be found in the samples is, and what must not be said is not.
func TestVerdicts(t *testing.T) {
	for _, v := range []struct {
		sample string
		must   []string // names of rules, each with a text that it says
		never  []string
	}{
		{"kineto-resnet50-workers0.pt.trace.json.gz",
			[]string{"loader-bound: 39.6 %", "loader-bound: 175 ms", "pageable-copies: 12 in 6 steps", "no-tensor-cores: has no TF32", "no-tensor-cores: AMP"},
			[]string{"launch-bound", "host-bound"}},
		{"hta-nccl-collectives.json.gz", []string{"host-bound: 1.8 µs behind", "host-bound: busy 23."},
			[]string{"exposed-communication", "small-messages", "launch-bound"}},
		{"hta-sampled-rank0.json.gz", []string{"exposed-communication: communicates 32.", "exposed-communication: 27."}, []string{"launch-bound", "host-bound"}},
		{"hta-sampled-rank1.json.gz", []string{"exposed-communication: communicates 30.", "exposed-communication: 24."}, []string{"launch-bound", "host-bound"}},
		{"hta-rocm62-mi250.json.gz", nil, []string{"no-gpu-events"}},
		{"hta-triton.json.gz", nil, []string{"no-gpu-events"}},
	} {
		t.Run(v.sample, func(t *testing.T) {
			r := diagnose(t, v.sample)
			for _, m := range v.must {
				name, text, _ := strings.Cut(m, ": ")
				if !hasSaid(r, name, text) {
					t.Errorf("nothing says %q", m)
				}
			}
			for i := range r.Findings {
				complete(t, &r.Findings[i])
				if slices.Contains(v.never, r.Findings[i].Name) {
					t.Errorf("says %s", r.Findings[i].String())
				}
			}
		})
	}
}

// hasSaid tells whether a finding of a name has a text.
func hasSaid(r *finding.Report, name, text string) bool {
	return slices.ContainsFunc(r.Findings, func(f finding.Finding) bool {
		return f.Name == name && strings.Contains(f.String(), text)
	})
}

// TestGoldens: findings, what was checked and notes of every sample, as they were looked at one by one.
func TestGoldens(t *testing.T) {
	for name := range expected(t) {
		t.Run(name, func(t *testing.T) {
			r := diagnose(t, name)
			got, err := json.MarshalIndent(map[string]any{"findings": r.Findings, "checked": r.Checked, "notes": r.Notes}, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			testutil.Golden(t, filepath.Join("testdata", "findings", strings.TrimSuffix(name, ".json.gz")+".json"), append(got, '\n'))
		})
	}
}
