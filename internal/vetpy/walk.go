package vetpy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/pysyntax"
)

// walker goes through a file as it would be executed.
type walker struct {
	f       *pysyntax.File
	file    *scope
	linked  *linked // nil of a program by itself
	classes []*class
	defs    []*function
	known   map[*pysyntax.Function]*function
	lambdas map[*pysyntax.Lambda]*function

	events []event
	loops  []*loop
	quiet  int // nothing is recorded
	steps  int // statements and calls so far

	frame
	entered []*function
	loop    *loop
	turn    int // of the innermost loop; turns have numbers of their own
	turns   int
	guards  int // conditions within the innermost loop
	arm     *arm
	modes   modes

	zeroed   map[string]bool // what zero_grad is called on, as it is written
	backward map[string]bool // what backward is called on, without a loss as its argument
	learns   map[string]bool // what is asked for its parameters, or set to evaluation: modules
	words    map[string]bool // that the source was asked for: whether it has them
	cleared  map[string]bool // lists that are emptied somewhere
	placed   bool            // the program says where tensors are made that are not told
	gpu      bool            // the program computes on a device that is apart from the host
}

// maxSteps bounds a walk: calls are entered each time that they are met.
const maxSteps = 200_000

// maxArms is how many conditions that end a turn are remembered for what follows them: arms are compared each with each.
const maxArms = 100

// maxEntered is how deep calls are entered.
const maxEntered = 8

func newWalker(f *pysyntax.File) *walker {
	w := &walker{f: f, known: map[*pysyntax.Function]*function{}, lambdas: map[*pysyntax.Lambda]*function{}, zeroed: map[string]bool{}, backward: map[string]bool{}, learns: map[string]bool{}, cleared: map[string]bool{}, words: map[string]bool{}}
	w.file = &scope{vars: map[string]*value{}}
	w.scope = w.file
	s := f.String()
	called(s, ".zero_grad", func(on, _ string) { w.zeroed[on] = true })
	called(s, ".backward", func(on, args string) {
		if hasPrefix(args, ")", "gradient", "retain_graph", "create_graph", "inputs") {
			w.backward[on] = true
		}
	})
	learns := func(on, _ string) {
		if !strings.Contains(on, "[") {
			w.learns[on] = true
		}
	}
	called(s, ".parameters", learns)
	called(s, ".named_parameters", learns)
	called(s, ".eval", func(on, args string) {
		if hasPrefix(args, ")") {
			learns(on, args)
		}
	})
	for _, method := range []string{".clear", ".pop", ".popleft"} {
		called(s, method, func(on, _ string) { w.cleared[on] = !strings.Contains(on, "[") })
	}
	deleted(s, func(name string) { w.cleared[name] = true })
	w.placed = w.mentions("set_default_device", "set_default_tensor_type", "with torch.device(")
	w.gpu = w.mentions(".cuda(", `"cuda`, "'cuda", "accelerat") || hasWord(s, "device") || hasWord(s, "mps") || hasWord(s, "xpu")
	return w
}

// run walks the file, and then what nothing in it calls.
func (w *walker) run() {
	body := w.f.Body
	if w.linked != nil {
		m := w.linked.modules[0]
		body, m.scope, m.ran = m.body, w.file, true
	}
	w.block(body)
	for _, c := range w.classes {
		if !w.foreign(c.node) {
			w.instance(c)
		}
	}
	for _, methods := range []bool{false, true} {
		for i := 0; i < len(w.defs); i++ { // walking may find more
			if d := w.defs[i]; !d.ran && (methods || d.class == nil) && !w.foreign(d.node) {
				d.alone = true
				w.alone(d)
			}
		}
	}
}

