package par

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A pool shares the chunks of a loop between its caller and its workers.
type pool struct {
	// ticket is what a thread takes a chunk from: 31 bits of the number of
	// the loop, one that ends the workers, 16 bits of the count of chunks,
	// and 16 of the next chunk. It is one word so that a worker that comes
	// late cannot take a chunk of a newer loop under the count of an older.
	ticket  atomic.Uint64
	_       [56]byte
	done    atomic.Int64 // chunks finished
	_       [56]byte
	loop    loop // written before ticket, read after a chunk was taken
	loops   uint64
	failure atomic.Pointer[failure]
	workers []*worker
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
	p := new(pool)
	for range n - 1 {
		w := &worker{wake: make(chan struct{}, 1)}
		p.workers = append(p.workers, w)
		go p.resident(w)
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
	p.ticket.Store(p.loops<<33 | uint64(count)<<16)
	p.rouse()
	p.take()
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

// rouse wakes the workers that sleep.
func (p *pool) rouse() {
	for _, w := range p.workers {
		if w.asleep.Load() && w.asleep.CompareAndSwap(true, false) {
			w.wake <- struct{}{}
		}
	}
}

// take runs chunks of the current loop until none is left.
func (p *pool) take() {
	for {
		t := p.ticket.Load()
		if t&0xffff >= t>>16&0xffff {
			return
		}
		if p.ticket.CompareAndSwap(t, t+1) {
			p.chunk(int(t & 0xffff))
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

// resident is the life of a worker.
func (p *pool) resident(w *worker) {
	var seen uint64
	idle := time.Now()
	for spins := 0; ; spins++ {
		if t := p.ticket.Load(); t>>33 != seen {
			seen = t >> 33
			p.take()
			idle, spins = time.Now(), 0
		} else if t&stop != 0 {
			return
		} else if spins%16 != 15 || time.Since(idle) < spinTime {
			pause(pauseUnit)
		} else {
			p.sleep(w, t)
			idle = time.Now()
		}
	}
}

// sleep waits until the ticket is no longer t, or returns at once if a new
// one came in between: then nobody else may have cleared asleep, or a wake-up
// is on its way and must be consumed.
func (p *pool) sleep(w *worker, t uint64) {
	w.asleep.Store(true)
	if p.ticket.Load() != t && w.asleep.CompareAndSwap(true, false) {
		return
	}
	<-w.wake
}

// close ends the workers. No loop may be under way.
func (p *pool) close() {
	p.ticket.Store(p.loops<<33 | stop)
	p.rouse()
}
