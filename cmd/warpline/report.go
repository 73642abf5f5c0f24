package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/doctor"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/onepage"
	"github.com/warpline-ml/warpline/train"
)

func newReport() *cobra.Command {
	var html, markdown, device string
	cmd := &cobra.Command{
		Use: "report [FILE|DIR|-...]", Short: "Tell this machine and how it trains on one page",
		Long: `Tell this machine and how it trains on one page, for yourself or for whom you ask for help: the environment, one operation
measured with the device waited for, some steps of a small training with its memory by owner, its timeline and where it waits, what can run
out of memory, and what is wrong. It works anywhere: where there is no card, the processor is measured, and it is said. The page is one file
that fetches nothing. Files and folders that are given are judged as by warpline diagnose, and their findings are on the page. The exit status is 1 if something is wrong.`,
		Example: "  warpline report\n  warpline report --html report.html\n  warpline report --html report.html train.log trace.json.gz\n  warpline report --markdown report.md --device cpu",
		Args:    from(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return tellMachine(cmd, args, device, html, markdown)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&html, "html", "", "write the page into this file")
	f.StringVar(&markdown, "markdown", "", "write it as Markdown into this file (default to the standard output)")
	f.StringVar(&device, "device", "", "where to measure: cpu, cuda:N, sim:N (default the best there is)")
	return cmd
}

func tellMachine(cmd *cobra.Command, files []string, device, html, markdown string) error {
	s := newScreen(cmd)
	note := &screen{text: cmd.ErrOrStderr(), notes: cmd.ErrOrStderr()}
	facts, err := (&doctoring{}).facts(cmd, note)
	if err != nil {
		return interrupted(err)
	}
	r, err := onepage.New(cmd.Context(), onepage.Config{Device: device, Machine: doctor.Judge(facts), Files: files, Stdin: cmd.InOrStdin(), Version: version(), Now: time.Now(), Note: func(text string) { note.say("%s …", text) }})
	if err != nil {
		return interrupted(err)
	}
	for _, file := range []struct {
		path  string
		write func(w io.Writer) error
	}{{html, r.WriteHTML}, {markdown, func(w io.Writer) error { return r.WriteMarkdown(w, widestTable) }}} {
		if file.path == "" {
			continue
		}
		if err := durable.WriteFile(file.path, file.write); err != nil {
			return err
		}
		note.say("wrote %s", file.path)
	}
	if err := s.emit(r); err != nil {
		return err
	}
	if html == "" && markdown == "" && s.json == nil {
		if err := r.WriteMarkdown(s.text, s.tableWidth()); err != nil {
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

// interrupted is the error of a command that was.
func interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return train.ErrInterrupted
	}
	return err
}
