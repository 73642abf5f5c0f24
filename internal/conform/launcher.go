package conform

import (
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/lower"
	"github.com/warpline-ml/warpline/internal/ref"
)

// Launcher is an [ir.Builder] that launches every op on a device: lowerings and gradient rules run on it as they do
// under tensor. Ops without a kernel are lowered.
type Launcher struct {
	dev    device.Device
	queue  device.Queue
	alloc  *device.Allocator
	blocks []*device.Block
}

// NewLauncher returns a launcher with a queue of its own.
func NewLauncher(dev device.Device) (*Launcher, error) {
	q, err := dev.NewQueue()
	if err != nil {
		return nil, err
	}
	return &Launcher{dev: dev, queue: q, alloc: device.NewAllocator(dev, device.Config{})}, nil
}

// Close gives everything back.
func (l *Launcher) Close() error {
	l.Release()
	return errors.Join(l.alloc.EmptyCache(), l.queue.Close())
}

// Release frees all values.
func (l *Launcher) Release() {
	for _, b := range l.blocks {
		l.alloc.Free(b)
	}
	l.blocks = l.blocks[:0]
}

// placed is a value in device memory.
type placed struct {
	t   *ir.Type
	arg device.Arg
}

// Type is the value's type.
func (v *placed) Type() *ir.Type { return v.t }

// failure is what the launcher panics with; Try catches it.
type failure struct{ error }

// Try runs f and returns the error that stopped one of its launches.
func (l *Launcher) Try(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func (l *Launcher) memory(n int64) device.Arg {
	b, err := l.alloc.Alloc(n, 0)
	must(err)
	l.blocks = append(l.blocks, b)
	return device.Arg{Mem: b.Mem()}
}

func (l *Launcher) value(t *ir.Type) *placed {
	return &placed{t, l.memory(int64(t.Span() * t.DType.Size()))}
}

// staged calls f with host memory of n bytes.
func (l *Launcher) staged(n int, f func(b []byte, arg device.Arg)) {
	if n == 0 {
		return
	}
	h, err := hostmem.Alloc(n)
	must(err)
	defer func() { _ = h.Free() }()
	f(hostmem.Bytes(h.Addr, n), device.Arg{Mem: device.Mem{Addr: uint64(h.Addr), Size: int64(n), Host: true}})
}

// Put copies an array to the device.
func (l *Launcher) Put(t *ir.Type, a ref.Array) ir.Value {
	v := l.value(t)
	n := t.Span() * t.DType.Size()
	l.staged(n, func(b []byte, arg device.Arg) {
		ref.Encode(b, t, a)
		must(l.queue.Copy(v.arg, arg, int64(n)))
		must(l.queue.Sync())
	})
	return v
}

// Get copies a value from the device.
func (l *Launcher) Get(v ir.Value) ref.Array {
	p := v.(*placed)
	n := p.t.Span() * p.t.DType.Size()
	var a ref.Array
	if n == 0 {
		return ref.Decode(nil, p.t)
	}
	l.staged(n, func(b []byte, arg device.Arg) {
		must(l.queue.Copy(arg, p.arg, int64(n)))
		must(l.queue.Sync())
		a = ref.Decode(b, p.t)
	})
	return a
}

// Emit implements [ir.Builder].
func (l *Launcher) Emit(code ir.Code, attr ir.Attr, p ir.Params, in ...ir.Value) []ir.Value {
	types := make([]*ir.Type, len(in))
	for i, v := range in {
		if !code.View() && !code.AnyStride() && !v.Type().IsDense() {
			in[i] = l.Emit(ir.Copy, ir.Attr{}, ir.Params{}, v)[0]
		}
		types[i] = in[i].Type()
	}
	op := ir.New(code, attr, types...)
	if code.View() {
		return l.view(&op, in[0].(*placed))
	}
	k, err := l.dev.Prepare(op)
	if rule := lower.Of(code); errors.Is(err, device.ErrUnsupported) && rule != nil {
		return rule(ir.B{Builder: l}, &op, &p, in)
	}
	must(err)
	return l.launch(k, &p, in)
}

func (l *Launcher) view(op *ir.Op, x *placed) []ir.Value {
	out, err := op.Infer()
	must(err)
	arg := x.arg
	arg.Offset += int64(op.ViewOffset() * x.t.DType.Size())
	return []ir.Value{&placed{out[0], arg}}
}

func (l *Launcher) launch(k *device.Kernel, p *ir.Params, in []ir.Value) []ir.Value {
	var out []ir.Value
	var args []device.Arg
	for _, t := range k.Out {
		v := l.value(t)
		out, args = append(out, v), append(args, v.arg)
	}
	for _, v := range in {
		args = append(args, v.(*placed).arg)
	}
	if k.Workspace > 0 {
		args = append(args, l.memory(k.Workspace))
	}
	var params device.Params
	params.Set(p)
	if err := errors.Join(l.queue.Launch(k, args, &params), l.queue.Sync()); err != nil {
		panic(failure{fmt.Errorf("%s: %w", k.Op.Code, err)})
	}
	return out
}
