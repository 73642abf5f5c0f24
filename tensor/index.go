package tensor

import (
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Gather picks along a dimension: out[…i…] = t[…idx[…i…]…]. idx has t's rank.
func (t *Tensor) Gather(axis int, idx *Tensor) *Tensor {
	return apply2(ir.Gather, ir.Attr{Axis: int8(t.axis("Gather", axis))}, ir.Params{}, t, idx.indices("Gather"))
}

// ScatterAdd is t with src added at idx along a dimension.
func (t *Tensor) ScatterAdd(axis int, idx, src *Tensor) *Tensor {
	attr := ir.Attr{Axis: int8(t.axis("ScatterAdd", axis))}
	src.present()
	e := joinAll("ScatterAdd", []*Tensor{t, idx, src})
	t, src = t.inside(e), src.inside(e)
	if e.policy != dtype.Invalid && t.policed() && src.policed() {
		t, src = promoted(t, src)
	}
	src = src.Cast(t.DType())
	if idx.Rank() == src.Rank() && !idx.SameShape(src) { // as in PyTorch the first of them
		src = src.cutTo("ScatterAdd", idx.Shape())
	}
	return apply3(ir.ScatterAdd, attr, ir.Params{}, t, idx.indices("ScatterAdd"), src)
}

// Embedding picks rows of the table t[v,d]: out[…] = t[idx[…]].
func (t *Tensor) Embedding(idx *Tensor) *Tensor {
	givenAll("Embedding", []string{"the table", "the indices"}, t, idx)
	return apply2(ir.Embedding, ir.Attr{}, ir.Params{}, t, idx.indices("Embedding"))
}

// IndexSelect picks entries of a dimension by a list of indices.
func (t *Tensor) IndexSelect(axis int, idx *Tensor) *Tensor {
	axis = t.axis("IndexSelect", axis)
	if idx.Rank() != 1 {
		raise("IndexSelect", "give a list of indices", "indices of shape %v", idx.Shape())
	}
	t, idx = together("IndexSelect", t, idx)
	front := t.Transpose(0, axis)
	rest := slices.Clone(front.Shape()[1:])
	rows := front.rows("IndexSelect", len(rest)).Embedding(idx)
	return rows.Reshape(append([]int{idx.Dim(0)}, rest...)...).Transpose(0, axis)
}

// indices is t as i64. Numbers with a fraction are no indices: they would be cut off in silence.
func (t *Tensor) indices(op string) *Tensor {
	if t.DType().IsFloat() || t.DType() == dtype.Bool {
		raise(op, "convert with Cast(dtype.I64)", "indices and labels are integers, not %s", t.DType())
	}
	return t.Cast(dtype.I64)
}
