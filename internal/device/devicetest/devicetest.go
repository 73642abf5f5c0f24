// Package devicetest runs the conformance suite on an engine within a test, and checks what package device promises of
// every Device and Queue.
package devicetest

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/autograd"
	"github.com/warpline-ml/warpline/internal/conform"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// Variant is a way to run an engine: an instruction set, a number of threads.
type Variant struct {
	Name   string
	Use    func() (restore func())
	SameAs string // an earlier variant, whose results must have the same bits: only large cases are run again
}

// shown is how many failed cases of a code are printed.
const shown = 5

// Run runs the contract, and with a subtest per op code the suite, gradient rules and lowerings, in each variant if there
// are any. The operands come from a fresh seed, or from that of testutil.SeedEnv, which a test that fails prints, and so
// does the part of the cases that is taken, unless testutil.WalkEnv asks for all; with -short the large shapes are left out. open returns a new device or a shared one.
func Run(t *testing.T, open func() device.Device, variants ...Variant) {
	t.Helper()
	run(t, open, plan{short: testing.Short(), slow: 1, rules: true, variants: variants})
}

// RunSlow is Run for a simulated GPU, on which the suite takes a quarter of an hour: a run that asks for all cases has one in eight,
// others with each seed. CI tries every small case there by `warpline check`, under the same checks, and thirds of them in other orders.
func RunSlow(t *testing.T, open func() device.Device) {
	t.Helper()
	run(t, open, plan{short: testing.Short(), slow: 8, rules: true})
}

// RunShort is RunSlow without the large shapes, for a device whose kernels another test tries on them: what is of its own is how
// it launches ops. Gradient rules and lowerings, which are such launches, are left to runs that ask for all cases.
func RunShort(t *testing.T, open func() device.Device) {
	t.Helper()
	run(t, open, plan{short: true, slow: 8, rules: testutil.NewSpread(t, 1, 2).All()})
}

// RunCodes is Run without the large shapes for some of the op codes.
func RunCodes(t *testing.T, open func() device.Device, codes ...ir.Code) {
	t.Helper()
	run(t, open, plan{short: true, slow: 1, rules: true, codes: codes})
}

// plan is what is run of the suite.
type plan struct {
	short    bool      // no large shapes
	slow     int       // where all is asked for, one case in so many
	rules    bool      // gradient rules and lowerings, too
	variants []Variant // none: the engine as it is
	codes    []ir.Code // none: all
}

func run(t *testing.T, open func() device.Device, p plan) {
	t.Helper()
	Contract(t, open)
	if p.variants == nil {
		p.variants = []Variant{{Use: func() func() { return func() {} }}}
	}
	dev := open()
	defer closing(t, dev.Close)
	r, err := conform.NewRunner(dev)
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, r.Close)
	seed := testutil.Seed(t)
	spread := testutil.NewSpread(t, seed, parts)
	if spread.All() {
		spread = spread.Of(p.slow)
	}
	s := &suite{r, conform.Options{Seed: seed, Short: p.short}, p, spread}
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		if len(p.codes) > 0 && !slices.Contains(p.codes, code) {
			continue
		}
		t.Run(code.String(), func(t *testing.T) { s.run(t, code) })
	}
}

// parts is the share of the cases that a run takes: one in so many.
const parts = 60

type suite struct {
	runner  *conform.Runner
	options conform.Options
	plan    plan
	spread  testutil.Spread
}

// part are the cases of a code that are run, at least one.
func (s *suite) part(code ir.Code) []*conform.Case {
	o := s.options
	o.Codes, o.Takes = []ir.Code{code}, s.spread.Takes
	some := slices.Collect(conform.Cases(o))
	if len(some) == 0 {
		o.Takes = nil
		some = testutil.Some(s.spread, slices.Collect(conform.Cases(o)), func(c *conform.Case) string { return c.Name })
	}
	return some
}

