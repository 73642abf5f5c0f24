package vetpy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/pysyntax"
)

func (c *checker) kept() {
	evaluation := map[*loop]bool{}
	if !c.switchedOff() {
		for _, e := range c.evaluations() {
			evaluation[e.loop] = true
		}
	}
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evKeep || e.modes&noGrad != 0 || !c.trainsIn(c.stepOf(e)) && !evaluation[e.loop] || e.what == "[]" && !c.hasKind(e.loop, evBackward) || c.goesBackward(e) || c.emptied(e) || c.restarted(e) || c.ofStep(e) {
			continue
		}
		c.say(&say{rule: "R06", at: e.node, title: keptTitle(e), sure: finding.High, fix: c.keptFix(e),
			gain:      "the memory of every step so far, and the time to free it",
			disproved: fmt.Sprintf("%s going backward in another file, or being emptied there in every step", e.onText)})
	}
}

// stepOf is the loop of an event, or the one around loops over parts of a step.
func (c *checker) stepOf(e *event) *loop {
	l := e.loop
	for l != nil && l.parent != nil && !c.trainsIn(l) && !c.overLoader(l) && !c.hasKind(l, evForward) {
		l = l.parent
	}
	return l
}

// ofStep tells whether what collects is made anew for each step, of several parts that go backward one by one.
func (c *checker) ofStep(k *event) bool {
	l := k.on.loop
	return l != nil && k.loop != nil && !c.any(k.loop, isStep) && c.any(l, func(e *event) bool { return isStep(e) && e.loop == l })
}

// restarted tells whether what adds up begins anew with the steps of an optimizer that takes several turns together.
func (c *checker) restarted(k *event) bool {
	names, ok := c.restarts[k.loop]
	if !ok {
		names = c.assignedWithSteps(k.loop)
		c.restarts[k.loop] = names
	}
	return names[k.onText]
}

// assignedWithSteps is what a loop assigns, as it is written, where a condition lets an optimizer step.
func (c *checker) assignedWithSteps(l *loop) map[string]bool {
	var body []pysyntax.Stmt
	switch l := l.node.(type) {
	case *pysyntax.For:
		body = l.Body
	case *pysyntax.While:
		body = l.Body
	}
	names := map[string]bool{}
	pysyntax.Inspect(body, func(n pysyntax.Node) bool {
		if s, ok := n.(*pysyntax.If); ok && strings.Contains(c.f.Text(s), ".step(") {
			pysyntax.Inspect(s.Body, func(n pysyntax.Node) bool {
				if a, ok := n.(*pysyntax.Assign); ok {
					for _, t := range a.Targets {
						names[c.text(t)] = true
					}
				}
				return true
			})
		}
		return true
	})
	return names
}

// emptied tells whether what a variable collects is let go of, perhaps in the step: not where that is seen to come once per epoch.
func (c *checker) emptied(k *event) bool {
	rarely := false
	for i := range c.events {
		e := &c.events[i]
		if e.onText != k.onText || e.what != "dropped.clear" {
			continue
		}
		if !(e.loop != k.loop && k.loop.within(e.loop) && e.loop != nil) && !(e.loop == nil && e.fn != nil && strings.Contains(e.fn.node.Name, "epoch")) {
			return true
		}
		rarely = true
	}
	return c.cleared[k.onText] && !rarely
}

func keptTitle(e *event) string {
	switch e.what {
	case "+=":
		return fmt.Sprintf("%s adds up values with their graphs, from step to step", e.onText)
	case "[]":
		return "the comprehension keeps values with their graphs, from step to step"
	case "[]=":
		return fmt.Sprintf("%s holds values with their graphs, from step to step", e.onText)
	}
	return fmt.Sprintf("%s collects values with their graphs, from step to step", e.onText)
}

