package vetpy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/pysyntax"
)

// zeroedByHand matches programs that let go of gradients without zero_grad.
var zeroedByHand = pattern(`\.grad\s*=\s*None|\.grad(?:\.data)?\.zero_\(|\.grad\.fill_\(`)

func (c *checker) neverZeroed() {
	for _, l := range c.training {
		turn := c.turn(l)
		i := slices.IndexFunc(turn, func(e event) bool { return isStep(&e) && c.unzeroed(turn, &e) })
		if i < 0 || l.alone || c.byEngine(turn) || c.zeroesItself(l, &turn[i]) {
			continue
		}
		s := &turn[i]
		opt := s.onText
		if s.kind == evScalerStep && s.call != nil {
			if a := arg(s.call, "optimizer", 0); a != nil {
				opt = c.text(a)
			}
		}
		title, more := "gradients are never zeroed: each step takes the sum of all steps before", finding.Says("no zero_grad in the loop over %s", l.text)
		if z := c.zeroedOutside(l); z != nil {
			title = "gradients are zeroed outside of the loop that steps: each step takes the sum of those before"
			more = finding.Says("%s at %s is not in the loop over %s", c.text(z.node), c.lineOf(z), l.text)
		}
		c.say(&say{rule: "R07", at: s.node, title: title, evidence: more, sure: finding.High,
			fix:       fmt.Sprintf("%s.zero_grad()  # before the backward of each step", opt),
			gain:      "the training does what it says",
			disproved: "gradients that are let go of in a function of another file"})
	}
}

// unzeroed tells whether nothing in a turn zeroes the gradients of an optimizer that steps: nothing at all, or optimizers that step
// beside it, each its own.
func (c *checker) unzeroed(turn []event, s *event) bool {
	opt := stepsWhat(c, s)
	return !has(turn, func(z *event) bool {
		return z.kind == evZero && (z.onText == opt || !madeHere(s) || !z.on.is(isOptimizer) || z.on.call == nil ||
			!has(turn, func(e *event) bool { return isStep(e) && stepsWhat(c, e) == z.onText && madeHere(e) }))
	})
}

// zeroedOutside is where gradients are zeroed in a loop around, or before.
func (c *checker) zeroedOutside(l *loop) *event {
	for i := range c.events[:l.from] {
		if e := &c.events[i]; e.kind == evZero && l.within(e.loop) && e.loop != l {
			return e
		}
	}
	return nil
}

// byEngine tells whether an engine steps and zeroes by itself: backward and step are of the same object.
func (c *checker) byEngine(turn []event) bool {
	for i := range turn {
		if e := &turn[i]; e.kind == evBackward && (e.on.is(isEngine) || has(turn, func(s *event) bool { return s.kind == evStep && s.onText == e.onText })) {
			return true
		}
	}
	return false
}

// zeroesItself tells whether the program lets go of gradients by hand, in the function that steps or the loop.
func (c *checker) zeroesItself(l *loop, s *event) bool {
	text := c.f.Text(l.node)
	if s.fn != nil {
		text += c.f.Text(s.fn.node)
	}
	return zeroedByHand().MatchString(text)
}

