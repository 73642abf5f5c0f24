package vetpy

import (
	"maps"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/pysyntax"
)

// call is a call: what it records, and what it gives.
func (w *walker) call(x *pysyntax.Call) *value {
	if w.steps++; w.steps > maxSteps {
		return unknown
	}
	if a, ok := x.Func.(*pysyntax.Attribute); ok {
		on := w.eval(a.X)
		args, names := w.args(x)
		if on.path == "" || on.call != nil || on.traits != 0 || strings.HasPrefix(on.path, "builtins.") {
			if v := w.method(x, a, on, args, names); v != nil {
				return v
			}
		}
		return w.apply(x, w.quietly(func() *value { return w.field(a, on) }), args, names)
	}
	f := w.eval(x.Func)
	args, names := w.args(x)
	return w.apply(x, f, args, names)
}

func (w *walker) quietly(f func() *value) *value {
	w.quiet++
	defer func() { w.quiet-- }()
	return f()
}

func (w *walker) args(x *pysyntax.Call) (args []*value, names map[string]*value) {
	for _, a := range x.Args {
		v := w.eval(a.Value)
		switch {
		case a.Star == "*":
			if args = append(args, v.elems...); v.last != nil {
				args = append(args, v.last)
			}
		case a.Star == "" && a.Name == "":
			args = append(args, v)
		default:
			if names == nil {
				names = map[string]*value{}
			}
			if a.Star != "" {
				maps.Copy(names, v.keys)
			} else {
				names[a.Name] = v
			}
		}
	}
	return args, names
}

// arg is the argument of a name or a place; nil if there is none.
func arg(x *pysyntax.Call, name string, place int) pysyntax.Expr {
	n := 0
	for _, a := range x.Args {
		if a.Name == name && name != "" {
			return a.Value
		}
		if a.Name == "" && a.Star == "" {
			if n == place {
				return a.Value
			}
			n++
		}
	}
	return nil
}

// isTrue tells whether an argument is True as it is written.
func isTrue(x pysyntax.Expr) bool  { return isWord(x, "True") }
func isFalse(x pysyntax.Expr) bool { return isWord(x, "False") }

func isWord(x pysyntax.Expr, word string) bool {
	n, ok := x.(*pysyntax.Name)
	return ok && n.ID == word
}

func first(args []*value) *value {
	if len(args) == 0 {
		return unknown
	}
	return args[0]
}

