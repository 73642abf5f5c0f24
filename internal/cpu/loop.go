package cpu

import (
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/par"
)

// loop runs a body over ranges on the workers. The arguments of a launch, an A, travel in a pooled value: a closure
// made for each launch would be an allocation.
type loop[A any] struct {
	calls sync.Pool // of *call[A]
}

type call[A any] struct {
	args A
	f    func(lo, hi int)
}

// newLoop is called once when a kernel is prepared. The body may capture what holds for every launch.
func newLoop[A any](body func(a *A, lo, hi int)) *loop[A] {
	l := new(loop[A])
	l.calls.New = func() any {
		c := new(call[A])
		c.f = func(lo, hi int) { body(&c.args, lo, hi) }
		return c
	}
	return l
}

// run calls the body as [par.For] does and returns the arguments as the body left them.
func (l *loop[A]) run(n, grain int, args A) A {
	c := l.calls.Get().(*call[A])
	c.args = args
	par.For(n, grain, c.f)
	args = c.args
	var none A
	c.args = none
	l.calls.Put(c)
	return args
}

// spare hands out values that a chunk of a loop works in.
type spare[T any] struct{ pool sync.Pool }

func newSpare[T any](make func() T) *spare[T] {
	s := new(spare[T])
	s.pool.New = func() any {
		v := make()
		return &v
	}
	return s
}

// newBuffers hands out slices of n elements.
func newBuffers[T any](n int) *spare[[]T] { return newSpare(func() []T { return make([]T, n) }) }

func (s *spare[T]) get() *T  { return s.pool.Get().(*T) }
func (s *spare[T]) put(v *T) { s.pool.Put(v) }

// fault remembers the first of the places where the chunks of a loop met a bad value. The zero fault has none.
type fault struct{ place int64 }

// at notes the place i.
func (f *fault) at(i int) {
	for {
		old := atomic.LoadInt64(&f.place)
		if old != 0 && old <= int64(i)+1 || atomic.CompareAndSwapInt64(&f.place, old, int64(i)+1) {
			return
		}
	}
}

// first returns the place, or false when there is none.
func (f *fault) first() (int, bool) { return int(f.place - 1), f.place != 0 }

// grainOf is the number of steps of work operations each that make a chunk of about 10 to 50 µs.
func grainOf(work int) int { return max(1, 1<<15/max(work, 1)) }

// workspace views n elements of the workspace from a byte offset on.
//
//go:noinline
func workspace[T any](a device.Arg, offset int64, n int) []T {
	a.Offset += offset
	return values[T](a, n)
}

// aligned rounds a number of bytes up so that what follows starts on a cache line.
func aligned(n int64) int64 { return (n + 63) &^ 63 }
