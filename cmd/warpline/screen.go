package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/tensor"
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
	out      *output       // what text or json goes to; nil for notes alone
	text     io.Writer
	notes    io.Writer // the standard error
	terminal bool      // text is one
	color    bool
	width    int
	live     int        // columns of the live line, where they are not width
	columns  func() int // of the terminal now; may be nil

	start   train.Start
	scoring evaluation
	shown   time.Time
	piece   int64   // the one that the live line is in
	pace    float64 // milliseconds of a step, smoothed
	loss    float64 // smoothed
	took    float64 // milliseconds of all steps
}

// evaluation is one that is under way: how far it was at its first call, and is.
type evaluation struct {
	began       time.Time
	first, done int
}

func newScreen(cmd *cobra.Command) *screen {
	people := cmd.OutOrStdout()
	s := &screen{out: &output{w: people}, notes: cmd.ErrOrStderr(), width: 80}
	s.text = s.out
	if on, err := cmd.Flags().GetBool("json"); err == nil && on {
		people = cmd.ErrOrStderr()
		s.json, s.text = json.NewEncoder(s.out), people
	}
	if f, ok := people.(*os.File); ok {
		if columns, ok := terminalWidth(f); ok {
			s.terminal = os.Getenv("TERM") != "dumb"
			s.fit(columns)
			s.columns = func() int { n, _ := terminalWidth(f); return n }
		}
	}
	s.color = s.terminal && os.Getenv("NO_COLOR") == ""
	return s
}

// fit takes the width of a terminal, 0 from one that does not tell. Tables and pictures need some, the live line none.
func (s *screen) fit(columns int) {
	if columns > 0 {
		s.width, s.live = max(columns, 40), columns
	}
}

// liveWidth is for a line that is drawn again: one that the terminal breaks could not be wiped. The terminal may have got
// another width meanwhile.
func (s *screen) liveWidth() int {
	if s.columns != nil {
		s.fit(s.columns())
	}
	return cmp.Or(s.live, s.width) - 1
}

// emit writes a JSON line, if they are wanted. Its error stays: failure tells it too, to whom the one of emit was of no use.
func (s *screen) emit(v any) error {
	if s.json == nil {
		return nil
	}
	if s.out.err == nil {
		if err := s.json.Encode(v); err != nil {
			s.out.fail(err) // nobody writes, or v is no JSON
		}
	}
	return s.failure()
}

// failure is why the standard output could not be written, or nil.
func (s *screen) failure() error { return s.out.failure(elsewhere) }

// elsewhere is what to do about a standard output that cannot be written.
const elsewhere = "let it go elsewhere"

// unwritten is an error of writing the standard output, or nil.
func (s *screen) unwritten(err error) error {
	if err == nil {
		return nil
	}
	return (&output{err: err}).failure(elsewhere)
}

// say writes a paragraph, on a terminal broken at words.
func (s *screen) say(format string, args ...any) {
	fmt.Fprintln(s.text, s.wrapped(fmt.Sprintf(format, args...)))
}

func (s *screen) wrapped(text string) string {
	if s.terminal {
		return render.Wrap(text, s.width-1, 2)
	}
	return text
}

// widestTable is room enough for any table.
const widestTable = 100

// tableWidth is the terminal's width, or room enough.
func (s *screen) tableWidth() int {
	if s.terminal {
		return s.width
	}
	return widestTable
}

// hung is a text for the terminal, each of its lines broken at words; what has columns goes on in the last of them.
func (s *screen) hung(text string) string {
	if !s.terminal {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = render.Wrap(line, s.width, max(2, lastColumn(line, s.width)))
	}
	return strings.Join(lines, "\n")
}

// clear wipes the live line.
func (s *screen) clear() {
	if s.terminal {
		fmt.Fprint(s.text, "\r\x1b[K")
	}
}

// passing shows how far something is: on a terminal in the live line, elsewhere now and then in one of the standard error.
func (s *screen) passing(p render.Progress) {
	if s.terminal {
		if p.Done == s.piece && time.Since(s.shown) < redrawEvery {
			return
		}
		s.shown, s.piece = time.Now(), p.Done
		s.clear()
		fmt.Fprint(s.text, p.Line(s.liveWidth()))
		return
	}
	if s.shown.IsZero() {
		s.shown = time.Now()
	}
	if time.Since(s.shown) >= plainEvery {
		s.shown = time.Now()
		fmt.Fprintln(s.notes, strings.TrimSpace(fmt.Sprintf("%s %d of %d  %s", p.Label, p.Done, p.Total, strings.Join(p.Fields, "  "))))
	}
}

