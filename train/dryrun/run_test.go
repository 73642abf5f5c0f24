package dryrun_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// TestDryRunIsTheRun compares a dry run with the run on the engine for GPUs, on a driver that executes nothing, and its line for
// machines with what it is to have. A run in four takes the largest networks.
func TestDryRunIsTheRun(t *testing.T) {
	spread := testutil.NewSpread(t, testutil.Seed(t), 4)
	for task, change := range map[string]map[string]any{
		"mlp":      {"data": traintest.Pictures(t, 4000, 1, 28, 10), "batch": 16, "steps": 7},
		"digits":   {"data": traintest.Pictures(t, 300, 1, 28, 10), "batch": 48, "steps": 5, "accumulate": 3},
		"resnet18": {"data": traintest.Pictures(t, 60, 3, 32, 10), "batch": 8, "steps": 5, "amp": "bf16"},
		"gpt":      {"tokens": traintest.IDs(t, 20_000), "vocab": 7, "context": 48, "batch": 6, "steps": 9, "capture": true},
		"unet":     {"batch": 4, "steps": 3},
		"vae":      {"data": traintest.Pictures(t, 300, 1, 28, 10), "batch": 48, "steps": 5, "amp": "bf16"},
		"lstm":     {"tokens": traintest.IDs(t, 6_000), "vocab": 7, "context": 24, "width": 48, "batch": 6, "steps": 5},
	} {
		if (task == "resnet18" || task == "unet") && !spread.Takes(task) {
			continue
		}
		c := traintest.Config(t, task, change)
		d, err := train.DryRun(t.Context(), c, []string{"null:a100-80"})
		if err != nil {
			t.Fatal(err)
		}
		var peak int64
		real := peaksOn(t, traintest.Off, func(device string) error {
			c.Device = device
			r, err := train.Run(t.Context(), c, nil)
			if err == nil {
				peak = r.PeakBytes
			}
			return err
		})
		r := d.Reports[0]
		if r.Requested != peak || r.Allocated != real.allocated || r.Reserved != real.reserved {
			t.Errorf("%s: a dry run has %d, %d and %d, the run %d and %+v", task, r.Requested, r.Allocated, r.Reserved, peak, real)
		}
		sum := int64(0)
		for _, n := range r.ByKind {
			sum += n
		}
		if sum != r.Requested || r.Unknown != nil || r.Card != "a100-80" || !r.Fits() || d.Batch != c.Batch || d.Parameters == 0 || d.Loader <= 0 {
			t.Errorf("%s: kinds have %d of %d: %+v", task, sum, r.Requested, d)
		}
		raw, err := json.Marshal(r)
		var line map[string]any
		if err := errors.Join(err, json.Unmarshal(raw, &line)); err != nil {
			t.Fatal(err)
		}
		want := "dry_run card fits limit_bytes context_bytes peak_requested peak_allocated peak_reserved peak_by_kind largest_batch limited_by " +
			"step_ms step_ms_low step_ms_high parts_ms loader_ms not_counted"
		for _, field := range strings.Fields(want) {
			if _, ok := line[field]; !ok {
				t.Errorf("%s lacks %s", raw, field)
			}
			delete(line, field)
		}
		if len(line) > 0 {
			t.Errorf("%v is more than was asked for", line)
		}
	}
}

