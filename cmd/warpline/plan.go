package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/formula"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/plan"
)

const planLong = `Estimate from a model's sizes alone what training it takes: memory, by what it is for, on which cards it fits, with
which batch, and how long a step lasts. The model may be anybody's: forms are those of PyTorch's modules, Megatron-LM and llm.c, and every
figure comes with its range. A model of this program needs no estimate: train --dry-run runs it on a device without arithmetic, and
its bytes are exact.

WHAT is a preset (%s), a Hugging Face config.json or the folder that has one, a number of parameters such as 7B or 1e9 (which gives the
floor), decoder, mlp or resnet50 with sizes by flags, or nothing with --flops. The exit status is 1 if a card of --card is too small.`

const planExample = `  warpline plan gpt2 --batch 8 --amp bf16
  warpline plan llama-3.1-8b --amp bf16 --recompute block --devices 8 --zero 3 --card h100-80,a100-80
  warpline plan ./config.json --context 4096 --card rtx-4090
  warpline plan 7B
  warpline plan --flops 3.1e23 --devices 1024 --card h100-80 --amp bf16`

// planning is a command line of plan.
type planning struct {
	what       string
	setup      formula.Setup
	params     string
	attention  string
	head       string
	cards      []string
	efficiency float64
	flops      string
	tokens     string

	sizes  formula.Decoder
	widths []int
	image  int
	given  *pflag.FlagSet
	own    map[string]bool // flags of plan itself
}

func newPlan() *cobra.Command {
	var p planning
	cmd := &cobra.Command{
		Use: "plan [WHAT]", Short: "Estimate memory and time of anybody's training from its sizes",
		Long: fmt.Sprintf(planLong, strings.Join(formula.PresetNames(), ", ")), Example: planExample, Args: from(0, 1),
		ValidArgs: append(formula.PresetNames(), "decoder", "mlp"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.what, p.given = strings.Join(args, ""), cmd.Flags()
			return p.run(cmd)
		},
	}
	p.flags(cmd.Flags())
	p.own = map[string]bool{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { p.own[f.Name] = true })
	return cmd
}

// among reads one of some words.
func among[T ~string](words []string) func(string) (T, error) {
	return func(text string) (T, error) {
		if !slices.Contains(words, text) {
			return "", errors.New("no such word")
		}
		return T(text), nil
	}
}

func (p *planning) flags(f *pflag.FlagSet) {
	f.SortFlags = false
	s := &p.setup
	amps := []string{string(formula.Off), string(formula.BF16), string(formula.FP16), string(formula.TF32)}
	s.Style, s.AMP, s.Recompute, p.params, p.attention, p.head = formula.Torch, formula.Off, formula.None, "f32", "fused", "whole"
	f.StringSliceVar(&p.cards, "card", nil, "cards to look at: "+strings.Join(cards.Names(), ", ")+" (default all)")
	f.IntVar(&s.Batch, "batch", 1, "samples of a step, on each data-parallel device")
	f.IntVar(&s.Accumulate, "accumulate", 1, "equal parts that a batch is taken in")
	f.IntVar(&s.Context, "context", 0, "tokens of a sample (default as many as the model's, at most 8192 for presets)")
	choice(f, one(&s.AMP, among[formula.AMP](amps), amps), "amp", string(formula.BF16), "what products are computed in; bf16 if no value is given")
	f.Var(one(&p.params, among[string]([]string{"f32", "bf16"}), []string{"f32", "bf16"}), "params", "what weights, gradients and optimizer states are kept in, with --amp bf16")
	choice(f, one(&s.Recompute, among[formula.Recompute](formula.Recomputes), formula.Recomputes), "recompute", string(formula.Block), "`what` is computed again in the backward pass; gelu is llm.c's -r 1; block if no value is given")
	f.StringVar(&s.Optimizer, "optimizer", "adamw", strings.Join(formula.OptimizerNames(), ", "))
	f.Var(one(&p.attention, among[string]([]string{"fused", "whole"}), []string{"fused", "whole"}), "attention", "fused keeps no scores, as FlashAttention; whole keeps all")
	f.Var(one(&p.head, among[string]([]string{"whole", "chunked"}), []string{"whole", "chunked"}), "head", "chunked makes the scores of some rows at a time and keeps none, whole keeps all")
	f.BoolVar(&s.Dropout, "dropout", false, "masks of dropout are kept, as gpt2's always are")
	f.IntVar(&s.Devices, "devices", 0, "cards in all (default --tp)")
	f.IntVar(&s.ZeRO, "zero", 0, "what data-parallel devices share: 1 optimizer states, 2 gradients too, 3 weights too (FSDP)")
	f.IntVar(&s.TP, "tp", 1, "devices that share each layer (tensor parallelism)")
	f.BoolVar(&s.Sequence, "sequence", false, "with --tp: of what each device would have whole, each has a part of the tokens")
	f.Var(one(&s.Style, among[formula.Style](formula.Styles), formula.Styles), "style", "whose habits decide what is kept")
	f.Var((*percent)(&p.efficiency), "efficiency", "share of the card's peak that products reach (default 60%, and times from 40% to 80%)")
	f.StringVar(&p.tokens, "tokens", "", "tokens, or pictures, of the whole training, as in 300B: how many days")
	f.StringVar(&p.flops, "flops", "", "in place of WHAT: FLOPs of the whole training, as in 3.1e23: how many devices for how many days")
	p.sizeFlags(f)
}

