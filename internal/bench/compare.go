package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// CompareConfig says what runs where. Task and at least two Devices are needed.
type CompareConfig struct {
	Task     string
	Devices  []string // the first is what the others are compared with
	Sizes    []int    // the task's own if empty
	Seed     uint64
	Progress func(done, of int, what string)
}

// Side is a program at a size on a device, and a line of JSON.
type Side struct {
	Task     string   `json:"task"`
	N        int      `json:"n"` // samples of a batch, or rows of a matrix
	Device   string   `json:"device"`
	Modelled bool     `json:"modelled"`  // by the virtual clock of a simulated card
	MS       float64  `json:"ms"`        // of a step, the median
	Low      float64  `json:"low_ms"`    // quartiles
	High     float64  `json:"high_ms"`   //
	Kernels  *float64 `json:"kernel_ms"` // that kernels run; null where the host computes
	Copies   *float64 `json:"copy_ms"`   // that copies to and from the host take
	Launches *float64 `json:"launch_ms"` // what is left: the device waits for the host, or starts
	Peak     int64    `json:"peak_bytes"`
	Value    float64  `json:"value"`   // the loss of the first step, or an element of the product: about the same everywhere
	Speedup  float64  `json:"speedup"` // the first device's step over this one's
}

// Crossing is from which size on a device is quicker than the first, and a line of JSON.
type Crossing struct {
	Task     string   `json:"task"`
	Device   string   `json:"device"`
	Against  string   `json:"against"`
	From     *float64 `json:"crossover_n"` // between two sizes by interpolation; null: at none of the sizes
	Always   bool     `json:"always"`      // at all of them
	Modelled bool     `json:"modelled"`
}

// A program is what can be compared: steps on n of a unit, whose input comes from the host each time.
type program struct {
	name, help, unit string
	sizes            []int
	// make draws weights and input; step returns a value to look at, which may be read.
	make func(env *tensor.Env, n int, r *rand.Rand) (step func(e *tensor.Env) *tensor.Tensor)
}

var programs = []program{
	{"matmul", "a product of two n×n matrices of float32, there and back", "rows", []int{16, 32, 64, 128, 256, 512, 1024}, matmulProgram},
	{"mlp", "training 784-512-512-10 with SGD on batches of n", "samples", []int{1, 4, 16, 64, 256}, trainingProgram(mlp, sgd, 784)},
	{"convnet", "training two convolutions and two linear layers on batches of n pictures of 28×28, AdamW", "samples", []int{1, 4, 16, 64}, trainingProgram(convnet, adamw, 1, 28, 28)},
	{"gpt-128", "training a GPT of width 128, 4 layers and 4 heads on n texts of 256, AdamW", "texts", []int{1, 2, 4}, textProgram(small)},
}

// Programs are the names of what can be compared.
func Programs() (names []string) {
	for _, p := range programs {
		names = append(names, p.name)
	}
	return names
}

// ProgramsHelp lists them, a line each.
func ProgramsHelp() string {
	var b strings.Builder
	for _, p := range programs {
		fmt.Fprintf(&b, "  %-8s  %s\n", p.name, p.help)
	}
	return b.String()
}

func matmulProgram(_ *tensor.Env, n int, r *rand.Rand) func(*tensor.Env) *tensor.Tensor {
	a, b := uniform(r, n*n), uniform(r, n*n)
	return func(e *tensor.Env) *tensor.Tensor {
		c := tensor.From(e, a, n, n).MatMul(tensor.From(e, b, n, n))
		c.Floats()
		return c.Slice(0, 0, 1).Slice(1, 0, 1)
	}
}

func uniform(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = r.Float32() - 0.5
	}
	return v
}

func below(r *rand.Rand, most, n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = r.Int64N(int64(most))
	}
	return v
}

func trainingProgram(build func(*tensor.Env) nn.Module, opt func(any) optim.Optimizer, shape ...int) func(*tensor.Env, int, *rand.Rand) func(*tensor.Env) *tensor.Tensor {
	return func(env *tensor.Env, n int, r *rand.Rand) func(*tensor.Env) *tensor.Tensor {
		m := build(env)
		o := opt(m)
		size := n
		for _, d := range shape {
			size *= d
		}
		x, y := uniform(r, size), below(r, 10, n)
		return func(e *tensor.Env) *tensor.Tensor {
			loss := nn.CrossEntropy(m.Forward(tensor.From(e, x, append([]int{n}, shape...)...)), tensor.From(e, y, n))
			loss.Backward()
			o.Step()
			return loss
		}
	}
}

