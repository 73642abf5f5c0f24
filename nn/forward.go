package nn

import (
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

// OnForward calls f with each result of a module of the model while it runs, on every device of the model, until stop is called.
// Modules are the layers of this package, by whatever they are called, and the elements of a Sequential; each comes with its
// path in the model and itself. What [Recompute] runs again in Backward comes again, in an env that is Recomputing.
//
// f may compute with the result, and ask for its gradient by OnGrad, but run no modules and not call stop. It is called on the
// goroutine that runs the module, by one at a time. In a captured step it is called while the step is recorded only.
func OnForward(model any, f func(path string, layer any, y *tensor.Tensor)) (stop func()) {
	w := walk("nn.OnForward", model)
	see := func(e *device.Event) {
		c, ok := e.Range.Of.(*call)
		if !ok || !e.End || c.y == nil {
			return
		}
		path, ok := w.modules[c.key]
		if _, wrap := c.layer.(wrapped); ok && !wrap {
			f(path, c.layer, c.y)
		}
	}
	var stops []func()
	for _, d := range devicesOf(w.entries) {
		stops = append(stops, d.Observe(see, device.KindRange))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}
