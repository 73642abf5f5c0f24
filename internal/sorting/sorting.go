// Package sorting sorts slices of structs at the price of little code.
//
// Each type of elements that slices.SortFunc meets has the whole of pattern-defeating quicksort compiled for it, some 25 KB of a
// binary. Here only integers are sorted: the places of the elements. What sorts millions of elements in a loop of its own should
// go on calling package slices.
package sorting

import "slices"

// By sorts x so that compare, as in [slices.SortFunc], is not above 0 for neighbours. Equal elements keep their order. It takes as
// much memory again as x has.
func By[T any](x []T, compare func(a, b T) int) {
	places := sorted(len(x), func(i, j int) int { return compare(x[i], x[j]) })
	was := append([]T(nil), x...)
	for i, place := range places {
		x[i] = was[place]
	}
}

// sorted are the numbers below n in order, equal ones by size.
func sorted(n int, compare func(i, j int) int) []int {
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(i, j int) int {
		if c := compare(i, j); c != 0 {
			return c
		}
		return i - j
	})
	return places
}
