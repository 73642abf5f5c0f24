package vetpy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/pysyntax"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/internal/vet"
)

// ErrCutShort is the error of a program that takes more steps to walk than anybody waits for: what is found until then is given with it.
var ErrCutShort = errors.New("not followed to its end: it calls so much, so often, that the walk was given up; what comes later was not looked at")

// Check reads a program and says what is wrong with it, in the order of its lines. The error is a [*pysyntax.Error], or [ErrCutShort].
func Check(name string, source []byte) ([]vet.Found, error) {
	f, err := pysyntax.Parse(name, source)
	if err != nil {
		return nil, err
	}
	return check(f, nil, func(line int) string { return fmt.Sprintf("line %d", line) })
}

// checkLinked reads a program with the modules that it imports from files beside it. What is found in those has their names.
func checkLinked(name string, source []byte) ([]vet.Found, error) {
	l := link(name, source)
	if l == nil {
		return Check(name, source)
	}
	found, err := check(l.File, l, l.name)
	for i := range found {
		f := &found[i]
		if file, line := l.place(f.Line); file != "" {
			f.File, f.Line = file, line
			f.Finding.Line = fmt.Sprintf("%s:%d", file, line)
		}
	}
	return found, err
}

// check looks at a program that could be parsed, whatever it does; line names its lines.
func check(f *pysyntax.File, l *linked, line func(int) string) ([]vet.Found, error) {
	if !trains(f.String()) {
		return nil, nil
	}
	w := newWalker(f)
	w.linked = l
	w.run()
	c := newChecker(w, line)
	for _, r := range rules {
		r(c)
	}
	sorting.By(c.found, func(a, b vet.Found) int { return cmp.Compare(a.Line, b.Line) })
	if w.steps > maxSteps {
		return c.found, ErrCutShort
	}
	return c.found, nil
}

// trains tells whether a program has anything to do with PyTorch.
func trains(s string) bool {
	return strings.Contains(s, "torch") || strings.Contains(s, "lightning") || strings.Contains(s, "backward")
}

// rules look at the trace. Each may find several things.
var rules = []func(*checker){
	(*checker).movedInPart, (*checker).kept, (*checker).neverZeroed, (*checker).graphInEvaluation, (*checker).reads, (*checker).pageable,
	(*checker).loaders, (*checker).dataParallel, (*checker).timed, (*checker).zeroedBeforeStep, (*checker).state, (*checker).evaluationMode,
	(*checker).staysInEvaluation, (*checker).backwardInAutocast, (*checker).scalerOrder, (*checker).clips, (*checker).schedule,
	(*checker).emptyCache, (*checker).deprecated, (*checker).setEpoch, (*checker).flags, (*checker).madeThenMoved, (*checker).deviceInForward,
	(*checker).dropped, (*checker).uncalled, (*checker).hidden, (*checker).missed, (*checker).probabilities, (*checker).graphCut,
	(*checker).retained, (*checker).anomalyMode, (*checker).twice, (*checker).constants, (*checker).piecewise, (*checker).oneByOneOf, (*checker).partly, (*checker).unfollowed, (*checker).miscounted, (*checker).aside, (*checker).sharing, (*checker).thawed, (*checker).elsewhere, (*checker).unmoved, (*checker).guided,
}

// checker has the trace, and what rules share.
type checker struct {
	*walker
	line      func(number int) string // its name
	training  []*loop                 // the innermost loops that step, each once
	settings  []int                   // the events that set modes
	backwards []int                   // those that go backward
	found     []vet.Found
	seen      map[string]bool
	silenced  vet.Silences

	// What is found out of the whole program once, where a rule asks.
	evaluations           func() []*event           // see findEvaluations
	elseUsed              func() map[string]int     // see countElseUsed
	handed                func() map[string]bool    // see findHanded
	restarts              map[*loop]map[string]bool // see restarted
	modalFile, modalClass func() bool               // see modal
	heavyFile, orderly    func() bool               // see heavyData, and ordered
}

func newChecker(w *walker, line func(int) string) *checker {
	c := &checker{walker: w, line: line, seen: map[string]bool{}, silenced: silenced(w.f), restarts: map[*loop]map[string]bool{}}
	c.evaluations = sync.OnceValue(c.findEvaluations)
	c.elseUsed = sync.OnceValue(c.countElseUsed)
	c.handed = sync.OnceValue(c.findHanded)
	c.heavyFile = sync.OnceValue(func() bool { return heavy().MatchString(w.f.String()) })
	c.orderly = sync.OnceValue(c.ordered)
	c.modalFile = sync.OnceValue(func() bool { return modal().MatchString(w.f.String()) })
	c.modalClass = sync.OnceValue(func() bool {
		return slices.ContainsFunc(w.classes, func(k *class) bool { return k.module && modal().MatchString(w.f.Text(k.node)) })
	})
	c.prepare()
	return c
}

