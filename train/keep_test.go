package train_test

import (
	"cmp"
	"path/filepath"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// TestKeep: a run leaves as many checkpoints as it is told, and weights of the last step or, to the byte, those that a run has that
// ends with the best score; also where it was interrupted.
func TestKeep(t *testing.T) {
	change := map[string]any{"data": traintest.Pictures(t, 60, 1, 6, 3), "batch": 10, "steps": 40, "device": "cpu", "eval-every": 3, "save-every": 5, "lr": 0.5, "patience": 0}
	run := func(changes ...map[string]any) (string, *traintest.Recorder) {
		c := traintest.Config(t, "mlp", traintest.Merged(append([]map[string]any{change}, changes...)...))
		c.Out = filepath.Join(t.TempDir(), "run")
		_, watch := traintest.Run(t, c)
		return c.Out, watch
	}
	model := func(out string) string { return traintest.Read(t, filepath.Join(out, "model.safetensors")) }
	plain, watch := run()
	best := slices.MinFunc(watch.Scores, func(a, b train.Score) int { return cmp.Compare(a.ValLoss, b.ValLoss) })
	if best.Step > 33 {
		t.Fatalf("the best score is that of step %d", best.Step)
	}
	at, _ := run(map[string]any{"steps": best.Step})
	for _, row := range []struct {
		keep        map[string]any
		checkpoints int
		weights     string
	}{
		{nil, 2, model(plain)}, {map[string]any{"keep": "best"}, 2, model(at)}, {map[string]any{"keep": "last"}, 1, model(plain)}, {map[string]any{"keep": "4"}, 4, model(plain)},
		{map[string]any{"patience": 30}, 2, model(at)}, {map[string]any{"keep": "last", "patience": 30}, 1, model(plain)},
	} {
		whole, _ := run(row.keep)
		parts, _ := run(row.keep, map[string]any{"steps": best.Step + 4})
		traintest.Run(t, train.Config{Out: parts, Resume: true, Steps: 40, Given: map[string]bool{"steps": true}})
		for _, out := range []string{whole, parts} {
			list, err := ckpt.List(out)
			if err != nil || len(list) != row.checkpoints {
				t.Errorf("%v: %d checkpoints, want %d, error %v", row.keep, len(list), row.checkpoints, err)
			}
			if model(out) != row.weights {
				t.Errorf("%v leaves other weights (the best are those of step %d)", row.keep, best.Step)
			}
		}
	}
}
