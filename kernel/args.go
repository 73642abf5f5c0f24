package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"

	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/tensor"
)

// Arg is a tensor as an argument of which more is to be said.
type Arg struct {
	Tensor *tensor.Tensor
	// Written says that the kernel writes it, for a kernel whose PTX does not tell.
	Written bool
	// Strided lets a view pass whose elements do not lie in a row: the kernel gets the address of the first, and its strides from
	// the program.
	Strided bool
}

// binding is the arguments of one launch on their way.
type binding struct {
	k       *Kernel
	tensors []operand
	stated  origins // that the program says are written
}

// operand is a tensor among the arguments; nil for others.
type operand = tensor.Own

func span(t operand) int64 { return int64(t.Type().Span()) * int64(t.DType().Size()) }

// fail panics: argument i is not what its parameter takes.
func (b *binding) fail(i int, hint, format string, args ...any) {
	tensor.Raise(b.k.op(), hint, "argument %d %s; it is for parameter %d, %s", i, fmt.Sprintf(format, args...), i, b.k.params[i].title())
}

// argument puts argument i among the bytes of the parameters, unless it is an address.
func (b *binding) argument(i int, a any, to []byte) {
	b.tensors = append(b.tensors, operand{})
	p := &b.k.params[i]
	switch a := a.(type) {
	case nil:
		if !p.mayPoint() {
			b.fail(i, p.hint(), "is nil")
		}
	case *tensor.Tensor:
		b.tensor(i, Arg{Tensor: a})
	case Arg:
		b.tensor(i, a)
	case []byte:
		b.bytes(i, a, to)
	default:
		b.number(i, reflect.ValueOf(a), to)
	}
}

// mayPoint tells whether a parameter can take an address.
func (p *param) mayPoint() bool {
	if p.Dims != nil || p.Vec > 0 || p.Type.Size() != 8 || p.Type.Kind() == ptx.KindFloat {
		return false
	}
	return p.cpp == nil || p.cpp.to != nil
}

// isPointer tells whether a parameter is known to take an address.
func (p *param) isPointer() bool { return p.Ptr != nil || p.cpp != nil && p.cpp.to != nil }

// hint says what a parameter takes.
func (p *param) hint() string {
	switch {
	case p.Dims != nil || p.Vec > 0:
		return fmt.Sprintf("give a struct of fixed size or a []byte, of %d bytes, with C's padding in it", p.Size())
	case p.isPointer():
		return "give a tensor, or nil for the null pointer"
	case p.Type.Kind() == ptx.KindFloat:
		return "give a float32 or a float64"
	case p.mayPoint():
		return "give a tensor, an integer of 8 bytes, or nil"
	}
	return fmt.Sprintf("give an integer of %d bytes", p.Size())
}

func (b *binding) tensor(i int, a Arg) {
	p := &b.k.params[i]
	t := a.Tensor
	if t == nil {
		b.fail(i, "make it before, or give nil itself for the null pointer", "is a nil tensor")
	}
	switch {
	case !p.mayPoint():
		b.fail(i, p.hint(), "is a tensor, %v, whose address has 8 bytes", t.Type())
	case p.cpp != nil && !p.cpp.to.takes(t.DType()):
		b.fail(i, "convert it with Cast, or compile the kernel for it", "is %v", t.Type())
	case !a.Strided && !t.Type().IsDense():
		b.fail(i, "make it so with Contiguous, or give kernel.Arg{Tensor: x, Strided: true} and the strides as numbers", "is %v, whose elements do not lie in a row", t.Type())
	}
	b.tensors[i] = operand{Tensor: t, Name: fmt.Sprintf("argument %d", i)}
	if a.Written {
		b.stated |= 1 << i
	}
}

func (b *binding) bytes(i int, a, to []byte) {
	p := &b.k.params[i]
	switch {
	case p.Dims == nil && p.Vec == 0:
		b.fail(i, p.hint(), "is %d bytes", len(a))
	case len(a) != len(to):
		b.fail(i, p.hint(), "has %d bytes", len(a))
	}
	copy(to, a)
}

// number puts a Go number, or a struct of numbers.
func (b *binding) number(i int, v reflect.Value, to []byte) {
	p := &b.k.params[i]
	if p.Dims != nil || p.Vec > 0 {
		raw, err := binary.Append(nil, binary.LittleEndian, v.Interface())
		if err != nil || len(raw) != len(to) {
			b.fail(i, p.hint(), "is a %v of %d bytes", v.Type(), len(raw))
		}
		copy(to, raw)
		return
	}
	if p.isPointer() {
		b.fail(i, p.hint(), "is a %v", v.Type())
	}
	bits, ok := p.encode(v)
	if !ok {
		b.fail(i, p.hint(), "is a %v, %v", v.Type(), v)
	}
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], bits)
	copy(to, raw[:])
}

// encode is a Go number as the bits of a parameter; false where that does not hold it.
func (p *param) encode(v reflect.Value) (bits uint64, ok bool) {
	bytes, kind := int(p.Size()), p.Type.Kind()
	switch {
	case v.CanFloat() && kind == ptx.KindFloat && p.Type.Size() >= 4:
		return floatBits(v.Float(), bytes), true
	case v.CanFloat() && kind == ptx.KindBits && v.Type().Size() == uintptr(bytes):
		return floatBits(v.Float(), bytes), true
	case kind == ptx.KindFloat:
		return 0, false
	case v.CanInt():
		return uint64(v.Int()), p.holds(v.Int())
	case v.CanUint():
		u := v.Uint()
		return u, bytes == 8 && !p.signed() || u <= math.MaxInt64 && p.holds(int64(u))
	case v.Kind() == reflect.Bool:
		if v.Bool() {
			bits = 1
		}
		return bits, bytes == 1
	}
	return 0, false
}

func floatBits(f float64, bytes int) uint64 {
	if bytes == 8 {
		return math.Float64bits(f)
	}
	return uint64(math.Float32bits(float32(f)))
}

// signed tells whether numbers beyond the half of the range are none; PTX has int and unsigned as .u32.
func (p *param) signed() bool { return p.cpp != nil && p.cpp.signed }

// holds tells whether an integer fits.
func (p *param) holds(n int64) bool {
	bits := 8 * int(p.Size())
	if bits == 64 {
		return true
	}
	top := int64(1) << bits
	if p.signed() {
		top /= 2
	}
	return -1<<(bits-1) <= n && n < top
}

// written are the arguments that the kernel writes, a bit each.
func (b *binding) written() (all origins) {
	var tensors origins
	for i, t := range b.tensors {
		if t.Tensor != nil {
			tensors |= 1 << i
		}
	}
	unknown := false
	for _, from := range b.k.writes {
		all |= from & tensors
		unknown = unknown || from&(tensors|ownMemory) == 0
	}
	switch wrong := b.stated &^ all; {
	case unknown && b.stated == 0 && tensors != 0:
		tensor.Raise(b.k.op(), "say which: kernel.Arg{Tensor: y, Written: true}", "its PTX does not tell which of its arguments it writes")
	case !unknown && wrong != 0:
		for i := range b.tensors {
			if wrong>>i&1 == 1 {
				b.fail(i, "the order of the arguments may be another", "is said to be written, and the kernel writes it nowhere")
			}
		}
	}
	return all | b.stated
}
