package vetpy

import (
	"strings"

	"github.com/warpline-ml/warpline/internal/pysyntax"
)

// move is a move to a device, or back.
func (w *walker) move(x *pysyntax.Call, a *pysyntax.Attribute, e event) *value {
	on := e.on
	if strings.HasPrefix(on.path, "torch.") && on.call == nil {
		return nil
	}
	switch {
	case a.Attr == "cpu" || a.Attr == "to" && w.isCPU(x):
		if on.is(isModule) {
			return on.without(isMoved | isPlaced)
		}
		e.kind = evRead
		if on.is(isGraph|isOutput|isTensor|isBatch) && !on.is(isHost) || on.traits == 0 {
			w.record(&e)
		}
		return &value{traits: on.traits&^isMoved | isHost, names: on.names}
	case a.Attr == "pin_memory":
		return on.with(isPinned)
	case a.Attr == "to" && !w.toDevice(x):
		return &value{traits: on.traits, names: on.names, class: on.class, fields: on.fields, path: on.path, call: on.call}
	}
	e.kind = evMove
	w.record(&e)
	if on.is(isModule) {
		return on.with(isMoved | isPlaced)
	}
	return on.with(isMoved | isCopied).without(isHost)
}

// isCPU tells whether a move is to the host.
func (w *walker) isCPU(x *pysyntax.Call) bool {
	d := arg(x, "device", 0)
	return d != nil && w.isHostDevice(d)
}

// isHostDevice tells whether a device is the host for sure.
func (w *walker) isHostDevice(d pysyntax.Expr) bool {
	if v := w.peek(d); v.path == "torch.device" && v.call != nil {
		d = arg(v.call, "type", 0)
	}
	if n, ok := d.(*pysyntax.Name); ok {
		if v := w.scope.get(n.ID); v != nil {
			return v.text == `"cpu"`
		}
	}
	s, ok := d.(*pysyntax.String)
	return ok && s.Value == "cpu"
}

// toDevice tells whether x.to(...) names a device: a dtype alone moves nothing.
func (w *walker) toDevice(x *pysyntax.Call) bool {
	if arg(x, "device", -1) != nil {
		return true
	}
	d := arg(x, "", 0)
	if d == nil {
		return false
	}
	p := w.peek(d).path
	if strings.HasPrefix(p, "torch.") && p != "torch.device" && !strings.HasPrefix(p, "torch.cuda") {
		return false
	}
	t := strings.ToLower(w.text(d))
	return !strings.Contains(t, "dtype") && !strings.HasPrefix(t, "torch.float") && !strings.HasPrefix(t, "torch.bfloat") && !strings.HasPrefix(t, "torch.int")
}
