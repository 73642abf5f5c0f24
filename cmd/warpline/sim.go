package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/bench"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/simrun"
	"github.com/warpline-ml/warpline/train"
)

// errFindings ends a run in which a check found something; it has been shown.
var errFindings = errors.New("a check found something")

func newSimKernels() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sim", Short: "Run and check GPU kernels without a GPU",
		Long: `Run a kernel's PTX on a simulated GPU that checks every access and counts. PTX is what clang and nvcc write for CUDA
C++ and Triton for its kernels; docs/simulator.md has a first bug found in five minutes.`,
		Example: "  warpline sim explain sum.ptx\n  warpline sim run sum.ptx --grid 4 --block 256 f32[1000]=1 f32[4] i32:1000",
		Args:    noCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSimRun(), newSimDebug(), newSimLitmus(), newSimExplain(), newSimCards())
	return cmd
}

const simRunLong = `Run one kernel under checks. After the file come the kernel's arguments in order:

  @a.npy            a buffer with that content
  bf16@q.npy        the same, converted from float32; f16@ too
  f32[4096,128]     an uninitialised buffer
  f32[4096]=0       a filled buffer
  i32:5  f32:1e-5   a scalar
  null              a null pointer

Types: f64 f32 f16 bf16 i64 i32 i16 i8 u64 u32 u16 u8 bool. The exit status is 0 without a finding, 1 with one or where the results on
--device differ, 2 if the kernel could not be run. Memory accesses are always checked.`

const simRunExample = `  warpline sim run add.ptx --grid 4 --block 256 @a.npy @b.npy f32[1000] i32:1000 --out 2=c.npy
  warpline sim run softmax.ptx --meta softmax.json --grid 4 @x.npy f32[4,1000] i32:1000
  warpline sim run new.ptx --against old.ptx --grid 4 --block 256 @a.npy f32[1000] i32:1000
  warpline sim run sum.ptx --device cuda:0 --grid 4 --block 256 @a.npy f32[4] i32:1000
  warpline sim run sum.ptx --kernel sum --block 128 --check racecheck --seed 3 --json f32[128]=1 f32[1]`

