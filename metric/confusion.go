package metric

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/tensor"
)

// Confusion counts which class was taken for which.
type Confusion struct {
	classes int
	counts  *tensor.Tensor // int64 [classes·classes], in the root scope
}

// NewConfusion makes an empty matrix on env's device.
func NewConfusion(env *tensor.Env, classes int) *Confusion {
	return &Confusion{classes, env.Tidy(func(e *tensor.Env) *tensor.Tensor {
		return tensor.NewBuffer(e.FullOf(dtype.I64, 0, classes*classes))
	})}
}

// Add counts a batch: logits [..., classes] against labels [...] from 0 to classes-1. It waits for nothing.
func (c *Confusion) Add(logits, labels *tensor.Tensor) {
	if logits.Dim(-1) != c.classes {
		tensor.Raise("Confusion.Add", "the last dimension is the classes", "logits of shape %v for %d classes", logits.Shape(), c.classes)
	}
	apart(logits, func(logits *tensor.Tensor) {
		cell := labels.In(logits.Env()).Cast(dtype.I64).Scale(float64(c.classes)).Add(logits.ArgMax(-1)).Flatten(0)
		c.counts.CopyInPlace(c.counts.ScatterAdd(0, cell, cell.FullLike(1)))
	})
}

// takes tells whether the matrix is one of logits like these.
func (c *Confusion) takes(logits *tensor.Tensor) bool {
	return c.classes == logits.Dim(-1) && beside(c.counts, logits)
}

// clear empties the matrix, which keeps its memory.
func (c *Confusion) clear() { clearSums(c.counts) }

// Counts is the matrix: a row per label, a column per prediction. It waits for the device.
func (c *Confusion) Counts() [][]int {
	flat := c.counts.Floats()
	out := make([][]int, c.classes)
	for i := range out {
		out[i] = make([]int, c.classes)
		for j := range out[i] {
			out[i][j] = int(flat[i*c.classes+j])
		}
	}
	return out
}

// Accuracy is the share on the diagonal, NaN when nothing was counted.
func (c *Confusion) Accuracy() float64 {
	right, all := 0, 0
	for i, row := range c.Counts() {
		right += row[i]
		for _, n := range row {
			all += n
		}
	}
	return ratio(right, all)
}

// Recall is the share of each class's samples that were recognised, NaN for a class without any.
func (c *Confusion) Recall() []float64 {
	out := make([]float64, c.classes)
	for i, row := range c.Counts() {
		all := 0
		for _, n := range row {
			all += n
		}
		out[i] = ratio(row[i], all)
	}
	return out
}

// Precision is the share of the predictions of each class that were right, NaN for a class never predicted.
func (c *Confusion) Precision() []float64 {
	counts := c.Counts()
	out := make([]float64, c.classes)
	for j := range out {
		all := 0
		for i := range counts {
			all += counts[i][j]
		}
		out[j] = ratio(counts[j][j], all)
	}
	return out
}

func ratio(n, of int) float64 {
	if of == 0 {
		return math.NaN()
	}
	return float64(n) / float64(of)
}

// String is the matrix as a table, with the recall of each class.
func (c *Confusion) String() string {
	t := render.Table{Header: []string{"label"}, Right: []bool{false}}
	for j := range c.classes {
		t.Header, t.Right = append(t.Header, fmt.Sprint(j)), append(t.Right, true)
	}
	t.Header, t.Right = append(t.Header, "recall"), append(t.Right, true)
	recall := c.Recall()
	for i, row := range c.Counts() {
		cells := []string{fmt.Sprint(i)}
		for _, n := range row {
			cells = append(cells, fmt.Sprint(n))
		}
		t.Rows = append(t.Rows, append(cells, render.Percent(recall[i])))
	}
	return t.String(200)
}
