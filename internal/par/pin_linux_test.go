package par

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPin: pinned, each worker runs on one processor, and others are left to the caller; after that, on all.
func TestPin(t *testing.T) {
	list, err := processors()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 2 || Threads() < 2 {
		t.Skipf("%d processors, %d threads: there are no workers", len(list), Threads())
	}
	runtime.LockOSThread() // so that the caller's thread is known
	defer runtime.UnlockOSThread()
	for _, on := range []bool{true, false} {
		if err := Pin(on); err != nil {
			t.Fatal(err)
		}
		caller := unix.Gettid()
		var mu sync.Mutex
		workers := map[int]int{} // processors that a thread may use
		For(64, 1, func(int, int) {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(0, &set); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if id := unix.Gettid(); id != caller {
				workers[id] = set.Count()
			}
			time.Sleep(100 * time.Microsecond) // until the workers are there
		})
		want := map[bool]int{true: 1, false: len(list)}[on]
		if len(workers) == 0 {
			t.Errorf("pinned %v: the caller did it all", on)
		}
		for id, n := range workers {
			if on && n != want || !on && n < want {
				t.Errorf("pinned %v: thread %d may use %d processors, want %d", on, id, n, want)
			}
		}
	}
}
