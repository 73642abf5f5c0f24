package par

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// withThreads sets the number of threads for one test.
func withThreads(t testing.TB, n int) {
	before := Threads()
	SetThreads(n)
	t.Cleanup(func() { SetThreads(before) })
}

func TestChunks(t *testing.T) {
	for _, n := range []int{-3, 0, 1, 2, 7, 64, 1000, 65535, 65536, 1 << 30, int(^uint(0) >> 1)} {
		for _, grain := range []int{-1, 0, 1, 3, 64, 1 << 20, int(^uint(0) >> 1)} {
			count, size := Chunks(n, grain)
			if n <= 0 {
				if count != 0 || size < 1 {
					t.Errorf("Chunks(%d, %d) = %d, %d", n, grain, count, size)
				}
				continue
			}
			if count < 1 || count > maxChunks || size < max(grain, 1) || (count-1)*size >= n || n-(count-1)*size > size {
				t.Errorf("Chunks(%d, %d) = %d, %d", n, grain, count, size)
			}
		}
	}
}

// TestForCovers checks that each index is visited once, in the chunks that
// Chunks tells, whatever the number of threads.
func TestForCovers(t *testing.T) {
	for _, th := range []int{1, 2} {
		withThreads(t, th)
		for _, n := range []int{0, 1, 2, 13, 1000, 70001} {
			for _, grain := range []int{0, 1, 3, 100, 1 << 20} {
				_, size := Chunks(n, grain)
				visits := make([]int32, n)
				For(n, grain, func(lo, hi int) {
					if lo%size != 0 || hi != min(lo+size, n) {
						t.Errorf("n %d, grain %d: chunk %d to %d", n, grain, lo, hi)
					}
					for i := lo; i < hi; i++ {
						visits[i]++
					}
				})
				for i, v := range visits {
					if v != 1 {
						t.Fatalf("n %d, grain %d: index %d visited %d times", n, grain, i, v)
					}
				}
			}
		}
	}
}

// TestPool runs loops of changing size one after the other, so that workers
// come late, sleep and wake, on more workers than there may be processors.
func TestPool(t *testing.T) {
	p := newPool(4)
	defer p.close()
	var visits [64]atomic.Int32
	for round := range 5000 {
		count := 1 + round%64
		p.run(loop{count, 1, func(lo, _ int) { visits[lo].Add(1) }}, count)
		for i := range visits {
			want := int32(0)
			if i < count {
				want = 1
			}
			if v := visits[i].Swap(0); v != want {
				t.Fatalf("round %d: chunk %d of %d ran %d times", round, i, count, v)
			}
		}
		if round%500 == 0 {
			time.Sleep(200 * time.Microsecond) // lets the workers sleep
		}
	}
}

// TestShare takes chunks from both ends of a share.
func TestShare(t *testing.T) {
	var s share
	if _, ok := s.first(); ok {
		t.Error("a share without chunks gave one")
	}
	s.ticket.Store(3<<33 | 6<<16 | 2)
	for i, want := range []int{2, 5, 3, 4} {
		take := s.first
		if i%2 == 1 {
			take = s.last
		}
		if got, ok := take(); got != want || !ok {
			t.Fatalf("chunk %d, %v; want %d", got, ok, want)
		}
	}
	if _, ok := s.first(); ok {
		t.Error("a share gave more than it has at its beginning")
	}
	if _, ok := s.last(); ok {
		t.Error("a share gave more than it has at its end")
	}
}

// TestWorkersWork checks that a worker takes part: the two chunks meet.
func TestWorkersWork(t *testing.T) {
	p := newPool(2)
	defer p.close()
	for range 20 {
		var arrived, alone atomic.Int32
		p.run(loop{2, 1, func(int, int) {
			arrived.Add(1)
			for end := time.Now().Add(time.Minute); arrived.Load() < 2; runtime.Gosched() {
				if time.Now().After(end) {
					alone.Add(1)
					return
				}
			}
		}}, 2)
		if alone.Load() > 0 {
			t.Fatal("no worker took the second chunk within a minute")
		}
		time.Sleep(100 * time.Microsecond)
	}
}

func TestPanicReachesCaller(t *testing.T) {
	cause := errors.New("cause")
	for _, p := range []*pool{newPool(1), newPool(3)} {
		for bad := range 8 {
			var ran atomic.Int32
			got := func() (v any) {
				defer func() { v = recover() }()
				p.run(loop{8, 1, func(lo, _ int) {
					ran.Add(1)
					if lo == bad {
						panic(cause)
					}
				}}, 8)
				return nil
			}()
			if got != cause {
				t.Fatalf("panic value %v, want %v", got, cause)
			}
			if len(p.workers) > 0 && ran.Load() != 8 {
				t.Fatalf("%d chunks ran, want 8", ran.Load())
			}
		}
		p.run(loop{4, 1, func(int, int) {}}, 4) // the pool still works, and forgot the panic
		p.close()
	}
}

