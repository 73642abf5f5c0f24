package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// batchFlag is a number of samples, or auto.
type batchFlag struct{ c *train.Config }

func (batchFlag) Type() string { return "int|auto" }

func (b batchFlag) String() string {
	if b.c == nil {
		return "0"
	}
	if b.c.AutoBatch {
		return "auto"
	}
	return strconv.Itoa(b.c.Batch)
}

func (b batchFlag) Set(text string) (err error) {
	b.c.AutoBatch = text == "auto"
	if !b.c.AutoBatch {
		b.c.Batch, err = strconv.Atoi(text)
	}
	return err
}

// percent is a share, written as "5%" or 0.05.
type percent float64

func (*percent) Type() string { return "percent" }

// String is "0" for nothing, which pflag takes for no default.
func (p *percent) String() string {
	if *p == 0 {
		return "0"
	}
	return strconv.FormatFloat(100*float64(*p), 'g', -1, 64) + "%"
}

func (p *percent) Set(text string) error {
	scale := 1.0
	if n := len(text); n > 0 && text[n-1] == '%' {
		text, scale = text[:n-1], 0.01
	}
	v, err := strconv.ParseFloat(text, 64)
	*p = percent(v * scale)
	return err
}

// size is a number of bytes.
type size int64

func (*size) Type() string { return "bytes" }

func (n *size) String() string { return strconv.FormatInt(int64(*n), 10) }

func (n *size) Set(text string) error {
	v, err := render.ParseBytes(text)
	*n = size(v)
	return err
}

// dryRun tells what a training needs on cards that nobody has at hand.
func dryRun(cmd *cobra.Command, c train.Config, cards []string) error {
	s := newScreen(cmd)
	d, err := train.DryRun(cmd.Context(), c, cards)
	if err != nil {
		return err
	}
	fits := true
	for _, r := range d.Reports {
		fits = fits && r.Fits()
		if err := s.emit(r); err != nil {
			return err
		}
	}
	s.planned(d)
	if err := s.failure(); err != nil {
		return err
	}
	if !fits {
		return errFindings
	}
	return nil
}

// planned shows a dry run.
func (s *screen) planned(d *train.Dry) {
	s.say("%s, %s parameters, batches of %d: nothing was computed, and nothing written", d.Model, render.Count(int64(d.Parameters)), d.Batch)
	t := render.Table{Header: []string{"card", "fits", "needs", "has", "largest batch", "limited by"},
		Right: []bool{false, false, true, true, true, false}, Spare: []int{5}}
	for _, r := range d.Reports {
		fits := "yes"
		if !r.Fits() {
			fits = "NO"
		}
		row := []string{r.Card, fits, render.Bytes(r.Reserved + r.Context), render.Bytes(r.Limit), strconv.Itoa(r.LargestBatch), r.LimitedBy}
		t.Rows = append(t.Rows, row)
	}
	fmt.Fprint(s.text, "\n", t.String(s.tableWidth()), "\n")
	for i, r := range d.Reports {
		same := func(o *plan.Report) bool {
			return o.Requested == r.Requested && o.Reserved == r.Reserved && maps.Equal(o.ByKind, r.ByKind)
		}
		if first := slices.IndexFunc(d.Reports, same); first == i {
			s.needed(r)
		} else {
			s.say("%s: as on %s", r.Card, d.Reports[first].Card)
		}
	}
	for _, r := range d.Reports {
		if r.Parts > 0 {
			s.say("%s: --accumulate auto takes batches of %d in %d parts", r.Card, d.Batch, r.Parts)
		}
		if r.PeaksOf > 0 {
			s.say("%s: memory did not come back to what it was: peaks are of %d steps, and others may need more", r.Card, r.PeaksOf)
		}
		s.savings(r.Card, d.Levers[r.Card])
	}
	s.lasting(d)
	s.say("Of what a card has the driver takes about %s for itself. This machine makes the data of a batch in %s by one goroutine.",
		render.Bytes(d.Reports[0].Context), render.Duration(seconds(d.Loader)))
}

// savings says what would save memory on a card.
func (s *screen) savings(card string, levers []tensor.Lever) {
	if len(levers) > 0 {
		s.say("What would save memory on %s:", card)
	}
	for _, l := range levers {
		suffices := "not enough"
		if l.Fits {
			suffices = "fits"
		}
		s.say("  %-22s saves %s, %s; costs %s", l.Flag, render.Bytes(l.Saves), suffices, l.Cost)
	}
}

// needed says what the memory on a card is made of.
func (s *screen) needed(r *plan.Report) {
	text := ""
	for _, k := range plan.Kinds() {
		if n := r.ByKind[k]; n > 0 {
			text += fmt.Sprintf(", %s %s", render.Bytes(n), k)
		}
	}
	s.say("%s: of values %s at most at once%s; %s with rounding, %s as the allocator takes it", r.Card, render.Bytes(r.Requested), text, render.Bytes(r.Allocated), render.Bytes(r.Reserved))
}

// lasting says how long steps and the run take by the model.
func (s *screen) lasting(d *train.Dry) {
	t := render.Table{Header: []string{"card", "a step", "computing", "memory", "launches", "copies", fmt.Sprintf("%d steps", d.Steps), "or from", "to"},
		Right: []bool{false, true, true, true, true, true, true, true, true}}
	text := func(v float64) string { return render.Duration(seconds(v)) }
	missing := map[string]bool{}
	quickest := math.Inf(1)
	for _, r := range d.Reports {
		x := r.Step
		if x == nil {
			continue
		}
		quickest = min(quickest, x.Total)
		whole, low, high := d.Whole(r)
		t.Rows = append(t.Rows, []string{r.Card, text(x.Total), text(x.Compute), text(x.Memory), text(x.Launch), text(x.Copies), text(whole), text(low), text(high)})
		for _, name := range r.NotCounted {
			missing[name] = true
		}
	}
	if len(t.Rows) == 0 {
		return
	}
	fmt.Fprint(s.text, "\n", t.String(s.tableWidth()), "\n")
	s.say("Times are modelled, not measured: four of five published times of kernels lie within a fifth of the model.")
	if len(missing) > 0 {
		s.say("Not modelled by what they execute, only by their bytes and operations: %s", strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
	if n := int(math.Ceil(d.Loader / quickest)); n > 1 {
		s.say("The loader takes longer than a step: to keep up it needs %d goroutines as quick as this machine's.", n)
	}
}