// Start implements train.Watcher.
func (s *screen) Start(start train.Start) {
	s.start = start
	s.say("%s: %s, %s parameters, on %s", start.Task, start.Model, render.Count(int64(start.Parameters)), start.Device)
	held := ", nothing held out"
	if start.Test > 0 {
		held = fmt.Sprintf(", %d held out", start.Test)
	}
	if start.Tenth {
		held += " (the last tenth of this one set)"
	}
	if start.Scored < start.Test {
		held += fmt.Sprintf(", of which %d evenly spaced are scored here and all by eval", start.Scored)
	}
	from := ""
	if start.Done > 0 {
		from = fmt.Sprintf(" from step %d", start.Done)
	}
	s.say("%d %s%s; %s of %d%s", start.Train, start.Units, held, plural(start.Steps, "step"), start.Batch, from)
}

// plural is a number of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Step implements train.Watcher.
func (s *screen) Step(step train.Step) {
	s.emit(step)
	s.took += step.MS
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
		fmt.Fprintf(s.text, "\r\x1b[K%s", s.progress(step).Line(s.liveWidth()))
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
	var fields []string
	if s.start.Computed {
		fields = append(fields, fmt.Sprintf("mean loss %.4f", s.loss))
	}
	if s.pace > 0 {
		fields = append(fields, render.Rate(1e3*float64(s.start.Batch)/s.pace)+" samples/s")
	}
	if s.start.Computed {
		when := "ETA " + render.Duration(left)
		if step.Step == s.start.Steps {
			when = "took " + render.Duration(seconds(s.took/1e3))
		}
		fields = append(fields, when)
	}
	fields = append(fields, "peak memory "+render.Bytes(step.Peak))
	return render.Progress{Label: fmt.Sprintf("step %d", step.Step), Done: int64(step.Step), Total: int64(s.start.Steps), Fields: fields}
}

// Scoring implements train.Watcher.
func (s *screen) Scoring(done, of int) {
	now := time.Now()
	line := fmt.Sprintf("scoring %d of %d samples%s", done, of, s.left(done, of, now))
	switch {
	case s.terminal && done == of:
		s.clear()
	case s.terminal && now.Sub(s.shown) >= redrawEvery:
		fmt.Fprintf(s.text, "\r\x1b[K%s", render.Truncate(line, s.liveWidth()))
		s.shown = now
	case !s.terminal && s.shown.IsZero():
		s.shown = now // a short evaluation needs no progress
	case !s.terminal && done < of && now.Sub(s.shown) >= plainEvery:
		fmt.Fprintln(s.text, line)
		s.shown = now
	}
}

// left is how long an evaluation goes on, told from its second call on.
func (s *screen) left(done, of int, now time.Time) string {
	e := &s.scoring
	if e.began.IsZero() || done <= e.done {
		*e = evaluation{began: now, first: done, done: done}
		return ""
	}
	e.done = done
	pace := now.Sub(e.began) / time.Duration(done-e.first)
	return "  ETA " + render.Duration(pace*time.Duration(of-done))
}

// Look implements train.Looking.
func (s *screen) Look(l train.Look) { s.emit(l) }

// Score implements train.Watcher.
func (s *screen) Score(score train.Score) {
	if score.Step == s.start.Steps {
		return // the result has it
	}
	s.emit(score)
	s.clear()
	s.say("step %d: held out: %s", score.Step, figures(score.Metrics, &score.ValLoss))
}

// Note implements train.Watcher.
func (s *screen) Note(text string) {
	s.clear()
	fmt.Fprintln(s.notes, s.wrapped("note: "+text))
}

// figures are metrics and loss, as far as there are any.
func figures(metrics map[string]float64, loss *float64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		switch name {
		case "accuracy":
			parts = append(parts, "accuracy "+render.Percent(metrics[name]))
		case "auc", "ece", "f1", "mse", "precision", "recall", "top5": // the log has them
		default:
			parts = append(parts, fmt.Sprintf("%s %.4g", name, metrics[name]))
		}
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
		fmt.Fprintf(w, "interrupted after step %d; go on with: warpline train --resume --out %s\n", r.Steps, quoted(r.Out))
		return
	}
	products := ""
	if r.Products > 0 {
		products = fmt.Sprintf(" and %s multiply-adds a sample", render.Count(int64(r.Products)))
	}
	s.say("\n%s with %s parameters%s: %s", r.Model, render.Count(int64(r.Parameters)), products, times(r))
	if r.Computed {
		fmt.Fprintf(w, "  training   loss %.4f at the last step%s\n", r.Loss, scaled(r))
	} else {
		s.say("  memory only: nothing was computed on %s, and nothing is saved", s.start.Device)
	}
	if held := figures(r.Metrics, r.ValLoss); held != "" {
		best := ""
		if r.Best > 0 {
			best = fmt.Sprintf("; the weights of step %d, the best", r.Best)
		}
		fmt.Fprintf(w, "  held out   %s%s\n", held, best)
	}
	s.ill(r)
	fmt.Fprintln(w)
	s.memory(&r.Memory)
	if r.Computed && len(r.Log) > 1 {
		fmt.Fprintf(w, "\n%s", r.Curve(min(s.width, 100), 14, s.color))
	}
	s.gallery(r.Pictures)
	if len(r.Drawn) > 0 {
		fmt.Fprint(w, "\nIt draws:\n")
		s.gallery(r.Drawn)
	}
	if r.Text != "" {
		fmt.Fprintf(w, "\nIt writes:\n%s\n", r.Text)
	}
	s.profiled(r.Profile)
	if r.Computed && r.Out != "" {
		fmt.Fprintln(w)
		if held := figures(r.Metrics, r.ValLoss); held != "" {
			s.say("%s on %d %s held out", held, r.Held, r.Units)
		}
		s.say("%s has the model, the log and loss.svg. Score it again:\n  warpline eval %s", r.Out, quoted(r.Out))
	}
}