// sizeFlags are sizes, of decoder and mlp, or in place of a preset's own.
func (p *planning) sizeFlags(f *pflag.FlagSet) {
	d := &p.sizes
	for _, x := range []struct {
		at         *int
		name, help string
	}{
		{&d.Layers, "layers", ""}, {&d.Width, "width", " of the layers"}, {&d.Heads, "heads", " of attention"}, {&d.KVHeads, "kv-heads", " of keys and values (default --heads)"},
		{&d.HeadWidth, "head-width", " (default --width / --heads)"}, {&d.FFN, "ffn", " width of the feed-forward part (default 4 × --width)"}, {&d.Vocab, "vocab", " number of tokens that there are"},
	} {
		f.IntVar(x.at, x.name, 0, "decoder:"+x.help)
	}
	f.IntSliceVar(&p.widths, "widths", nil, "mlp: of the input and of each layer's output, as in 784,512,10")
	f.IntVar(&p.image, "image", 224, "resnet: height and width of pictures")
}

// run estimates, shows and judges.
func (p *planning) run(cmd *cobra.Command) error {
	s := newScreen(cmd)
	chosen, err := p.chosen()
	if err != nil {
		return err
	}
	if p.given.Changed("efficiency") && p.efficiency <= 0 {
		return advice.Failf("as in --efficiency 40%", "a share of the peak of %g", p.efficiency)
	}
	if p.given.Changed("flops") {
		if err := p.idle("--flops", "flops", "card", "devices", "amp", "efficiency"); err != nil {
			return err
		}
		return p.runFLOPs(s, chosen)
	}
	if p.what == "" {
		return advice.Failf("as in: warpline plan gpt2; "+helpOf(cmd), "WHAT is missing")
	}
	model, name, err := p.model()
	if err != nil {
		return err
	}
	if err := p.fitting(model); err != nil {
		return err
	}
	r, err := p.estimate(model, name, chosen)
	if err != nil {
		return err
	}
	if err := s.emit(r); err != nil {
		return err
	}
	s.estimated(r)
	if err := s.failure(); err != nil {
		return err
	}
	if p.given.Changed("card") && slices.ContainsFunc(r.Cards, func(c cardEstimate) bool { return c.Fits == formula.No || c.Fits == formula.Unlikely }) {
		return errFindings
	}
	return nil
}

// planAlways are flags that say something of every model.
var planAlways = []string{"card", "amp", "params", "optimizer", "devices", "zero", "tp", "style"}

// planSteps are flags of models whose steps are known.
var planSteps = append([]string{"batch", "accumulate", "efficiency", "tokens", "recompute", "context", "attention", "head", "dropout"}, planAlways...)

// fitting refuses flags that would change nothing. What a model cannot have beyond that, package formula refuses.
func (p *planning) fitting(m formula.Model) error {
	if p.given.Changed("sequence") && p.setup.TP < 2 {
		return advice.Failf("add --tp 2 or more, or leave it out", "--sequence shares tokens over the devices of --tp, and there is one")
	}
	switch m.(type) {
	case formula.Bare:
		return p.idle("a number of parameters alone", planAlways...)
	case *formula.MLP:
		return p.idle("an mlp", append([]string{"widths"}, planSteps...)...)
	case *formula.ResNet:
		return p.idle("a ResNet", append([]string{"image"}, planSteps...)...)
	}
	return p.idle("a decoder", append([]string{"sequence", "layers", "width", "heads", "kv-heads", "head-width", "ffn", "vocab"}, planSteps...)...)
}

