package diagnose

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/kineto"
	"github.com/warpline-ml/warpline/internal/kineto/tracetest"
)

// TestTracesBeside: two traces give the report of one and one of both; a trace with counters is one that is read alike; what is
// none, and the standard input, are errors, and nothing is written.
func TestTracesBeside(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, raw []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, raw, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	before := file("before.json", tracetest.GPT(tracetest.Options{Steps: 4}))
	after := file("after.json", tracetest.GPT(tracetest.Options{Steps: 4, Items: 3}))
	text := file("train.log", []byte("RuntimeError: CUDA error: device-side assert triggered\n"))
	c := &Config{Stdin: strings.NewReader("")}
	var told []*finding.Report
	tell := func(r *finding.Report, _ bool) error {
		told = append(told, r)
		return nil
	}
	if err := c.Against(t.Context(), after, before, tell); err != nil {
		t.Fatal(err)
	}
	rows, ok := told[1].Detail.([]kineto.Change)
	if len(told) != 2 || told[0].Kind != "trace" || told[1].Kind != "group" || !ok || len(told[1].Members) != 2 {
		t.Fatalf("%+v", told)
	}
	step := told[0].Figures["step_avg_us"]
	var shown bytes.Buffer
	if err := Comparison(&shown, rows, 100); err != nil || !strings.Contains(shown.String(), "a step  ") || !strings.Contains(shown.String(), "idle: the host had waited for it") {
		t.Errorf("%v\n%s", err, &shown)
	}
	for _, name := range []string{"queues.json", "queues.json.gz"} {
		out := filepath.Join(dir, name)
		if err := c.Annotate(t.Context(), after, out); err != nil {
			t.Fatal(err)
		}
		told = nil
		if err := c.Run(t.Context(), []string{out}, tell); err != nil || len(told) != 1 || told[0].Kind != "trace" || told[0].Figures["step_avg_us"] != step {
			t.Errorf("%s: %v %+v", name, err, told)
		}
	}
	for _, out := range []string{dir, after, filepath.Join(dir, "nowhere", "out.json")} {
		if err := Annotatable(after, out); err == nil || c.Annotate(t.Context(), after, out) == nil {
			t.Errorf("%s is written", out)
		}
	}
	for _, bad := range []string{text, filepath.Join(dir, "nowhere"), Stdin, dir} {
		out := filepath.Join(dir, "out.json")
		if err := c.Annotate(t.Context(), bad, out); err == nil {
			t.Errorf("%s is annotated", bad)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: a file is left", bad)
		}
		if err := c.Against(t.Context(), after, bad, tell); err == nil {
			t.Errorf("%s is compared", bad)
		}
	}
}
