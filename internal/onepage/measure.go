package onepage

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/digits"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/diagnose"
	"github.com/warpline-ml/warpline/internal/doctor"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/monitor"
	"github.com/warpline-ml/warpline/internal/nvml"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// Config is what a report is asked for.
type Config struct {
	Device  string            // where to measure; "" is the best there is
	Machine *doctor.Diagnosis // what is said of it; nil: nobody looked
	Files   []string          // to read, to judge and to draw
	Stdin   io.Reader
	Version string // of the program
	Now     time.Time
	Note    func(text string) // what is under way; may be nil

	OnlyFiles bool // nothing is said of the machine, and nothing is measured
}

// New looks at the machine and measures, unless only files are asked for, and reads those. The error is of a device that was
// asked for and does not open, or of ctx; what fails on one that was not asked for is a note in the report. Files that cannot
// be read are an error too.
func New(ctx context.Context, c Config) (*Report, error) {
	if c.Note == nil {
		c.Note = func(string) {}
	}
	r := &Report{Made: c.Now, Version: c.Version, Environment: []Row{}, Findings: []finding.Finding{}, Checked: []string{}}
	if err := r.read(ctx, &c); err != nil {
		return nil, err
	}
	if c.OnlyFiles {
		return r, nil
	}
	r.Device, r.Why = c.Device, "as it was asked for"
	if d := c.Machine; d != nil {
		r.Findings, r.Checked, r.Verdict, r.Notes = d.Findings, d.Checked, &d.Verdict, slices.Clone(d.Notes)
	}
	c.Note("looking at the devices")
	snapshot := monitor.New().Sample()
	if c.Device == "" {
		r.choose(snapshot)
	}
	env, err := tensor.Open(r.Device)
	if err != nil {
		return nil, machine.Explain(r.Device, err)
	}
	r.environment(env, snapshot, c.Machine)
	return r, r.measure(ctx, env, c.Note)
}

// read reads the files, if there are any, and draws them.
func (r *Report) read(ctx context.Context, c *Config) error {
	if len(c.Files) == 0 {
		return nil
	}
	c.Note("reading files")
	d := diagnose.Config{Stdin: c.Stdin}
	drawn := 0
	err := d.Run(ctx, c.Files, func(f *finding.Report, part bool) error {
		r.Files = append(r.Files, f)
		p := pictureOf(f)
		if p == nil {
			return nil
		}
		if len(p.Ranks) == 0 {
			drawn++
		}
		if drawn > mostPictures && len(p.Ranks) == 0 {
			f.Notes = append(f.Notes, fmt.Sprintf("not drawn: the page has pictures of the first %d files", mostPictures))
			return nil
		}
		r.Pictures = append(r.Pictures, p)
		return nil
	})
	for _, f := range r.Files {
		f.Detail = nil
	}
	sorting.By(r.Files, func(a, b *finding.Report) int { return groupFirst(a) - groupFirst(b) })
	return err
}

// groupFirst puts what files say together before what each says.
func groupFirst(f *finding.Report) int {
	if f.Kind == "group" {
		return 0
	}
	return 1
}

// measure runs what is measured.
func (r *Report) measure(ctx context.Context, env *tensor.Env, note func(text string)) error {
	for _, part := range []struct {
		what string
		do   func(env *tensor.Env) error
	}{{"measuring an operation", r.operate}, {"training some steps", r.train}} {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		note(part.what)
		if err := guarded(env, part.do); err != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("%s failed: %v", part.what, err))
		}
	}
	return nil
}

// guarded gives an error in place of a panic of package tensor.
func guarded(env *tensor.Env, do func(env *tensor.Env) error) (err error) {
	defer machine.Recovered(&err)
	return do(env)
}

