package train

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/render"
)

// folder is a run folder that a run writes to. A nil one swallows everything.
type folder struct {
	dir    string
	log    *os.File
	buf    *bufio.Writer
	made   bool                     // by this run
	names  []string                 // of files that were there before the first step
	events scalars                  // for TensorBoard
	named  func(flag string) string // how settings are called
}

// createFolder makes the run folder with what is known before the first step, or fills an empty one, which may be a link
// or a mount. Nothing is left when it fails. Of two runs that want the same folder, one fails.
func createFolder(r *run) (*folder, error) {
	if r.Out == "" {
		return nil, nil
	}
	hint := "give another --out"
	if err := os.MkdirAll(filepath.Dir(r.Out), 0o777); err != nil {
		return nil, explain(err, hint)
	}
	if info, err := os.Stat(r.Out); err == nil && info.IsDir() {
		f, err := openLog(r.Out, os.O_CREATE|os.O_EXCL, hint, r.named)
		if err != nil {
			return nil, err
		}
		f.names = started
		if err := writeStart(r.Out, r); err != nil {
			f.discard()
			return nil, explain(err, hint)
		}
		return f, nil
	}
	err := durable.WriteDir(r.Out, func(dir string) error {
		// The log, which claims a folder, is there from the start.
		return errors.Join(writeFile(filepath.Join(dir, logFile), nil), writeStart(dir, r))
	})
	if err != nil {
		return nil, explain(err, hint)
	}
	f, err := openLog(r.Out, 0, hint, r.named)
	if err == nil {
		f.made, f.names = true, started
	}
	return f, err
}

func openLog(dir string, flag int, hint string, named func(flag string) string) (*folder, error) {
	f, err := os.OpenFile(filepath.Join(dir, logFile), os.O_WRONLY|os.O_APPEND|flag, 0o666)
	if err != nil {
		return nil, explain(err, hint)
	}
	return &folder{dir: dir, log: f, buf: bufio.NewWriter(f), named: named}, nil
}

// started are what a run of a task has written before its first step.
var started = []string{configFile, tokenizerFile, encoderFile}

// writeStart writes what is known before the first step.
func writeStart(dir string, r *run) error {
	if r.tokenizer != nil {
		if err := r.tokenizer.Save(filepath.Join(dir, tokenizerFile)); err != nil {
			return err
		}
	}
	if r.encoder != nil {
		if err := saveEncoder(dir, r.encoder); err != nil {
			return err
		}
	}
	return writeConfig(dir, r)
}

