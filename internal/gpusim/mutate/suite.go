package mutate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Suite is a module, launches of its kernels, and what is known of their mutants.
type Suite struct {
	Name   string
	Source string // PTX
	Cases  []*Case
	// Kinds are those of which mutants are tried; nil for all.
	Kinds []Kind
	// Known are mutants that no check reports, by ID, with the reason, see ReadKnown.
	Known map[string]string
	// Sample is how many of the mutants that break synchronisation are tried, and how many of the others, those that
	// only change values aside; Seed draws them. 0 takes all.
	Sample int
	Seed   uint64

	of func(source string) []*Case // makes the cases
}

// Result is the verdict of a mutant over all launches of its kernel: the best of them.
type Result struct {
	*Mutant
	Verdict
	Known  string // the reason why no check reports it
	Missed bool   // in some launch it left its buffers without a report
}

// Equivalent reports whether the mutant is known to be no error at all: such mutants count in no rate.
func (r *Result) Equivalent() bool { return strings.HasPrefix(r.Known, "equivalent") }

// Run tries every n-th mutant of a suite.
func (s *Suite) Run(every int) ([]*Result, error) {
	byID := map[string]*Result{}
	var order []*Result
	for _, c := range s.Cases {
		o, err := Open(s.Source, c)
		if err != nil {
			return nil, err
		}
		drawn := s.draw(o.Mutants)
		for i, m := range o.Mutants {
			if i%every != 0 || !drawn[m.ID] || s.Kinds != nil && !slices.Contains(s.Kinds, m.Kind) {
				continue
			}
			v := o.Try(m)
			r := byID[m.ID]
			if r == nil {
				r = &Result{Mutant: m, Verdict: v, Known: s.Known[m.ID]}
				byID[m.ID] = r
				order = append(order, r)
			}
			r.Missed = r.Missed || v.Leaves && v.Outcome != Reported
			r.Leaves = r.Leaves || v.Leaves
			if v.Outcome.rank() < r.Outcome.rank() {
				r.Outcome, r.By, r.Seed = v.Outcome, v.By, v.Seed
			}
		}
	}
	return order, nil
}

// draw says which mutants of a kernel are tried. It is the same for all launches of the kernel.
func (s *Suite) draw(all []*Mutant) map[string]bool {
	drawn, left := map[string]bool{}, [2]int{s.Sample, s.Sample}
	for _, i := range rand.New(rand.NewPCG(s.Seed, uint64(len(all)))).Perm(len(all)) {
		n := &left[b2i(all[i].Kind.Synchronises())]
		if s.Sample == 0 || *n > 0 && !all[i].Kind.Values() {
			drawn[all[i].ID] = true
			*n--
		}
	}
	return drawn
}

func (o Outcome) rank() int { return slices.Index([]Outcome{Reported, Values, Survived, Refused}, o) }

// SyncBar is the least share of mutants of synchronisation that checks must report, those left out that are equivalent.
const SyncBar = 0.95

// Judge holds results against the bars: SyncBar, every mutant reported that leaves its buffers, and a reason for all
// others that no check reports, those of Shuffle and Rank aside, which only change values. Reasons for mutants that are reported
// after all, or that there are none of, are an error when the results are complete.
func (s *Suite) Judge(results []*Result, complete bool) error {
	var errs []error
	reported, all := 0, 0
	seen := map[string]bool{}
	for _, r := range results {
		seen[r.ID] = r.Outcome != Reported
		if r.Kind.Synchronises() && !r.Equivalent() {
			all++
			reported += b2i(r.Outcome == Reported)
		}
		switch {
		case r.Missed:
			errs = append(errs, fmt.Errorf("%s leaves its buffers and no check reports it", r.ID))
		case r.Outcome == Refused:
			errs = append(errs, fmt.Errorf("%s does not load: %s", r.ID, r.By))
		case r.Outcome != Reported && r.Known == "" && !r.Kind.Values():
			errs = append(errs, fmt.Errorf("%s, PTX line %d: no check reports it (%s), and no reason is known", r.ID, r.Line, r.Outcome))
		case r.Equivalent() && r.Outcome == Values:
			errs = append(errs, fmt.Errorf("%s is called equivalent but has other results", r.ID))
		}
	}
	if float64(reported) < SyncBar*float64(all) {
		errs = append(errs, fmt.Errorf("%d of %d mutants of synchronisation are reported", reported, all))
	}
	if complete {
		for _, id := range slices.Sorted(maps.Keys(s.Known)) {
			if !seen[id] {
				errs = append(errs, fmt.Errorf("a reason is given for %q, which is reported or does not exist", id))
			}
		}
	}
	return errors.Join(errs...)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ReadKnown reads reasons: lines that start with "# " give one, and the IDs after it have it. A reason that begins with
// "equivalent" says that the mutant is as correct as the kernel.
func ReadKnown(text string) map[string]string {
	known, reason := map[string]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if r, ok := strings.CutPrefix(line, "# "); ok {
			reason = r
		} else if line != "" {
			known[line] = reason
		}
	}
	return known
}

// Report writes results as Markdown.
func Report(suites []*Suite, results [][]*Result) []byte {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	defer w.Flush()
	fmt.Fprintf(w, "| kind | mutants | reported | by checks | values only | equivalent | survived |\n|---|---|---|---|---|---|---|\n")
	all := slices.Concat(results...)
	for _, k := range Kinds {
		writeRow(w, string(k), slices.DeleteFunc(slices.Clone(all), func(r *Result) bool { return r.Kind != k }))
	}
	writeRow(w, "**synchronisation**", slices.DeleteFunc(slices.Clone(all), func(r *Result) bool { return !r.Kind.Synchronises() }))
	writeRow(w, "**seen to leave their buffers**", slices.DeleteFunc(slices.Clone(all), func(r *Result) bool { return !r.Leaves }))
	for i, s := range suites {
		fmt.Fprintf(w, "\n## Not reported: %s\n", s.Name)
		writeKnown(w, results[i])
	}
	w.Flush()
	return b.Bytes()
}

func writeRow(w *bufio.Writer, name string, rs []*Result) {
	count, checks := map[Outcome]int{}, map[string]int{}
	equal := 0
	for _, r := range rs {
		if r.Equivalent() {
			equal++
			continue
		}
		count[r.Outcome]++
		if r.Outcome == Reported {
			checks[r.By]++
		}
	}
	var parts []string
	for _, c := range slices.Sorted(maps.Keys(checks)) {
		parts = append(parts, fmt.Sprintf("%s %d", c, checks[c]))
	}
	fmt.Fprintf(w, "| %s | %d | %d | %s | %d | %d | %d |\n", name, len(rs), count[Reported], strings.Join(parts, ", "), count[Values], equal, count[Survived])
}

func writeKnown(w *bufio.Writer, rs []*Result) {
	byReason := map[string][]string{}
	values := 0
	for _, r := range rs {
		switch {
		case r.Outcome == Reported:
		case r.Kind.Values() && r.Known == "":
			values++
		default:
			byReason[r.Known] = append(byReason[r.Known], fmt.Sprintf("%s (line %d, %s)", r.ID, r.Line, r.Outcome))
		}
	}
	if values > 0 {
		fmt.Fprintf(w, "\n%d that take another lane's value or another block's memory: in itself no error, which only results can show.\n", values)
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		fmt.Fprintf(w, "\n%s:\n\n", reason)
		for _, id := range byReason[reason] {
			fmt.Fprintf(w, "* %s\n", id)
		}
	}
}
