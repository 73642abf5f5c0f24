package nn

import "github.com/warpline-ml/warpline/tensor"

// PadMode says what stands around a value.
type PadMode int

// The modes of PyTorch's pad.
const (
	PadConstant  PadMode = iota // a number
	PadReflect                  // what is inside, as a mirror at the outermost elements shows it
	PadReplicate                // the outermost elements
	PadCircular                 // what is inside at the other end
)

// Pad puts elements around dimensions.
type Pad struct {
	Sides []int // before and after the last dimension, then before and after that before it, and so on; negative ones cut off
	Mode  PadMode
	Value float64 // of PadConstant
}

// Forward pads. A mirror shows fewer elements than there are, a circle no more.
func (l Pad) Forward(x *tensor.Tensor) *tensor.Tensor {
	if len(l.Sides)%2 != 0 || len(l.Sides) > 2*x.Rank() || l.Mode < PadConstant || l.Mode > PadCircular {
		tensor.Raise("nn.Pad", "give a mode, and two numbers for each dimension, those of the last first", "%+v of shape %v", l, x.Shape())
	}
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		for i := 0; i < len(l.Sides); i += 2 {
			x = l.dimension(x, x.Rank()-1-i/2, l.Sides[i], l.Sides[i+1])
		}
		return x
	})
}

// dimension pads one.
func (l Pad) dimension(x *tensor.Tensor, axis, before, after int) *tensor.Tensor {
	if before == 0 && after == 0 {
		return x
	}
	if l.Mode == PadCircular || l.Mode == PadConstant { // what is cut off is gone before anything is put around
		x = cut(x, axis, before, after)
	}
	n, lo, hi := x.Dim(axis), max(before, 0), max(after, 0)
	if least := [...]int{0, max(lo, hi) + 1, 1, max(lo, hi)}[l.Mode]; n < least {
		tensor.Raise("nn.Pad", "pad less", "%d and %d elements around %d of shape %v, which must be %d or more", before, after, n, x.Shape(), least)
	}
	var parts []*tensor.Tensor
	put := func(first, last int, mirrored bool) {
		if part := x.Slice(axis, first, last); mirrored {
			parts = append(parts, part.Flip(axis))
		} else if last > first {
			parts = append(parts, part)
		}
	}
	switch l.Mode {
	case PadConstant:
		return x.Pad(axis, lo, hi, l.Value)
	case PadReflect:
		put(1, lo+1, true)
		put(0, n, false)
		put(n-1-hi, n-1, true)
	case PadReplicate:
		return cut(replicated(x, axis, lo, hi), axis, min(before, 0), min(after, 0))
	case PadCircular:
		put(n-lo, n, false)
		put(0, n, false)
		put(0, hi, false)
	}
	x = tensor.Cat(axis, parts...)
	if l.Mode == PadReflect {
		x = cut(x, axis, before, after)
	}
	return x
}

// cut takes off what negative numbers say.
func cut(x *tensor.Tensor, axis, before, after int) *tensor.Tensor {
	if before >= 0 && after >= 0 {
		return x
	}
	lo, hi := max(-before, 0), x.Dim(axis)-max(-after, 0)
	if lo > hi {
		tensor.Raise("nn.Pad", "cut less", "%d and %d elements cut off %d of shape %v", before, after, x.Dim(axis), x.Shape())
	}
	return x.Slice(axis, lo, hi)
}

// replicated has its first element lo times more, and its last hi times.
func replicated(x *tensor.Tensor, axis, lo, hi int) *tensor.Tensor {
	n, parts := x.Dim(axis), []*tensor.Tensor{x}
	times := func(i, k int) *tensor.Tensor {
		shape := append([]int{}, x.Shape()...)
		shape[axis] = k
		return x.Slice(axis, i, i+1).Expand(shape...)
	}
	if lo > 0 {
		parts = []*tensor.Tensor{times(0, lo), x}
	}
	if hi > 0 {
		parts = append(parts, times(n-1, hi))
	}
	if len(parts) == 1 {
		return x
	}
	return tensor.Cat(axis, parts...)
}
