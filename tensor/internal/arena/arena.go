// Package arena places values, of which it knows the lifetimes, in one piece of memory.
package arena

import (
	"cmp"
	"slices"
)

// Value is memory that is used from one point of a program to another, both included.
type Value struct {
	Size        int64 // bytes
	First, Last int
}

// Plan gives each value a place, a multiple of align: those that are used at the same time lie apart. Large ones are placed
// first, each at the lowest place that is free (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
// Inference", 2020, greedy by size). total is how many bytes that takes.
func Plan(values []Value, align int64) (places []int64, total int64) {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(values[b].Size, values[a].Size), cmp.Compare(values[a].First, values[b].First))
	})
	places = make([]int64, len(values))
	var placed []int // by place
	for _, i := range order {
		at := int64(0)
		for _, j := range placed {
			end := places[j] + aligned(values[j].Size, align)
			if !values[i].meets(values[j]) || end <= at {
				continue
			}
			if at+values[i].Size <= places[j] {
				break
			}
			at = end
		}
		places[i] = at
		k, _ := slices.BinarySearchFunc(placed, at, func(j int, at int64) int { return cmp.Compare(places[j], at) })
		placed = slices.Insert(placed, k, i)
		total = max(total, at+aligned(values[i].Size, align))
	}
	return places, total
}

func aligned(n, align int64) int64 { return (n + align - 1) / align * align }

// meets tells whether two values are used at the same time.
func (v Value) meets(w Value) bool { return v.First <= w.Last && w.First <= v.Last }
