package vetpy

import (
	"strings"

	"github.com/warpline-ml/warpline/internal/pysyntax"
)

// builtinCall is a call of Python's own functions and of what goes over loaders; nil if it is none.
func (w *walker) builtinCall(x *pysyntax.Call, path string, args []*value, names map[string]*value) *value {
	last := lastName(path)
	switch last {
	case "tqdm", "iter", "track", "trange", "cycle", "islice", "reversed", "prefetcher", "progress_bar":
		return first(args)
	case "enumerate":
		return &value{elems: []*value{unknown, first(args)}}
	case "zip":
		return &value{elems: args}
	}
	if !strings.HasPrefix(path, "builtins.") {
		return w.logCall(x, path, last, args, names)
	}
	switch last {
	case "next":
		return w.element(first(args))
	case "map":
		if f := first(args); f.fn != nil && len(args) == 2 {
			return w.mapped(f, args[1])
		}
		return unknown
	case "list", "tuple", "sorted":
		c := *first(args)
		c.traits |= isList
		return &c
	case "dict", "defaultdict", "deque", "set", "OrderedDict":
		v := &value{traits: isList}
		for _, a := range x.Args {
			if u := names[a.Name]; u != nil {
				v = v.having(a.Name, u)
				v.elems = append(v.elems, u)
			}
		}
		return v
	case "float", "int", "bool", "str":
		if len(x.Args) > 0 {
			w.read(x, last, first(args), x.Args[0].Value)
		}
		return &value{traits: isNumber}
	case "print":
		for i, a := range x.Args {
			if a.Name == "" && i < len(args) {
				w.read(x, "print", args[i], a.Value)
			}
		}
		return &value{traits: isNumber}
	case "len", "range", "isinstance", "hasattr", "getattr", "open", "type", "id", "round":
		return &value{traits: isNumber}
	case "sum", "max", "min", "abs":
		v := w.result(args, nil)
		for _, a := range args {
			v.traits |= a.traits & (isNumber | isTensor)
		}
		return v
	case "super":
		return unknown
	}
	return nil
}

// mapped is what a function of the file makes of each part of a value.
func (w *walker) mapped(f, v *value) *value {
	if len(v.elems) == 0 || v.is(isList) {
		return w.enter(f.fn, f.self, []*value{w.element(v)}, nil)
	}
	all := &value{}
	for _, e := range v.elems {
		all.elems = append(all.elems, w.enter(f.fn, f.self, []*value{e}, nil))
	}
	return all
}

// logCall is a call that writes figures into a log, which reads them; nil if it is none.
func (w *walker) logCall(x *pysyntax.Call, path, last string, args []*value, names map[string]*value) *value {
	switch {
	case strings.HasPrefix(path, "math."):
		for i, v := range given(x, args, nil) {
			w.read(x, last, v, x.Args[i].Value)
		}
		return &value{traits: isNumber}
	case last == "partial" && len(args) > 0 && pathTraits(args[0].path)&isLoader == 0:
		f := *args[0]
		if f.fn != nil {
			f.elems, f.keys = args[1:], names
		}
		return &f
	case path == "copy.deepcopy" || path == "copy.copy":
		return first(args)
	case path == "collections.namedtuple":
		return &value{path: "namedtuple"}
	case path == "namedtuple":
		return &value{elems: args, names: w.result(args, nil).names}
	case strings.HasPrefix(path, "collections."):
		return &value{traits: isList}
	case path == "wandb.log" || path == "mlflow.log_metric" || strings.HasPrefix(path, "logging."):
		for i, a := range x.Args {
			if i >= len(args) {
				break
			}
			for _, v := range append([]*value{args[i]}, args[i].elems...) {
				if !v.is(isList) {
					w.read(x, last, v, a.Value)
				}
			}
		}
		return &value{traits: isNumber}
	}
	return nil
}