// alone walks a function whose caller is not in the file.
func (w *walker) alone(d *function) {
	var self *value
	if d.class != nil {
		self = w.instance(d.class)
	}
	if d.class != nil && d.class.lighting && strings.HasSuffix(d.node.Name, "_step") {
		l := &loop{node: d.node, fn: d, text: "batches", iter: unknown, lighting: true, from: len(w.events)}
		w.loops = append(w.loops, l)
		w.loop = l
		if d.node.Name != "training_step" {
			w.modes |= noGrad
		}
		w.enter(d, self, nil, nil)
		l.to = len(w.events)
		w.loop, w.modes = nil, 0
		return
	}
	events, loops := len(w.events), len(w.loops)
	w.enter(d, self, nil, nil)
	if has := func(is func(*event) bool) bool {
		return has(w.events[events:], func(e *event) bool { return is(e) && e.loop == nil })
	}; !has(isStep) || !has(func(e *event) bool { return e.kind == evBackward }) {
		return
	}
	w.events, w.loops = w.events[:events], w.loops[:loops] // a step by itself: who calls it has the loop
	w.loop = &loop{node: d.node, fn: d, text: "steps", iter: unknown, alone: true, from: events}
	w.loops = append(w.loops, w.loop)
	w.enter(d, self, nil, nil)
	w.loop.to = len(w.events)
	w.loop = nil
}

// instance is an object of a class, whose __init__ has been walked.
func (w *walker) instance(c *class) *value {
	if c.instance != nil {
		return c.instance
	}
	v := &value{class: c, fields: map[string]*value{}}
	if c.module {
		v.traits |= isModule
	}
	c.instance = v
	if init := c.methods["__init__"]; init != nil {
		w.apart(func() { w.enter(init, v, nil, nil) })
	}
	return v
}

// apart walks what runs by itself, not in the loop, the branch and the modes in which it is met.
func (w *walker) apart(f func()) {
	loop, arm, guards, modes := w.loop, w.arm, w.guards, w.modes
	w.loop, w.arm, w.guards, w.modes = nil, nil, 0, 0
	f()
	w.loop, w.arm, w.guards, w.modes = loop, arm, guards, modes
}

func (w *walker) record(e *event) {
	if w.quiet > 0 {
		return
	}
	e.loop, e.guards, e.modes, e.fn, e.arm = w.loop, w.guards, w.modes, w.fn, w.arm
	e.guarded = w.guards > 0
	e.forward = slices.ContainsFunc(w.entered, func(d *function) bool { return d.class != nil && d.class.module && d.node.Name == "forward" })
	w.events = append(w.events, *e)
}

// block walks statements. Where an if ends its turn, what follows is its other arm.
func (w *walker) block(body []pysyntax.Stmt) {
	outer, guards := w.arm, w.guards
	for _, s := range body {
		if w.steps++; w.steps > maxSteps {
			break
		}
		w.statement(s)
		if c, ok := s.(*pysyntax.If); ok && c.Else == nil && leaves(c.Body) && w.arm.deep() < maxArms {
			test, which := w.tested(c.Test)
			w.arm = &arm{w.arm, test, 1 - which}
			if strings.Contains(test, "%") { // what follows comes in each nth turn
				w.guards++
			}
		}
	}
	w.arm, w.guards = outer, guards
}

// tested is what a condition asks for, as it is written where a name stands for it, and which of its ways the body is.
func (w *walker) tested(x pysyntax.Expr) (test string, which int) {
	test = w.text(x)
	if n, ok := strings.CutPrefix(test, "not "); ok {
		test, which = n, 1
	}
	if isSimple(test) {
		if v := w.scope.get(test); v != nil && v.text != "" && v.text[0] != '"' {
			test = v.text
		}
	}
	return test, which
}

// leaves tells whether a block ends in a jump.
func leaves(body []pysyntax.Stmt) bool {
	if len(body) == 0 {
		return false
	}
	switch s := body[len(body)-1].(type) {
	case *pysyntax.Return, *pysyntax.Raise:
		return true
	case *pysyntax.Branch:
		return s.Word != "pass"
	}
	return false
}

