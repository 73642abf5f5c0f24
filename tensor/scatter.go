package tensor

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Writes by index give new values. Where several are put at one place the last one stays, in row-major order of the indices, on
// every device: PyTorch leaves that open. For a write in place copy the result: x.CopyInPlace(x.Scatter(…)).

// Reduction is how [Tensor.ScatterReduce] joins values.
type Reduction uint8

// The reductions, PyTorch's sum, prod, mean, amax and amin. NaN is the largest and the smallest.
const (
	ReduceSum Reduction = iota
	ReduceProd
	ReduceMean
	ReduceMax
	ReduceMin
)

// String is PyTorch's name.
func (r Reduction) String() string {
	if names := [...]string{"sum", "prod", "mean", "amax", "amin"}; int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("reduction(%d)", uint8(r))
}

// writing are the operands of a write along a dimension.
type writing struct {
	axis   int
	t, idx *Tensor
	src    *Tensor // of idx's shape; nil: it writes a number
}

// writing checks operands. What idx has no places for is cut off src.
func (t *Tensor) writing(op string, axis int, idx, src *Tensor) *writing {
	names := []string{"the value", "the indices", "the source"}
	if givenAll(op, names, t, idx); src != nil {
		src.given(op, names[2])
	}
	w := &writing{axis: t.axis(op, axis)}
	in := allInside(op, t, idx.indices(op), src)
	w.t, w.idx = in[0], in[1]
	if src != nil {
		w.t, src = w.t.promotedTo(op, in[2])
		w.src = src.cutTo(op, w.idx.Shape())
	}
	if w.idx.Rank() != t.Rank() {
		raise(op, "give indices of as many dimensions", "indices of shape %v for shape %v", idx.Shape(), t.Shape())
	}
	for d, n := range w.idx.Shape() {
		if d != w.axis && n > t.Dim(d) {
			raise(op, "beside the dimension that is written along they may not be larger", "indices of shape %v for shape %v", idx.Shape(), t.Shape())
		}
	}
	return w
}

// promotedTo is t and src in t's dtype, or where PyTorch's autocast widens the op's operands in the wider one's.
func (t *Tensor) promotedTo(op string, src *Tensor) (target, source *Tensor) {
	e := joinAll(op, []*Tensor{t, src})
	widens := op == "IndexPut" && !e.cpuLists || op == "IndexCopy" && e.cpuLists
	if widens && e.policy != dtype.Invalid && t.policed() && src.policed() {
		t, src = promoted(t, src)
	}
	if category(src.DType()) > category(t.DType()) {
		raise(op, "convert with Cast", "%s into %s", src.typ, t.typ)
	}
	return t, src.Cast(t.DType())
}

// cutTo is the first elements of each dimension.
func (t *Tensor) cutTo(op string, shape []int) *Tensor {
	if len(shape) != t.Rank() {
		raise(op, "give a source of as many dimensions", "a source of shape %v for indices of shape %v", t.Shape(), shape)
	}
	for d, n := range shape {
		if n > t.Dim(d) {
			raise(op, "there must be a source for each index", "a source of shape %v for indices of shape %v", t.Shape(), shape)
		}
		t = t.Slice(d, 0, n)
	}
	return t
}

// Scatter is t with src at idx along a dimension: out[…idx[…j…]…] = src[…j…].
func (t *Tensor) Scatter(axis int, idx, src *Tensor) *Tensor {
	src.given("Scatter", "the source")
	w := t.writing("Scatter", axis, idx, src)
	if idx.Size() == 0 {
		return w.t.Clone()
	}
	return w.t.Env().Tidy(func(e *Env) *Tensor {
		value, hit := w.inside(e).last(nil, false)
		return Where(hit, value, w.t.inside(e))
	})
}

// ScatterScalar is t with the number v at idx along a dimension.
func (t *Tensor) ScatterScalar(axis int, idx *Tensor, v float64) *Tensor {
	w := t.writing("ScatterScalar", axis, idx, nil)
	return w.t.Env().Tidy(func(e *Env) *Tensor {
		return w.t.inside(e).MaskedFill(w.inside(e).count().GtScalar(0), v)
	})
}

// ScatterReduce is t with the values of src at idx along a dimension joined into its elements, or if includeSelf is false, put in
// place of those that they meet. The mean of integers is rounded down. Equal extremes share the gradient.
func (t *Tensor) ScatterReduce(axis int, idx, src *Tensor, by Reduction, includeSelf bool) *Tensor {
	src.given("ScatterReduce", "the source")
	if t.DType() == dtype.Bool || by > ReduceMin {
		raise("ScatterReduce", "it joins numbers by ReduceSum, ReduceProd, ReduceMean, ReduceMax or ReduceMin", "%s of %s", by, t.typ)
	}
	w := t.writing("ScatterReduce", axis, idx, src)
	if idx.Size() == 0 {
		return w.t.Clone()
	}
	return w.t.Env().Tidy(func(e *Env) *Tensor {
		w := w.inside(e)
		switch by {
		case ReduceProd:
			return w.product(includeSelf)
		case ReduceMax, ReduceMin:
			return w.extreme(by == ReduceMin, includeSelf)
		}
		return w.sum(by == ReduceMean, includeSelf)
	})
}