func (c *checker) zeroedBeforeStep() {
	for _, l := range c.training {
		turn := c.turn(l)
		for i := range turn {
			z := &turn[i]
			if z.kind != evZero {
				continue
			}
			if s := c.thrownAway(turn, z); s != nil {
				c.say(&say{rule: "V01", at: z.node, title: "gradients are zeroed in every turn, and the optimizer steps only in some: those of the others are thrown away", sure: finding.High,
					evidence: finding.Says("the step at %s is taken if %s", c.lineOf(s), s.arm.test), fix: fmt.Sprintf("%s  # behind the step alone", c.text(z.node)), gain: "steps take the gradients of all turns since the last one",
					disproved: "a condition that holds in every turn"})
			}
			s := next(turn[i+1:], z, func(e *event) bool {
				return e.kind == evBackward || isStep(e) && (stepsWhat(c, e) == z.onText || z.on.is(isModule) && c.stepsAlone(turn, e))
			})
			b := previous(turn[:i], z, func(e *event) bool { return e.kind == evBackward || isStep(e) })
			if s == nil || b == nil || s.kind == evBackward || b.kind != evBackward || z.guarded != s.guarded {
				continue
			}
			c.say(&say{rule: "V01", at: z.node, title: "gradients are zeroed between backward and the step, which then changes nothing", sure: finding.High,
				evidence: finding.Says("backward at %s, the step at %s", c.lineOf(b), c.lineOf(s)),
				fix:      fmt.Sprintf("%s  # before the backward, or behind the step", c.text(z.node)), gain: "the model learns",
				disproved: "a backward between them in another file"})
		}
	}
}

// thrownAway is the step of an optimizer that is taken in each nth turn, while its gradients are zeroed in every one.
func (c *checker) thrownAway(turn []event, z *event) *event {
	if z.guarded || next(turn, z, func(e *event) bool { return e.kind == evBackward && e.loop == z.loop && !e.guarded }) == nil {
		return nil
	}
	every := func(e *event) bool { return isStep(e) && stepsWhat(c, e) == z.onText && e.loop == z.loop }
	if s := next(turn, z, every); s != nil && c.stepsAlone(turn, s) && s.guards == 1 && s.arm != nil && everyNth(s.arm) &&
		next(turn, z, func(e *event) bool { return every(e) && e.arm != s.arm || e.kind == evBackward && e.arm == s.arm }) == nil {
		return s
	}
	return nil
}

// everyNth tells whether an arm is that of each nth turn, and not that of all others.
func everyNth(a *arm) bool {
	return strings.Contains(a.test, "%") && (a.which == 0) == (strings.Contains(a.test, "==") || strings.Contains(a.test, "<"))
}

// stepsAlone tells whether an optimizer is the only one that steps in a turn.
func (c *checker) stepsAlone(turn []event, s *event) bool {
	return !has(turn, func(e *event) bool { return isStep(e) && stepsWhat(c, e) != stepsWhat(c, s) })
}

// stepsWhat is the optimizer of a step, as it is written.
func stepsWhat(c *checker, e *event) string {
	if e.kind == evScalerStep && e.call != nil {
		if a := arg(e.call, "optimizer", 0); a != nil {
			return c.text(a)
		}
	}
	return e.onText
}

// next is the first event that is wanted and can follow e in the same run.
func next(events []event, e *event, want func(*event) bool) *event {
	for i := range events {
		if f := &events[i]; want(f) && !f.arm.excludes(e.arm) {
			return f
		}
	}
	return nil
}

// previous is the last one before.
func previous(events []event, e *event, want func(*event) bool) *event {
	for i := len(events) - 1; i >= 0; i-- {
		if f := &events[i]; want(f) && !f.arm.excludes(e.arm) {
			return f
		}
	}
	return nil
}

func (c *checker) backwardInAutocast() {
	for i := range c.events {
		if e := &c.events[i]; e.kind == evBackward && e.modes&autocast != 0 {
			c.say(&say{rule: "V05", at: e.node, title: "backward runs under autocast", sure: finding.High,
				fix: "end the with block behind the loss, and call backward outside of it", gain: "gradients in the types that forward took",
				disproved: "autocast that is switched off here by enabled=False"})
		}
	}
}

func (c *checker) scalerOrder() {
	for _, l := range c.training {
		turn := c.turn(l)
		if !has(turn, func(e *event) bool { return e.kind == evScale || e.kind == evScalerStep }) {
			continue
		}
		for i := range turn {
			c.scalerEvent(turn, i)
		}
	}
}

