package estimate

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/ptx"
)

func card(t *testing.T, name string) *cards.Card {
	t.Helper()
	c, ok := cards.Find(name)
	if !ok {
		t.Fatal(name)
	}
	return &c
}

// TestTerms derives each term by hand.
func TestTerms(t *testing.T) {
	a100 := card(t, "a100-80")
	base := Launch{Blocks: 1080, Threads: 256, Registers: 32} // 10 blocks on each of 108 multiprocessors
	for _, c := range []struct {
		name    string
		set     func(l *Launch)
		limiter string
		want    float64 // seconds besides the launch
	}{
		// 2¹⁰·1080 instructions are 10·1024 on a multiprocessor, two a clock at 85 %, 1.41 GHz.
		{"float32", func(l *Launch) { l.Instructions[ptx.PipeFloat32] = 1080 << 10 }, "issue", 10240 / (2 * 0.85) / 1.41e9},
		{"special functions", func(l *Launch) { l.Instructions[ptx.PipeSpecial] = 1080 << 10 }, "issue", 10240 / (0.5 * 0.85) / 1.41e9},
		{"shared", func(l *Launch) { l.Wavefronts = 1080 << 10 }, "shared", 10240 / 0.85 / 1.41e9},
		// 312 TFLOP/s at 85 %.
		{"tensor", func(l *Launch) { l.Tensor[cards.BFloat16] = 1e12 }, "tensor", 1e12 / (108 * 2048 * 1.41e9) / 0.85},
		{"memory", func(l *Launch) { l.Requested, l.Unique = 1e8, 1e8 }, "memory", 3.2e9 / (0.9 * 2039e9)},
		// What fits in L2 is fetched once, and requested at 5,120 bytes a clock.
		{"L2", func(l *Launch) { l.Requested, l.Unique = 1e9, 1e5 }, "L2", 3.2e10 / (5120 * 1.41e9)},
		{"atomics", func(l *Launch) { l.Hottest = 1e6 }, "L2", 1e6 / 1.41e9},
		// 8 blocks fit at a time: 2 rounds. A warp waits 100 times for L2.
		{"latency", func(l *Launch) { l.GlobalWaits = 100 * 1080 * 8 }, "latency", 2 * 100 * 200 / 1.41e9},
	} {
		l := base
		c.set(&l)
		e := Time(a100, &l)
		if b := Brief(a100, &l); b.Seconds != e.Seconds || b.Limiter != e.Limiter || b.DRAM != e.DRAM {
			t.Errorf("%s: %+v, in brief %+v", c.name, e, b)
		}
		if string(e.Limiter) != c.limiter || math.Abs(e.Seconds-PerLaunch-c.want) > 1e-9*c.want {
			t.Errorf("%s: %v, limited by %s, want %v: %+v", c.name, e.Seconds-PerLaunch, e.Limiter, c.want, e.Terms)
		}
	}
}

// TestWarm: what a launch finds in L2 does not come from memory, and takes the latency of L2, but only where all of it fits there.
func TestWarm(t *testing.T) {
	a100 := card(t, "a100-80")
	l := Launch{Blocks: 1080, Threads: 256, Registers: 32, Requested: 2e6, Own: 1000, Touched: Touched{Unique: 1e6}, GlobalWaits: 1080 * 8}
	cold := Time(a100, &l)
	l.Warm = true
	warm := Time(a100, &l)
	if cold.DRAM != 32e6 || warm.DRAM != 0 || cold.Limiter != Memory || warm.Limiter != L2 {
		t.Errorf("%v bytes by %s, warm %v by %s", cold.DRAM, cold.Limiter, warm.DRAM, warm.Limiter)
	}
	if want := PerLaunch + 64e6/(5120*1.41e9); math.Abs(warm.Seconds-want) > 1e-9*want {
		t.Errorf("%v seconds, want %v", warm.Seconds, want)
	}
	l.Unique, l.Requested = 2e6, 4e6 // 64 MB, of 40 MiB
	before := *Time(a100, &l)
	l.Warm = false
	if after := Time(a100, &l); before.DRAM != after.DRAM || before.Seconds != after.Seconds {
		t.Errorf("what does not fit: %v and %v bytes", before.DRAM, after.DRAM)
	}
}

