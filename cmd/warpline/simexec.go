package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/simexec"
)

// newSim is the command for kernels, and for programs that launch them.
func newSim() *cobra.Command {
	cmd := newSimKernels()
	cmd.AddCommand(newSimExec(), newSimPython(), newSimServe())
	return cmd
}

const simExecLong = `Run a program that uses the CUDA driver API on simulated GPUs. It finds a libcuda.so.1 of warpline's through the loader
(LD_LIBRARY_PATH), and needs neither a card nor a driver. Its kernels run under the checks of warpline sim run; findings, counters
and refused calls are told when it has ended.

Modules must be PTX. The CUDA runtime library (libcudart), machine code, managed memory and memory shared between processes are
refused by name. docs/simulator.md lists what there is.

Flags of warpline stand before the program, which -- may begin. It has the standard input, output and error of warpline, and gets its signals. The exit status is the program's, or 1 if
that is 0 and there is a finding, or 2 if it could not be run. With --json the standard output has one line for each finding and a
last one with "final": true; the program's standard output goes to the standard error then.`

func newSimExec() *cobra.Command {
	var c simexec.Config
	cmd := &cobra.Command{
		Use: "exec PROGRAM [ARGUMENT…]", Short: "Run a program that uses the CUDA driver API", Long: simExecLong,
		Example: "  warpline sim exec -- ./saxpy\n  warpline sim exec --card h100-sxm --check memcheck,racecheck -- python train.py",
		Args:    from(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Command = args
			return execSim(cmd, c)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.SetInterspersed(false) // what follows the program is its own
	f.StringVar(&c.Sim.Card, "card", cards.Default, "GPU to imitate; warpline sim cards lists them")
	f.IntVar(&c.Devices, "devices", 1, "how many of them the program finds, at most 16")
	f.StringVar(&c.Sim.Checks, "check", "all", "all, none, or a list of memcheck, initcheck, synccheck, racecheck, global")
	f.Uint64Var(&c.Sim.Seed, "seed", 0, "of the order of blocks, warps and lanes; 0: the natural one")
	f.StringVar(&c.Sim.Schedule, "schedule", "reconverge", "of the lanes of a warp: reconverge, or independent, as cards since Volta may run them")
	f.StringVar(&c.Sim.Numerics, "numerics", "float32", "of tensor cores: float32, exact, or truncating as A100 and H100 do")
	f.Int64Var(&c.Sim.StepLimit, "step-limit", 0, "instructions of a block's warps after which it counts as endless (default 1e9)")
	f.BoolVar(&c.Late, "late", false, "asynchronous work takes effect when something waits for it and not before (default at the call)")
	return cmd
}

func execSim(cmd *cobra.Command, c simexec.Config) error {
	if c.Devices < 1 || c.Devices > 16 {
		return advice.Failf("give 1 to 16", "--devices is %d", c.Devices)
	}
	s := newScreen(cmd)
	c.Stdin, c.Stdout, c.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	if s.json != nil {
		c.Stdout = c.Stderr
	}
	for _, f := range []any{c.Stdin, c.Stdout, c.Stderr} {
		if f, ok := f.(*os.File); ok {
			_, terminal := terminalWidth(f)
			c.Terminal = c.Terminal || terminal
		}
	}
	r, err := simexec.Run(cmd.Context(), c)
	if err != nil {
		return err
	}
	for i := range r.Findings {
		s.emit(&r.Findings[i])
	}
	if err := s.emit(r); err != nil {
		return err
	}
	fmt.Fprint(cmd.ErrOrStderr(), s.hung(r.Text(max(s.width, widestTable))))
	switch {
	case r.Status != 0:
		return exitStatus(r.Status)
	case r.Found > 0:
		return errFindings
	}
	return nil
}
