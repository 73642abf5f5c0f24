package gpusim

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/compile"
	"github.com/warpline-ml/warpline/internal/gpusim/flow"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Program is a module on a device: its variables have addresses, its kernels compile on first use.
type Program struct {
	dev    *Device
	source *Source
	*flow.Module
	allocs  map[*ptx.Var]*memory.Allocation
	bytes   int64 // of variables
	kernels map[string]*Kernel
	order   []string
	unknown map[ptx.Pos]*ptx.Error // instructions of a later PTX version
}

// Kernel is a kernel of a Program.
type Kernel struct {
	Name      string
	Params    int // bytes
	Offsets   []int
	Sizes     []int
	Shared    int    // bytes of static shared memory
	dynamic   int    // where dynamic shared memory starts
	Local     int    // bytes of local memory of a thread
	Registers int    // of 32 bits per thread, estimated from liveness; ptxas may need more or fewer
	Required  [3]int // .reqntid; zero without
	Cluster   [3]int // .reqnctapercluster; zero without
	Triggers  bool   // has griddepcontrol.launch_dependents
	MaxBlock  int    // threads, by .maxntid or .reqntid; the card's bound without

	prog     *Program
	explicit bool // .explicitcluster
	fn       *ptx.Func
	refused  error
	mu       sync.Mutex
	code     map[compile.Variant]*warp.Code
	pools    map[*warp.Code]*warp.Pool
	works    map[*warp.Code][]blockWork
}

// Rejected is what the assembler of a card would refuse in a module, in source order.
type Rejected []*ptx.Error

// Error is the first of them.
func (r Rejected) Error() string { return "gpusim: " + InvalidPTX.String() + ": " + r[0].Error() }

// Load checks a whole module and gives its variables memory on the device. What the assembler of a card would refuse
// (Rejected), and a variable that the simulator does not support, is an error here. A kernel that is not supported is refused
// for itself (Kernel.Refused) with the instruction and its line; Load fails with the first one's error if there is no other
// kernel. Kernels compile on first use.
func (d *Device) Load(m *ptx.Module) (*Program, error) { return d.LoadSource(NewSource(m)) }

// LoadSource is Load of a module that other devices may load too.
func (d *Device) LoadSource(s *Source) (*Program, error) {
	var bad Rejected
	unknown := map[ptx.Pos]*ptx.Error{}
	for _, e := range ptx.Check(s.Module) {
		if e.Newer {
			unknown[e.Pos] = e
		} else {
			bad = append(bad, e)
		}
	}
	if bad != nil {
		return nil, bad
	}
	return d.load(s, unknown)
}

// load is Load without the assembler's view, but for the instructions that it does not know.
func (d *Device) load(s *Source, unknown map[ptx.Pos]*ptx.Error) (*Program, error) {
	m := s.Module
	d.Lock()
	defer d.Unlock()
	if err := d.Failed(); err != nil {
		return nil, err
	}
	if m.Target.SM > d.Card.Compute[0]*10+d.Card.Compute[1] {
		return nil, memory.Refuse(InvalidPTX, "a module for %s on a card of compute capability %d.%d", m.Target, d.Card.Compute[0], d.Card.Compute[1])
	}
	if m.Target.Suffix == 'a' && m.Target.SM != d.Card.Compute[0]*10+d.Card.Compute[1] {
		return nil, memory.Refuse(InvalidPTX, "a module for %s, which runs on no other architecture, on a card of compute capability %d.%d", m.Target, d.Card.Compute[0], d.Card.Compute[1])
	}
	if m.AddressSize == 32 {
		return nil, memory.Refuse(InvalidPTX, "a module with addresses of 32 bits, which .address_size 64 avoids")
	}
	p := &Program{dev: d, source: s, unknown: unknown, allocs: map[*ptx.Var]*memory.Allocation{}, kernels: map[string]*Kernel{}}
	p.Module = flow.NewModule(m, func(v *ptx.Var) error {
		if err := p.placeGlobal(v); err != nil {
			return err
		}
		return p.initialise(v)
	})
	if err := p.build(); err != nil {
		return nil, errors.Join(err, p.free("a failed Load"))
	}
	return p, nil
}

func (p *Program) build() error {
	if err := p.placeGlobals(); err != nil {
		return err
	}
	var first error
	for fn := range p.Ptx.Funcs() {
		if fn.Body == nil || !fn.Entry {
			continue
		}
		k := p.addKernel(fn)
		if first == nil {
			first = k.refused
		}
	}
	for _, k := range p.kernels {
		if k.refused == nil {
			return nil
		}
	}
	return first
}

// What hardware has for a thread's local memory and a block's static shared memory.
const (
	maxLocal  = 512 << 10
	maxStatic = 48 << 10
)

