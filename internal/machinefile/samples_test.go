package machinefile

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// kindFor is the kind that knows a file.
func kindFor(t testing.TB, content []byte) *Kind {
	t.Helper()
	for i := range Kinds {
		if Kinds[i].Is(content[:min(len(content), 1<<16)]) {
			return &Kinds[i]
		}
	}
	t.Fatalf("no kind knows %.200q", content)
	return nil
}

func diagnose(t testing.TB, content []byte) *finding.Report {
	t.Helper()
	r, err := kindFor(t, content).Diagnose(context.Background(), "file", bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// printed is a report as people and programs get it.
func printed(t testing.TB, r *finding.Report) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// samples are files of others, with what must be said of them and what must not. Those without are in goldens, reviewed one by
// one.
var samples = []struct {
	file, kind string
	rules      []string
	must       []string
	not        []string
}{
	{"xid119.log", "kernel-log", []string{"D50"}, []string{"GSP RPC timeout", "reset", "reboot", "firmware"}, []string{"application", "R04", "error of its own"}},
	{"hostoom.log", "kernel-log", []string{"D43", "R04"}, []string{"host's memory ran out", "httpd", "python"}, []string{"GPU OOM", "CUDA out of memory", "D49"}},
	{"peermem.log", "kernel-log", []string{"D47"}, []string{"invalid context"}, nil},
	{"lspci-a100.txt", "lspci", nil, []string{"NVSwitches", "fabricmanager", "A100 SXM4 80GB"}, []string{"D01"}},
	{"a100-mig.xml", "nvidia-smi", []string{"D23", "D59"}, []string{"MIG is on", "slices of 14 SMs", "N/A by design", "profiling counters"}, []string{"idle", " 0 %", `"utilization_percent"`}},
	{"rtx3090.xml", "nvidia-smi", []string{"D54"}, []string{"200 W of the card's own 350 W"}, []string{"D55", "D59"}},
	{"t4.xml", "nvidia-smi", []string{"D55"}, []string{"8 of its 16 lanes", "Pass-Through"}, []string{"D54", "D63"}},
}

// TestSamples: each sample is of its kind alone, has its findings and no others, and says what it must.
func TestSamples(t *testing.T) {
	for _, s := range samples {
		t.Run(s.file, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("testdata", s.file))
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range Kinds {
				if k.Is(b[:min(len(b), 1<<16)]) != (k.Name == s.kind) {
					t.Errorf("kind %s", k.Name)
				}
			}
			r := diagnose(t, b)
			var rules []string
			for _, f := range r.Findings {
				rules = append(rules, f.Rule)
			}
			if !slices.Equal(rules, s.rules) || len(r.Notes) != 0 {
				t.Errorf("%v, notes %v", rules, r.Notes)
			}
			text := printed(t, r)
			for _, part := range s.must {
				if !strings.Contains(text, part) {
					t.Errorf("does not say %q", part)
				}
			}
			for _, part := range s.not {
				if strings.Contains(text, part) {
					t.Errorf("says %q", part)
				}
			}
			testutil.Golden(t, filepath.Join("testdata", strings.TrimSuffix(s.file, filepath.Ext(s.file))+".golden"), []byte(text))
		})
	}
}