func writeConfig(dir string, r *run) error {
	values, err := json.Marshal(r.Config)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(file{r.arch, &settings{settingsVersion, values, r.text}}, "", " ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, configFile), append(raw, '\n'))
}

func writeFile(path string, content []byte) error {
	return durable.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// readRun reads the settings of a run.
func readRun(dir string) (*Config, error) {
	f, err := readConfig(dir)
	if err != nil {
		return nil, err
	}
	if f.Run == nil {
		return nil, fail("give --out the folder of a run of this program", "%s holds a model and no run", dir)
	}
	return f.Run.read(dir)
}

// read gives the settings of the run in a folder.
func (s *settings) read(dir string) (*Config, error) {
	var c Config
	if err := json.Unmarshal(s.Config, &c); err != nil {
		return nil, fail("use the program that wrote it", "%s: %v", filepath.Join(dir, configFile), err)
	}
	return &c, nil
}

// continueLog cuts the log of a folder after a step, and opens it to go on; what a crash left of a checkpoint goes.
func continueLog(dir string, done int, named func(flag string) string) (*folder, []Step, []Score, error) {
	hint := "give the folder of a run"
	path := filepath.Join(dir, logFile)
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil, explain(err, hint)
	}
	kept, steps, scores := cutLog(raw, done)
	if err := writeFile(path, kept); err != nil {
		return nil, nil, nil, explain(err, hint)
	}
	if err := durable.Sweep(dir); err != nil {
		return nil, nil, nil, explain(err, "remove it yourself")
	}
	f, err := openLog(dir, 0, hint, named)
	return f, steps, scores, err
}

// line is any line of log.jsonl.
type line struct {
	Step
	Loss     *float64           `json:"loss"` // nil: of a step that was left out because it had none
	ValLoss  *float64           `json:"val_loss"`
	Accuracy *float64           `json:"accuracy"`
	Metrics  map[string]float64 `json:"metrics"`
	Final    bool               `json:"final"`
}

// cutLog keeps the lines of a log up to a step, without those that a person has damaged.
func cutLog(raw []byte, done int) (kept []byte, steps []Step, scores []Score) {
	for text := range bytes.Lines(raw) {
		var l line
		if json.Unmarshal(text, &l) != nil || l.Final || l.Step.Step < 1 || l.Step.Step > done {
			continue
		}
		kept = append(append(kept, bytes.TrimRight(text, "\r\n")...), '\n')
		if l.ValLoss != nil {
			scores = append(scores, Score{true, l.Step.Step, *l.ValLoss, l.Accuracy, l.Metrics})
		} else if l.Loss != nil {
			l.Step.Loss = *l.Loss
			steps = append(steps, l.Step)
		}
	}
	return kept, steps, scores
}

// line adds a line to the log.
func (f *folder) line(v any) error {
	if f == nil {
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = f.buf.Write(append(raw, '\n'))
	return explain(errors.Join(err, f.events.line(f.dir, v)), f.room())
}

func (f *folder) flush() error {
	if f == nil {
		return nil
	}
	return explain(errors.Join(f.buf.Flush(), f.events.flush()), f.room())
}

func (f *folder) close() error {
	if f == nil {
		return nil
	}
	return errors.Join(f.flush(), f.log.Close(), f.events.close())
}

// discard takes the folder of a run back that made no step. What was not made here is left.
func (f *folder) discard() {
	if f == nil {
		return
	}
	f.log.Close()
	for _, name := range append([]string{logFile}, f.names...) {
		os.Remove(filepath.Join(f.dir, name))
	}
	if f.made {
		os.Remove(f.dir)
	}
}

// saved tells whether a folder has a checkpoint. Where it matters what is wrong with one that cannot be read, ckpt.List
// tells.
func saved(dir string) bool {
	list, err := ckpt.List(dir)
	return err == nil && len(list) > 0
}

func (f *folder) saved() bool { return f != nil && saved(f.dir) }

// keptCheckpoints is how many a run folder has: the newest, and one to fall back to.
const keptCheckpoints = 2

// room is what to do when something cannot be written.
func (f *folder) room() string {
	if f.saved() {
		return fmt.Sprintf("make room in %s and go on with %s", f.dir, f.named("resume"))
	}
	return fmt.Sprintf("make room in %s, or give another %s", filepath.Dir(f.dir), f.named("out"))
}

// finish writes the curve and the last line of the log.
func (f *folder) finish(result *Result) error {
	if f == nil {
		return nil
	}
	if result.Computed {
		svg := result.plot().SVG(800, 420)
		if err := writeFile(filepath.Join(f.dir, curveFile), []byte(svg)); err != nil {
			return explain(err, f.room())
		}
	}
	if err := f.line(result); err != nil {
		return err
	}
	return f.flush()
}

// Curve draws the losses for a terminal, in so many columns and rows.
func (r *Result) Curve(width, height int, color bool) string {
	return r.plot().Terminal(width, height, color)
}

// plot is the diagram of the losses.
func (r *Result) plot() render.Plot {
	p := render.Plot{Title: r.Task, XLabel: "step", WholeX: true, YLabel: "loss", LogY: r.steep()}
	loss := render.Series{Name: "training"}
	for _, s := range r.Log {
		loss.X, loss.Y = append(loss.X, float64(s.Step)), append(loss.Y, s.Loss)
	}
	p.Series = append(p.Series, loss)
	if len(r.Scores) > 0 {
		held := render.Series{Name: "held out"}
		for _, s := range r.Scores {
			held.X, held.Y = append(held.X, float64(s.Step)), append(held.Y, s.ValLoss)
		}
		p.Series = append(p.Series, held)
	}
	return p
}

// steep tells losses over more than an order of magnitude, which a logarithmic axis shows better.
func (r *Result) steep() bool {
	low, high := math.Inf(1), 0.0
	for _, s := range r.Log {
		low, high = min(low, s.Loss), max(high, s.Loss)
	}
	return low > 0 && high > 10*low
}