func (w *walker) statement(s pysyntax.Stmt) {
	switch s := s.(type) {
	case *pysyntax.ExprStmt:
		w.alone1(s)
	case *pysyntax.Assign:
		if w.accumulates(s) {
			w.augment(s, s.Targets[0], w.eval(s.Value))
			break
		}
		v := w.assigned(s)
		if c, ok := s.Value.(*pysyntax.Compare); ok && v.is(isNumber) {
			v = &value{traits: isNumber, names: v.names, text: w.text(c)}
		}
		if n, ok := s.Targets[0].(*pysyntax.Name); ok && w.loop != nil && w.learns[n.ID] && !mentions(s, n.ID) {
			w.record(&event{kind: evCall, node: s, what: "remade", onText: n.ID, arg: v})
		}
		for _, t := range s.Targets {
			w.assign(t, v)
		}
	case *pysyntax.AnnAssign:
		if s.Value != nil {
			w.assign(s.Target, w.eval(s.Value))
		}
	case *pysyntax.AugAssign:
		w.augment(s, s.Target, w.eval(s.Value))
	case *pysyntax.Return:
		if s.X != nil {
			w.returns = merge(w.returns, w.eval(s.X))
		}
	case *pysyntax.Import:
		for _, n := range s.Names {
			root, _, below := strings.Cut(n.Name, ".")
			switch space := w.module(s, n.Name); {
			case n.As != "":
				w.scope.set(n.As, &value{path: n.Name, space: space})
			case below:
				w.scope.set(root, &value{path: root})
			default:
				w.scope.set(root, &value{path: root, space: space})
			}
		}
	case *pysyntax.ImportFrom:
		w.importFrom(s)
	case *pysyntax.Function:
		w.def(s)
	case *pysyntax.Class:
		w.class(s)
	case *pysyntax.Scope:
		if s.Word == "global" {
			if w.scope.globals == nil {
				w.scope.globals = map[string]bool{}
			}
			for _, n := range s.Names {
				w.scope.globals[n] = true
			}
		}
	case *pysyntax.Assert:
		w.condition(s.Test)
	case *pysyntax.Raise:
		if s.X != nil {
			w.eval(s.X)
		}
	default:
		w.compound(s)
	}
}

func (w *walker) compound(s pysyntax.Stmt) {
	switch s := s.(type) {
	case *pysyntax.If:
		w.ifs(s)
	case *pysyntax.For:
		iter := w.eval(s.Iter)
		w.repeat(s, iter, w.text(s.Iter), func() {
			w.assign(s.Target, w.elementOf(s.Iter, iter))
			w.block(s.Body)
		})
		w.block(s.Else)
	case *pysyntax.While:
		w.repeat(s, unknown, "while "+w.text(s.Test), func() {
			w.condition(s.Test)
			w.block(s.Body)
		})
		w.block(s.Else)
	case *pysyntax.Try:
		w.block(s.Body)
		w.guards++
		for i := range s.Handlers {
			w.block(s.Handlers[i].Body)
		}
		w.guards--
		w.block(s.Else)
		w.block(s.Finally)
	case *pysyntax.With:
		w.with(s.Items, s.Body)
	case *pysyntax.Match:
		w.eval(s.Subject)
		for i := range s.Cases {
			w.branch(w.text(s.Subject), i, s.Cases[i].Body)
		}
	}
}

// branch walks one of the ways that a condition chooses from.
func (w *walker) branch(test string, which int, body []pysyntax.Stmt) {
	arm0 := w.arm
	w.arm = &arm{w.arm, test, which}
	w.guards++
	w.block(body)
	w.guards--
	w.arm = arm0
}

func (w *walker) ifs(s *pysyntax.If) {
	w.condition(s.Test)
	if w.isMain(s.Test) {
		w.block(s.Body)
		return
	}
	test, which := w.tested(s.Test)
	before := maps.Clone(w.scope.vars)
	without, absent := missing(s.Test)
	w.absent(without, absent)
	w.branch(test, which, s.Body)
	after := w.scope.vars
	if leaves(s.Body) {
		after = nil
	}
	w.scope.vars = before
	w.absent(without, !absent)
	w.branch(test, 1-which, s.Else)
	if after != nil {
		w.scope.mergeFrom(after)
	}
}

// missing is the variable that a test asks for, "" if it asks for something else; and whether the test holds where it is None.
func missing(test pysyntax.Expr) (name string, absent bool) {
	switch t := test.(type) {
	case *pysyntax.Name:
		return t.ID, false
	case *pysyntax.Compare:
		n, ok := t.First.(*pysyntax.Name)
		if ok && isWord(t.Rest[0], "None") && len(t.Rest) == 1 {
			return n.ID, t.Ops[0] == "is" || t.Ops[0] == "=="
		}
	}
	return "", false
}