func textProgram(c model.GPTConfig) func(*tensor.Env, int, *rand.Rand) func(*tensor.Env) *tensor.Tensor {
	return func(env *tensor.Env, n int, r *rand.Rand) func(*tensor.Env) *tensor.Tensor {
		g := model.NewGPT(env, c)
		o := optim.NewAdamW(nn.Params(g), optim.AdamWConfig{LR: 1e-3})
		tokens := below(r, c.Vocab, n*c.Context)
		return func(e *tensor.Env) *tensor.Tensor {
			x := tensor.From(e, tokens, n, c.Context)
			loss := g.Loss(x, x)
			loss.Backward()
			o.Step()
			return loss
		}
	}
}

// Compare runs a program with the same seed on each device, size by size, and tells each side.
func Compare(ctx context.Context, c CompareConfig, tell func(Side) error) ([]Crossing, error) {
	p, err := c.check()
	if err != nil {
		return nil, err
	}
	sizes := c.Sizes
	if len(sizes) == 0 {
		sizes = p.sizes
	}
	var sides []Side
	for _, n := range sizes {
		for i, name := range c.Devices {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if c.Progress != nil {
				c.Progress(len(sides), len(sizes)*len(c.Devices), fmt.Sprintf("%s %d on %s", c.Task, n, name))
			}
			s, err := p.side(name, n, c.Seed)
			if err != nil {
				return nil, err
			}
			if s.Speedup = 1; i > 0 {
				s.Speedup = sides[len(sides)-i].MS / s.MS
			}
			sides = append(sides, s)
			if err := tell(s); err != nil {
				return nil, err
			}
		}
	}
	return crossings(sides, c.Devices), nil
}

func (c *CompareConfig) check() (*program, error) {
	i := slices.IndexFunc(programs, func(p program) bool { return p.name == c.Task })
	if i < 0 {
		return nil, advice.Failf(advice.Meant(c.Task, Programs())+"there are "+advice.List(Programs()), "there is no task %q to compare", c.Task)
	}
	if len(c.Devices) < 2 {
		return nil, advice.Failf("give two or more, as in --devices cpu,sim:a100-80", "%d device to compare", len(c.Devices))
	}
	for _, n := range c.Sizes {
		if n < 1 || n > 1<<14 {
			return nil, advice.Failf("give sizes from 1 to 16384", "a size of %d", n)
		}
	}
	if err := machine.CheckEnvironment(); err != nil {
		return nil, err
	}
	for i, name := range c.Devices {
		n, err := device.ParseName(name)
		if err != nil {
			return nil, machine.Explain(name, err)
		}
		if n.Kind == "null" {
			return nil, advice.Failf("take sim:CARD, or warpline bench train for figures on paper", "%s computes nothing", name)
		}
		if c.Devices[i] = n.String(); slices.Contains(c.Devices[:i], c.Devices[i]) {
			return nil, advice.Failf("name each once", "%s is there twice", c.Devices[i])
		}
		if n.Kind == "cuda" { // before the others have computed for minutes
			if _, err := n.Open(); err != nil {
				return nil, machine.Explain(name, err)
			}
		}
	}
	return &programs[i], nil
}

// side runs a program on a device of its own.
func (p *program) side(name string, n int, seed uint64) (s Side, err error) {
	defer machine.Recovered(&err)
	env, err := tensor.Fresh(name)
	if err != nil {
		return s, machine.Explain(name, err)
	}
	env, scope := env.Seed(seed).Scope(0)
	defer func() {
		scope.End()
		env.Device().Collect()
	}()
	step := p.make(env, n, rand.New(rand.NewPCG(seed, uint64(n))))
	s = Side{Task: p.name, N: n, Device: name, Modelled: strings.HasPrefix(name, "sim")}
	run := &running{env: env, step: step, one: env.Ones(1)}
	env.Device().ResetPeak()
	s.Value = run.first()
	if !env.Device().OnHost() {
		return s, run.onDevice(&s)
	}
	run.onHost(&s)
	s.Peak = env.Device().Memory().Allocated.Peak
	return s, nil
}

// running is a program on a device.
type running struct {
	env  *tensor.Env
	step func(e *tensor.Env) *tensor.Tensor
	one  *tensor.Tensor
}

func (r *running) once() { scoped(r.env, func(e *tensor.Env) { r.step(e) })() }

// first is the value of the first step.
func (r *running) first() (value float64) {
	scoped(r.env, func(e *tensor.Env) { value = r.step(e).Item() })()
	return value
}

// Steps that are timed: warm-ups, then rounds of some, as long as they do not take too long.
const (
	warmUps    = 2
	roundSteps = 3
	sideRounds = 9
	patience   = 3 * time.Second
)

// onHost times the steps by the host's clock.
func (r *running) onHost(s *Side) {
	for range warmUps {
		r.once()
	}
	var took []float64
	for start := time.Now(); len(took) < 3 || len(took) < 5*sideRounds && time.Since(start) < patience/3; {
		began := time.Now()
		r.once()
		took = append(took, 1e3*time.Since(began).Seconds())
	}
	s.spread(took)
}

