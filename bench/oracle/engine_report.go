package main

import (
	"bytes"
	_ "embed" // the reasons
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/gpusim/mutate"
)

// reasons are why no check reports some mutants of synchronisation.
//
//go:embed engine_known.txt
var reasons string

// engine tries the mutants of kernels of the CUDA engine, which it records as the engine launches them, and writes the
// report. The kernels are shared out among c.jobs goroutines.
func (c *config) engine() ([]byte, error) {
	modules, err := record(dtype.F32, dtype.BF16)
	if err != nil {
		return nil, err
	}
	var suites []*mutate.Suite
	for _, m := range modules {
		suites = append(suites, c.byKernel(m)...)
	}
	st, err := openState(c.state)
	if err != nil {
		return nil, err
	}
	results := make([][]*mutate.Result, len(suites))
	err = c.each(len(suites), func(i int) error {
		start := time.Now()
		r, err := st.run(suites[i])
		results[i] = r
		fmt.Fprintf(os.Stderr, "%s: %d mutants, %v\n", suites[i].Name, len(r), time.Since(start).Round(time.Second))
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.engineReport(slices.Concat(results...))
}

// byKernel makes a suite of each kernel of a module.
func (c *config) byKernel(m *mutate.Suite) []*mutate.Suite {
	var suites []*mutate.Suite
	known := mutate.ReadKnown(reasons)
	for _, x := range m.Cases {
		i := slices.IndexFunc(suites, func(s *mutate.Suite) bool { return s.Name == x.Kernel })
		if i < 0 {
			i = len(suites)
			suites = append(suites, &mutate.Suite{Name: x.Kernel, Source: m.Source, Known: known, Sample: c.sample, Seed: c.seed})
		}
		suites[i].Cases = append(suites[i].Cases, x)
	}
	return suites
}

// count is what became of the mutants of a kernel.
type count struct {
	sync, equivalent, reported int
	leaves, seen               int // of them reported
	within, caught             int // conditions that were not seen to leave a buffer, and of them reported
	values                     int
}

// synchronises reports whether a mutant breaks synchronisation. The engine counts stages by their addresses. Small constants
// that package mutate takes for numbers of stages are counters of other loops in which shared memory is addressed.
func synchronises(r *mutate.Result) bool {
	return r.Kind.Synchronises() && (r.Kind != mutate.Stage || strings.Contains(r.What, "first stage"))
}

func (c *count) add(r *mutate.Result) {
	reported := b2i(r.Outcome == mutate.Reported)
	switch {
	case synchronises(r):
		c.sync++
		c.equivalent += b2i(r.Equivalent())
		c.reported += reported
	case r.Kind == mutate.Shuffle:
		// changes which value a lane gets, and no access
	case r.Leaves:
		c.leaves++
		c.seen += reported
	default:
		c.within++
		c.caught += reported
		c.values += b2i(r.Outcome == mutate.Values)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (c *count) row() string {
	return fmt.Sprintf("%d | %d | %d | %d | %d | %d | %d | %d | %d", c.sync, c.equivalent, c.reported, c.leaves, c.seen, c.within, c.caught, c.values, c.within-c.caught-c.values)
}

func kernelOf(r *mutate.Result) string { return strings.Fields(r.ID)[0] }

// unexplained is an error for a mutant of synchronisation that is not reported, without a reason or in spite of it.
func unexplained(r *mutate.Result) error {
	if !synchronises(r) || r.Outcome == mutate.Reported && r.Known == "" || r.Outcome == mutate.Survived && r.Known != "" {
		return nil
	}
	return fmt.Errorf("%s, PTX line %d: %s, with the reason %q", r.ID, r.Line, r.Outcome, r.Known)
}

// engineReport writes the report. The error says which bars are missed.
func (c *config) engineReport(all []*mutate.Result) ([]byte, error) {
	byKernel, total := map[string]*count{}, &count{}
	var errs []error
	for _, r := range all {
		n := byKernel[kernelOf(r)]
		if n == nil {
			n = &count{}
			byKernel[kernelOf(r)] = n
		}
		n.add(r)
		total.add(r)
		if r.Missed {
			errs = append(errs, fmt.Errorf("%s leaves its buffers and no check reports it", r.ID))
		}
		errs = append(errs, unexplained(r))
	}
	share := float64(total.reported) / float64(total.sync-total.equivalent)
	if share < mutate.SyncBar {
		errs = append(errs, fmt.Errorf("%.1f %% of the mutants of synchronisation are reported", 100*share))
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, introduction, c.sample, c.seed, len(byKernel), c.sample, 100*share, total.sync-total.equivalent, total.seen, total.leaves)
	for _, k := range slices.Sorted(maps.Keys(byKernel)) {
		fmt.Fprintf(&b, "| %s | %s |\n", k, byKernel[k].row())
	}
	fmt.Fprintf(&b, "| **all** | %s |\n", total.row())
	writeReasons(&b, all)
	writeWithin(&b, all)
	return b.Bytes(), errors.Join(errs...)
}

const introduction = "# Mutants of the engine's kernels\n\nMade by `go run ./bench/oracle -sample %d -seed %d engine`; `mutation.md` says what the words mean. " +
	`The %d kernels are
those that the CUDA engine launched for products with and without an activation behind them, cut along k or not, the head
with its loss and its gradients, softmax, layer norm, a sum with its norm and the gradient of both, batch norm with a sum
and ReLU, reductions, running sums, transpositions, attention, also to packed parts, and its gradient, with the operands
that it gave them, in float32 and bfloat16; sizes make the last blocks, tiles and stages not full. As they are, they give
no finding under five schedules. Of each kernel's mutants of synchronisation %d were drawn, and as many of the others;
mutants of shuffles, which change a lane's value and no access, are left out.

Of the mutants of synchronisation %.1f %% of %d are reported by a check, those left out that are equivalent. Of the mutants
of conditions that were seen to leave their buffers, %d of %d are. Stages are addresses here: their mutants never go back
to the first stage, or always. Counters of other loops in which shared memory is addressed count as conditions.

| kernel | synchronisation | equivalent | reported | leave their buffers | reported | stay inside | reported | only values | no trace |
|---|---|---|---|---|---|---|---|---|---|
`

// writeReasons lists the mutants of synchronisation that no check reports.
func writeReasons(b *bytes.Buffer, all []*mutate.Result) {
	by := map[string][]*mutate.Result{}
	for _, r := range all {
		if synchronises(r) && r.Outcome != mutate.Reported {
			by[r.Known] = append(by[r.Known], r)
		}
	}
	fmt.Fprint(b, "\n## Synchronisation, not reported\n")
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(b, "\n%s:\n\n", reason)
		for _, r := range by[reason] {
			fmt.Fprintf(b, "* %s (line %d, %s)\n", r.ID, r.Line, r.Outcome)
		}
	}
}

// writeWithin lists the mutants of conditions that stay inside their buffers and that no check reports, by kind and number.
func writeWithin(b *bytes.Buffer, all []*mutate.Result) {
	fmt.Fprint(b, within)
	byKernel := map[string][]string{}
	for _, r := range all {
		if synchronises(r) || r.Kind == mutate.Shuffle || r.Leaves || r.Outcome == mutate.Reported {
			continue
		}
		f := strings.Fields(r.ID) // kernel, kind, "12:"
		mark := ""
		if r.Outcome == mutate.Values {
			mark = "*"
		}
		byKernel[f[0]] = append(byKernel[f[0]], f[1]+" "+strings.TrimSuffix(f[2], ":")+mark)
	}
	for _, k := range slices.Sorted(maps.Keys(byKernel)) {
		fmt.Fprintf(b, "* %s: %s\n", k, strings.Join(byKernel[k], ", "))
	}
}

const within = `
## Conditions, not reported

None of these was seen to leave a buffer: what they read or wrote too much, or too little, is inside the operands, or the
condition has the same outcome for all sizes of these launches, as those of the copies of single elements have where rows
allow copies of 16 bytes. Those with a star change results, which a comparison with a reference shows and no check of
accesses can. Numbers are those of the kernel's mutants of the kind, in the order of the PTX.

`
