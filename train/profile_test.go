package train_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/device/devicetest"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/nvtx"
	"github.com/warpline-ml/warpline/internal/nvtx/nvtxtest"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/train"
)

// profiled is a short run of mlp with a window of two steps behind one.
func profiled(t *testing.T, device, dir string) train.Config {
	c := traintest.Config(t, "mlp", map[string]any{"steps": 4, "batch": 16, "device": device})
	c.Out, c.Profile, c.ProfileAfter, c.ProfileSteps = filepath.Join(t.TempDir(), "run"), dir, 1, 2
	return c
}

// TestProfile: a window leaves its files in the run's folder and changes no number of the run; lines are of the model or the
// loop, where nothing of the program is a user's.
func TestProfile(t *testing.T) {
	for _, device := range []string{"cpu", "sim:h100-80:2"} {
		c := profiled(t, device, train.ProfileInRun)
		plain := c
		plain.Profile, plain.Out = "", filepath.Join(t.TempDir(), "plain")
		traintest.Run(t, plain)
		got, r := traintest.Run(t, c)
		if !bytes.Equal(weights(t, c.Out), weights(t, plain.Out)) || len(r.Notes) > 0 {
			t.Errorf("%s: a profiled run leaves other weights, or notes %q", device, r.Notes)
		}
		p := got.Profile
		if p == nil || p.First != 2 || p.Err != nil || p.Summary().Steps != 2 {
			t.Fatalf("%s: profile %+v", device, p)
		}
		for _, name := range train.ProfileFiles() {
			if info, err := os.Stat(filepath.Join(c.Out, "profile", name)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %s: %v", device, name, err)
			}
		}
		own := regexp.MustCompile(`^(mlp|classifier|loop|train|job|use|model|loss)\.go:[0-9]+$`)
		for _, row := range p.Rows(prof.Line) {
			if row.FLOPs > 0 && !own.MatchString(row.Name) {
				t.Errorf("%s: work at %s, which is neither the model nor the loop", device, row.Name)
			}
		}
	}
}