// TestDryRunGoesOn: a program that is larger than its card is measured all the same, and the largest batch is one that fits where
// one more does not.
func TestDryRunGoesOn(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	change := map[string]any{"tokens": traintest.IDs(t, 100_000), "vocab": 7, "context": 1024, "width": 1024, "layers": 2, "batch": 600}
	dry := func(batch int) *train.Dry {
		c := traintest.Config(t, "gpt", change)
		c.Batch = batch
		d, err := train.DryRun(t.Context(), c, []string{"gtx-1650"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	r := dry(600).Reports[0]
	if r.Fits() || r.Reserved < 4<<30 || r.LimitedBy == "samples" || r.LargestBatch < 1 {
		t.Fatalf("%+v", r)
	}
	if n := r.LargestBatch; !dry(n).Reports[0].Fits() || dry(n + 1).Reports[0].Fits() {
		t.Errorf("%d is not the largest batch", n)
	}
}

// TestDryRunLevers: each lever that a dry run names for a card that is too small saves what it says, as a dry run with its flag
// shows, and those that fit do.
func TestDryRunLevers(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	change := map[string]any{"tokens": traintest.IDs(t, 1500), "vocab": 7, "context": 256, "width": 256, "heads": 4, "layers": 2, "batch": 1024}
	dry := func(more map[string]any) (*plan.Report, []tensor.Lever) {
		all := maps.Clone(change)
		maps.Copy(all, more)
		d, err := train.DryRun(t.Context(), traintest.Config(t, "gpt", all), []string{"gtx-1650"})
		if err != nil {
			t.Fatal(err)
		}
		return d.Reports[0], d.Levers["gtx-1650"]
	}
	r, levers := dry(nil)
	if r.Fits() || len(levers) < 4 {
		t.Fatalf("%+v, with the levers %+v", r, levers)
	}
	for _, l := range testutil.Some(testutil.NewSpread(t, testutil.Seed(t), 4), levers, func(l tensor.Lever) string { return l.Flag }) {
		name, text, given := strings.Cut(strings.TrimPrefix(l.Flag, "--"), " ")
		var value any = text
		if n, err := strconv.Atoi(text); err == nil {
			value = n
		} else if !given {
			value = true
		}
		if with, _ := dry(map[string]any{name: value}); r.Reserved-with.Reserved != l.Saves || with.Fits() != l.Fits || l.Saves <= 0 ||
			!strings.HasSuffix(l.Cost, fmt.Sprintf("; %.2f times a step", with.Step.Total/r.Step.Total)) {
			t.Errorf("%+v: %d bytes and %v without, %d and %v with it", l, r.Reserved, r.Step, with.Reserved, with.Step)
		}
	}
}

// TestDryRunChoosesParts: a dry run of --accumulate auto is that of the fewest parts with which a batch fits, and tells them.
func TestDryRunChoosesParts(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	dry := func(card string, accumulate any) *plan.Report {
		d, err := train.DryRun(t.Context(), traintest.Config(t, "gpt", map[string]any{"tokens": traintest.IDs(t, 1500), "vocab": 7, "context": 256, "width": 256, "heads": 4, "layers": 2,
			"batch": 1024, "accumulate": accumulate}), []string{card})
		if err != nil {
			t.Fatal(err)
		}
		return d.Reports[0]
	}
	r := dry("gtx-1650", "auto")
	if r.Parts < 2 || !r.Fits() {
		t.Fatalf("%d parts: %+v", r.Parts, r)
	}
	if same := dry("gtx-1650", r.Parts); same.Reserved != r.Reserved || same.Parts != 0 {
		t.Errorf("%d bytes with %d parts, %d with --accumulate auto", same.Reserved, r.Parts, r.Reserved)
	}
	if fewer := dry("gtx-1650", r.Parts/2); fewer.Fits() {
		t.Errorf("%d parts fit, and %d do", r.Parts, r.Parts/2)
	}
	if big := dry("h100-80", "auto"); big.Parts != 1 {
		t.Errorf("%d parts on a card on which the batch fits", big.Parts)
	}
}

// TestDryRunRefuses: what is wrong is said before anything is done.
func TestDryRunRefuses(t *testing.T) {
	data := traintest.Pictures(t, 40, 1, 6, 3)
	for _, c := range []struct {
		cards  string
		change map[string]any
		set    func(c *train.Config)
		text   string
		hint   string
	}{
		{"h10-80", nil, nil, `no card "h10-80"`, "did you mean h100-80? "},
		{"h100", nil, nil, `no card "h100"`, "did you mean h100-pcie or h100-80? "},
		{"l4,", nil, nil, `no card ""`, "there are v100-16, "},
		{"l4", map[string]any{"batch": 0}, nil, "--batch is 0", "give a number"},
		{"l4", nil, func(c *train.Config) { c.Resume = true }, "goes on with a run", "leave --resume out"},
		{"l4", nil, func(c *train.Config) { c.AutoBatch = true }, "--batch auto with --dry-run", "leave --batch out"},
		{"l4", nil, func(c *train.Config) { c.Memory = 1 << 30 }, "--memory", "leave --memory out"},
		{"l4", map[string]any{"data": "nowhere"}, nil, "nowhere", ""},
	} {
		change := map[string]any{"data": data}
		maps.Copy(change, c.change)
		config := traintest.Config(t, "mlp", change)
		if c.set != nil {
			c.set(&config)
		}
		_, err := train.DryRun(t.Context(), config, strings.Split(c.cards, ","))
		if err == nil || !strings.Contains(err.Error(), c.text) || !strings.HasPrefix(advice.HintOf(err), c.hint) {
			t.Errorf("%+v: %v; %s", c, err, advice.HintOf(err))
		}
	}
}

// TestDryRunWithoutText: a language model whose text there is not yet needs what it needs with one; its vocabulary must be known,
// and the run itself is refused.
func TestDryRunWithoutText(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	sizes := map[string]any{"vocab": 7, "context": 48, "layers": 1, "heads": 2, "width": 32, "batch": 6, "steps": 3}
	lines := map[bool]string{}
	for _, with := range []bool{false, true} {
		change := maps.Clone(sizes)
		if with {
			change["tokens"] = traintest.IDs(t, 400_000)
		}
		d, err := train.DryRun(t.Context(), traintest.Config(t, "gpt", change), []string{"gtx-1650"})
		if err != nil {
			t.Fatal(err)
		}
		r := d.Reports[0]
		lines[with] = fmt.Sprint(r.Requested, r.Allocated, r.Reserved, r.ByKind)
	}
	if lines[true] != lines[false] {
		t.Errorf("with a text %s, without %s", lines[true], lines[false])
	}
	c := traintest.Config(t, "gpt", sizes)
	if _, err := train.Run(t.Context(), c, nil); err == nil || !strings.Contains(err.Error(), "no text to learn from") {
		t.Error(err)
	}
	delete(sizes, "vocab")
	if _, err := train.DryRun(t.Context(), traintest.Config(t, "gpt", sizes), []string{"gtx-1650"}); err == nil || !strings.Contains(advice.HintOf(err), "--vocab N alone") {
		t.Errorf("%v; %s", err, advice.HintOf(err))
	}
}

// TestBatchAuto compares the batch that is chosen with the largest that really runs, of programs and limits on the CPU and on the
// engine for GPUs, on a driver that executes nothing.
func TestBatchAuto(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	type cell struct {
		task, device string
		limit        int64
	}
	programs := map[string]struct {
		change map[string]any
		limits map[string][2]int64
	}{
		"mlp":      {map[string]any{"data": traintest.Pictures(t, 9000, 1, 28, 10)}, map[string][2]int64{"cpu": {4 << 20, 5 << 20}, traintest.Off: {24 << 20, 46 << 20}}},
		"digits":   {map[string]any{"data": traintest.Pictures(t, 900, 1, 28, 10)}, map[string][2]int64{"cpu": {6 << 20, 8 << 20}, traintest.Off: {24 << 20, 30 << 20}}},
		"resnet18": {map[string]any{"data": traintest.Pictures(t, 200, 3, 32, 4), "optimizer": "sgd"}, map[string][2]int64{"cpu": {94 << 20, 98 << 20}, traintest.Off: {130 << 20, 150 << 20}}},
		"gpt": {map[string]any{"tokens": traintest.IDs(t, 6_000), "vocab": 7, "context": 32, "layers": 2, "width": 64},
			map[string][2]int64{"cpu": {4 << 20, 6 << 20}, traintest.Off: {24 << 20, 40 << 20}}},
	}
	var cells []cell
	for _, task := range slices.Sorted(maps.Keys(programs)) {
		for _, device := range []string{"cpu", traintest.Off} {
			for _, limit := range programs[task].limits[device] {
				cells = append(cells, cell{task, device, limit})
			}
		}
	}
	name := func(c cell) string { return fmt.Sprintf("%s on %s/%d", c.task, c.device, c.limit) }
	for _, of := range testutil.Some(testutil.NewSpread(t, testutil.Seed(t), 16), cells, name) {
		t.Run(name(of), func(t *testing.T) {
			c := traintest.Config(t, of.task, programs[of.task].change)
			c.Steps, c.Order, c.Memory, c.Reserve = 2, "sequential", of.limit, 0
			fresh := func() {
				if c.Device = of.device; of.device == traintest.Off {
					c.Device += ":a100-80:1"
				}
				if err := traintest.Cleaned(t, c.Device).EmptyCache(); err != nil {
					t.Fatal(err)
				}
			}
			fresh()
			c.AutoBatch = true
			r := &traintest.Recorder{}
			if _, err := train.Run(t.Context(), c, r); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d; %v", r.Started.Batch, r.Notes)
			c.AutoBatch = false
			runs := func(batch int) error {
				fresh()
				c.Batch = batch
				_, err := train.Run(t.Context(), c, nil)
				return err
			}
			var short *tensor.OOMError
			fits, err := runs(r.Started.Batch), runs(r.Started.Batch+2)
			if fits != nil || !errors.As(err, &short) {
				t.Errorf("%d is chosen (%v), and two more: %v", r.Started.Batch, fits, err)
			}
		})
	}
}

// TestDryRunLeavesNothing: neither files nor memory.
func TestDryRunLeavesNothing(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3)})
	c.Out = t.TempDir() + "/run"
	if _, err := train.DryRun(t.Context(), c, []string{"l4", "b200"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.Out); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestDryRunBudget: a largest batch is found where what is recomputed is chosen for a number of bytes, which larger batches do not
// keep to; where none does, it is that which is said.
func TestDryRunBudget(t *testing.T) {
	change := map[string]any{"tokens": traintest.IDs(t, 3000), "vocab": 7, "context": 32, "width": 32, "heads": 2, "layers": 2, "batch": 8, "recompute": "auto:4MiB"}
	d, err := train.DryRun(t.Context(), traintest.Config(t, "gpt", change), []string{"t4"})
	if err != nil {
		t.Fatal(err)
	}
	r := d.Reports[0]
	if !r.Fits() || r.LargestBatch < 16 || r.LimitedBy != "activation" {
		t.Errorf("fits %v, largest batch %d, limited by %q", r.Fits(), r.LargestBatch, r.LimitedBy)
	}
	for batch, fits := range map[int]bool{r.LargestBatch: true, r.LargestBatch + 1: false} {
		c := traintest.Config(t, "gpt", traintest.Merged(change, map[string]any{"batch": batch, "steps": 1}))
		c.Device = "null:t4"
		var tight *plan.TightError
		if _, err := train.Run(t.Context(), c, nil); (err == nil) != fits || !fits && !errors.As(err, &tight) {
			t.Errorf("a batch of %d: %v", batch, err)
		}
	}
	c := traintest.Config(t, "gpt", traintest.Merged(change, map[string]any{"recompute": "auto:100KiB", "steps": 1}))
	c.Device, c.AutoBatch = "cpu", true
	var tight *plan.TightError
	if _, err := train.Run(t.Context(), c, nil); !errors.As(err, &tight) {
		t.Errorf("a batch for 100 KiB: %v", err)
	}
}

// TestDryRunStatistics: what looks at modules take is part of what a run needs.
func TestDryRunStatistics(t *testing.T) {
	change := map[string]any{"tokens": traintest.IDs(t, 3000), "vocab": 7, "context": 32, "width": 32, "heads": 2, "layers": 2, "batch": 32, "steps": 4}
	plain := dryPeak(t, change)
	for every, looks := range map[int]bool{1: true, 4: true, 5: false} {
		change["statistics"] = every
		dry, real := dryPeak(t, change), peaksOn(t, traintest.Off, (&walked{}).on(t, "gpt", change)).used
		if math.Abs(float64(dry-real)) > 0.01*float64(real) || (dry > plain) != looks { // figures that were read go when Go's collector comes by
			t.Errorf("every %d steps: %d bytes, of a run %d, without %d", every, dry, real, plain)
		}
	}
}

func dryPeak(t *testing.T, change map[string]any) int64 {
	t.Helper()
	d, err := train.DryRun(t.Context(), traintest.Config(t, "gpt", change), []string{"a100-80"})
	if err != nil {
		t.Fatal(err)
	}
	return d.Reports[0].Requested
}