func (s *Side) spread(ms []float64) {
	slices.Sort(ms)
	s.MS, s.Low, s.High = quantile(ms, 0.5), quantile(ms, 0.25), quantile(ms, 0.75)
}

// onDevice times steps by the device's own clock, from a mark before some to a mark behind them, and then what one is made of.
func (r *running) onDevice(s *Side) error {
	if _, err := r.mark(); err != nil {
		return err
	}
	for range warmUps {
		r.once()
	}
	rounds := sideRounds
	if s.Modelled {
		rounds = 1 // the same in every round
	}
	var took []float64
	for start := time.Now(); len(took) < rounds && (len(took) == 0 || time.Since(start) < patience); {
		from, err := r.mark()
		if err != nil {
			return err
		}
		for range roundSteps {
			r.once()
		}
		to, err := r.mark()
		if err != nil {
			return err
		}
		r.env.Sync()
		d, err := to.Since(from)
		if err != nil {
			return err
		}
		took = append(took, 1e3*d.Seconds()/roundSteps)
	}
	s.spread(took)
	s.Peak = r.env.Device().Memory().Allocated.Peak
	return r.parts(s)
}

// mark is a point in the device's work: the end of a kernel that hardly takes time.
func (r *running) mark() (at device.Stamp, err error) {
	d := r.env.Device()
	stop, unseen := d.Time(), d.Observe(func(e *device.Event) { at = e.Ended }, device.KindLaunch)
	scoped(r.env, func(e *tensor.Env) { r.one.In(e).Add(r.one.In(e)) })()
	unseen()
	stop()
	if at == nil {
		return nil, advice.Failf("compare it by warpline bench", "%s does not tell when it computes", d.Name())
	}
	return at, nil
}

// parts finds what a step is made of: kernels, copies, and what is left.
func (r *running) parts(s *Side) error {
	d := r.env.Device()
	r.backlog(s.MS)
	var kernels, copies []device.Span
	stop, unseen := d.Time(), d.Observe(func(e *device.Event) {
		switch {
		case e.Began == nil:
		case e.Kind == device.KindCopy && e.What != device.CopyWithin:
			copies = append(copies, e.Span)
		default:
			kernels = append(kernels, e.Span)
		}
	}, device.KindLaunch, device.KindFill, device.KindCopy)
	r.once()
	unseen()
	stop()
	r.env.Sync()
	k, err := total(kernels)
	if err != nil {
		return err
	}
	c, err := total(copies)
	left := max(0, s.MS-k-c)
	s.Kernels, s.Copies, s.Launches = &k, &c, &left
	return err
}

// backlog keeps the device busy for about as long as a step takes, within reason: then work that the host gives it meanwhile runs
// without gaps, and from mark to mark of a piece is what the piece takes.
func (r *running) backlog(ms float64) {
	const (
		elements = 1 << 22
		least    = 0.02 // ms that adding so many takes on the quickest cards, about
		most     = 0.1  // ms, in which the host gives it some 40 pieces
	)
	busy := r.env.Zeros(elements)
	r.env.Sync()
	for spent := 0.0; spent < min(ms, most); spent += least {
		scoped(r.env, func(e *tensor.Env) { busy.In(e).Add(busy.In(e)) })()
	}
}

// total is the milliseconds of all.
func total(spans []device.Span) (ms float64, err error) {
	for _, x := range spans {
		d, err := x.Ended.Since(x.Began)
		if err != nil {
			return 0, err
		}
		ms += 1e3 * d.Seconds()
	}
	return ms, nil
}

// crossings finds for each device but the first from which size on it is quicker to the largest.
func crossings(sides []Side, devices []string) (list []Crossing) {
	for i, name := range devices {
		var of []Side
		for k := i; i > 0 && k < len(sides); k += len(devices) {
			of = append(of, sides[k])
		}
		if len(of) == 0 {
			continue
		}
		sorting.By(of, func(a, b Side) int { return a.N - b.N })
		x := Crossing{Task: of[0].Task, Device: name, Against: devices[0], Modelled: of[0].Modelled || strings.HasPrefix(devices[0], "sim")}
		at := len(of)
		for at > 0 && of[at-1].Speedup >= 1 {
			at--
		}
		switch {
		case at == 0:
			x.Always = true
		case at < len(of):
			from := between(&of[at-1], &of[at])
			x.From = &from
		}
		list = append(list, x)
	}
	return list
}

// between is the size at which the speed-up is 1, on a line through two sides in logarithms of both.
func between(a, b *Side) float64 {
	la, lb := math.Log(a.Speedup), math.Log(b.Speedup)
	return math.Exp(math.Log(float64(a.N)) + la/(la-lb)*(math.Log(float64(b.N))-math.Log(float64(a.N))))
}
