// Package simrun runs one kernel of a PTX file on the simulated GPU, with arguments given as words, and reports what
// the checks found and what the kernel did. It is what the command "warpline sim" does, as values.
//
//	word.go     an argument word: "@a.npy", "f32[4096]=0", "i32:5"
//	bind.go     words against the kernel's parameters
//	module.go   the PTX file, the choice of the kernel, Triton's metadata
//	explain.go  what a PTX file contains
//	model.go    what a run would take on the card, and what its lines did
//	hints.go    advice about lines
//	against.go  the same of another kernel
//	device.go   the same kernel on a card, and where its results differ
//	cards.go    the cards
//	text.go     results for people
package simrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Config says what to run.
type Config struct {
	File      string   // of PTX
	Kernel    string   // empty: the file's only kernel
	Grid      string   // X[,Y,Z] blocks; empty: one
	Block     string   // X[,Y,Z] threads; empty: .reqntid, or the warps in Meta
	Shared    int      // bytes of dynamic shared memory; negative: those in Meta, else none
	Meta      string   // a JSON file of metadata, as Triton writes it; empty: none
	Card      string   // a name of package cards
	Checks    string   // all, none, or names with commas
	Seed      uint64   // of the order of blocks, warps and lanes; 0: the natural order
	Schedule  string   // reconverge or independent
	Numerics  string   // of tensor cores: float32, exact or truncating; empty: float32
	StepLimit int64    // instructions of all warps of one block; 0: DefaultStepLimit
	Args      []string // the kernel's arguments as words
	Sample    int      // run only so many blocks, chosen by the grid, and scale what is counted; 0: all
	Lines     int      // of the source that Text shows; 0: ten
	Registers int      // of a thread, as an assembler has told; 0: ptxas is asked where it is in the PATH, or they are estimated
	Warm      bool     // for its time the launch is one of many: what it touches is in L2, if it fits
	Against   string   // another PTX file, whose kernel is compared under the same arguments; empty: none

	Device         string  // on which the kernel runs too, as package tensor opens it, for its results to be compared; empty: none
	Tolerance      float64 // of the comparison, of numbers beyond 1 as a share
	ToleranceGiven bool    // else each type has its own

	AgainstGrid, AgainstBlock, AgainstMeta string // of that kernel, where they differ

	Outs []string // "K": argument K, from 0, is shown; "K=c.npy": it goes to c.npy too

	Progress func(kernel string, done, all int64) // told now and then how many blocks have ended, on its own goroutine; may be nil
}

// every is how often Progress is told.
const every = 200 * time.Millisecond

// DefaultStepLimit is what a block may execute if nothing else is said: some ten seconds' worth of arithmetic, and far more
// than a block of a kernel that has a grid does.
const DefaultStepLimit = 1e9

// Run runs the kernel. What the checks find is in the Result, without an error. An error is an *advice.Error, or ctx's, whose
// Result holds what was found until then; no output is written then.
func Run(ctx context.Context, c Config) (*Result, error) {
	j, err := prepare(c)
	if err != nil {
		return nil, err
	}
	return j.run(ctx, c)
}