func (w *writing) inside(e *Env) *writing {
	c := *w
	if c.t, c.idx = w.t.inside(e), w.idx.inside(e); w.src != nil {
		c.src = w.src.inside(e)
	}
	return &c
}

// box is the shape of what can be written: t's along the dimension, elsewhere that of the indices.
func (w *writing) box() []int {
	shape := slices.Clone(w.idx.Shape())
	shape[w.axis] = w.t.Dim(w.axis)
	return shape
}

// padded fills what lies beyond the box.
func (w *writing) padded(t *Tensor) *Tensor {
	for d, n := range w.t.Shape() {
		if n > t.Dim(d) {
			t = t.Pad(d, 0, n-t.Dim(d), 0)
		}
	}
	return t
}

// count is how many go to each element of t, in i64.
func (w *writing) count() *Tensor {
	none := w.t.Env().full(ir.Dense(dtype.I64, w.t.Shape()...), 0)
	return none.ScatterAdd(w.axis, w.idx, w.idx.FullLike(1))
}

// last is the source that is the last to go to each element of t, of those with the greatest key, or the least, if there are keys; and
// whether there is one.
func (w *writing) last(key *Tensor, least bool) (value, hit *Tensor) {
	return w.from(w.src, key, w.idx, least)
}

// from is what src has where the last of the indices lies, as [Tensor.lastAt] finds it.
func (w *writing) from(src, key, idx *Tensor, least bool) (value, hit *Tensor) {
	place, hit := idx.lastAt(w.axis, w.box(), key, least)
	return w.padded(src.Gather(w.axis, place)), w.padded(hit)
}

// lastAt has for each place of a shape the number, of those of the indices t along a dimension, of the last that names it, of those with the
// greatest key, or the least, if there are keys; and whether there is one.
func (t *Tensor) lastAt(axis int, shape []int, key *Tensor, least bool) (number, hit *Tensor) {
	a := ir.Attr{Axis: int8(axis), Out: ir.Dense(dtype.I64, shape...)}
	if key == nil {
		out := apply(ir.LastAt, a, ir.Params{}, t)
		return out[0], out[1]
	}
	if least {
		a.Flag = ir.Descending
	}
	out := apply(ir.LastAt, a, ir.Params{}, key.quiet(), t)
	return out[0], out[1]
}

func (w *writing) sum(mean, includeSelf bool) *Tensor {
	t, src := w.t, w.src
	if mean {
		t, src = t.widened(), src.widened()
	}
	var n *Tensor
	if mean || !includeSelf {
		n = w.count()
	}
	if !includeSelf {
		t = t.MaskedFill(n.GtScalar(0), 0)
	}
	sum := t.ScatterAdd(w.axis, w.idx, src)
	if !mean {
		return sum
	}
	if includeSelf {
		n = n.AddScalar(1)
	}
	if n = n.Clamp(1, inf).Cast(sum.DType()); sum.DType().IsFloat() {
		return sum.Div(n).narrowed(w.t)
	}
	return sum.FloorDiv(n)
}

// product multiplies what goes to one place in rounds, each of which joins twice as many: no element is divided by, so that
// gradients hold where there are zeros.
func (w *writing) product(includeSelf bool) *Tensor {
	to, order := w.idx.quiet().sorted("ScatterReduce", w.axis, false, 0)
	run, n := w.src.widened().Gather(w.axis, order), to.Dim(w.axis)
	for k := 1; k < n; k *= 2 {
		same := to.Slice(w.axis, k, n).Eq(to.Slice(w.axis, 0, n-k))
		before := Where(same, run.Slice(w.axis, 0, n-k), run.env.full(ir.Dense(run.DType()), 1))
		run = Cat(w.axis, run.Slice(w.axis, 0, k), run.Slice(w.axis, k, n).Mul(before))
	}
	value, hit := w.from(run, nil, to, false)
	one := value.env.full(ir.Dense(value.DType()), 1)
	t := w.t.widened()
	if !includeSelf {
		t = Where(hit, one, t)
	}
	return t.Mul(Where(hit, value, one)).narrowed(w.t)
}

// extreme takes the sources with the greatest values, or the least.
func (w *writing) extreme(least, includeSelf bool) *Tensor {
	keep := Join(w.t, w.src).env.Recording()
	f := Func{
		Forward: func(c *Call, in []*Tensor) []*Tensor {
			w := &writing{axis: w.axis, t: in[0], idx: w.idx.inside(in[0].env), src: in[1]}
			value, hit := w.last(w.src, least)
			result := value
			if includeSelf && least {
				result = w.t.Minimum(value)
			} else if includeSelf {
				result = w.t.Maximum(value)
			}
			if result = Where(hit, result, w.t); !keep {
				return []*Tensor{result}
			}
			own := w.t.Eq(result)
			if !includeSelf {
				own = own.And(hit.Not())
			}
			c.Save(w.idx, own, w.src.Eq(result.Gather(w.axis, w.idx)), hit)
			return []*Tensor{result}
		},
		Backward: func(c *Call, grads []*Tensor) []*Tensor {
			kept := c.Saved()
			self, src := shareExtreme(w.axis, kept[0], kept[1], kept[2], grads[0])
			if !includeSelf {
				self = Where(kept[3], self.ZerosLike(), self)
			}
			return []*Tensor{self, src}
		},
	}
	return f.Apply(w.t, w.src)[0]
}

