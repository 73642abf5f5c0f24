// Package bench measures how fast a device multiplies, computes, trains and reads, each figure beside the ceiling that the
// machine has just shown. On a device that computes nothing the figures are those of the paper model ([Paper]).
package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/tensor"
)

// Benches are what can be measured, in the order of the help.
var Benches = []string{"gemm", "ops", "train", "data"}

// Config says what to measure. The zero value of everything but Bench is a good choice.
type Config struct {
	Bench   string        // one of Benches
	Cases   []string      // by name; all that are not only for those who ask if empty
	N       int           // size of the cases, in each case's own measure; 0: its own sizes
	DType   string        // of the operands, of train that of products; "" is f32
	Device  string        // "" is the CPU
	Threads int           // of the CPU; 0: all
	Rounds  int           // turns of each case, 0: 9
	Time    time.Duration // of one turn at least; 0: a tenth of a second

	Progress func(done, of int, what string) // may be nil
}

// Row is a figure, and a line of JSON. Median, Low and High are of the turns, of copies Low and High the quartiles, Ceiling is in the same unit, and Share is the
// median's share of it; the two are nil where nothing limits but the program itself.
type Row struct {
	Bench    string   `json:"bench"`
	Case     string   `json:"case"`
	N        int      `json:"n"`
	DType    string   `json:"dtype"`
	Device   string   `json:"device"`
	Threads  int      `json:"threads"`
	Modelled bool     `json:"modelled"` // by the paper model: nothing was computed
	Median   float64  `json:"median"`
	Low      float64  `json:"low"`
	High     float64  `json:"high"`
	Unit     string   `json:"unit"`
	Ceiling  *float64 `json:"ceiling"`
	Share    *float64 `json:"share"`

	GFLOPS    float64 `json:"gflops,omitempty"`     // of gemm
	MS        float64 `json:"ms,omitempty"`         // of a turn of ops and train
	PeakBytes int64   `json:"peak_bytes,omitempty"` // of tensors, of train
	Direction string  `json:"direction,omitempty"`  // of copy: to-device, to-host, on-host
	Memory    string  `json:"memory,omitempty"`     // of the host, of copy: pinned, pageable
	Bytes     int64   `json:"bytes,omitempty"`      // of copy
	GBPS      float64 `json:"gbps,omitempty"`       // of copy

	Model   *Model   `json:"-"` // the terms of a modelled figure
	Profile *Profile `json:"-"` // where the time of a measured turn went, on the CPU
}

// Run measures the cases one after the other and tells each, and returns what the machine has shown. Between two turns it
// asks ctx.
func Run(ctx context.Context, c Config, tell func(Row) error) (*Ceilings, error) {
	r, err := c.runner()
	if err != nil {
		return nil, err
	}
	threads := par.Threads()
	defer par.SetThreads(threads)
	if r.Threads > 0 {
		par.SetThreads(r.Threads)
	}
	r.Threads = par.Threads()
	r.machine.Refresh()
	for i, j := range r.jobs {
		if c.Progress != nil {
			c.Progress(i, len(r.jobs), j.name())
		}
		row, err := r.measure(ctx, j)
		if err == nil {
			err = tell(row)
		}
		if err != nil {
			return r.machine, err
		}
	}
	return r.machine, nil
}

// job is a case at a size.
type job struct {
	*Case
	n int
}

func (j job) name() string { return fmt.Sprintf("%s %s %d", j.Bench, j.Name, j.n) }

// runner is a Config that was found good.
type runner struct {
	Config
	dt      dtype.DType
	jobs    []job
	machine *Ceilings
	planned bool // figures are modelled
}

// runner checks a Config and completes it.
func (c Config) runner() (r *runner, err error) {
	r = &runner{Config: c}
	if !slices.Contains(Benches, c.Bench) {
		all := append(slices.Clone(Benches), Copy)
		return nil, advice.Failf(advice.Meant(c.Bench, all)+"there are "+advice.List(all), "there is no bench %q", c.Bench)
	}
	if r.dt, err = parseDType(c.DType); err != nil {
		return nil, err
	}
	if c.N < 0 || c.N > largest {
		return nil, advice.Failf(fmt.Sprintf("give a size from 1 to %d", largest), "--n is %d", c.N)
	}
	if c.Threads < 0 {
		return nil, advice.Failf("give 1 or more, or leave it out for all", "--threads is %d", c.Threads)
	}
	if err := r.open(); err != nil {
		return nil, err
	}
	if r.Rounds <= 0 {
		r.Rounds = 9
	}
	if r.Time <= 0 {
		r.Time = 100 * time.Millisecond
	}
	return r, r.choose()
}

