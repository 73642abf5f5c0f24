package vetpy

import (
	"maps"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/pysyntax"
)

// frame is where the walk is in a function that it has entered, or in the file.
type frame struct {
	scope   *scope
	fn      *function
	returns *value
	gives   *value       // what it yields
	yield   func(*value) // what runs in the place of a yield, of a context that a generator makes
}

// enter walks a function with arguments, and gives what it returns.
func (w *walker) enter(d *function, self *value, args []*value, names map[string]*value) *value {
	return w.enterAround(d, self, args, names, nil)
}

// enterAround walks a function, and where it yields, body. That runs where the function was called.
func (w *walker) enterAround(d *function, self *value, args []*value, names map[string]*value, body func(*value)) *value {
	if len(w.entered) >= maxEntered || w.steps > maxSteps {
		return unknown
	}
	for _, e := range w.entered {
		if e.node == d.node {
			return unknown
		}
	}
	d.ran = true
	if k := w.known[d.node]; k != nil {
		k.ran = true
	}
	deep := len(w.entered)
	w.entered = append(w.entered, d)
	outer, modes := w.frame, w.modes
	w.frame = frame{scope: &scope{parent: d.scope, vars: map[string]*value{}}, fn: d}
	if body != nil {
		w.yield = func(v *value) {
			inner, entered := w.frame, slices.Clone(w.entered)
			w.frame, w.entered = outer, w.entered[:deep]
			body(v)
			outer, w.frame, w.entered = w.frame, inner, entered
		}
	}
	for _, dec := range d.node.Decorators {
		w.modes = w.enterMode(w.modes, dec, nil)
	}
	w.bind(d, self, args, names)
	w.block(d.node.Body)
	v, gives := w.returns, w.gives
	w.frame, w.modes = outer, modes
	w.entered = w.entered[:deep]
	switch {
	case gives != nil:
		return &value{gives: gives}
	case v == nil:
		return unknown
	}
	return v
}

// bind gives parameters their arguments.
func (w *walker) bind(d *function, self *value, args []*value, names map[string]*value) {
	params := d.node.Params
	if self != nil && len(params) > 0 && !decorated(d.node, "staticmethod") {
		if decorated(d.node, "classmethod") {
			self = &value{class: d.class}
		}
		if params[0].Star != "" {
			args = append([]*value{self}, args...)
		} else {
			w.scope.vars[params[0].Name] = self
			params = params[1:]
		}
	}
	for i, p := range params {
		v := names[p.Name]
		switch {
		case p.Star == "*" && i < len(args):
			v = &value{elems: args[i:]}
		case p.Star == "**":
			v = &value{traits: isList, keys: others(names, params)}
		case p.Star != "":
			v = &value{traits: isList}
		case v == nil && i < len(args):
			v = args[i]
		}
		if v == nil {
			v = &value{traits: nameTraits(p.Name), names: []string{p.Name}}
		} else if v.traits&^(isMoved|isCopied|isElement|isHost) == 0 && v.class == nil && v.fn == nil && (v.path == "" || v.call != nil) {
			v = v.with(nameTraits(p.Name))
		} else if v.is(isModule) && v.class != nil && !slices.Contains(v.names, p.Name) {
			c := *v
			c.names = join(c.names, []string{p.Name})
			v = &c
		}
		w.scope.vars[p.Name] = v
	}
}

// others are arguments by name that no parameter takes.
func others(names map[string]*value, params []pysyntax.Param) map[string]*value {
	all := maps.Clone(names)
	for _, p := range params {
		delete(all, p.Name)
	}
	return all
}

func decorated(f *pysyntax.Function, name string) bool {
	return slices.ContainsFunc(f.Decorators, func(d pysyntax.Expr) bool { return isWord(d, name) })
}

// decoratedAs is what a function is under the decorators of the file.
func (w *walker) decoratedAs(f *function) *value {
	v := &value{fn: f}
	for _, x := range slices.Backward(f.node.Decorators) {
		d := w.eval(x)
		if d.fn == nil {
			continue
		}
		if r := w.enter(d.fn, d.self, []*value{v}, nil); r.fn != nil {
			v = r
		}
	}
	return v
}

// with walks the body of a with statement in its contexts.
func (w *walker) with(items []pysyntax.WithItem, body []pysyntax.Stmt) {
	if len(items) == 0 {
		w.block(body)
		return
	}
	modes, item := w.modes, items[0]
	rest := func(v *value) {
		if item.Target != nil {
			w.assign(item.Target, v)
		}
		w.with(items[1:], body)
	}
	if f, args, names := w.generator(item.Context); f != nil {
		ran := false
		w.enterAround(f.fn, f.self, args, names, func(v *value) {
			if !ran {
				ran = true
				rest(v)
			}
		})
		if !ran {
			rest(unknown)
		}
		w.modes = modes
		return
	}
	v := w.eval(item.Context)
	w.modes = w.enterMode(w.modes, item.Context, v)
	exit := (*function)(nil)
	if v.class != nil && v.fields != nil {
		exit = v.class.methods["__exit__"]
		if m := v.class.methods["__enter__"]; m != nil {
			if r := w.enter(m, v, nil, nil); exit != nil && r != unknown {
				rest(r)
				w.enter(exit, v, nil, nil)
				w.modes = modes
				return
			}
		}
	}
	rest(v)
	if exit != nil {
		w.enter(exit, v, nil, nil)
	}
	w.modes = modes
}

// generator is a function of the file that makes a context by its yield, and what it is called with; nil if a context is none of those.
func (w *walker) generator(x pysyntax.Expr) (f *value, args []*value, names map[string]*value) {
	call, ok := x.(*pysyntax.Call)
	if !ok {
		return nil, nil, nil
	}
	f = w.peek(call.Func)
	if f.fn == nil || !slices.ContainsFunc(f.fn.node.Decorators, func(d pysyntax.Expr) bool { return strings.HasSuffix(w.text(d), "contextmanager") }) {
		return nil, nil, nil
	}
	args, names = w.args(call)
	return f, args, names
}

// enterMode is the modes within a context, as it is written and, if that is known, what it is; or under a decorator.
func (w *walker) enterMode(m modes, x pysyntax.Expr, is *value) modes {
	call, _ := x.(*pysyntax.Call)
	f := x
	if call != nil {
		f = call.Func
	}
	path := w.peek(f).path
	if is != nil && is.call != nil && is.path != "" {
		path, call = is.path, is.call
	}
	last := lastName(path)
	switch {
	case strings.HasSuffix(last, "no_grad") || strings.HasSuffix(last, "inference_mode"):
		return m | noGrad
	case last == "enable_grad":
		return m &^ noGrad
	case last == "set_grad_enabled" && call != nil && len(call.Args) > 0:
		switch a := call.Args[0].Value.(type) {
		case *pysyntax.Name:
			if a.ID == "False" {
				return m | noGrad
			}
			if a.ID == "True" {
				return m &^ noGrad
			}
		}
		return m
	case last == "autocast" || strings.HasSuffix(w.text(f), ".autocast"):
		return m | autocast
	case last == "detect_anomaly" || last == "set_detect_anomaly":
		return m | anomaly
	}
	return m
}
