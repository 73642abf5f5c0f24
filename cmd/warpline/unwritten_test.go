package main

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/train"
)

// TestEmitKeepsItsError: a line that could not be written, whoever emitted it, ends the command with an error.
func TestEmitKeepsItsError(t *testing.T) {
	closed := &output{w: failing{}}
	s := &screen{out: closed, json: json.NewEncoder(closed), text: io.Discard, notes: io.Discard}
	s.Step(train.Step{Step: 1})
	if err := s.failure(); err == nil || !strings.Contains(err.Error(), "standard output") {
		t.Error(err)
	}
	stopped := false
	o := &output{w: io.Discard, stop: func() { stopped = true }}
	s = &screen{out: o, json: json.NewEncoder(o)}
	if err := s.emit(math.NaN()); err == nil || s.failure() == nil || !stopped {
		t.Errorf("%v, %v, stopped %v", err, s.failure(), stopped)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("closed") }

// TestFullDisk: every command that writes lines to a device without room says so.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	newRoom(t)
	for _, args := range []string{"plan gpt2 --json", "plan gpt2", "compare mlp --amp none,bf16 --steps 2 --devices cpu --json", "train mlp --dry-run t4 --json", "train mlp --steps 2 --json", "plan --flops 1e21"} {
		var errs strings.Builder
		if code := execute(t.Context(), strings.Fields(args), full, &errs); code != exitFailed || !strings.Contains(errs.String(), "standard output") {
			t.Errorf("%s: %d, %s", args, code, errs.String())
		}
	}
}
