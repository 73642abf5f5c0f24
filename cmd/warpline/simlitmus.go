package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/litmus"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/simrun"
	"github.com/warpline-ml/warpline/train"
)

const simLitmusLong = `Decide what PTX's memory model lets a small concurrent program do. Each FILE is one litmus test: initial values, one
column a thread with its place, and a condition on the final state behind exists, ~exists or forall. All executions that the
model's axioms allow are gone through; an execution that ends so is shown, or what forbids it.

The exit status is 0 if every test is as its condition says, 1 if one is not, 2 if one could not be checked.
docs/simulator.md has the format; examples/litmus has tests to start from.`

// litmusChoices are the flags of sim litmus.
type litmusChoices struct {
	weaken bool
	rounds int
}

func newSimLitmus() *cobra.Command {
	var c litmusChoices
	cmd := &cobra.Command{
		Use: "litmus FILE…", Short: "Say what the memory model allows a small concurrent program", Long: simLitmusLong,
		Example: "  warpline sim litmus examples/litmus/lock.litmus\n  warpline sim litmus --weaken examples/litmus/look-back.litmus\n  warpline sim litmus --json examples/litmus/*.litmus",
		Args:    from(1, -1),
		RunE:    func(cmd *cobra.Command, args []string) error { return runLitmus(cmd, args, c) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&c.weaken, "weaken", false, "check again with each fence, ordering, scope and barrier weakened, and say which of them matter")
	f.IntVar(&c.rounds, "rounds", 2, "of a loop that writes that are followed; loops that only wait are followed to their end")
	return cmd
}

// litmusTotal is the last line of --json.
type litmusTotal struct {
	Final   bool `json:"final"`
	Tests   int  `json:"tests"`
	Holding int  `json:"holding"`
}

func runLitmus(cmd *cobra.Command, files []string, c litmusChoices) error {
	if c.rounds < 1 || c.rounds > 60 {
		return advice.Failf("give a number from 1 to 60", "--rounds is %d", c.rounds)
	}
	tests, err := readLitmus(files)
	if err != nil {
		return err
	}
	s := newScreen(cmd)
	total := litmusTotal{Final: true, Tests: len(tests)}
	for i, t := range tests {
		r, err := checkLitmus(cmd, s, t, files[i], c)
		if err != nil {
			return err
		}
		if r.Holds {
			total.Holding++
		}
		if err := showLitmus(s, r, len(tests) == 1 || c.weaken); err != nil {
			return err
		}
	}
	if err := s.emit(total); err != nil {
		return err
	}
	if total.Tests > 1 {
		s.say("%d of %d tests are as they say", total.Holding, total.Tests)
	}
	if total.Holding < total.Tests {
		return errFindings
	}
	return nil
}

// readLitmus reads all tests before one is checked.
func readLitmus(files []string) ([]*litmus.Test, error) {
	var tests []*litmus.Test
	for _, name := range files {
		text, err := simrun.ReadFile(name, litmus.MaxBytes)
		if err != nil {
			return nil, err
		}
		t, err := litmus.Parse(name, text)
		if err != nil {
			return nil, advice.Explain(err, "docs/simulator.md has the format of litmus tests")
		}
		tests = append(tests, t)
	}
	return tests, nil
}

func checkLitmus(cmd *cobra.Command, s *screen, t *litmus.Test, file string, c litmusChoices) (*litmus.Result, error) {
	o := litmus.Options{Rounds: c.rounds, Progress: func(done, all int) {
		if done > 0 {
			s.passing(render.Progress{Label: t.Name, Done: int64(done), Total: int64(all)})
		}
	}}
	r, err := litmus.Check(cmd.Context(), t, o)
	if err == nil {
		r.File = file
		if c.weaken {
			r.Mutants, err = litmus.Mutants(cmd.Context(), t, o)
		}
	}
	if !s.shown.IsZero() {
		s.clear()
	}
	var e *litmus.Error
	switch {
	case cmd.Context().Err() != nil:
		return nil, train.ErrInterrupted
	case errors.As(err, &e):
		e.File = file
		return nil, advice.Explain(e, "make the test smaller: all its executions are gone through")
	}
	return r, err
}

// showLitmus writes one result: whole if it is the only one or not as it says, else in a line.
func showLitmus(s *screen, r *litmus.Result, whole bool) error {
	if err := s.emit(r); err != nil {
		return err
	}
	text := r.Line() + "\n"
	if whole || !r.Holds {
		text = r.Text()
	}
	_, err := fmt.Fprint(s.text, s.hung(text))
	return s.unwritten(err)
}