// scaled tells whether a loss was scaled.
func (v *value) scaled() bool {
	return v != nil && (v.path == "scaled" || slices.Contains(v.names, "scaled"))
}

// scalerEvent judges an event of a loop in which a scaler works.
func (c *checker) scalerEvent(turn []event, i int) {
	e := &turn[i]
	is := func(k kind) func(*event) bool { return func(f *event) bool { return f.kind == k } }
	bad := func(title, fix string) {
		c.say(&say{rule: "V06", at: e.node, title: title, fix: fix, sure: finding.High, gain: "steps take the gradients that were computed",
			disproved: "a scaler that is made with enabled=False"})
	}
	switch e.kind {
	case evStep:
		b := previous(turn[:i], e, is(evBackward))
		if b != nil && b.arg.scaled() && previous(turn[:i], e, is(evUnscale)) == nil && next(turn, e, func(f *event) bool { return f.kind == evScalerStep && stepsWhat(c, f) == e.onText }) == nil {
			bad("the optimizer steps by itself, with gradients that the scaler has scaled", fmt.Sprintf("scaler.step(%s)", e.onText))
		}
		if s := next(turn, e, is(evScale)); s != nil && next(turn, e, func(f *event) bool { return f.kind == evScalerStep && stepsWhat(c, f) != e.onText }) == nil {
			bad("the optimizer steps by itself, with gradients that the scaler has scaled", fmt.Sprintf("%s.step(%s)", s.onText, e.onText))
		}
	case evScalerStep:
		switch u := next(turn, e, is(evUpdate)); {
		case u == nil:
			bad("the scaler is never updated: its scale never changes, and a step after infinities fails", fmt.Sprintf("%s.update()  # behind %s", e.onText, c.text(e.node)))
		case next(turn[i+1:], e, is(evUpdate)) == nil && !u.guarded:
			bad("the scaler is updated before it steps", fmt.Sprintf("%s  # behind %s", c.text(u.node), c.text(e.node)))
		}
	case evBackward:
		if !e.arg.scaled() && next(turn, e, is(evScale)) == nil {
			if s := next(turn, e, is(evScalerStep)); s != nil && !e.on.is(isEngine) {
				bad("the scaler steps with gradients that it has not scaled: it divides them by the scale", fmt.Sprintf("%s.scale(%s).backward()", s.onText, e.onText))
			}
		}
	}
}

func (c *checker) clips() {
	for _, l := range c.training {
		turn := c.turn(l)
		for i := range turn {
			e := &turn[i]
			if e.kind != evClip {
				continue
			}
			step := func(f *event) bool { return isStep(f) || f.kind == evBackward }
			after, before := next(turn[i+1:], e, step), previous(turn[:i], e, step)
			switch {
			case after != nil && after.kind == evScalerStep && previous(turn[:i], e, func(f *event) bool { return f.kind == evUnscale }) == nil:
				c.say(&say{rule: "V07", at: e.node, title: "gradients are clipped while they are scaled", sure: finding.High,
					fix: fmt.Sprintf("%s.unscale_(%s)  # before %s", after.onText, stepsWhat(c, after), shortened(c.text(e.node))), gain: "the limit holds for the gradients themselves",
					disproved: "gradients that are divided by the scale in another way"})
			case before != nil && isStep(before) && !before.guarded && (after == nil || after.kind == evBackward):
				c.say(&say{rule: "V08", at: e.node, title: "gradients are clipped behind the step that was to take them clipped", sure: finding.High,
					fix: "clip between backward and the step", gain: "steps take clipped gradients", disproved: "a step in another file that takes them"})
			case before == nil && after != nil && after.kind == evBackward:
				c.say(&say{rule: "V08", at: e.node, title: "gradients are clipped before backward computes them", sure: finding.High,
					fix: "clip between backward and the step", gain: "steps take clipped gradients", disproved: "gradients that were there before the loop"})
			}
		}
	}
}

