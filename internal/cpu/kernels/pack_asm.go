//go:build !purego && (amd64 || arm64)

package kernels

import "unsafe"

// An operand is A or B as packing sees it: lanes (the rows of A, the columns
// of B) by steps of k. Distances are in bytes.
type operand struct {
	p          unsafe.Pointer
	lane, step int
	high       int // of pairs whose halves lie apart: how far; 0: of others
	whole      int // steps that have both halves
}

// operandOf describes data with the given distances in elements.
func operandOf(data []float32, lane, step int) operand {
	return operand{p: unsafe.Pointer(unsafe.SliceData(data)), lane: 4 * lane, step: 4 * step}
}

// zip says that the elements are pairs whose halves lie apart, of adjacent lanes
// of so many steps of bfloat16, unless high is 0.
func (o *operand) zip(high, steps int) {
	if high != 0 {
		o.lane, o.high, o.whole = 2, high, steps/2
	}
}

// at is the address of an element.
func (o *operand) at(lane, step int) unsafe.Pointer {
	return unsafe.Add(o.p, lane*o.lane+step*o.step)
}

// packGo is pack for any distances.
func packGo[T Float](o *operand, dst unsafe.Pointer, width int, lanes, steps span) {
	size := int(unsafe.Sizeof(T(0)))
	if o.lane == size && o.packWhole(dst, size*width, size*lanes.n, lanes, steps) {
		return
	}
	for s := range steps.n {
		to := unsafe.Slice((*T)(unsafe.Add(dst, size*width*s)), lanes.n)
		from := o.at(lanes.from, steps.from+s)
		if o.lane == size {
			copy(to, unsafe.Slice((*T)(from), lanes.n))
			continue
		}
		for i := range to {
			to[i] = *(*T)(unsafe.Add(from, i*o.lane))
		}
	}
}

// Elements that lie side by side, in as many bytes as panels mostly have. They
// are structs since Go moves an array through a pointer by a call, which costs
// more than so few bytes.
type (
	//lint:ignore U1000 it is moved as a whole
	words5 struct{ a, b, c, d, e uint32 }
	//lint:ignore U1000 it is moved as a whole
	words6 struct{ a, b, c uint64 } // the rows of AVX2
	//lint:ignore U1000 it is moved as a whole
	words8 struct{ a, b, c, d uint64 }
	//lint:ignore U1000 it is moved as a whole
	whole struct{ a, b words8 }
)

// packWhole is pack of adjacent lanes of so many bytes in a panel whose steps
// are width bytes apart. It reports whether it has such moves.
func (o *operand) packWhole(dst unsafe.Pointer, width, bytes int, lanes, steps span) bool {
	from := o.at(lanes.from, steps.from)
	switch bytes {
	case 64:
		copyApart[whole](dst, from, width, o.step, steps.n)
	case 32:
		copyApart[words8](dst, from, width, o.step, steps.n)
	case 24:
		copyApart[words6](dst, from, width, o.step, steps.n)
	case 20:
		copyApart[words5](dst, from, width, o.step, steps.n)
	default:
		return false
	}
	return true
}

// copyApart copies n values from places so far apart to places so far apart.
func copyApart[T any](dst, src unsafe.Pointer, to, from, n int) {
	for i := range n {
		*(*T)(unsafe.Add(dst, i*to)) = *(*T)(unsafe.Add(src, i*from))
	}
}

// packPlain is pack without masks: blocks are transposed, and the rest goes
// element by element.
func (o *operand) packPlain(dst unsafe.Pointer, set *kernelSet, width int, lanes, steps span) {
	whole := 0
	if o.step == set.size {
		whole = steps.n / set.vector * set.vector
		o.transpose(dst, set, width, lanes, span{steps.from, whole})
	}
	o.packEach(unsafe.Add(dst, set.size*width*whole), set, width, lanes, span{steps.from + whole, steps.n - whole})
}

// packEach packs element by element.
func (o *operand) packEach(dst unsafe.Pointer, set *kernelSet, width int, lanes, steps span) {
	if set.elements == doubles {
		packGo[float64](o, dst, width, lanes, steps)
	} else {
		packGo[float32](o, dst, width, lanes, steps)
	}
}

// stepsAhead is how far ahead packBeside asks for what it reads.
const stepsAhead = 4

// packBeside packs n panels of as many adjacent lanes that lie side by side, step by step: a line of the cache has lanes of
// several panels, and reading goes on along memory, of which it asks for steps ahead: half of a line of a large matrix is half of a
// page, behind which the processor does not look by itself. It reports whether it has such moves.
func (o *operand) packBeside(dst unsafe.Pointer, set *kernelSet, lanes span, n int, steps span) bool {
	if o.lane != set.size || o.high != 0 || set.masks {
		return false
	}
	step := set.size * set.laneA
	panel, bytes := step*steps.n, set.size*lanes.n
	for s := range steps.n {
		to, from := unsafe.Add(dst, step*s), o.at(lanes.from, steps.from+s)
		if s+stepsAhead < steps.n {
			prefetch(o.at(lanes.from, steps.from+s+stepsAhead), n*bytes)
		}
		switch bytes {
		case 32:
			copyApart[words8](to, from, panel, bytes, n)
		case 24:
			copyApart[words6](to, from, panel, bytes, n)
		case 20:
			copyApart[words5](to, from, panel, bytes, n)
		default:
			return false
		}
	}
	return true
}
