package train_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// TestScoresOutliveAResume: the curve of a run that was resumed shows what was scored before.
func TestScoresOutliveAResume(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 5, "eval-every": 2})
	c.Out = filepath.Join(t.TempDir(), "run[1]") // a name that is a pattern
	traintest.Run(t, c)
	left := filepath.Join(c.Out, ".warpline-0123456789abcdef.tmp") // as a crash leaves it
	if err := os.Mkdir(left, 0o777); err != nil {
		t.Fatal(err)
	}
	c.Resume, c.Steps = true, 9
	r, _ := traintest.Run(t, c)
	var at []int
	for _, s := range r.Scores {
		at = append(at, s.Step)
	}
	if want := []int{2, 4, 6, 8, 9}; !slices.Equal(at, want) {
		t.Errorf("scores after steps %v, want %v", at, want)
	}
	if got := strings.Count(traintest.Read(t, c.Out+"/log.jsonl"), `"score":true`); got != 4 {
		t.Errorf("the log has %d scores, want those after steps 2, 4, 6 and 8", got)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("what the crash left is still there")
	}
}

// TestOutThatExists fills an empty folder, also by way of a link, and takes nothing away that it did not make.
func TestOutThatExists(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "empty"), 0o777), os.Symlink("empty", link)); err != nil {
		t.Fatal(err)
	}
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 1 << 30, "order": "sequential", "steps": 1})
	c.Out = link
	var known *train.Error
	if _, err := train.Run(t.Context(), c, nil); !errors.As(err, &known) {
		t.Fatalf("a batch of %d: %v", c.Batch, err)
	}
	if entries, err := os.ReadDir(link); err != nil || len(entries) > 0 {
		t.Fatalf("after a failure: %v, %v", entries, err)
	}
	c.Batch = 4
	traintest.Run(t, c)
	if _, err := os.Stat(filepath.Join(dir, "empty", "model.safetensors")); err != nil {
		t.Error(err)
	}
	t.Chdir(t.TempDir())
	c.Out = "."
	traintest.Run(t, c)
}

// TestOneFolderTwoRuns: of runs that want the same folder at the same time one gets it, and nobody's is overwritten.
func TestOneFolderTwoRuns(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 3})
	for _, exists := range []bool{false, true} {
		c.Out = filepath.Join(t.TempDir(), "run")
		if exists {
			if err := os.Mkdir(c.Out, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		failed := make(chan error)
		for range 4 {
			go func() {
				_, err := train.Run(context.Background(), c, nil)
				failed <- err
			}()
		}
		won := 0
		for range 4 {
			var known *train.Error
			if err := <-failed; err == nil {
				won++
			} else if !errors.As(err, &known) {
				t.Error(err)
			}
		}
		if steps, finals := traintest.StepsOf(t, c.Out); won != 1 || len(steps) != 3 || finals != 1 {
			t.Errorf("%d runs won; the log has steps %v and %d ends", won, steps, finals)
		}
	}
}

// starter does something when a run starts.
type starter struct {
	traintest.Recorder
	do func()
}

func (s *starter) Start(train.Start) { s.do() }

// TestOneFolderTwoResumes: while a run writes a folder no other goes on with it; afterwards one does.
func TestOneFolderTwoResumes(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 3})
	c.Out = filepath.Join(t.TempDir(), "run")
	again := c
	again.Resume = true
	refused := &starter{do: func() {
		var known *train.Error
		if _, err := train.Run(t.Context(), again, nil); !errors.As(err, &known) || known.Text != "another run is writing "+c.Out {
			t.Errorf("beside another run: %v", err)
		}
	}}
	for range 2 { // first beside the run that makes the folder, then beside one that goes on
		if _, err := train.Run(t.Context(), c, refused); err != nil {
			t.Fatal(err)
		}
		c.Resume, c.Steps = true, 5
	}
	if steps, finals := traintest.StepsOf(t, c.Out); len(steps) != 5 || finals != 1 {
		t.Errorf("the log has steps %v and %d ends", steps, finals)
	}
	entries, err := os.ReadDir(c.Out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s is left", e.Name())
		}
	}
}
