package cuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/numbers"
)

// plan is an op made ready: what a queue does for one launch of it, in order. It is data: a launch copies the parameter
// bytes of each step and writes addresses and scalars into the copy.
type plan struct {
	steps  []step
	need   []int64 // bytes that a launch touches of each argument: outputs, inputs, scratch memory
	faults bool    // a kernel may report an index out of range
	fixed  uint16  // launch parameters that a kernel takes by value only: bit i for parameter i
}

// step is a kernel, or a fill of memory with zeros when fn is nil.
type step struct {
	fn      *function
	shape   driver.LaunchConfig
	params  []byte
	patches []patch
	to      ref // of a fill
	bytes   int64
}

// describe is what the plan does, for those who count or watch it.
func (p *plan) describe() []device.Step {
	steps := make([]device.Step, len(p.steps))
	for i := range p.steps {
		s := &p.steps[i]
		if s.fn == nil {
			steps[i] = device.Step{Fill: s.bytes}
			continue
		}
		steps[i] = device.Step{Name: s.fn.kernel.Name, Grid: ints(s.shape.Grid), Block: ints(s.shape.Block), Shared: int(s.shape.Shared), Static: s.fn.kernel.Shared, Registers: s.fn.kernel.Registers,
			Numbers: s.numbers()}
	}
	return steps
}

