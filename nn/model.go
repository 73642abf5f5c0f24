package nn

import (
	"iter"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

func isParameter(e entry) bool { return e.role == parameter }

func sequence(entries []entry) iter.Seq2[string, *tensor.Tensor] {
	return func(yield func(string, *tensor.Tensor) bool) {
		for _, e := range entries {
			if !yield(e.path, e.t) {
				return
			}
		}
	}
}

// Params walks the parameters of a model with their paths, each once. It also tells each parameter its path, by which
// profiles and reports of memory name the operations that read it.
func Params(model any) iter.Seq2[string, *tensor.Tensor] {
	list := walk("nn.Params", model).each(isParameter)
	for _, e := range list {
		e.t.SetPath(e.path)
	}
	return sequence(list)
}

// Buffers walks the state without gradients, saved or not, each tensor once.
func Buffers(model any) iter.Seq2[string, *tensor.Tensor] {
	return sequence(walk("nn.Buffers", model).each(func(e entry) bool { return e.role != parameter }))
}

// State walks what a file of the model holds: parameters and buffers that are not transient. A tied tensor comes under
// every name that leads to it, as in PyTorch's state dicts.
func State(model any) iter.Seq2[string, *tensor.Tensor] {
	return sequence(slices.DeleteFunc(walk("nn.State", model).entries, func(e entry) bool { return e.role == transient }))
}

// Freeze makes a model's parameters constants, or lets them learn again. Part of a model is a model too.
func Freeze(model any, frozen bool) {
	for _, p := range Params(model) {
		p.Freeze(frozen)
	}
}

// Init runs f on every parameter, once, to give it another start:
//
//	nn.Init(model, func(path string, p *tensor.Tensor) {
//		p.CopyInPlace(env.Randn(p.Shape()...).Scale(0.02))
//	})
func Init(model any, f func(path string, p *tensor.Tensor)) {
	for path, p := range Params(model) {
		f(path, p)
	}
}

// Count is the number of elements of all parameters; tied ones count once.
func Count(model any) int {
	n := 0
	for _, p := range Params(model) {
		n += p.Size()
	}
	return n
}

// To moves a model's parameters and buffers to env's device, behind the same handles: an optimizer that holds them stays
// right. Gradients are dropped.
func To(env *tensor.Env, model any) {
	for _, e := range walk("nn.To", model).each(func(entry) bool { return true }) {
		if e.t.Env().Device() != env.Device() {
			env.NoGrad().Tidy(func(env *tensor.Env) *tensor.Tensor {
				e.t.Replace(e.t.To(env))
				return nil
			})
		}
	}
}

// Cast converts a model's floating parameters and buffers to another dtype, behind the same handles. Gradients are dropped;
// an optimizer is made after it, since its state has the parameters' dtype. In 16 bits weights and statistics of
// [BatchNorm] and [InstanceNorm] stay as they are: these take 16-bit values, and keep what they learn in float32.
func Cast(model any, dt dtype.DType) {
	if !dt.IsFloat() || dt.Size() < 2 {
		tensor.Raise("nn.Cast", "give a floating dtype that computes", "dtype %s", dt)
	}
	w := walk("nn.Cast", model)
	stay := map[*tensor.Tensor]bool{}
	if dt.Size() == 2 {
		for m := range w.modules {
			switch m.(type) {
			case *BatchNorm, *InstanceNorm:
				for _, e := range walk("nn.Cast", m).entries {
					stay[e.t] = true
				}
			}
		}
	}
	for _, e := range w.each(func(e entry) bool { return e.t.DType().IsFloat() && e.t.DType() != dt && !stay[e.t] }) {
		e.t.Env().NoGrad().Tidy(func(env *tensor.Env) *tensor.Tensor {
			e.t.Replace(e.t.In(env).Cast(dt))
			return nil
		})
	}
}

// DeviceOf is the device that all tensors of a model are on. It is an error when they are on several, or there are none.
func DeviceOf(model any) (*tensor.Device, error) {
	entries := walk("nn.DeviceOf", model).entries
	if len(entries) == 0 {
		return nil, &tensor.Error{Op: "nn.DeviceOf", Text: "the model has no parameters and no buffers", Hint: "use the env that its input is made in"}
	}
	d := entries[0].t.Env().Device()
	return d, offenders("nn.DeviceOf", d.Name(), same(d), located("", entries))
}

// Preflight checks before a long run that all tensors of model and batch (structs, maps, slices; nil for none) are on
// env's device. The error names each one that is not, by its path and device.
func Preflight(env *tensor.Env, model, batch any) error {
	all := located("model", walk("nn.Preflight", model).entries)
	all = append(all, located("batch", run("nn.Preflight", batch, true).entries)...)
	return offenders("nn.Preflight", env.Device().Name(), same(env.Device()), all)
}

// PreflightFor is [Preflight] for a device that need not be here: a name as [tensor.Open] takes it, "cuda" being "cuda:0", or that of a
// card, "h100-80" being "null:h100-80". A name that means nothing is an error too, with the nearest that does.
func PreflightFor(name string, model, batch any) error {
	if _, ok := cards.Find(name); ok {
		name = "null:" + name
	}
	n, err := device.ParseName(name)
	if err != nil {
		return &tensor.Error{Op: "nn.PreflightFor", Text: err.Error(), Hint: advice.Meant(name, device.Known()) + "give cpu, cuda:N, sim:CARD, null:CARD or CARD"}
	}
	all := located("model", walk("nn.PreflightFor", model).entries)
	all = append(all, located("batch", run("nn.PreflightFor", batch, true).entries)...)
	return offenders("nn.PreflightFor", n.String(), func(d *tensor.Device) bool { return d.Name() == n.String() }, all)
}

// located puts a word before every path.
func located(word string, entries []entry) []entry {
	out := slices.Clone(entries)
	for i := range out {
		out[i].path = join(word, out[i].path)
	}
	return out
}

// same tells whether a device is d.
func same(d *tensor.Device) func(*tensor.Device) bool {
	return func(other *tensor.Device) bool { return other == d }
}

// offenders is an error with the entries whose device is not the one that is meant, which has a name.
func offenders(op, want string, meant func(*tensor.Device) bool, entries []entry) error {
	var list []string
	for _, e := range entries {
		if d := e.t.Env().Device(); !meant(d) {
			list = append(list, e.path+" on "+d.Name())
		}
	}
	if len(list) == 0 {
		return nil
	}
	return &tensor.Error{Op: op, Text: "not on " + want + ": " + strings.Join(list, ", "), Hint: "nn.To(env, model) moves a model, x.To(env) a value"}
}