func (c *checker) keptFix(e *event) string {
	switch n := e.node.(type) {
	case *pysyntax.AugAssign:
		if n.Op == "+" && !several(n.Value) {
			return c.text(n.Target) + " += " + c.detached(n.Value) + "  # on the device; .item() once, when it is printed"
		}
	case *pysyntax.Call:
		if x := arg(n, "", 0); x != nil && len(n.Args) == 1 && !several(x) {
			return c.text(n.Func) + "(" + c.detached(x) + ")"
		}
	}
	if e.what == "+=" {
		return "add the value's .detach()"
	}
	return "keep the value's .detach()"
}

// several tells whether an expression is written as more than one value, of which each is detached by itself.
func several(x pysyntax.Expr) bool {
	switch x.(type) {
	case *pysyntax.Sequence, *pysyntax.Dict, *pysyntax.Comprehension:
		return true
	}
	return false
}

// detached is an expression without its graph.
func (c *checker) detached(x pysyntax.Expr) string {
	switch x.(type) {
	case *pysyntax.Name, *pysyntax.Attribute, *pysyntax.Call, *pysyntax.Subscript:
		return c.text(x) + ".detach()"
	}
	return "(" + c.text(x) + ").detach()"
}

// goesBackward tells whether what a variable collects goes backward in the end.
func (c *checker) goesBackward(k *event) bool {
	for i := range c.events {
		if e := &c.events[i]; e.kind == evBackward && e.arg != nil && slices.Contains(e.arg.names, k.onText) {
			return true
		}
	}
	return false
}

func (c *checker) state() {
	told := map[*value]bool{} // where a module hands it on, it is the same
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evForward || e.modes&noGrad != 0 || !c.trainsIn(e.loop) {
			continue
		}
		for _, v := range states(e.args) {
			if v.turn == 0 || v.turn != e.loop.before || !carries(v) || told[v] || v.arm.excludes(e.arm) || c.detachedSomewhere(v) {
				continue
			}
			told[v] = true
			name := "a state"
			if len(v.names) > 0 {
				name = v.names[len(v.names)-1]
			}
			c.say(&say{rule: "V02", at: e.node, title: fmt.Sprintf("%s goes into the next step with its graph", name), sure: finding.High,
				fix: fmt.Sprintf("%s = %s.detach()  # at the beginning of each step; of an LSTM, each part of it", name, name), gain: "backward through one step, not through all",
				disproved: "a function of another file that detaches it"})
		}
	}
}

// states are what a module is given beside its input, or as its only one; of tuples, each part.
func states(args []*value) (all []*value) {
	if len(args) > 1 {
		args = args[1:]
	}
	for _, v := range args {
		all = append(append(all, v), v.elems...)
	}
	return all
}

// detachedSomewhere tells whether a variable is detached by a program in a way that the walk does not see.
func (c *checker) detachedSomewhere(v *value) bool {
	for _, n := range v.names {
		if c.mentions(n+".detach", "repackage") {
			return true
		}
	}
	return c.mentions("detach_()")
}

// scoring matches functions, loops and loaders that evaluate.
var scoring = pattern(`(?i)(^|[_.\W])(val|valid|validate|validation|test|testing|eval|evaluate|evaluation|estimate|infer|inference|predict|score|accuracy)($|[_.\W\d])|validloader|valloader|testloader|evalloader`)

// findEvaluations finds the loops that call a model and never go backward: of each, the call.
func (c *checker) findEvaluations() (calls []*event) {
	for _, l := range c.loops {
		if l.lighting || l.alone || !c.hasKind(l, evForward) || ofCallers(l.fn) || c.any(l, differentiates) || c.trainsAround(l) {
			continue
		}
		known := c.overLoader(l)
		if !known && !c.evaluates(l) {
			continue
		}
		if !scoring().MatchString(l.text) && (l.fn == nil || !scoring().MatchString(l.fn.node.Name)) && !c.evaluates(l) && !c.withoutRecording(l) {
			continue
		}
		for i := l.from; i < l.to; i++ {
			e := &c.events[i]
			batch := known || e.kind == evForward && c.isAsked(l, e) || slices.ContainsFunc(e.args, func(v *value) bool { return v.is(isBatch | isElement) })
			if e.kind == evForward && e.loop == l && e.on.is(isModule) && !e.on.is(isCriterion) && batch {
				calls = append(calls, e)
				break
			}
		}
	}
	return calls
}