// method is a call of a method that is known by its name; nil if it is not.
func (w *walker) method(x *pysyntax.Call, a *pysyntax.Attribute, on *value, args []*value, names map[string]*value) *value {
	own := on.fields != nil && (on.class.methods[a.Attr] != nil || on.fields[a.Attr] != nil)
	if own && !(a.Attr == "train" && on.is(isModule) && on.class.methods["train"] != nil && strings.Contains(w.f.Text(on.class.methods["train"].node), "super(")) {
		return nil
	}
	e := event{node: x, on: on, onText: w.text(a.X), arg: first(args), args: args, what: a.Attr, call: x}
	if own { // sets the mode, and does something beside
		e.kind = evTrain
		w.record(&e)
		return nil
	}
	put := func(k kind) *value {
		e.kind = k
		w.record(&e)
		return unknown
	}
	switch a.Attr {
	case "zero_grad":
		return put(evZero)
	case "backward", "manual_backward":
		if a.Attr == "manual_backward" || len(args) > 0 && !on.is(isGraph|isOutput) {
			return put(evBackward)
		}
		e.arg = on
		return put(evBackward)
	case "step":
		return w.step(x, a, e)
	case "optimizers":
		if on.class != nil && on.class.lighting {
			return &value{traits: isOptimizer, call: x}
		}
	case "prepare", "setup", "setup_dataloaders", "prepare_model", "prepare_data_loader":
		return prepared(args)
	case "half", "float", "double", "bfloat16", "requires_grad_", "share_memory":
		if a.Attr == "requires_grad_" && (len(x.Args) == 0 || isTrue(x.Args[0].Value)) && !on.is(isTensor|isGraph|isOutput|isBatch) {
			w.record(&event{kind: evCall, node: x, what: "thaw"})
		}
		if a.Attr == "requires_grad_" && on.is(isTensor) {
			return on
		}
		if on.is(isMoved|isModule) && !on.is(isGraph|isOutput|isTensor|isBatch) {
			return on
		}
	case "scale":
		if on.is(isScaler) {
			put(evScale)
			return &value{traits: isGraph, names: join(first(args).names, []string{"scaled"}), path: "scaled"}
		}
	case "unscale_":
		return put(evUnscale)
	case "update":
		if on.is(isScaler) {
			return put(evUpdate)
		}
	case "clip_grad_norm_", "clip_grad_value_":
		return put(evClip)
	case "train", "eval":
		if on.is(isModule|isEngine) || on.is(isMoved) && on.call != nil || a.Attr == "eval" && len(x.Args) == 0 && !strings.HasPrefix(on.path, "builtins.") {
			k := evTrain
			if a.Attr == "eval" || len(x.Args) == 1 && isFalse(x.Args[0].Value) {
				k = evEval
			}
			put(k)
			return on
		}
	case "set_epoch":
		return unknown // which rules look for in the source
	case "format", "add_scalar", "set_postfix", "log_metric", "log":
		if w.writes(a, on) {
			for i, v := range given(x, args, names) {
				w.readAll(x, a.Attr, v, x.Args[i].Value)
			}
			return &value{traits: isNumber}
		}
	case "info", "warning":
		if strings.Contains(strings.ToLower(e.onText), "log") && !on.is(isModule) {
			for i, v := range given(x, args, names) {
				w.readAll(x, a.Attr, v, x.Args[i].Value)
			}
			return &value{traits: isNumber}
		}
	case "items", "values":
		if v := on.parts(a.Attr == "items"); v != nil {
			return v
		}
	case "get", "setdefault":
		if v := on.got(x); v != nil {
			return v
		}
	case "synchronize", "elapsed_time":
		put(evSync)
		return &value{traits: isNumber}
	case "append", "appendleft", "add", "insert", "extend":
		return w.keep(e, a)
	case "to", "cuda", "xpu", "mps", "pin_memory", "cpu":
		return w.move(x, a, e)
	case "type_as", "type":
		if a.Attr == "type_as" || !strings.Contains(w.text(x), "torch.") {
			return on.without(isHost)
		}
	}
	return w.tensorMethod(x, a, e)
}

// writes tells whether a method writes the figures that it gets, for which it reads them.
func (w *walker) writes(a *pysyntax.Attribute, on *value) bool {
	switch a.Attr {
	case "format":
		_, ok := a.X.(*pysyntax.String)
		return ok
	case "log":
		return strings.HasPrefix(on.path, "wandb.")
	}
	return true
}

// given are the arguments of a call in their order; what is unpacked is unknown.
func given(x *pysyntax.Call, args []*value, names map[string]*value) []*value {
	all := make([]*value, len(x.Args))
	n := 0
	for i, a := range x.Args {
		all[i] = unknown
		switch {
		case names[a.Name] != nil:
			all[i] = names[a.Name]
		case a.Star == "" && a.Name == "" && n < len(args):
			all[i] = args[n]
			n++
		}
	}
	return all
}

// prepared are modules, optimizers and loaders that a library takes and gives back, on their device; nil if there are none.
func prepared(args []*value) *value {
	all := make([]*value, len(args))
	known := false
	for i, v := range args {
		all[i] = v
		if v.is(isModule | isLoader) {
			all[i] = v.with(isMoved)
		}
		known = known || v.is(isModule|isLoader|isOptimizer)
	}
	switch {
	case !known:
		return nil
	case len(all) == 1:
		return all[0]
	}
	return &value{elems: all}
}

// step is x.step(...), of whatever steps.
func (w *walker) step(x *pysyntax.Call, a *pysyntax.Attribute, e event) *value {
	lower := strings.ToLower(e.onText)
	for _, v := range e.args {
		if v.fn != nil { // a closure computes the loss
			w.enter(v.fn, v.self, nil, nil)
		}
	}
	switch {
	case e.on.is(isScaler) || e.arg.is(isOptimizer):
		e.kind = evScalerStep
	case e.on.is(isScheduler):
		e.kind = evSchedule
	case e.on.is(isOptimizer) || e.on.is(isEngine):
		e.kind = evStep
	case strings.Contains(lower, "sched"):
		e.kind = evSchedule
	case w.zeroed[e.onText]:
		e.kind = evStep
	default:
		return nil
	}
	w.record(&e)
	return unknown
}

