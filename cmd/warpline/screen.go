package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/train"
)

// How often progress is shown.
const (
	redrawEvery = 100 * time.Millisecond // on a terminal
	plainEvery  = 5 * time.Second        // elsewhere
)

// screen shows a run to people, and to machines if they asked. It is the run's train.Watcher.
type screen struct {
	json     *json.Encoder // nil: nobody asked
	text     io.Writer
	terminal bool // text is one
	color    bool
	width    int

	start  train.Start
	shown  time.Time
	pace   float64 // milliseconds of a step, smoothed
	loss   float64 // smoothed
	failed error   // of writing JSON
}

func newScreen(cmd *cobra.Command) *screen {
	s := &screen{text: cmd.OutOrStdout(), width: 80}
	if on, err := cmd.Flags().GetBool("json"); err == nil && on {
		s.json, s.text = json.NewEncoder(cmd.OutOrStdout()), cmd.ErrOrStderr()
	}
	if f, ok := s.text.(*os.File); ok {
		if columns, ok := terminalWidth(f); ok {
			s.terminal, s.width = os.Getenv("TERM") != "dumb", max(columns, 40)
		}
	}
	s.color = s.terminal && os.Getenv("NO_COLOR") == ""
	return s
}

// emit writes a JSON line, if they are wanted.
func (s *screen) emit(v any) error {
	if s.json == nil {
		return nil
	}
	if s.failed == nil {
		s.failed = s.json.Encode(v)
	}
	return s.failed
}

// clear wipes the live line.
func (s *screen) clear() {
	if s.terminal {
		fmt.Fprint(s.text, "\r\x1b[K")
	}
}

// Start implements train.Watcher.
func (s *screen) Start(start train.Start) {
	s.start = start
	fmt.Fprintf(s.text, "%s: %s, %s parameters, on %s\n", start.Task, start.Model, render.Count(int64(start.Parameters)), start.Device)
	held := ", nothing held out"
	if start.Test > 0 {
		held = fmt.Sprintf(", %d held out", start.Test)
	}
	from := ""
	if start.Done > 0 {
		from = fmt.Sprintf(" from step %d", start.Done)
	}
	fmt.Fprintf(s.text, "%d samples%s; %d steps of %d%s\n", start.Train, held, start.Steps, start.Batch, from)
}

// Step implements train.Watcher.
func (s *screen) Step(step train.Step) {
	s.emit(step)
	// The first steps pay for what later ones find ready.
	if n := step.Step - s.start.Done; n <= 3 {
		s.pace, s.loss = step.MS, step.Loss
	} else {
		s.pace += (step.MS - s.pace) / float64(min(n, 30))
		s.loss += (step.Loss - s.loss) / float64(min(n, 20))
	}
	last := step.Step == s.start.Steps
	now := time.Now()
	switch {
	case s.terminal && (last || now.Sub(s.shown) >= redrawEvery):
		fmt.Fprintf(s.text, "\r\x1b[K%s", s.progress(step).Line(s.width-1))
		if last {
			s.clear()
		}
	case !s.terminal && (last || now.Sub(s.shown) >= plainEvery):
		fmt.Fprintf(s.text, "step %d of %d  %s\n", step.Step, s.start.Steps, strings.Join(s.progress(step).Fields, "  "))
	default:
		return
	}
	s.shown = now
}

func (s *screen) progress(step train.Step) render.Progress {
	left := time.Duration(float64(s.start.Steps-step.Step) * s.pace * float64(time.Millisecond))
	fields := []string{fmt.Sprintf("loss %.4f", s.loss)}
	if s.pace > 0 {
		fields = append(fields, fmt.Sprintf("%s samples/s", render.Count(int64(1e3*float64(s.start.Batch)/s.pace))))
	}
	fields = append(fields, "ETA "+render.Duration(left), render.Bytes(step.Used))
	return render.Progress{Label: fmt.Sprintf("step %d", step.Step), Done: int64(step.Step), Total: int64(s.start.Steps), Fields: fields}
}

// Score implements train.Watcher.
func (s *screen) Score(score train.Score) {
	if score.Step == s.start.Steps {
		return // the result has it
	}
	s.emit(score)
	s.clear()
	fmt.Fprintf(s.text, "step %d: held out: %s\n", score.Step, figures(score.Accuracy, &score.ValLoss))
}