// largest bounds sizes, so that products of two stay integers.
const largest = 1 << 30

func parseDType(name string) (dtype.DType, error) {
	if name == "" {
		return dtype.F32, nil
	}
	known := []string{"f32", "f64", "bf16", "f16"}
	if !slices.Contains(known, name) {
		return 0, advice.Failf(advice.Meant(name, known)+"give "+advice.List(known), "--dtype is %q", name)
	}
	return dtype.Parse(name)
}

// open looks at the device. The times of a simulated card say nothing of a card: its figures are those of the paper
// model, of the same plans.
func (r *runner) open() error {
	if r.Device == "" {
		r.Device = "cpu"
	}
	if err := machine.CheckEnvironment(); err != nil {
		return err
	}
	name, err := device.ParseName(r.Device)
	if err != nil {
		return machine.Explain(r.Device, err)
	}
	if name.Kind == "sim" {
		name.Kind = "null"
	}
	r.planned = name.Kind == "null"
	if r.planned {
		r.Device = name.String()
	}
	env, err := tensor.Fresh(r.Device)
	if err != nil {
		return machine.Explain(r.Device, err)
	}
	r.machine, err = newCeilings(env)
	return err
}

// choose lists the jobs.
func (r *runner) choose() error {
	var cases []*Case
	for _, c := range All(r.Bench) {
		if slices.Contains(r.Cases, c.Name) || len(r.Cases) == 0 && r.unasked(c) {
			cases = append(cases, c)
		}
	}
	for _, name := range r.Cases {
		i := slices.IndexFunc(cases, func(c *Case) bool { return c.Name == name })
		switch {
		case i < 0:
			return advice.Failf(advice.Meant(name, Names(r.Bench))+"there are "+advice.List(Names(r.Bench)), "%s has no case %q", r.Bench, name)
		case !cases[i].takes(r.dt):
			return advice.Failf("leave --dtype out", "case %s is not for %v", name, r.dt)
		case r.planned && cases[i].Host:
			return advice.Failf("take --device cpu", "case %s is of the host: a device without arithmetic has no figure of it", name)
		}
	}
	for _, c := range cases {
		sizes := c.Sizes
		if r.N > 0 {
			sizes = []int{r.N}
		}
		for _, n := range sizes {
			r.jobs = append(r.jobs, job{c, n})
		}
	}
	if len(r.jobs) == 0 {
		return advice.Failf("give another --dtype or --device", "no case of %s is for %v on %s", r.Bench, r.dt, r.Device)
	}
	return nil
}

// unasked tells whether a case is measured when none is named.
func (r *runner) unasked(c *Case) bool {
	return !c.Asked && c.takes(r.dt) && !(r.planned && c.Host) && !(r.N > 0 && c.Own)
}

// Names are those of a bench's cases.
func Names(bench string) (names []string) {
	for _, c := range All(bench) {
		names = append(names, c.Name)
	}
	return names
}

// Find is a case by bench and name; nil if there is none.
func Find(bench, name string) *Case {
	i := slices.IndexFunc(cases, func(c *Case) bool { return c.Bench == bench && c.Name == name })
	if i < 0 {
		return nil
	}
	return cases[i]
}

// All are the cases of a bench.
func All(bench string) (list []*Case) {
	for _, c := range cases {
		if c.Bench == bench {
			list = append(list, c)
		}
	}
	return list
}

// cases are all of them, in the order of their files.
var cases = slices.Concat(products, operations, steps, loaders)

// Help lists the cases of a bench, a line each.
func Help(bench string) string {
	var b strings.Builder
	for _, c := range All(bench) {
		fmt.Fprintf(&b, "  %-18s  %s\n", c.Name, c.Help)
	}
	return b.String()
}
