package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/train"
)

// precisions compares one training in several precisions.
type precisions struct {
	amps  []string
	steps int
	data  string
}

func (p *precisions) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&p.amps, "amp", nil, "compare precisions of one training on one device instead: of "+strings.Join(train.AMPs, ", ")+"; TASK is one of "+strings.Join(train.Tasks, ", ")+" then")
	f.IntVar(&p.steps, "steps", 100, "of such a training")
	f.StringVar(&p.data, "data", "", "of such a training, as train has it")
}

// config is the training that is compared.
func (p *precisions) config(task string, k *comparison, f *pflag.FlagSet) (c train.Config, amps []train.AMP, err error) {
	if c, err = train.Defaults(task); err != nil {
		return c, nil, err
	}
	if f.Changed("sizes") || f.Changed("devices") && len(k.Devices) != 1 {
		return c, nil, advice.Failf("leave --sizes out, and give one device", "--amp compares precisions at one size on one device")
	}
	for _, text := range p.amps {
		a, err := train.ParseAMP(text)
		if err != nil {
			return c, nil, err
		}
		if slices.Contains(amps, a) {
			return c, nil, advice.Failf("give each once", "--amp has %s twice", a)
		}
		amps = append(amps, a)
	}
	c.Steps, c.Seed, c.Data, c.Given = p.steps, k.Seed, p.data, map[string]bool{"steps": true}
	if f.Changed("devices") {
		c.Device = k.Devices[0]
	}
	return c, amps, nil
}

func (p *precisions) run(cmd *cobra.Command, task string, k *comparison) error {
	c, amps, err := p.config(task, k, cmd.Flags())
	if err != nil {
		return err
	}
	s := newScreen(cmd)
	done := 0
	var unsaid error
	runs, err := train.ComparePrecisions(cmd.Context(), c, amps, func(r *train.PrecisionRun) {
		unsaid = cmp.Or(unsaid, s.emit(r))
		done += r.Steps
	}, func(a train.AMP, step int) {
		s.passing(render.Progress{Label: "compare", Done: int64(done + step), Total: int64(len(amps) * c.Steps), Fields: []string{string(a)}})
	})
	s.clear()
	if len(runs) > 1 {
		fmt.Fprint(s.text, precisionTable(runs).String(s.tableWidth()), "\n", precisionPlot(runs).Terminal(s.tableWidth(), plotHeight, s.color), "\n")
		if runs[0].Modelled {
			s.say("Times are modelled: the virtual clock of a simulated card (docs/gpu.md).")
		}
	}
	if err := cmp.Or(s.failure(), err, unsaid); err != nil || k.svg == "" {
		return err
	}
	return writeSVG(k.svg, precisionPlot(runs))
}

// precisionTable shows runs side by side, the first being what the others are compared with.
func precisionTable(runs []train.PrecisionRun) render.Table {
	t := render.Table{
		Header: []string{"amp", "step", "faster", "loss", "peak", "weights", "casts", "gradients", "optimizer", "activations", "parameters apart", "scale", "left out"},
		Right:  []bool{false, true, true, true, true, true, true, true, true, true, true, true, true}, Spare: []int{8, 7, 5},
	}
	for i := range runs {
		r := &runs[i]
		step, scale, skipped := "", "", ""
		if r.Scale != nil && r.Skipped != nil {
			scale, skipped = fmt.Sprintf("%.10g", *r.Scale), fmt.Sprint(*r.Skipped)
		}
		faster := ""
		if r.MS > 0 {
			step = fmt.Sprintf("%.3g ms", r.MS)
			faster = fmt.Sprintf("%.2f×", runs[0].MS/r.MS)
		}
		t.Rows = append(t.Rows, []string{string(r.AMP), step, faster, fmt.Sprintf("%.4f", r.Loss), render.Bytes(r.Peak), render.Bytes(r.Kinds.Weights), render.Bytes(r.Kinds.Casts),
			render.Bytes(r.Kinds.Gradients), render.Bytes(r.Kinds.Optimizer), render.Bytes(r.Kinds.Activations), strings.TrimSpace(fmt.Sprintf("%.2g %s", r.Apart, r.ApartAt)), scale, skipped})
	}
	return t
}

// precisionPlot has the losses over each other.
func precisionPlot(runs []train.PrecisionRun) render.Plot {
	p := render.Plot{Title: runs[0].Task + " in several precisions", XLabel: "step", WholeX: true, YLabel: "loss"}
	for i := range runs {
		line := render.Series{Name: string(runs[i].AMP), Y: runs[i].Losses}
		for _, step := range runs[i].LossSteps {
			line.X = append(line.X, float64(step))
		}
		p.Series = append(p.Series, line)
	}
	return p
}