// absent makes a variable None where it is, if it may carry a graph.
func (w *walker) absent(name string, is bool) {
	if v := w.scope.vars[name]; is && carries(v) {
		w.scope.vars[name] = &value{path: "None", loop: v.loop}
	}
}

// isMain tells whether a test is that of a program that is run by itself.
func (w *walker) isMain(test pysyntax.Expr) bool {
	c, ok := test.(*pysyntax.Compare)
	return ok && isWord(c.First, "__name__")
}

// condition is a test, which reads what it compares.
func (w *walker) condition(test pysyntax.Expr) {
	switch t := test.(type) {
	case *pysyntax.Unary:
		w.condition(t.X)
		return
	case *pysyntax.Binary:
		if t.Op == "and" || t.Op == "or" {
			w.condition(t.X)
			w.condition(t.Y)
			return
		}
	}
	v, x := w.eval(test), test
	switch t := test.(type) {
	case *pysyntax.Compare:
		if strings.HasPrefix(t.Ops[0], "is") || strings.HasSuffix(t.Ops[0], "in") {
			return
		}
		v, x = w.peek(t.First), t.First
	case *pysyntax.Call:
	default:
		return
	}
	if carries(v) && v.is(isGraph) || v.is(isTensor) && v.is(isMoved) {
		w.read(test, "if", v, x)
	}
}

// peek is what is known of an expression that has been walked, without walking it again.
func (w *walker) peek(x pysyntax.Expr) *value {
	return w.quietly(func() *value { return w.eval(x) })
}

// repeat walks a loop: once for what goes from turn to turn, and once to record.
func (w *walker) repeat(node pysyntax.Node, iter *value, text string, turn func()) {
	l := &loop{parent: w.loop, node: node, iter: iter, text: text, fn: w.fn, guards: w.guards}
	loop, guards, outer := w.loop, w.guards, w.turn
	w.loop, w.guards = l, 0
	before := maps.Clone(w.scope.vars)
	w.nextTurn()
	if w.quiet == 0 {
		w.quiet++
		turn()
		w.quiet--
		l.before = w.turn
		w.nextTurn()
		w.scope.mergeFrom(before)
		w.loops = append(w.loops, l)
		l.from = len(w.events)
	}
	turn()
	l.to = len(w.events)
	w.scope.mergeFrom(before)
	w.loop, w.guards, w.turn = loop, guards, outer
}

func (w *walker) nextTurn() {
	w.turns++
	w.turn = w.turns
}

// elementOf is what a loop gives that goes over an expression: of a tuple that is written out, any of its parts.
func (w *walker) elementOf(x pysyntax.Expr, iter *value) *value {
	if _, ok := x.(*pysyntax.Sequence); !ok || iter.is(isList) || len(iter.elems) == 0 {
		return w.element(iter)
	}
	all := iter.elems[0]
	for _, e := range iter.elems[1:] {
		if len(e.elems) == len(all.elems) && len(e.elems) > 0 {
			c := *merge(all, e)
			c.elems = nil
			for i := range e.elems {
				c.elems = append(c.elems, merge(all.elems[i], e.elems[i]))
			}
			all = &c
			continue
		}
		all = merge(all, e)
	}
	return all
}

// element is what a loop gives in each turn.
func (w *walker) element(iter *value) *value { return w.within(iter, 3) }

// within is what a loop gives of wrappers that lie so many deep in each other.
func (w *walker) within(iter *value, deep int) *value {
	switch {
	case iter.gives != nil:
		return iter.gives
	case iter.fields != nil && iter.class.methods["__iter__"] != nil && deep > 0:
		return w.within(w.enter(iter.class.methods["__iter__"], iter, nil, nil), deep-1)
	case iter.is(isLoader) && iter.is(isMoved):
		return &value{traits: isBatch | isMoved, call: iter.call}
	case iter.is(isLoader):
		return &value{traits: isBatch | isHost, call: iter.call}
	case iter.is(isNumber):
		return &value{traits: isNumber}
	case iter.is(isBatch):
		return &value{traits: iter.traits &^ isList, names: iter.names, call: iter.call}
	case iter.is(isList) && iter.elems != nil:
		var all *value
		for _, e := range iter.elems {
			all = merge(all, e)
		}
		return all
	case iter.elems != nil && deep > 0: // enumerate and zip
		elems := make([]*value, len(iter.elems))
		for i, e := range iter.elems {
			elems[i] = w.within(e, deep-1)
		}
		return &value{elems: elems}
	case iter.is(isGraph | isOutput | isTensor | isModule | isList | isOptimizer):
		return unknown
	}
	return &value{traits: isElement | isHost}
}