// choose takes the best device there is.
func (r *Report) choose(s *monitor.Snapshot) {
	name, passed := machine.Best()
	r.Device, r.Why = name, "the best device that this machine has for it"
	if strings.HasPrefix(name, "cuda") {
		return
	}
	r.Why = "no card that can be used was found, so that everything here is of the processor"
	if passed != nil {
		r.Notes = append(r.Notes, passed.Error())
	} else if s.NoCards != "" && r.Verdict == nil {
		r.Notes = append(r.Notes, "No cards: "+s.NoCards)
	}
}

// environment is what the machine is.
func (r *Report) environment(env *tensor.Env, s *monitor.Snapshot, d *doctor.Diagnosis) {
	add := func(name, format string, args ...any) {
		r.Environment = append(r.Environment, Row{name, fmt.Sprintf(format, args...)})
	}
	add("Warpline", "%s, %s", r.Version, runtime.Version())
	if d != nil {
		add("system", "%s", d.Machine)
	} else {
		add("system", "%s/%s", runtime.GOOS, runtime.GOARCH)
	}
	p := cpufeat.Describe()
	add("processor", "%s, %d cores, %d threads, instructions up to %s", orUnknown(p.Model), p.Cores, p.Threads, cpufeat.Active())
	if m := s.Host.Memory; m != nil {
		text := render.Bytes(*m)
		if s.Host.Used != nil {
			text += ", of which " + render.Bytes(*s.Host.Used) + " are in use"
		}
		add("memory", "%s", text)
	}
	switch {
	case s.Driver != "":
		add("driver", "NVIDIA %s, CUDA up to %s", s.Driver, orUnknown(s.CUDA))
	default:
		add("driver", "none of NVIDIA's: %s", orUnknown(s.NoCards))
	}
	for _, d := range s.Devices {
		if s.Driver != "" && (d.Kind == monitor.Card || d.Kind == monitor.Instance) { // others are devices of programs that imitate some
			add("card "+d.ID, "%s", card(&d))
		}
	}
	add("measured on", "%s: %s", env.Device().Info(), r.Why)
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// card is one line of a card.
func card(d *monitor.Device) string {
	text := d.Name
	for _, f := range []struct {
		key   nvml.Key
		words string
		of    func(v float64) string
	}{
		{nvml.MemoryTotal, "", func(v float64) string { return render.Bytes(int64(v)) }},
		{nvml.MemoryUsed, " in use", func(v float64) string { return render.Bytes(int64(v)) }},
		{nvml.Utilization, " busy", func(v float64) string { return fmt.Sprintf("%.0f %%", v) }},
		{nvml.Temperature, "", func(v float64) string { return fmt.Sprintf("%.0f °C", v) }},
		{nvml.Power, "", func(v float64) string { return fmt.Sprintf("%.0f W", v) }},
	} {
		if v, ok := d.Value(f.key); ok {
			text += ", " + f.of(v) + f.words
		}
	}
	if d.Failed != "" {
		text += ", " + d.Failed
	}
	return text
}

// rounds is how often the operation is timed, after two rounds that are not.
const rounds = 9

// simulated tells a card that the processor plays.
func simulated(env *tensor.Env) bool { return strings.HasPrefix(env.Device().Name(), "sim") }

// operate times a product of matrices.
func (r *Report) operate(env *tensor.Env) error {
	n := 1024
	if simulated(env) {
		n = 128
	}
	o := &Operation{Size: n, Device: r.Device, Times: rounds, Modelled: simulated(env)}
	var took, asked []float64
	env = env.NoGrad()
	a, b := env.Randn(n, n), env.Randn(n, n)
	for i := range rounds + 2 {
		env.Do(func(env *tensor.Env) *tensor.Tensor {
			env.Sync()
			began := time.Now()
			a.In(env).MatMul(b)
			returned := time.Since(began)
			env.Sync()
			if i >= 2 {
				asked, took = append(asked, returned.Seconds()), append(took, time.Since(began).Seconds())
			}
			return nil
		})
	}
	slices.Sort(took)
	slices.Sort(asked)
	o.Median, o.Least, o.Most, o.Asked = took[rounds/2], took[0], took[rounds-1], asked[rounds/2]
	o.FLOPS = 2 * float64(n) * float64(n) * float64(n) / o.Median
	p := env.Device().Properties()
	if c, ok := cards.Match(p.Compute, p.Multiprocessors, p.Memory); ok && !o.Modelled {
		o.Peak = c.Vector()
	}
	r.Operation = o
	return nil
}

// The training's steps: those before the window, and in it.
const (
	batch  = 64 // 4 on a simulated card
	before = 3
	inside = 3
)

// train makes some steps of a small convolutional network on drawn digits, and records the last ones.
func (r *Report) train(env *tensor.Env) error {
	m := model.NewConvnet(env, model.Digits)
	opt := optim.NewAdamW(nn.Params(m), optim.AdamWConfig{LR: 1e-3})
	size := batch
	if simulated(env) {
		size = 4
	}
	source, _ := digits.Split(size*(before+inside), 1)
	p := prof.New(prof.Config{Skip: before - 1, Warmup: 1, Active: inside, Repeat: 1})
	h := prof.NewHistory(prof.HistoryConfig{})
	defer h.Stop()
	defer p.Discard()
	for b, err := range data.Batches(env.Profiled(p).Profiled(h), source, data.Config{Size: size, Steps: before + inside}) {
		if err != nil {
			return err
		}
		nn.CrossEntropy(m.Forward(b.X), b.Y).Backward()
		opt.Step()
		p.Step()
	}
	p.Stop()
	window := p.Last()
	if window == nil {
		return fmt.Errorf("no step was recorded")
	}
	timelines, err := h.Timelines(400)
	if err != nil {
		return err
	}
	f := window.Facts()
	x := &Training{Model: "A small convolutional network on drawn digits, AdamW", Batch: size, Steps: f.Steps, Modelled: f.Modelled,
		Parameters: parameters(m), Step: (f.Took / time.Duration(max(f.Steps, 1))).Seconds(), Shares: shares(f), Memory: timelines[0]}
	x.Terms = terms(env.Device(), x.Memory)
	x.Findings, x.Checked = window.Findings(), window.Checked()
	r.Training = x
	x.Strip, err = stripOf(window)
	return err
}

func parameters(m nn.Module) (n int) {
	for _, p := range nn.Params(m) {
		n += p.Size()
	}
	return n
}

// terms are the parts of the device's memory, with those of the training.
func terms(d *tensor.Device, t *prof.Timeline) []Term {
	kinds := map[string]int64{}
	for _, h := range t.Top {
		kinds[h.Label] += h.Bytes
	}
	m := d.Memory()
	known := func(name, label, grows, less string) Term { return Term{name, kinds[label], true, grows, less} }
	all := []Term{
		known("weights", device.LabelParameter, "parameters", "narrower weights (--params bf16), sharing them over devices (ZeRO-3)"),
		known("gradients", device.LabelGradient, "parameters", "--step-in-backward; sharing them (ZeRO-2)"),
		known("optimizer states", device.LabelState, "parameters; made by the first step, behind a forward and a backward pass that fitted", "SGD in place of Adam, --offload, sharing them (ZeRO-1)"),
		known("activations", device.LabelSaved, "batch × tokens or pixels × layers", "smaller --batch with --accumulate, --recompute, --amp"),
		known("batches", device.LabelBatch, "batch, and how many are brought ahead", "smaller --batch"),
		known("workspace of kernels", device.LabelWorkspace, "sizes of products and convolutions; most in the first step", "smaller --batch"),
		known("values on their way", device.LabelOther, "the widest layer: scores of a language model are vocabulary × tokens", "--head chunked"),
		{"kept ready by the allocator", max(0, m.Reserved.Current-t.Peak), true, "shapes that change from step to step", "shapes that do not, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in PyTorch"},
	}
	if !d.OnHost() {
		all = append(all, Term{"driver's context", cards.Context, false, "kernels that are loaded, libraries", "fewer processes on the card"},
			Term{"other processes", 0, false, "whoever shares the card", "warpline top names them"})
	}
	return all
}
