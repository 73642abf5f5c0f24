package main

import (
	"strings"
	"testing"
)

// TestChoices: a flag that may stand alone takes its value from the next word too, but not a word that the command takes.
func TestChoices(t *testing.T) {
	for args, want := range map[string]string{
		"train mlp --amp fp16 --steps 3": "train mlp --amp=fp16 --steps 3",
		"train --amp none mlp":           "train --amp=none mlp",
		"train --amp mlp":                "train --amp mlp",
		"train gpt --amp":                "train gpt --amp",
		"train gpt --amp --steps 3":      "train gpt --amp --steps 3",
		"train mlp --amp=bf16 --json":    "train mlp --amp=bf16 --json",
		"train mlp --amp fp8":            "train mlp --amp=fp8", // whose error names the flag
		"train mlp -- --amp fp16":        "train mlp -- --amp fp16",
		"train mlp --profile there":      "train mlp --profile there",
		"eval run --amp fp16":            "eval run --amp fp16",
		"nonsense --amp fp16":            "nonsense --amp fp16",
	} {
		if got := strings.Join(choices(newRoot(), strings.Fields(args)), " "); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// TestAMPFlag: what the end of a run says of its loss scaler, to people and to programs.
func TestAMPFlag(t *testing.T) {
	r := newRoom(t)
	r.npz("data.npz", images(bytesArray(30, 1, 6, 6)), marks(labels(30)))
	status, stdout, stderr := command(t.Context(), "train", "mlp", "--data", "data.npz", "--batch", "4", "--steps", "3", "--amp", "fp16", "--json")
	if status != exitDone {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	lines := decode(t, stdout)
	has(t, lines[len(lines)-1], "final", "steps", "loss", "accuracy", "val_loss", "metrics", "seconds", "peak_bytes", "scale", "skipped_steps")
	if !strings.Contains(stderr, "losses are scaled by 65536, 0 steps left out") {
		t.Error(stderr)
	}
}
