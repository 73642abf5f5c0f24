package vetpy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
)

func (c *checker) movedInPart() {
	if !c.gpu {
		return
	}
	for _, l := range c.loops {
		turn := c.turn(l)
		moved := slices.IndexFunc(turn, func(e event) bool {
			return e.kind == evMove && e.loop == l && e.on.is(isBatch) && !e.on.is(isModule) && !c.isDropped(turn, &e) && !strings.HasSuffix(c.text(e.node), ".device)")
		})
		if moved < 0 {
			continue
		}
		for i := range turn {
			e := &turn[i]
			if e.loop != l || e.kind != evCriterion && e.kind != evForward {
				continue
			}
			for _, a := range e.args {
				if a.is(isBatch) && a.is(isHost) && !a.is(isMoved|isGraph|isOutput|isNumber) && !c.onHost(e.args) && len(a.names) > 0 {
					c.say(say{rule: "R01", at: e.node, title: fmt.Sprintf("%s stays on the host, while the rest of the batch is moved", a.names[len(a.names)-1]), sure: finding.Medium,
						evidence: finding.Says("%s at %s", firstLine(c.text(turn[moved].node)), c.lineOf(&turn[moved])),
						fix:      fmt.Sprintf("%[1]s = %[1]s.to(device)", a.names[len(a.names)-1]), gain: "the program runs", disproved: "a device that is the CPU"})
				}
			}
		}
	}
}

// isDropped tells whether nothing keeps what a move gives.
func (c *checker) isDropped(turn []event, m *event) bool {
	return slices.ContainsFunc(turn, func(e event) bool {
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
		if e.kind != evMove || !e.on.is(isHost) || e.on.call == nil || !strings.HasPrefix(e.on.path, "torch.") || e.on.path == "torch.from_numpy" || e.on.path == "torch.load" || e.on.is(isPinned) {
			continue
		}
		inForward := e.fn != nil && e.fn.class != nil && e.fn.class.module && e.fn.node.Name == "forward"
		if !inForward && (e.loop == nil || !c.backwardOf(e.loop) || e.guarded) || c.ofHostData(e) {
			continue
		}
		to := "device"
		if inForward {
			to = "x.device"
		}
		call := c.text(e.on.call)
		c.say(say{rule: "V14", at: e.node, title: "a tensor is made on the host and copied to the device in every step", sure: finding.Medium,
			fix: strings.TrimSuffix(call, ")") + fmt.Sprintf(", device=%s)", to), gain: "a copy, and the host's waiting for it", disproved: "values that only the host has"})
	}
}

// ofHostData tells whether a tensor is made of what the host has: a list of the program's own.
func (c *checker) ofHostData(e *event) bool {
	return (e.on.path == "torch.tensor" || e.on.path == "torch.as_tensor") && len(e.on.names) > 0
}

func (c *checker) deviceInForward() {
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evMove || e.fn == nil || e.fn.class == nil || !e.fn.class.module || e.fn.node.Name != "forward" || e.call == nil {
			continue
		}
		fixed := e.what == "cuda" && len(e.call.Args) == 0
		if s := arg(e.call, "device", 0); s != nil && strings.Contains(c.text(s), "cuda") && strings.ContainsAny(c.text(s), `"'`) {
			fixed = true
		}
		if !fixed {
			continue
		}
		c.say(say{rule: "V15", at: e.node, title: "forward moves to a device that is fixed in the text", sure: finding.High,
			fix: "make it on x.device, or register what belongs to the model: self.register_buffer(\"mask\", mask)", gain: "the model runs on any device", disproved: "a model that only ever runs on one GPU"})
	}
}

// pure are methods of tensors that give a new one.
var pure = map[string]bool{"to": true, "cuda": true, "cpu": true, "detach": true, "float": true, "half": true, "bfloat16": true, "double": true, "long": true,
	"clamp": true, "view": true, "reshape": true, "permute": true, "transpose": true, "squeeze": true, "unsqueeze": true, "contiguous": true, "clone": true, "pin_memory": true}

