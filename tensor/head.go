package tensor

import "github.com/warpline-ml/warpline/internal/ir"

// LinearCrossEntropy is the CrossEntropy of t.Linear(w, nil) against labels[n], for t[n,k] and w[c,k], by an op that makes
// the logits of some rows at a time and keeps none. Its gradient makes them again; that of [Tensor.LinearCrossEntropyTotal]
// need not.
func (t *Tensor) LinearCrossEntropy(w, labels *Tensor, smoothing float64, ignore int) *Tensor {
	return t.head(0, w, labels, smoothing, ignore)[0]
}

// LinearCrossEntropyTotal is the sum of LinearCrossEntropy's losses, and the number of rows that are not labelled ignore.
// The op makes the gradients of t and w with the loss, where these are recorded, so that Backward only scales them. Second
// derivatives make all logits, in float32.
func (t *Tensor) LinearCrossEntropyTotal(w, labels *Tensor, smoothing float64, ignore int) (total, count *Tensor) {
	out := t.head(ir.Total, w, labels, smoothing, ignore)
	return out[0], out[1].Detach()
}

// LinearCrossEntropyMean is the mean of LinearCrossEntropy's losses over the rows that are not labelled ignore, NaN where
// there are none. Of the gradients holds what LinearCrossEntropyTotal says.
func (t *Tensor) LinearCrossEntropyMean(w, labels *Tensor, smoothing float64, ignore int) *Tensor {
	return t.head(ir.Mean, w, labels, smoothing, ignore)[0]
}

func (t *Tensor) head(form ir.Flag, w, labels *Tensor, smoothing float64, ignore int) []*Tensor {
	const name = "LinearCrossEntropy"
	givenAll(name, []string{"the hidden values", "the weight", "the labels"}, t, w, labels)
	if t.Rank() != 2 || w.Rank() != 2 || t.Dim(1) != w.Dim(1) || labels.Rank() != 1 || labels.Dim(0) != t.Dim(0) {
		raise(name, "hidden values are [rows, width], the weight is [classes, width], labels are [rows]",
			"hidden values %v with weight %v and labels %v", t.Shape(), w.Shape(), labels.Shape())
	}
	in := []*Tensor{t, w, labels.indices(name)}
	if form != 0 {
		form |= recorded(name, in)
	}
	return apply(ir.LinearCrossEntropy, ir.Attr{Flag: form}, ir.Scalars(smoothing, float64(ignore)), in...)
}

// recorded are the flags of the gradients that an op of hidden values and a weight will be asked for.
func recorded(name string, in []*Tensor) (f ir.Flag) {
	e := joinAll(name, in)
	for i, flag := range [...]ir.Flag{ir.GradX, ir.GradW} {
		in[i] = in[i].current(name, e)
		if _, ok := in[i].edge(e); ok {
			f |= flag
		}
	}
	return f
}