// shortened is a text of at most 60 bytes, which ends with a whole character.
func shortened(s string) string {
	if len(s) <= 60 {
		return s
	}
	end := 57
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}

func (c *checker) schedule() {
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evSchedule || e.loop == nil {
			continue
		}
		l := e.loop
		for l != nil && !c.any(l, isStep) {
			l = l.parent
		}
		if l == nil {
			continue
		}
		turn := c.turn(l)
		at := i - l.from
		s := next(turn[at+1:], e, isStep)
		if s == nil || previous(turn[:at], e, isStep) != nil || e.guarded && !e.arm.impliedBy(s.arm) {
			continue
		}
		c.say(&say{rule: "V09", at: e.node, title: "the learning rate is changed before the optimizer steps", sure: finding.High,
			evidence: finding.Says("the step is at %s", c.lineOf(s)),
			fix:      fmt.Sprintf("%s  # behind %s.step()", c.text(e.node), s.onText), gain: "the first rate of the schedule is used",
			disproved: "a schedule that is not PyTorch's, and is meant to step first"})
	}
}

var (
	ofEpochs  = pattern(`(?i)epoch`)
	ofBatches = pattern(`(?i)\blen\(|steps|iter|batch`)
)

// miscounted are schedules that are made for so many epochs and step in every batch, or the other way round.
func (c *checker) miscounted() {
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evSchedule || e.loop == nil || e.guarded || e.on.call == nil || e.call == nil || len(e.call.Args) > 0 {
			continue
		}
		made := c.counts(e.on.call)
		epochs := (ofEpochs().MatchString(made) || c.countsTurns(e)) && !ofBatches().MatchString(made)
		switch {
		case (epochs || c.fewSteps(e.on)) && c.backwardOf(e.loop) && e.loop.parent != nil && c.ofEpoch(e.loop.parent) && !ofEpochs().MatchString(c.loopHead(e.loop)):
			c.say(&say{rule: "V32", at: e.node, title: fmt.Sprintf("%s counts epochs, and steps in every batch", e.onText), sure: finding.High,
				evidence: finding.Says("it is made with %s", made), fix: fmt.Sprintf("%s  # behind the loop over %s", c.text(e.node), e.loop.text), gain: "the rates that are meant, over all epochs",
				disproved: "a variable of that name that counts batches"})
		case strings.Contains(made, "len(") && !strings.Contains(made, "//") && !c.backwardOf(e.loop) && c.hasKind(e.loop, evBackward) && c.ofEpoch(e.loop):
			c.say(&say{rule: "V32", at: e.node, title: fmt.Sprintf("%s counts batches, and steps once per epoch", e.onText), sure: finding.High,
				evidence: finding.Says("it is made with %s", made), fix: fmt.Sprintf("%s  # behind each step of the optimizer", c.text(e.node)), gain: "the whole schedule",
				disproved: "a length that is one of epochs"})
		}
	}
}

// ofEpoch tells whether a turn of a loop is an epoch: it says so, or goes over a loader within.
func (c *checker) ofEpoch(l *loop) bool {
	return ofEpochs().MatchString(c.loopHead(l)) || l.iter.is(isNumber) && slices.ContainsFunc(c.training, func(in *loop) bool { return in.parent == l && givesBatches(in.iter) })
}

// countsTurns tells whether a schedule is made for as many steps as the loop around its own has turns.
func (c *checker) countsTurns(e *event) bool {
	if e.loop.parent == nil {
		return false
	}
	f, ok := e.loop.parent.node.(*pysyntax.For)
	if !ok {
		return false
	}
	r, ok := f.Iter.(*pysyntax.Call)
	if !ok || !isWord(r.Func, "range") || len(r.Args) == 0 {
		return false
	}
	turns := c.text(r.Args[len(r.Args)-1].Value)
	return slices.ContainsFunc(e.on.call.Args[min(1, len(e.on.call.Args)):], func(a pysyntax.Arg) bool { return c.text(a.Value) == turns })
}

