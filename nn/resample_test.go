package nn

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// TestKeysCancelsNothing compares weights of cubic curves in float32 with the polynomial of Keys in float64. Summed by powers in
// float32 it would be off by 9e-7 between 1 and 2.
func TestKeysCancelsNothing(t *testing.T) {
	env, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	var d []float32
	for i := range 2001 {
		d = append(d, float32(i)/1000)
	}
	for _, a := range []float64{-0.75, -0.5} {
		for i, got := range keys(tensor.From(env, d, len(d)), a).Floats() {
			x := float64(d[i])
			want := a * (((x-5)*x+8)*x - 4)
			if x < 1 {
				want = ((a+2)*x-(a+3))*x*x + 1
			}
			if math.Abs(got-want) > 2.5e-7 {
				t.Errorf("a = %v, distance %v: %v, want %v", a, x, got, want)
			}
		}
	}
}
