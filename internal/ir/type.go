// Package ir describes operations as plain data. An [Op] is a small comparable value; its shape rule, verifier, text
// form and cost are rows of one table keyed by the op code. Engines, gradient rules, plans and traces all see the same
// values. The package is pure: no I/O, no unsafe, no knowledge of devices or tensors.
package ir

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/warpline-ml/warpline/dtype"
)

// MaxRank is the largest number of dimensions of a type.
const MaxRank = 8

// Type is the dtype, shape and strides of one operand. Types are immutable and interned: equal types are the same
// pointer, so an Op that names them is comparable. Strides count elements; an expanded dimension has stride 0.
type Type struct {
	DType   dtype.DType
	shape   []int
	strides []int
	size    int
	dense   bool
	id      uint64 // for hashes: unlike an address it may be computed with
}

// key is a type as a comparable value.
type key struct {
	dt      dtype.DType
	rank    uint8
	shape   [MaxRank]int
	strides [MaxRank]int
}

// interned holds types weakly, so that programs with ever-changing shapes do not grow it without bound.
var interned = struct {
	sync.RWMutex
	types map[key]weak.Pointer[Type]
	sweep int    // table size at which dead entries are dropped
	made  uint64 // types so far
}{types: map[key]weak.Pointer[Type]{}, sweep: 1 << 12}

// Dense returns the row-major type of a shape. It panics if the shape is invalid; see [CheckShape].
func Dense(dt dtype.DType, shape ...int) *Type {
	var buf [MaxRank]int
	strides := buf[:min(len(shape), MaxRank)]
	step := 1
	for i := len(strides) - 1; i >= 0; i-- {
		strides[i] = step
		step *= max(shape[i], 1)
	}
	return Strided(dt, shape, strides)
}

// Strided returns the type of a view. It panics if the shape is invalid; see [CheckShape].
func Strided(dt dtype.DType, shape, strides []int) *Type {
	if err := CheckShape(shape); err != nil {
		panic("ir: " + err.Error())
	}
	k := key{dt: dt, rank: uint8(len(shape))}
	copy(k.shape[:], shape)
	canonical(k.strides[:len(shape)], shape, strides)
	interned.RLock()
	t := interned.types[k].Value()
	interned.RUnlock()
	if t != nil {
		return t
	}
	interned.Lock()
	defer interned.Unlock()
	if t := interned.types[k].Value(); t != nil {
		return t
	}
	t = newType(k)
	interned.made++
	t.id = interned.made * 0x9e3779b97f4a7c15
	interned.types[k] = weak.Make(t)
	if len(interned.types) > interned.sweep {
		sweepTypes()
	}
	return t
}

// canonical copies strides so that types with the same elements in the same places are one: a dimension of size 1 gets
// the stride it has in row-major order over those after it.
func canonical(dst, shape, strides []int) {
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		dst[i] = strides[i]
		if shape[i] == 1 {
			dst[i] = step
		}
		step = dst[i] * max(shape[i], 1)
	}
}

func newType(k key) *Type {
	n := int(k.rank)
	both := make([]int, 2*n)
	copy(both[:n], k.shape[:n])
	copy(both[n:], k.strides[:n])
	t := &Type{DType: k.dt, shape: both[:n:n], strides: both[n:], size: 1, dense: true}
	step := 1
	for i := n - 1; i >= 0; i-- {
		if t.shape[i] != 1 && t.strides[i] != step {
			t.dense = false
		}
		step *= max(t.shape[i], 1)
		t.size *= t.shape[i]
	}
	t.dense = t.dense || t.size == 0
	return t
}

func sweepTypes() {
	for k, w := range interned.types {
		if w.Value() == nil {
			delete(interned.types, k)
		}
	}
	interned.sweep = max(1<<12, 2*len(interned.types))
}

// CheckShape reports a shape that no type can have: too many dimensions, a negative size, or more than 2^48 elements.
func CheckShape(shape []int) error {
	if len(shape) > MaxRank {
		return fmt.Errorf("shape %v has %d dimensions, at most %d are supported", shape, len(shape), MaxRank)
	}
	const most = 1 << 48
	n := 1
	for _, d := range shape {
		switch {
		case d < 0:
			return fmt.Errorf("shape %v has a negative size", shape)
		case d > 0 && n > most/d:
			return fmt.Errorf("shape %v has more than 2^48 elements", shape)
		}
		n *= max(d, 1)
	}
	return nil
}

