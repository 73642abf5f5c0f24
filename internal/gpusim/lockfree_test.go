package gpusim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// lockfree is what the kernels of lockfree.cu leave in y of x, by the start of their names, the longest counts.
var lockfree = map[string]func(x []uint32) []uint32{
	"scan_": func(x []uint32) (y []uint32) {
		sum := uint32(0)
		for _, v := range x {
			sum += v
			y = append(y, sum)
		}
		return y
	},
	"grid_": twoRounds, "neighbours": twoRounds,
	"last_": sumOf, "sum_": sumOf, "lock_": sumOf, "stack_": sumOf,
	"splitk_": columns, "lock_block": columns,
	"lock_warps": func(x []uint32) []uint32 {
		y := make([]uint32, 4)
		for i, v := range x {
			y[i%4] += v
		}
		return y
	},
	"lock_two":     func(x []uint32) []uint32 { return append(sumOf(x), sumOf(x)...) },
	"lock_readers": func([]uint32) []uint32 { return []uint32{0, 1, 0, 1, 0, 1, 0, 1} },
	"seqlock":      func([]uint32) []uint32 { return []uint32{0, 1, 1, 1, 1, 1, 1, 1} },
	"ping_pong":    func(x []uint32) []uint32 { return sumOf(x[:8]) },
	"pipeline":     func(x []uint32) []uint32 { return slices.Repeat(columns(x), 4) },
	"credits":      func(x []uint32) []uint32 { return sumOf(x[:16]) },
	"broadcast":    tabled, "once": tabled,
	"tiles":       func(x []uint32) []uint32 { return mapped(x, func(_ int, v uint32) uint32 { return 3 * v }) },
	"queue_slots": func(x []uint32) []uint32 { return sumOf(x[:256]) },
	"queue_tail":  func(x []uint32) []uint32 { return sumOf(x[:448]) },
	"hash_insert": func(x []uint32) []uint32 {
		return mapped(x, func(i int, _ uint32) uint32 { return uint32(i%128+1) * 3 })
	},
	"histogram": func(x []uint32) []uint32 {
		y := make([]uint32, 16)
		for _, v := range x {
			y[v%16]++
		}
		return y
	},
	"max_by_cas": func(x []uint32) []uint32 { return []uint32{slices.Max(x)} },
	"compact": func(x []uint32) []uint32 {
		return sumOf(slices.DeleteFunc(slices.Clone(x), func(v uint32) bool { return v%2 == 0 }))
	},
	"mark_bits": func(x []uint32) []uint32 {
		y := slices.Clone(x)
		slices.Sort(y)
		return []uint32{uint32(len(slices.Compact(y)))}
	},
	"minimum_labels": func(x []uint32) []uint32 { return slices.Repeat([]uint32{slices.Min(x)}, len(x)) },
}

func mapped(x []uint32, f func(i int, v uint32) uint32) []uint32 {
	y := make([]uint32, len(x))
	for i, v := range x {
		y[i] = f(i, v)
	}
	return y
}

func sumOf(x []uint32) []uint32 {
	sum := uint32(0)
	for _, v := range x {
		sum += v
	}
	return []uint32{sum}
}

func columns(x []uint32) []uint32 {
	y := make([]uint32, 64)
	for i, v := range x {
		y[i%64] += v
	}
	return y
}

func twoRounds(x []uint32) []uint32 {
	b := mapped(x, func(i int, v uint32) uint32 { return v + x[(i+64)%512] })
	return mapped(b, func(i int, v uint32) uint32 { return v + b[(i+128)%512] })
}

func tabled(x []uint32) []uint32 {
	return mapped(x, func(i int, v uint32) uint32 { return v + 3*x[i%64] })
}