// withoutRecording tells whether a loop over a loader that was made here asks models without recording, in a loop that trains.
func (c *checker) withoutRecording(l *loop) bool {
	return l.parent != nil && givesBatches(l.iter) && c.hasKind(l.parent, evBackward) && c.any(l, func(e *event) bool { return e.kind == evForward && e.modes&noGrad != 0 }) &&
		c.any(l.parent, func(e *event) bool { return e.kind == evTrain })
}

// isAsked tells whether a program that never goes backward sets a model to evaluation and asks it in a loop.
func (c *checker) isAsked(l *loop, e *event) bool {
	return e.on.is(isModule) && l.iter.is(isNumber) && (c.mentions("no_grad", "inference_mode") || !has(c.events, func(b *event) bool { return b.kind == evBackward })) &&
		has(c.events[:l.from], func(m *event) bool { return m.kind == evEval && m.onText == e.onText && m.fn == l.fn })
}

// ofCallers tells whether the modes of a function are those of a caller that is not seen: methods of a module.
func ofCallers(d *function) bool {
	return d != nil && d.class != nil && d.class.module && !d.class.lighting && (d.alone || d.node.Name == "forward")
}

// differentiates tells whether an event goes backward.
func differentiates(e *event) bool {
	return e.kind == evBackward || e.kind == evCall && (e.what == "torch.autograd.grad" || strings.HasSuffix(e.what, ".backward") || strings.HasPrefix(e.what, "torch.func."))
}

// overLoader tells whether a loop takes batches of a loader by way of enumerate or zip.
func (c *checker) overLoader(l *loop) bool {
	return givesBatches(l.iter) || strings.Contains(strings.ToLower(l.text), "loader") || isSimple(l.text) && scoring().MatchString(l.text)
}

// trainsAround tells whether what is around a loop goes backward behind it, through what the loop gives: its parts of a step.
func (c *checker) trainsAround(l *loop) bool {
	end := len(c.events)
	if l.parent != nil {
		end = l.parent.to
	}
	first, _ := slices.BinarySearch(c.backwards, l.to)
	return slices.ContainsFunc(c.backwards[first:], func(i int) bool { return i < end && c.events[i].loop == l.parent && c.events[i].fn == l.fn })
}

// guides matches the names of models that a training only asks.
var guides = pattern(`(?i)teacher|ref_model|reference_model`)

// guided are models that a training asks and that never learn there: each step goes backward through them for nothing.
func (c *checker) guided() {
	records := !c.mentions("detach", "requires_grad") && !c.switchedOff()
	for _, l := range c.training {
		for i := l.from; i < l.to; i++ {
			e := &c.events[i]
			if e.kind != evForward || !guides().MatchString(e.onText) || c.zeroed[e.onText] || c.mentions(e.onText+".parameters") {
				continue
			}
			if records && e.modes&noGrad == 0 {
				c.recordsGuide(e)
			} else if e.on.call == nil || records && c.any(l, func(f *event) bool { return f.kind == evForward && f.modes&noGrad == 0 && f.onText == e.onText }) {
				continue
			}
			if c.modal(e.on) && !c.setsEvaluation(e) {
				c.say(&say{rule: "V03", at: e.node, title: fmt.Sprintf("%s is asked in training mode", e.onText), sure: finding.Medium, fix: fmt.Sprintf("%s.eval()  # before the loop", e.onText), gain: "answers of the model as it was trained",
					disproved: "a model without dropout and batch norm, or an eval() in another file"})
			}
		}
	}
}

// recordsGuide tells of a guide that is asked with recording.
func (c *checker) recordsGuide(e *event) {
	c.say(&say{rule: "R09", at: e.node, title: fmt.Sprintf("%s is asked in every step, and records a graph that changes nothing", e.onText), sure: finding.Medium,
		fix: "with torch.no_grad():  # around it", gain: "the memory of its values, and its backward", evidence: finding.Says("no optimizer has the parameters of %s", e.onText),
		disproved: "parameters that are frozen, or learn, in another file"})
}

