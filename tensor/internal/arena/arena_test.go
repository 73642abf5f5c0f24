package arena

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestPlan: no two values that meet overlap, and the plan takes no less than is used at once and no more than all together.
func TestPlan(t *testing.T) {
	r := testutil.Rand(t)
	for range 200 {
		values := make([]Value, 1+r.IntN(60))
		points := make([]int64, 50)
		sum := int64(0)
		for i := range values {
			first := r.IntN(len(points))
			values[i] = Value{r.Int64N(5000), first, first + r.IntN(len(points)-first)}
			sum += aligned(values[i].Size, 256)
			for p := values[i].First; p <= values[i].Last; p++ {
				points[p] += values[i].Size
			}
		}
		places, total := Plan(values, 256)
		if total > sum {
			t.Fatalf("%d bytes for values of %d together", total, sum)
		}
		for _, n := range points {
			if n > total {
				t.Fatalf("%d bytes, and %d are used at once", total, n)
			}
		}
		for i, v := range values {
			if places[i]%256 != 0 || places[i]+v.Size > total {
				t.Fatalf("%+v at %d of %d", v, places[i], total)
			}
			for j, w := range values[:i] {
				if v.meets(w) && places[i] < places[j]+w.Size && places[j] < places[i]+v.Size {
					t.Fatalf("%+v at %d and %+v at %d overlap", v, places[i], w, places[j])
				}
			}
		}
	}
}

// TestPlanOfAChain: of values of which two are used at once, two are there, whatever their number.
func TestPlanOfAChain(t *testing.T) {
	var values []Value
	for i := range 100 {
		values = append(values, Value{1000, i, i + 1})
	}
	if _, total := Plan(values, 512); total != 2048 {
		t.Errorf("%d bytes, want 2048", total)
	}
}
