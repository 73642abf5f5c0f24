// Package par runs loops on resident workers.
//
// A loop is cut into chunks by its length and its grain alone, never by the
// number of threads, so a computation whose chunks are independent of each
// other, or whose partial results are joined in the order of the chunks, has
// the same bits on any number of threads.
//
// A worker without work spins for a short time, so that the next loop of a
// series starts within a fraction of a microsecond, and then sleeps: starting
// goroutines costs more than the loops of a small network take.
package par

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// owner is held by the loop that uses the workers: they run one at a time.
var (
	owner   sync.Mutex
	workers *pool        // guarded by owner; nil until a loop needs it
	threads atomic.Int64 // written under owner
	pinned  []int        // guarded by owner; the processors of workers that stay, nil where they move
)

func init() { threads.Store(int64(runtime.GOMAXPROCS(0))) }

// Threads returns the number of threads that a loop may use, its caller's
// included.
func Threads() int { return int(threads.Load()) }

// SetThreads sets the number of threads, at least 1 and at most GOMAXPROCS: a
// worker that spins must not hold up one that works. It waits for a loop that
// is under way, so it must not be called from one.
func SetThreads(n int) {
	n = min(max(n, 1), runtime.GOMAXPROCS(0))
	owner.Lock()
	defer owner.Unlock()
	if n == Threads() {
		return
	}
	threads.Store(int64(n))
	if workers != nil {
		workers.close()
		workers = nil
	}
}

// Pin makes each worker stay on a processor of its own, so that nothing moves it from the cache that it has filled, or lets
// them move again. The caller of a loop moves as Go has it. It waits for a loop that is under way, as SetThreads does. The
// error says why this system cannot.
func Pin(on bool) error {
	var list []int
	if on {
		var err error
		if list, err = processors(); err != nil {
			return err
		}
	}
	owner.Lock()
	defer owner.Unlock()
	pinned = list
	if workers != nil {
		workers.close()
		workers = nil
	}
	return nil
}

// Chunks returns the number of chunks in which For cuts n steps and the length
// of each but the last, which may be shorter. The length is grain unless that
// makes too many chunks. Chunk i starts at i*size: loops that keep a partial
// result for each chunk find its place as lo/size.
func Chunks(n, grain int) (count, size int) {
	if n <= 0 {
		return 0, max(grain, 1)
	}
	size = max(grain, 1)
	if least := (n-1)/maxChunks + 1; size < least {
		size = least
	}
	return (n-1)/size + 1, size
}

// For calls f(lo, hi) for ranges that cover [0, n) once, as Chunks cuts it,
// and returns when all are done. Calls may run at the same time and in any
// order. A loop of one chunk, a loop inside of a loop, and a loop that starts
// while another goroutine's is under way run on the caller alone.
//
// If f panics, the other chunks may still run, and then For panics with the
// value of the first panic. f must not call runtime.Goexit.
//
// For itself does not allocate; a function literal that captures variables
// does, so that hot callers keep theirs.
func For(n, grain int, f func(lo, hi int)) {
	count, size := Chunks(n, grain)
	if count <= 1 || !owner.TryLock() {
		l := loop{n, size, f}
		for i := range count {
			l.chunk(i)
		}
		return
	}
	defer owner.Unlock()
	if workers == nil {
		workers = newPool(Threads())
	}
	workers.run(loop{n, size, f}, count)
}

// A loop is the work that the threads of a pool share.
type loop struct {
	n, size int
	f       func(lo, hi int)
}

func (l *loop) chunk(i int) { l.f(i*l.size, min((i+1)*l.size, l.n)) }