// keep puts values into a list.
func (w *walker) keep(e event, a *pysyntax.Attribute) *value {
	last := unknown
	if len(e.args) > 0 {
		last = e.args[len(e.args)-1]
	}
	e.kind, e.arg = evKeep, last
	held := last
	if len(last.elems) > 0 {
		for _, v := range last.elems {
			if carries(v) {
				held = v
			}
		}
	}
	e.arg = held
	if carries(held) && !e.on.is(isModule) && w.outlives(e.on) {
		w.record(&e)
	}
	plain := !strings.HasPrefix(e.on.path, "torch.nn.")
	w.hides(a.X, held, e.on)
	if t := held.traits & (isCopied | isModule); (carries(held) || t != 0) && plain {
		if carries(held) {
			t |= isGraph
		}
		v := merge(e.on, &value{traits: t | isList, names: held.names})
		c := *v
		c.last = held
		w.assignOld(a.X, &c, e.on.loop)
	}
	return unknown
}

// hides records that a module puts a part into a plain list or dictionary of its own.
func (w *walker) hides(list pysyntax.Expr, part, in *value) {
	text := w.text(list)
	if part.is(isModule|isParameter) && in.is(isList) && !strings.HasPrefix(in.path, "torch.nn.") && strings.HasPrefix(text, "self.") && w.fn != nil && w.fn.class != nil && w.fn.class.module {
		w.record(&event{kind: evCall, node: list, what: "setattr", on: in, onText: text, arg: &value{traits: isList | isModule, last: part}})
	}
}

// assignOld gives a variable a value that is as old as before.
func (w *walker) assignOld(target pysyntax.Expr, v *value, born *loop) {
	switch target.(type) {
	case *pysyntax.Name, *pysyntax.Attribute:
		loop, quiet := w.loop, w.quiet
		w.loop, w.quiet = born, 1
		w.assign(target, v)
		w.loop, w.quiet = loop, quiet
	}
}

// tensorMethod is a method of a tensor; nil if the receiver is not known to be one.
func (w *walker) tensorMethod(x *pysyntax.Call, a *pysyntax.Attribute, e event) *value {
	on := e.on
	if reads[a.Attr] && (on.is(isGraph|isOutput|isTensor|isBatch) && !on.is(isHost) || a.Attr == "item") && !on.is(isNumber) {
		e.kind = evRead
		w.record(&e)
	}
	if a.Attr == "numpy" && (carries(on) || on.traits&^isHost == 0 && !on.cut() && strings.HasSuffix(e.onText, ".cpu()")) { // which fails where there is a graph: then the parameters are frozen in another file
		w.record(&event{kind: evCall, node: x, what: "ungraphed"})
	}
	if t, ok := drops[a.Attr]; ok && on.is(isGraph|isOutput|isTensor|isBatch|isFrozen|isElement) {
		return dropped(a.Attr, t, on)
	}
	if a.Attr == "item" || a.Attr == "tolist" {
		return &value{traits: isNumber}
	}
	if on.traits == 0 && len(e.args) < 2 && on.class == nil && on.fn == nil {
		switch a.Attr { // only tensors have them
		case "softmax":
			return &value{traits: isOutput | isSoftmax, names: on.names}
		case "sigmoid":
			return &value{traits: isOutput | isSigmoid, names: on.names}
		}
	}
	if !on.is(isGraph|isOutput|isTensor|isBatch) && !(on.is(isElement) && pure[a.Attr]) || on.is(isList|isModule) {
		return nil
	}
	if together[a.Attr] {
		w.meet(x, append([]*value{on}, e.args...)...)
	}
	t := on.traits &^ (isSoftmax | isSigmoid | isPinned | isCopied)
	names := on.names
	for _, v := range e.args {
		if carries(v) {
			t |= v.traits & (isGraph | isOutput)
		}
		names = join(names, v.names)
	}
	switch a.Attr {
	case "softmax":
		t |= isSoftmax
	case "sigmoid":
		t |= isSigmoid
	case "view", "reshape", "squeeze", "unsqueeze", "flatten", "contiguous", "float", "clone", "permute", "transpose":
		t |= on.traits & (isSoftmax | isSigmoid)
	case "max", "min", "topk", "sort", "mode", "median", "kthvalue":
		if len(x.Args) > 0 {
			return pair(t, names)
		}
	}
	v := &value{traits: t, names: names}
	if on.cut() {
		v.path = on.path
	}
	if _, nameless := a.X.(*pysyntax.Call); nameless && rewraps(on) && on.call != nil && isTrue(arg(on.call, "requires_grad", -1)) {
		v.path, v.call = on.path, on.call // nobody can ask for its gradient
	}
	if on.is(isHost) && !carries(v) && on.path != "torch.tensor" && on.path != "torch.as_tensor" {
		v.path, v.call = on.path, on.call // still what a factory made on the host
	}
	return v
}

