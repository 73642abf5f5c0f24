package callsite

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// TestStack: chains of any length are what runtime.Callers sees, skipped frames left out.
func TestStack(t *testing.T) {
	for _, n := range []int{0, 1, 3, 200} {
		for _, room := range []int{0, 1, 2, 64, 500} {
			got, want := stackAt(n, room)
			if len(got) > room || room == 500 && len(got) <= n {
				t.Fatalf("%d frames of %d in room for %d", len(got), n, room)
			}
			frames := lines(Frames(got))
			if len(frames) < min(room, len(want)) || !slices.Equal(frames, want[:min(len(want), len(frames))]) {
				t.Errorf("%d deep, room for %d: %d frames, of them %q; want %q", n, room, len(frames), frames[:min(3, len(frames))], want[:min(3, len(want))])
			}
		}
	}
}

// stackAt is the chain that leads to the outermost call of n, by Stack and by the runtime.
//
//go:noinline
func stackAt(n, room int) (got []uintptr, want []string) {
	if n > 0 {
		got, want = stackAt(n-1, room)
		return got, want
	}
	pcs := make([]uintptr, room)
	got = skipOne(pcs)
	var all [1000]uintptr
	return got, lines(Frames(all[:runtime.Callers(2, all[:])]))
}

//go:noinline
func skipOne(pcs []uintptr) []uintptr { return Stack(2, pcs) }

// lines are frames without the runtime's.
func lines(frames []runtime.Frame) (all []string) {
	for _, f := range frames {
		if f.Function != "runtime.goexit" && f.Function != "runtime.main" {
			all = append(all, describe(f))
		}
	}
	return all
}

// TestUserOfDeepCalls: however deep in the library, a site of User has the program's line and the last calls before it.
func TestUserOfDeepCalls(t *testing.T) {
	var s, again Site
	for range 2 {
		again = s
		User(&s)
	}
	_, _, line, _ := runtime.Caller(0)
	if want := fmt.Sprintf("user_test.go:%d", line-2); s.String() != want || again != s {
		t.Errorf("%s, want %s", s.String(), want)
	}
	if n := testing.AllocsPerRun(100, func() { User(&s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestIsUser: what is known of an address stays right when others have taken its place.
func TestIsUser(t *testing.T) {
	pcs := Stack(0, make([]uintptr, 1))
	for i := range 3 {
		if !isUser(pcs[0]) {
			t.Errorf("time %d: a test is no library", i)
		}
		for i := range users {
			users[i].Store(uint64(i) << 1)
		}
	}
}

func BenchmarkUser(b *testing.B) {
	var s Site
	for b.Loop() {
		User(&s)
	}
}
