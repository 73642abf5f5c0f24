package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestComparePrecisions: the first run is as far from itself as it is, the others a little, in equal steps from equal weights;
// those in 16 bits keep casts, fp16 has a scale, and tf32 neither.
func TestComparePrecisions(t *testing.T) {
	if !testutil.Alone(t) { // what is compiled for a simulated card would slow other tests' collections
		return
	}
	r := newRoom(t)
	r.npz("data.npz", images(bytesArray(300, 1, 6, 6)), marks(labels(300)))
	for _, device := range []string{"cpu", "sim:0"} {
		status, stdout, stderr := command(t.Context(), "compare", "mlp", "--amp", "none,bf16,fp16,tf32", "--steps", "6", "--data", "data.npz", "--devices", device, "--json", "--svg", "loss.svg")
		if status != exitDone {
			t.Fatalf("status %d\n%s", status, stderr)
		}
		lines := decode(t, stdout)
		if len(lines) != 4 {
			t.Fatalf("%d lines\n%s", len(lines), stdout)
		}
		for i, l := range lines {
			apart, casts := l["worst_parameter_difference"].(float64), l["by_kind"].(map[string]any)["casts"].(float64)
			if l["amp"] != []string{"none", "bf16", "fp16", "tf32"}[i] || len(l["losses"].([]any)) != 6 || (apart > 0) != (i > 0) || apart > 0.05 || (casts > 0) != (i == 1 || i == 2) || (l["scale"] != nil) != (i == 2) {
				t.Errorf("%s: %v", device, l)
			}
		}
		for _, word := range []string{"bf16", "parameters apart", "left out", "loss"} {
			if !strings.Contains(stderr, word) {
				t.Errorf("%s: no %q in\n%s", device, word, stderr)
			}
		}
		if svg, err := os.ReadFile("loss.svg"); err != nil || !strings.Contains(string(svg), "fp16") {
			t.Errorf("%s: %v", device, err)
		}
	}
}

// TestComparePrecisionsShortly: runs of few steps have their lines too, and their times from the second step on.
func TestComparePrecisionsShortly(t *testing.T) {
	r := newRoom(t)
	r.npz("data.npz", images(bytesArray(300, 1, 6, 6)), marks(labels(300)))
	for steps := 1; steps <= 5; steps++ {
		status, stdout, stderr := command(t.Context(), "compare", "mlp", "--amp", "none,bf16", "--steps", strconv.Itoa(steps), "--data", "data.npz", "--devices", "cpu", "--json")
		lines := decode(t, stdout)
		if status != exitDone || len(lines) != 2 || strings.Contains(stderr, "NaN") {
			t.Fatalf("%d steps: status %d\n%s%s", steps, status, stdout, stderr)
		}
		for _, l := range lines {
			if ms := l["ms"].(float64); (ms > 0) != (steps > 1) {
				t.Errorf("%d steps: %v ms", steps, ms)
			}
		}
	}
}

func TestComparePrecisionsOnceEach(t *testing.T) {
	newRoom(t)
	if code, out, errs := command(t.Context(), "compare", "mlp", "--amp", "none,none", "--devices", "cpu"); code != exitFailed || out != "" || !strings.Contains(errs, "twice") || !strings.Contains(errs, "hint: ") {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
}
