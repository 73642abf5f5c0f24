package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/explore"
)

// told is a result that people read too.
type told interface{ Text(width int) string }

// explorer is a command whose answer follows from its flags.
func explorer[T told](name, short, example string, compute func() (T, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Example: "  warpline lab " + name + "\n  warpline lab " + name + " " + example, Args: from(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			x, err := compute()
			if err != nil {
				return err
			}
			s := newScreen(cmd)
			if err := s.emit(x); err != nil {
				return err
			}
			_, err = fmt.Fprint(s.text, s.hung(x.Text(s.tableWidth())))
			return s.unwritten(err)
		},
	}
	cmd.Flags().SortFlags = false
	return cmd
}

func newArchitecture() *cobra.Command {
	var m explore.Machine
	cmd := explorer("architecture", "Cores, warps and memory of a card, and an operation on them", "--card a100-80 --shape 1024x512 --step 75",
		func() (*explore.Architecture, error) { return explore.NewArchitecture(m) })
	f := cmd.Flags()
	f.StringVar(&m.Card, "card", cards.Default, "whose clock, memory and, unless others are given, cores")
	f.IntVar(&m.SMs, "sms", 0, "multiprocessors (default the card's)")
	f.IntVar(&m.CoresPerSM, "cores-per-sm", 0, "cores of each (default the card's)")
	f.StringVar(&m.Shape, "shape", "1000", "of an elementwise operation")
	f.IntVar(&m.Block, "block", 256, "threads of a block")
	f.Int64Var(&m.Step, "step", 0, "which of the steps to look at, from 0")
	return cmd
}

func newRace() *cobra.Command {
	r := explore.Runners{}
	bytes := size(4096)
	cmd := explorer("race", "Cores of a CPU against cores of a GPU, with launches and copies", "--cpu-cores 16 --gpu-cores 6912 --tasks 100000 --parallel 100%",
		func() (*explore.Race, error) { r.Bytes = int64(bytes); return explore.NewRace(r) })
	f := cmd.Flags()
	r.Parallel = 0.95
	f.StringVar(&r.CPU, "cpu", "ryzen-7950x", "whose cores race; warpline sim cards lists processors")
	f.StringVar(&r.Card, "card", cards.Default, "against whose")
	f.IntVar(&r.CPUCores, "cpu-cores", 8, "of the CPU")
	f.IntVar(&r.GPUCores, "gpu-cores", 256, "of the GPU")
	f.IntVar(&r.Tasks, "tasks", 128, "to do")
	f.Var((*percent)(&r.Parallel), "parallel", "share of them that need not wait for each other")
	f.Float64Var(&r.Work, "work", 1e6, "operations of float32 of a task")
	f.Var(&bytes, "bytes", "of a task, copied to the GPU and back")
	f.BoolVar(&r.Vectors, "vectors", false, "cores of the CPU use their vectors")
	return cmd
}

func newTransfer() *cobra.Command {
	var m explore.Move
	way := "to-device"
	cmd := explorer("transfer", "Copies between host and device: bytes, time, and what two devices say", "--move batch,weight,bias --card rtx-4090 --pinned",
		func() (*explore.Transfer, error) { m.ToHost = way == "to-host"; return explore.NewTransfer(m) })
	f := cmd.Flags()
	f.StringVar(&m.Card, "card", cards.Default, "whose link and memory")
	f.StringArrayVar(&m.Tensors, "tensor", []string{"batch=32x3x224x224", "weight=512x512", "bias=512"}, "NAME=SHAPE, of float32; may be repeated")
	f.StringSliceVar(&m.OnDevice, "on-device", nil, "tensors that are there before (default none)")
	f.StringSliceVar(&m.Move, "move", nil, "tensors to copy (default none)")
	ways := []string{"to-device", "to-host"}
	f.Var(one(&way, among[string](ways), ways), "direction", "of the copies")
	f.BoolVar(&m.Pinned, "pinned", false, "the host's memory stays where it is, and the card reads it itself")
	f.BoolVar(&m.NonBlocking, "nonblocking", false, "the host goes on meanwhile, if the memory is pinned")
	return cmd
}

func newTimeline() *cobra.Command {
	var r explore.Run
	cmd := explorer("timeline", "A host that launches and a device that works, and what timers see", "--steps 10 --every 5",
		func() (*explore.Timeline, error) { return explore.NewTimeline(r) })
	f := cmd.Flags()
	f.Float64Var(&r.Launch, "launch", 2, "milliseconds of the host for a step")
	f.Float64Var(&r.Device, "device", 40, "milliseconds of the device for a step")
	f.IntVar(&r.Steps, "steps", 1, "of the run")
	f.IntVar(&r.Every, "every", 0, "a result is read, or printed, each so many steps; 0: never")
	return cmd
}