// TestReuse derives what memory moves of a product of 4096² in tiles of 128: each of 1024 blocks touches 2·128·4096 halves, some twice, all
// together touch 2·4096² of them, and sectors grow as the square root of the blocks.
func TestReuse(t *testing.T) {
	l := Launch{Blocks: 1024, Threads: 256, Registers: 128, Requested: 2 * 1024 * 65536, Own: 65536, Touched: Touched{Unique: 32 * 65536}}
	a100 := card(t, "a100-80")
	e := Time(a100, &l)
	wave := 65536 * math.Sqrt(1024/float64(e.Waves))
	if want := SectorBytes * wave * float64(e.Waves); e.Occupancy.Blocks != 2 || e.Waves != 5 || math.Abs(e.DRAM-want) > 1e-6*want {
		t.Errorf("%v bytes in %d waves, want %v", e.DRAM, e.Waves, want)
	}
	l.Unique = 1024 * 65536 // no block shares anything
	if e := Time(a100, &l); e.DRAM != SectorBytes*l.Unique {
		t.Error(e.DRAM)
	}
	l.Unique = 1000 // all share everything
	if e := Time(a100, &l); e.DRAM != SectorBytes*1000 {
		t.Error(e.DRAM)
	}
}

// TestPeak: nothing is faster than the card.
func TestPeak(t *testing.T) {
	for i := range cards.All {
		c := &cards.All[i]
		l := Launch{Blocks: 1 << 20, Threads: 128, Registers: 32, Requested: 1e9, Touched: Touched{Unique: 1e9}}
		l.Tensor[cards.Float16] = 1e15
		e := Time(c, &l)
		if least := SectorBytes * 1e9 / (1e9 * float64(c.Bandwidth)); e.Seconds < least {
			t.Errorf("%s moves %v bytes in %v s", c.Name, e.DRAM, e.Seconds)
		}
		half := 0.0
		if c.Half == 0 { // GTX 1650: 5.97 TFLOP/s in half precision by its maker
			half = 5.97e12
			if took := 1e15 / half; e.Seconds < took || e.Seconds > took/PipeShare*1.01 || e.Limiter != Issue {
				t.Errorf("%s without tensor cores computes in %v s by %s, want %v at least", c.Name, e.Seconds, e.Limiter, took)
			}
		}
		if c.Half > 0 && e.Seconds < 1e15/c.Tensor() {
			t.Errorf("%s computes in %v s", c.Name, e.Seconds)
		}
		if r := Roof(c, &l, e); r.Intensity != 1e15/e.DRAM || r.Roof > max(c.Tensor(), c.Vector(), half) || c.Half > 0 && r.Reached > r.Roof {
			t.Errorf("%s: %+v", c.Name, r)
		}
	}
}

// TestNothing: a launch of no work takes what a launch takes; one that does not fit says so.
func TestNothing(t *testing.T) {
	a100 := card(t, "a100-80")
	if e := Time(a100, &Launch{Blocks: 1, Threads: 32}); e.Seconds != PerLaunch || e.Limiter != Fixed || e.Waves != 1 {
		t.Errorf("%+v", e)
	}
	if e := Time(a100, &Launch{Blocks: 1, Threads: 32, Registers: 300}); e.Occupancy.Blocks != 0 {
		t.Errorf("%+v", e)
	}
}

// TestTogether derives what two parts of the card take together: the longer alone where the other hardly counts, √2 times as long as
// one where both take as long; and what waits is no part.
func TestTogether(t *testing.T) {
	a100 := card(t, "a100-80")
	took := func(memory, shared float64) float64 {
		l := Launch{Blocks: 1080, Threads: 256, Registers: 32, Wavefronts: shared}
		l.Requested, l.Unique = memory, memory
		return Time(a100, &l).Seconds - PerLaunch
	}
	const sectors, wavefronts = 1e8, 1e9
	m, s := took(sectors, 0), took(0, wavefronts)
	if got, want := took(sectors, wavefronts), math.Hypot(m, s); math.Abs(got-want) > 1e-9*want {
		t.Errorf("%v and %v take %v together, want %v", m, s, got, want)
	}
	waiting := Launch{Blocks: 1080, Threads: 256, Registers: 32, GlobalWaits: 1e8}
	w := Time(a100, &waiting).Seconds
	waiting.Wavefronts = 1e6 // some 8 µs
	if got := Time(a100, &waiting).Seconds; got != w {
		t.Errorf("waiting takes %v, with other work %v", w, got)
	}
}

// TestHalves: memory moves 64 bytes for a sector that is alone in them, and fetches them too where it is stored in part.
func TestHalves(t *testing.T) {
	for _, c := range []struct {
		Touched
		want float64 // bytes
	}{
		{Touched{Unique: 1e6}, 32e6},
		{Touched{Unique: 1e6, Lone: 1e6}, 64e6},
		{Touched{Unique: 1e6, Part: 1e6}, 96e6},
		{Touched{Unique: 1e6, Lone: 1e6, Part: 1e6}, 128e6},
		{Touched{Unique: 1e6, Lone: 5e5}, 48e6},
	} {
		e := Time(card(t, "h100-80"), &Launch{Blocks: 1 << 10, Threads: 256, Registers: 32, Requested: 1e6, Touched: c.Touched})
		if math.Abs(e.DRAM-c.want) > 1 {
			t.Errorf("%+v: %v bytes, want %v", c.Touched, e.DRAM, c.want)
		}
	}
}
