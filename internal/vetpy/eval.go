package vetpy

import (
	"strings"

	"github.com/warpline-ml/warpline/internal/pysyntax"
)

// alone1 is an expression of which nothing is kept.
func (w *walker) alone1(s *pysyntax.ExprStmt) {
	v := w.eval(s.X)
	switch x := s.X.(type) {
	case *pysyntax.Attribute:
		w.record(&event{kind: evCall, node: s, what: "uncalled", on: w.peek(x.X), onText: w.text(x)})
	case *pysyntax.Call:
		a, ok := x.Func.(*pysyntax.Attribute)
		if !ok {
			return
		}
		on := w.peek(a.X)
		w.record(&event{kind: evCall, node: s, what: "dropped." + a.Attr, on: on, onText: w.text(a.X), arg: v, call: x})
	}
}

// eval is what is known of an expression; what it does is recorded.
func (w *walker) eval(x pysyntax.Expr) *value {
	switch x := x.(type) {
	case *pysyntax.Name:
		return w.name(x)
	case *pysyntax.Attribute:
		return w.attribute(x)
	case *pysyntax.Call:
		return w.call(x)
	case *pysyntax.Number:
		return &value{traits: isNumber}
	case *pysyntax.String:
		return w.str(x)
	case *pysyntax.Binary:
		return w.binary(x)
	case *pysyntax.Unary:
		v := w.eval(x.X)
		if x.Op == "not" {
			return &value{traits: isNumber}
		}
		return v
	case *pysyntax.Compare:
		v := w.eval(x.First)
		for _, r := range x.Rest {
			u := w.eval(r)
			w.meet(x, v, u)
			v = merge(v, u)
		}
		if v.is(isGraph | isOutput | isTensor | isBatch) {
			return &value{traits: isTensor | v.traits&isMoved, names: v.names}
		}
		return &value{traits: isNumber}
	case *pysyntax.Conditional:
		w.condition(x.Test)
		a, b := w.eval(x.Then), w.eval(x.Else)
		if strings.HasSuffix(a.path, ".nullcontext") {
			a, b = b, a // what is there when there is a context
		}
		return merge(a, b)
	case *pysyntax.Subscript:
		return w.subscript(x)
	case *pysyntax.Sequence:
		return w.sequence(x)
	case *pysyntax.Dict:
		return w.dict(x)
	case *pysyntax.Comprehension:
		return w.comprehension(x)
	case *pysyntax.Lambda:
		return &value{fn: w.lambda(x)}
	case *pysyntax.Walrus:
		v := w.eval(x.Value)
		w.assign(x.Name, v)
		return v
	case *pysyntax.Yield:
		return w.yielded(x)
	case *pysyntax.Slice:
		for _, p := range []pysyntax.Expr{x.Low, x.High, x.Step} {
			if p != nil {
				w.eval(p)
			}
		}
	}
	return unknown
}

// yielded is a yield: what it gives goes to who goes over the function.
func (w *walker) yielded(x *pysyntax.Yield) *value {
	v := unknown
	if x.X != nil {
		if v = w.eval(x.X); x.From {
			v = w.element(v)
		}
	}
	if w.yield != nil {
		w.yield(v)
	} else {
		w.gives = merge(w.gives, v)
	}
	return unknown
}

func (w *walker) name(x *pysyntax.Name) *value {
	if v := w.scope.get(x.ID); v != nil {
		return v
	}
	switch x.ID {
	case "True", "False":
		return &value{traits: isNumber, path: x.ID}
	case "None":
		return &value{path: x.ID}
	}
	return &value{traits: nameTraits(x.ID), path: builtin(x.ID), names: []string{x.ID}}
}

// builtin is the path of a name that the program does not define.
func builtin(name string) string { return "builtins." + name }

// str reads the tensors that it prints.
func (w *walker) str(x *pysyntax.String) *value {
	for _, f := range x.Fields {
		v := w.eval(f)
		w.read(x, "format", v, f)
	}
	v := &value{traits: isNumber}
	if len(x.Fields) == 0 {
		v.text = `"` + x.Value + `"`
	}
	return v
}

// read records that the host waits for a tensor.
func (w *walker) read(node pysyntax.Node, how string, v *value, x pysyntax.Expr) {
	if v.is(isNumber|isList) || !v.is(isGraph|isOutput|isTensor|isBatch) || v.is(isHost) {
		return
	}
	w.record(&event{kind: evRead, node: node, what: how, on: v, onText: w.text(x)})
}

