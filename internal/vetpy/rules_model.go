package vetpy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/pysyntax"
)

func (c *checker) movedInPart() {
	if !c.gpu {
		return
	}
	for _, l := range c.loops {
		turn := c.turn(l)
		moved := slices.IndexFunc(turn, func(e event) bool {
			return e.kind == evMove && e.loop == l && e.on.is(isBatch|isElement) && !e.on.is(isModule) && !c.isDropped(turn, &e) && (!strings.HasSuffix(c.text(e.node), ".device)") || settings().MatchString(c.text(e.node)))
		})
		if moved < 0 {
			continue
		}
		for i := moved; i < len(turn); i++ {
			e := &turn[i]
			if e.loop != l || e.kind != evCriterion && e.kind != evForward {
				continue
			}
			for _, a := range e.args {
				if !c.isLength(a) && a.is(isBatch|isElement) && a.is(isHost) && !a.is(isMoved|isGraph|isOutput|isNumber) && !c.onHost(e.args) && len(a.names) > 0 {
					c.say(&say{rule: "R01", at: e.node, title: fmt.Sprintf("%s stays on the host, while the rest of the batch is moved", a.names[len(a.names)-1]), sure: finding.Medium,
						evidence: finding.Says("%s at %s", shortened(c.text(turn[moved].node)), c.lineOf(&turn[moved])),
						fix:      fmt.Sprintf("%[1]s = %[1]s.to(device)", a.names[len(a.names)-1]), gain: "the program runs", disproved: "a device that is the CPU"})
				}
			}
		}
	}
}

// settings matches a device that a program has as one of its settings, and not of another tensor.
var settings = pattern(`(?i)(self|args?|cfg|conf|config|opts?|hparams|hp|flags|settings|accelerator|fabric)\.device\)$`)

// isLength tells whether a value is named as lengths, which losses and packing of sequences take from the host, or as what is no tensor; or is a
// field of a batch, which has moved it itself.
func (c *checker) isLength(v *value) bool {
	return len(v.names) > 0 && lengths().MatchString(v.names[len(v.names)-1]) || slices.ContainsFunc(v.names, func(n string) bool { return strings.Contains(n, ".") })
}

var lengths = pattern(`(?i)len(gth)?s?$|sizes$|name|path|meta|(^|_)(idx|index|indices)$|^(id|key|task|mode)(_|s?$)|_(id|key|task|mode)$`)

// isDropped tells whether nothing keeps what a move gives.
func (c *checker) isDropped(turn []event, m *event) bool {
	return has(turn, func(e *event) bool {
		return e.kind == evCall && strings.HasPrefix(e.what, "dropped.") && e.call == m.call
	})
}

// onHost tells whether what a batch meets was brought to the host.
func (c *checker) onHost(args []*value) bool {
	return slices.ContainsFunc(args, func(v *value) bool { return v.is(isGraph|isOutput) && v.is(isHost) })
}

func (c *checker) madeThenMoved() {
	if !c.gpu {
		return
	}
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evMove || !e.on.is(isHost) || e.on.call == nil || !strings.HasPrefix(e.on.path, "torch.") || e.on.path == "torch.from_numpy" || e.on.is(isPinned) || arg(e.on.call, "generator", -1) != nil {
			continue
		}
		inForward := inForward(e) || e.fn != nil && e.fn.node.Name == "compute_loss"                            // of a Trainer of transformers
		asks := e.loop != nil && e.modes&noGrad != 0 && strings.HasSuffix(c.target(e), ".device") && !e.guarded // answers one after the other
		if !inForward && !asks && (e.loop == nil || !c.backwardOf(e.loop) || e.guarded) || c.ofHostData(e) || e.arm.caches() || e.fn != nil && e.fn.node.Name == "<lambda>" {
			continue
		}
		c.say(&say{rule: "V14", at: e.node, title: "a tensor is made on the host and copied to the device in every step", sure: finding.Medium,
			fix: c.madeOn(e.on, c.target(e)), gain: "a copy, and the host's waiting for it", disproved: "values that only the host has"})
	}
}