// idle refuses flags that are given and are none of those that matter.
func (p *planning) idle(to string, matter ...string) (err error) {
	p.given.Visit(func(f *pflag.Flag) {
		if p.own[f.Name] && !slices.Contains(matter, f.Name) && err == nil {
			err = advice.Failf("leave it out, or give a preset, a config.json or sizes that it is for", "--%s says nothing of %s", f.Name, to)
		}
	})
	return err
}

// chosen are the cards to look at.
func (p *planning) chosen() ([]cards.Card, error) {
	if len(p.cards) == 0 {
		return cards.All, nil
	}
	var all []cards.Card
	for _, name := range p.cards {
		c, err := plan.Card(name)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// model is what WHAT names, and its name for people.
func (p *planning) model() (formula.Model, string, error) {
	if p.given.Changed("batch") && p.setup.Batch < 1 || p.given.Changed("accumulate") && p.setup.Accumulate < 1 || p.given.Changed("tp") && p.setup.TP < 1 || p.given.Changed("devices") && p.setup.Devices < 1 {
		return nil, "", advice.Failf("they begin at 1", "--batch, --accumulate, --tp or --devices is below 1")
	}
	p.setup.Chunked = p.head == "chunked"
	p.setup.Weights16, p.setup.Whole = p.params == "bf16", p.attention == "whole" || p.setup.Style == formula.Eager
	switch n, ok := formula.ParseCount(p.what); {
	case ok && n >= 1 && n < 1<<62:
		return formula.Bare(n), "a model", nil
	case ok:
		return nil, "", advice.Failf("as in 7B or 1.5e9", "a model of %s parameters", p.what)
	case p.what == "decoder":
		d := p.sizes
		d.Context, d.Activation, d.Untied = p.setup.Context, formula.Gated, true
		return &d, "decoder", nil
	case p.what == "mlp":
		return &formula.MLP{Widths: p.widths}, "mlp", nil
	}
	return p.named()
}

// named is a config.json or a preset, with sizes of flags in place of its own.
func (p *planning) named() (formula.Model, string, error) {
	m, err := readConfig(p.what)
	name := p.what
	if m == nil && err == nil {
		preset, failed := formula.Find(p.what)
		m, name, err = preset.Model, preset.Name, failed
	}
	if err != nil {
		return nil, "", err
	}
	switch m := m.(type) {
	case *formula.Decoder:
		p.resize(m)
	case *formula.ResNet:
		m.Image = p.image
	}
	return m, name, nil
}

// resize puts sizes of flags in place of a decoder's.
func (p *planning) resize(d *formula.Decoder) {
	for _, x := range [][2]*int{{&d.Layers, &p.sizes.Layers}, {&d.Width, &p.sizes.Width}, {&d.Heads, &p.sizes.Heads}, {&d.KVHeads, &p.sizes.KVHeads},
		{&d.HeadWidth, &p.sizes.HeadWidth}, {&d.FFN, &p.sizes.FFN}, {&d.Vocab, &p.sizes.Vocab}} {
		*x[0] = cmp.Or(*x[1], *x[0])
	}
	if d.Context > 8192 && p.setup.Context == 0 {
		p.setup.Context = 8192
	}
}

// readConfig is the model of a config.json or of the folder that has one; nil where there is no such file and the name is not one
// of a file.
func readConfig(path string) (formula.Model, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "config.json")
	}
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(path, `/\.`) || errors.Is(err, fs.ErrNotExist) && isPreset(path):
		return nil, nil
	case err != nil:
		return nil, advice.Failf("give a config.json, a preset such as gpt2, or a number of parameters such as 7B", "%s cannot be read: %v", path, err)
	}
	m, err := formula.Parse(raw)
	if err != nil {
		return nil, advice.Failf(advice.HintOf(err), "%s: %v", path, err)
	}
	return m, nil
}

func isPreset(name string) bool {
	_, err := formula.Find(name)
	return err == nil
}

