package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/bench"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/train"
)

const compareLong = `Run the same program with the same seed on several devices, at several sizes, and show side by side what a step
takes, with its spread, what it is made of (kernels, copies from and to the host, and launches: the device waits for the host),
how much memory it needs, and from which size on a card is quicker than the first device. Each step gets its input from the host.

A figure of a simulated card (sim:CARD) is modelled: its virtual clock, not a measurement, tells it (docs/gpu.md). It computes
all the same, so large sizes take a while. The tasks:

`

func newCompare() *cobra.Command {
	var k comparison
	cmd := &cobra.Command{
		Use: "compare TASK", Short: "Run one program on several devices, side by side", Long: compareLong + bench.ProgramsHelp(),
		Example: "  warpline compare matmul --devices cpu,sim:a100-80\n  warpline compare mlp --devices cpu,cuda:0 --sizes 1,16,256 --svg mlp.svg",
		Args:    from(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(k.precisions.amps) > 0 {
				return k.precisions.run(cmd, args[0], &k)
			}
			return k.run(cmd, args[0])
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&k.Devices, "devices", []string{"cpu", "sim:0"}, "which to compare, the first being what the others are compared with: cpu, cuda:N, sim:CARD")
	f.IntSliceVar(&k.Sizes, "sizes", nil, "samples of a batch or rows of a matrix (default the task's own)")
	f.Uint64Var(&k.Seed, "seed", 1, "of weights and input")
	k.precisions.flags(f)
	f.StringVar(&k.svg, "svg", "", "draw the time of a step by size into this file")
	return cmd
}

// comparison is a run of the command.
type comparison struct {
	bench.CompareConfig
	svg        string
	precisions precisions
}

func (k *comparison) run(cmd *cobra.Command, task string) error {
	if err := checkSVG(k.svg); err != nil {
		return err
	}
	s := newScreen(cmd)
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	s.out.stop = stop
	k.Task = task
	k.Progress = func(done, of int, what string) {
		s.passing(render.Progress{Label: "compare", Done: int64(done), Total: int64(of), Fields: []string{what}})
	}
	var sides []bench.Side
	list, err := bench.Compare(ctx, k.CompareConfig, func(x bench.Side) error {
		sides = append(sides, x)
		return s.emit(&x)
	})
	s.clear()
	for i := range list {
		if err := s.emit(&list[i]); err != nil {
			return err
		}
	}
	if len(sides) > 0 {
		fmt.Fprint(s.text, bench.SidesText(sides, s.tableWidth()), "\n", bench.SidesPlot(sides).Terminal(s.tableWidth(), plotHeight, s.color), "\n")
		s.say("%s", bench.CrossingsText(list, sides))
		k.label(s, sides)
	}
	switch failed := s.failure(); {
	case failed != nil:
		return failed
	case cmd.Context().Err() != nil:
		return train.ErrInterrupted
	case err != nil || k.svg == "":
		return err
	}
	return writeSVG(k.svg, bench.SidesPlot(sides))
}

// label says where a figure is modelled.
func (k *comparison) label(s *screen, sides []bench.Side) {
	for _, x := range sides {
		if x.Modelled {
			s.say("Figures of sim are modelled: the virtual clock of a simulated card (docs/gpu.md). Others are measured, the median of some steps with quartiles.")
			return
		}
	}
}