// readAll reads a value, or all that a tuple or a dictionary has.
func (w *walker) readAll(node pysyntax.Node, how string, v *value, x pysyntax.Expr) {
	if v.elems == nil {
		w.read(node, how, v, x)
	}
	for _, e := range v.elems {
		w.read(node, how, e, x)
	}
}

func (w *walker) attribute(x *pysyntax.Attribute) *value { return w.field(x, w.eval(x.X)) }

// field is what a value has under the name of an attribute.
func (w *walker) field(x *pysyntax.Attribute, v *value) *value {
	if v.space != nil {
		if f := v.space.vars[x.Attr]; f != nil {
			return f
		}
	}
	if v.fields != nil {
		if f := v.fields[x.Attr]; f != nil {
			if v.is(isPlaced) && f.is(isModule) {
				return f.with(isMoved | isPlaced)
			}
			return f
		}
		if m := v.class.methods[x.Attr]; m != nil {
			if decorated(m.node, "property") {
				return w.enter(m, v, nil, nil)
			}
			return &value{fn: m, self: v}
		}
	}
	if v.class != nil && v.fields == nil {
		if m := v.class.methods[x.Attr]; m != nil {
			return &value{fn: m}
		}
	}
	if v.path != "" && v.call == nil && v.traits&^isModule == 0 {
		t := traits(0)
		if strings.HasPrefix(v.path, "builtins.") {
			t = attrTraits(x.Attr)
		}
		return &value{path: v.path + "." + x.Attr, traits: t}
	}
	switch {
	case x.Attr == "module" && v.is(isModule):
		return v // of DistributedDataParallel
	case x.Attr == "data":
		return dropped("data", isTensor, v)
	case x.Attr == "grad":
		return &value{traits: isTensor, names: v.names}
	case drops[x.Attr] == isNumber && x.Attr == "shape", x.Attr == "device", x.Attr == "dtype", x.Attr == "ndim":
		return &value{traits: isNumber}
	case x.Attr == "loss" && v.is(isOutput):
		return &value{traits: v.traits | isGraph, names: v.names}
	case v.is(isOutput | isBatch | isGraph | isElement):
		return &value{traits: v.traits &^ isList, names: join(v.names, []string{w.text(x)}), call: v.loader(), loop: v.loop, turn: v.turn}
	}
	if v.fields != nil {
		return &value{traits: nameTraits(x.Attr), names: []string{w.text(x)}}
	}
	return &value{traits: attrTraits(x.Attr), names: []string{w.text(x)}}
}

// attrTraits are what the name of an attribute that nobody in the file sets says of it.
func attrTraits(name string) traits { return nameTraits(name) &^ isModule }

func (w *walker) binary(x *pysyntax.Binary) *value {
	a, b := w.eval(x.X), w.eval(x.Y)
	if _, ok := x.X.(*pysyntax.String); ok && x.Op == "%" {
		w.readAll(x, "format", b, x.Y)
		return &value{traits: isNumber}
	}
	if x.Op == "@" && (a.is(isMoved) || b.is(isMoved)) {
		w.record(&event{kind: evWork, node: x, what: "@", on: a})
	}
	w.meet(x, a, b)
	switch {
	case x.Op == "and" || x.Op == "or":
		return merge(a, b)
	case x.Op == "-" && a.is(isClock) && b.is(isClock):
		w.record(&event{kind: evElapsed, node: x, on: b, onText: w.text(x.Y), arg: a})
		return &value{traits: isSpan | isNumber, names: join(a.names, b.names)}
	case a.is(isSpan) || b.is(isSpan):
		return &value{traits: isSpan | isNumber}
	case carries(a) || carries(b):
		t := (a.traits | b.traits) & (isGraph | isOutput | isMoved | isFrozen)
		if carries(a) && !a.is(isFrozen) || carries(b) && !b.is(isFrozen) {
			t &^= isFrozen
		}
		return &value{traits: t, names: join(a.names, b.names)}
	case a.is(isNumber) && b.is(isNumber):
		return &value{traits: isNumber}
	case b.is(isNumber) && liesOnHost(a):
		return a
	case a.is(isNumber) && liesOnHost(b):
		return b
	case x.Op == "*" && a.is(isList) && b.traits&^isNumber == 0:
		return a
	case a.is(isList) && b.is(isList):
		return merge(a, b)
	}
	return &value{traits: (a.traits | b.traits) & (isTensor | isBatch | isElement | isMoved | isHost | isFrozen | isOutput), names: join(a.names, b.names)}
}

