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
		Use: "sample RUN", Short: "Let a model write a text or draw pictures",
		Long: `Let a model of texts go on with a prompt, or let vae draw pictures into a PNG: side by side in a square, shown in part here, too.
The same --seed gives the same text and the same pictures.`,
		Example: "  warpline sample runs/gpt-1 --prompt 'ROMEO:' --length 400\n  warpline sample runs/vae-1 --count 100 --out digits.png",
		Args:    from(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.From, c.Given = args[0], map[string]bool{}
			cmd.Flags().Visit(func(f *pflag.Flag) { c.Given[f.Name] = true })
			return runSample(cmd, c)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&c.Prompt, "prompt", "", "models of texts: text to go on with")
	f.IntVar(&c.Length, "length", 300, "models of texts: tokens to write")
	f.Float64Var(&c.Temperature, "temperature", 0.8, "models of texts: 0: always the likeliest token; 1: as the model has it")
	f.IntVar(&c.TopK, "top-k", 0, "models of texts: choose among so many tokens; 0: all")
	f.IntVar(&c.Count, "count", 64, "vae: pictures to draw")
	f.StringVar(&c.Out, "out", "", "vae: a PNG that there is not yet (default sample.png in the run folder, which it replaces)")
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
	out, err := train.Sample(cmd.Context(), c, func(piece string) error {
		if text.Len() == 0 {
			fmt.Fprint(s.text, c.Prompt)
		}
		text.WriteString(piece)
		_, err := fmt.Fprint(s.text, piece)
		return err
	})
	if out != nil && out.Tokens > 0 {
		fmt.Fprintln(s.text)
	}
	if failed := s.failure(); failed != nil {
		return failed
	}
	if err != nil && !errors.Is(err, train.ErrInterrupted) {
		return err
	}
	if failed := s.sampled(out, text.String(), time.Since(began)); failed != nil {
		return failed
	}
	return err
}

// mostShown is how many pictures of a sample the screen has.
const mostShown = 12

// sampled tells what a model has come to.
func (s *screen) sampled(out *train.Sampled, text string, took time.Duration) error {
	final := map[string]any{"final": true, "seconds": took.Seconds()}
	if out.Out == "" {
		final["text"], final["tokens"] = text, out.Tokens
		return s.emit(final)
	}
	final["pictures"], final["out"] = len(out.Pictures), out.Out
	s.gallery(out.Pictures[:min(len(out.Pictures), mostShown)])
	s.say("%s has %s", out.Out, plural(len(out.Pictures), "picture"))
	if err := s.emit(final); err != nil {
		return err
	}
	return s.failure()
}