// target is the device of a move, as the program writes it.
func (c *checker) target(e *event) string {
	d := arg(e.call, "device", 0)
	switch {
	case d == nil || e.what == "cuda":
		return strconv.Quote(e.what)
	case isSimple(c.text(d)) && !strings.Contains(strings.ToLower(c.text(d)), "device") && !strings.Contains(c.text(d), "dev"):
		if e.call != nil && len(e.call.Args) == 1 && liesOnDevice(c.peek(d)) {
			return c.text(d) + ".device"
		}
	}
	return c.text(d)
}

// ofHostData tells whether a tensor is made of what the host has: a list of the program's own.
func (c *checker) ofHostData(e *event) bool {
	if n, ok := arg(e.on.call, "data", 0).(*pysyntax.Name); ok && e.fn != nil && c.file.vars[n.ID] != nil {
		return false // the same in every step
	}
	if legacyConstructor(e.on.path) && !c.ofSizes(e.on.call) {
		return true
	}
	return (e.on.path == "torch.tensor" || e.on.path == "torch.as_tensor") && len(e.on.names) > 0
}

// inForward tells whether an event is in the forward of a module.
func inForward(e *event) bool { return e.forward && ofModuleMethod(e) }

// constants are tensors that stay the same and are copied to the device each time that they are used.
func (c *checker) constants() {
	if !c.gpu {
		return
	}
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evMove || !e.on.is(isHost) || !e.on.is(isTensor) || e.on.is(isBatch|isElement|isGraph|isPinned) || e.guarded {
			continue
		}
		name, index, part := strings.Cut(e.onText, "[")
		inForward := strings.HasPrefix(name, "self.") && inForward(e)
		if !isSimple(name) || part && !(inForward && strings.Contains(index, ":")) {
			continue
		}
		if !inForward && (e.loop == nil || e.on.loop == e.loop || !e.loop.within(e.on.loop) || !c.backwardOf(e.loop)) {
			continue
		}
		fix := fmt.Sprintf("%[1]s = %[1]s.to(device)  # once, before the loop", name)
		if inForward {
			fix = fmt.Sprintf("self.register_buffer(%q, ...)  # in __init__: it moves with the model", strings.TrimPrefix(name, "self."))
		}
		c.say(&say{rule: "V14", at: e.node, title: fmt.Sprintf("%s stays the same and is copied to the device in every step", name), sure: finding.Medium,
			fix: fix, gain: "a copy, and the host's waiting for it", disproved: "values that the host changes between steps"})
	}
}

// piecewise are batches that are put together from elements each of which was copied by itself.
func (c *checker) piecewise() {
	if !c.gpu {
		return
	}
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evCall || e.what != "torch.stack" && e.what != "torch.cat" && e.what != "torch.vstack" || !e.arg.is(isCopied) || !e.arg.is(isList) || e.loop == nil || !c.backwardOf(e.loop) || e.guarded {
			continue
		}
		if _, here := e.call.Args[0].Value.(*pysyntax.Comprehension); !here && e.arg.loop != e.loop {
			continue // collected over many steps
		}
		c.say(&say{rule: "V26", at: e.node, title: "each element is copied to the device by itself, and then they are put together", sure: finding.Medium,
			fix: "put them together on the host, and copy once: torch.stack([...]).to(device), or torch.as_tensor(numpy.stack([...]), device=device)", gain: "all copies of a step but one",
			disproved: "elements of another device"})
	}
}

// oneByOneOf are elements of a list that is older than the training, which a loop within each step copies by themselves.
func (c *checker) oneByOneOf() {
	if !c.gpu {
		return
	}
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evMove || e.guarded || e.call == nil || e.loop == nil || !e.loop.iter.is(isNumber) || e.loop.parent == nil || !c.backwardOf(e.loop.parent) || c.backwardOf(e.loop) || c.hasKind(e.loop, evForward) {
			continue
		}
		x, ok := e.call.Func.(*pysyntax.Attribute).X.(*pysyntax.Subscript)
		if !ok || !isSimple(c.text(x.X)) || !c.staysAs(c.text(x.X), e) {
			continue
		}
		c.say(&say{rule: "V26", at: e.node, title: fmt.Sprintf("elements of %s are copied to the device one by one, in every step", c.text(x.X)), sure: finding.Medium,
			fix: fmt.Sprintf("%[1]s = torch.stack(%[1]s).to(%[2]s)  # once, before the training", c.text(x.X), c.target(e)), gain: "all these copies", disproved: "a list that does not fit into the device's memory: then one copy for each step"})
	}
}