// planReport is what --json has; "context" is bytes, and tokens are in settings.
type planReport struct {
	What       string `json:"what"`
	Parameters int64  `json:"parameters"`
	Floor      bool   `json:"floor"`

	Weights     int64 `json:"weights"`
	Gradients   int64 `json:"gradients"`
	Optimizer   int64 `json:"optimizer"`
	Casts       int64 `json:"casts"`
	Gathered    int64 `json:"gathered"`
	Activations int64 `json:"activations"`
	Logits      int64 `json:"logits"`
	Workspace   int64 `json:"workspace"`
	Context     int64 `json:"context"`

	Apart int64     `json:"apart"`
	Total int64     `json:"total"`
	When  string    `json:"when"`
	Range [2]*int64 `json:"range"`
	FLOPs float64   `json:"flops"`

	Settings planSettings   `json:"settings"`
	Cards    []cardEstimate `json:"cards"`

	estimate *formula.Estimate
	without  *formula.Estimate // without AMP, where that makes casts
}

type planSettings struct {
	Style      formula.Style     `json:"style"`
	Batch      int               `json:"batch"`
	Accumulate int               `json:"accumulate"`
	Tokens     int               `json:"context,omitempty"`
	AMP        formula.AMP       `json:"amp"`
	Params     string            `json:"params"`
	Recompute  formula.Recompute `json:"recompute"`
	Attention  string            `json:"attention"`
	Head       string            `json:"head"`
	Optimizer  string            `json:"optimizer"`
	Devices    int               `json:"devices"`
	ZeRO       int               `json:"zero"`
	TP         int               `json:"tp"`
}

// cardEstimate is what is said of a card.
type cardEstimate struct {
	Card         string      `json:"card"`
	Has          int64       `json:"has"` // bytes
	Fits         formula.Fit `json:"fits"`
	LargestBatch *int        `json:"largest_batch"`      // null: of a floor nobody knows
	SurelyBatch  *int        `json:"largest_batch_sure"` // even at the high end
	Seconds      *float64    `json:"step_seconds"`
	Range        *[2]float64 `json:"step_range"`
	PerSecond    *float64    `json:"per_second"` // tokens, or samples, of all devices
	MFU          *float64    `json:"mfu"`
	Days         *float64    `json:"days,omitempty"`

	time *formula.Time
}

// estimate makes the report.
func (p *planning) estimate(m formula.Model, name string, chosen []cards.Card) (*planReport, error) {
	s := p.setup
	s.Hopper = slices.ContainsFunc(chosen, func(c cards.Card) bool { return c.Compute[0] >= 9 })
	e, err := formula.New(m, s)
	if err != nil {
		return nil, err
	}
	var without *formula.Estimate
	if plain := s; e.Of("casts") > 0 {
		plain.AMP = formula.Off
		if without, err = formula.New(m, plain); err != nil {
			return nil, err
		}
	}
	r := &planReport{without: without, What: name, Parameters: e.Parameters, Floor: e.Floor, Apart: e.Apart, Total: e.Total, When: e.When, FLOPs: e.FLOPs, estimate: e}
	for _, t := range []struct {
		at   *int64
		name string
	}{{&r.Weights, "weights"}, {&r.Gradients, "gradients"}, {&r.Optimizer, "optimizer"}, {&r.Casts, "casts"}, {&r.Gathered, "gathered"},
		{&r.Activations, "activations"}, {&r.Logits, "logits"}, {&r.Workspace, "workspace"}, {&r.Context, "context"}} {
		*t.at = e.Of(t.name)
	}
	r.Range[0] = &e.Low
	if !e.Floor {
		r.Range[1] = &e.High
	}
	r.Settings = planSettings{s.Style, s.Batch, s.Accumulate, p.context(m), s.AMP, p.params, s.Recompute, p.attention, p.head, s.Optimizer, max(s.Devices, s.TP), s.ZeRO, s.TP}
	if s.Whole {
		r.Settings.Attention = "whole"
	}
	for _, c := range chosen {
		row, err := p.on(m, &c)
		if err != nil {
			return nil, err
		}
		r.Cards = append(r.Cards, row)
	}
	return r, nil
}

// context is the tokens of a sample, 0 of one that has none.
func (p *planning) context(m formula.Model) int {
	if d, ok := m.(*formula.Decoder); ok {
		return cmp.Or(p.setup.Context, d.Context)
	}
	return p.setup.Context
}

