package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/bench"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/train"
)

const benchLong = `Measure how fast this machine multiplies matrices (gemm), computes single operations (ops), trains networks
(train), reads data (data) and copies (copy), each figure beside the ceiling that the machine has just shown: multiply-adds in registers,
and memory. A figure is the median of 9 turns. Of one case alone it shows where the time went, too.

With --device null:CARD nothing is computed: the figures of gemm, ops and train are those of a model on paper, for that
card, and lines of JSON say so ("modelled"). A simulated card, whose own times say nothing, has the same ones. The cases:

`

func newBench() *cobra.Command {
	var c bench.Config
	var copies copying
	cmd := &cobra.Command{
		Use: "bench [" + strings.Join(bench.Benches, "|") + "|" + bench.Copy + "]", Short: "Measure a device beside its own ceiling", Long: benchLong + benchCases(),
		Example: "  warpline bench gemm\n  warpline bench gemm --case square --n 1024 --threads 1\n  warpline bench train --case gpt-128 --json\n  warpline bench train --case gpt2-124m --dtype bf16 --device null:h200\n  warpline bench copy --device cuda:0 --sizes 1KiB,1MiB,1GiB --svg copy.svg",
		Args:    from(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Bench = bench.Benches[0]
			if len(args) > 0 {
				c.Bench = args[0]
			}
			if c.Bench == bench.Copy {
				return copies.run(cmd, c.Device)
			}
			for _, name := range []string{"sizes", "svg"} {
				if cmd.Flags().Changed(name) {
					return advice.Failf("leave it out, or use warpline bench copy", "--%s is for copies", name)
				}
			}
			for name, v := range map[string]int{"n": c.N, "threads": c.Threads} {
				if cmd.Flags().Changed(name) && v < 1 {
					return advice.Failf("give 1 or more", "--%s is %d", name, v)
				}
			}
			return runBench(cmd, c)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&c.Cases, "case", nil, "only these cases, by name (default all)")
	f.IntVar(&c.N, "n", 0, "size of the cases: of a matrix, elements of an operand, samples of a batch, tokens (default each case's own)")
	f.StringVar(&c.DType, "dtype", "", "of the operands, and of train that of its products: f32, f64, bf16, f16 (default f32)")
	f.StringVar(&c.Device, "device", "", "cpu, cuda:N, null:CARD for figures on paper (default cpu)")
	f.IntVar(&c.Threads, "threads", 0, "threads of the CPU (default all)")
	f.StringSliceVar(&copies.sizes, "sizes", nil, "of copies, as in 1KiB,64MB (default 1 KiB to 1 GiB, four times as much each)")
	f.StringVar(&copies.svg, "svg", "", "draw the bandwidth of copies into this file")
	return cmd
}

// benchCases are lines of help.
func benchCases() string {
	var b strings.Builder
	for _, name := range bench.Benches {
		fmt.Fprintf(&b, "%s:\n%s", name, bench.Help(name))
	}
	fmt.Fprintf(&b, "%s:\n  copies between host and device, both ways, pinned and pageable, by size (--sizes); on cpu memcpy\n", bench.Copy)
	return strings.TrimSuffix(b.String(), "\n")
}

func runBench(cmd *cobra.Command, c bench.Config) error {
	s := newScreen(cmd)
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	s.out.stop = stop
	c.Progress = func(done, of int, what string) {
		s.passing(render.Progress{Label: cmp.Or(c.Bench, "bench"), Done: int64(done), Total: int64(of), Fields: []string{what}})
	}
	var rows []bench.Row
	ceilings, err := bench.Run(ctx, c, func(r bench.Row) error {
		rows = append(rows, r)
		return s.emit(&r)
	})
	s.clear()
	if len(rows) > 0 {
		s.say("%s", ceilings)
		fmt.Fprint(s.text, bench.Text(rows, s.tableWidth()))
		if len(rows) == 1 {
			fmt.Fprint(s.text, "\n", rows[0].Parts(s.tableWidth()))
		}
		if rows[0].Modelled {
			s.say("Modelled on paper (docs/gpu.md): nothing was computed.")
		}
	}
	switch failed := s.failure(); {
	case cmd.Context().Err() != nil:
		return train.ErrInterrupted
	case failed != nil:
		return failed
	}
	return err
}