// staysAs tells whether a variable is a list from before the steps of an event, and nothing in them changes it.
func (c *checker) staysAs(name string, e *event) bool {
	v := c.file.vars[name]
	if e.fn != nil || v == nil || !v.is(isList) || v.is(isLoader|isBatch|isModule) || v.loop != nil {
		return false
	}
	text := c.f.Text(e.loop.parent.node)
	return !strings.Contains(text, name+".") && !strings.Contains(text, name+" =") && !strings.Contains(text, name+" +=")
}

func (c *checker) deviceInForward() {
	for i := range c.events {
		e := &c.events[i]
		if !inForward(e) || e.call == nil {
			continue
		}
		place, fixed := -1, strings.HasPrefix(e.what, "torch.cuda.") && strings.HasSuffix(e.what, "Tensor")
		switch {
		case e.kind == evMove:
			place, fixed = 0, e.what == "cuda" && len(e.call.Args) == 0
		case e.kind != evCall || !strings.HasPrefix(e.what, "torch."):
			continue
		}
		if s := arg(e.call, "device", place); s != nil && strings.Contains(c.text(s), "cuda") && strings.ContainsAny(c.text(s), `"'`) {
			fixed = true
		}
		if !fixed || mover().MatchString(e.fn.class.node.Name) {
			continue
		}
		c.say(&say{rule: "V15", at: e.node, title: "forward works on a device that is fixed in the text", sure: finding.High,
			fix: "make it on x.device, or register what belongs to the model: self.register_buffer(\"mask\", mask)", gain: "the model runs on any device", disproved: "a model that only ever runs on one GPU"})
	}
}

// mover matches classes that are there to move what they get.
var mover = pattern(`(?i)gpu|cuda|device`)

// pure are methods of tensors that give a new one.
var pure = map[string]bool{"to": true, "cuda": true, "cpu": true, "detach": true, "float": true, "half": true, "bfloat16": true, "double": true, "long": true,
	"clamp": true, "view": true, "reshape": true, "permute": true, "transpose": true, "squeeze": true, "unsqueeze": true, "contiguous": true, "clone": true, "pin_memory": true}

func (c *checker) dropped() {
	for i := range c.events {
		e := &c.events[i]
		method, ok := strings.CutPrefix(e.what, "dropped.")
		if e.kind != evCall || !ok || !pure[method] || e.on.is(isModule|isEngine|isOptimizer|isList) || !e.on.is(isGraph|isOutput|isTensor|isBatch) && !c.feeds(e) || c.wholeBatch(e) {
			continue
		}
		c.say(&say{rule: "V16", at: e.node, title: fmt.Sprintf("%s.%s() gives a new tensor, which is not kept", e.onText, method), sure: finding.High,
			fix: fmt.Sprintf("%s = %s", e.onText, c.text(e.call)), gain: "the program does what it says", disproved: "a class of one's own whose method changes the object itself"})
	}
}

// wholeBatch tells whether a value is all that a loop gives in a turn: batches of transformers and of PyTorch Geometric move themselves.
func (c *checker) wholeBatch(e *event) bool {
	for l := e.loop; l != nil; l = l.parent {
		f, ok := l.node.(*pysyntax.For)
		if !ok {
			continue
		}
		targets := []pysyntax.Expr{f.Target}
		if s, ok := f.Target.(*pysyntax.Sequence); ok && len(l.iter.elems) == len(s.Elements) {
			targets = s.Elements
		}
		if slices.ContainsFunc(targets, func(t pysyntax.Expr) bool { return isWord(t, e.onText) }) {
			return true
		}
	}
	return false
}

// feeds tells whether an element of what a loop goes over is given to a module or a loss in the same turn.
func (c *checker) feeds(d *event) bool {
	return d.on.is(isElement) && d.loop != nil && c.any(d.loop, func(e *event) bool {
		return (e.kind == evForward || e.kind == evCriterion) && slices.ContainsFunc(e.args, func(v *value) bool { return v.is(isElement) && slices.Contains(v.names, d.onText) })
	})
}