// on is what is said of a card.
func (p *planning) on(m formula.Model, card *cards.Card) (row cardEstimate, err error) {
	s := p.setup
	s.Hopper = card.Compute[0] >= 9
	e, err := formula.New(m, s)
	if err != nil {
		return row, err
	}
	row = cardEstimate{Card: card.Name, Has: card.Memory, Fits: e.Fits(card)}
	if e.Floor {
		return row, nil
	}
	likely, sure, _, err := formula.Largest(m, s, card)
	if err != nil {
		return row, err
	}
	row.LargestBatch, row.SurelyBatch = &likely, &sure
	row.time, err = formula.Last(m, s, card, p.efficiency)
	if err != nil {
		return row, err
	}
	p.paced(m, &row)
	return row, p.lasting(&row)
}

// paced fills in what follows from a step's time.
func (p *planning) paced(m formula.Model, row *cardEstimate) {
	x, s := row.time, p.setup
	replicas := max(s.Devices, s.TP) / s.TP
	rate := float64(s.Batch*replicas*max(p.context(m), 1)) / x.Step
	mfu := x.Model / (x.Step * x.Peak)
	row.Seconds, row.Range, row.PerSecond, row.MFU = &x.Step, &[2]float64{x.Low, x.High}, &rate, &mfu
}

// lasting adds the days of the whole training, if they were asked for.
func (p *planning) lasting(row *cardEstimate) error {
	if p.tokens == "" {
		return nil
	}
	n, ok := formula.ParseCount(p.tokens)
	if !ok || n <= 0 {
		return advice.Failf("as in 300B", "--tokens is %q, which is no number", p.tokens)
	}
	days := n / *row.PerSecond / (24 * time.Hour).Seconds()
	row.Days = &days
	return nil
}

// estimated shows a report.
func (s *screen) estimated(r *planReport) {
	e := r.estimate
	s.say("%s, %s parameters, style %s, by formula: nothing was run", r.What, render.Count(r.Parameters), r.Settings.Style)
	var bars []render.Bar
	for _, t := range e.Terms {
		if t.Bytes > 0 {
			bars = append(bars, render.Bar{Label: t.Name, Value: float64(t.Bytes), Text: fmt.Sprintf("%10s  %s", render.Bytes(t.Bytes), t.Why)})
		}
	}
	fmt.Fprint(s.text, "\n", render.Bars(short(bars, s.tableWidth()), s.tableWidth()), "\n")
	switch {
	case e.Floor:
		s.say("%s is the floor: weights, gradients and optimizer of each device. Activations, workspace and the driver come on top; give sizes, a preset or a config.json to have them.", render.Bytes(e.Total))
	default:
		s.say("%s at most at once, %s; from %s to %s. Mostly %s.", render.Bytes(e.Total), e.When, render.Bytes(e.Low), render.Bytes(e.High), mostly(e))
	}
	if e.Apart > 0 && !e.Floor {
		s.say("The bars make %s more: gradients come as activations go, and are never there with all of them.", render.Bytes(e.Apart))
	}
	if r.without != nil && r.without.Total < e.Total {
		s.say("Without --amp it would be %s: with so few tokens the casts of weights that autocast keeps are more than activations of two bytes save.", render.Bytes(r.without.Total))
	}
	s.rooms(r)
}

// short leaves the words of bars out where the terminal is narrow.
func short(bars []render.Bar, width int) []render.Bar {
	for i, b := range bars {
		bars[i].Text = render.Truncate(b.Text, max(width-34, 10))
	}
	return bars
}

// mostly names the three largest terms.
func mostly(e *formula.Estimate) string {
	terms := slices.Clone(e.Terms)
	sorting.By(terms, func(a, b formula.Term) int { return cmp.Compare(b.Bytes, a.Bytes) })
	var names []string
	for _, t := range terms[:3] {
		if t.Bytes > 0 {
			names = append(names, fmt.Sprintf("%s (%s)", t.Name, render.Bytes(t.Bytes)))
		}
	}
	return advice.List(names)
}

