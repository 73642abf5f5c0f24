package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/examples/lessons"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/lesson"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/train"
)

const learnLong = `Lessons on computing with GPUs, to be read here or in warpline lab, with programs that run on any machine: on its CPU, on its
card, or on a simulated one. Without a word it lists them, and what was read and passed.

The exit status of quiz is 0 when the check is complete, 1 when it is not.`

// newLearn has the lessons.
func newLearn() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "learn", Short: "Lessons, checks and exercises on computing with GPUs", Long: learnLong,
		Example: "  warpline learn\n  warpline learn read architecture\n  warpline learn listing L08\n  warpline learn run L08 --device sim:0 --set steps=20\n  warpline learn quiz a",
		Args:    noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withProgress(cmd, dir, func(s *screen, p *lesson.Progress) error { return listLessons(s, p) })
		},
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", "", "folder of the progress, as warpline lab has it (default warpline in the configuration of this system)")
	cmd.AddCommand(newLearnRead(&dir), newLearnListing(), newLearnRun(), newLearnQuiz(&dir))
	cmd.AddCommand(newLearnList(&dir), newLearnStart(), newLearnHint(), newLearnSolution(), newLearnCheck(&dir))
	return cmd
}

// withProgress calls f with the progress of a folder.
func withProgress(cmd *cobra.Command, dir string, f func(s *screen, p *lesson.Progress) error) error {
	dir, err := labDir(dir)
	if err != nil {
		return err
	}
	p, err := lesson.LoadProgress(dir)
	if err != nil {
		return err
	}
	return f(newScreen(cmd), p)
}

func listLessons(s *screen, p *lesson.Progress) error {
	t := render.Table{Header: []string{"lesson", "minutes", "title", ""}, Right: []bool{false, true, false, false}, Spare: []int{1, 2}}
	for _, l := range lesson.All() {
		when, read := p.Read[l.ID]
		if err := s.emit(map[string]any{"lesson": l.ID, "title": l.Title, "minutes": l.Minutes, "objectives": l.Objectives, "read": read}); err != nil {
			return err
		}
		row := []string{l.ID, strconv.Itoa(l.Minutes), l.Title, ""}
		if read {
			row[3] = "read " + when.Format(time.DateOnly)
		}
		t.Rows = append(t.Rows, row)
	}
	fmt.Fprint(s.text, t.String(s.tableWidth()))
	s.say("")
	for _, q := range lesson.Quizzes() {
		score, tried := p.Scores[q.ID]
		told := map[string]any{"quiz": q.ID, "title": q.Title, "questions": len(q.Questions)}
		best := ""
		if tried {
			told["score"], best = score, fmt.Sprintf(", best score %.0f %%", math.Round(100*score))
		}
		if err := s.emit(told); err != nil {
			return err
		}
		s.say("quiz %s  %s, %d questions%s", q.ID, q.Title, len(q.Questions), best)
	}
	s.say("\nwarpline learn read LESSON, listing L08, run L08, quiz a; list has the exercises. warpline lab has all of it in a browser.")
	return s.failure()
}

func newLearnRead(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "read LESSON", Short: "Read a lesson, which counts as read", Args: from(1, 1), ValidArgs: lesson.IDs,
		Example: "  warpline learn read memory",
		RunE: func(cmd *cobra.Command, args []string) error {
			l, ok := lesson.Find(strings.ToLower(args[0]))
			if !ok {
				return advice.Failf(advice.Meant(args[0], lesson.IDs)+"they are "+strings.Join(lesson.IDs, ", "), "no lesson is called %q", args[0])
			}
			return withProgress(cmd, *dir, func(s *screen, p *lesson.Progress) error {
				if err := s.emit(l); err != nil {
					return err
				}
				if err := l.WriteText(s.text, min(s.tableWidth(), 100)); err != nil {
					return s.unwritten(err)
				}
				return p.DidRead(l.ID, time.Now())
			})
		},
	}
}

func newLearnListing() *cobra.Command {
	return &cobra.Command{
		Use: "listing ID", Short: "Show a program of the lessons with an explanation for each line, and its PyTorch form", Args: from(1, 1),
		Example: "  warpline learn listing L08\n  warpline learn listing L30Wrong",
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := lesson.Show(lesson.ListingID(args[0]))
			if err != nil {
				return advice.Explain(err, "warpline learn read LESSON names those of a lesson")
			}
			s := newScreen(cmd)
			if err := s.emit(l); err != nil {
				return err
			}
			return s.unwritten(l.WriteText(s.text, min(s.tableWidth(), 110)))
		},
	}
}

