package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/tensor"
)

// Timed is what an operation took of a device, beside what the model of its card's time says. On a simulated card the two are one.
type Timed struct {
	Op      string  `json:"op"`
	Shape   string  `json:"shape"`
	DType   string  `json:"dtype"`
	Seconds float64 `json:"seconds"`        // of the device, by its own clock: the median
	Model   float64 `json:"model_seconds"`  // 0 where the card is not in the table
	Ratio   float64 `json:"taken_by_model"` // Seconds over Model
	Card    string  `json:"model_card"`     // of package cards; empty where it is not in the table
}

// timedOp is an operation that is timed, on operands of n×n.
type timedOp struct {
	name string
	n    int
	dt   dtype.DType
	run  func(x *tensor.Tensor) *tensor.Tensor
}

// timedOps are small enough for a simulated card to compute, and large enough for a card to be busy.
var timedOps = []timedOp{
	{"add", 1024, dtype.F32, func(x *tensor.Tensor) *tensor.Tensor { return x.Add(x) }},
	{"sum", 1024, dtype.F32, func(x *tensor.Tensor) *tensor.Tensor { return x.Sum(1) }},
	{"softmax", 1024, dtype.F32, func(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(1) }},
	{"matmul", 256, dtype.F32, func(x *tensor.Tensor) *tensor.Tensor { return x.MatMul(x) }},
	{"matmul", 256, dtype.BF16, func(x *tensor.Tensor) *tensor.Tensor { return x.MatMul(x) }},
}

// Times times operations on a device that has a clock of its own, and on the simulated card that is the same.
func Times(ctx context.Context, name string) (list []Timed, err error) {
	n, dev, err := open(name)
	if err != nil {
		return nil, err
	}
	info := dev.Info()
	card, known := cards.Match(info.Compute, info.SMs, info.Memory)
	rounds := 9
	if n.Kind == "sim" {
		rounds = 1 // the same in each
		if n.Card != "" {
			card, known = cards.Find(n.Card)
		} else {
			card, known = cards.Find(cards.Default)
		}
	}
	for _, op := range timedOps {
		if ctx.Err() != nil {
			return list, ctx.Err()
		}
		if op.dt == dtype.BF16 && info.Compute[0] < 8 {
			continue
		}
		t := Timed{Op: op.name, Shape: fmt.Sprintf("%d×%d", op.n, op.n), DType: op.dt.String()}
		if t.Seconds, err = op.on(name, rounds); err == nil && known {
			t.Card = card.Name
			t.Model, err = op.on("sim:"+card.Name, 1)
		}
		if err != nil {
			return list, fmt.Errorf("timing %s: %w", op.name, err)
		}
		if t.Model > 0 {
			t.Ratio = t.Seconds / t.Model
		}
		list = append(list, t)
	}
	return list, nil
}

// on is the median time of the operation's kernels on a device of its own, in seconds.
func (o *timedOp) on(name string, times int) (float64, error) {
	env, err := tensor.Fresh(name)
	if err != nil {
		return 0, err
	}
	d := env.Device()
	defer d.Time()()
	var spans []device.Span
	defer d.Observe(func(e *device.Event) {
		if e.Began != nil {
			spans = append(spans, e.Span)
		}
	}, device.KindLaunch, device.KindFill)()
	var took []float64
	err = try(env.NoGrad(), func(e *tensor.Env) error {
		x := e.Randn(o.n, o.n).Cast(o.dt)
		for i := -1; i < times; i++ { // the first is a warm-up
			spans = spans[:0]
			o.run(x)
			e.Sync()
			seconds, err := spent(spans)
			if err != nil {
				return err
			}
			if i >= 0 {
				took = append(took, seconds)
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// spent is the time of all.
func spent(spans []device.Span) (seconds float64, err error) {
	for _, s := range spans {
		d, err := s.Ended.Since(s.Began)
		if err != nil {
			return 0, err
		}
		seconds += d.Seconds()
	}
	return seconds, nil
}

// TimesText is a table of what a card took beside the model.
func TimesText(list []Timed, name string, width int) string {
	t := render.Table{Header: []string{"op", "shape", "dtype", "took µs", "model µs", "taken / model"}, Right: []bool{false, false, false, true, true, true}}
	for _, x := range list {
		model, ratio := "–", "–"
		if x.Model > 0 {
			model, ratio = fmt.Sprintf("%.1f", 1e6*x.Model), fmt.Sprintf("%.2f", x.Ratio)
		}
		t.Rows = append(t.Rows, []string{x.Op, x.Shape, x.DType, fmt.Sprintf("%.1f", 1e6*x.Seconds), model, ratio})
	}
	note := "times of the device beside those of the model (docs/simulator.md)"
	if strings.HasPrefix(name, "sim") {
		note = "times of a simulated card are those of the model: nothing is measured"
	}
	return t.String(width) + note + "\n"
}
