package train

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// Result is how a run or an evaluation ended. Its JSON is the last line of log.jsonl and of the command.
type Result struct {
	Final    bool     `json:"final"`               // always true
	Steps    int      `json:"steps,omitempty"`     // of an evaluation only where a checkpoint stands for the model
	Best     int      `json:"best_step,omitempty"` // whose weights are left and scored; 0: those of the last step
	Samples  int      `json:"samples,omitempty"`   // of an evaluation
	Set      string   `json:"set,omitempty"`       // of an evaluation: what was scored
	Loss     float64  `json:"loss"`                // of the last step; of an evaluation the mean over its samples; left out unless Computed
	Accuracy *float64 `json:"accuracy,omitempty"`
	ValLoss  *float64 `json:"val_loss,omitempty"`

	// Metrics are all figures of what was scored, by the names of [metric.Meters]. Those that are no finite number are left out.
	Metrics map[string]float64 `json:"metrics,omitempty"`

	Frozen    int      `json:"frozen_parameters,omitempty"` // numbers in parameters that do not learn
	Captured  int      `json:"captured_steps,omitempty"`    // of this session, those that were done as one launch
	Seconds   float64  `json:"seconds"`                     // of the whole; where nothing is computed those of planning
	PeakBytes int64    `json:"peak_bytes"`                  // most bytes of tensors at once
	Scale     *float64 `json:"scale,omitempty"`             // that losses are multiplied by now; nil without a loss scaler
	Left      *int     `json:"skipped_steps,omitempty"`     // steps since the start that it left out; nil without one

	Spikes []Spike `json:"spikes,omitempty"`     // steps far above those before
	Dead   []Dead  `json:"dead_units,omitempty"` // units that did not learn any more; needs Statistics

	Task       string    `json:"-"`
	Model      string    `json:"-"`
	Out        string    `json:"-"` // the run folder; empty: nothing is kept
	Computed   bool      `json:"-"` // false on a device without arithmetic, whose losses are 0
	Parameters int       `json:"-"`
	Products   int       `json:"-"` // multiply-adds of a forward pass of one sample; 0 for text
	Memory     Memory    `json:"-"`
	Log        []Step    `json:"-"`
	Scores     []Score   `json:"-"`
	Pictures   []Picture `json:"-"`
	Text       string    `json:"-"` // written by a language model
	Drawn      []Picture `json:"-"` // by a model that draws

	Session  int     `json:"-"` // steps since the start or the resume
	Stepping float64 `json:"-"` // seconds of them, without scoring; 0 where nothing is computed
	Held     int     `json:"-"` // samples that were scored; of a text, tokens
	Units    string  `json:"-"` // of Held: samples, or tokens

	Profile *Profiled `json:"-"` // nil: none was asked for, or the run ended before its window did
}

// MarshalJSON writes no loss where nothing was computed.
func (r *Result) MarshalJSON() ([]byte, error) {
	type plain Result
	if r.Computed {
		return json.Marshal((*plain)(r))
	}
	return json.Marshal(struct {
		*plain
		Loss *float64 `json:"loss,omitempty"`
	}{plain: (*plain)(r)})
}

// Memory is what a run needed, in bytes. Activations are the most that a forward pass kept for the backward one.
type Memory struct{ Weights, Buffers, Gradients, Optimizer, Average, Activations, Peak int64 }

// gallery is how many pictures a result has.
const gallery = 6

// finish saves what the run has come to and measures it. When ctx is cancelled it only saves, and the error beside the
// result says so.
func (r *run) finish(ctx context.Context, _ error) (*Result, error) {
	defer machine.AllowWaits(r.env.Device())()
	memory, constant := r.measure(), constants(r.model) // while it is as it was trained
	if err := r.leave(); err != nil {
		return nil, err
	}
	found, e, err := r.evaluated(ctx, r.outcome(), gallery)
	if err != nil && !errors.Is(err, ErrInterrupted) {
		return nil, err
	}
	out := r.result()
	if found != nil && !r.dry() {
		if r.patience.kept() {
			out.Best = r.patience.step
		} else {
			r.judge(found) // the last line has it
		}
		out.Scores = r.scores
		out.Accuracy, out.ValLoss, out.Metrics, out.Pictures, out.Held = found.accuracy, finite(found.loss), found.metrics, e.pictures(gallery), found.size
	}
	memory.Peak = out.PeakBytes
	out.Memory, out.Frozen, out.Text, out.Drawn, out.Products = memory, constant, r.sample(ctx), r.draw(), r.products()
	if g, ok := r.Watch.(*gauge); ok {
		g.weights = numbers(r.outcome())
	}
	out.Seconds = time.Since(r.began).Seconds()
	if err := r.folder.finish(out); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return out, ErrInterrupted
	}
	return out, nil
}

// finite is a number that JSON can hold, or nil.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// products are the multiply-adds of a sample's forward pass, 0 for text.
func (r *run) products() int {
	shape := r.arch.Input()
	if shape == nil || r.worth > 0 {
		return r.worth
	}
	return nn.Summary(r.model, append([]int{1}, shape...)...).Total().Products
}

// modelMemory is what a model takes without training, and the peak.
func modelMemory(env *tensor.Env, model any) Memory {
	m := Memory{Peak: env.Device().Memory().Peak}
	for _, p := range nn.Params(model) {
		m.Weights += p.Bytes()
	}
	for _, b := range nn.Buffers(model) {
		m.Buffers += b.Bytes()
	}
	return m
}

// draw lets a model that draws show some pictures.
func (r *run) draw() (list []Picture) {
	g, ok := r.outcome().(zoo.Painter)
	if !ok || !r.env.Device().Computes() {
		return nil
	}
	r.Params.policy(r.env).Seed(r.Seed).NoGrad().Eval().Do(func(env *tensor.Env) *tensor.Tensor {
		list = shown("", g.Draw(env, gallery).Mean(1))
		return nil
	})
	return list
}

// sampleTime bounds what a run writes at its end.
const sampleTime = 3 * time.Second

// sample lets a model of text write a little.
func (r *run) sample(ctx context.Context) string {
	g, ok := r.outcome().(zoo.Author)
	if !ok || r.tokenizer == nil || !r.env.Device().Computes() || ctx.Err() != nil {
		return ""
	}
	began := time.Now()
	var text strings.Builder
	for id := range g.Generate(r.Params.policy(r.env), []int64{0}, 200, model.SampleConfig{Temperature: 0.8, Seed: r.Seed}) {
		piece, err := r.tokenizer.Decode(id)
		text.WriteString(piece)
		if err != nil || ctx.Err() != nil || time.Since(began) >= sampleTime {
			break
		}
	}
	return text.String()
}
