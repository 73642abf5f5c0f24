package tensor

import (
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Sort is the elements of a dimension in order, the largest first if descending, and their i64 places. Equal ones keep their
// order, NaN is above all numbers, as in PyTorch.
func (t *Tensor) Sort(axis int, descending bool) (values, places *Tensor) {
	return t.sorted("Sort", axis, descending, 0)
}

// ArgSort is the i64 places at which the elements of a dimension lie in order, as [Tensor.Sort] finds them.
func (t *Tensor) ArgSort(axis int, descending bool) *Tensor {
	_, places := t.quiet().sorted("ArgSort", axis, descending, 0)
	return places
}

// TopK is the k largest elements of a dimension, or the smallest, in order, and their i64 places; of equal ones the first.
func (t *Tensor) TopK(k, axis int, largest bool) (values, places *Tensor) {
	axis = t.axis("TopK", axis)
	if k < 0 || k > t.Dim(axis) {
		raise("TopK", "give as many as there are, or fewer", "%d elements of dimension %d of shape %v", k, axis, t.Shape())
	}
	if k == 0 {
		none := t.Slice(axis, 0, 0)
		return none, t.Env().full(ir.Dense(dtype.I64, none.Shape()...), 0)
	}
	return t.sorted("TopK", axis, largest, k)
}

// KthValue is the k-th smallest element of a dimension, which it drops, counted from 1, and its i64 place.
func (t *Tensor) KthValue(k, axis int) (value, place *Tensor) {
	axis = t.axis("KthValue", axis)
	if k < 1 || k > t.Dim(axis) {
		raise("KthValue", "they count from 1 to the number of elements", "the %dth of dimension %d of shape %v", k, axis, t.Shape())
	}
	values, places := t.sorted("KthValue", axis, false, k)
	return values.Select(axis, -1), places.Select(axis, -1)
}

func (t *Tensor) sorted(op string, axis int, descending bool, k int) (values, places *Tensor) {
	a := ir.Attr{Axis: int8(t.axis(op, axis)), Dims: [ir.MaxRank]int32{int32(k)}}
	if descending {
		a.Flag = ir.Descending
	}
	if t.DType() == dtype.Bool {
		out := apply(ir.Sort, a, ir.Params{}, t.Cast(dtype.U8))
		return out[0].Cast(dtype.Bool), out[1]
	}
	out := apply(ir.Sort, a, ir.Params{}, t)
	return out[0], out[1]
}

// Median is the lower of the middle elements of a dimension, which it drops, and its i64 place; NaN where there is one.
func (t *Tensor) Median(axis int) (value, place *Tensor) {
	axis = t.axis("Median", axis)
	n := t.Dim(axis)
	if n == 0 {
		raise("Median", "there is no middle of nothing", "dimension %d of shape %v", axis, t.Shape())
	}
	_, order := t.counted().quiet().sorted("Median", axis, false, 0)
	place = order.Select(axis, (n-1)/2)
	if t.DType().IsFloat() && n > 1 {
		last := order.Select(axis, -1)
		top := t.quiet().Gather(axis, last.Unsqueeze(axis)).Squeeze(axis)
		place = Where(top.IsNaN(), last, place)
	}
	return t.Gather(axis, place.Unsqueeze(axis)).Squeeze(axis), place
}

// CumProd multiplies up along a dimension. Integers multiply in i64.
func (t *Tensor) CumProd(axis int) *Tensor {
	axis = t.axis("CumProd", axis)
	t = t.summed().cardsWide()
	return t.Env().Tidy(func(e *Env) *Tensor {
		out := t.inside(e).widened()
		for k := 1; k < t.Dim(axis); k *= 2 {
			out = out.Mul(out.Slice(axis, 0, t.Dim(axis)-k).Pad(axis, k, 0, 1))
		}
		return out.narrowed(t)
	})
}

// CumMax is the largest element so far along a dimension, and the i64 place of the last that is; NaN wins.
func (t *Tensor) CumMax(axis int) (values, places *Tensor) {
	return t.running("CumMax", axis, (*Tensor).Ge)
}

// CumMin is the smallest element so far along a dimension, and the i64 place of the last that is; NaN wins.
func (t *Tensor) CumMin(axis int) (values, places *Tensor) {
	return t.running("CumMin", axis, (*Tensor).Le)
}

// running doubles the stretch behind each element over which its place is the best, until it reaches the start.
func (t *Tensor) running(op string, axis int, better func(later, earlier *Tensor) *Tensor) (values, places *Tensor) {
	axis = t.axis(op, axis)
	n := t.Dim(axis)
	places = t.Env().Tidy(func(e *Env) *Tensor {
		shape := make([]int, t.Rank())
		for i := range shape {
			shape[i] = 1
		}
		shape[axis] = n
		best := e.Arange(n).Reshape(shape...).Expand(t.Shape()...).Contiguous()
		x := t.counted().quiet().inside(e)
		for k := 1; k < n; k *= 2 {
			later, earlier := best.Slice(axis, k, n), best.Slice(axis, 0, n-k)
			v, u := x.Gather(axis, later), x.Gather(axis, earlier)
			stays := better(v, u)
			if t.DType().IsFloat() {
				stays = v.IsNaN().Or(stays.And(u.IsNaN().Not()))
			}
			best = Cat(axis, best.Slice(axis, 0, k), Where(stays, later, earlier))
		}
		return best
	})
	return t.Gather(axis, places), places
}

// SearchSorted is the i64 places in t, which rises along its last dimension, where v would be put in: before equal elements,
// or after them if right. t is one row for all v, or has a row for each of v's.
func (t *Tensor) SearchSorted(v *Tensor, right bool) *Tensor {
	givenAll("SearchSorted", []string{"the rising values", "the values to put in"}, t, v)
	t, v = together("SearchSorted", t.quiet(), v.quiet())
	t, v = promoted(t.counted(), v.counted())
	axis, n := t.axis("SearchSorted", -1), t.Dim(-1)
	lead := t.Shape()[:axis]
	shape := v.Shape()
	if t.Rank() == 1 {
		v = v.Reshape(-1)
	} else if v.Rank() != t.Rank() || !slices.Equal(lead, v.Shape()[:axis]) {
		raise("SearchSorted", "the dimensions before the last must be equal, or the rising values one row", "values of shape %v into shape %v", v.Shape(), t.Shape())
	}
	found := v.Env().Tidy(func(e *Env) *Tensor {
		t, v := t.inside(e), v.inside(e)
		place := e.full(ir.Dense(dtype.I64, v.Shape()...), 0)
		if n == 0 {
			return place
		}
		step := 1
		for step*2 <= n {
			step *= 2
		}
		for ; step > 0; step /= 2 { // place elements are known to come before v
			next := place.AddScalar(float64(step))
			at := t.Gather(axis, next.AddScalar(-1).Clamp(0, float64(n-1)))
			before := at.Lt(v)
			if right {
				before = at.Le(v)
			}
			if v.DType().IsFloat() { // NaN is above all
				before = before.Or(v.IsNaN().And(at.IsNaN().Not()))
				if right {
					before = before.Or(v.IsNaN())
				}
			}
			place = Where(before.And(next.LeScalar(float64(n))), next, place)
		}
		return place
	})
	return found.Reshape(shape...)
}

// Bucketize is the i64 number of the rising bounds that t's elements lie behind, those equal to one too if right.
func (t *Tensor) Bucketize(bounds *Tensor, right bool) *Tensor { return bounds.SearchSorted(t, right) }

// Unique is the different values of t in order, the i64 places in them of t's elements, in t's shape, and how often each
// occurs. How many there are the host has to read: it is a sync point.
func (t *Tensor) Unique() (values, inverse, counts *Tensor) {
	flat := t.quiet().Reshape(-1)
	if flat.Size() == 0 {
		none := t.Env().full(ir.Dense(dtype.I64, 0), 0)
		return flat, none.Reshape(t.Shape()...), none
	}
	sorted, order := flat.sorted("Unique", 0, false, 0)
	n := flat.Size()
	first := Cat(0, t.Env().full(ir.Dense(dtype.Bool, 1), 1), sorted.Slice(0, 1, n).Ne(sorted.Slice(0, 0, n-1)))
	number := first.CumSum(0).AddScalar(-1)
	inverse = order.ZerosLike().ScatterAdd(0, order, number).Reshape(t.Shape()...)
	values = sorted.MaskedSelect(first)
	counts = t.Env().full(ir.Dense(dtype.I64, values.Size()), 0).ScatterAdd(0, number, number.FullLike(1))
	return values, inverse, counts
}

// BinCount is how often each of 0, 1, 2, … is among t's integers, of at least as many as minLength says, up to the largest;
// with weights, which may be nil, their sums, in their dtype. How many there are the host has to read: it is a sync point.
func (t *Tensor) BinCount(weights *Tensor, minLength int) *Tensor {
	flat := t.indices("BinCount").Reshape(-1)
	n := minLength
	if flat.Size() > 0 {
		if flat.Min().Item() < 0 {
			raise("BinCount", "give integers from 0", "the smallest is %v", flat.Min().Item())
		}
		n = max(n, int(flat.Max().Item())+1)
	}
	if weights == nil || t.Size() == 0 && weights.Size() == 0 { // of nothing PyTorch's result is i64, too
		return t.Env().full(ir.Dense(dtype.I64, n), 0).ScatterAdd(0, flat, flat.FullLike(1))
	}
	if weights.Size() != t.Size() {
		raise("BinCount", "give one for each", "%d weights for %d integers", weights.Size(), t.Size())
	}
	return t.Env().full(ir.Dense(weights.DType(), n), 0).ScatterAdd(0, flat, weights.Reshape(-1))
}

// NonZero is the places of the elements that are not 0, i64 [n,rank], in row-major order. How many there are the host has to
// read: it is a sync point.
func (t *Tensor) NonZero() *Tensor {
	at := t.truth().picked()
	return t.Env().Tidy(func(e *Env) *Tensor {
		rest := at.inside(e)
		if t.Rank() == 0 {
			return e.full(ir.Dense(dtype.I64, rest.Size(), 0), 0)
		}
		columns := make([]*Tensor, t.Rank())
		for d := t.Rank() - 1; d >= 0; d-- {
			size := e.full(ir.Dense(dtype.I64), float64(max(t.Dim(d), 1)))
			columns[d] = rest.Rem(size)
			rest = rest.FloorDiv(size)
		}
		return Stack(1, columns...)
	})
}

// picked is the places, in row-major order, at which a bool holds.
func (t *Tensor) picked() *Tensor {
	mask := t.quiet().Reshape(-1)
	if mask.Size() == 0 {
		return t.Env().full(ir.Dense(dtype.I64, 0), 0)
	}
	upTo := mask.CumSum(0)
	n := int(upTo.Select(0, -1).Item())
	return t.Env().Tidy(func(e *Env) *Tensor {
		mask, upTo := mask.inside(e), upTo.inside(e)
		to := Where(mask, upTo.AddScalar(-1), e.full(ir.Dense(dtype.I64), float64(n))) // the rest goes behind
		return e.full(ir.Dense(dtype.I64, n+1), 0).ScatterAdd(0, to, e.Arange(mask.Size())).Slice(0, 0, n).Clone()
	})
}

// MaskedSelect is the elements where mask, a bool that broadcasts with t, holds, in row-major order. How many there are the
// host has to read: it is a sync point.
func (t *Tensor) MaskedSelect(mask *Tensor) *Tensor {
	givenAll("MaskedSelect", []string{"the value", "the mask"}, t, mask)
	if mask.DType() != dtype.Bool {
		raise("MaskedSelect", "compare to get one", "the mask is %s, not bool", mask.DType())
	}
	shape, err := ir.Broadcast(t.Shape(), mask.Shape())
	if err != nil {
		raise("MaskedSelect", "sizes must be equal, or 1 where one is repeated", "shapes %v and %v do not broadcast", t.Shape(), mask.Shape())
	}
	t, mask = together("MaskedSelect", t, mask)
	return t.expand(shape).Reshape(-1).IndexSelect(0, mask.expand(shape).picked())
}