// mostSpikes is how many are told one by one.
const mostSpikes = 3

// ill says what was wrong with the numbers of a run.
func (s *screen) ill(r *train.Result) {
	worst := slices.SortedStableFunc(slices.Values(r.Spikes), func(a, b train.Spike) int { return cmp.Compare(b.Times, a.Times) })
	for _, k := range worst[:min(len(worst), mostSpikes)] {
		s.say("  spike      %s %.3g at step %d, %.3g times the median before%s", k.What, k.Value, k.Step, k.Times, lasting(k.Steps))
	}
	if len(worst) > mostSpikes {
		s.say("             and %s less high", plural(len(worst)-mostSpikes, "other"))
	}
	if len(worst) > 0 {
		s.say("             a --warmup, --clip 1 or a smaller --lr avoids them")
	}
	for _, d := range r.Dead {
		s.say("  dead       %d of %d units of %s: no gradient in the last %d looks", d.Dead, d.Units, d.Path, d.Looks)
	}
	if len(r.Dead) > 0 {
		s.say("             a smaller --lr or a --warmup keeps units of a ReLU alive")
	}
}

// lasting says how long more than a step took.
func lasting(steps int) string {
	if steps < 2 {
		return ""
	}
	return fmt.Sprintf(", for %d steps", steps)
}

// scaled is what the loss scaler did, if there is one.
func scaled(r *train.Result) string {
	if r.Scale == nil || r.Left == nil {
		return ""
	}
	return fmt.Sprintf("; losses are scaled by %.10g, %s left out", *r.Scale, plural(*r.Left, "step"))
}

// ranOut shows what is known of an out-of-memory, if err is one.
func (s *screen) ranOut(err error) {
	var oom *tensor.OOMError
	if errors.As(err, &oom) && s.emit(oom) == nil {
		_ = oom.WriteText(s.text) // the error that follows has its essence
	}
}

// profiled shows where the steps of a window went.
func (s *screen) profiled(p *train.Profiled) {
	if p == nil {
		return
	}
	fmt.Fprintf(s.text, "\nprofile from step %d on: ", p.First)
	p.WriteScreen(s.text, min(s.tableWidth(), 120))
	if p.Err == nil {
		s.say("\n%s has the trace, pprof profiles and figures. Look again:\n  warpline profile %s", p.Dir, quoted(p.Dir))
	}
}

// times are the steps of this session and how long they took, and the whole.
func times(r *train.Result) string {
	if !r.Computed {
		return plural(r.Session, "step")
	}
	text := fmt.Sprintf("%s in %s, %s with all else", plural(r.Session, "step"), render.Duration(seconds(r.Stepping)), render.Duration(seconds(r.Seconds)))
	if r.Captured > 0 {
		text += fmt.Sprintf("; %d of them captured", r.Captured)
	}
	if r.Session < r.Steps {
		text += fmt.Sprintf("; %d steps since its start", r.Steps)
	}
	return text
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
	s.clear()
	s.say("%s, %s parameters", r.Model, render.Count(int64(r.Parameters)))
	if !r.Computed {
		s.say("%s, %d %s: memory only: nothing was computed", r.Set, r.Held, r.Units)
		s.memory(&r.Memory)
		return
	}
	s.say("%s, %d %s in %s: %s", r.Set, r.Held, r.Units, render.Duration(seconds(r.Seconds)), figures(r.Metrics, &r.Loss))
	s.gallery(r.Pictures)
}

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }

// gallery draws pictures with what they were taken for or show, without the border that all pictures leave empty.
func (s *screen) gallery(pictures []train.Picture) {
	if len(pictures) == 0 {
		return
	}
	var list []render.Image
	for _, p := range trimmed(shrunk(pictures)) {
		caption := fmt.Sprintf("%d", p.Foretold)
		switch {
		case p.Named:
			caption = p.Caption
		case p.Foretold != p.Label:
			caption = fmt.Sprintf("✗ %d, is %d", p.Foretold, p.Label)
		}
		list = append(list, render.Image{Width: p.Width, Height: p.Height, Pixels: p.Pixels, Caption: caption})
	}
	fmt.Fprintf(s.text, "\n%s", render.Gallery(list, min(s.width, 100), s.color))
}