func (w *walker) subscript(x *pysyntax.Subscript) *value {
	v := w.eval(x.X)
	w.eval(x.Index)
	u := w.item(v, x.Index)
	if s, ok := x.Index.(*pysyntax.String); ok && u.is(isBatch|isElement) {
		c := *u
		c.names = join(c.names, []string{s.Value})
		u = &c
	}
	if u.loop == nil && v.loop != nil { // as old as what it lies in
		c := *u
		c.loop, c.turn = v.loop, v.turn
		return &c
	}
	return u
}

// item is what a value has at an index.
func (w *walker) item(v *value, index pysyntax.Expr) *value {
	if s, ok := index.(*pysyntax.String); ok {
		if u := v.keys[s.Value]; u != nil {
			return u
		}
		if v.is(isOutput) && strings.Contains(s.Value, "loss") {
			return &value{traits: v.traits | isGraph, names: v.names}
		}
	}
	switch {
	case len(v.elems) > 0:
		if n, ok := index.(*pysyntax.Number); ok && len(n.Text) == 1 && int(n.Text[0]-'0') < len(v.elems) {
			return v.elems[n.Text[0]-'0']
		}
		var all *value
		for _, e := range v.elems {
			all = merge(all, e)
		}
		return all
	case v.is(isList):
		return &value{traits: v.traits &^ isList, names: v.names}
	case v.is(isModule):
		return &value{traits: isModule}
	case v.path != "" && v.traits == 0:
		return unknown
	}
	u := &value{traits: v.traits &^ isCopied, names: v.names, call: v.loader()}
	if v.is(isTensor) && v.is(isHost) && ranges(index) {
		u.path, u.call = v.path, v.call // still what a factory made on the host
	}
	return u
}

// ranges tells whether an index leaves a tensor dimensions.
func ranges(index pysyntax.Expr) bool {
	switch x := index.(type) {
	case *pysyntax.Slice:
		return true
	case *pysyntax.Sequence:
		for _, e := range x.Elements {
			if ranges(e) {
				return true
			}
		}
	}
	return false
}

func (w *walker) sequence(x *pysyntax.Sequence) *value {
	v := &value{}
	if x.Kind != '(' {
		v.traits = isList
	}
	for _, e := range x.Elements {
		u := w.eval(e)
		v.elems = append(v.elems, u)
		v.names = join(v.names, u.names)
		if carries(u) && x.Kind != '(' {
			v.traits |= isGraph
		}
	}
	return v
}

func (w *walker) dict(x *pysyntax.Dict) *value {
	v := &value{traits: isList}
	for i, e := range x.Values {
		if x.Keys[i] != nil {
			w.eval(x.Keys[i])
		}
		u := w.eval(e)
		if s, ok := x.Keys[i].(*pysyntax.String); ok {
			v = v.having(s.Value, u)
		}
		v.elems = append(v.elems, u)
		v.names = join(v.names, u.names)
	}
	return v
}

// comprehension walks one: a loop of its own if it goes over batches.
func (w *walker) comprehension(x *pysyntax.Comprehension) *value {
	outer := w.scope
	w.scope = &scope{parent: outer, vars: map[string]*value{}}
	c := x.Clauses[0]
	iter := w.eval(c.Iter)
	v := unknown
	batches := givesBatches(iter)
	turn := func() {
		e := w.element(iter)
		if e.is(isElement) && !batches {
			e = e.without(isElement | isHost)
		}
		w.assign(c.Target, e)
		v = w.collected(x)
		if batches && carries(v) && w.modes&noGrad == 0 {
			w.record(&event{kind: evKeep, node: x, what: "[]", onText: "the comprehension", on: unknown, arg: v})
		}
	}
	if batches {
		w.repeat(x, iter, w.text(c.Iter), turn)
	} else {
		turn()
	}
	w.scope = outer
	t := isList
	if carries(v) {
		t |= isGraph
	}
	return &value{traits: t | v.traits&(isModule|isParameter|isMoved|isCopied), names: v.names}
}

// collected is what a comprehension collects for an element of its first loop.
func (w *walker) collected(x *pysyntax.Comprehension) *value {
	for i, c := range x.Clauses {
		if i > 0 {
			w.assign(c.Target, w.element(w.eval(c.Iter)))
		}
		for _, t := range c.Conds {
			w.eval(t)
		}
	}
	if x.Key != nil {
		w.eval(x.Key)
	}
	return w.eval(x.Element)
}

// lambda is a function that returns its body.
func (w *walker) lambda(x *pysyntax.Lambda) *function {
	d := w.lambdas[x]
	if d == nil {
		d = &function{node: &pysyntax.Function{Name: "<lambda>", Params: x.Params, Body: []pysyntax.Stmt{&pysyntax.Return{X: x.Body}}}}
		w.lambdas[x] = d
	}
	d.scope = w.scope
	return d
}