// actions are methods that nobody names without calling them.
var actions = map[string]bool{"backward": true, "step": true, "zero_grad": true, "eval": true, "train": true, "synchronize": true, "empty_cache": true, "update": true, "detach_": true}

func (c *checker) uncalled() {
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evCall || e.what != "uncalled" {
			continue
		}
		name := lastName(e.onText)
		if !actions[name] {
			continue
		}
		c.say(&say{rule: "V17", at: e.node, title: fmt.Sprintf("%s is not called", e.onText), sure: finding.High, fix: e.onText + "()", gain: "the program does what it says",
			disproved: "a property of that name"})
	}
}

func (c *checker) hidden() {
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evCall || e.what != "setattr" || e.arg == nil || !e.arg.is(isList) || e.fn == nil || e.fn.class == nil || !e.fn.class.module {
			continue
		}
		modules := e.arg.is(isModule | isParameter)
		for _, v := range e.arg.elems {
			modules = modules || v.is(isModule|isParameter) && !slices.ContainsFunc(v.names, func(n string) bool { return strings.HasPrefix(n, "self.") })
		}
		if !modules || c.registered(e) || c.withoutParameters(e) || len(e.arg.elems) == 1 && len(e.arg.elems[0].names) > 0 { // [x] hides what is not meant to learn
			continue
		}
		c.say(&say{rule: "V18", at: e.node, title: fmt.Sprintf("%s is a plain list: the parameters of its modules are not found", c.text(e.node)), sure: finding.High,
			fix: fmt.Sprintf("%s = nn.ModuleList(%s)", c.text(e.node), "[...]"), gain: "all layers learn, move and are saved", disproved: "modules that are registered elsewhere, by add_module or setattr"})
	}
}

// withoutParameters tells whether what a list has is known to have nothing that learns, or is called what changes images.
func (c *checker) withoutParameters(e *event) bool {
	parts := e.arg.elems
	if e.arg.last != nil {
		parts = append(slices.Clone(parts), e.arg.last)
	}
	return transforms().MatchString(c.text(e.node)) || len(parts) > 0 && !slices.ContainsFunc(parts, func(v *value) bool {
		switch {
		case !v.is(isModule | isParameter):
			return false
		case v.class != nil:
			return len(v.class.bases) != 1 || v.class.bases[0] != "torch.nn.Module" || stateful().MatchString(c.f.Text(v.class.node))
		}
		return !stateless().MatchString(v.path)
	})
}

var (
	transforms = pattern(`(?i)(transform|augmentation|preprocess\w*)s?$`)
	stateful   = pattern(`\bnn\.[A-Z]\w*\(|Parameter\(|register_|self\.\w+\s*=\s*[A-Z]\w*\(|self\.\w+\s*=\s*\w*(model|net|layer|module|encoder|decoder|backbone)s?\b`)
	stateless  = pattern(`^torch\.nn\.(Identity|Flatten|Unflatten|(Leaky)?ReLU6?|GELU|SiLU|ELU|Mish|Tanh|Sigmoid|(Log)?Softmax|Softplus|Dropout\w*|\w+Pool[123]d|Upsample|\w+Pad[123]d|PixelShuffle)$`)
)

// registered tells whether what a class has in a plain list is registered in another way.
func (c *checker) registered(e *event) bool {
	text := c.f.Text(e.fn.class.node)
	name := regexp.QuoteMeta(c.text(e.node))
	if len(e.arg.names) > 0 && strings.Contains(text, "Sequential(*") {
		return true // its elements may be there, too
	}
	return regexp.MustCompile(`(ModuleList|ModuleDict|ParameterList|ParameterDict|Sequential)\(\*?\s*` + name + `|add_module|register_module|register_parameter|setattr\(`).MatchString(text)
}

