package callsite

import "testing"

// TestAt: one place is one Site, others are others, and what a full set pushes out comes back equal.
func TestAt(t *testing.T) {
	var first, again *Site
	for i := range 2 {
		s := At(0)
		if again = s; i == 0 {
			first = s
		}
	}
	other := At(0)
	if first != again || *other == *first {
		t.Errorf("%v, then %v, elsewhere %v", first, again, other)
	}
	var want Site
	Capture(0, &want)
	for f, at := range map[string]*Site{"the call itself": At(0), "its caller": atCaller()} {
		if want[1] != at[1] || at.Frames()[0].Function != first.Frames()[0].Function {
			t.Errorf("%s: %v", f, at.Frames())
		}
	}
	var set [ways]*Site
	for i := range set {
		own := Site{1, uintptr(i)}
		set[i] = own.enter(&table[0])
	}
	for i := range set {
		if p := table[0][ways-1-i].Load(); p != set[i] || *p != (Site{1, uintptr(i)}) {
			t.Errorf("way %d has %v", ways-1-i, p)
		}
	}
}

//go:noinline
func atCaller() *Site { return At(1) }

// TestAtDoesNotAllocate once it knows a place.
func TestAtDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { At(0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAt(b *testing.B) {
	for b.Loop() {
		At(0)
	}
}