// givesBatches tells whether a value gives batches of a loader.
func givesBatches(v *value) bool {
	within := func(e *value) bool {
		return e.is(isLoader) || slices.ContainsFunc(e.elems, func(e *value) bool { return e.is(isLoader) })
	} // enumerate(zip(...))
	return v.is(isLoader) || slices.ContainsFunc(v.elems, within)
}

// mentions tells whether the value of an assignment has a variable in it.
func mentions(s *pysyntax.Assign, name string) bool {
	found := false
	pysyntax.Inspect([]pysyntax.Stmt{&pysyntax.ExprStmt{X: s.Value}}, func(n pysyntax.Node) bool {
		x, ok := n.(*pysyntax.Name)
		found = found || ok && x.ID == name
		return !found
	})
	return found
}

// accumulates tells whether an assignment is of a sum or a product that its own target is a part of: x = a * x + b * y.
func (w *walker) accumulates(s *pysyntax.Assign) bool {
	if _, several := s.Targets[0].(*pysyntax.Sequence); several || len(s.Targets) != 1 {
		return false
	}
	name := w.text(s.Targets[0])
	var has func(x pysyntax.Expr, within bool) bool
	has = func(x pysyntax.Expr, within bool) bool {
		switch x := x.(type) {
		case *pysyntax.Binary:
			return strings.Contains("+-*/", x.Op) && (has(x.X, true) || has(x.Y, true))
		case *pysyntax.Conditional:
			return has(x.Then, false) || has(x.Else, false)
		case *pysyntax.Call:
			if f := w.text(x.Func); strings.HasSuffix(f, ".get") && len(x.Args) > 0 {
				return within && strings.TrimSuffix(f, ".get")+"["+w.text(x.Args[0].Value)+"]" == name
			} else if strings.HasPrefix(f, "torch.") && len(x.Args) > 0 && joining[lastName(f)] {
				s, ok := x.Args[0].Value.(*pysyntax.Sequence)
				return ok && slices.ContainsFunc(s.Elements, func(e pysyntax.Expr) bool { return has(e, true) })
			}
		}
		return within && w.text(x) == name
	}
	return has(s.Value, false)
}

// joining are the functions that put tensors together.
var joining = map[string]bool{"cat": true, "concat": true, "concatenate": true, "stack": true, "hstack": true, "vstack": true}

// assigned is the value of an assignment.
func (w *walker) assigned(s *pysyntax.Assign) *value {
	v := w.eval(s.Value)
	if n, ok := s.Targets[0].(*pysyntax.Name); ok && v.traits == 0 && v.class == nil && v.fn == nil && w.backward[n.ID] {
		if _, ok := s.Value.(*pysyntax.Call); ok {
			v = v.with(isGraph) // a loss from elsewhere: Backward is called on it
		}
	}
	return v
}

// augment is target += v, and the like.
func (w *walker) augment(s pysyntax.Stmt, target pysyntax.Expr, v *value) {
	w.assignKeeping(target, w.added(s, target, v))
}

// added is target + v. Where the target is older than the turn, v is kept.
func (w *walker) added(s pysyntax.Stmt, target pysyntax.Expr, v *value) *value {
	old := w.peek(target)
	name := w.text(target)
	if w.outlives(old) && carries(v) {
		w.record(&event{kind: evKeep, node: s, what: "+=", onText: name, on: old, arg: v})
	}
	t := v.traits &^ (isSoftmax | isSigmoid)
	if !v.is(isList) {
		t &^= isModule
	}
	sum := merge(&value{traits: t, names: v.names}, old)
	sum = merge(sum, &value{names: []string{name}})
	c := *sum
	if carries(v) {
		c.traits &^= isNumber | isFrozen
	}
	c.loop = old.loop
	return &c
}