// supported compiles a kernel without keeping the result.
func (p *Program) supported(fn *ptx.Func) (*flow.Flat, error) {
	if err := p.CheckSize(fn); err != nil {
		return nil, err
	}
	f, err := flow.Flatten(p.Module, fn, false)
	if err != nil {
		return nil, err
	}
	if f.Locals > maxLocal || f.Shared > maxStatic {
		return nil, &simt.Unsupported{Pos: fn.Pos, Inst: "kernel " + fn.Name, Why: "more than 512 KiB of local memory or 48 KiB of static shared memory"}
	}
	for i := range f.Code {
		if e := p.unknown[f.Code[i].Pos]; e != nil {
			return nil, Rejected{e}
		}
	}
	_, err = compile.Scan(f)
	return f, err
}

// addKernel lists a kernel, with what is not supported of it.
func (p *Program) addKernel(fn *ptx.Func) *Kernel {
	k := &Kernel{Name: fn.Name, prog: p, fn: fn, MaxBlock: cards.ThreadsPerBlock, code: map[compile.Variant]*warp.Code{},
		pools: map[*warp.Code]*warp.Pool{}, works: map[*warp.Code][]blockWork{}}
	p.kernels[fn.Name] = k
	p.order = append(p.order, fn.Name)
	f, err := p.supported(fn)
	if k.refused = err; err != nil {
		return k
	}
	k.Params, k.Shared, k.dynamic, k.Local = int(f.Params), int(f.Shared), int(f.DynamicStart()), int(f.Locals)
	offsets, _ := ptx.Layout(fn.Params)
	for i, v := range fn.Params {
		k.Offsets = append(k.Offsets, int(offsets[i]))
		k.Sizes = append(k.Sizes, int(v.Size()))
	}
	for i := range f.Code {
		k.Triggers = k.Triggers || f.Code[i].Has("launch_dependents")
	}
	if args, ok := fn.Directive("reqnctapercluster"); ok {
		_, k.Cluster = volume(args)
	}
	_, k.explicit = fn.Directive("explicitcluster")
	for _, name := range []string{"maxntid", "reqntid"} {
		if args, ok := fn.Directive(name); ok {
			n, dims := volume(args)
			k.MaxBlock = min(k.MaxBlock, n)
			if name == "reqntid" {
				k.Required = dims
			}
		}
	}
	return k
}

// volume is the dimensions of a directive, 1 where it has none, and their product.
func volume(args []int64) (n int, dims [3]int) {
	n, dims = 1, [3]int{1, 1, 1}
	for i, a := range args {
		n *= int(a)
		dims[i%3] = int(a)
	}
	return n, dims
}

// Refused is why the kernel cannot be launched, nil if it can: something that the simulator does not have, as an error with
// the instruction and its line, or Rejected for an instruction of a later PTX version than is known.
func (k *Kernel) Refused() error { return k.refused }

// Kernel finds a kernel by name, nil if there is none. Its Registers are known from then on.
func (p *Program) Kernel(name string) *Kernel {
	k := p.kernels[name]
	if k == nil {
		return nil
	}
	p.dev.Lock()
	defer p.dev.Unlock()
	if k.Registers == 0 && k.refused == nil {
		if c, err := k.compiled((&Options{}).variant(p.dev.Track)); err == nil { // the one that a launch is likely to want
			k.Registers = c.Pressure
		}
	}
	return k
}

// compiled returns the code of a variant, compiling it on first use.
func (k *Kernel) compiled(v compile.Variant) (*warp.Code, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.code[v]; c != nil {
		return c, nil
	}
	c, err := k.prog.compile(k.fn, v)
	if err == nil {
		k.code[v] = c
	}
	return c, err
}

// pool is what launches of a code have left on the device.
func (k *Kernel) pool(c *warp.Code) *warp.Pool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pools[c] == nil {
		k.pools[c] = &warp.Pool{}
	}
	return k.pools[c]
}

// compile is the code of a kernel, which devices share unless the module has variables, whose addresses would be in it.
func (p *Program) compile(fn *ptx.Func, v compile.Variant) (*warp.Code, error) {
	if len(p.Globals) > 0 {
		return compile.Kernel(p.Module, fn, v)
	}
	return p.source.compiled(fn, v)
}

// Kernels lists the kernels in source order.
func (p *Program) Kernels() []string { return p.order }

func (p *Program) free(by string) error {
	var err error
	for _, a := range p.allocs {
		if a.Data != nil {
			err = errors.Join(err, p.dev.Release(a, by))
		}
	}
	return err
}

