package vetpy

import (
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/pysyntax"
)

// enter walks a function with arguments, and gives what it returns.
func (w *walker) enter(d *function, self *value, args []*value, names map[string]*value) *value {
	if len(w.entered) >= maxEntered || w.steps > maxSteps {
		return unknown
	}
	for _, e := range w.entered {
		if e == d {
			return unknown
		}
	}
	d.ran = true
	w.entered = append(w.entered, d)
	outer, fn, returns, modes := w.scope, w.fn, w.returns, w.modes
	w.scope = &scope{parent: d.scope, vars: map[string]*value{}}
	w.fn, w.returns = d, nil
	for _, dec := range d.node.Decorators {
		w.modes = w.enterMode(w.modes, dec)
	}
	w.bind(d, self, args, names)
	w.block(d.node.Body)
	v := w.returns
	w.scope, w.fn, w.returns, w.modes = outer, fn, returns, modes
	w.entered = w.entered[:len(w.entered)-1]
	if v == nil {
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
		w.scope.vars[params[0].Name] = self
		params = params[1:]
	}
	for i, p := range params {
		v := names[p.Name]
		switch {
		case p.Star == "*" && i < len(args):
			v = &value{elems: args[i:]}
		case p.Star != "":
			v = &value{traits: isList}
		case v == nil && i < len(args):
			v = args[i]
		}
		if v == nil {
			v = &value{traits: nameTraits(p.Name), names: []string{p.Name}}
		} else if v.traits&^(isMoved|isCopied|isElement|isHost) == 0 && v.class == nil && v.fn == nil && (v.path == "" || v.call != nil) {
			v = v.with(nameTraits(p.Name))
		} else if v.is(isModule) && v.class != nil && !contains(v.names, p.Name) {
			c := *v
			c.names = join(c.names, []string{p.Name})
			v = &c
		}
		w.scope.vars[p.Name] = v
	}
}

func decorated(f *pysyntax.Function, name string) bool {
	return slices.ContainsFunc(f.Decorators, func(d pysyntax.Expr) bool { return isWord(d, name) })
}

// enterMode is the modes within a context or under a decorator.
func (w *walker) enterMode(m modes, x pysyntax.Expr) modes {
	call, _ := x.(*pysyntax.Call)
	f := x
	if call != nil {
		f = call.Func
	}
	path := w.peek(f).path
	last := path[strings.LastIndexByte(path, '.')+1:]
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
	case last == "autocast" || w.isMethod(f, "autocast"):
		return m | autocast
	case last == "detect_anomaly" || last == "set_detect_anomaly":
		return m | anomaly
	}
	return m
}

func (w *walker) isMethod(x pysyntax.Expr, name string) bool {
	a, ok := x.(*pysyntax.Attribute)
	return ok && a.Attr == name
}