// outlives tells whether a value goes on behind the turn of the innermost loop.
func (w *walker) outlives(v *value) bool { return w.loop != nil && v.loop != w.loop }

// carries tells whether a value holds its graph.
func carries(v *value) bool {
	return v != nil && v.is(isGraph|isOutput) && !v.is(isFrozen|isNumber)
}

// assignKeeping assigns what a variable becomes, which stays as old as it was.
func (w *walker) assignKeeping(target pysyntax.Expr, v *value) {
	loop := w.loop
	w.loop = v.loop
	w.assign(target, v)
	w.loop = loop
}

func (w *walker) assign(target pysyntax.Expr, v *value) {
	switch t := target.(type) {
	case *pysyntax.Name:
		c := *w.asNamed(v, t.ID)
		c.names = join(c.names, []string{t.ID})
		c.loop, c.turn, c.arm = w.loop, w.turn, w.arm
		w.scope.set(t.ID, &c)
	case *pysyntax.Attribute:
		x, within := w.through(t.X)
		if t.Attr == "requires_grad" && v.path == "True" {
			w.record(&event{kind: evCall, node: target, what: "thaw"})
		}
		if x.is(isModule) || within {
			w.record(&event{kind: evCall, node: target, what: "setattr", on: x, onText: w.text(t.X), arg: v})
		}
		if verb := map[string]string{"True": "set ", "False": "unset "}[v.path]; verb != "" && strings.HasPrefix(x.path, "torch.backends.cudnn") {
			w.record(&event{kind: evCall, node: target, what: verb + x.path + "." + t.Attr})
		}
		if old := x.fields[t.Attr]; w.learns[w.text(t)] && old.other(v) {
			w.record(&event{kind: evCall, node: target, what: "replaced", onText: w.text(t), arg: v})
		}
		if x.fields != nil {
			c := *w.asNamed(v, w.text(t))
			c.names = join(c.names, []string{w.text(t)})
			c.loop, c.turn = w.loop, w.turn
			if old := x.fields[t.Attr]; old != nil && w.loop == nil {
				c = *merge(&c, old)
			}
			x.fields[t.Attr] = &c
		}
	case *pysyntax.Subscript:
		x := w.peek(t.X)
		w.eval(t.Index)
		if v.is(isMoved) && x.is(isBatch|isElement) && x.is(isHost) { // images[0] = images[0].cuda()
			w.assignOld(t.X, x.with(isMoved).without(isHost), x.loop)
		}
		w.hides(t.X, v, x)
		if m, ok := t.X.(*pysyntax.Attribute); ok && v.is(isModule) && !x.is(isList) {
			if of, within := w.through(m); of.is(isModule) || within {
				w.record(&event{kind: evCall, node: target, what: "setattr", on: of, onText: w.text(t.X), arg: v})
			}
		}
		s, same := t.Index.(*pysyntax.String)
		if same && x.is(isList) && x.fields == nil {
			w.assignOld(t.X, x.having(s.Value, v), x.loop)
		}
		if !same && (x.is(isList) || x.traits == 0) && carries(v) && w.outlives(x) && x.fields == nil {
			w.record(&event{kind: evKeep, node: target, what: "[]=", onText: w.text(t.X), on: x, arg: v})
		}
	case *pysyntax.Sequence:
		if w.loop != nil && v.call != nil && v.traits == 0 && v.class == nil && v.fn == nil && v.elems == nil && w.draws(v.call) {
			v = v.with(isElement | isHost)
		}
		for i, e := range t.Elements {
			w.assign(e, part(v, i, len(t.Elements)))
		}
	case *pysyntax.Unary:
		w.assign(t.X, v)
	}
}

