package sorting

import (
	"cmp"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestBy compares with package slices, on few different keys, so that most elements have equals.
func TestBy(t *testing.T) {
	type pair struct{ key, was int }
	byKey := func(a, b pair) int { return cmp.Compare(a.key, b.key) }
	rnd := testutil.Rand(t)
	for _, n := range []int{0, 1, 2, 3, 12, 13, 50, 1009} {
		for keys := 1; keys <= n+1; keys += n/3 + 1 {
			x := make([]pair, n)
			for i := range x {
				x[i] = pair{rnd.IntN(keys), i}
			}
			want := slices.Clone(x)
			slices.SortStableFunc(want, byKey)
			if By(x, byKey); !slices.Equal(x, want) {
				t.Fatalf("%d elements of %d keys: %v, want %v", n, keys, x, want)
			}
		}
	}
}
