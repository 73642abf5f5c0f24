package vetpy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/pysyntax"
)

// meet records that an operation is given a value of the device and one that lies on the host for sure.
func (w *walker) meet(node pysyntax.Node, all ...*value) {
	if w.quiet > 0 {
		return
	}
	if h := slices.IndexFunc(all, liesOnHost); h >= 0 && slices.ContainsFunc(all, liesOnDevice) {
		w.record(&event{kind: evMeet, node: node, arg: all[h]})
	}
}

// liesOnDevice tells whether a value was moved, on all ways.
func liesOnDevice(v *value) bool {
	return v.is(isMoved) && !v.is(isHost|isModule|isNumber|isList|isLoader) && v.is(isTensor|isBatch|isElement|isGraph|isOutput)
}

// liesOnHost tells whether a value is a tensor that was made on the host, and has dimensions: numbers may lie anywhere.
func liesOnHost(v *value) bool {
	return v.is(isHost) && v.is(isTensor) && !v.is(isMoved|isGraph|isOutput|isNumber|isPinned|isList) && v.call != nil && hasDimensions(v)
}

// hasDimensions tells whether what makes a tensor makes more than a number.
func hasDimensions(v *value) bool {
	first := arg(v.call, "", 0)
	switch x := first.(type) {
	case nil:
		return false
	case *pysyntax.Sequence:
		return len(x.Elements) > 0
	case *pysyntax.Comprehension:
		return true
	}
	return v.path != "torch.tensor" && v.path != "torch.as_tensor"
}

// together are the methods of tensors whose argument must lie where they do.
var together = map[string]bool{"masked_fill": true, "masked_fill_": true, "matmul": true, "mm": true, "bmm": true, "mul": true, "add": true, "sub": true, "div": true,
	"gather": true, "scatter": true, "scatter_": true, "scatter_add": true, "scatter_add_": true, "add_": true, "mul_": true}

// elsewhere are tensors that were made on the host and are given to what computes on the device.
func (c *checker) elsewhere() {
	if !c.gpu {
		return
	}
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evMeet || c.isLength(e.arg) && !strings.HasPrefix(e.arg.names[len(e.arg.names)-1], "self.") {
			continue
		}
		call := c.text(e.arg.call)
		fix, at := c.madeOn(e.arg, "device"), pysyntax.Node(e.arg.call)
		if n := len(e.arg.names); n > 0 && strings.HasPrefix(e.arg.names[n-1], "self.") && ofModuleMethod(e) {
			fix = fmt.Sprintf("self.register_buffer(%q, ...)  # it moves with the model", strings.TrimPrefix(e.arg.names[n-1], "self."))
			for i := range c.events {
				if s := &c.events[i]; s.what == "setattr" && s.arg.call == e.arg.call && c.text(s.node) == e.arg.names[n-1] {
					at = s.node // where it is to be written
				}
			}
		}
		c.say(&say{rule: "R01", at: at, title: fmt.Sprintf("%s is made on the host, and meets what lies on the device", shortened(call)), sure: finding.Medium,
			evidence: finding.Says("%s at %s", shortened(c.text(e.node)), c.lineOf(e)), fix: fix, gain: "the program runs", disproved: "a device that is the CPU"})
	}
}

// unmoved are models that stay on the host, and are given batches that lie on the device.
func (c *checker) unmoved() {
	if !c.gpu || c.placed {
		return
	}
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evForward || e.on.call == nil || e.on.is(isMoved|isCriterion) || ofModuleMethod(e) || strings.Contains(strings.TrimPrefix(e.onText, "self."), ".") || !liesOnDevice(e.arg) || !c.staysHere(e) {
			continue
		}
		c.say(&say{rule: "R01", at: e.node, title: fmt.Sprintf("%s stays on the host, and is given what lies on the device", e.onText), sure: finding.Medium,
			evidence: finding.Says("it is made at %s", c.line(c.f.Line(e.on.call))), fix: fmt.Sprintf("%[1]s = %[1]s.to(device)  # before the optimizer is made", e.onText), gain: "the program runs",
			disproved: "a model that moves itself, or a device that is the CPU"})
	}
}

// staysHere tells whether nothing in the program could move a model: it is called, trained and asked for its parameters, and handed to nobody.
func (c *checker) staysHere(e *event) bool {
	if e.on.class != nil && movesItself().MatchString(c.f.Text(e.on.class.node)) || strings.Contains(c.text(e.on.call), "device") {
		return false
	}
	handed := c.handed()
	return !handed[e.onText] && !slices.ContainsFunc(e.on.names, func(n string) bool { return handed[n] })
}

// findHanded finds what is handed to somebody, as it is written, and what may move by a method of its own.
func (c *checker) findHanded() map[string]bool {
	handed := map[string]bool{}
	pysyntax.Inspect(c.f.Body, func(n pysyntax.Node) bool {
		switch n := n.(type) {
		case *pysyntax.Call:
			for _, a := range n.Args {
				handed[c.text(a.Value)] = true
			}
			if a, is := n.Func.(*pysyntax.Attribute); is && !stationary[a.Attr] {
				handed[c.text(a.X)] = true
			}
		case *pysyntax.Sequence:
			for _, x := range n.Elements {
				handed[c.text(x)] = true
			}
		case *pysyntax.Return:
			if n.X != nil {
				handed[c.text(n.X)] = true
			}
		}
		return true
	})
	return handed
}

var movesItself = pattern(`\.(to|cuda)\(|device=`)

// stationary are the methods of a module after which it lies where it did.
var stationary = map[string]bool{"parameters": true, "named_parameters": true, "train": true, "eval": true, "state_dict": true, "zero_grad": true, "load_state_dict": true}