// unguard takes back that events are guarded where a whole step is by the same condition: what happens whenever a step does.
func (c *checker) unguard() {
	steps := map[*loop][]*event{}
	for i := range c.events {
		if e := &c.events[i]; e.kind == evBackward && e.guarded && e.loop != nil {
			steps[e.loop] = append(steps[e.loop], e)
		}
	}
	for i := range c.events {
		e := &c.events[i]
		if !e.guarded {
			continue
		}
		e.guarded = !slices.ContainsFunc(steps[e.loop], func(b *event) bool { return e.guards <= b.guards && b.arm.within(e.arm) })
	}
}

// prepare finds the loops that train.
func (c *checker) prepare() {
	c.unguard()
	c.gpu = c.gpu || has(c.events, func(e *event) bool { return e.kind == evMove })
	for i := range c.events {
		e := &c.events[i]
		if e.kind == evTrain || e.kind == evEval {
			c.settings = append(c.settings, i)
		}
		if e.kind != evBackward {
			continue
		}
		c.backwards = append(c.backwards, i)
		l := e.loop
		for l != nil && !c.any(l, func(s *event) bool { return isStep(s) && !s.arm.excludes(e.arm) }) {
			l = l.parent
		}
		if l == nil {
			l = e.loop
		}
		if l != nil && !slices.Contains(c.training, l) {
			c.training = append(c.training, l)
		}
	}
	for _, l := range c.loops {
		if l.lighting && l.fn.node.Name == "training_step" {
			c.training = append(c.training, l)
		}
	}
}

// has tells whether one of some events is what is asked for.
func has(events []event, is func(*event) bool) bool {
	for i := range events {
		if is(&events[i]) {
			return true
		}
	}
	return false
}

func isStep(e *event) bool { return e.kind == evStep || e.kind == evScalerStep }

// turn are the events of a turn of a loop.
func (c *checker) turn(l *loop) []event { return c.events[l.from:l.to] }

func (c *checker) any(l *loop, is func(*event) bool) bool {
	return has(c.events[l.from:l.to], is)
}

// has tells whether a turn has an event of a kind.
func (c *checker) hasKind(l *loop, k kind) bool {
	return c.any(l, func(e *event) bool { return e.kind == k })
}

// trainsIn tells whether a loop is one that trains, or lies around one.
func (c *checker) trainsIn(l *loop) bool {
	return l != nil && (c.hasKind(l, evBackward) || l.lighting && l.fn.node.Name == "training_step")
}

// say is what a rule says.
type say struct {
	rule      string
	at        pysyntax.Node
	title     string
	fix       string
	gain      string
	sure      finding.Confidence
	disproved string
	evidence  []finding.Evidence
}

func (c *checker) say(s *say) {
	r, ok := vet.Find(s.rule)
	if !ok {
		panic("vetpy: no rule " + s.rule)
	}
	from, _ := s.at.Span()
	p := c.f.Position(from)
	key := fmt.Sprint(r.ID, p.Line)
	if c.seen[key] || c.silenced.Has(p.Line, r) {
		return
	}
	c.seen[key] = true
	line := c.f.LineText(p.Line)
	column := utf8.RuneCountInString(line[:p.Column-1]) + 1
	c.found = append(c.found, vet.Found{Line: p.Line, Column: column, Source: strings.TrimSpace(line), Finding: finding.Finding{
		Rule: r.ID, Name: r.Name, Title: s.title, Evidence: s.evidence, Fix: s.fix, More: r.Why, Gain: finding.Gain{Text: s.gain},
		Confidence: s.sure, DisprovedBy: s.disproved, Line: fmt.Sprintf("%s:%d", c.f.Name, p.Line),
	}})
}

// silencer is the comment by which a line says that a rule is known there.
const silencer = "warpline: ok"

// silenced are the rules that lines are not told of; of a comment on a line of its own, the next line.
func silenced(f *pysyntax.File) vet.Silences {
	lines := vet.Silences{}
	for _, m := range f.Comments {
		_, names, ok := strings.Cut(m.Text, silencer)
		if !ok {
			continue
		}
		line := f.Line(m)
		if strings.HasPrefix(strings.TrimSpace(f.LineText(line)), "#") {
			line++
		}
		lines.Add(line, names)
	}
	return lines
}

// lineOf is the line of an event, for a sentence.
func (c *checker) lineOf(e *event) string { return c.line(c.f.Line(e.node)) }
