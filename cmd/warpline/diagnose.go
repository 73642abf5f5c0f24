package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/diagnose"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/train"
)

const diagnoseLong = `Say what is wrong from what other programs left behind, whatever trained: error texts, logs of jobs, traces, snapshots of
memory, reports of the machine. Files are recognised by their content, decompressed (gzip) and decoded; a text may be cut
off, wrapped or pasted from a web page. A folder is read whole, and what its files say together comes last: of the logs of
all ranks, which failed first, and whether to restart, to drain a node, or to fix the program.

Findings come in order of what mending them gains, each with its evidence and what would disprove it. The exit status is 0
when nothing was found, 1 when something was, 2 when something could not be read. docs/diagnose.md describes the JSON.`

const diagnoseExample = `  warpline diagnose train.log
  warpline diagnose logs/                          # the logs of all ranks: which failed first
  pbpaste | warpline diagnose -                    # a text from a forum
  warpline diagnose oom.txt --batch 8 --context 2048 --vocab 128256 --heads 32
  warpline diagnose --json logs/ | jq -r '.findings[].fix'`

func newDiagnose() *cobra.Command {
	c := &diagnose.Config{}
	cmd := &cobra.Command{
		Use: "diagnose FILE|DIR|-...", Short: "Say what is wrong from logs, error texts, traces and snapshots", Long: diagnoseLong, Example: diagnoseExample,
		Args: from(1, -1),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&c.Sizes.Batch, "batch", 0, "samples of a step, to tell which value an out-of-memory asked for")
	f.IntVar(&c.Sizes.Context, "context", 0, "tokens of a sample, likewise")
	f.IntVar(&c.Sizes.Vocab, "vocab", 0, "size of the vocabulary, likewise")
	f.IntVar(&c.Sizes.Heads, "heads", 0, "heads of attention, likewise")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runDiagnose(cmd, args, c) }
	return cmd
}

func runDiagnose(cmd *cobra.Command, args []string, c *diagnose.Config) error {
	for _, n := range []int{c.Sizes.Batch, c.Sizes.Context, c.Sizes.Vocab, c.Sizes.Heads} {
		if n < 0 {
			return advice.Failf("give the model's sizes as whole numbers from 1 up", "a size is %d", n)
		}
	}
	s := newScreen(cmd)
	c.Stdin = cmd.InOrStdin()
	c.Progress = s.reading()
	found := false
	err := c.Run(cmd.Context(), args, func(r *finding.Report, part bool) error {
		found = found || len(r.Findings) > 0
		s.clear()
		if err := s.emit(r); err != nil {
			return err
		}
		show := diagnose.Screen
		if part {
			show = diagnose.Brief
		}
		return s.unwritten(show(s.text, r, min(s.tableWidth(), widestHelp)))
	})
	s.clear()
	switch {
	case errors.Is(err, context.Canceled):
		return train.ErrInterrupted
	case err != nil:
		return err
	case s.failure() != nil:
		return s.failure()
	case found:
		return errFindings
	}
	return nil
}

// slowReading is after how long the progress of a file is shown.
const slowReading = time.Second

// reading shows how far a file is read, if it takes long.
func (s *screen) reading() func(name string, done, total int64) {
	var of string
	var began time.Time
	return func(name string, done, total int64) {
		if name != of {
			of, began = name, time.Now()
		}
		if !s.terminal || time.Since(began) < slowReading || time.Since(s.shown) < redrawEvery {
			return
		}
		s.shown = time.Now()
		s.clear()
		p := render.Progress{Label: "reading " + name, Done: done, Total: total, Fields: []string{render.Bytes(done)}}
		_, _ = s.text.Write([]byte(p.Line(s.liveWidth())))
	}
}
