package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/simdebug"
	"github.com/warpline-ml/warpline/internal/simrun"
	"github.com/warpline-ml/warpline/train"
)

const simDebugLong = `Run one kernel step by step, with the file and the arguments of warpline sim run. It waits at the first instruction for commands
on the standard input; help lists them. It also waits at breakpoints, before accesses to an address, and at each finding, and
goes back by running the kernel again. With --json commands and answers are objects, one a line; docs/simulator.md has them.`

const simDebugExample = `  warpline sim debug sum.ptx --grid 4 --block 256 f32[1000]=1 f32[4] i32:1000
  warpline sim debug sum_bug.ptx --grid 4 --block 256 f32[1000]=1 f32[4] i32:1000 <commands.txt`

func newSimDebug() *cobra.Command {
	var c simrun.Config
	cmd := &cobra.Command{
		Use: "debug FILE.ptx [ARGUMENT…]", Short: "Run a kernel step by step, forth and back", Long: simDebugLong, Example: simDebugExample,
		Args: from(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.File, c.Args = args[0], args[1:]
			return debugSim(cmd, c)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	launchFlags(f, &c)
	return cmd
}

func debugSim(cmd *cobra.Command, c simrun.Config) error {
	if err := sharedOf(cmd, &c); err != nil {
		return err
	}
	s := newScreen(cmd)
	console := simdebug.Console{In: cmd.InOrStdin(), Out: s.text, JSON: s.json != nil, Echo: !typed(cmd.InOrStdin())}
	if console.JSON {
		console.Out = s.out
	}
	err := simdebug.Serve(cmd.Context(), c, console)
	switch {
	case cmd.Context().Err() != nil:
		return train.ErrInterrupted
	case s.failure() != nil:
		return s.failure()
	}
	return err
}

// typed is whether somebody types at a terminal.
func typed(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	_, terminal := terminalWidth(f)
	return terminal
}
