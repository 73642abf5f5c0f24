package train

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/render"
)

// Lines is a Watcher that writes a line for each score, and without any for every hundredth step.
func Lines(w io.Writer) Watcher { return &lines{w: w} }

type lines struct {
	w     io.Writer
	start Start
	step  Step
}

func (l *lines) Scoring(_, _ int) {}
func (l *lines) Note(text string) { fmt.Fprintln(l.w, text) }

func (l *lines) Start(s Start) {
	l.start = s
	from := ""
	if s.Done > 0 {
		from = fmt.Sprintf(" from step %d", s.Done)
	}
	fmt.Fprintf(l.w, "%s: %s parameters, %d steps of %d%s, on %s\n", s.Model, render.Count(int64(s.Parameters)), s.Steps, s.Batch, from, s.Device)
}

func (l *lines) Step(s Step) {
	l.step = s
	if l.start.Test == 0 && (s.Step%100 == 0 || s.Step == l.start.Steps) {
		fmt.Fprintf(l.w, "step %d: loss %.4g\n", s.Step, s.Loss)
	}
}

func (l *lines) Score(s Score) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Metrics)) {
		fmt.Fprintf(&b, ", %s %.4g", name, s.Metrics[name])
	}
	fmt.Fprintf(l.w, "step %d: loss %.4g, held out %.4g%s\n", s.Step, l.step.Loss, s.ValLoss, b.String())
}