// asNamed is a value under its name: what another file makes is a module if the program treats it as one, and else what it is called.
func (w *walker) asNamed(v *value, name string) *value {
	if v.call == nil || v.traits&^(isMoved|isCopied|isElement|isHost) != 0 || v.class != nil || v.fn != nil || strings.Contains(v.path, "parse") {
		return v
	}
	t := nameTraits(lastName(name))
	if w.learns[name] {
		t = isModule
	}
	if t == 0 {
		return v
	}
	return v.with(t).without(isCopied | isElement | isHost)
}

// draws tells whether a call gives a batch, of a queue or a buffer, if it gives several values: it is given no tensor.
func (w *walker) draws(x *pysyntax.Call) bool {
	return !slices.ContainsFunc(x.Args, func(a pysyntax.Arg) bool {
		return w.peek(a.Value).is(isGraph | isOutput | isTensor | isBatch | isElement | isMoved | isList | isModule | isCriterion)
	})
}

// through is what is known of an expression that has been walked, and whether it is a part of a module.
func (w *walker) through(x pysyntax.Expr) (v *value, within bool) {
	a, ok := x.(*pysyntax.Attribute)
	if !ok {
		return w.peek(x), false
	}
	of, within := w.through(a.X)
	return w.quietly(func() *value { return w.field(a, of) }), within || of.is(isModule)
}

// part is element i of n of a value that is taken apart.
func part(v *value, i, n int) *value {
	switch {
	case len(v.elems) == n:
		return v.elems[i]
	case v.is(isEngine) && i == 0:
		return &value{traits: isEngine | isModule | isMoved}
	case v.is(isEngine):
		return unknown
	}
	c := *v
	c.elems = nil
	c.traits &^= isList
	return &c
}

func (w *walker) importFrom(s *pysyntax.ImportFrom) {
	module := strings.Repeat(".", s.Level) + s.Module
	space := w.module(s, module)
	for _, n := range s.Names {
		as := cmp.Or(n.As, n.Name)
		if space != nil {
			if n.Name == "*" {
				for k, v := range space.vars {
					w.scope.set(k, v)
				}
				continue
			}
			if v := space.vars[n.Name]; v != nil {
				w.scope.set(as, v)
				continue
			}
		}
		if sub := w.module(s, strings.TrimSuffix(module, ".")+"."+n.Name); sub != nil {
			w.scope.set(as, &value{path: module + "." + n.Name, space: sub})
			continue
		}
		w.scope.set(as, &value{path: module + "." + n.Name})
	}
}

func (w *walker) def(s *pysyntax.Function) {
	w.scope.set(s.Name, w.decoratedAs(w.function(s, nil)))
}

func (w *walker) function(s *pysyntax.Function, c *class) *function {
	d := w.known[s]
	if d == nil {
		d = &function{node: s, class: c}
		w.known[s] = d
		w.defs = append(w.defs, d)
	} else if d.scope != w.scope { // a closure of its own
		c := *d
		d = &c
	}
	d.scope = w.scope
	return d
}

func (w *walker) class(s *pysyntax.Class) {
	c := &class{node: s, methods: map[string]*function{}}
	for _, b := range s.Bases {
		v := w.eval(b.Value)
		path := v.path
		if v.class != nil {
			c.module, c.lighting, c.dataset = c.module || v.class.module, c.lighting || v.class.lighting, c.dataset || v.class.dataset
			for k, m := range v.class.methods {
				c.methods[k] = m
			}
		}
		c.bases = append(c.bases, path)
		last := lastName(path)
		c.module = c.module || strings.HasPrefix(path, "torch.nn.") || strings.HasSuffix(last, "PreTrainedModel") || last == "LightningModule"
		c.lighting = c.lighting || last == "LightningModule"
		c.dataset = c.dataset || last == "Dataset" || last == "IterableDataset" || last == "ImageFolder"
	}
	for _, m := range s.Body {
		if d, ok := m.(*pysyntax.Function); ok {
			c.methods[d.Name] = w.decoratedAs(w.function(d, c)).fn
		}
	}
	w.classes = append(w.classes, c)
	w.scope.set(s.Name, &value{class: c})
}

// text is the source of an expression, without what only lays it out.
func (w *walker) text(n pysyntax.Node) string {
	s := w.f.Text(n)
	if strings.ContainsAny(s, "\n\t") {
		s = strings.Join(strings.Fields(s), " ")
	}
	return s
}