// dropped is what a method or a function leaves of a value that has no graph any more. What had one lies where the model does.
func dropped(method string, t traits, v *value) *value {
	if t != isNumber {
		t |= v.traits & (isMoved | isHost | isFrozen)
		if carries(v) && !v.is(isHost) {
			t |= isMoved
		}
	}
	return &value{traits: t, names: v.names, path: pathOf(method)}
}

// pathOf remembers what took a value's graph away.
func pathOf(method string) string {
	switch method {
	case "detach", "numpy", "item", "tolist", "argmax", "data":
		return "." + method
	}
	return ""
}

// pair is values and their places, of which only the first have a graph.
func pair(t traits, names []string) *value {
	return &value{traits: t, names: names, elems: []*value{{traits: t, names: names}, {traits: isTensor, names: names}}}
}

// apply is a call of what f is.
func (w *walker) apply(x *pysyntax.Call, f *value, args []*value, names map[string]*value) *value {
	switch {
	case f.fn != nil:
		return w.entering(f, args, names)
	case f.class != nil && f.fields == nil:
		return w.construct(x, f.class, args, names)
	case f.is(isCriterion):
		return w.loss(x, f, args, names)
	case f.is(isModule|isEngine) || f.is(isMoved) && !f.is(isGraph|isOutput|isTensor|isBatch) && !w.partOfElement(x, f): // no tensor is called
		return w.forward(x, f, args, names)
	}
	return w.path(x, f, args, names)
}

// entering walks a function of the file, with what partial has given it beside.
func (w *walker) entering(f *value, args []*value, names map[string]*value) *value {
	if len(f.keys) > 0 {
		own := names
		names = maps.Clone(f.keys)
		maps.Copy(names, own)
	}
	return w.enter(f.fn, f.self, slices.Concat(f.elems, args), names)
}

// partOfElement tells whether what is called is a method of an element of what is unknown, which may be a tensor.
func (w *walker) partOfElement(x *pysyntax.Call, f *value) bool {
	_, method := x.Func.(*pysyntax.Attribute)
	return method && f.is(isElement)
}

// construct makes an object of a class of the file.
func (w *walker) construct(x *pysyntax.Call, c *class, args []*value, names map[string]*value) *value {
	v := &value{class: c, fields: map[string]*value{}, call: x}
	if c.module {
		v.traits |= isModule
		if n := strings.ToLower(c.node.Name); strings.HasSuffix(n, "loss") || strings.HasSuffix(n, "criterion") {
			v.traits |= isCriterion
		}
	}
	c.ran = true
	if c.instance == nil {
		c.instance = v
	}
	if init := c.methods["__init__"]; init != nil {
		w.enter(init, v, args, names)
	}
	return v
}

// loss computes a loss.
func (w *walker) loss(x *pysyntax.Call, f *value, args []*value, names map[string]*value) *value {
	all := given(x, args, names)
	if v := names["input"]; v != nil && len(args) == 0 {
		args = append(args, v)
	}
	if !strings.Contains(strings.ToLower(f.path), "ctc") { // whose lengths lie on the host
		w.meet(x, append([]*value{f.weight()}, all...)...)
	}
	w.record(&event{kind: evCriterion, node: x, what: f.path, on: f, onText: w.text(x.Func), arg: first(args), args: all, call: x})
	c := *w.result(args, names)
	c.traits = c.traits&isMoved | isGraph
	switch {
	case w.modes&noGrad != 0:
		c.traits |= isFrozen
	case first(args).cut() && !slices.ContainsFunc(all, carries):
		c.traits, c.path = c.traits&isMoved|isTensor, first(args).path
	}
	return &c
}