// shareExtreme divides g among the elements and sources that are equal to the result, which own and found tell.
func shareExtreme(axis int, idx, own, found, g *Tensor) (self, src *Tensor) {
	wide := g.widened()
	n := own.Cast(wide.DType()).ScatterAdd(axis, idx, found.Cast(wide.DType()))
	none := wide.env.full(ir.Dense(wide.DType()), 0)
	self = Where(own, wide, none).Div(n)
	src = Where(found, wide.Gather(axis, idx), none).Div(n.Gather(axis, idx))
	return self.narrowed(g), src.narrowed(g)
}

// MaskedScatter is t with the elements of src, in row-major order, where mask, a bool that broadcasts with t, holds. There must be
// as many as places.
func (t *Tensor) MaskedScatter(mask, src *Tensor) *Tensor {
	const op = "MaskedScatter"
	givenAll(op, []string{"the value", "the mask", "the source"}, t, mask, src)
	if mask.DType() != dtype.Bool {
		raise(op, "compare to get one", "the mask is %s, not bool", mask.DType())
	}
	shape, err := ir.Broadcast(t.Shape(), mask.Shape())
	if err != nil {
		raise(op, "sizes must be equal, or 1 where one is repeated", "shapes %v and %v do not broadcast", t.Shape(), mask.Shape())
	}
	in := allInside(op, t, mask.expand(shape), src)
	t, src = in[0].promotedTo(op, in[2])
	return t.Env().Tidy(func(e *Env) *Tensor {
		t, mask := t.inside(e).expand(shape), in[1].inside(e)
		if t.Size() == 0 {
			return t.Clone()
		}
		// Places that take none take what is put in front.
		front := src.inside(e).Reshape(-1).Pad(0, 1, 0, 0)
		at := Where(mask, mask.Reshape(-1).CumSum(0).Reshape(shape...), e.full(ir.Dense(dtype.I64), 0))
		return Where(mask, front.IndexSelect(0, at.Reshape(-1)).Reshape(shape...), t)
	})
}

// SliceScatter is t with src in place of the elements from lo to below hi of a dimension, every step-th: what [Tensor.SliceStep]
// gives of it.
func (t *Tensor) SliceScatter(src *Tensor, axis, lo, hi, step int) *Tensor {
	return t.withView("SliceScatter", src, func(t *Tensor) *Tensor { return t.SliceStep(axis, lo, hi, step) })
}

// SelectScatter is t with src in place of element i of a dimension: what [Tensor.Select] gives of it.
func (t *Tensor) SelectScatter(src *Tensor, axis, i int) *Tensor {
	return t.withView("SelectScatter", src, func(t *Tensor) *Tensor { return t.Select(axis, i) })
}

// DiagonalScatter is t with src in place of the k-th diagonal of dimensions i and j: what [Tensor.Diagonal] gives of it.
func (t *Tensor) DiagonalScatter(src *Tensor, k, i, j int) *Tensor {
	i, j = t.axis("DiagonalScatter", i), t.axis("DiagonalScatter", j)
	if i == j {
		raise("DiagonalScatter", "name two dimensions", "dimension %d twice of shape %v", i, t.Shape())
	}
	order, back := lastTwo(t.Rank(), i, j)
	rows := t.Permute(order...).withView("DiagonalScatter", src, func(t *Tensor) *Tensor { return t.Diagonal(k, -2, -1) })
	return rows.Permute(back...)
}

// lastTwo is the order of dimensions in which i and j are the last two, and the order that undoes it.
func lastTwo(rank, i, j int) (order, back []int) {
	for d := range rank {
		if d != i && d != j {
			order = append(order, d)
		}
	}
	order = append(order, i, j)
	back = make([]int, len(order))
	for k, d := range order {
		back[d] = k
	}
	return order, back
}

// withView is a copy of t into whose view src is written.
func (t *Tensor) withView(op string, src *Tensor, view func(*Tensor) *Tensor) *Tensor {
	givenAll(op, []string{"the value", "the source"}, t, src)
	in := allInside(op, t, src)
	t, src = in[0].promotedTo(op, in[1])
	out := t.Clone()
	v := view(out)
	if !slices.Equal(v.Shape(), src.Shape()) {
		raise(op, "give one of the view's shape", "a source of shape %v for a view of shape %v", src.Shape(), v.Shape())
	}
	v.CopyInPlace(src)
	return out
}