func (c *checker) missed() {
	for i := range c.events {
		o := &c.events[i]
		model, ok := strings.CutSuffix(c.parametersOf(o), ".parameters()")
		if !ok {
			continue
		}
		for j := i + 1; j < len(c.events); j++ {
			e := &c.events[j]
			if makesOptimizer(e) {
				break
			}
			if e.kind == evCall && e.what == "remade" && e.onText == model && e.arg.is(isModule) && e.loop != nil && !o.loop.within(e.loop) && c.hasKind(e.loop, evBackward) && !c.any(e.loop, makesOptimizer) {
				c.sayLeft(e, o, model+" is made anew")
			}
			if e.kind == evCall && e.what == "replaced" && e.onText == model && next(c.events[j+1:], e, makesOptimizer) == nil && next(c.events[j+1:], e, func(s *event) bool { return isStep(s) && s.on.call == o.call }) != nil {
				c.sayLeft(e, o, model+" is replaced")
			}
			if e.kind == evMove && o.what == "torch.optim.Adagrad" && e.onText == model && e.on.is(isModule) {
				c.say(&say{rule: "R01", at: o.node, title: fmt.Sprintf("Adagrad makes its state where the parameters are, and %s is moved only then", model), sure: finding.High,
					evidence: finding.Says("%s at %s", c.text(e.node), c.lineOf(e)), fix: "move the model first, and make the optimizer then", gain: "the program runs", disproved: "a device that is the CPU"})
			}
			if e.kind == evCall && e.what == "setattr" && e.arg.is(isModule) && !e.arg.is(isList) && e.fn == o.fn && c.f.Line(e.node) > c.f.Line(o.node) && (e.onText == model || strings.HasPrefix(e.onText, model+".") || strings.HasPrefix(model+".", c.text(e.node)+".")) && !e.arm.excludes(o.arm) {
				c.say(&say{rule: "V19", at: e.node, title: fmt.Sprintf("%s is replaced after the optimizer was made, which does not have its parameters", c.text(e.node)), sure: finding.High,
					evidence: finding.Says("the optimizer is made at %s", c.lineOf(o)), fix: "make the optimizer behind all changes of the model", gain: "the new layer learns",
					disproved: "parameters that are added by optimizer.add_param_group"})
			}
		}
	}
}

// sayLeft tells of an optimizer that has the parameters of a model which is another one by now.
func (c *checker) sayLeft(e, o *event, what string) {
	c.say(&say{rule: "V19", at: e.node, title: what + ", and the optimizer has the parameters of the one before", sure: finding.High,
		evidence: finding.Says("the optimizer is made at %s", c.lineOf(o)), fix: "make the optimizer anew, too, behind it", gain: "the new model learns", disproved: "parameters that are handed to the optimizer in another file"})
}

// sharing are optimizers that are made of the parameters of one model, side by side, while another model of the function has none.
func (c *checker) sharing() {
	for i := range c.events {
		a := &c.events[i]
		own, ok := strings.CutSuffix(c.parametersOf(a), ".parameters()")
		if !ok {
			continue
		}
		b := next(c.events[i+1:], a, func(e *event) bool {
			return e.fn == a.fn && e.arm == a.arm && e.loop == a.loop && c.parametersOf(e) == c.parametersOf(a)
		})
		if b == nil || c.assignedTo(a.call) == c.assignedTo(b.call) || c.assignedTo(b.call) == "" || strings.Contains(c.f.LineText(c.f.Line(b.node)), c.assignedTo(a.call)) {
			continue
		}
		if !has(c.events, func(e *event) bool {
			return e.kind == evForward && e.modes&noGrad == 0 && c.learnable(e.on) && e.onText != own && !c.learns[e.onText] && c.steppedBy(e, a, b)
		}) {
			continue
		}
		c.say(&say{rule: "V19", at: b.node, title: fmt.Sprintf("%s and %s both have the parameters of %s", c.assignedTo(a.call), c.assignedTo(b.call), own), sure: finding.Medium,
			evidence: finding.Says("the other one is made at %s", c.lineOf(a)), fix: "give each optimizer the parameters of its own model", gain: "the other model learns", disproved: "two optimizers of one model that are meant"})
	}
}

// steppedBy tells whether a model is asked where one of two optimizers steps.
func (c *checker) steppedBy(e, a, b *event) bool {
	return e.loop != nil && has(c.events, func(s *event) bool {
		return isStep(s) && (s.on.call == a.call || s.on.call == b.call) && s.loop != nil && (s.loop.within(e.loop) || e.loop.within(s.loop))
	})
}