// setsEvaluation tells whether a model that is asked is set to evaluation somewhere: it, or a part of the module that has it.
func (c *checker) setsEvaluation(e *event) bool {
	last := lastName(e.onText)
	return has(c.events, func(m *event) bool {
		return m.kind == evEval && (m.onText == e.onText || strings.HasSuffix(m.onText, last) || m.on.call != nil && m.on.call == e.on.call)
	})
}

func (c *checker) graphInEvaluation() {
	for _, e := range c.evaluations() {
		if e.modes&noGrad != 0 || c.switchedOff() || has(c.events, func(r *event) bool { return r.what == "ungraphed" && r.fn == e.loop.fn }) {
			continue
		}
		sure := finding.Medium
		if c.evaluates(e.loop) {
			sure = finding.High
		}
		c.say(&say{rule: "R09", at: e.node, title: "the evaluation records graphs that nothing goes backward through", sure: sure,
			fix: "with torch.no_grad():  # around the loop, or @torch.no_grad() on the function", gain: "a third to a tenth of the evaluation's memory, and 10 to 30 % of its time",
			evidence: finding.Says("the loop over %s has no backward", e.loop.text), disproved: "a caller of another file that has no_grad around it"})
	}
}

// switchedOff tells whether recording is switched off for the whole program.
func (c *checker) switchedOff() bool {
	return c.mentions("set_grad_enabled(")
}

// evaluates tells whether the last mode that was set before a loop is that of evaluation.
func (c *checker) evaluates(l *loop) bool {
	if len(c.settings) == 0 {
		return false
	}
	if c.hasKind(l, evEval) {
		return true
	}
	before, _ := slices.BinarySearch(c.settings, l.from)
	return before > 0 && c.events[c.settings[before-1]].kind == evEval
}

// modal matches layers that behave in another way in evaluation.
var modal = pattern(`Dropout|BatchNorm|dropout\s*=|dropout\(|torchvision\.models|torchvision import.*models|timm|from_pretrained|TransformerEncoder|resnet`)

func (c *checker) evaluationMode() {
	modes := has(c.events, func(e *event) bool { return e.kind == evTrain })
	for _, e := range c.evaluations() {
		l := e.loop
		if !c.modal(e.on) && (!modes || e.on.class != nil || strings.HasPrefix(e.on.path, "torch.nn.")) { // a program that sets modes of what it does not make has a reason
			continue
		}
		if c.evaluates(l) || ofForeign(l.fn) || l.fn != nil && !c.called(l.fn) && !c.trainsBefore(l) {
			continue
		}
		c.say(&say{rule: "V03", at: l.node, title: "the model is evaluated in training mode", sure: finding.Medium,
			fix: fmt.Sprintf("%s.eval()  # before the loop, and %s.train() behind it", e.onText, e.onText), gain: "scores of the model as it will be used",
			evidence: finding.Says("%s is called at %s, and no eval() comes before", e.onText, c.lineOf(e)), disproved: "a model without dropout and batch norm, or an eval() in another file"})
	}
}

// ofForeign tells whether a function is a method of a class that derives from one of another file, which may set the modes.
func ofForeign(d *function) bool {
	return d != nil && d.class != nil && !d.class.lighting && !d.class.module && slices.ContainsFunc(d.class.bases, func(b string) bool { return b != "" && b != "builtins.object" })
}