func (c *checker) dropped() {
	for i := range c.events {
		e := &c.events[i]
		method, ok := strings.CutPrefix(e.what, "dropped.")
		if e.kind != evCall || !ok || !pure[method] || e.on.is(isModule|isEngine|isOptimizer|isList) || !e.on.is(isGraph|isOutput|isTensor|isBatch) {
			continue
		}
		c.say(say{rule: "V16", at: e.node, title: fmt.Sprintf("%s.%s() gives a new tensor, which is not kept", e.onText, method), sure: finding.High,
			fix: fmt.Sprintf("%s = %s", e.onText, c.text(e.call)), gain: "the program does what it says", disproved: "a class of one's own whose method changes the object itself"})
	}
}

// actions are methods that nobody names without calling them.
var actions = map[string]bool{"backward": true, "step": true, "zero_grad": true, "eval": true, "train": true, "synchronize": true, "empty_cache": true, "update": true, "detach_": true}

func (c *checker) uncalled() {
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evCall || e.what != "uncalled" {
			continue
		}
		name := e.onText[strings.LastIndexByte(e.onText, '.')+1:]
		if !actions[name] {
			continue
		}
		c.say(say{rule: "V17", at: e.node, title: fmt.Sprintf("%s is not called", e.onText), sure: finding.High, fix: e.onText + "()", gain: "the program does what it says",
			disproved: "a property of that name"})
	}
}

func (c *checker) hidden() {
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evCall || e.what != "setattr" || e.arg == nil || !e.arg.is(isList) || e.fn == nil || e.fn.class == nil || !e.fn.class.module {
			continue
		}
		modules := e.arg.is(isModule) || slices.ContainsFunc(e.arg.elems, func(v *value) bool { return v.is(isModule) })
		if !modules || c.registered(e) {
			continue
		}
		c.say(say{rule: "V18", at: e.node, title: fmt.Sprintf("%s is a plain list: the parameters of its modules are not found", c.text(e.node)), sure: finding.High,
			fix: fmt.Sprintf("%s = nn.ModuleList(%s)", c.text(e.node), "[...]"), gain: "all layers learn, move and are saved", disproved: "modules that are registered elsewhere, by add_module or setattr"})
	}
}

// registered tells whether what a class has in a plain list is registered in another way.
func (c *checker) registered(e *event) bool {
	text := c.f.Text(e.fn.class.node)
	name := regexp.QuoteMeta(c.text(e.node))
	return regexp.MustCompile(`(ModuleList|ModuleDict|Sequential)\(\*?\s*` + name + `|add_module|register_module|setattr\(`).MatchString(text)
}

func (c *checker) missed() {
	for i := range c.events {
		o := &c.events[i]
		if o.kind != evCall || o.call == nil || pathTraits(o.what) != isOptimizer || len(o.call.Args) == 0 {
			continue
		}
		model, ok := strings.CutSuffix(c.text(o.call.Args[0].Value), ".parameters()")
		if !ok {
			continue
		}
		for j := i + 1; j < len(c.events); j++ {
			e := &c.events[j]
			if e.kind == evCall && pathTraits(e.what) == isOptimizer {
				break
			}
			if e.kind == evCall && e.what == "setattr" && e.arg.is(isModule) && !e.arg.is(isList) && e.fn == o.fn && (e.onText == model || strings.HasPrefix(e.onText, model+".")) && !e.arm.excludes(o.arm) {
				c.say(say{rule: "V19", at: e.node, title: fmt.Sprintf("%s is replaced after the optimizer was made, which does not have its parameters", c.text(e.node)), sure: finding.High,
					evidence: finding.Says("the optimizer is made at %s", c.lineOf(o)), fix: "make the optimizer behind all changes of the model", gain: "the new layer learns",
					disproved: "parameters that are added by optimizer.add_param_group"})
			}
		}
	}
}

func (c *checker) probabilities() {
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evCriterion || e.arg == nil {
			continue
		}
		last := strings.ToLower(strings.ReplaceAll(e.what[strings.LastIndexByte(e.what, '.')+1:], "_", ""))
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
		c.say(say{rule: "V20", at: e.node, title: what, fix: fix, sure: finding.High, gain: "gradients that do not vanish", disproved: "a loss of one's own under that name"})
	}
}
