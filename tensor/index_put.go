package tensor

import (
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// IndexAdd is t with the entries of src added to those of a dimension that idx, a list, names. src has t's shape, and along the
// dimension as many entries as idx.
func (t *Tensor) IndexAdd(axis int, idx, src *Tensor) *Tensor {
	return t.indexed("IndexAdd", axis, idx, src, (*Tensor).addRows)
}

// IndexCopy is t with the entries of src in place of those of a dimension that idx, a list, names; of several the last.
func (t *Tensor) IndexCopy(axis int, idx, src *Tensor) *Tensor {
	return t.indexed("IndexCopy", axis, idx, src, (*Tensor).putRows)
}

// IndexFill is t with the number v in the entries of a dimension that idx, a list, names; those below 0 count from the end.
func (t *Tensor) IndexFill(axis int, idx *Tensor, v float64) *Tensor {
	axis = t.listed("IndexFill", axis, idx)
	t, idx = together("IndexFill", t, idx.indices("IndexFill"))
	return t.Env().Tidy(func(e *Env) *Tensor {
		n := t.Dim(axis)
		at := idx.inside(e).Reshape(-1).fromEnd(n)
		hits := e.full(ir.Dense(dtype.I64, n), 0).ScatterAdd(0, at, at.FullLike(1))
		shape := slices.Repeat([]int{1}, t.Rank())
		if t.Rank() > 0 {
			shape[axis] = n
		}
		return t.inside(e).MaskedFill(hits.GtScalar(0).Reshape(shape...), v)
	})
}

// listed checks a list of indices of a dimension.
func (t *Tensor) listed(op string, axis int, idx *Tensor) int {
	givenAll(op, []string{"the value", "the indices"}, t, idx)
	if idx.Rank() > 1 || t.Rank() == 0 {
		raise(op, "give a list of indices of a dimension", "indices of shape %v for shape %v", idx.Shape(), t.Shape())
	}
	return t.axis(op, axis)
}

// indexed writes rows of src into rows of t.
func (t *Tensor) indexed(op string, axis int, idx, src *Tensor, write func(t, at, src *Tensor) *Tensor) *Tensor {
	axis = t.listed(op, axis, idx)
	src.given(op, "the source")
	want := slices.Clone(t.Shape())
	if want[axis] = idx.Size(); !slices.Equal(want, src.Shape()) {
		raise(op, "it has the value's shape, and as many entries as there are indices", "a source of shape %v for %d indices of dimension %d of shape %v", src.Shape(), idx.Size(), axis, t.Shape())
	}
	in := allInside(op, t, idx.indices(op), src)
	t, src = in[0].promotedTo(op, in[2])
	return t.Env().Tidy(func(e *Env) *Tensor {
		front := t.inside(e).Transpose(0, axis)
		rows := front.rows(op, t.Rank()-1)
		from := src.inside(e).Transpose(0, axis).rows(op, t.Rank()-1)
		return write(rows, in[1].inside(e).Reshape(-1), from).Reshape(front.Shape()...).Transpose(0, axis)
	})
}

// addRows adds row i of src to row at[i]; of bools it is true where one is.
func (t *Tensor) addRows(at, src *Tensor) *Tensor {
	switch {
	case src.Size() == 0:
		return t.Clone()
	case t.DType() == dtype.Bool:
		return t.Cast(dtype.I64).addRows(at, src.Cast(dtype.I64)).Cast(dtype.Bool)
	}
	return t.Add(apply2(ir.EmbeddingGrad, ir.Attr{Out: t.typ.AsDense()}, ir.Params{}, src, at))
}

// putRows puts row i of src in place of row at[i].
func (t *Tensor) putRows(at, src *Tensor) *Tensor {
	if src.Size() == 0 {
		return t.Clone()
	}
	number, hit := at.lastAt(0, []int{t.Dim(0)}, nil, false)
	return Where(hit.Unsqueeze(1), src.Embedding(number), t)
}

// fromEnd counts indices below 0 from the end of n.
func (t *Tensor) fromEnd(n int) *Tensor {
	return Where(t.LtScalar(0), t.AddScalar(float64(n)), t)
}

// places is what a list of indices, one for each of the first dimensions, means: x[a, b, …]. The dimensions that they name come
// first in order, which permutes a value, and those that they do not name after.
type places struct {
	named, order []int
	shape        []int   // of the indices together
	at           *Tensor // i64, flat: places among the named dimensions
	lead         int     // dimensions that are not named before those of the indices in a result
}

// placesOf joins indices of t. A bool marks places of as many dimensions as it has; nil is a whole dimension.
func (t *Tensor) placesOf(op string, indices []*Tensor) *places {
	list := t.unmasked(op, indices)
	p := &places{}
	shape := []int{}
	for d, idx := range list {
		if idx == nil {
			continue
		}
		var err error
		if shape, err = ir.Broadcast(shape, idx.Shape()); err != nil {
			raise(op, "sizes must be equal, or 1 where one is repeated", "indices of shapes %v and %v do not broadcast", shape, idx.Shape())
		}
		p.named = append(p.named, d)
	}
	if len(p.named) == 0 {
		raise(op, "give indices of at least one dimension", "there is none for shape %v", t.Shape())
	}
	p.shape = shape
	if first := p.named[0]; p.named[len(p.named)-1]-first == len(p.named)-1 {
		p.lead = first
	}
	p.order = slices.Clone(p.named)
	for d := range t.Rank() {
		if !slices.Contains(p.named, d) {
			p.order = append(p.order, d)
		}
	}
	p.at = t.flatPlaces(p, list)
	return p
}

// flatPlaces adds up the places along each named dimension, which a table of multiples checks.
func (t *Tensor) flatPlaces(p *places, list []*Tensor) *Tensor {
	return t.Env().Tidy(func(e *Env) *Tensor {
		var at *Tensor
		step := 1
		for _, d := range slices.Backward(p.named) {
			n := t.Dim(d)
			idx := list[d].inside(e).expand(p.shape).Reshape(-1).fromEnd(n)
			along := e.create(ir.Iota, ir.Dense(dtype.I64, n), ir.Scalars(0, float64(step))).IndexSelect(0, idx)
			if step *= n; at == nil {
				at = along
			} else {
				at = at.Add(along)
			}
		}
		return at
	})
}

// unmasked has for each dimension its indices or nil: those of bools are found by the host, a sync point.
func (t *Tensor) unmasked(op string, indices []*Tensor) (list []*Tensor) {
	for _, idx := range indices {
		switch {
		case idx == nil:
			list = append(list, nil)
		case idx.DType() == dtype.Bool:
			d := len(list)
			if d+idx.Rank() > t.Rank() || !slices.Equal(idx.Shape(), t.Shape()[d:d+idx.Rank()]) || idx.Rank() == 0 {
				raise(op, "a mask has the shape of the dimensions that it stands for", "a mask of shape %v for dimensions from %d on of shape %v", idx.Shape(), d, t.Shape())
			}
			list = append(list, idx.NonZero().Unbind(1)...)
		default:
			list = append(list, idx.indices(op))
		}
	}
	if len(list) > t.Rank() {
		raise(op, "give one for each dimension, or fewer", "%d indices for shape %v", len(list), t.Shape())
	}
	return list
}

// table is t as rows of what each place has.
func (p *places) table(op string, t *Tensor) *Tensor {
	return t.Permute(p.order...).rows(op, t.Rank()-len(p.named))
}

// rest is the sizes of dimensions that are not named.
func (p *places) rest(t *Tensor) (sizes []int) {
	for _, d := range p.order[len(p.named):] {
		sizes = append(sizes, t.Dim(d))
	}
	return sizes
}

// turned moves the dimensions of indices from the front to their place in a result, or back.
func (p *places) turned(t *Tensor, back bool) *Tensor {
	n := len(p.shape)
	from, to := 0, p.lead
	if back {
		from, to = to, from
	}
	order := make([]int, 0, t.Rank())
	for d := range t.Rank() {
		if d < from || d >= from+n {
			order = append(order, d)
		}
	}
	for i := range n {
		order = slices.Insert(order, to+i, from+i)
	}
	return t.Permute(order...)
}

// Index is the elements at places that indices name, one for each of the first dimensions: PyTorch's x[a, b]. They broadcast; those
// below 0 count from the end; nil is a whole dimension. A bool marks places of as many dimensions as it has, which the host has to
// count: a sync point. The dimensions of the indices stand where those are that they name, or first where others lie between.
func (t *Tensor) Index(indices ...*Tensor) *Tensor {
	const op = "Index"
	t, indices = t.indexedBy(op, indices)
	p := t.placesOf(op, indices)
	return t.Env().Tidy(func(e *Env) *Tensor {
		t := t.inside(e)
		rest := p.rest(t)
		return p.turned(p.table(op, t).Embedding(p.at.inside(e)).Reshape(append(slices.Clone(p.shape), rest...)...), false)
	})
}

// IndexPut is t with values at the places that [Tensor.Index] would take them from, to whose shape they broadcast; of several for
// one place the last. If accumulate they are added.
func (t *Tensor) IndexPut(indices []*Tensor, values *Tensor, accumulate bool) *Tensor {
	const op = "IndexPut"
	values.given(op, "the values")
	t, indices = t.indexedBy(op, append(slices.Clone(indices), values))
	values, indices = indices[len(indices)-1], indices[:len(indices)-1]
	t, values = t.promotedTo(op, values)
	p := t.placesOf(op, indices)
	return t.Env().Tidy(func(e *Env) *Tensor {
		t, at := t.inside(e), p.at.inside(e)
		rest := p.rest(t)
		shape := slices.Insert(slices.Clone(rest), p.lead, p.shape...)
		if wide, err := ir.Broadcast(values.Shape(), shape); err != nil || !slices.Equal(wide, shape) {
			raise(op, "they must broadcast to the shape that Index gives", "values of shape %v for places of shape %v", values.Shape(), shape)
		}
		table := p.table(op, t)
		rows := p.turned(values.inside(e).expand(shape), true).rows(op, len(rest))
		if accumulate {
			table = table.addRows(at, rows)
		} else {
			table = table.putRows(at, rows)
		}
		back := make([]int, t.Rank())
		permuted := make([]int, t.Rank())
		for i, d := range p.order {
			back[d], permuted[i] = i, t.Dim(d)
		}
		return table.Reshape(permuted...).Permute(back...)
	})
}

// indexedBy is the operands in the env that they join in.
func (t *Tensor) indexedBy(op string, indices []*Tensor) (*Tensor, []*Tensor) {
	t.given(op, "the value")
	in := allInside(op, append([]*Tensor{t}, indices...)...)
	return in[0], in[1:]
}