func weights(t *testing.T, run string) []byte {
	raw, err := os.ReadFile(filepath.Join(run, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestProfileAgain: a run that goes on has another folder; one that is named and has something in it is refused.
func TestProfileAgain(t *testing.T) {
	c := profiled(t, "cpu", train.ProfileInRun)
	traintest.Run(t, c)
	c.Resume, c.Steps, c.Given["steps"] = true, 8, true
	again, _ := traintest.Run(t, c)
	if want := filepath.Join(c.Out, "profile-2"); again.Profile == nil || again.Profile.Dir != want || again.Profile.First != 6 {
		t.Errorf("the second profile is %+v, want it in %s from step 6 on", again.Profile, want)
	}
	c.Steps, c.Profile = 12, filepath.Join(c.Out, "profile")
	if _, err := train.Run(t.Context(), c, nil); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder with a profile: %v", err)
	}
}

// TestProfileRefused: what cannot be profiled is refused before anything is made.
func TestProfileRefused(t *testing.T) {
	for name, change := range map[string]func(c *train.Config){
		"4 steps are left": func(c *train.Config) { c.ProfileSteps = 4 },
		"computes nothing": func(c *train.Config) { c.Device = "null:h100-80" },
		"profile-steps":    func(c *train.Config) { c.ProfileSteps = 0 },
		"has none":         func(c *train.Config) { c.Out = "" },
	} {
		c := profiled(t, "cpu", train.ProfileInRun)
		change(&c)
		_, err := train.Run(t.Context(), c, nil)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(c.Out); c.Out != "" && err == nil {
			t.Errorf("%s: left %s", name, c.Out)
		}
	}
}

// TestProfileUnwritten: where the files cannot be written the run goes on to its end and says so.
func TestProfileUnwritten(t *testing.T) {
	taken := filepath.Join(t.TempDir(), "taken")
	c := profiled(t, "cpu", filepath.Join(taken, "profile"))
	r := &traintest.Recorder{After: 1, Cancel: func() { os.WriteFile(taken, nil, 0o666) }}
	result, err := train.Run(t.Context(), c, r)
	if err != nil || result.Steps != 4 {
		t.Fatalf("the run ended with %v", err)
	}
	if result.Profile == nil || result.Profile.Err == nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "not written") {
		t.Errorf("profile %+v, notes %q", result.Profile, r.Notes)
	}
}

// failing is the device of this name.
var failing = &devicetest.Failing{Device: cpu.New()}

func init() {
	device.Register("failing", device.Engine{Open: func(device.Name) (device.Device, error) { return failing, nil }})
}

// TestProfileDeviceFails: a device fails before a window, in it, or while memory is recorded. The run ends with its first error, and
// nobody observes the device any more.
func TestProfileDeviceFails(t *testing.T) {
	for _, after := range []int{1, 2, 3, 4, 5, 6} {
		faults := 0
		failing.Fail(nil)
		c := profiled(t, "failing", train.ProfileInRun)
		c.Steps, c.ProfileAfter = 10, 4
		r := &traintest.Recorder{After: after, Cancel: func() {
			failing.Fail(func() error {
				faults++
				return fmt.Errorf("fault %d", faults)
			})
		}}
		if _, err := train.Run(t.Context(), c, r); err == nil || !strings.HasSuffix(err.Error(), "fault 1") {
			t.Errorf("after step %d: %v", after, err)
		}
		if failing.Observed() {
			t.Errorf("after step %d: the device is observed", after)
		}
	}
}

// TestProfileDiskFull: whichever file of a profile the disk has no room for, at its beginning or in its middle, the run goes on to the
// same weights and says what is not written; the other files are whole, and nothing is left of that one.
func TestProfileDiskFull(t *testing.T) {
	plain := profiled(t, "cpu", "")
	traintest.Run(t, plain)
	whole := profiled(t, "cpu", train.ProfileInRun)
	traintest.Run(t, whole)
	t.Cleanup(func() { durable.Through = nil })
	for i, full := range train.ProfileFiles() {
		info, err := os.Stat(filepath.Join(whole.Out, "profile", full))
		if err != nil {
			t.Fatal(err)
		}
		room := int64(100 * (i % 2)) // what is left of other runs has some files shorter than those of the first
		if info.Size() <= room {
			t.Fatalf("%s has %d bytes", full, info.Size())
		}
		durable.Through = func(path string, disk io.Writer) io.Writer {
			if filepath.Base(path) != full {
				return disk
			}
			return &testutil.FailingWriter{W: disk, N: room}
		}
		c := profiled(t, "cpu", train.ProfileInRun)
		result, r := traintest.Run(t, c)
		if result.Steps != 4 || !bytes.Equal(weights(t, c.Out), weights(t, plain.Out)) {
			t.Errorf("%s at %d: %d steps, or other weights", full, room, result.Steps)
		}
		if p := result.Profile; p == nil || !errors.Is(p.Err, syscall.ENOSPC) || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], full) {
			t.Errorf("%s at %d: profile %+v, notes %q", full, room, p, r.Notes)
		}
		want := slices.DeleteFunc(train.ProfileFiles(), func(name string) bool { return name == full })
		if got := names(t, filepath.Join(c.Out, "profile")); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s at %d: left %v", full, room, got)
		}
	}
}

func names(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestAnnotated: a tool that watches the run is shown its modules until it ends; one that cannot be is a note, and the run goes on.
func TestAnnotated(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"steps": 2, "batch": 8, "device": "cpu"})
	tool := nvtxtest.New(t)
	if _, r := traintest.Run(t, c); len(r.Notes) > 0 {
		t.Errorf("notes %q", r.Notes)
	}
	if told := tool.Told(t); strings.Count(told, "start backward\n") != 2 || strings.Count(told, "start ") != strings.Count(told, "end ") {
		t.Errorf("told\n%s", told)
	}
	t.Setenv(nvtx.PathEnv, filepath.Join(t.TempDir(), "none.so"))
	if result, r := traintest.Run(t, c); result.Steps != 2 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], nvtx.PathEnv) {
		t.Errorf("%d steps, notes %q", result.Steps, r.Notes)
	}
}
