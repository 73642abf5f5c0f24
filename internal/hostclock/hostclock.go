// Package hostclock is the clock by which events are told: steady, in nanoseconds since the program began, and cheap enough to be
// read twice for every operation. Where the kernel itself trusts the processor's counter of ticks (Linux on amd64), that is
// read without the kernel, in ten nanoseconds instead of twenty-five or fifty; elsewhere it is package time's.
package hostclock

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// began is when the clock was 0, and at that time the counter.
var (
	began      = time.Now()
	firstTicks = ticks()
)

// scale makes times of ticks.
type scale struct {
	ticks uint64
	ns    time.Duration // at these ticks
	per   uint64        // nanoseconds a tick, times 2³²
}

// tooSlow is how many ticks a look at the kernel's clock may take: more than it does, less than any interruption.
const tooSlow = 10_000

var scaled atomic.Pointer[scale] // nil until the counter's rate is known

// longEnough is how long the counter is compared with the kernel's clock: reading both takes some 100 ns, so the rate is known to
// five millionths.
const longEnough = 20 * time.Millisecond

// Now is the time since the program began. Times of two goroutines may differ by what it takes to read a clock.
func Now() time.Duration {
	if s := scaled.Load(); s != nil {
		return s.at(ticks())
	}
	return first()
}

func (s *scale) at(n uint64) time.Duration {
	hi, lo := bits.Mul64(n-s.ticks, s.per)
	return s.ns + time.Duration(hi<<32|lo>>32)
}

// first is Now until the counter's rate is known.
func first() time.Duration {
	if !trusted() || time.Since(began) < longEnough {
		return time.Since(began)
	}
	before := ticks()
	now := time.Since(began)
	n := ticks()
	if n-before > tooSlow { // something came between
		return now
	}
	n = before + (n-before)/2
	per, _ := bits.Div64(uint64(now)>>32, uint64(now)<<32, n-firstTicks)
	scaled.CompareAndSwap(nil, &scale{n, now, per})
	return now
}