func TestPanicReleasesTheWorkers(t *testing.T) {
	withThreads(t, 2)
	for range 3 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			For(4, 1, func(int, int) { panic("x") })
		}()
	}
	if !owner.TryLock() {
		t.Fatal("the pool is still owned")
	}
	owner.Unlock()
}

// TestNestedAndConcurrent runs loops in loops from several goroutines, while
// the number of threads changes.
func TestNestedAndConcurrent(t *testing.T) {
	withThreads(t, 2)
	var w sync.WaitGroup
	for range 4 {
		w.Go(func() {
			for range 50 {
				var sum atomic.Int64
				For(10, 3, func(lo, hi int) {
					For(hi-lo, 1, func(a, b int) { sum.Add(int64(b - a)) })
				})
				if sum.Load() != 10 {
					t.Errorf("%d steps, want 10", sum.Load())
				}
			}
		})
	}
	for i := range 20 {
		SetThreads(1 + i%2)
		time.Sleep(50 * time.Microsecond)
	}
	w.Wait()
}

func TestSetThreads(t *testing.T) {
	withThreads(t, 1)
	most := runtime.GOMAXPROCS(0)
	for n, want := range map[int]int{-1: 1, 0: 1, 1: 1, 2: min(2, most), 1 << 20: most} {
		SetThreads(n)
		if got := Threads(); got != want {
			t.Errorf("SetThreads(%d): %d threads, want %d", n, got, want)
		}
	}
}

// TestWorkersEnd checks that the goroutines of a closed pool return, asleep
// or not.
func TestWorkersEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 40 {
		p := newPool(3)
		p.run(loop{3, 1, func(int, int) {}}, 3)
		if i%2 == 0 {
			time.Sleep(200 * time.Microsecond)
		}
		p.close()
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// TestIdleWorkersSleep: after a loop all workers go to sleep, wake for the next one, and sleep again. What sleeps on a
// channel takes no time of a processor.
func TestIdleWorkersSleep(t *testing.T) {
	p := newPool(4)
	defer p.close()
	for turn := range 3 {
		p.run(loop{8, 1, func(int, int) {}}, 8)
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			asleep := 0
			for _, w := range p.workers {
				if w.asleep.Load() {
					asleep++
				}
			}
			if asleep == len(p.workers) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("turn %d: %d of %d workers sleep", turn, asleep, len(p.workers))
			}
		}
	}
}

// TestCallersShareTheWorkers: however many goroutines have loops at once, as those of several envs and devices do, the
// workers are those of one. A loop that finds them busy is its caller's alone.
func TestCallersShareTheWorkers(t *testing.T) {
	withThreads(t, 2)
	For(2, 1, func(int, int) {}) // the workers are there
	const callers = 6
	before := runtime.NumGoroutine()
	var most atomic.Int64
	var w sync.WaitGroup
	for range callers {
		w.Go(func() {
			for range 30 {
				For(64, 1, func(int, int) { most.Store(max(most.Load(), int64(runtime.NumGoroutine()))) })
			}
		})
	}
	w.Wait()
	if n := int(most.Load()); n > before+callers {
		t.Errorf("%d goroutines in loops of %d callers, %d before", n, callers, before)
	}
}

// TestLimits starts processes with less than the machine: the number of threads is what Go's scheduler may use, which
// follows GOMAXPROCS and the limits of a control group.
func TestLimits(t *testing.T) {
	const variable = "WARPLINE_TEST_LIMITS"
	if os.Getenv(variable) != "" {
		fmt.Printf("%d of %d threads\n", Threads(), runtime.GOMAXPROCS(0))
		return
	}
	for _, n := range []string{"1", "2", "3"} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestLimits$")
		cmd.Env = append(os.Environ(), variable+"=1", "GOMAXPROCS="+n)
		out, err := cmd.CombinedOutput()
		if want := n + " of " + n + " threads\n"; err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("GOMAXPROCS=%s: %v\n%s", n, err, out)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	withThreads(t, 2)
	f := func(int, int) {}
	if n := testing.AllocsPerRun(100, func() { For(8, 1, f) }); n != 0 {
		t.Errorf("%v allocations in a loop", n)
	}
}

// BenchmarkFor is the cost of a loop of two empty chunks.
func BenchmarkFor(b *testing.B) {
	f := func(int, int) {}
	for b.Loop() {
		For(2, 1, f)
	}
}
