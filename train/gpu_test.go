package train_test

import (
	"fmt"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
)

// small are runs of 20 steps that a simulated GPU does in a second. They have no text, of which a run writes for seconds in the end.
func small(t *testing.T) map[string]map[string]any {
	t.Helper()
	return map[string]map[string]any{
		"mlp": {"data": traintest.Pictures(t, 60, 1, 6, 4), "batch": 8, "steps": 20},
		"gpt": {"tokens": traintest.IDs(t, 2000), "vocab": 7, "batch": 2, "context": 16, "layers": 1, "heads": 2, "width": 32, "dropout": 0.1, "steps": 20, "clip": 1.0},
	}
}

// TestSimulated trains on a simulated GPU beside the CPU: with the same data, random bits and losses.
func TestSimulated(t *testing.T) {
	for task, change := range small(t) {
		t.Run(task, func(t *testing.T) {
			want, _ := traintest.Trained(t, task, "cpu", change)
			got, _ := traintest.Trained(t, task, "sim:0", change)
			for i := range want {
				within(t, fmt.Sprintf("the loss of step %d", i+1), got[i], want[i], 1e-5)
			}
		})
	}
}

// TestSchedules trains on simulated GPUs that run blocks, warps and lanes in other orders, and let queued work take
// effect late: the weights have the same bits. A run has three such schedules, one that asks for all has five.
func TestSchedules(t *testing.T) {
	schedules := 3
	if testutil.NewSpread(t, testutil.Seed(t), 2).All() {
		schedules = 5
	}
	for task, change := range small(t) {
		t.Run(task, func(t *testing.T) {
			change["steps"] = 3
			_, want := traintest.Trained(t, task, "sim:0", change)
			for seed := 1; seed <= schedules; seed++ {
				schedule := []string{"reconverge", "independent"}[seed%2]
				t.Setenv("WARPLINE_SIM", fmt.Sprintf("check=all,late,seed=%d,schedule=%s", seed, schedule))
				// A machine of its own for each number of cards: names are opened once.
				device := fmt.Sprintf("sim:a100-80x%d:0", 1+seed)
				if _, got := traintest.Trained(t, task, device, change); string(got) != string(want) {
					t.Errorf("seed %d, %s: other weights", seed, schedule)
				}
			}
		})
	}
}