// Note implements train.Watcher.
func (s *screen) Note(text string) {
	s.clear()
	fmt.Fprintf(s.text, "note: %s\n", text)
}

// figures are accuracy and loss, as far as there are any.
func figures(accuracy, loss *float64) string {
	var parts []string
	if accuracy != nil {
		parts = append(parts, "accuracy "+render.Percent(*accuracy))
	}
	if loss != nil {
		parts = append(parts, fmt.Sprintf("loss %.4f", *loss))
	}
	return strings.Join(parts, ", ")
}

// trained shows how a run ended.
func (s *screen) trained(r *train.Result, interrupted bool) {
	w := s.text
	s.clear()
	if interrupted {
		fmt.Fprintf(w, "interrupted after step %d; go on with: warpline train --resume --out %s\n", r.Steps, r.Out)
		return
	}
	products := ""
	if r.Products > 0 {
		products = fmt.Sprintf(" and %s multiply-adds a picture", render.Count(int64(r.Products)))
	}
	fmt.Fprintf(w, "\n%s with %s parameters%s: %d steps in %s\n", r.Model, render.Count(int64(r.Parameters)), products, r.Steps, render.Duration(seconds(r.Seconds)))
	if r.Computed {
		fmt.Fprintf(w, "  training   loss %.4f at the last step\n", r.Loss)
	} else {
		fmt.Fprintf(w, "  nothing was computed: %s has no arithmetic, and no model is saved\n", s.start.Device)
	}
	if held := figures(r.Accuracy, r.ValLoss); held != "" {
		fmt.Fprintf(w, "  held out   %s\n", held)
	}
	fmt.Fprintln(w)
	s.memory(&r.Memory)
	if r.Computed && len(r.Log) > 1 {
		fmt.Fprintf(w, "\n%s", r.Curve().Terminal(min(s.width, 100), 14, s.color))
	}
	s.gallery(r.Pictures)
	if r.Text != "" {
		fmt.Fprintf(w, "\nIt writes:\n%s\n", r.Text)
	}
	if r.Computed && r.Out != "" {
		fmt.Fprintf(w, "\n%s has the model, the log and loss.svg. Score it again: warpline eval %s\n", r.Out, r.Out)
	}
}

// memory draws what a run needed, by kind.
func (s *screen) memory(m *train.Memory) {
	var bars []render.Bar
	for _, k := range []struct {
		name  string
		bytes int64
	}{
		{"weights", m.Weights}, {"buffers", m.Buffers}, {"gradients", m.Gradients}, {"optimizer", m.Optimizer}, {"average", m.Average},
		{"activations", m.Activations}, {"peak in all", m.Peak},
	} {
		if k.bytes > 0 {
			bars = append(bars, render.Bar{Label: "  " + k.name, Value: float64(k.bytes), Text: render.Bytes(k.bytes)})
		}
	}
	fmt.Fprintf(s.text, "memory\n%s", render.Bars(bars, min(s.width, 72)))
}

// evaluated shows a score.
func (s *screen) evaluated(r *train.Result) {
	loss := r.Loss
	fmt.Fprintf(s.text, "%s, %s parameters\n%d samples in %s: %s\n", r.Model, render.Count(int64(r.Parameters)), r.Samples,
		render.Duration(seconds(r.Seconds)), figures(r.Accuracy, &loss))
	s.gallery(r.Pictures)
}

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }

// gallery draws predictions, without the border that all pictures leave empty.
func (s *screen) gallery(pictures []train.Picture) {
	if len(pictures) == 0 {
		return
	}
	var list []render.Image
	for _, p := range trimmed(shrunk(pictures)) {
		caption := fmt.Sprintf("%d", p.Foretold)
		if p.Foretold != p.Label {
			caption = fmt.Sprintf("✗ %d, is %d", p.Foretold, p.Label)
		}
		list = append(list, render.Image{Width: p.Width, Height: p.Height, Pixels: p.Pixels, Caption: caption})
	}
	fmt.Fprintf(s.text, "\n%s", render.Gallery(list, min(s.width, 100), s.color))
}