// aside are evaluations of a model between its steps that are no loops.
func (c *checker) aside() {
	for i := range c.events {
		e := &c.events[i]
		if e.kind == evForward && c.shown(e) {
			c.say(&say{rule: "V03", at: e.node, title: "the model is asked in training mode", sure: finding.Medium, fix: fmt.Sprintf("%s.eval()  # once, when it is loaded", e.onText), gain: "answers of the model as it was trained",
				evidence: finding.Says("no eval() in the program"), disproved: "a model without dropout and batch norm, or an eval() in another file"})
			continue
		}
		if e.kind != evForward || e.modes&noGrad == 0 || e.fn == nil || !scoring().MatchString(e.fn.node.Name) || e.loop == nil || !e.on.is(isModule) || !c.modal(e.on) {
			continue
		}
		why := "no eval() in the program"
		if c.backwardOf(e.loop) {
			m := previous(c.events[:i], e, func(f *event) bool { return f.kind == evTrain || f.kind == evEval })
			if m == nil || m.kind == evEval || m.loop != e.loop {
				continue
			}
			why = "train() comes before it, at " + c.lineOf(m)
		} else if !c.neverSet(e) {
			continue
		}
		c.say(&say{rule: "V03", at: e.node, title: "the model is evaluated in training mode", sure: finding.Medium,
			fix: fmt.Sprintf("%s.eval()  # before, and %s.train() behind it", e.onText, e.onText), gain: "scores of the model as it will be used",
			evidence: finding.Says("%s", why), disproved: "a model without dropout and batch norm, or an eval() in another file"})
	}
}

// neverSet tells whether a model that is evaluated in a loop of a function that a training calls is one that it trains, and no mode is set in
// the whole program.
func (c *checker) neverSet(e *event) bool {
	l := e.loop.parent
	return len(c.settings) == 0 && e.on.call != nil && e.on.class != nil && l != nil && l.fn != e.fn && c.backwardOf(l) &&
		c.any(l, func(f *event) bool { return f.kind == evForward && f.modes&noGrad == 0 && f.on.call == e.on.call })
}

// shown tells whether a model that was loaded is asked without recording, and no mode is set in the whole program, which does not train.
func (c *checker) shown(e *event) bool {
	return e.modes&noGrad != 0 && e.loop == nil && e.on.is(isModule) && e.on.call != nil && c.modal(e.on) && c.mentions("load_state_dict(") &&
		!ofModuleMethod(e) && !has(c.events, func(m *event) bool { return m.kind == evEval || m.kind == evTrain || m.kind == evBackward })
}

// modal tells whether a model may have layers that behave in another way in evaluation: of a class of the file, whether its classes have.
func (c *checker) modal(model *value) bool {
	if model.class == nil {
		return c.modalFile()
	}
	return c.modalClass()
}

// trainsBefore tells whether the function of a loop has set a mode before it.
func (c *checker) trainsBefore(l *loop) bool {
	return has(c.events[:l.from], func(e *event) bool { return e.kind == evTrain && e.fn == l.fn })
}

// called tells whether a function is entered from elsewhere in the file.
func (c *checker) called(d *function) bool {
	return strings.Count(c.f.String(), d.node.Name+"(") > 1
}

func (c *checker) staysInEvaluation() {
	for _, l := range c.loops {
		if l.lighting || l.alone || !c.hasKind(l, evEval) || c.hasKind(l, evTrain) || !c.any(l, isStep) || !c.hasKind(l, evBackward) {
			continue
		}
		for i := l.from; i < l.to; i++ {
			e := &c.events[i]
			if e.kind != evEval || !c.trainedModel(l, e) {
				continue
			}
			c.say(&say{rule: "V04", at: e.node, title: fmt.Sprintf("%s stays in evaluation mode for the rest of the training", e.onText), sure: finding.High,
				fix: fmt.Sprintf("%s.train()  # before the steps of each epoch", e.onText), gain: "dropout and batch norm work in all epochs",
				evidence: finding.Says("no train() in the loop over %s", l.text), disproved: "a model without dropout and batch norm, or a train() in another file"})
			break
		}
	}
}

// trainedModel tells whether the model that is set to evaluation is one that the loop also trains.
func (c *checker) trainedModel(l *loop, e *event) bool {
	for i := l.from; i < l.to; i++ {
		f := &c.events[i]
		if f.kind == evForward && !f.arm.excludes(e.arm) && f.modes&noGrad == 0 && f.loop != nil && c.hasKind(f.loop, evBackward) && (f.onText == e.onText || f.on == e.on || f.on.call != nil && f.on.call == e.on.call) {
			return true
		}
	}
	return false
}