// fewSteps tells whether a schedule changes the rate after so many steps as nobody has batches.
func (c *checker) fewSteps(schedule *value) bool {
	last := lastName(schedule.path)
	if last == "ExponentialLR" {
		g, ok := arg(schedule.call, "gamma", 1).(*pysyntax.Number)
		return ok && strings.HasPrefix(g.Text, "0.") && g.Text < "0.99"
	}
	if last != "StepLR" && last != "MultiStepLR" && last != "CosineAnnealingLR" {
		return false
	}
	x := cmp.Or(arg(schedule.call, "step_size", 1), arg(schedule.call, "T_max", 1))
	if last == "MultiStepLR" {
		x = arg(schedule.call, "milestones", 1)
	}
	numbers := []pysyntax.Expr{x}
	if s, ok := x.(*pysyntax.Sequence); ok {
		numbers = s.Elements
	}
	return !slices.ContainsFunc(numbers, func(x pysyntax.Expr) bool {
		n, ok := x.(*pysyntax.Number)
		return !ok || len(n.Text) != 2 && (len(n.Text) != 3 || n.Text > "300")
	})
}

// counts is what a schedule is made with beside its optimizer, as it is written.
func (c *checker) counts(made *pysyntax.Call) string {
	var all []string
	for _, a := range made.Args[min(1, len(made.Args)):] {
		all = append(all, c.argText(a))
	}
	return strings.Join(all, ", ")
}

// loopHead is the line of a loop.
func (c *checker) loopHead(l *loop) string { return c.f.LineText(c.f.Line(l.node)) }

func (c *checker) retained() {
	if c.graphUsedAgain() {
		return
	}
	for _, l := range c.training {
		turn := c.turn(l)
		for i := range turn {
			e := &turn[i]
			if e.kind != evBackward || e.call == nil || !isTrue(arg(e.call, "retain_graph", -1)) {
				continue
			}
			if b := next(turn[i+1:], e, func(f *event) bool { return f.kind == evBackward || f.kind == evZero || isStep(f) }); b != nil && c.oneByOne(l, e, b) {
				c.say(&say{rule: "V22", at: e.node, title: fmt.Sprintf("%s and %s go backward one after the other, through the graph that they share", c.lossOf(e), c.lossOf(b)), sure: finding.Medium,
					fix: fmt.Sprintf("(%s + %s).backward()", c.lossOf(e), c.lossOf(b)), gain: "the backward of all that they share, once",
					evidence: finding.Says("the second backward is at %s, and no step is between them", c.lineOf(b)), disproved: "gradients of each that are looked at between them, in another file"})
				continue
			}
			if b := next(turn[i+1:], e, func(f *event) bool { return f.kind == evBackward }); b != nil {
				c.throughOthers(turn, i, e, b)
				continue
			}
			c.say(&say{rule: "V22", at: e.node, title: "the graph is retained, and nothing goes backward through it again in this step", sure: finding.Medium,
				fix: "leave retain_graph out; if backward then fails, detach the state that goes on from step to step: h = h.detach()", gain: "the memory of the values of each step",
				disproved: "a second backward, or torch.autograd.grad, through the same values in another file"})
		}
	}
}

// throughOthers judges a graph that is retained for a second loss, where the first one goes back into parameters whose gradients are zeroed
// before any step takes them.
func (c *checker) throughOthers(turn []event, i int, e, b *event) {
	s := next(turn[i+1:], e, isStep)
	z := next(turn[i+1:], e, func(f *event) bool { return f.kind == evZero && s != nil && f.onText != stepsWhat(c, s) })
	if s == nil || z == nil || !before(s, b, turn) || !before(z, b, turn) || next(turn[i+1:], e, func(f *event) bool { return isStep(f) && stepsWhat(c, f) == z.onText }) == nil || e.guarded || b.guarded {
		return
	}
	c.say(&say{rule: "V22", at: e.node, title: fmt.Sprintf("the graph is retained for %s, and what this backward puts into the parameters of %s is zeroed before their step", c.lossOf(b), z.onText), sure: finding.Medium,
		evidence: finding.Says("zeroed at %s, backward again at %s", c.lineOf(z), c.lineOf(b)), fix: fmt.Sprintf("compute %s of detached values (fake.detach()), and leave retain_graph out", c.lossOf(e)), gain: "a backward through the other model, and the memory of its values",
		disproved: "gradients that are looked at before they are zeroed"})
}

