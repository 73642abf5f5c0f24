package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/train"
)

func newPredict() *cobra.Command {
	var c train.PredictConfig
	cmd := &cobra.Command{
		Use: "predict RUN INPUT...", Short: "Ask a model about pictures, rows of a table or texts",
		Long: `Ask a model about inputs, and print what it makes of each: a line for people, with --json a line of JSON.

An INPUT is a picture (PNG, JPEG, GIF; resized to what the model takes) for models of pictures, a table (CSV, TSV, JSON lines; with
the columns of training, the target left out or not) for tabular, a text for models that write, which tell what may follow.
unet leaves NAME-mask.png, whose palette's entries are the classes, and NAME-overlay.png beside each picture, or in --out;
vae leaves NAME-reconstruction.png, and tells how well a picture is one of those it learnt from: by a mean square of
differences, and by the bound of its log-likelihood. No file is replaced. Nothing is printed unless all inputs can be read.`,
		Example: "  warpline predict runs/digits-1 seven.png\n  warpline predict runs/tabular-1 new.csv --json\n  warpline predict runs/gpt-1 'ROME'\n  warpline predict runs/unet-1 *.jpg --out masks/",
		Args:    from(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.From, c.Inputs = args[0], args[1:]
			s := newScreen(cmd)
			c.Watch = s
			err := train.Predict(cmd.Context(), c, func(p *train.Prediction) error {
				if err := s.emit(p); err != nil {
					return err
				}
				_, err := fmt.Fprintln(s.text, predicted(p))
				return s.unwritten(err)
			})
			if err != nil {
				return err
			}
			return s.failure()
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&c.Invert, "invert", false, "pictures: dark on light becomes light on dark, as the drawn digits are")
	f.BoolVar(&c.Unseen, "unseen", false, "tabular: take texts that training did not have as any other, in place of an error")
	f.StringVar(&c.Out, "out", "", "unet and vae: folder of the pictures that are made (default beside each input)")
	headsFlag(f, &c.Heads)
	deviceFlags(f, &c.Device, &c.Threads, false)
	return cmd
}

// predicted is a prediction for people.
func predicted(p *train.Prediction) string {
	where := p.Input
	if p.Line > 0 {
		where = fmt.Sprintf("%s:%d", p.Input, p.Line)
	}
	switch {
	case p.Value != nil:
		return fmt.Sprintf("%s: %.6g", where, *p.Value)
	case p.Mask != "":
		var areas []string
		for _, a := range p.Areas {
			areas = append(areas, shown(a.Class)+" "+render.Percent(a.Share))
		}
		return fmt.Sprintf("%s: %s  (%s, %s)", where, strings.Join(areas, ", "), p.Mask, p.Overlay)
	case p.Reconstruction != "":
		return fmt.Sprintf("%s: elbo %.1f nats, error %.4f  (%s)", where, *p.ELBO, *p.Error, p.Reconstruction)
	}
	var rest []string
	for _, c := range p.Classes[1:] {
		rest = append(rest, fmt.Sprintf("%s %s", shown(c.Class), render.Percent(c.Probability)))
	}
	text := fmt.Sprintf("%s: %s %s", where, shown(p.Class), render.Percent(p.Probability))
	if len(rest) > 0 {
		text += "  (" + strings.Join(rest, ", ") + ")"
	}
	return text
}

// shown is a class as it is, or quoted where that would not be seen.
func shown(class string) string {
	if strings.TrimSpace(class) != class || class == "" {
		return fmt.Sprintf("%q", class)
	}
	return class
}
