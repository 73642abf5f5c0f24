package tensor

import (
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Chunk cuts a dimension into n views of equal size; the last is smaller, and there are fewer, where n does not divide it.
func (t *Tensor) Chunk(axis, n int) []*Tensor {
	axis = t.axis("Chunk", axis)
	if n < 1 {
		raise("Chunk", "give 1 or more", "%d parts of shape %v", n, t.Shape())
	}
	size, step := t.Dim(axis), (t.Dim(axis)+n-1)/n
	if size == 0 {
		return t.Split(axis, make([]int, n)...)
	}
	var sizes []int
	for lo := 0; lo < size; lo += step {
		sizes = append(sizes, min(step, size-lo))
	}
	return t.Split(axis, sizes...)
}

// Unbind is the elements of a dimension, each a view without it.
func (t *Tensor) Unbind(axis int) []*Tensor {
	axis = t.axis("Unbind", axis)
	out := make([]*Tensor, t.Dim(axis))
	for i := range out {
		out[i] = t.Select(axis, i)
	}
	return out
}

// Tril is t[…,m,n] with 0 above the k-th diagonal: 0 is the main one, those above it are positive.
func (t *Tensor) Tril(k int) *Tensor { return t.triangle("Tril", (*Tensor).Le, k) }

// Triu is t[…,m,n] with 0 below the k-th diagonal.
func (t *Tensor) Triu(k int) *Tensor { return t.triangle("Triu", (*Tensor).Ge, k) }

func (t *Tensor) triangle(op string, keep func(column, row *Tensor) *Tensor, k int) *Tensor {
	if t.Rank() < 2 {
		raise(op, "give a matrix, or several", "shape %v", t.Shape())
	}
	return t.Env().Tidy(func(e *Env) *Tensor {
		row := e.Arange(t.Dim(-2)).AddScalar(float64(k)).Unsqueeze(1)
		return Where(keep(e.Arange(t.Dim(-1)), row), t.inside(e), e.full(ir.Dense(t.DType()), 0))
	})
}

// Diagonal is the k-th diagonal of dimensions i and j, as the last dimension of a view where strides allow.
func (t *Tensor) Diagonal(k, i, j int) *Tensor {
	i, j = t.axis("Diagonal", i), t.axis("Diagonal", j)
	if i == j {
		raise("Diagonal", "name two dimensions", "dimension %d twice of shape %v", i, t.Shape())
	}
	order, _ := lastTwo(t.Rank(), i, j)
	t = t.Permute(order...)
	m, n := t.Dim(-2), t.Dim(-1)
	start, count := k, min(m, n-k)
	if k < 0 {
		start, count = -k*n, min(m+k, n)
	}
	flat := t.Flatten(t.Rank() - 2)
	if count <= 0 {
		return flat.Slice(-1, 0, 0)
	}
	return flat.SliceStep(-1, start, start+(count-1)*(n+1)+1, n+1)
}

// Diag is the k-th diagonal of a matrix, or the matrix that has a vector as its k-th diagonal and 0 elsewhere.
func (t *Tensor) Diag(k int) *Tensor {
	switch t.Rank() {
	case 1:
		return t.DiagEmbed(k)
	case 2:
		return t.Diagonal(k, 0, 1)
	}
	raise("Diag", "give a vector or a matrix; Diagonal and DiagEmbed take more dimensions", "shape %v", t.Shape())
	return nil
}

// DiagEmbed is matrices [m,m] in place of the last dimension, whose values are their k-th diagonals, and 0 elsewhere.
func (t *Tensor) DiagEmbed(k int) *Tensor {
	axis := t.axis("DiagEmbed", -1)
	c := t.Dim(-1)
	m := c + max(k, -k)
	shape := append(slices.Clone(t.Shape()[:axis]), m, m)
	if c == 0 {
		return t.Env().full(ir.Dense(t.DType(), shape...), 0)
	}
	start := max(k, -k*m)
	last := start + (c-1)*(m+1)
	a := ir.Attr{Axis: int8(axis), Dims: [ir.MaxRank]int32{int32(start), int32(m*m - 1 - last), int32(m)}}
	return t.apply1(ir.Pad, a, ir.Scalars(0)).Reshape(shape...)
}

// Roll moves elements n places on along a dimension; what leaves at its end enters at its start.
func (t *Tensor) Roll(n, axis int) *Tensor {
	size := t.Dim(axis)
	if size == 0 {
		return t
	}
	if n = (n%size + size) % size; n == 0 {
		return t
	}
	return Cat(axis, t.Slice(axis, size-n, size), t.Slice(axis, 0, size-n))
}

// Flip reverses dimensions.
func (t *Tensor) Flip(axes ...int) *Tensor {
	return t.Env().Tidy(func(e *Env) *Tensor {
		out := t.inside(e)
		for _, axis := range axes {
			n := t.Dim(axis)
			out = out.IndexSelect(axis, e.create(ir.Iota, ir.Dense(dtype.I64, n), ir.Scalars(float64(n-1), -1)))
		}
		return out
	})
}

// Repeat lays copies of t side by side, n of them along each dimension. More numbers than t has dimensions make new leading
// ones.
func (t *Tensor) Repeat(n ...int) *Tensor {
	lead := len(n) - t.Rank()
	if lead < 0 || slices.ContainsFunc(n, func(k int) bool { return k < 0 }) {
		raise("Repeat", "give a number from 0 for each dimension, those of new ones first", "%v times shape %v", n, t.Shape())
	}
	shape := append(slices.Repeat([]int{1}, lead), t.Shape()...)
	return t.Env().Tidy(func(e *Env) *Tensor {
		out := t.inside(e).Reshape(shape...)
		for i := len(n) - 1; i >= 0; i-- {
			out = out.spread(i, false, n[i])
		}
		return out
	})
}

// RepeatInterleave repeats each element of a dimension n times, one after the other.
func (t *Tensor) RepeatInterleave(n, axis int) *Tensor {
	axis = t.axis("RepeatInterleave", axis)
	if n < 0 {
		raise("RepeatInterleave", "give 0 or more", "%d times shape %v", n, t.Shape())
	}
	return t.spread(axis, true, n)
}

// spread repeats dimension axis n times: as a whole, or element by element.
func (t *Tensor) spread(axis int, each bool, n int) *Tensor {
	if n == 1 {
		return t
	}
	shape := slices.Clone(t.Shape())
	outer, size, inner := 1, shape[axis], 1
	for i, d := range shape {
		switch {
		case i < axis:
			outer *= d
		case i > axis:
			inner *= d
		}
	}
	place, wide := 1, []int{outer, n, size, inner}
	if each {
		place, wide = 2, []int{outer, size, n, inner}
	}
	shape[axis] *= n
	return t.Reshape(outer, size, inner).Unsqueeze(place).Expand(wide...).Reshape(shape...)
}

// OneHot is i64 [..., classes] of labels: 1 at the place of each, 0 elsewhere. A label outside of [0, classes) has no 1.
func (t *Tensor) OneHot(classes int) *Tensor {
	if classes < 1 {
		raise("OneHot", "give the number of classes", "%d classes", classes)
	}
	return t.Env().Tidy(func(e *Env) *Tensor {
		return t.indices("OneHot").inside(e).Unsqueeze(-1).Eq(e.Arange(classes)).Cast(dtype.I64)
	})
}

// TakeAlong picks along a dimension as [Tensor.Gather] does, after t and idx broadcast in the other dimensions.
func (t *Tensor) TakeAlong(axis int, idx *Tensor) *Tensor {
	givenAll("TakeAlong", []string{"the value", "the indices"}, t, idx)
	axis = t.axis("TakeAlong", axis)
	if idx.Rank() != t.Rank() {
		raise("TakeAlong", "give indices of as many dimensions", "indices of shape %v for shape %v", idx.Shape(), t.Shape())
	}
	from, to := slices.Clone(t.Shape()), slices.Clone(idx.Shape())
	n, m := from[axis], to[axis]
	from[axis], to[axis] = 1, 1
	shape, err := ir.Broadcast(from, to)
	if err != nil {
		raise("TakeAlong", "sizes must be equal, or 1 where one is repeated", "indices of shape %v for shape %v", idx.Shape(), t.Shape())
	}
	t, idx = together("TakeAlong", t, idx)
	shape[axis] = n
	t = t.expand(slices.Clone(shape))
	shape[axis] = m
	return t.Gather(axis, idx.expand(shape))
}

// Linspace makes n float32 numbers from lo to hi, equally far apart, both among them.
func (e *Env) Linspace(lo, hi float64, n int) *Tensor {
	checkShape("Linspace", []int{n})
	if n == 1 {
		return e.Full(lo, 1)
	}
	return e.Tidy(func(e *Env) *Tensor { // each half from its end, so that both are exact
		step := (hi - lo) / float64(max(n-1, 1))
		first := (n + 1) / 2
		rise := e.create(ir.Iota, ir.Dense(dtype.F64, first), ir.Scalars(lo, step))
		fall := e.create(ir.Iota, ir.Dense(dtype.F64, n-first), ir.Scalars(hi, -step)).Flip(0)
		return Cat(0, rise, fall).Cast(dtype.F32)
	})
}

// Eye makes a float32 matrix with 1 on its diagonal and 0 elsewhere.
func (e *Env) Eye(rows, columns int) *Tensor {
	checkShape("Eye", []int{rows, columns})
	return e.Tidy(func(e *Env) *Tensor { return e.Arange(rows).Unsqueeze(1).Eq(e.Arange(columns)).Cast(dtype.F32) })
}

// Meshgrid expands vectors to grids of all their combinations: dimension i of each is vector i's.
func Meshgrid(ts ...*Tensor) []*Tensor {
	if len(ts) == 0 {
		raise("Meshgrid", "give at least one", "no vectors")
	}
	shape := make([]int, len(ts))
	for i, t := range ts {
		if shape[i] = t.Size(); t.Rank() > 1 {
			raise("Meshgrid", "give vectors", "shape %v", t.Shape())
		}
	}
	out := make([]*Tensor, len(ts))
	for i, t := range ts {
		own := slices.Repeat([]int{1}, len(ts))
		own[i] = t.Size()
		out[i] = t.Reshape(own...).Expand(shape...)
	}
	return out
}