// run makes the cases of one code, of which all codes' would fill gigabytes, and runs them in each variant.
func (s *suite) run(t *testing.T, code ir.Code) {
	o := s.options
	o.Codes = []ir.Code{code}
	cases := s.part(code)
	var grads []*conform.GradCase
	if s.plan.rules {
		grads = testutil.Some(s.spread, conform.GradCases(o), func(g *conform.GradCase) string { return g.Name })
	}
	sums := map[string]map[string]uint64{}
	for _, v := range s.plan.variants {
		restore := v.Use()
		if v.SameAs != "" {
			got := s.cases(t, v.Name, slices.DeleteFunc(slices.Clone(cases), small))
			for name, sum := range got {
				if sum != sums[v.SameAs][name] {
					t.Errorf("%s: the bits of %s and %s differ", name, v.Name, v.SameAs)
				}
			}
		} else {
			sums[v.Name] = s.cases(t, v.Name, cases)
			if s.plan.rules {
				s.grads(t, v.Name, code, grads)
			}
		}
		restore()
	}
	if s.plan.rules && code.Fused() {
		s.lowered(t, cases)
	}
	if code.NumParams() > 0 {
		s.cells(t, code, cases)
	}
}

// cells runs some cases of each dtype of a code with launch parameters in device memory. An engine takes them all, for the
// same bits, or refuses them.
func (s *suite) cells(t *testing.T, code ir.Code, cases []*conform.Case) {
	t.Helper()
	const each = 6
	tried := map[dtype.DType]int{}
	refused := 0
	for _, c := range cases {
		dt := c.DType()
		if c.Fails || tried[dt] == each {
			continue
		}
		res := s.runner.Run(c)
		if res.Status != conform.Passed {
			continue // told before
		}
		tried[dt]++
		took, err := s.runner.Cells(c, res.Sum)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if !took {
			refused++
		}
	}
	if refused > 0 && slices.Contains(conform.Changing(), code) {
		t.Errorf("%d cases do not take their parameters from cells", refused)
	}
}

// small reports a case that no engine gives to several threads.
func small(c *conform.Case) bool { return within(c, 1<<10) }

// within reports whether no operand or result of a case has more elements. One that fails has not.
func within(c *conform.Case, elements int) bool {
	out, err := c.Op.Infer()
	return err != nil || !slices.ContainsFunc(slices.Concat(c.Op.Ins(), out), func(t *ir.Type) bool { return t.Size() > elements })
}

// cases runs cases and returns the sums of the results' bytes, by name.
func (s *suite) cases(t *testing.T, variant string, cases []*conform.Case) map[string]uint64 {
	t.Helper()
	sums := map[string]uint64{}
	failed := 0
	for _, c := range cases {
		res := s.runner.Run(c)
		sums[c.Name] = res.Sum
		if res.Status != conform.Failed && res.Status != conform.Unsupported {
			continue
		}
		if failed++; failed <= shown {
			t.Error(variant, res.String())
		}
	}
	if failed > shown {
		t.Errorf("%s: %d of %d cases failed", variant, failed, len(cases))
	}
	return sums
}

// grads runs a gradient rule, and demands of all its cases that most of their elements can be checked.
func (s *suite) grads(t *testing.T, variant string, code ir.Code, grads []*conform.GradCase) {
	t.Helper()
	smooth, all := 0, 0
	for _, g := range grads {
		if res := s.runner.Grad(g); res.Status != conform.Passed {
			t.Error(variant, res.String())
		}
		if s.spread.All() {
			n, of := g.Checked()
			smooth, all = smooth+n, all+of
		}
	}
	if s.spread.All() && autograd.Of(code) != nil && 2*smooth < all+1 {
		t.Errorf("%d of %d gradients could be checked", smooth, all)
	}
}

// lowered runs the lowering of a fused op in place of its kernel.
func (s *suite) lowered(t *testing.T, cases []*conform.Case) {
	t.Helper()
	for _, c := range cases {
		if res := s.runner.Lower(c); res.Status != conform.Lowered {
			t.Error(res.String())
		}
	}
}

func closing(t *testing.T, f func() error) {
	t.Helper()
	if err := f(); err != nil {
		t.Error(err)
	}
}

// Contract checks what package device promises of memory, queues and events.
func Contract(t *testing.T, open func() device.Device) {
	for _, p := range conform.Promises() {
		t.Run("contract/"+p.Name, func(t *testing.T) {
			dev := open()
			defer closing(t, dev.Close)
			if err := p.Check(dev); err != nil {
				t.Errorf("%s: %v", p.What, err)
			}
		})
	}
}
