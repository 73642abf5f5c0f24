package gpusim

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// Program is a module on a device: its variables have addresses, its kernels compile on first use.
type Program struct {
	dev     *Device
	module  *ptx.Module
	globals map[*ptx.Var]place
	allocs  map[*ptx.Var]*allocation
	bytes   int64             // of variables
	sizes   map[*ptx.Func]int // see inlinedSize
	kernels map[string]*Kernel
	order   []string
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
	MaxBlock  int    // threads, by .maxntid or .reqntid; the card's bound without

	prog *Program
	fn   *ptx.Func
	mu   sync.Mutex
	code map[variant]*code
}

// Rejected is what the assembler of a card would refuse in a module, in source order.
type Rejected []*ptx.Error

func (r Rejected) Error() string { return "gpusim: " + InvalidPTX.String() + ": " + r[0].Error() }

// Load checks a whole module and gives its variables memory on the device. What the assembler of a card would refuse
// (Rejected) and what the simulator does not support is an error here, with the instruction and its line, and never later.
// Kernels compile on first use.
func (d *Device) Load(m *ptx.Module) (*Program, error) {
	if bad := ptx.Check(m); len(bad) > 0 {
		return nil, Rejected(bad)
	}
	return d.load(m)
}

// load is Load without the assembler's view.
func (d *Device) load(m *ptx.Module) (*Program, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault != nil {
		return nil, d.fault
	}
	if m.Target.SM > d.Card.Compute[0]*10+d.Card.Compute[1] {
		return nil, refuse(InvalidPTX, "a module for %s on a card of compute capability %d.%d", m.Target, d.Card.Compute[0], d.Card.Compute[1])
	}
	if m.AddressSize == 32 {
		return nil, refuse(InvalidPTX, "a module with addresses of 32 bits, which .address_size 64 avoids")
	}
	p := &Program{dev: d, module: m, globals: map[*ptx.Var]place{}, allocs: map[*ptx.Var]*allocation{}, sizes: map[*ptx.Func]int{},
		kernels: map[string]*Kernel{}}
	if err := p.build(); err != nil {
		return nil, errors.Join(err, p.free("a failed Load"))
	}
	return p, nil
}

func (p *Program) build() error {
	if err := p.placeGlobals(); err != nil {
		return err
	}
	for _, entry := range []bool{true, false} { // kernels first: their names say more
		for fn := range p.module.Funcs() {
			if fn.Entry == entry {
				if err := p.checkSize(fn); err != nil {
					return err
				}
			}
		}
	}
	for fn := range p.module.Funcs() {
		if fn.Body == nil {
			continue
		}
		if err := p.addFunc(fn); err != nil {
			return err
		}
	}
	return nil
}

// What hardware has for a thread's local memory and a block's static shared memory.
const (
	maxLocal  = 512 << 10
	maxStatic = 48 << 10
)

// addFunc checks a function by compiling it without keeping the result, and lists it if it is a kernel.
func (p *Program) addFunc(fn *ptx.Func) error {
	f, err := flatten(p, fn)
	if err != nil {
		return err
	}
	if f.locals > maxLocal || f.shared > maxStatic {
		return &unsupported{fn.Pos, "function " + fn.Name, "more than 512 KiB of local memory or 48 KiB of static shared memory"}
	}
	if _, err := scan(f); err != nil {
		return err
	}
	if !fn.Entry {
		return nil
	}
	k := &Kernel{Name: fn.Name, Params: int(f.params), Shared: int(f.shared), dynamic: int(f.dynamicStart()), Local: int(f.locals), prog: p, fn: fn,
		MaxBlock: p.dev.Card.ThreadsPerBlock, code: map[variant]*code{}}
	offsets, _ := ptx.Layout(fn.Params)
	for i, v := range fn.Params {
		k.Offsets = append(k.Offsets, int(offsets[i]))
		k.Sizes = append(k.Sizes, int(v.Size()))
	}
	for _, name := range []string{"maxntid", "reqntid"} {
		if args, ok := fn.Directive(name); ok {
			n, dims := 1, [3]int{1, 1, 1}
			for i, a := range args {
				n *= int(a)
				dims[i%3] = int(a)
			}
			k.MaxBlock = min(k.MaxBlock, n)
			if name == "reqntid" {
				k.Required = dims
			}
		}
	}
	p.kernels[fn.Name] = k
	p.order = append(p.order, fn.Name)
	return nil
}

