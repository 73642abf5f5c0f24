package tensor

import (
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/engines"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Simulated returns the root env of a simulated GPU of its own, with checks and schedules by the words that WARPLINE_SIM takes:
// "check=all,seed=3,schedule=independent". The error says what card or word there is not.
func Simulated(card, words string) (*Env, error) {
	raw, err := engines.Simulate(card, words)
	if err != nil {
		return nil, err
	}
	d, err := newDevice(raw.Info().Name, raw)
	if err != nil {
		return nil, err
	}
	return d.base, nil
}

// Loader is what compiles kernels of the program's own for the device, for package kernel; false where none runs.
func (d *Device) Loader() (device.Loader, bool) { return device.As[device.Loader](d.dev) }

// Unwritten makes a value whose memory holds anything, for package kernel: what kernels write.
func (e *Env) Unwritten(t *ir.Type) *Tensor {
	e.present("Empty")
	return e.make(ir.Full, t.AsDense(), 0, nil, nil)
}

// Own is a value as an argument of a kernel of the program's own, with a name for messages.
type Own struct {
	*Tensor
	Name string
}

// LaunchOwn runs a kernel of the program's own on e's queue, for package kernel: it writes into out, as operations in place do, and
// reads in. What it does is not recorded: values that carry a graph, or would start one, are refused.
func (e *Env) LaunchOwn(k *device.Kernel, out, in []Own) {
	op := k.What()
	reads := make([]*Tensor, len(in))
	for i, t := range in {
		reads[i] = e.mayRead(op, t)
	}
	writes, bases := make([]*Tensor, len(out)), make([]alias, len(out))
	for i, t := range out {
		bases[i] = e.mayBeWritten(op, t)
		writes[i] = t.Tensor
	}
	all := append(writes[:len(writes):len(writes)], reads...)
	pl := &opPlan{kernel: k}
	o := e.originOf(all)
	if w := e.looks(); w != nil {
		was := healthOf(reads)
		e.launch(pl, &noParams, nil, reads, writes, o)
		w.looked(e, op, "", was, nil, writes)
	} else {
		e.launch(pl, &noParams, nil, reads, writes, o)
	}
	for i, t := range writes {
		t.st.Written()
		t.wrote(bases[i], e)
	}
}

// noGradient is what to do where a kernel of the program's own would have to have one.
const noGradient = "a kernel has no gradient by itself: launch it in the Forward of a tensor.Func, or on x.Detach()"

// mayRead is t as it is now, unless a graph would have to go on through a kernel.
func (e *Env) mayRead(op string, t Own) *Tensor {
	e.admits(op, t)
	c := t.current(op, e)
	if _, recorded := c.edge(e); recorded && t.DType().IsFloat() {
		raise(op, noGradient, "%s, %s, would be recorded", t.Name, t.title())
	}
	return c.quiet()
}

// mayBeWritten refuses a value that carries a graph, or that the kernel cannot write. It returns that of which t is a view.
func (e *Env) mayBeWritten(op string, t Own) alias {
	e.admits(op, t)
	if t.carriesGraph() {
		raise(op, "let it write a new value, of kernel.Empty", "%s, %s, which the kernel writes, carries a graph", t.Name, t.title())
	}
	return t.mayWrite(op, nil, e.NoGrad())
}

// admits refuses a value that was released, or that is on another device.
func (e *Env) admits(op string, t Own) {
	t.alive(op)
	if t.env.dev != e.dev {
		raise(op, twoDevices, "%s is on %s, the launch on %s", t.Name, t.env.dev.name, e.dev.name)
	}
}
