// Package kernel runs GPU kernels of the program's own, from PTX, among the operations of package tensor.
//
//	m, err := kernel.Load(env, ptx)
//	swish := m.Kernel("swish")
//	y := kernel.Empty(env, dtype.F32, n)
//	swish.Launch(env, kernel.Cover(n, 256), x, y, n)
//
// A launch is work of the env's queue like any other: in order with it, seen by profilers and by what observes the device,
// recorded by [tensor.Capture], and checked on simulated GPUs. [tensor.Func] gives it a gradient, and [Test] compares it with a
// function in Go, under all checks. docs/kernels.md goes from a .cu file to a differentiable operation.
package kernel

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/tensor"
)

// Module is a module of PTX on a device, with its kernels. It is there as long as the device. It may be used by several
// goroutines at once.
type Module struct {
	dev *tensor.Device
	ptx *ptx.Module
	own device.Module

	mu      sync.Mutex
	kernels map[string]*Kernel
}

// Load compiles a module of PTX for env's device, as clang -S, nvcc --ptx and Triton write it. The error says where the PTX is
// wrong, that the device's compute capability is too low for it, what the driver's compiler says, or that the device runs no
// kernels.
func Load(env *tensor.Env, source []byte) (*Module, error) {
	d := env.Device()
	loader, ok := d.Loader()
	if !ok {
		return nil, refused("open cuda:0, or sim:0, which simulates a GPU; where a program is to run on both, ask env.Device() which it is",
			"%s runs no kernels of GPUs", d.Name())
	}
	m, err := ptx.Parse(string(source))
	if err != nil {
		return nil, refused("PTX is what clang -S, nvcc --ptx or Triton's asm[\"ptx\"] give for a kernel", "%v", err)
	}
	names := entries(m)
	if len(names) == 0 {
		return nil, refused("compile a function that is marked __global__", "the module has no kernel")
	}
	if err := fits(d, m.Target); err != nil {
		return nil, err
	}
	own, err := loader.Load(strings.Join(names, ", "), source)
	if err != nil {
		return nil, &tensor.Error{Op: "kernel.Load", Text: d.Name() + ": " + err.Error(), Err: err}
	}
	return &Module{dev: d, ptx: m, own: own, kernels: map[string]*Kernel{}}, nil
}

func refused(hint, format string, args ...any) error {
	return &tensor.Error{Op: "kernel.Load", Text: fmt.Sprintf(format, args...), Hint: hint}
}

// fits is an error where a device is older than what a module is compiled for.
func fits(d *tensor.Device, t ptx.Target) error {
	p := d.Properties()
	if has := 10*p.Compute[0] + p.Compute[1]; t.SM > has {
		return refused(fmt.Sprintf("compile it for sm_%d, as clang does with --cuda-gpu-arch=sm_%d, or take a later card", has, has),
			"the module is for %v and later, and %s has compute capability %d.%d", t, d.Name(), p.Compute[0], p.Compute[1])
	}
	return nil
}

// entries are the names of a module's kernels.
func entries(m *ptx.Module) (names []string) {
	for f := range m.Funcs() {
		if f.Entry && f.Body != nil {
			names = append(names, f.Name)
		}
	}
	return names
}

// Kernels are the names of the module's kernels, as the file has them.
func (m *Module) Kernels() []string { return entries(m.ptx) }

// Kernel finds a kernel by its name in the file, or in C++ where that is mangled there: "swish" is _Z5swishPKfPfi too. It panics
// with a [tensor.Error] if there is none, or if there are several.
func (m *Module) Kernel(name string) *Kernel {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kernels[name]; k != nil {
		return k
	}
	list := m.ptx.Named(name)
	switch {
	case len(list) == 0:
		tensor.Raise("Kernel", "it has "+strings.Join(m.Kernels(), ", "), "the module has no kernel %q", name)
	case len(list) > 1:
		var names []string
		for _, f := range list {
			names = append(names, f.Name)
		}
		tensor.Raise("Kernel", "take one by its name in the file: "+strings.Join(names, ", "), "the module has %d kernels of the name %s", len(list), name)
	}
	k := newKernel(m, name, list[0])
	m.kernels[name] = k
	return k
}

