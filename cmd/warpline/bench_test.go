package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/bench"
)

// TestBench: a table for people, and a line of JSON for each figure with its fields, on a processor and on paper.
func TestBench(t *testing.T) {
	newRoom(t)
	status, stdout, stderr := command(t.Context(), "bench", "gemm", "--case", "odd,batched", "--n", "2", "--threads", "1")
	if status != exitDone || strings.Contains(stderr, "error") || !strings.Contains(stdout, "GFLOP/s in registers") || !strings.Contains(stdout, "batched") || !strings.Contains(stdout, " % of ") {
		t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
	}
	for args, want := range map[string]string{"--case mlp --n 1": "the host", "--case gpt2-124m --device null:h200 --dtype bf16": "arithmetic ms"} {
		status, stdout, stderr := command(t.Context(), append([]string{"bench", "train"}, strings.Fields(args)...)...)
		if status != exitDone || strings.Contains(stderr, "error") || !strings.Contains(stdout, want) {
			t.Errorf("%s: status %d, no %q in\n%s\n%s", args, status, want, stdout, stderr)
		}
	}
	fields := []string{"bench", "case", "n", "dtype", "device", "threads", "modelled", "median", "low", "high", "unit", "ceiling", "share"}
	for _, c := range []struct {
		args     string
		more     []string
		modelled bool
	}{
		{"gemm --case square --n 16", []string{"gflops"}, false},
		{"gemm --case square --n 16 --dtype f64", []string{"gflops"}, false},
		{"ops --case sum-rows --n 2048 --threads 1", []string{"ms"}, false},
		{"train --case mlp --n 1", []string{"ms", "peak_bytes"}, false},
		{"train --case gpt-384 --n 1 --dtype bf16 --device null:h200", []string{"ms", "peak_bytes"}, true},
		{"ops --case softmax --device sim:a100-80x2", []string{"ms"}, true},
	} {
		status, stdout, stderr := command(t.Context(), append(strings.Fields("bench "+c.args), "--json")...)
		lines := decode(t, stdout)
		if status != exitDone || len(lines) != 1 || !strings.Contains(stderr, "of the ceiling") {
			t.Fatalf("%s: status %d\n%s\n%s", c.args, status, stdout, stderr)
		}
		has(t, lines[0], append(c.more, fields...)...)
		if lines[0]["modelled"] != c.modelled || lines[0]["bench"] != strings.Fields(c.args)[0] {
			t.Errorf("%s: %v", c.args, lines[0])
		}
	}
}

// TestBenchEnds: Ctrl-C ends a bench with the status of an interrupt and what is done so far.
func TestBenchEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if status, _, stderr := command(ctx, "bench", "train"); status != exitInterrupted || stderr != "" {
		t.Errorf("status %d\n%s", status, stderr)
	}
	if status, _, stderr := command(t.Context(), "bench", "gemm", "ops"); status != exitFailed || !strings.Contains(stderr, "one argument too many") {
		t.Errorf("status %d\n%s", status, stderr)
	}
	for _, line := range []string{"gemm --n 0", "gemm --threads 0", "gemm --n x", "gem", "ops --case exq", "train --dtype f64", "gemm --device null:h300"} {
		status, stdout, stderr := command(t.Context(), append([]string{"bench"}, strings.Fields(line)...)...)
		if status != exitFailed || stdout != "" || strings.Count(stderr, "\n") != 2 {
			t.Errorf("%s: status %d\n%s%s", line, status, stdout, stderr)
		}
	}
	for _, name := range bench.Benches {
		_, help, _ := command(t.Context(), "bench", "--help")
		if want := fmt.Sprintf("\n%s:\n  %s", name, bench.Names(name)[0]); !strings.Contains(help, want) {
			t.Errorf("no %q in\n%s", want, help)
		}
	}
}