// thawed are parameters that were frozen when the optimizer was made of those that are not, and learn later.
func (c *checker) thawed() {
	if c.mentions("add_param_group") {
		return
	}
	for i := range c.events {
		o := &c.events[i]
		if !strings.Contains(c.parametersOf(o), "requires_grad") {
			continue
		}
		for j := i + 1; j < len(c.events); j++ {
			e := &c.events[j]
			if makesOptimizer(e) {
				break
			}
			if e.kind != evCall || e.what != "thaw" || e.loop == nil || o.loop.within(e.loop) || c.any(c.outermost(e.loop, o.loop), makesOptimizer) || !c.hasKind(c.outermost(e.loop, o.loop), evBackward) {
				continue
			}
			c.say(&say{rule: "V19", at: o.node, title: "the optimizer has the parameters that learn when it is made, and others are unfrozen later", sure: finding.High,
				evidence: finding.Says("unfrozen at %s", c.lineOf(e)), fix: "give the optimizer all parameters, or those that are unfrozen by optimizer.add_param_group", gain: "the unfrozen layers learn",
				disproved: "an optimizer that is made anew in another file"})
		}
	}
}

// partly are optimizers of one part of a model that a training goes through as a whole, and in which nothing is frozen or loaded.
func (c *checker) partly() {
	if c.mentions("requires_grad", "load_state_dict", "pretrained", "add_param_group", "weights=") {
		return
	}
	for i := range c.events {
		o := &c.events[i]
		whole, part, ok := strings.Cut(strings.TrimSuffix(c.parametersOf(o), ".parameters()"), ".")
		if !ok || whole == "self" || !isSimple(part) || strings.Contains(part, ".") {
			continue
		}
		f := next(c.events[i+1:], o, func(e *event) bool {
			return e.kind == evForward && e.onText == whole && e.modes&noGrad == 0 && e.on.fields[part] != nil && c.trainsIn(e.loop)
		})
		if f == nil {
			continue
		}
		missed := ""
		for name, m := range f.on.fields {
			if (missed == "" || name < missed) && name != part && m.is(isModule) && m.call != nil && layers().MatchString(c.layersOf(m)) && !c.mentions(whole+"."+name) && c.learnsIn(f.loop, m) {
				missed = name
			}
		}
		if missed != "" && !c.mentions(whole+".parameters") {
			c.sayMissed(o.node, f, whole+"."+missed, whole+".parameters()")
		}
	}
}

// sayMissed tells of a part of a training, which an event goes through, that no optimizer has.
func (c *checker) sayMissed(at pysyntax.Node, e *event, part, give string) {
	c.say(&say{rule: "V19", at: at, title: fmt.Sprintf("the training goes through %s, and no optimizer has its parameters", part), sure: finding.Medium,
		evidence: finding.Says("%s at %s", shortened(c.text(e.node)), c.lineOf(e)), fix: "give the optimizer " + give, gain: part + " learns",
		disproved: "a part that is meant to stay as it is: then requires_grad_(False) saves its gradients"})
}

// layersOf is the source of what makes a module: of its class, or the call.
func (c *checker) layersOf(m *value) string {
	if m.class != nil {
		return c.f.Text(m.class.node)
	}
	return c.text(m.call)
}

// learnsIn tells whether a loop asks a module with recording.
func (c *checker) learnsIn(l *loop, m *value) bool {
	return c.any(l, func(e *event) bool { return e.kind == evForward && e.on.call == m.call && e.modes&noGrad == 0 })
}

// outermost is the loop around another that lies directly in a third.
func (c *checker) outermost(l, in *loop) *loop {
	for l.parent != nil && l.parent != in {
		l = l.parent
	}
	return l
}

// unfollowed are modules that a training goes through, while its optimizers have only the parameters of others.
func (c *checker) unfollowed() {
	if !c.allByName() {
		return
	}
	for _, l := range c.training {
		if l.lighting || !c.any(l, isStep) || c.any(l, func(e *event) bool { return isStep(e) && !madeHere(e) }) {
			continue
		}
		turn := c.turn(l)
		for i := range turn {
			e := &turn[i]
			if e.kind != evForward && e.kind != evCriterion || e.modes&noGrad != 0 || ofModuleMethod(e) || !c.learnable(e.on) || strings.Contains(c.f.LineText(c.f.Line(e.node)), "detach") || !c.onlyCalled(e.onText) || !c.sameName(e) {
				continue
			}
			c.sayMissed(e.on.call, e, e.onText, fmt.Sprintf("list(...) + list(%s.parameters())", e.onText))
		}
	}
}