// Kernel is a kernel of a module. It may be used by several goroutines at once.
type Kernel struct {
	m      *Module
	name   string // as the program calls it
	f      *ptx.Func
	params []param
	writes []origins

	mu       sync.Mutex
	prepared map[string]*device.Kernel // launches that were made, by what does not change from one to the next
}

// maxPrepared is how many launches of a kernel are kept ready.
const maxPrepared = 256

func newKernel(m *Module, name string, f *ptx.Func) *Kernel {
	return &Kernel{m: m, name: name, f: f, params: parameters(f), writes: writesOf(m.ptx, f), prepared: map[string]*device.Kernel{}}
}

// String is the kernel with what it takes: "swish(0 const float*, 1 float*, 2 .u32)".
func (k *Kernel) String() string {
	words := make([]string, len(k.params))
	for i := range k.params {
		words[i] = fmt.Sprintf("%d %s", i, k.params[i].title())
	}
	return k.name + "(" + strings.Join(words, ", ") + ")"
}

// Grid is how many blocks of how many threads a launch has. Dimensions that are 0 count as 1.
type Grid struct {
	Blocks  [3]int // x, y, z
	Threads [3]int // of a block
	Shared  int    // bytes of dynamic shared memory, of a block
	Cluster [3]int // blocks that share a cluster, on compute capability 9.0 and later; all 0: there are none
}

// Cover is a grid of one dimension with a thread for each of n items, and one block where there are none: a kernel compares its
// number with n.
func Cover(n, threads int) Grid {
	if threads < 1 {
		tensor.Raise("Cover", "a block has 1 to 1024 threads, best a multiple of 32", "blocks of %d threads", threads)
	}
	return Grid{Blocks: [3]int{max((n+threads-1)/threads, 1)}, Threads: [3]int{threads}}
}

// full has 1 in the place of 0.
func full(d [3]int) [3]int {
	for i := range d {
		d[i] = max(d[i], 1)
	}
	return d
}

// Empty makes a value for a kernel to write. Until then its memory holds anything: on a simulated GPU that checks, reading it is
// a finding.
func Empty(env *tensor.Env, dt dtype.DType, shape ...int) *tensor.Tensor {
	if err := ir.CheckShape(shape); err != nil {
		tensor.Raise("Empty", "check the sizes", "%v", err)
	}
	if !dt.Valid() {
		tensor.Raise("Empty", "take one of package dtype", "no dtype is given")
	}
	return env.Unwritten(ir.Dense(dt, shape...))
}

// Launch asks env's queue to run the kernel. The arguments are the kernel's parameters in order: a [*tensor.Tensor] for a pointer
// (its first element's address), nil for a null pointer, a Go number for a number, bytes or a struct of fixed size for a struct.
// Each is compared with its parameter: size and kind of numbers, where the C++ name tells it the element type of a tensor, and
// that elements lie in a row; [Strided] lets others pass.
//
// What the kernel writes is read from its PTX, and counts as an operation in place: gradients that would need the old value are
// errors. Where the PTX does not tell, as of a kernel that takes pointers from memory, [Out] does.
//
// It panics with a [tensor.Error], as operations do. What happens on the device shows when the host next waits for it.
func (k *Kernel) Launch(env *tensor.Env, g Grid, args ...any) {
	if env.Device() != k.m.dev {
		tensor.Raise(k.op(), "load the module for each device", "the module is on %s, the launch on %s", k.m.dev.Name(), env.Device().Name())
	}
	l, out, in := k.bind(g, args)
	env.LaunchOwn(k.ready(l), out, in)
}

func (k *Kernel) op() string { return "kernel " + k.name }

