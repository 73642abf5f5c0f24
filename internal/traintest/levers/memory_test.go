package levers_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// meter keeps, step by step, the peak of values and the collections that allocation asked for.
type meter struct {
	traintest.Recorder
	dev         *tensor.Device
	peaks       []int64
	collections []int
}

func (m *meter) Step(s train.Step) {
	m.Recorder.Step(s)
	u := m.dev.Memory()
	m.peaks, m.collections = append(m.peaks, u.ValuesPeak), append(m.collections, u.Collections)
	m.dev.ResetPeak()
}

// TestMemoryIsTheProgrammes trains, scores and samples every task on every engine. What values take at most is the same on
// each, whenever Go's collector runs, and within 1.25 of the most that live at once: with less than 1/1.25 of it a run
// fails, although allocations then collect what nothing reaches before they fail. No step but the first asks for a
// collection. A run takes a quarter of the tasks.
func TestMemoryIsTheProgrammes(t *testing.T) {
	if !testutil.Alone(t) { // devices are opened by name
		return
	}
	tasks, spread := traintest.Smallest(t, "../../.."), testutil.NewSpread(t, testutil.Seed(t), 4)
	for _, task := range train.Tasks {
		if tasks[task] == nil {
			t.Fatalf("task %s has no row in traintest.Smallest", task)
		}
	}
	for _, task := range testutil.Some(spread, train.Tasks, func(task string) string { return task }) {
		change := tasks[task]
		change["steps"] = 3
		t.Run(task, func(t *testing.T) { testMemory(t, traintest.Config(t, task, change), spread) })
	}
}

// unexecuted are tasks of which a simulated card would take long, for their pictures have one size; whole are those that it executes
// only where all is asked for: four times the layers of ResNet-18.
var unexecuted, whole = []string{"unet"}, []string{"resnet50"}

func testMemory(t *testing.T, c train.Config, spread testutil.Spread) {
	cards := []string{"null:a100-80", "sim:0"}
	if slices.Contains(unexecuted, c.Task) || slices.Contains(whole, c.Task) && !spread.All() {
		cards = cards[:1]
	}
	c.Out = filepath.Join(t.TempDir(), "run")
	want := measure(t, c, "cpu")
	from := c.Out
	c.Out = ""
	for _, device := range cards {
		got := measure(t, c, device)
		if device == "sim:0" { // steps are told when the card has done them, and the host is ahead of it
			if got, want := slices.Max(got.peaks), slices.Max(want.peaks); got != want {
				t.Errorf("the steps' peak is %d on %s, %d on the CPU", got, device, want)
			}
		} else if !slices.Equal(got.peaks, want.peaks) {
			t.Errorf("the steps' peaks are %d on %s, %d on the CPU", got.peaks, device, want.peaks)
		}
	}
	run := func() error { _, err := train.Run(t.Context(), c, nil); return err }
	tight(t, "training", &c.Device, slices.Max(want.peaks), run)

	uses := map[string]func(device string) error{
		"evaluation": func(device string) error {
			_, err := train.Evaluate(t.Context(), train.EvalConfig{From: from, Device: device, Data: c.Data, Tokens: c.Tokens, Skip: traintest.Skipped[c.Task]})
			return err
		},
	}
	if slices.Contains(traintest.Generating(), c.Task) {
		uses["sampling"] = func(device string) error {
			_, err := train.Sample(t.Context(), train.SampleConfig{From: from, Device: device, Length: 3, Count: 3}, func(string) error { return nil })
			return err
		}
	}
	for name, use := range uses {
		var peak int64
		for _, device := range append([]string{"cpu"}, cards...) {
			if name == "sampling" && device == "null:a100-80" {
				continue // it has no text to write
			}
			dev := traintest.Cleaned(t, device)
			if err := use(device); err != nil {
				t.Fatalf("%s on %s: %v", name, device, err)
			}
			m := dev.Memory()
			if m.Collections > 0 {
				t.Errorf("%s on %s asked for %d collections", name, device, m.Collections)
			}
			if device == "cpu" {
				peak = m.ValuesPeak
			} else if m.ValuesPeak != peak {
				t.Errorf("%s has a peak of %d on %s, %d on the CPU", name, m.ValuesPeak, device, peak)
			}
		}
		device := "cpu"
		tight(t, name, &device, peak, func() error { return use(device) })
	}
}

func measure(t *testing.T, c train.Config, device string) *meter {
	t.Helper()
	c.Device = device
	m := &meter{dev: traintest.Cleaned(t, device)}
	if _, err := train.Run(t.Context(), c, m); err != nil {
		t.Fatalf("%s: %v", device, err)
	}
	if len(m.peaks) != c.Steps {
		t.Fatalf("%s: %d steps were told", device, len(m.peaks))
	}
	if slices.Max(m.collections[1:]) > 0 {
		t.Errorf("the steps on %s asked for %d collections", device, m.collections)
	}
	return m
}

// tight demands that a run on the CPU does not fit into less than peak/1.25.
func tight(t *testing.T, what string, device *string, peak int64, run func() error) {
	t.Helper()
	*device = "cpu"
	dev := traintest.Cleaned(t, "cpu")
	dev.SetLimit(peak * 4 / 5)
	defer dev.SetLimit(0)
	err := run()
	var oom *tensor.OOMError
	if !errors.As(err, &oom) {
		t.Errorf("%s has a peak of %d bytes, and fits into %d: %v", what, peak, peak*4/5, err)
	}
}
