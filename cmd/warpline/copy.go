package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/bench"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/train"
)

// copying is the bench of copies.
type copying struct {
	sizes []string
	svg   string
}

// run times copies and shows them: a table, a plot, and a file where one is asked for.
func (k *copying) run(cmd *cobra.Command, device string) error {
	for _, name := range []string{"case", "n", "dtype", "threads"} {
		if cmd.Flags().Changed(name) {
			return advice.Failf("give --sizes and --device, or leave it out", "--%s is not for copies", name)
		}
	}
	if err := checkSVG(k.svg); err != nil {
		return err
	}
	s := newScreen(cmd)
	c := bench.CopyConfig{Device: device}
	for _, word := range k.sizes {
		n, err := bench.ParseSize(word)
		if err != nil {
			return err
		}
		c.Sizes = append(c.Sizes, n)
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	s.out.stop = stop
	c.Progress = func(done, of int, what string) {
		s.passing(render.Progress{Label: bench.Copy, Done: int64(done), Total: int64(of), Fields: []string{what}})
	}
	var rows []bench.Row
	err := bench.RunCopy(ctx, c, func(r bench.Row) error {
		rows = append(rows, r)
		return s.emit(&r)
	})
	s.clear()
	k.show(s, rows)
	if failed := s.failure(); failed != nil {
		return failed
	}
	if cmd.Context().Err() != nil {
		return train.ErrInterrupted
	}
	if err != nil || k.svg == "" {
		return err
	}
	return writeSVG(k.svg, bench.CopyPlot(rows))
}

// show is what people see of rows.
func (k *copying) show(s *screen, rows []bench.Row) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprint(s.text, bench.CopyText(rows, s.tableWidth()))
	fmt.Fprint(s.text, "\n", bench.CopyPlot(rows).Terminal(s.tableWidth(), plotHeight, s.color))
	first := &rows[0]
	if first.Direction == bench.OnHost {
		s.say("GB/s of one thread from memory to memory of the host: the processor has no link to itself.")
		return
	}
	s.say("GB/s (1e9 bytes), a copy by itself, by the device's events: median of each kind, with quartiles.")
	if first.Modelled {
		s.say("Modelled: the virtual clock of a simulated card (docs/gpu.md), not a measurement.")
	}
}

// plotHeight is the lines of a plot in the terminal.
const plotHeight = 18

// checkSVG finds out before a long run that its plot could not be written; the empty path is none.
func checkSVG(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return advice.Failf("give a file in a folder that exists", "--svg: there is no folder %s", filepath.Dir(path))
	}
	return nil
}

// writeSVG draws a plot into a file.
func writeSVG(path string, p render.Plot) error {
	err := durable.WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, p.SVG(800, 420))
		return err
	})
	if err != nil {
		return advice.Failf("give a file in a folder that exists and has room", "%s is not written: %v", path, err)
	}
	return nil
}
