package table

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/rng"
)

// Split parts the rows at random: share of them, rounded, for training, and the rest. The same seed gives the same rows. Each part
// has at least one, and is in the table's order.
func (t *Table) Split(share float64, seed uint64) (train, rest []int, err error) {
	if err := t.canSplit(share, t.Len()); err != nil {
		return nil, nil, err
	}
	order := rng.Perm(t.Len(), rng.Key(seed))
	n := min(max(int(math.Round(share*float64(t.Len()))), 1), t.Len()-1)
	train, rest = sorted(order[:n]), sorted(order[n:])
	return train, rest, nil
}

// SplitBy is [Table.Split] with the same share of the rows of each value of a column, as near as whole rows can be: stratified.
// A value of which there are several rows is in both parts; one that is alone is for training.
func (t *Table) SplitBy(column string, share float64, seed uint64) (train, rest []int, err error) {
	c, err := t.Column(column)
	if err != nil {
		return nil, nil, err
	}
	if err := t.canSplit(share, t.Len()); err != nil {
		return nil, nil, err
	}
	groups := map[string][]int{}
	for _, i := range rng.Perm(t.Len(), rng.Key(seed)) {
		if c.IsMissing(i) {
			return nil, nil, advice.Failf("leave such rows out, as Present does, or split without it", "%s: no value to split by", t.at(i, column))
		}
		groups[c.Text(i)] = append(groups[c.Text(i)], i)
	}
	for _, rows := range groups {
		n := int(math.Round(share * float64(len(rows))))
		if len(rows) > 1 {
			n = min(n, len(rows)-1)
		}
		n = max(n, 1)
		train, rest = append(train, rows[:n]...), append(rest, rows[n:]...)
	}
	if len(rest) == 0 {
		return nil, nil, advice.Failf("split by a column whose values come more than once", "%s: every value of column %q is alone", t.name, column)
	}
	return sorted(train), sorted(rest), nil
}

func (t *Table) canSplit(share float64, n int) error {
	if !(share > 0 && share < 1) {
		return advice.Failf("give a share between 0 and 1, such as 0.8", "a share of %v for training", share)
	}
	if n < 2 {
		return advice.Failf("give more rows", "%s has %d row, which cannot be split", t.name, n)
	}
	return nil
}

func sorted(rows []int) []int {
	slices.Sort(rows)
	return rows
}
