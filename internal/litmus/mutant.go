package litmus

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Mutant is a test with one order less: a fence or a barrier left out, an ordering weaker, a scope narrower.
type Mutant struct {
	Thread  string `json:"thread"`
	Line    int    `json:"line"`
	From    string `json:"from"`
	To      string `json:"to,omitempty"` // empty: left out
	Holds   bool   `json:"holds"`
	Matters bool   `json:"matters"` // the test held before, and does not now
}

// Mutants checks a test with each of its orders weakened, one at a time. What matters is needed; what does not is either
// more than the test needs or is made up for by another.
func Mutants(ctx context.Context, t *Test, o Options) ([]Mutant, error) {
	whole, err := Check(ctx, t, o)
	if err != nil {
		return nil, err
	}
	all := weakenings(t)
	out := make([]Mutant, 0, len(all))
	for i, w := range all {
		if o.Progress != nil {
			o.Progress(i, len(all))
		}
		r, err := Check(ctx, w.test, Options{Rounds: o.Rounds, Paths: o.Paths})
		if err != nil {
			return nil, err
		}
		w.mutant.Holds = r.Holds
		w.mutant.Matters = whole.Holds && !r.Holds
		out = append(out, w.mutant)
	}
	return out, nil
}

type weakening struct {
	test   *Test
	mutant Mutant
}

func weakenings(t *Test) []weakening {
	var all []weakening
	for i := range t.Threads {
		for k := range t.Threads[i].Code {
			all = append(all, weakeningsOf(t, i, k)...)
		}
	}
	return all
}

// weakeningsOf are the mutants of one instruction.
func weakeningsOf(t *Test, thread, at int) []weakening {
	in := &t.Threads[thread].Code[at]
	add := func(to *Instruction) weakening {
		w := weakening{t.copy(), Mutant{Thread: t.Threads[thread].Name, Line: in.Pos.Line, From: in.Text}}
		if to == nil {
			w.test.drop(thread, at)
			return w
		}
		w.mutant.To = to.Text
		w.test.Threads[thread].Code[at] = *to
		return w
	}
	var all []weakening
	switch in.op {
	case opFence, opProxyFence, opAliasFence:
		all = append(all, add(nil))
	case opBarrier:
		if t.firstOf(thread, at) {
			all = append(all, add(nil))
		}
		return all
	}
	for _, s := range weaker(in) {
		c := *in
		c.sem, c.Text = s, reworded(in.Text, semantics, s)
		if s == weak {
			c.Text = strings.Replace(c.Text, "."+nameOf(scopes, in.scope), "", 1)
			c.scope = noScope
		}
		all = append(all, add(&c))
	}
	if s := t.narrower(in.scope); s != noScope {
		c := *in
		c.scope, c.Text = s, reworded(in.Text, scopes, s)
		all = append(all, add(&c))
	}
	return all
}

// weaker are the orderings one step below that of an instruction.
func weaker(in *Instruction) []sem {
	switch {
	case in.op == opFence && in.sem == sc:
		return []sem{acqRel}
	case in.op == opFence || in.op > opAtomic:
		return nil
	case in.sem == acqRel:
		return []sem{acquire, release}
	case in.sem == acquire || in.sem == release:
		return []sem{relaxed}
	case in.sem == relaxed && in.op != opAtomic:
		return []sem{weak}
	}
	return nil
}

// narrower is the next scope below; clusters are one only where the test has some.
func (t *Test) narrower(s scope) scope {
	if s <= scopeCTA {
		return noScope
	}
	s--
	if s == scopeCluster && !slices.ContainsFunc(t.Threads, func(th Thread) bool { return th.Cluster >= 0 }) {
		s--
	}
	return s
}

func nameOf[T comparable](names map[string]T, v T) string {
	for name, w := range names {
		if w == v {
			return name
		}
	}
	return ""
}

// reworded is an instruction's text with another ordering or scope; volatile and membar are told as what they stand for.
func reworded[T comparable](text string, names map[string]T, to T) string {
	mnemonic, operands, _ := strings.Cut(text, " ")
	parts := strings.Split(mnemonic, ".")
	switch {
	case parts[0] == "membar":
		parts = []string{"fence", "sc", strings.Replace(parts[1], "gl", "gpu", 1)}
	case slices.Contains(parts, "volatile"):
		i := slices.Index(parts, "volatile")
		parts = slices.Replace(parts, i, i+1, "relaxed", "sys")
	}
	for i, p := range parts {
		if _, ok := names[p]; ok && i > 0 {
			parts[i] = nameOf(names, to)
		}
	}
	return strings.TrimSpace(strings.Join(parts, ".") + " " + operands)
}

// copy is a test whose code may be changed.
func (t *Test) copy() *Test {
	c := *t
	c.Threads = slices.Clone(t.Threads)
	for i := range c.Threads {
		c.Threads[i].Code = slices.Clone(c.Threads[i].Code)
	}
	return &c
}

// drop leaves an instruction out; a barrier, for all threads of its CTA.
func (t *Test) drop(thread, at int) {
	in := t.Threads[thread].Code[at]
	if in.op != opBarrier {
		t.nothing(thread, at)
		return
	}
	for i := range t.Threads {
		for k := range t.Threads[i].Code {
			if t.alike(thread, at, i, k) {
				t.nothing(i, k)
			}
		}
	}
}

// nothing puts a jump to the next instruction in the place of one.
func (t *Test) nothing(thread, at int) {
	code := t.Threads[thread].Code
	code[at] = Instruction{Pos: code[at].Pos, Text: code[at].Text, op: opBranch, dst: -1, loc: -1, target: at + 1}
}

// alike is whether two instructions are at one barrier of one CTA, by their text.
func (t *Test) alike(thread, at, other, k int) bool {
	a, b := &t.Threads[thread], &t.Threads[other]
	x, y := &a.Code[at], &b.Code[k]
	return a.GPU == b.GPU && a.CTA == b.CTA && x.op == y.op && x.bar == y.bar && fmt.Sprint(x.args) == fmt.Sprint(y.args)
}

// firstOf is whether no thread before has an instruction at the same barrier.
func (t *Test) firstOf(thread, at int) bool {
	for i := range t.Threads[:thread+1] {
		for k := range t.Threads[i].Code {
			if i == thread && k == at {
				return true
			}
			if t.Threads[i].Code[k].op == opBarrier && t.alike(thread, at, i, k) {
				return false
			}
		}
	}
	return true
}

// mutantsText is the table of mutants.
func mutantsText(all []Mutant) string {
	if len(all) == 0 {
		return ""
	}
	rows := make([][]string, len(all))
	for i, m := range all {
		says, to := "does not matter", m.To
		if m.Matters {
			says = "matters"
		}
		if to == "" {
			to = "left out"
		}
		rows[i] = []string{fmt.Sprintf("line %d", m.Line), m.Thread, m.From, "→", to, says}
	}
	return "weakened, one at a time:\n" + table(rows)
}

// table aligns columns.
func table(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(w, "  %s\n", strings.Join(r, "\t"))
	}
	w.Flush()
	return b.String()
}
