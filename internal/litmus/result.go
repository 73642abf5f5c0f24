package litmus

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// Result is what a test's executions come to. Its JSON is documented, and stays.
type Result struct {
	File       string     `json:"file,omitempty"`
	Test       string     `json:"test"`
	Quantifier Quantifier `json:"quantifier"`
	Condition  string     `json:"condition"`
	Holds      bool       `json:"holds"`   // what the test says is so
	Reached    bool       `json:"reached"` // some execution ends as the condition says; with forall: as it does not say
	Complete   bool       `json:"complete"`
	Rounds     int        `json:"rounds,omitempty"` // of loops that write; only if not complete
	States     []State    `json:"states"`
	Candidates int64      `json:"candidates"` // choices of who reads from whom that came as far as that
	Executions int64      `json:"executions"` // of which axioms allow so many, counted with the orders of writes and fences
	Hung       int64      `json:"hung"`       // candidates in which a thread waits at a barrier for ever
	Witness    *Execution `json:"witness,omitempty"`
	Refusals   []Refusal  `json:"refusals,omitempty"` // if not reached: what stands in the way
	Mutants    []Mutant   `json:"mutants,omitempty"`
}

// State is how an execution may end.
type State struct {
	Values     []Value `json:"values"`
	Executions int64   `json:"executions"`
	Goal       bool    `json:"goal"` // the quantifier looks for it
}

// Value is a register or a location with what it holds.
type Value struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// Execution is one execution, by its events.
type Execution struct {
	Events []Event  `json:"events"`
	Final  []Value  `json:"final,omitempty"`
	Writes [][2]int `json:"coherence"` // events: one write directly before another
	Fences [][2]int `json:"fence_sc"`  // one fence.sc before another
	Syncs  [][2]int `json:"sync"`      // a release, or an arrival at a barrier, before what it synchronizes with
}

// Event is one event of an execution.
type Event struct {
	Thread string `json:"thread,omitempty"` // empty: an initial write
	Line   int    `json:"line,omitempty"`
	Text   string `json:"text"`
	Kind   string `json:"kind"` // read, write, fence or barrier
	Where  string `json:"location,omitempty"`
	Value  int64  `json:"value"`          // read or written
	From   *int   `json:"from,omitempty"` // the write that a read reads from
}

// Refusal is an axiom that keeps executions from ending as the condition says, with one that it refuses.
type Refusal struct {
	Axiom   Axiom      `json:"axiom"`
	Count   int64      `json:"count"` // among the first 10,000 candidates that would end so
	Why     string     `json:"why"`   // of the example
	Example *Execution `json:"example,omitempty"`
}

// conclude orders the states and says whether the test is right.
func (r *Result) conclude(states map[string]*State) {
	r.States = []State{}
	for _, s := range states {
		r.States = append(r.States, *s)
	}
	sorting.By(r.States, func(a, b State) int {
		for i := range a.Values {
			if c := cmp.Compare(a.Values[i].Value, b.Values[i].Value); c != 0 {
				return c
			}
		}
		return 0
	})
	sorting.By(r.Refusals, func(a, b Refusal) int { return cmp.Compare(b.Count, a.Count) })
	r.Holds = r.Reached == (r.Quantifier == Exists)
	if r.Complete {
		r.Rounds = 0
	}
}

// refuse counts a candidate that an axiom refuses; the first is the example.
func (r *Result) refuse(x *orders, a Axiom, at [2]int) {
	if f := r.refusal(a); f.Count == 1 {
		f.Why, f.Example = because(x, a, at), witness(x, newValues(x), nil)
	}
}

// thin counts a choice of writes that would have values come from nowhere. It has no values, and so no example.
func (r *Result) thin(x *orders) {
	if f := r.refusal(NoThinAir); f.Count == 1 {
		circle := x.rf.clone()
		circle.join(x.depends)
		e := circle.close().loop()
		f.Why = fmt.Sprintf("%s would hang on a value that hangs on it", x.named(e))
	}
}

// refusal is the count of an axiom, one higher.
func (r *Result) refusal(a Axiom) *Refusal {
	i := slices.IndexFunc(r.Refusals, func(f Refusal) bool { return f.Axiom == a })
	if i < 0 {
		i = len(r.Refusals)
		r.Refusals = append(r.Refusals, Refusal{Axiom: a})
	}
	r.Refusals[i].Count++
	return &r.Refusals[i]
}

