package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/doctor"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/onepage"
	"github.com/warpline-ml/warpline/train"
)

func newReport() *cobra.Command {
	var how reporting
	cmd := &cobra.Command{
		Use: "report [FILE|DIR|-...]", Short: "Put this machine, or files of a training, on one page with pictures",
		Long: `Put this machine, or files of a training, on one page, for yourself or for whom you ask for help.

Without files it is of this machine: the environment, one operation measured with the device waited for, some steps of a small training
with its memory by owner, its timeline and where it waits, what can run out of memory, and what is wrong. It works anywhere: where there
is no card, the processor is measured, and it is said.

With files and folders it is of these, whatever wrote them: what warpline diagnose finds wrong in them, and pictures. Of traces who worked
when, where the time goes, and what the device computes; of several ranks' traces the ranks beside each other; of memory snapshots and
timelines memory over time by owner, and who holds it at the peak. --machine, or --device, adds this machine.

The page is one file that fetches nothing. The exit status is 1 if something is wrong.`,
		Example: "  warpline report\n  warpline report --html report.html\n  warpline report --html report.html trace.json.gz snapshot.pickle logs/\n  warpline report --machine --markdown report.md train.log\n  warpline report --device cpu --json",
		Args:    from(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return how.run(cmd, args)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&how.html, "html", "", "write the page into this file")
	f.StringVar(&how.markdown, "markdown", "", "write it as Markdown into this file (default to the standard output)")
	f.BoolVar(&how.machine, "machine", false, "tell this machine beside the files")
	f.StringVar(&how.device, "device", "", "where to measure: cpu, cuda:N, sim:N (default the best there is)")
	return cmd
}

// reporting is what a report is asked for.
type reporting struct {
	html, markdown, device string
	machine                bool
}

func (how *reporting) run(cmd *cobra.Command, files []string) error {
	s := newScreen(cmd)
	note := &screen{text: cmd.ErrOrStderr(), notes: cmd.ErrOrStderr()}
	if err := how.check(); err != nil {
		return err
	}
	c := onepage.Config{Device: how.device, Files: files, Stdin: cmd.InOrStdin(), Version: version(), Now: time.Now(),
		Note:      func(text string) { note.say("%s …", text) },
		OnlyFiles: len(files) > 0 && !how.machine && how.device == ""}
	if !c.OnlyFiles {
		facts, err := (&doctoring{}).facts(cmd, note)
		if err != nil {
			return interrupted(err)
		}
		c.Machine = doctor.Judge(facts)
	}
	r, err := onepage.New(cmd.Context(), c)
	if err != nil {
		return interrupted(err)
	}
	if err := how.write(r, note); err != nil {
		return err
	}
	if err := s.emit(r); err != nil {
		return err
	}
	if how.html == "" && how.markdown == "" && s.json == nil {
		write := r.WriteMarkdown
		if s.terminal {
			write = r.WriteText
		}
		if err := write(s.text, s.tableWidth()); err != nil {
			return s.unwritten(err)
		}
	}
	if err := s.failure(); err != nil {
		return err
	}
	if r.Wrong() {
		return errFindings
	}
	return nil
}

// check refuses files that could not be written, before anything is measured.
func (how *reporting) check() error {
	if how.html != "" && how.html == how.markdown {
		return advice.Failf("give each a file of its own", "--html and --markdown are both %s", how.html)
	}
	for _, path := range []string{how.html, how.markdown} {
		if path == "" {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return advice.Failf("name a file in it: "+filepath.Join(path, "report.html"), "%s is a folder", path)
		}
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return advice.Explain(err, "make the folder first, or write the page elsewhere")
		}
	}
	return nil
}

// write writes the files that are asked for.
func (how *reporting) write(r *onepage.Report, note *screen) error {
	for _, file := range []struct {
		path  string
		write func(w io.Writer) error
	}{{how.html, r.WriteHTML}, {how.markdown, func(w io.Writer) error { return r.WriteMarkdown(w, widestTable) }}} {
		if file.path == "" {
			continue
		}
		if err := durable.WriteFile(file.path, file.write); err != nil {
			return err
		}
		note.say("wrote %s", file.path)
	}
	return nil
}

// interrupted is the error of a command that was.
func interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return train.ErrInterrupted
	}
	return err
}