// Kernel finds a kernel by name, nil if there is none. Its Registers are known from then on.
func (p *Program) Kernel(name string) *Kernel {
	k := p.kernels[name]
	if k == nil {
		return nil
	}
	p.dev.mu.Lock()
	defer p.dev.mu.Unlock()
	if k.Registers == 0 {
		if c, err := k.compiled((&Options{}).variant(p.dev.track)); err == nil { // the one that a launch is likely to want
			k.Registers = c.pressure
		}
	}
	return k
}

// Kernels lists the kernels in source order.
func (p *Program) Kernels() []string { return p.order }

func (p *Program) free(by string) error {
	var err error
	for _, a := range p.allocs {
		if a.data != nil {
			err = errors.Join(err, p.dev.release(a, by))
		}
	}
	return err
}

func (p *Program) placeGlobals() error {
	var todo []*ptx.Var
	for v := range p.module.Vars() {
		switch v.Space {
		case ptx.Global, ptx.ConstSpace:
			if err := p.placeGlobal(v); err != nil {
				return err
			}
			todo = append(todo, v)
		case ptx.Shared:
		default:
			return &unsupported{v.Pos, "." + v.Space.String() + " " + v.Name, "variables of this space in a module"}
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
		return &unsupported{v.Pos, "." + v.Type.String() + " " + v.Name, "textures, samplers and surfaces"}
	}
	size := v.Size()
	if v.Linkage == ptx.Extern || size == 0 || v.Count > 0 {
		return &unsupported{v.Pos, "variable " + v.Name, "external, without a size, or a family of names"}
	}
	if size > p.dev.Card.Memory-p.dev.used {
		return refuse(OutOfMemory, "variable %s of %d bytes", v.Name, size)
	}
	if p.bytes += size; p.bytes > maxVariables {
		return refuse(OutOfMemory, "the module's variables up to %s, in line %d, have %d bytes; the simulator keeps at most %d", v.Name, v.Pos.Line, p.bytes, maxVariables)
	}
	a, err := p.dev.reserve(int(size), "module variable "+v.Name)
	if err != nil {
		return err
	}
	a.readOnly = true // it cannot be freed alone
	a.constant = v.Space == ptx.ConstSpace
	p.globals[v] = place{space: v.Space, off: int64(a.lo)}
	p.allocs[v] = a
	return nil
}

func (p *Program) initialise(v *ptx.Var) error {
	if v.Init == nil {
		return nil
	}
	data := p.allocs[v].data
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
			return &unsupported{init.Pos, "initialiser of " + v.Name, "more values than elements"}
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
		bits = immBits(x, v.Type)
	case *ptx.Sym:
		at, ok := p.globals[x.Var]
		if !ok {
			return &unsupported{init.Pos, "initialiser of " + v.Name, p.noAddress(x.Name)}
		}
		bits = uint64(at.off + x.Off)
		if init.Mask != 0 {
			for m := init.Mask; m&1 == 0; m >>= 1 {
				bits >>= 1
			}
		}
	default:
		return &unsupported{init.Pos, "initialiser of " + v.Name, "this value"}
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	copy(data, b[:min(v.Type.Size(), len(data))])
	return nil
}

// instead is what to do where a function is called by its address.
const instead = "a switch over what may be called does without"

// noAddress says that a symbol has no address here.
func (p *Program) noAddress(name string) string {
	if p.module.Callee(name) == nil {
		return "the address of " + name
	}
	return "the address of " + name + ", a function, as pointers and virtual functions take it; " + instead
}

// immBits is an immediate as the bits of a type: floats are converted, integers kept.
func immBits(x *ptx.Imm, t ptx.Type) uint64 {
	isFloat := x.Kind == ptx.ImmF32 || x.Kind == ptx.ImmF64
	switch {
	case x.Kind == ptx.ImmF32 && t.Bits() == 32, !isFloat && t.Kind() != ptx.KindFloat:
		return x.Bits
	case t == ptx.F64:
		return math.Float64bits(x.Float())
	case t == ptx.F32:
		return uint64(math.Float32bits(float32(x.Float())))
	case isFloat && formatOf(t) != nil && !packed(t):
		return formatOf(t).round(x.Float(), rn)
	}
	return x.Bits
}