func newLearnRun() *cobra.Command {
	var setting lesson.Setting
	var set []string
	cmd := &cobra.Command{
		Use: "run ID", Short: "Run a program of the lessons, with numbers of your own", Args: from(1, 1),
		Example: "  warpline learn run L08 --device sim:0 --set steps=20\n  warpline learn run L30 --wrong",
		RunE: func(cmd *cobra.Command, args []string) error {
			l, ok := lessons.Find(lesson.ListingID(args[0]))
			if !ok {
				return advice.Failf(fmt.Sprintf("they are L01 to L%02d", len(lessons.Listings)), "no listing is called %q", args[0])
			}
			var err error
			if setting.Numbers, err = numbers(set); err != nil {
				return err
			}
			return runListing(cmd, l, setting)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&setting.Device, "device", "cpu", "where: cpu, cuda:N, sim:CARD, or best")
	cmd.Flags().StringArrayVar(&set, "set", nil, "a number of the program, as NAME=VALUE; learn listing names them")
	cmd.Flags().BoolVar(&setting.Wrong, "wrong", false, "the program with the mistake")
	return cmd
}

// numbers reads NAME=VALUE.
func numbers(set []string) (lessons.Numbers, error) {
	n := lessons.Numbers{}
	for _, text := range set {
		name, value, _ := strings.Cut(text, "=")
		v, err := strconv.Atoi(value)
		if err != nil {
			return nil, advice.Failf("write NAME=VALUE with a whole number, as in --set steps=20", "--set %s", text)
		}
		n[name] = v
	}
	return n, nil
}

// runListing runs a program of the lessons. Programs know nothing of interrupts: one that is left behind ends with the process.
func runListing(cmd *cobra.Command, l *lessons.Listing, setting lesson.Setting) error {
	s := newScreen(cmd)
	var out strings.Builder
	ended := make(chan error, 1)
	go func() {
		err := error(exitStatus(exitFailed)) // of a panic, which is told already
		guarded(cmd.ErrOrStderr(), func() int { err = lesson.Run(l, setting, io.MultiWriter(s.text, &out)); return exitDone })
		ended <- err
	}()
	select {
	case <-cmd.Context().Done():
		return train.ErrInterrupted
	case err := <-ended:
		if err == nil {
			err = s.emit(map[string]any{"listing": l.ID, "device": setting.Device, "wrong": setting.Wrong, "output": out.String()})
		}
		return cmp.Or(err, s.failure())
	}
}

func newLearnQuiz(dir *string) *cobra.Command {
	var answers []int
	cmd := &cobra.Command{
		Use: "quiz a|b", Short: "Take a final check", Args: from(1, 1), ValidArgs: []string{"a", "b"},
		Example: "  warpline learn quiz a\n  warpline learn quiz b --answers 2,2,3,3,3,1,3,2,3,2",
		RunE: func(cmd *cobra.Command, args []string) error {
			q, ok := lesson.FindQuiz(strings.ToLower(args[0]))
			if !ok {
				return advice.Failf("they are a and b", "no check is called %q", args[0])
			}
			return withProgress(cmd, *dir, func(s *screen, p *lesson.Progress) error {
				given, err := answersTo(cmd, s, q, answers)
				if err != nil {
					return err
				}
				return judge(s, q, given, p)
			})
		},
	}
	cmd.Flags().IntSliceVar(&answers, "answers", nil, "the numbers of the choices, from 1, in place of being asked")
	return cmd
}

// answersTo are those given by flag, or asked for one question at a time.
func answersTo(cmd *cobra.Command, s *screen, q *lesson.Quiz, given []int) (list []int, err error) {
	if len(given) > 0 {
		for _, g := range given {
			list = append(list, g-1)
		}
		return list, nil
	}
	read, written := linesOf(cmd.InOrStdin()), "" // as --answers has them
	for i, question := range q.Questions {
		s.say("\n%d of %d  %s", i+1, len(q.Questions), question.Text)
		for k, c := range question.Choices {
			s.say("  %d  %s", k+1, c)
		}
		g, err := askFor(cmd.Context(), s, read, len(question.Choices))
		if errors.Is(err, io.EOF) {
			return nil, advice.Failf(fmt.Sprintf("give all %d at once: --answers %s…", len(q.Questions), written), "the answers ended at question %d of %d, and nothing is scored", i+1, len(q.Questions))
		}
		if err != nil {
			return nil, err
		}
		list, written = append(list, g-1), written+strconv.Itoa(g)+","
	}
	return list, nil
}

// linesOf reads lines beside whoever waits for them, so that an interrupt needs no line to be seen. It ends with what is read.
func linesOf(r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(r); in.Scan(); {
			lines <- strings.TrimSpace(in.Text())
		}
	}()
	return lines
}

// askFor asks for a number from 1 to n until it is one. The errors are io.EOF and train.ErrInterrupted.
func askFor(ctx context.Context, s *screen, lines <-chan string, n int) (int, error) {
	for {
		fmt.Fprintf(s.text, "answer 1 to %d: ", n)
		select {
		case <-ctx.Done():
			return 0, train.ErrInterrupted
		case line, ok := <-lines:
			if !ok {
				return 0, io.EOF
			}
			if g, err := strconv.Atoi(line); err == nil && g >= 1 && g <= n {
				return g, nil
			}
			s.say("%q is none of the choices: write one number from 1 to %d, or press Ctrl-C to leave", line, n)
		}
	}
}

// judge tells what answers are worth, and notes the score.
func judge(s *screen, q *lesson.Quiz, given []int, p *lesson.Progress) error {
	r, err := q.Judge(given)
	if err != nil {
		return advice.Explain(err, "a score is of all questions: give one number for each")
	}
	if err := p.DidQuiz(q.ID, r.Score); err != nil {
		return err
	}
	if err := s.emit(map[string]any{"quiz": q.ID, "result": r}); err != nil {
		return err
	}
	for i, a := range r.Answers {
		if !a.Right {
			at, _, _ := strings.Cut(a.Passage, "#")
			s.say("\n%d not right: %s", i+1, q.Questions[i].Text)
			s.say("   %s  (warpline learn read %s)", a.Why, at)
		}
	}
	s.say("\n%d of %d, %.0f %%", r.Right, r.Of, math.Round(100*r.Score))
	if r.Complete {
		s.say("complete")
		return s.failure()
	}
	s.say("not complete: more than %.0f %% are needed", 100*lesson.Enough)
	if err := s.failure(); err != nil {
		return err
	}
	return errFindings
}