func (j *job) run(ctx context.Context, c Config) (*Result, error) {
	t, err := j.openTwin(c)
	if err != nil {
		return nil, err
	}
	asked := make(chan map[string]int, 1)
	go func() {
		if c.Registers > 0 {
			asked <- nil
			return
		}
		asked <- j.file.registers(ctx, j.dev.Card)
	}()
	rep, err := j.launch(ctx, c.Progress)
	registers := <-asked
	var fault *gpusim.Fault
	stopped := errors.Is(err, gpusim.ErrStopped)
	if err != nil && !stopped && !errors.As(err, &fault) {
		return nil, refused(err)
	}
	r := j.result(rep, fault)
	r.Lines = j.file.counted(rep.Lines())
	by := byPtxas
	if c.Registers > 0 {
		registers, by = map[string]int{j.kernel.Name: c.Registers}, told
	}
	if n, ok := registers[j.kernel.Name]; ok {
		r.Registers, r.RegistersBy = n, by
		r.Occupancy = j.occupancy(n, r.Shared)
	}
	rep.Work.Warm = c.Warm
	r.Model = newModel(&j.card, rep.Work, r.Registers)
	r.shownLines = c.Lines
	r.Advice = j.file.hints(rep, &spent{&j.card, rep.Counters, r.Lines, r.Model, rep.Work, r.Registers}, j.kernel.Name)
	if stopped {
		r.Notes = append(r.Notes, "interrupted: findings and counts are of the blocks that had ended, and no output is written")
		return r, ctx.Err()
	}
	if j.shared == 0 && j.file.dynamic(j.file.module.Func(j.kernel.Name), map[*ptx.Func]bool{}) {
		r.Notes = append(r.Notes, "the kernel uses dynamic shared memory, and none is given: --shared does, or --meta for Triton's files")
	}
	if fault != nil {
		if fault.StepLimit > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("a kernel that is long but not endless ends under a higher --step-limit than %d", fault.StepLimit))
		}
		for _, o := range j.outs {
			if o.path != "" {
				r.Notes = append(r.Notes, fmt.Sprintf("%s is not written: the kernel did not end", o.path))
			}
		}
		return r, nil
	}
	if rep.Counted > 0 && rep.Counted < j.blocks() {
		r.Notes = append(r.Notes, fmt.Sprintf("%d of %d blocks ran: checks saw no others", rep.Counted, j.blocks()))
	}
	if c.Against != "" {
		if r.Against, err = against(ctx, c, r); err != nil {
			return nil, err
		}
	}
	switch {
	case t != nil && r.Found > 0:
		r.Notes = append(r.Notes, "it was not run on "+t.name+", which a kernel with findings may take along")
	case t != nil:
		if r.Device, err = j.again(ctx, t, c); err != nil {
			return nil, err
		}
	}
	return r, j.writeOuts(r)
}

func (j *job) threads() int { return j.block[0] * j.block[1] * j.block[2] }
func (j *job) blocks() int  { return j.grid[0] * j.grid[1] * j.grid[2] }

// job is a launch that has been checked as far as it can be without running it.
type job struct {
	card    cards.Card
	file    *file
	kernel  *gpusim.Kernel
	dev     *gpusim.Device
	grid    [3]int
	block   [3]int
	shared  int
	options gpusim.Options
	args    []argument
	params  []byte
	outs    []out
}

func prepare(c Config) (*job, error) {
	o, err := options(c)
	if err != nil {
		return nil, err
	}
	card, err := findCard(c.Card)
	if err != nil {
		return nil, err
	}
	f, err := openFile(c.File)
	if err != nil {
		return nil, err
	}
	m, err := readMeta(c.Meta)
	if err != nil {
		return nil, err
	}
	j := &job{card: card, file: f, options: o, dev: gpusim.NewDevice(simulated(card), o.Checks&gpusim.Initcheck != 0)}
	fn, err := f.choose(c.Kernel, m)
	if err != nil {
		return nil, err
	}
	prog, err := f.load(j.dev)
	if err != nil {
		return nil, err
	}
	j.kernel = prog.Kernel(fn.Name)
	if err := f.refused(j.dev, j.kernel.Refused()); err != nil {
		return nil, err
	}
	if err := j.dimensions(c, m); err != nil {
		return nil, err
	}
	return j, j.bindAll(c, fn, m)
}

func (j *job) bindAll(c Config, fn *ptx.Func, m *meta) error {
	words, err := parseWords(c.Args)
	if err != nil {
		return err
	}
	if words, err = m.described(words, fn); err != nil {
		return err
	}
	if words, err = m.scratch(words, fn, j.grid); err != nil {
		return err
	}
	if err := match(fn, words); err != nil {
		return m.missed(err, fn, words)
	}
	if j.outs, err = parseOuts(c.Outs, words); err != nil {
		return err
	}
	return j.bind(words)
}