// Shape returns the sizes, outermost first. The caller must not change it.
func (t *Type) Shape() []int { return t.shape }

// Strides returns the distance between neighbours in each dimension, in elements. The caller must not change it.
func (t *Type) Strides() []int { return t.strides }

// Rank is the number of dimensions.
func (t *Type) Rank() int { return len(t.shape) }

// Dim is the size of dimension i; negative i counts from the last.
func (t *Type) Dim(i int) int {
	if i < 0 {
		i += len(t.shape)
	}
	return t.shape[i]
}

// Size is the number of elements.
func (t *Type) Size() int { return t.size }

// Bytes is the number of bytes of the elements, each counted once even where an expanded view repeats it.
func (t *Type) Bytes() int64 { return int64(t.size) * int64(t.DType.Size()) }

// Span is the number of elements from the first to the last one a view touches, 0 for an empty one.
func (t *Type) Span() int {
	if t.size == 0 {
		return 0
	}
	n := 1
	for i, d := range t.shape {
		n += (d - 1) * t.strides[i]
	}
	return n
}

// IsDense reports whether the elements lie in row-major order without holes.
func (t *Type) IsDense() bool { return t.dense }

// AsDense returns the row-major type of the same dtype and shape.
func (t *Type) AsDense() *Type {
	return Dense(t.DType, t.shape...)
}

// As returns the row-major type of the same shape with another dtype.
func (t *Type) As(dt dtype.DType) *Type { return Dense(dt, t.shape...) }

// SameShape reports whether two types have equal sizes.
func (t *Type) SameShape(u *Type) bool { return slices.Equal(t.shape, u.shape) }

// String prints "f32[2,3]", with ":s0,s1" after it when the type is not row-major.
func (t *Type) String() string {
	var b strings.Builder
	b.WriteString(t.DType.String())
	b.WriteByte('[')
	writeInts(&b, t.shape)
	b.WriteByte(']')
	if !t.dense {
		b.WriteByte(':')
		writeInts(&b, t.strides)
	}
	return b.String()
}

func writeInts(b *strings.Builder, v []int) {
	for i, d := range v {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(b, d)
	}
}

// Reshapes tells whether a view of t may have another shape.
func (t *Type) Reshapes(shape []int) bool {
	if t.dense {
		return true
	}
	_, ok := ReshapeStrides(t, shape)
	return ok
}

// ReshapeStrides returns the strides under which a view of t has another shape, or false when it needs a copy.
// The rule is NumPy's: dimensions are grouped where old and new sizes have equal products, and each old group must be
// evenly strided.
func ReshapeStrides(t *Type, shape []int) ([]int, bool) {
	strides := make([]int, len(shape))
	if t.size == 0 || t.dense {
		step := 1
		for i := len(shape) - 1; i >= 0; i-- {
			strides[i] = step
			step *= max(shape[i], 1)
		}
		return strides, true
	}
	old, step := squeezed(t)
	i, j := 0, 0
	for i < len(old) {
		lo, n, m := i, old[i], 1
		first := j
		for j < len(shape) && m < n || m != n {
			if m < n {
				m *= shape[j]
				j++
			} else {
				i++
				n *= old[i]
			}
		}
		for k := lo; k < i; k++ {
			if step[k] != old[k+1]*step[k+1] {
				return nil, false
			}
		}
		s := step[i]
		for k := j - 1; k >= first; k-- {
			strides[k] = s
			s *= shape[k]
		}
		i++
	}
	for ; j < len(shape); j++ {
		strides[j] = 1
	}
	return strides, true
}

// squeezed drops dimensions of size 1.
func squeezed(t *Type) (shape, strides []int) {
	for i, d := range t.shape {
		if d != 1 {
			shape, strides = append(shape, d), append(strides, t.strides[i])
		}
	}
	return shape, strides
}

// Broadcast returns the shape that two shapes broadcast to: aligned at the right, sizes equal or one of them 1.
func Broadcast(a, b []int) ([]int, error) {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	off := len(a) - len(b)
	for i, d := range b {
		switch {
		case out[off+i] == d || d == 1:
		case out[off+i] == 1:
			out[off+i] = d
		default:
			return nil, fmt.Errorf("shapes %v and %v do not broadcast: sizes %d and %d meet", a, b, out[off+i], d)
		}
	}
	return out, nil
}

// Float returns the bits of a float64 parameter.
func Float(v float64) uint64 { return math.Float64bits(v) }