// rooms shows what is said of cards.
func (s *screen) rooms(r *planReport) {
	t := render.Table{Header: []string{"card", "has", "fits", "batch", "surely", "a step", "or from", "to", "MFU", "a second", "days"},
		Right: []bool{false, true, false, true, true, true, true, true, true, true, true}, Spare: []int{4, 8, 1, 6, 7}}
	whole := slices.ContainsFunc(r.Cards, func(c cardEstimate) bool { return c.Days != nil })
	for _, c := range r.Cards {
		row := []string{c.Card, render.Bytes(c.Has), string(c.Fits), "", "", "", "", "", "", "", ""}
		if c.time != nil {
			text := func(v float64) string { return render.Duration(seconds(v)) }
			row = append(row[:3], strconv.Itoa(*c.LargestBatch), strconv.Itoa(*c.SurelyBatch), text(c.time.Step), text(c.time.Low), text(c.time.High),
				fmt.Sprintf("%.0f %%", 100**c.MFU), render.Rate(*c.PerSecond), days(c.Days))
		}
		if !whole {
			row = row[:10]
		}
		t.Rows = append(t.Rows, row)
	}
	if !whole {
		t.Header, t.Right = t.Header[:10], t.Right[:10]
	}
	if r.Floor {
		t.Header, t.Right, t.Spare = t.Header[:3], t.Right[:3], nil
		for i := range t.Rows {
			t.Rows[i] = t.Rows[i][:3]
		}
		fmt.Fprint(s.text, "\n", t.String(s.tableWidth()))
		return
	}
	fmt.Fprint(s.text, "\n", t.String(s.tableWidth()), "\n")
	unit := "samples"
	if r.Settings.Tokens > 0 {
		unit = "tokens"
	}
	s.say("batch: the largest that fits, as estimated and surely (at the high end). Times are a roofline's; a second: %s, of all devices.", unit)
}

func days(d *float64) string {
	if d == nil {
		return ""
	}
	return render.Rate(*d)
}

// flopsReport is what --flops --json has.
type flopsReport struct {
	FLOPs      float64    `json:"flops"`
	Efficiency float64    `json:"efficiency"`
	Devices    int        `json:"devices"`
	Cards      []flopsRow `json:"cards"`
}

type flopsRow struct {
	Card       string     `json:"card"`
	Peak       float64    `json:"peak_flops"`
	DeviceDays float64    `json:"device_days"`
	Days       float64    `json:"days"`
	Range      [2]float64 `json:"days_range"` // of formula.Shares
}

// runFLOPs tells devices and days of a number of FLOPs.
func (p *planning) runFLOPs(s *screen, chosen []cards.Card) error {
	n, ok := formula.ParseCount(p.flops)
	switch {
	case p.what != "":
		return advice.Failf("leave one of them out", "WHAT (%s) and --flops are given both", p.what)
	case !ok || n <= 0:
		return advice.Failf("as in 3.1e23", "--flops is %q, which is no number of operations", p.flops)
	case p.efficiency < 0 || p.efficiency > 1 || p.setup.Devices < 0:
		return advice.Failf("as in --efficiency 40% --devices 8", "--efficiency or --devices is out of range")
	}
	r := flopsReport{n, cmp.Or(p.efficiency, formula.Efficiency), max(p.setup.Devices, 1), nil}
	t := render.Table{Header: []string{"card", "peak", "device days", "days", "or from", "to"}, Right: []bool{false, true, true, true, true, true}}
	for _, c := range chosen {
		row := p.flopsOn(n, &c, &r)
		r.Cards = append(r.Cards, row)
		t.Rows = append(t.Rows, []string{c.Name, fmt.Sprintf("%.0f TFLOP/s", row.Peak/1e12), render.Rate(row.DeviceDays), render.Rate(row.Days), render.Rate(row.Range[0]), render.Rate(row.Range[1])})
	}
	if err := s.emit(r); err != nil {
		return err
	}
	products, devices := string(p.setup.AMP), "devices"
	if p.setup.AMP == formula.Off {
		products = "float32"
	}
	if r.Devices == 1 {
		devices = "device"
	}
	s.say("%.3g FLOPs on %d %s whose products (%s) reach %.0f %% of their peak:", n, r.Devices, devices, products, 100*r.Efficiency)
	fmt.Fprint(s.text, "\n", t.String(s.tableWidth()))
	return s.failure()
}

func (p *planning) flopsOn(n float64, c *cards.Card, r *flopsReport) flopsRow {
	low, high := formula.Shares(p.efficiency)
	at := func(share float64) float64 {
		return formula.DeviceSeconds(n, c, p.setup.AMP, share) / (24 * time.Hour).Seconds()
	}
	all := at(r.Efficiency)
	over := float64(r.Devices)
	return flopsRow{c.Name, formula.Peak(c, p.setup.AMP), all, all / over, [2]float64{at(high) / over, at(low) / over}}
}