// ready is a launch that the device can make: one that differs in its tensors only was made ready before.
func (k *Kernel) ready(l *device.Own) *device.Kernel {
	key := keyOf(l)
	k.mu.Lock()
	defer k.mu.Unlock()
	if d := k.prepared[string(key)]; d != nil {
		return d
	}
	d, err := k.m.own.Prepare(l)
	if err != nil {
		tensor.Raise(k.op(), "", "%v", err)
	}
	if len(k.prepared) >= maxPrepared {
		clear(k.prepared)
	}
	k.prepared[string(key)] = d
	return d
}

// keyOf is the bytes of all of a launch, whose parts of any length follow their lengths.
func keyOf(l *device.Own) []byte {
	key := make([]byte, 0, 256)
	number := func(n int) { key = binary.LittleEndian.AppendUint64(key, uint64(n)) }
	for i := range 3 {
		number(l.Grid[i])
		number(l.Block[i])
		number(l.Cluster[i])
	}
	number(l.Shared)
	number(l.Written)
	number(len(l.Places))
	for _, p := range l.Places {
		number(p.At)
		number(p.Arg)
	}
	for _, n := range l.Need { // as many as places
		number(int(n))
	}
	return append(key, l.Params...)
}

// bind lays the arguments out as the kernel has its parameters.
func (k *Kernel) bind(g Grid, args []any) (l *device.Own, out, in []tensor.Own) {
	l = &device.Own{Kernel: k.f.Name, Name: k.name, Grid: full(g.Blocks), Block: full(g.Threads), Cluster: g.Cluster, Shared: g.Shared}
	k.sized(g)
	if len(k.params) > maxOrigins {
		tensor.Raise(k.op(), "put numbers together in a struct", "it has %d parameters, more than the %d that a launch can have", len(k.params), maxOrigins)
	}
	if len(args) != len(k.params) {
		tensor.Raise(k.op(), "it takes "+k.String(), "%d arguments for %d parameters", len(args), len(k.params))
	}
	offsets, size := ptx.Layout(k.f.Params)
	l.Params = make([]byte, size)
	b := &binding{k: k}
	for i, a := range args {
		b.argument(i, a, l.Params[offsets[i]:][:k.f.Params[i].Size()])
	}
	written := b.written()
	for i, t := range b.tensors {
		if t.Tensor != nil && written>>i&1 == 1 {
			out = append(out, t)
			l.Places = append(l.Places, device.Place{At: int(offsets[i]), Arg: len(l.Need)})
			l.Need = append(l.Need, span(t))
		}
	}
	l.Written = len(l.Need)
	for i, t := range b.tensors {
		if t.Tensor != nil && written>>i&1 == 0 {
			in = append(in, t)
			l.Places = append(l.Places, device.Place{At: int(offsets[i]), Arg: len(l.Need)})
			l.Need = append(l.Need, span(t))
		}
	}
	return l, out, in
}

// sized refuses what no card has.
func (k *Kernel) sized(g Grid) {
	threads := full(g.Threads)
	if slices.Min(slices.Concat(g.Blocks[:], g.Threads[:], g.Cluster[:], []int{g.Shared})) < 0 {
		tensor.Raise(k.op(), "dimensions are positive, and 0 counts as 1", "%+v", g)
	}
	if b := full(g.Blocks); b[0] > 1<<31-1 || b[1] > 1<<16-1 || b[2] > 1<<16-1 {
		tensor.Raise(k.op(), "let each thread do more", "%v blocks, more than the 2147483647, 65535 and 65535 that a grid may have", b)
	}
	if n := threads[0] * threads[1] * threads[2]; max(threads[0], threads[1], threads[2], n) > 1024 {
		tensor.Raise(k.op(), "use more blocks", "blocks of %v threads, more than the 1024 in all that a block may have", threads)
	}
	if want := k.required(); want != [3]int{} && want != threads {
		tensor.Raise(k.op(), "launch it with those", "blocks of %v threads; the kernel was compiled for %v and no others", threads, want)
	}
}

// required is the block that the kernel was compiled for; zero for any.
func (k *Kernel) required() (d [3]int) {
	args, ok := k.f.Directive("reqntid")
	if !ok {
		return d
	}
	for i, n := range args {
		d[i] = int(n)
	}
	return full(d)
}