func newSimRun() *cobra.Command {
	var c simrun.Config
	cmd := &cobra.Command{
		Use: "run FILE.ptx [ARGUMENT…]", Short: "Run a kernel under checks", Long: simRunLong, Example: simRunExample,
		Args: from(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.File, c.Args = args[0], args[1:]
			return runSim(cmd, c)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	launchFlags(f, &c)
	f.IntVar(&c.Sample, "sample", 0, "run only so many blocks, at most 32, and scale what they count: for the time of a large grid (default all)")
	f.BoolVar(&c.Warm, "warm", false, "for the time: the launch is one of many, and what it touches is in L2 if it fits (default it is not)")
	f.IntVar(&c.Registers, "registers", 0, "of a thread, for occupancy (default what a ptxas in the PATH says, else an estimate)")
	f.IntVar(&c.Lines, "lines", 0, "of the source that are shown with what they cost (default 10)")
	f.StringVar(&c.Against, "against", "", "another PTX file whose kernel is run with the same arguments and compared, counter by counter")
	f.StringVar(&c.AgainstGrid, "against-grid", "", "blocks of that kernel, if others: a kernel with larger tiles has fewer (default --grid)")
	f.StringVar(&c.AgainstBlock, "against-block", "", "threads of a block of that kernel, if others (default --block)")
	f.StringVar(&c.AgainstMeta, "against-meta", "", "Triton's metadata of that kernel (default --meta)")
	f.StringVar(&c.Device, "device", "", "run the kernel there too, and compare the results element by element: cuda:0, or another simulated card, sim:h100-80")
	f.Float64Var(&c.Tolerance, "tolerance", 0, "of that comparison, of numbers beyond 1 as a share (default f32 1e-5, f64 1e-12, f16 2e-3, bf16 1.6e-2, integers 0)")
	f.StringArrayVar(&c.Outs, "out", nil, "K: show the start of argument K, from 0, behind the run; K=c.npy: write it to a file too; may be repeated")
	return cmd
}

// launchFlags are those that say what to launch, and how.
func launchFlags(f *pflag.FlagSet, c *simrun.Config) {
	f.StringVar(&c.Kernel, "kernel", "", "name of the kernel (default the only one)")
	f.StringVar(&c.Grid, "grid", "", "blocks: X[,Y,Z] (default 1)")
	f.StringVar(&c.Block, "block", "", "threads of a block: X[,Y,Z] (default what .reqntid or --meta says)")
	f.IntVar(&c.Shared, "shared", 0, "bytes of dynamic shared memory (default what --meta says, else 0)")
	f.StringVar(&c.Meta, "meta", "", "JSON file that Triton writes: kernel, warps, shared memory and scratch pointers")
	f.StringVar(&c.Card, "card", cards.Default, "GPU to imitate; warpline sim cards lists them")
	f.StringVar(&c.Checks, "check", "all", "all, none, or a list of memcheck, initcheck, synccheck, racecheck, global")
	f.Uint64Var(&c.Seed, "seed", 0, "of the order of blocks, warps and lanes; 0: the natural one")
	f.StringVar(&c.Schedule, "schedule", "reconverge", "of the lanes of a warp: reconverge, or independent, as cards since Volta may run them")
	f.StringVar(&c.Numerics, "numerics", "float32", "of tensor cores: float32, exact, or truncating as A100 and H100 do")
	f.Int64Var(&c.StepLimit, "step-limit", 0, "instructions of a block's warps after which it counts as endless (default 1e9)")
}

// sharedOf settles the bytes of dynamic shared memory that a command line gives.
func sharedOf(cmd *cobra.Command, c *simrun.Config) error {
	switch given := cmd.Flags().Changed("shared"); {
	case !given:
		c.Shared = -1
	case c.Shared < 0:
		return advice.Failf("give a number of bytes, 0 or more", "--shared is %d", c.Shared)
	}
	return nil
}

func runSim(cmd *cobra.Command, c simrun.Config) error {
	if err := sharedOf(cmd, &c); err != nil {
		return err
	}
	c.ToleranceGiven = cmd.Flags().Changed("tolerance")
	s := newScreen(cmd)
	c.Progress = func(kernel string, done, all int64) {
		s.passing(render.Progress{Label: "blocks of " + kernel, Done: done, Total: all})
	}
	r, err := simrun.Run(cmd.Context(), c)
	if !s.shown.IsZero() {
		s.clear()
	}
	if r != nil {
		if failed := showSim(s, r); err == nil {
			err = failed
		}
	}
	if err != nil && cmd.Context().Err() != nil {
		return train.ErrInterrupted
	}
	return err
}

// showSim writes a result and turns findings into errFindings.
func showSim(s *screen, r *simrun.Result) error {
	for i := range r.Findings {
		s.emit(&r.Findings[i])
	}
	if err := s.emit(r); err != nil {
		return err
	}
	if _, err := fmt.Fprint(s.text, s.hung(r.Text(max(s.width, widestTable)))); err != nil {
		return s.unwritten(err)
	}
	if r.Found > 0 || r.Against != nil && r.Against.Found > 0 || r.Device != nil && r.Device.Differs() {
		return errFindings
	}
	return nil
}

func newSimExplain() *cobra.Command {
	card := cards.Default
	cmd := &cobra.Command{
		Use: "explain FILE.ptx", Short: "List a file's kernels, their parameters, memory and instructions",
		Example: "  warpline sim explain sum.ptx",
		Args:    from(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := simrun.Explain(args[0], card)
			if err != nil {
				return err
			}
			s := newScreen(cmd)
			if err := s.emit(l); err != nil {
				return err
			}
			_, err = fmt.Fprint(s.text, s.hung(l.Text(s.tableWidth())))
			return s.unwritten(err)
		},
	}
	cmd.Flags().StringVar(&card, "card", card, "GPU to imitate")
	return cmd
}

func newSimCards() *cobra.Command {
	return &cobra.Command{
		Use: "cards", Short: "List the GPUs that can be imitated, and processors beside them",
		Example: "  warpline sim cards",
		Args:    from(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := newScreen(cmd)
			list := simrun.Cards()
			for _, c := range list {
				if err := s.emit(c); err != nil {
					return err
				}
			}
			cpus := append(simrun.CPUs(), thisCPU())
			for _, c := range cpus {
				if err := s.emit(c); err != nil {
					return err
				}
			}
			_, err := fmt.Fprint(s.text, s.hung(simrun.CardsText(list, s.tableWidth())+"\n"+simrun.CPUsText(cpus, s.tableWidth())))
			return s.unwritten(err)
		},
	}
}

// thisCPU is a row of what this machine has just shown.
func thisCPU() simrun.CPU {
	m := bench.Measure()
	return simrun.MeasuredCPU(m.Model, m.Threads, int(math.Round(m.Clock/1e6)), m.Float32, m.Memory)
}
