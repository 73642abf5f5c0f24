package cpu

import (
	"math"
	"sort"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestSortLong takes lines by digits, by threads and by selection, of every dtype, with ties and NaN, and compares with Go's
// stable sort.
func TestSortLong(t *testing.T) {
	threads := par.Threads()
	defer par.SetThreads(threads)
	r := testutil.Rand(t)
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16, dtype.I64, dtype.I32, dtype.U8} {
		for _, n := range []int{fewItems + 1, 5 * fewItems, manyItems + 1001} {
			for _, k := range []int{0, 3, n / 3} {
				for _, flag := range []ir.Flag{0, ir.Descending} {
					x := ir.Dense(dt, n)
					v := make([]float64, n)
					for i := range v {
						if v[i] = float64(r.IntN(200)); dt.IsFloat() && v[i] == 7 {
							v[i] = math.NaN()
						}
					}
					par.SetThreads(1 + r.IntN(3))
					got := mustLaunch(t, ir.New(ir.Sort, ir.Attr{Flag: flag, Dims: [ir.MaxRank]int32{int32(k)}}, x), ir.Params{}, v)
					checkOrder(t, dt, v, got.out[0], got.out[1], flag != 0)
				}
			}
		}
	}
}

func checkOrder(t *testing.T, dt dtype.DType, v, values, places []float64, falling bool) {
	t.Helper()
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	above := func(a, b float64) bool { return a > b || a != a && b == b }
	sort.SliceStable(order, func(i, j int) bool {
		if falling {
			return above(v[order[i]], v[order[j]])
		}
		return above(v[order[j]], v[order[i]])
	})
	for i, p := range places {
		if want := v[order[i]]; int(p) != order[i] || values[i] != want && want == want {
			t.Fatalf("%s, %d of %d: element %d is %v from %v, want %v from %d", dt, len(places), len(v), i, values[i], p, want, order[i])
		}
	}
}