// forward calls a module.
func (w *walker) forward(x *pysyntax.Call, f *value, args []*value, names map[string]*value) *value {
	if strings.Contains(strings.ToLower(w.text(x.Func)), "pipe") { // of diffusers or transformers: gives images or texts, without graphs
		w.record(&event{kind: evSync, node: x})
		return unknown
	}
	if f.fields == nil || f.class.methods["forward"] == nil { // else it is seen within
		w.meet(x, append(given(x, args, names), f.where())...)
	}
	w.record(&event{kind: evForward, node: x, what: f.path, on: f, onText: w.text(x.Func), arg: first(args), args: given(x, args, names), call: x})
	v := w.result(args, names)
	c := *v
	c.traits = c.traits&isMoved | isOutput
	if f.is(isPlaced) {
		c.traits |= isMoved
	}
	c.traits |= f.traits & (isSoftmax | isSigmoid)
	if f.fields != nil && f.class.methods["forward"] != nil {
		r := w.enter(f.class.methods["forward"], f, args, names)
		c.traits |= r.traits & (isSoftmax | isSigmoid | isGraph)
		c.names = join(c.names, r.names)
		for _, e := range r.elems {
			d := *e
			d.traits = d.traits&(isSoftmax|isSigmoid|isGraph) | isOutput
			if w.modes&noGrad != 0 {
				d.traits |= isFrozen
			}
			c.elems = append(c.elems, &d)
		}
	}
	if w.modes&noGrad != 0 {
		c.traits |= isFrozen
		c.path = ".no_grad"
	}
	return &c
}

// result is what is known of what a call makes of its arguments: their names and graphs.
func (w *walker) result(args []*value, names map[string]*value) *value {
	v := &value{}
	add := func(a *value) {
		v.names = join(v.names, a.names)
		v.traits |= a.traits & (isMoved | isGraph | isOutput)
	}
	for _, a := range args {
		add(a)
	}
	for _, a := range names {
		add(a)
	}
	return v
}

// path is a call of an imported or built-in name.
func (w *walker) path(x *pysyntax.Call, f *value, args []*value, names map[string]*value) *value {
	path := f.path
	last := lastName(path)
	e := event{node: x, what: path, on: f, onText: w.text(x.Func), arg: first(args), args: args, call: x}
	if v := w.builtinCall(x, path, args, names); v != nil {
		return v
	}
	switch {
	case lossPath(path):
		return w.loss(x, f, args, names)
	case last == "clip_grad_norm_" || last == "clip_grad_value_" || last == "clip_grad_norm":
		e.kind = evClip
		w.record(&e)
		return &value{traits: isTensor}
	case strings.Contains(e.onText, "synchronize"):
		e.kind = evSync
		w.record(&e)
		return unknown
	case strings.HasSuffix(path, "cuda.empty_cache"):
		e.kind = evEmptyCache
		w.record(&e)
		return unknown
	case path == "torch.autograd.backward":
		e.kind = evBackward
		w.record(&e)
		return unknown
	case isClockCall(path):
		e.kind = evClock
		w.record(&e)
		return &value{traits: isClock, path: path, call: x}
	}
	if strings.HasPrefix(path, "torch.nn.functional.") || strings.HasPrefix(path, "torch.") && (joining[last] || together[last] || last == "where" || last == "einsum") {
		all := args
		if len(args) > 0 && args[0].is(isList) {
			all = args[0].elems
		}
		w.meet(x, all...)
	}
	e.kind = evCall
	w.record(&e)
	v := w.made(x, path, last, args, names)
	if computes(path) && v.is(isMoved) {
		e.kind = evWork
		w.record(&e)
	}
	return v
}

// computes tells whether a function of torch has much to do on the device.
func computes(path string) bool {
	last, ok := strings.CutPrefix(path, "torch.")
	if !ok {
		return false
	}
	if strings.HasPrefix(last, "nn.functional.") || strings.HasPrefix(last, "fft.") || strings.HasPrefix(last, "linalg.") {
		return true
	}
	switch last {
	case "matmul", "mm", "bmm", "einsum", "addmm", "baddbmm", "tensordot", "conv1d", "conv2d", "conv3d", "cdist", "sort", "cumsum":
		return true
	}
	return false
}

