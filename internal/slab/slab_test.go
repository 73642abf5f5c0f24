package slab_test

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/slab"
)

// TestApart: values and lists are zero or as they were given, whatever is written to or appended to the others.
func TestApart(t *testing.T) {
	var s slab.Slab[int]
	var values []*int
	var lists, want [][]int
	for i := range 2000 {
		v := s.New()
		if *v != 0 {
			t.Fatalf("value %d is %d when it is new", i, *v)
		}
		*v = i
		values = append(values, v)
		given := slices.Repeat([]int{-i}, i%300)
		lists = append(lists, s.Clone(given))
		want = append(want, given)
	}
	for i := range lists {
		_ = append(lists[i], 7, 7, 7)
	}
	for i := range lists {
		if *values[i] != i || !slices.Equal(lists[i], want[i]) {
			t.Fatalf("after writes to others, value %d is %d and list %d is %v", i, *values[i], i, lists[i])
		}
	}
}

// TestFew: values take few allocations.
func TestFew(t *testing.T) {
	var s slab.Slab[[4]string]
	thousand := func() {
		for range 1000 {
			s.New()
		}
	}
	if n := testing.AllocsPerRun(10, thousand); n > 5 {
		t.Errorf("%v allocations for a thousand values", n)
	}
	if c := s.Clone(nil); c != nil {
		t.Errorf("a copy of no list is %v", c)
	}
}
