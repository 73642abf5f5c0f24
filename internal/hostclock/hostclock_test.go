package hostclock

import (
	"math/bits"
	"testing"
	"time"
)

// TestNow: the clock rises, and goes as fast as package time's, before and after it has learned the counter's rate.
func TestNow(t *testing.T) {
	last, at := Now(), time.Now()
	for deadline := at.Add(3 * longEnough); time.Now().Before(deadline); {
		now := Now()
		if now < last-time.Microsecond { // that is when it turns to the counter
			t.Fatalf("%v after %v", now, last)
		}
		last = now
	}
	if !trusted() && scaled.Load() != nil {
		t.Fatal("the counter is used and not trusted")
	}
	// Both are read twice, one within the other: whatever happens in between, these bounds hold but for the rate's own error.
	a, b := time.Now(), Now()
	time.Sleep(50 * time.Millisecond)
	c, d := Now(), time.Now()
	if outer := d.Sub(a); float64(c-b) > float64(outer)*(1+1e-3) {
		t.Errorf("%v within %v", c-b, outer)
	}
	b, a = Now(), time.Now()
	time.Sleep(50 * time.Millisecond)
	d, c = time.Now(), Now()
	if inner := d.Sub(a); float64(c-b) < float64(inner)*(1-1e-3) {
		t.Errorf("%v around %v", c-b, inner)
	}
}

// TestScale: ticks of many years at usual rates become times without overflow.
func TestScale(t *testing.T) {
	for _, hz := range []uint64{1e9, 2_445_406_000, 5e9} {
		per, _ := bits.Div64(1e9>>32, 1e9<<32&(1<<64-1), hz)
		s := scale{7, 3, per}
		for _, seconds := range []uint64{0, 1, 3600, 100 * 365 * 86400} {
			want := 3 + time.Duration(seconds)*time.Second
			if got := s.at(7 + seconds*hz); got < want-want/1e9-1 || got > want {
				t.Errorf("%d Hz, %d s: %v", hz, seconds, got)
			}
		}
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}
