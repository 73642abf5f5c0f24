package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/exercise"
	"github.com/warpline-ml/warpline/internal/lesson"
	"github.com/warpline-ml/warpline/internal/render"
)

// withExercise calls f with the exercise that a command names.
func withExercise(f func(s *screen, e *exercise.Exercise, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		e, err := exercise.Find(args[0])
		if err != nil {
			return err
		}
		return f(newScreen(cmd), e, args[1:])
	}
}

func newLearnList(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the exercises", Args: from(0, 0), Example: "  warpline learn list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withProgress(cmd, *dir, listExercises)
		},
	}
}

func listExercises(s *screen, p *lesson.Progress) error {
	t := render.Table{Header: []string{"exercise", "minutes", "title", ""}, Right: []bool{false, true, false, false}, Spare: []int{1, 2}}
	for _, e := range exercise.All() {
		when, passed := p.Exercises[e.Name]
		if err := s.emit(map[string]any{"name": e.Name, "title": e.Title, "minutes": e.Minutes, "puzzle": e.Puzzle, "passed": passed}); err != nil {
			return err
		}
		row := []string{e.Name, strconv.Itoa(e.Minutes), e.Title, ""}
		if passed {
			row[3] = "passed " + when.Format(time.DateOnly)
		}
		t.Rows = append(t.Rows, row)
	}
	s.say("%s", strings.TrimSuffix(t.String(s.tableWidth()), "\n"))
	s.say("\nwarpline learn start NAME makes a folder to work in; kernels need no Go.")
	return s.failure()
}

func newLearnStart() *cobra.Command {
	var source string
	cmd := &cobra.Command{
		Use: "start NAME [DIR]", Short: "Make a folder for an exercise", Args: from(1, 2),
		Long: "Make a folder for an exercise: what it begins with, its tests, and what there is to do in README.md. DIR is NAME if none is given, and must not be there.\n\n" +
			"An exercise in Go needs Warpline's sources: those of --source, or a copy that a release has in it and writes to the user's cache, so that the go command fetches nothing of them. A program that is no release takes the checkout that it is run in.",
		Example: "  warpline learn start kernel-map\n  warpline learn start device-agnostic work --source ~/src/warpline",
		RunE: withExercise(func(s *screen, e *exercise.Exercise, rest []string) error {
			dir := e.Name
			if len(rest) > 0 {
				dir = rest[0]
			}
			if source == "" && !e.Puzzle {
				var err error
				if source, err = exercise.Source(version()); err != nil {
					return err
				}
			}
			if err := e.Start(dir, source, version()); err != nil {
				return err
			}
			if err := s.emit(map[string]string{"name": e.Name, "dir": dir}); err != nil {
				return err
			}
			s.say("%s\n\n%s\n", e.Title, e.About)
			change := filepath.Join(dir, "exercise.go")
			if e.Puzzle {
				change = filepath.Join(dir, "kernel.ptx") + ", or kernel.cu beside it, of which README.md says how it is compiled"
			}
			s.say("change   %s\njudge    warpline learn check %s\nhelp     warpline learn hint %s", change, dir, e.Name)
			if source != "" && !e.Puzzle {
				s.say("sources  %s", source)
			}
			return s.failure()
		}),
	}
	cmd.Flags().StringVar(&source, "source", "", "folder with Warpline's sources, for exercises in Go")
	return cmd
}

func newLearnHint() *cobra.Command {
	return &cobra.Command{
		Use: "hint NAME [N]", Short: "Help with an exercise, a step at a time", Args: from(1, 2), Example: "  warpline learn hint kernel-dot\n  warpline learn hint kernel-dot 2",
		RunE: withExercise(func(s *screen, e *exercise.Exercise, rest []string) error {
			n := 1
			if len(rest) > 0 {
				var err error
				if n, err = strconv.Atoi(rest[0]); err != nil {
					return advice.Failf("give a number from 1 on", "%q is no number of a hint", rest[0])
				}
			}
			hint, err := e.Hint(n)
			if err != nil {
				return err
			}
			if err := s.emit(map[string]any{"name": e.Name, "hint": hint, "number": n, "of": len(e.Hints)}); err != nil {
				return err
			}
			s.say("%d of %d: %s", n, len(e.Hints), hint)
			return s.failure()
		}),
	}
}

func newLearnSolution() *cobra.Command {
	return &cobra.Command{
		Use: "solution NAME", Short: "Show a solution of an exercise", Args: from(1, 1), Example: "  warpline learn solution device-agnostic",
		RunE: withExercise(func(s *screen, e *exercise.Exercise, _ []string) error {
			files, err := e.Solution()
			if err != nil {
				return err
			}
			if err := s.emit(map[string]any{"name": e.Name, "files": files}); err != nil {
				return err
			}
			for _, f := range files {
				if f.Name != "puzzle.h" {
					_, err = s.text.Write([]byte("// " + f.Name + "\n" + f.Text + "\n"))
				}
			}
			return s.unwritten(err)
		}),
	}
}

func newLearnCheck(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "check DIR", Short: "Judge a folder of an exercise", Args: from(1, 1), Example: "  warpline learn check device-agnostic\n  warpline learn check . --json",
		Long: "Judge a folder of an exercise: one in Go by its tests, which need the go command, a kernel by running it on a simulated GPU under all checks.\n\nThe exit status is 0 if it passes, 1 if not.",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := exercise.Check(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return withProgress(cmd, *dir, func(s *screen, p *lesson.Progress) error { return tellChecked(s, p, r) })
		},
	}
}

// tellChecked tells how a folder fares, and notes that it passes.
func tellChecked(s *screen, p *lesson.Progress, r *exercise.Report) error {
	if r.Pass {
		if err := p.DidExercise(r.Name, time.Now()); err != nil {
			return err
		}
	}
	if err := s.emit(r); err != nil {
		return err
	}
	for _, t := range r.Tests {
		word := "pass"
		if !t.Pass {
			word = "FAIL"
		}
		s.say("%s  %s", word, t.Name)
		if t.Output != "" {
			s.say("      %s", strings.ReplaceAll(strings.TrimRight(t.Output, "\n"), "\n", "\n      "))
		}
	}
	if r.Pass {
		s.say("%s passes", r.Name)
		return s.failure()
	}
	s.say("hint: %s", r.Hint)
	if err := s.failure(); err != nil {
		return err
	}
	return errFindings
}