func (p *Program) placeGlobals() error {
	var todo []*ptx.Var
	for v := range p.Ptx.Vars() {
		switch v.Space {
		case ptx.Global, ptx.ConstSpace:
			if err := p.placeGlobal(v); err != nil {
				return err
			}
			todo = append(todo, v)
		case ptx.Shared:
		default:
			return &simt.Unsupported{Pos: v.Pos, Inst: "." + v.Space.String() + " " + v.Name, Why: "variables of this space in a module"}
		}
	}
	for _, v := range todo {
		if err := p.initialise(v); err != nil {
			return err
		}
	}
	return nil
}

// maxVariables bounds the bytes of a module's variables, which the simulator keeps in the memory of the host.
const maxVariables = 1 << 30

// placeGlobal gives a variable zeroed memory.
func (p *Program) placeGlobal(v *ptx.Var) error {
	if k := v.Type.Kind(); k != ptx.KindInt && k != ptx.KindUint && k != ptx.KindFloat && k != ptx.KindBits {
		return &simt.Unsupported{Pos: v.Pos, Inst: "." + v.Type.String() + " " + v.Name, Why: "textures, samplers and surfaces"}
	}
	size := v.Size()
	if v.Linkage == ptx.Extern || size == 0 || v.Count > 0 {
		return &simt.Unsupported{Pos: v.Pos, Inst: "variable " + v.Name, Why: "external, without a size, or a family of names"}
	}
	if size > p.dev.Left() {
		return memory.Refuse(OutOfMemory, "variable %s of %d bytes", v.Name, size)
	}
	if p.bytes += size; p.bytes > maxVariables {
		return memory.Refuse(OutOfMemory, "the module's variables up to %s, in line %d, have %d bytes; the simulator keeps at most %d", v.Name, v.Pos.Line, p.bytes, maxVariables)
	}
	a, err := p.dev.Reserve(int(size), "module variable "+v.Name)
	if err != nil {
		return err
	}
	a.ReadOnly = true // it cannot be freed alone
	a.Constant = v.Space == ptx.ConstSpace
	p.Globals[v] = flow.Home{Space: v.Space, Off: int64(a.Lo)}
	p.allocs[v] = a
	return nil
}

func (p *Program) initialise(v *ptx.Var) error {
	if v.Init == nil {
		return nil
	}
	data := p.allocs[v].Data
	return p.fill(data, v, v.Init, v.Dims)
}

// fill writes an initialiser: nested lists follow the dimensions, a short one leaves zeros.
func (p *Program) fill(data []byte, v *ptx.Var, init *ptx.Init, dims []int64) error {
	if init.List == nil && init.Value != nil {
		return p.fillValue(data, v, init)
	}
	stride := int64(len(data))
	if len(dims) > 0 {
		stride = v.Elem()
		for _, d := range dims[1:] {
			stride *= d
		}
	} else if v.Vec > 0 {
		stride = int64(v.Type.Size())
	}
	if stride <= 0 {
		return nil
	}
	for i, e := range init.List {
		at := int64(i) * stride
		if at+stride > int64(len(data)) {
			return &simt.Unsupported{Pos: init.Pos, Inst: "initialiser of " + v.Name, Why: "more values than elements"}
		}
		if err := p.fill(data[at:at+stride], v, e, dims[min(1, len(dims)):]); err != nil {
			return err
		}
	}
	return nil
}

func (p *Program) fillValue(data []byte, v *ptx.Var, init *ptx.Init) error {
	var bits uint64
	switch x := init.Value.(type) {
	case *ptx.Imm:
		bits = arith.ImmBits(x, v.Type)
	case *ptx.Sym:
		at, ok := p.Globals[x.Var]
		if !ok {
			return &simt.Unsupported{Pos: init.Pos, Inst: "initialiser of " + v.Name, Why: p.NoAddress(x.Name)}
		}
		bits = uint64(at.Off + x.Off)
		if init.Mask != 0 {
			for m := init.Mask; m&1 == 0; m >>= 1 {
				bits >>= 1
			}
		}
	default:
		return &simt.Unsupported{Pos: init.Pos, Inst: "initialiser of " + v.Name, Why: "this value"}
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	copy(data, b[:min(v.Type.Size(), len(data))])
	return nil
}

// Unload frees the module's variables. Its kernels must not be launched again.
func (p *Program) Unload(tag string) error {
	p.dev.Lock()
	defer p.dev.Unlock()
	return p.free(tag)
}

// Global finds a variable of the module by name.
func (p *Program) Global(name string) (addr uint64, bytes int, ok bool) {
	for v := range p.Ptx.Vars() {
		if a := p.allocs[v]; a != nil && v.Name == name {
			return a.Lo, int(a.Hi - a.Lo), true
		}
	}
	return 0, 0, false
}