func options(c Config) (o gpusim.Options, err error) {
	o = gpusim.Options{Seed: c.Seed, StepLimit: c.StepLimit, Counters: true, Sample: c.Sample, Skip: c.Sample > 0}
	if o.Checks, err = ParseChecks(c.Checks); err != nil {
		return o, err
	}
	switch c.Schedule {
	case "", "reconverge":
	case "independent":
		o.Schedule = gpusim.Independent
	default:
		return o, advice.Failf("use --schedule reconverge or --schedule independent", "no schedule %q", c.Schedule)
	}
	switch c.Numerics {
	case "", "float32":
	case "exact":
		o.Numerics = gpusim.Exact
	case "truncating":
		o.Numerics = gpusim.Truncating
	default:
		return o, advice.Failf("use --numerics float32, exact or truncating", "no numerics %q", c.Numerics)
	}
	if c.StepLimit == 0 {
		o.StepLimit = DefaultStepLimit
	}
	if c.Registers < 0 || c.Registers > cards.MaxRegisters {
		return o, advice.Failf(fmt.Sprintf("give 1 to %d, or leave it out", cards.MaxRegisters), "--registers is %d", c.Registers)
	}
	if c.Sample < 0 || c.Lines < 0 {
		return o, advice.Failf("give a number of blocks or lines, or 0 for all blocks and ten lines", "--sample is %d, --lines is %d", c.Sample, c.Lines)
	}
	if c.Sample > 0 && len(c.Outs) > 0 {
		return o, advice.Failf("leave out --out or --sample", "--sample runs some of the blocks, and what the others write is missing")
	}
	if c.Against == "" && c.AgainstGrid+c.AgainstBlock+c.AgainstMeta != "" {
		return o, advice.Failf("give --against OTHER.ptx too", "--against-grid, --against-block and --against-meta are of the kernel that is compared, and there is none")
	}
	if c.StepLimit < 0 {
		return o, advice.Failf("give a positive number, or 0 for the usual limit", "--step-limit is %d", c.StepLimit)
	}
	return o, nil
}

// Options are how c lets kernels run, and the name of the card that it names.
func (c Config) Options() (o gpusim.Options, card string, err error) {
	if o, err = options(c); err != nil {
		return o, "", err
	}
	found, err := findCard(c.Card)
	return o, found.Name, err
}

// allChecks are the single checks that exist.
var allChecks = []gpusim.Check{gpusim.Memcheck, gpusim.Initcheck, gpusim.Synccheck, gpusim.Racecheck, gpusim.Globalcheck}

// ParseChecks reads "all", "none" or a list of names with commas. Memcheck is always part of it.
func ParseChecks(s string) (gpusim.Check, error) {
	switch s {
	case "", "all":
		return gpusim.AllChecks, nil
	case "none":
		return gpusim.Memcheck, nil
	}
	set := gpusim.Memcheck
	for name := range strings.SplitSeq(s, ",") {
		i := slices.IndexFunc(allChecks, func(c gpusim.Check) bool { return c.String() == name })
		if i < 0 {
			return 0, advice.Failf("use --check all, none, or a list of "+strings.ReplaceAll(gpusim.AllChecks.String(), ",", ", "), "no check %q", name)
		}
		set |= allChecks[i]
	}
	return set, nil
}

// simulated is a card as the simulator knows it.
func simulated(c cards.Card) gpusim.Card { return gpusim.NewCard(c.Name, c.Memory, c.SMs, c.Compute) }

func findCard(name string) (cards.Card, error) {
	if name == "" {
		name = cards.Default
	}
	c, ok := cards.Find(name)
	if !ok {
		return cards.Card{}, advice.Failf("warpline sim cards lists them: "+strings.Join(cards.Names(), ", "), "no card %q", name)
	}
	return c, nil
}

// launch runs the kernel; it ends early when ctx does.
func (j *job) launch(ctx context.Context, progress func(kernel string, done, all int64)) (*gpusim.Report, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	o := j.options
	o.Stop = ctx.Done()
	if progress != nil {
		o.Done = new(atomic.Int64)
		ended, watched := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(watched)
			j.watch(ended, o.Done, progress)
		}()
		defer func() { close(ended); <-watched }()
	}
	return j.dev.Launch(j.kernel, j.grid, j.block, j.shared, j.params, o)
}

// watch tells progress until ended is closed.
func (j *job) watch(ended <-chan struct{}, done *atomic.Int64, progress func(kernel string, done, all int64)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			progress(j.kernel.Name, done.Load(), int64(j.blocks()))
		}
	}
}

// refused is an error of the simulator that is not a finding.
func refused(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	hint := "warpline sim explain shows what the file needs, warpline sim cards what a card has, and --card chooses another"
	return &advice.Error{Text: strings.TrimPrefix(err.Error(), "gpusim: "), Hint: hint, Err: err}
}