// made is what a known call makes.
func (w *walker) made(x *pysyntax.Call, path, last string, args []*value, names map[string]*value) *value {
	switch {
	case last == "DistributedDataParallel" || last == "DataParallel" || last == "FullyShardedDataParallel" || path == "torch.compile" || path == "torch.jit.script":
		c := *first(args)
		if c.traits |= isModule | isMoved; strings.HasPrefix(last, "D") || strings.HasPrefix(last, "F") {
			c.traits &^= isPlaced // it moves what it is given
		}
		return &c
	case (last == "from_pretrained" || last == "from_config") && !strings.Contains(path, "Pipeline"):
		return &value{traits: isModule, path: path, call: x}
	}
	t := pathTraits(path)
	if t.is(isParameter) {
		return &value{traits: t, path: path, call: x}
	}
	if t == isTensor {
		return &value{traits: w.factory(x, last), path: path, call: x, names: w.result(args, names).names}
	}
	if t == isOptimizer || t == isScheduler || t == isLoader || t == isSampler || t == isModule || t == isScaler || t == isCriterion || t == isEngine {
		v := &value{traits: t, path: path, call: x}
		if h := slices.IndexFunc(given(x, args, names), liesOnHost); t == isCriterion && h >= 0 {
			v.last = given(x, args, names)[h]
		}
		if t == isLoader {
			v.traits |= first(args).traits & isMoved
		}
		if t == isModule {
			for _, a := range args {
				v.names = join(v.names, a.names)
			}
			switch {
			case last == "Softmax":
				v.traits |= isSoftmax
			case last == "Sigmoid":
				v.traits |= isSigmoid
			case last == "Sequential" && len(args) > 0:
				v.traits |= args[len(args)-1].traits & (isSoftmax | isSigmoid)
			}
		}
		return v
	}
	v := w.result(args, names)
	switch {
	case strings.HasPrefix(path, "torch.nn.functional."):
		c := *v
		c.traits = v.traits&^isSoftmax | t
		if w.modes&noGrad != 0 {
			c.traits |= isFrozen
		} else if !carries(v) {
			c.traits &^= isOutput
			c.traits |= isTensor
		}
		return &c
	case strings.HasPrefix(path, "torch."):
		return w.torchCall(x, last, v, first(args))
	}
	return &value{names: v.names, path: path, call: x}
}

// factory are the traits of a tensor that a function of torch makes anew.
func (w *walker) factory(x *pysyntax.Call, name string) traits {
	t := isTensor
	switch d := arg(x, "device", -1); {
	case d == nil && (w.placed || hasStar(x) || strings.HasSuffix(name, "Tensor") && !strings.HasPrefix(w.text(x.Func), "torch.")):
	case d == nil || w.isHostDevice(d):
		t |= isHost
	case name == "tensor" || name == "as_tensor":
		t |= isMoved | isCopied
	default:
		t |= isMoved
	}
	if isTrue(arg(x, "requires_grad", -1)) {
		t |= isGraph
	}
	return t
}

// torchCall is a function of torch, of whose arguments v is what is known.
func (w *walker) torchCall(x *pysyntax.Call, last string, v, on *value) *value {
	if t, ok := drops[last]; ok {
		d := dropped(last, t, v)
		if w.modes&noGrad != 0 && t != isNumber {
			d.traits |= isFrozen
		}
		return d
	}
	if on.is(isHost) && on.is(isTensor) && !carries(v) {
		return on // still what a factory made on the host
	}
	c := *v
	switch last {
	case "max", "min", "topk", "sort", "median", "mode", "kthvalue":
		if len(x.Args) > 1 {
			return pair(v.traits, v.names)
		}
	case "softmax":
		c.traits |= isSoftmax | isOutput
	case "sigmoid":
		c.traits |= isSigmoid | isOutput
	case "device":
		return &value{path: "torch.device", call: x}
	case "is_tensor", "is_grad_enabled", "manual_seed", "save":
		return &value{path: "torch." + last}
	case "autocast", "no_grad", "inference_mode":
		return &value{path: "torch." + last, call: x}
	case "type_as":
		return v
	}
	if w.modes&noGrad != 0 && c.is(isGraph|isOutput) {
		c.traits |= isFrozen
	}
	return &c
}