// because says in words what an axiom objects to.
func because(x *orders, a Axiom, at [2]int) string {
	p, q := x.named(at[0]), x.named(at[1])
	switch a {
	case Causality:
		if x.rf.has(at[0], at[1]) {
			return fmt.Sprintf("%s would read from %s, which comes behind it in causality order", q, p)
		}
		return fmt.Sprintf("%s would read a value from before %s, which comes before it in causality order", p, q)
	case Atomicity:
		return fmt.Sprintf("%s would come between the read and the write of %s", q, p)
	case FenceSC:
		return fmt.Sprintf("%s and %s would each come before the other", p, q)
	case Coherence:
		return fmt.Sprintf("%s would come before itself in coherence order", p)
	}
	return fmt.Sprintf("accesses to one place, all in one another's scope, would have no order that keeps to their threads: %s comes before itself", p)
}

func (x *orders) named(e int) string {
	v := &x.events[e]
	if v.thread < 0 {
		return "the initial " + x.test.Locations[v.loc].Name
	}
	return fmt.Sprintf("%s's %s", x.test.Threads[v.thread].Name, v.in.Text)
}

var kinds = map[class]string{reading: "read", writing: "write", fencing: "fence", proxyFencing: "fence", aliasFencing: "fence", waiting: "barrier"}

// witness is an execution for people. Its coherence order leaves out what follows from the rest.
func witness(x *orders, v *values, s *State) *Execution {
	e := &Execution{Writes: [][2]int{}, Fences: [][2]int{}, Syncs: [][2]int{}}
	if s != nil {
		e.Final = s.Values
	}
	for i := range x.events {
		e.Events = append(e.Events, x.told(i, v))
	}
	for a := range x.events {
		for s := x.co[a]; s != 0; s &= s - 1 {
			if b := bits.TrailingZeros64(s); !x.between(a, b) && x.events[a].thread >= 0 {
				e.Writes = append(e.Writes, [2]int{a, b})
			}
		}
	}
	for _, p := range x.ordered {
		switch {
		case x.events[p[0]].thread == x.events[p[1]].thread:
		case x.base.has(p[0], p[1]):
			e.Fences = append(e.Fences, p)
		case x.base.has(p[1], p[0]):
			e.Fences = append(e.Fences, [2]int{p[1], p[0]})
		}
	}
	sync := x.releases.then(x.observation()).then(x.acquires).both(x.strong)
	sync.join(x.joined)
	for a, row := range sync {
		for ; row != 0; row &= row - 1 {
			if b := bits.TrailingZeros64(row); x.events[a].thread != x.events[b].thread {
				e.Syncs = append(e.Syncs, [2]int{a, b})
			}
		}
	}
	return e
}

// between is whether some write comes between two.
func (x *orders) between(a, b int) bool {
	for s := x.co[a]; s != 0; s &= s - 1 {
		if x.co.has(bits.TrailingZeros64(s), b) {
			return true
		}
	}
	return false
}

func (x *orders) told(i int, v *values) Event {
	e := &x.events[i]
	out := Event{Kind: kinds[e.class]}
	if e.access() {
		out.Where, out.Value = x.test.Locations[e.loc].Name, v.value[i]
	}
	if e.thread < 0 {
		out.Text = fmt.Sprintf("%s=%d", out.Where, out.Value)
		return out
	}
	out.Thread, out.Text, out.Line = x.test.Threads[e.thread].Name, e.in.Text, e.in.Pos.Line
	if w := x.source[i]; w >= 0 {
		out.From = &w
	}
	return out
}

// Verdict is the answer in words.
func (r *Result) Verdict() string {
	word := "forbidden"
	switch {
	case r.Quantifier == Forall && r.Reached:
		word = "not always so"
	case r.Quantifier == Forall:
		word = "always so"
	case r.Reached:
		word = "allowed"
	}
	if !r.Reached && !r.Complete {
		word += fmt.Sprintf(", with loops that write followed for %d rounds", r.Rounds)
	}
	return word
}