// before tells whether an event comes before another in a turn.
func before(a, b *event, turn []event) bool {
	for i := range turn {
		switch &turn[i] {
		case a:
			return true
		case b:
			return false
		}
	}
	return false
}

// oneByOne tells whether two losses of a step go backward by themselves where their sum would do.
func (c *checker) oneByOne(l *loop, a, b *event) bool {
	return b.kind == evBackward && a.loop == b.loop && a.arm == b.arm && !a.guarded && !b.guarded && a.fn == b.fn && c.lossOf(a) != c.lossOf(b) && !slices.Contains(b.arg.names, c.lossOf(a)) &&
		!gradsUsed().MatchString(c.f.Text(l.node))
}

// gradsUsed matches programs that look at gradients.
var gradsUsed = pattern(`\.grad\b`)

// lossOf is what a backward starts from, as it is written.
func (c *checker) lossOf(e *event) string {
	if a, ok := e.call.Func.(*pysyntax.Attribute); ok {
		return c.text(a.X)
	}
	return e.onText
}

// graphUsedAgain tells whether the program asks for gradients beside backward.
func (c *checker) graphUsedAgain() bool {
	return c.mentions("autograd.grad(", "create_graph")
}

func (c *checker) twice() {
	for _, l := range c.training {
		turn := c.turn(l)
		for i := range turn {
			b := &turn[i]
			if b.kind != evBackward || b.loop != l && b.loop.parent == nil {
				continue
			}
			a := previous(turn[:i], b, func(f *event) bool { return f.kind == evBackward || f.kind == evZero || isStep(f) })
			if a == nil || a.kind != evBackward || a.onText == b.onText || a.call == nil {
				continue
			}
			if n, ok := a.call.Func.(*pysyntax.Attribute); ok {
				if x, ok := n.X.(*pysyntax.Name); ok && slices.Contains(b.arg.names, x.ID) {
					c.say(&say{rule: "V25", at: b.node, title: fmt.Sprintf("%s goes backward by itself and within %s: its gradient counts twice", x.ID, b.onText), sure: finding.Medium,
						evidence: finding.Says("backward of %s at %s", x.ID, c.lineOf(a)),
						fix:      fmt.Sprintf("leave %s out", shortened(c.text(a.node))), gain: "gradients of the loss that is meant",
						disproved: "a weight of two that is meant"})
				}
			}
		}
	}
}

// rewraps tells whether a value is a new tensor of what the host has.
func rewraps(v *value) bool {
	return v.path == "torch.tensor" || v.path == "torch.as_tensor" || v.path == "torch.from_numpy" || strings.HasSuffix(v.path, ".Variable") && v.call != nil
}

func (c *checker) graphCut() {
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evBackward || e.arg == nil {
			continue
		}
		v := e.arg
		rewrapped := rewraps(v)
		if !rewrapped && !v.cut() {
			continue
		}
		title := "backward of a value that has no graph any more"
		if rewrapped {
			title = "backward of a new tensor, which has nothing of the model's graph"
		}
		c.say(&say{rule: "V21", at: e.node, title: title, sure: finding.High, fix: "call backward on the loss as the model's operations made it; what is printed or kept is detached beside it",
			gain: "the model learns", disproved: "a leaf whose gradient is what is asked for"})
	}
}
