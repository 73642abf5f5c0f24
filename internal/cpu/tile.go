package cpu

import (
	"sync"
	"unsafe"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// tile is the number of elements that kernels take at a time where operands are not contiguous or not of the type that
// is computed in: a few such tiles stay in the first-level cache.
const tile = 1024

// scratch is the tiles of one call. Slots are numbered by their use.
type scratch struct{ words [slots][tile]uint64 }

// The slots of scratch.
const (
	slotOut = iota
	slotX
	slotY
	slotC
	slotRaw // elements before widening or after narrowing
	slots
)

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func borrow() *scratch { return scratches.Get().(*scratch) }

func (s *scratch) giveBack() { scratches.Put(s) }

// slot views one slot as n elements.
func slot[T any](s *scratch, i, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&s.words[i])), tile)[:n]
}

// source is an operand that is read in tiles of T, whatever its strides and its stored type.
type source[T any] interface {
	// load returns elements lo, lo+1, … : in place if they lie together as T, else in buf, whose length says how many.
	load(a device.Arg, lo int, buf []T, s *scratch) []T
}

// native is a source stored as T.
type native[T any] struct {
	layout
	span int
}

func nativeOf[T any](t *ir.Type) *native[T] { return &native[T]{layoutOf(t), t.Span()} }

func (v *native[T]) load(a device.Arg, lo int, buf []T, _ *scratch) []T {
	src := values[T](a, v.span)
	if v.dense {
		return src[lo : lo+len(buf)]
	}
	gather(buf, src, &v.layout, lo)
	return buf
}

// reader is an operand that is read from any place in even steps.
type reader[T any] interface {
	// read returns n elements from an offset on: in place if they lie together as T, else in buf, of length n.
	read(a device.Arg, off, stride, n int, buf []T, s *scratch) []T
}

func (v *native[T]) read(a device.Arg, off, stride, n int, buf []T, _ *scratch) []T {
	src := values[T](a, v.span)[off:]
	if stride == 1 {
		return src[:n]
	}
	pick(buf, src, stride)
	return buf
}

// half is a 16-bit storage type.
type half interface {
	dtype.Float16 | dtype.BFloat16
}

// widened is a source of float32 stored as H.
type widened[H half] struct{ native[H] }

func (v *widened[H]) load(a device.Arg, lo int, buf []float32, s *scratch) []float32 {
	raw := v.native.load(a, lo, slot[H](s, slotRaw, len(buf)), s)
	convert(buf, raw)
	return buf
}

func (v *widened[H]) read(a device.Arg, off, stride, n int, buf []float32, s *scratch) []float32 {
	convert(buf, v.native.read(a, off, stride, n, slot[H](s, slotRaw, n), s))
	return buf
}

// operand reads and writes elements as T.
type operand[T any] interface {
	source[T]
	reader[T]
	sink[T]
}

// operandOf reads and writes an operand as T, which must be its own type, or float32 for a 16-bit one, in the order of
// a layout.
func operandOf[T any](t *ir.Type, l layout) operand[T] {
	var v any
	switch t.DType {
	case dtype.F16:
		v = &widened[dtype.Float16]{native[dtype.Float16]{l, t.Span()}}
	case dtype.BF16:
		v = &widened[dtype.BFloat16]{native[dtype.BFloat16]{l, t.Span()}}
	default:
		v = &native[T]{l, t.Span()}
	}
	return v.(operand[T])
}

func sourceOf[T any](t *ir.Type) source[T] { return operandOf[T](t, layoutOf(t)) }

func sinkOf[T any](t *ir.Type) sink[T] { return operandOf[T](t, layoutOf(t)) }

// sink is a result that is written in tiles of T.
type sink[T any] interface {
	// begin returns where to compute elements lo, lo+1, …: in place if they lie together as T, else buf.
	begin(a device.Arg, lo int, buf []T) []T
	// commit stores what was computed in the slice that begin returned.
	commit(a device.Arg, lo int, v []T, s *scratch)
}

func (v *native[T]) begin(a device.Arg, lo int, buf []T) []T {
	if v.dense {
		return values[T](a, v.span)[lo : lo+len(buf)]
	}
	return buf
}

func (v *native[T]) commit(a device.Arg, lo int, t []T, _ *scratch) {
	if !v.dense {
		scatter(values[T](a, v.span), t, &v.layout, lo)
	}
}

func (v *widened[H]) begin(_ device.Arg, _ int, buf []float32) []float32 { return buf }

func (v *widened[H]) commit(a device.Arg, lo int, t []float32, s *scratch) {
	raw := v.native.begin(a, lo, slot[H](s, slotRaw, len(t)))
	convert(raw, t)
	v.native.commit(a, lo, raw, s)
}

// direct reports whether a kernel can compute on the memory of its operands as one slice each.
func direct(types ...*ir.Type) bool {
	for _, t := range types {
		if narrow(t) || !t.IsDense() {
			return false
		}
	}
	return true
}