// mostStates are shown of those that a test may end in.
const mostStates = 40

// Text is the result for a terminal.
func (r *Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Line())
	fmt.Fprintf(&b, "%s %s\n", r.Quantifier, r.Condition)
	fmt.Fprintf(&b, "%s of who reads from whom", counted(r.Candidates, "choice"))
	if r.Hung > 0 {
		fmt.Fprintf(&b, ", in %d of which a thread waits at a barrier for ever", r.Hung)
	}
	fmt.Fprintf(&b, "; %s are allowed; %s\n", counted(r.Executions, "execution"), counted(int64(len(r.States)), "final state"))
	for i, s := range r.States {
		if i == mostStates {
			fmt.Fprintf(&b, "  … and %d more\n", len(r.States)-i)
			break
		}
		mark := "  "
		if s.Goal {
			mark = "* "
		}
		fmt.Fprintf(&b, "%s%s\n", mark, valuesText(s.Values))
	}
	if r.Witness != nil {
		fmt.Fprintf(&b, "one that ends with %s:\n%s", valuesText(r.Witness.Final), r.Witness.Text())
	}
	b.WriteString(r.whyNot())
	b.WriteString(mutantsText(r.Mutants))
	return b.String()
}

// Line is the result in one line.
func (r *Result) Line() string {
	says := "as the test says"
	if !r.Holds {
		says = "the test says otherwise"
	}
	return fmt.Sprintf("%s: %s: %s", r.Test, r.Verdict(), says)
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// telling are the axioms, those first whose examples tell most.
var telling = []Axiom{Causality, FenceSC, SCPerLocation, Coherence, Atomicity, NoThinAir}

// whyNot says what stands in the way of a state that is not reached, with one example.
func (r *Result) whyNot() string {
	if r.Reached {
		return ""
	}
	if len(r.Refusals) == 0 {
		return "no write has such a value for a read, whatever the order\n"
	}
	var counts []string
	best := r.Refusals[0]
	for _, f := range r.Refusals {
		counts = append(counts, fmt.Sprintf("%s (%d)", f.Axiom, f.Count))
		if slices.Index(telling, f.Axiom) < slices.Index(telling, best.Axiom) {
			best = f
		}
	}
	text := fmt.Sprintf("candidates that would end otherwise are refused by %s\n%s: %s", strings.Join(counts, ", "), best.Axiom, best.Why)
	if best.Example == nil {
		return text + "\n"
	}
	return text + ", in\n" + best.Example.Text()
}

func valuesText(values []Value) string {
	var all []string
	for _, v := range values {
		all = append(all, fmt.Sprintf("%s=%d", v.Name, v.Value))
	}
	return strings.Join(all, " ")
}

// Text is an execution, a line for each event, and the orders behind.
func (e *Execution) Text() string {
	var b strings.Builder
	for i, v := range e.Events {
		if v.Thread == "" {
			continue
		}
		fmt.Fprintf(&b, "  %s  %s", e.label(i), v.Text)
		switch {
		case v.From != nil:
			fmt.Fprintf(&b, "  reads %d from %s", v.Value, e.label(*v.From))
		case v.Kind == "write":
			fmt.Fprintf(&b, "  writes %s=%d", v.Where, v.Value)
		}
		b.WriteByte('\n')
	}
	e.pairs(&b, "coherence", e.Writes)
	e.pairs(&b, "fence.sc", e.Fences)
	e.pairs(&b, "synchronizes", e.Syncs)
	return b.String()
}

// label names an event: P1.2 is the second of P1.
func (e *Execution) label(i int) string {
	if e.Events[i].Thread == "" {
		return e.Events[i].Text
	}
	n := 1
	for _, v := range e.Events[:i] {
		if v.Thread == e.Events[i].Thread {
			n++
		}
	}
	return fmt.Sprintf("%s.%d", e.Events[i].Thread, n)
}

func (e *Execution) pairs(b *strings.Builder, name string, pairs [][2]int) {
	if len(pairs) == 0 {
		return
	}
	var all []string
	for _, p := range pairs {
		all = append(all, e.label(p[0])+" → "+e.label(p[1]))
	}
	fmt.Fprintf(b, "  %s: %s\n", name, strings.Join(all, ", "))
}
