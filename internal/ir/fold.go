package ir

import (
	"cmp"
	"math"
	"slices"
)

// FoldOrder is the dimensions of an operand of a reduction as engines walk them: by falling stride, expanded ones first. The
// strides are those of the result, row-major, by dimension of t; 0 for the reduced ones, which axes names.
func (t *Type) FoldOrder(axes uint16) (order []int, result [MaxRank]int) {
	step := 1
	order = make([]int, 0, t.Rank())
	for d := t.Rank() - 1; d >= 0; d-- {
		if axes>>d&1 == 0 {
			result[d] = step
			step *= max(t.Dim(d), 1)
		}
	}
	for d := range t.Rank() {
		order = append(order, d)
	}
	distance := func(d int) int {
		if s := t.Strides()[d]; s > 0 {
			return s
		}
		return math.MaxInt
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(distance(b), distance(a)) })
	return order, result
}