// sameName tells whether a module that is called has the name that it was made under, or that one is nowhere handed on either.
func (c *checker) sameName(e *event) bool {
	if slices.ContainsFunc(e.on.names, func(n string) bool { return c.learns[n] }) {
		return false
	}
	made := c.assignedTo(e.on.call)
	if _, after, _ := strings.Cut(c.f.LineText(c.f.Line(e.on.call)), made); !strings.HasPrefix(strings.TrimLeft(after, " ="), shortened(c.text(e.on.call))) {
		return true // handed on as it is made
	}
	return strings.Contains(made, e.onText) || c.onlyCalled(made)
}

func makesOptimizer(e *event) bool {
	return e.kind == evCall && e.call != nil && pathTraits(e.what) == isOptimizer
}

// parametersOf is what an event makes an optimizer of, as it is written; empty of other events.
func (c *checker) parametersOf(e *event) string {
	if !makesOptimizer(e) {
		return ""
	}
	if a := arg(e.call, "params", 0); a != nil {
		return c.text(a)
	}
	return ""
}

// madeHere tells whether the optimizer that steps was made in the program.
func madeHere(step *event) bool {
	o := step.on
	if step.kind == evScalerStep {
		o = step.arg
	}
	return o != nil && o.is(isOptimizer) && o.call != nil
}

// ofModuleMethod tells whether an event is in a method of a module, whose parts are parameters of the whole.
func ofModuleMethod(e *event) bool { return e.fn != nil && e.fn.class != nil && e.fn.class.module }

// allByName tells whether the program has optimizers, and all of them are made of the parameters of modules that are named there.
func (c *checker) allByName() bool {
	n := 0
	for i := range c.events {
		e := &c.events[i]
		if !makesOptimizer(e) {
			continue
		}
		if !strings.Contains(c.parametersOf(e), ".parameters()") {
			return false
		}
		n++
	}
	return n > 0
}

// learnable tells whether a module was made anew in the program, of layers that learn.
func (c *checker) learnable(v *value) bool {
	switch {
	case v.call == nil:
		return false
	case v.class != nil:
		text := c.f.Text(v.class.node)
		return layers().MatchString(text) && !strings.Contains(text, "requires_grad") && !strings.Contains(text, "pretrained") && !strings.Contains(text, "weights=")
	}
	return layers().MatchString(strings.TrimPrefix(v.path, "torch.")+"(") || has(c.events, func(e *event) bool { // another of its kind learns
		return e.kind == evForward && v.path != "" && e.on.path == v.path && e.on.call != v.call && c.learns[e.onText]
	})
}

// layers matches what has parameters.
var layers = pattern(`\bnn\.(Linear|Bilinear|Conv\w+|Embedding\w*|LSTM\w*|GRU\w*|RNN\w*|Transformer\w*|MultiheadAttention|Parameter)\(`)

// harmless are the methods of a module after which its parameters are where they were.
var harmless = map[string]bool{"to": true, "cuda": true, "train": true, "zero_grad": true, "state_dict": true, "float": true, "half": true, "double": true}

// onlyHarmless tells whether a block does nothing but call such methods.
func (c *checker) onlyHarmless(body []pysyntax.Stmt) bool {
	return !slices.ContainsFunc(body, func(s pysyntax.Stmt) bool {
		x, ok := s.(*pysyntax.ExprStmt)
		if !ok {
			return true
		}
		call, ok := x.X.(*pysyntax.Call)
		if !ok {
			return true
		}
		a, ok := call.Func.(*pysyntax.Attribute)
		return !ok || !harmless[a.Attr]
	})
}

// onlyCalled tells whether a module is nowhere handed on, frozen, loaded or asked for its parameters.
func (c *checker) onlyCalled(name string) bool { return c.elseUsed()[name] == 0 }