// numbers are the words of the parameters; what a launch fills in begins with a 1, so that it differs from what is left out.
func (s *step) numbers() []int32 {
	raw := bytes.Clone(s.params)
	for _, p := range s.patches {
		clear(raw[p.at : p.at+p.from.size])
		raw[p.at] = 1
	}
	list := make([]int32, len(raw)/4)
	for i := range list {
		list[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return list
}

// patch is a place in the parameter bytes that is known only at the launch.
type patch struct {
	at   int
	from param
}

// ref is a place in an argument of the launch: outputs come first, then inputs, then the scratch memory.
type ref struct {
	arg    int
	offset int64 // bytes
}

// at is the place some bytes further on.
func (r ref) at(bytes int64) ref { return ref{r.arg, r.offset + bytes} }

// paramKind says where a kernel's parameter comes from.
type paramKind uint8

const (
	fromBits    paramKind = iota // known now
	fromBytes                    // a struct, known now
	fromRef                      // the address of an argument
	fromScalar                   // a launch parameter, converted to a dtype
	fromWord                     // a launch parameter as it is
	fromCell                     // the address of a launch parameter's cell, 0 if it has none
	fromFault                    // the address of the queue's fault record
	fromSerial                   // the launch's serial number
	fromTickets                  // the address of the queue's tickets
)

// param is a value for a kernel's parameter.
type param struct {
	kind  paramKind
	size  int
	bits  uint64
	bytes []byte
	refs  []patch // addresses in bytes
	ref   ref
	index int // of the launch parameter
	dt    dtype.DType
}

func i32(v int) param { return param{size: 4, bits: uint64(uint32(int32(v)))} }
func i64(v int) param { return param{size: 8, bits: uint64(v)} }

// blob is a struct by value. v holds fixed-size fields only, laid out without holes as C lays out the kernel's.
func blob(v any) param {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(fmt.Sprintf("cuda: a kernel's parameter of type %T: %v", v, err)) // a mistake in this package
	}
	return param{kind: fromBytes, size: len(b), bytes: b}
}

// placing is a struct with the address of a place at a byte offset.
func (p param) placing(at int, r ref) param {
	p.refs = append(p.refs, patch{at, pointer(r)})
	return p
}

// pointer passes the address of a place.
func pointer(r ref) param { return param{kind: fromRef, size: 8, ref: r} }

// scalar passes launch parameter i, a number, as a value of the type that dt is computed in: f32 for the 16-bit types,
// u8 for bool.
func scalar(i int, dt dtype.DType) param {
	wide := ir.Wide(dt)
	return param{kind: fromScalar, size: wide.Size(), index: i, dt: wide}
}

// word passes the 64 bits of launch parameter i: a random key, or a float64.
func word(i int) param { return param{kind: fromWord, size: 8, index: i} }

// celled passes a launch parameter by value and by the address of its cell: the kernels' Word and Number.
func celled(p param) param {
	cell := param{kind: fromCell, size: 8, index: p.index}
	return param{kind: fromBytes, size: 16, bytes: make([]byte, 16), refs: []patch{{0, p}, {8, cell}}}
}

// number and raw are scalar and word for kernels that read cells.
func number(i int, dt dtype.DType) param { return celled(scalar(i, dt)) }
func raw(i int) param                    { return celled(word(i)) }

// fault and serial are the parameters of a kernel that checks indices: (Fault *, u32).
func fault() param  { return param{kind: fromFault, size: 8} }
func serial() param { return param{kind: fromSerial, size: 4} }

// tickets is the parameter of a kernel whose last block of a column adds what others have left: (u32 *). A grid of several
// rows has maxTickets columns at most.
func tickets() param { return param{kind: fromTickets, size: 8} }

// prepare plans an op whose types are verified. It returns an error that wraps [device.ErrUnsupported] for dtypes that
// it has no kernel for.
type prepare func(b *builder) error

// table has a row for every op code that the engine offers. Files add their rows in init through offer.
var table [ir.Codes]prepare

func offer(p prepare, codes ...ir.Code) {
	for _, c := range codes {
		if table[c] != nil {
			panic(fmt.Sprintf("cuda: two kernels for %s", c))
		}
		table[c] = p
	}
}

// builder makes the plan of an op.
type builder struct {
	d    *Device
	op   *ir.Op
	outs []*ir.Type
	plan plan
	work int64 // bytes of scratch memory so far

	read, written int64 // bytes, where a plan moves others than its operands and results
	err           error // the first one
}

func (b *builder) out(i int) ref { return ref{arg: i} }
func (b *builder) in(i int) ref  { return ref{arg: len(b.outs) + i} }

// scratch reserves bytes of the launch's scratch memory, aligned to 256.
func (b *builder) scratch(bytes int64) ref {
	r := ref{len(b.outs) + b.op.NumIn(), b.work}
	b.work += (bytes + 255) &^ 255
	return r
}

// unsupported is the error for a dtype without a kernel.
func (b *builder) unsupported(dt dtype.DType) error {
	return fmt.Errorf("%s of %s: %w", b.op.Code, dt, device.ErrUnsupported)
}

// suffixed is the name of a kernel for a dtype: "add_f32".
func suffixed(name string, dt dtype.DType) string { return name + "_" + dt.String() }

// maxBlocks is the most blocks that a grid-stride kernel gets: enough to fill any card, few enough that a thread sees
// several elements of a large operand. It does not depend on the card, and neither do results.
const maxBlocks = 2048

// blocksFor is the number of blocks of a grid-stride loop over n items.
func blocksFor(n, block int) int { return min(ceilDiv(n, block), maxBlocks) }

// run plans a launch. A grid without blocks is no launch.
func (b *builder) run(kernel string, grid, block [3]int, shared int, params ...param) {
	if b.err != nil || grid[0] == 0 || grid[1] == 0 || grid[2] == 0 {
		return
	}
	if grid[0] > math.MaxInt32 || max(grid[1], grid[2]) > math.MaxUint16 { // beyond 2^32 it would begin anew
		b.err = fmt.Errorf("kernel %s over a grid of %v blocks, more than a card has: %w", kernel, grid, device.ErrUnsupported)
		return
	}
	k, ok := b.d.kernels.Find(kernel)
	if !ok {
		b.err = fmt.Errorf("there is no kernel %s: %w", kernel, device.ErrUnsupported)
		return
	}
	s := step{shape: driver.LaunchConfig{Grid: dims(grid), Block: dims(block), Shared: uint32(shared)}}
	if b.err = s.pack(k, params); b.err != nil {
		return
	}
	if s.fn, b.err = b.d.function(k, shared); b.err != nil {
		return
	}
	for _, p := range params {
		switch p.kind {
		case fromFault:
			b.plan.faults = true
		case fromScalar, fromWord:
			b.plan.fixed |= 1 << p.index
		}
	}
	b.plan.steps = append(b.plan.steps, s)
}

// linear plans a launch over n items, of which each thread takes several in turn.
func (b *builder) linear(kernel string, n, block int, params ...param) {
	b.run(kernel, [3]int{blocksFor(n, block), 1, 1}, [3]int{block, 1, 1}, 0, params...)
}

// zero plans a fill of bytes with zeros.
func (b *builder) zero(to ref, bytes int64) {
	if bytes > 0 {
		b.plan.steps = append(b.plan.steps, step{to: to, bytes: bytes})
	}
}

func dims(v [3]int) (d [3]uint32) {
	for i := range v {
		d[i] = uint32(v[i])
	}
	return d
}

func ints(v [3]uint32) (d [3]int) {
	for i := range v {
		d[i] = int(v[i])
	}
	return d
}

// pack lays the parameters out as the kernel has them, and compares the sizes: on a card a mismatch is silent.
func (s *step) pack(k *kernels.Kernel, params []param) error {
	if len(params) != len(k.Params) {
		return fmt.Errorf("kernel %s takes %d parameters, got %d", k.Name, len(k.Params), len(params))
	}
	s.params = make([]byte, k.Size())
	for i, p := range params {
		at := k.Params[i]
		if p.size != at.Size() {
			return fmt.Errorf("parameter %d of kernel %s has %d bytes, got %d", i, k.Name, at.Size(), p.size)
		}
		switch p.kind {
		case fromBits:
			numbers.Put(s.params[at.Offset():], p.size, p.bits)
		case fromBytes:
			copy(s.params[at.Offset():], p.bytes)
			for _, in := range p.refs {
				s.patches = append(s.patches, patch{at.Offset() + in.at, in.from})
			}
		default:
			s.patches = append(s.patches, patch{at.Offset(), p})
		}
	}
	return nil
}
