package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/warpline-ml/warpline/train"
)

func newEval() *cobra.Command {
	var c train.EvalConfig
	cmd := &cobra.Command{
		Use: "eval RUN|WEIGHTS", Short: "Score a model on a data set",
		Long: `Score a model on a whole data set. RUN is a run folder or a published model's with config.json; WEIGHTS is a
safetensors file, which in a run folder is scored as the run. Without --data it is what the run held out. Of a folder
that has a test set, that is scored. Of a run that was cut off, its newest checkpoint is scored. On null:CARD only memory is measured.`,
		Example: "  warpline eval runs/digits-1\n  warpline eval runs/digits-1 --data mnist/ --json",
		Args:    from(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.From = args[0]
			s := newScreen(cmd)
			c.Watch = s
			result, err := train.Evaluate(cmd.Context(), c)
			if err != nil {
				s.clear()
				return err
			}
			if err := s.emit(result); err != nil {
				return err
			}
			s.evaluated(result)
			return s.failure()
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	dataFlags(f, &c.Data, &c.Tokens)
	f.IntVar(&c.Skip, "skip", 0, "samples (tokens of a text) to leave out at the start of what is scored")
	headsFlag(f, &c.Heads)
	deviceFlags(f, &c.Device, &c.Threads, true)
	return cmd
}

func newSample() *cobra.Command {
	var c train.SampleConfig
	cmd := &cobra.Command{
		Use: "sample RUN", Short: "Let a language model write",
		Example: "  warpline sample runs/gpt-1 --prompt 'ROMEO:' --length 400",
		Args:    from(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.From = args[0]
			return runSample(cmd, c)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&c.Prompt, "prompt", "", "text to go on with")
	f.IntVar(&c.Length, "length", 300, "tokens to write")
	f.Float64Var(&c.Temperature, "temperature", 0.8, "0: always the likeliest token; 1: as the model has it")
	f.IntVar(&c.TopK, "top-k", 0, "choose among so many tokens; 0: all")
	f.Uint64Var(&c.Seed, "seed", 0, "of the choices")
	headsFlag(f, &c.Heads)
	deviceFlags(f, &c.Device, &c.Threads, false)
	return cmd
}

// headsFlag is that of the commands that read weights without a description.
func headsFlag(f *pflag.FlagSet, heads *int) {
	f.IntVar(heads, "heads", 0, "gpt: of attention, where a bare file of weights does not tell")
}

func runSample(cmd *cobra.Command, c train.SampleConfig) error {
	s := newScreen(cmd)
	c.Watch = &screen{text: cmd.ErrOrStderr(), notes: cmd.ErrOrStderr()}
	began := time.Now()
	var text strings.Builder
	n, err := train.Sample(cmd.Context(), c, func(piece string) error {
		if text.Len() == 0 {
			fmt.Fprint(s.text, c.Prompt)
		}
		text.WriteString(piece)
		_, err := fmt.Fprint(s.text, piece)
		return err
	})
	if n > 0 {
		fmt.Fprintln(s.text)
	}
	if failed := s.failure(); failed != nil {
		return failed
	}
	if err != nil && !errors.Is(err, train.ErrInterrupted) {
		return err
	}
	final := map[string]any{"final": true, "text": text.String(), "tokens": n, "seconds": time.Since(began).Seconds()}
	if failed := s.emit(final); failed != nil {
		return failed
	}
	return err
}