// TestLockFree runs kernels that are correct, under all checks and half of five schedules.
func TestLockFree(t *testing.T) {
	x := mapped(make([]uint32, 512), func(i int, _ uint32) uint32 { return uint32(i*7%31 + 1) })
	src := fileText(t, "testdata/lockfree.ptx")
	names, spread := 0, testutil.NewSpread(t, testutil.Seed(t), 2)
	r := newRig(t, src, true)
	for _, name := range r.prog.Kernels() {
		names++
		start := ""
		for s := range lockfree {
			if strings.HasPrefix(name, s) && len(s) > len(start) {
				start = s
			}
		}
		if start == "" {
			t.Errorf("nothing is known of %s", name)
			continue
		}
		want := lockfree[start](x)
		for _, seed := range testutil.Some(spread, []uint64{0, 1, 2, 3, 4}, func(seed uint64) string { return fmt.Sprint(name, seed) }) {
			o := Options{Checks: AllChecks, Seed: seed}
			if seed > 2 {
				o.Schedule = Independent
			}
			y := r.upload(make([]uint32, 512), "y")
			rep := r.launch(name, d1(8), d1(64), o, r.upload(x, "x"), y, r.upload(make([]uint32, 4096), "work"))
			if got := download[uint32](r, y, len(want)); !slices.Equal(got, want) {
				t.Errorf("%s, seed %d: %v, want %v", name, seed, got, want)
			}
			if notes := len(rep.Notes); notes > 0 != (name == "scan_lookback_vector") {
				t.Errorf("%s: notes %q", name, rep.Notes)
			}
		}
	}
	if names < 40 {
		t.Errorf("only %d kernels", names)
	}
}

// clustered is what the kernels of cluster.ptx leave in y of x, where blocks have 64 threads.
var clustered = map[string]func(x []uint32) []uint32{
	"exchange":       func(x []uint32) []uint32 { return mapped(x[:256], func(i int, v uint32) uint32 { return v + x[i^64] }) },
	"ring_shift":     sumOfFour,
	"split_arrival":  func(x []uint32) []uint32 { return mapped(x[:256], func(i int, v uint32) uint32 { return v + x[i^64] }) },
	"arrival":        other,
	"one_arrives":    other,
	"flag_fences":    other,
	"flag_release":   other,
	"send":           other,
	"give_on":        func(x []uint32) []uint32 { return mapped(other(x), func(_ int, v uint32) uint32 { return 2*v + 7 }) },
	"tree":           sumOfFour,
	"multicast_ring": func(x []uint32) []uint32 { return slices.Repeat(columns(x[:256]), 4) },
	"histogram": func(x []uint32) []uint32 {
		y := make([]uint32, 256)
		for i, v := range x[:256] {
			y[i/128*128+int(v%32)]++
		}
		return mapped(y, func(i int, _ uint32) uint32 { return y[i/128*128+i%64] })
	},
	"locked": func(x []uint32) []uint32 {
		return mapped(x[:256], func(i int, _ uint32) uint32 { return sumOf(x[i/128*128:][:128])[0] })
	},
}

func other(x []uint32) []uint32 {
	return mapped(x[:256], func(i int, _ uint32) uint32 { return x[i^64] })
}

func sumOfFour(x []uint32) []uint32 { return slices.Repeat(columns(x[:256]), 4) }

// TestClusterKernels runs kernels of clusters that are correct, under all checks and five schedules. What product gives, which no
// integers say, is the same under all.
func TestClusterKernels(t *testing.T) {
	x := mapped(make([]uint32, 512), func(i int, _ uint32) uint32 { return uint32(i*7%31 + 1) })
	src := fileText(t, "testdata/cluster.ptx")
	var product []uint32
	for _, name := range hopper(t, src).prog.Kernels() {
		for seed := range uint64(5) {
			o := Options{Checks: AllChecks, Seed: seed}
			if seed > 2 {
				o.Schedule = Independent
			}
			threads := 64
			if name == "product" {
				threads = 128
			}
			r := hopper(t, src)
			y := r.upload(make([]uint32, 512), "y")
			r.launch(name, d1(4), d1(threads), o, r.upload(x, "x"), y)
			if name == "product" {
				got := download[uint32](r, y, 512)
				if product == nil {
					product = got
				}
				if !slices.Equal(got, product) || got[0] == 0 {
					t.Errorf("%s, seed %d: %v, before %v", name, seed, got[:8], product[:8])
				}
			} else if got := download[uint32](r, y, 256); !slices.Equal(got, clustered[name](x)) {
				t.Errorf("%s, seed %d: %v, want %v", name, seed, got, clustered[name](x))
			}
		}
	}
}
