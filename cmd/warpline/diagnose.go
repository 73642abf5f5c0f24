package main

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/diagnose"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/kineto"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/train"
)

const diagnoseLong = `Say what is wrong from what other programs left behind, whatever trained: error texts, logs of jobs, traces, snapshots of
memory, reports of the machine. Files are recognised by their content, decompressed (gzip) and decoded; a text may be cut
off, wrapped or pasted from a web page. A folder is read whole, and what its files say together stands first (with --json it
is the last line): of the logs of all ranks, which failed first, and whether to restart, to drain a node, or to fix the
program.

Findings come in order of what mending them gains, each with its evidence and what would disprove it. The exit status is 0
when nothing was found, 1 when something was, 2 when something could not be read, or nothing of it judged. docs/diagnose.md
describes the JSON.`

const diagnoseExample = `  warpline diagnose train.log
  warpline diagnose logs/                          # the logs of all ranks: which failed first
  pbpaste | warpline diagnose -                    # a text from a forum
  warpline diagnose oom.txt --batch 8 --context 2048 --vocab 128256 --heads 32
  warpline diagnose after.pt.trace.json.gz --against before.pt.trace.json.gz
  warpline diagnose rank0.json.gz --trace-out queues.json.gz    # with queues and busy devices, for a viewer
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
	var beside traces
	f.StringVar(&beside.against, "against", "", "an earlier trace of the same training, to tell what changed")
	f.StringVar(&beside.out, "trace-out", "", "write the trace again, with what is queued and what is busy as counters; compressed if the name ends in .gz")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runDiagnose(cmd, args, c, &beside) }
	return cmd
}

// traces is what else may be done with one trace.
type traces struct{ against, out string }

// check refuses several files, and names that cannot be written.
func (t *traces) check(args []string) error {
	if t.against+t.out != "" && len(args) != 1 {
		return advice.Failf("give one trace", "--against and --trace-out are of one trace, and there are %d files", len(args))
	}
	if t.out != "" {
		return diagnose.Annotatable(args[0], t.out)
	}
	return nil
}

// run diagnoses, and does that.
func (t *traces) run(ctx context.Context, c *diagnose.Config, args []string, tell diagnose.Tell) (err error) {
	if t.against != "" {
		err = c.Against(ctx, args[0], t.against, tell)
	} else {
		err = c.Run(ctx, args, tell)
	}
	if err == nil && t.out != "" {
		err = c.Annotate(ctx, args[0], t.out)
	}
	return err
}

// ampleMemory is what diagnosing takes of memory before what is no longer needed is collected at once, unless GOMEMLIMIT says
// otherwise: a trace of 1 GB needs 180 MB, and eight one after the other had taken 500.
const ampleMemory = 300 << 20

func runDiagnose(cmd *cobra.Command, args []string, c *diagnose.Config, beside *traces) error {
	if err := beside.check(args); err != nil {
		return err
	}
	for _, n := range []int{c.Sizes.Batch, c.Sizes.Context, c.Sizes.Vocab, c.Sizes.Heads} {
		if n < 0 {
			return advice.Failf("give the model's sizes as whole numbers from 1 up", "a size is %d", n)
		}
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(ampleMemory))
	}
	s := newScreen(cmd)
	c.Stdin = cmd.InOrStdin()
	c.Progress = s.reading()
	found, judged := false, false
	width := min(s.tableWidth(), widestHelp)
	var members partReports
	err := beside.run(cmd.Context(), c, args, func(r *finding.Report, part bool) error {
		_, compares := r.Detail.([]kineto.Change)
		found, judged = found || len(r.Findings) > 0, judged || len(r.Findings)+len(r.Checked) > 0 || compares
		s.clear()
		if err := s.emit(r); err != nil {
			return err
		}
		if rows, ok := r.Detail.([]kineto.Change); ok {
			return s.unwritten(diagnose.Comparison(s.text, rows, s.tableWidth()))
		}
		if part {
			members = append(members, r)
			return nil
		}
		if err := s.unwritten(diagnose.Screen(s.text, r, width)); err != nil || r.Kind != "group" {
			return err
		}
		return s.unwritten(members.show(s.text, width, len(r.Findings) > 0))
	})
	s.clear()
	_ = members.show(s.text, width, true) // of a group that was not told
	switch {
	case errors.Is(err, context.Canceled):
		return train.ErrInterrupted
	case err != nil:
		return err
	case s.failure() != nil:
		return s.failure()
	case found:
		return errFindings
	case !judged:
		return advice.Failf("the notes say what it lacks", "nothing could be judged")
	}
	return nil
}

// partReports are what the files of a group say, which stands behind what they say together.
type partReports []*finding.Report

// show tells each in a line, and forgets them. Where they say nothing together that is wrong, the one that has most to gain is
// told whole.
func (p *partReports) show(w io.Writer, width int, together bool) error {
	all := *p
	*p = nil
	worst := diagnose.Worst(all)
	for i, r := range all {
		if i == worst && !together {
			continue
		}
		if err := diagnose.Brief(w, r, width); err != nil {
			return err
		}
	}
	if worst < 0 || together {
		return nil
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return diagnose.Screen(w, all[worst], width)
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
