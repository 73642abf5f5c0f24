package par

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A pool shares the chunks of a loop between its caller and its workers. Each
// thread has a share of neighbouring chunks, the same for loops of the same
// length: what one loop leaves in the cache of a core, the next finds there. A
// thread that is done takes from the ends of the others' shares.
type pool struct {
	shares  []share // the caller's, then the workers'
	done    atomic.Int64
	_       [56]byte
	loop    loop // written before the tickets, read after a chunk was taken
	loops   uint64
	failure atomic.Pointer[failure]
	workers []*worker
	pinned  []int // the processors on which workers stay, if not nil
}

// A share is the chunks of a thread. They are taken by its ticket: 31 bits of
// the number of the loop, one that ends the worker, 16 bits of where the share
// ends, and 16 of the next chunk. It is one word so that a thread that comes
// late cannot take a chunk of a newer loop under the bounds of an older.
type share struct {
	ticket atomic.Uint64
	_      [56]byte
}

// A worker is where one goroutine of the pool sleeps.
type worker struct {
	asleep atomic.Bool
	wake   chan struct{}
	_      [48]byte
}

// A failure is a panic on its way to the caller of the loop.
type failure struct{ value any }

const (
	maxChunks = 1<<16 - 1
	stop      = 1 << 32               // flag in the ticket
	spinTime  = 30 * time.Microsecond // until a worker sleeps
	pauseUnit = 4                     // PAUSE instructions between looks at the ticket
)

// newPool starts the workers of a pool of n threads.
func newPool(n int) *pool {
	p := &pool{shares: make([]share, n), pinned: pinned}
	for i := range n - 1 {
		w := &worker{wake: make(chan struct{}, 1)}
		p.workers = append(p.workers, w)
		go p.resident(w, i+1)
	}
	return p
}

// run does all chunks of l. It is for one caller at a time.
func (p *pool) run(l loop, count int) {
	if len(p.workers) == 0 {
		for i := range count {
			l.chunk(i)
		}
		return
	}
	p.loops++
	p.loop = l
	p.done.Store(0)
	n := len(p.shares)
	for i := n - 1; i >= 0; i-- {
		// The caller's share is rounded up: it is there first.
		lo, hi := (i*count+n-1)/n, ((i+1)*count+n-1)/n
		if lo == hi {
			continue
		}
		p.shares[i].ticket.Store(p.loops<<33 | uint64(hi)<<16 | uint64(lo))
		if i > 0 {
			p.workers[i-1].rouse()
		}
	}
	p.take(0)
	for spins := 1; p.done.Load() < int64(count); spins++ {
		pause(pauseUnit)
		if spins%1024 == 0 {
			runtime.Gosched() // more threads than processors
		}
	}
	p.loop = loop{}
	if f := p.failure.Swap(nil); f != nil {
		panic(f.value)
	}
}

// rouse wakes the worker if it sleeps.
func (w *worker) rouse() {
	if w.asleep.Load() && w.asleep.CompareAndSwap(true, false) {
		w.wake <- struct{}{}
	}
}

// take runs the chunks of thread i's share, and then those that are left of
// the others'.
func (p *pool) take(i int) {
	for c, ok := p.shares[i].first(); ok; c, ok = p.shares[i].first() {
		p.chunk(c)
	}
	for j := 1; j < len(p.shares); j++ {
		other := &p.shares[(i+j)%len(p.shares)]
		for c, ok := other.last(); ok; c, ok = other.last() {
			p.chunk(c)
		}
	}
}

// first takes the share's next chunk, if there is one.
func (s *share) first() (chunk int, ok bool) {
	for {
		t := s.ticket.Load()
		next, end := t&0xffff, t>>16&0xffff
		if next >= end {
			return 0, false
		}
		if s.ticket.CompareAndSwap(t, t+1) {
			return int(next), true
		}
	}
}

// last takes the share's last chunk, if there is one.
func (s *share) last() (chunk int, ok bool) {
	for {
		t := s.ticket.Load()
		next, end := t&0xffff, t>>16&0xffff
		if next >= end {
			return 0, false
		}
		if s.ticket.CompareAndSwap(t, t-1<<16) {
			return int(end - 1), true
		}
	}
}

// chunk runs one chunk, keeps its panic, and counts it as finished.
func (p *pool) chunk(i int) {
	defer p.finish()
	p.loop.chunk(i)
}

func (p *pool) finish() {
	if v := recover(); v != nil {
		p.failure.CompareAndSwap(nil, &failure{v})
	}
	p.done.Add(1)
}

// resident is the life of the worker that is thread i.
func (p *pool) resident(w *worker, i int) {
	if len(p.pinned) > 0 {
		stay(p.pinned[i%len(p.pinned)])
	}
	var seen uint64
	mine := &p.shares[i].ticket
	idle := time.Now()
	for spins := 0; ; spins++ {
		if t := mine.Load(); t>>33 != seen {
			seen = t >> 33
			p.take(i)
			idle, spins = time.Now(), 0
		} else if t&stop != 0 {
			return
		} else if spins%16 != 15 || time.Since(idle) < spinTime {
			pause(pauseUnit)
		} else {
			p.sleep(w, mine, t)
			idle = time.Now()
		}
	}
}

// sleep waits until the worker's ticket is no longer t, or returns at once if
// a new one came in between: then nobody else may have cleared asleep, or a
// wake-up is on its way and must be consumed.
func (p *pool) sleep(w *worker, mine *atomic.Uint64, t uint64) {
	w.asleep.Store(true)
	if mine.Load() != t && w.asleep.CompareAndSwap(true, false) {
		return
	}
	<-w.wake
}

// close ends the workers. No loop may be under way.
func (p *pool) close() {
	for i, w := range p.workers {
		p.shares[i+1].ticket.Store(p.loops<<33 | stop)
		w.rouse()
	}
}