// countElseUsed counts, of all names and fields as they are written, how often they are used but to be called, assigned or moved.
func (c *checker) countElseUsed() map[string]int {
	n := map[string]int{}
	known := func(all ...pysyntax.Expr) {
		for _, x := range all {
			n[c.text(x)]--
		}
	}
	pysyntax.Inspect(c.f.Body, func(x pysyntax.Node) bool {
		switch x := x.(type) {
		case *pysyntax.Name:
			n[x.ID]++
		case *pysyntax.Attribute:
			n[c.text(x)]++
		case *pysyntax.Call:
			known(x.Func)
			if a, ok := x.Func.(*pysyntax.Attribute); ok && harmless[a.Attr] {
				known(a.X)
			}
		case *pysyntax.For:
			if s, ok := x.Iter.(*pysyntax.Sequence); ok && c.onlyHarmless(x.Body) {
				known(s.Elements...)
			}
		case *pysyntax.Assign:
			known(x.Targets...)
			for _, t := range x.Targets {
				if s, ok := t.(*pysyntax.Sequence); ok {
					known(s.Elements...)
				}
			}
		}
		return true
	})
	return n
}

func (c *checker) probabilities() {
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evCriterion || e.arg == nil {
			continue
		}
		last := strings.ToLower(strings.ReplaceAll(lastName(e.what), "_", ""))
		var what, fix string
		switch {
		case e.arg.is(isSoftmax) && strings.HasPrefix(last, "crossentropy"):
			what, fix = "softmax is applied before cross entropy, which applies it itself", "give the loss the scores of the last layer; take softmax only where probabilities are shown"
		case e.arg.is(isSoftmax) && strings.HasPrefix(last, "nllloss"):
			what, fix = "the loss of log-probabilities is given probabilities", "log_softmax in place of softmax, or cross entropy of the scores"
		case e.arg.is(isSigmoid) && (strings.HasPrefix(last, "bcewithlogits") || strings.HasSuffix(last, "withlogits")):
			what, fix = "sigmoid is applied before a loss that applies it itself", "give the loss the scores of the last layer"
		default:
			continue
		}
		c.say(&say{rule: "V20", at: e.node, title: what, fix: fix, sure: finding.High, gain: "gradients that do not vanish", disproved: "a loss of one's own under that name"})
	}
}

// madeOn is the call that makes a tensor on another device.
func (c *checker) madeOn(v *value, device string) string {
	if v.path == "torch.from_numpy" {
		return c.text(v.call) + ".to(" + device + ")"
	}
	last := strings.TrimPrefix(v.path, "torch.")
	if !legacyConstructor(v.path) || arg(v.call, "device", -1) != nil {
		return c.withArg(v.call, "device", device)
	}
	sizes := make([]string, 0, len(v.call.Args)+2)
	for _, a := range v.call.Args {
		sizes = append(sizes, c.argText(a))
	}
	if last != "Tensor" && last != "FloatTensor" {
		sizes = append(sizes, "dtype=torch."+legacyType(last))
	}
	return "torch.empty(" + strings.Join(append(sizes, "device="+device), ", ") + ")"
}

// legacyType is the type of elements that a legacy constructor has in its name; empty of another function.
func legacyType(name string) string {
	const types = "FloatTensor float32 DoubleTensor float64 HalfTensor float16 BFloat16Tensor bfloat16 ByteTensor uint8 CharTensor int8 ShortTensor int16 IntTensor int32 LongTensor int64 BoolTensor bool "
	if _, after, ok := strings.Cut(" "+types, " "+name+" "); ok {
		t, _, _ := strings.Cut(after, " ")
		return t
	}
	return ""
}

// legacyConstructor tells whether a path is of torch.FloatTensor and the like, which take values or sizes, and no device but the host.
func legacyConstructor(path string) bool {
	last, ok := strings.CutPrefix(path, "torch.")
	return ok && (last == "Tensor" || strings.HasSuffix(last, "Tensor") && legacyType(last) != "")
}

// ofSizes tells whether a call names sizes: numbers, or what size and shape give.
func (c *checker) ofSizes(x *pysyntax.Call) bool {
	for _, a := range x.Args {
		t := c.text(a.Value)
		if _, ok := a.Value.(*pysyntax.Number); !ok && !strings.Contains(t, "size(") && !strings.Contains(t, ".shape") {
			return false
		}
	}
	return len(x.Args) > 0
}
