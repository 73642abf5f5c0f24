package render

import (
	"math"
	"testing"
)

func TestMeter(t *testing.T) {
	for fraction, want := range map[float64]string{0: "····", 0.5: "██··", 1: "████", 2: "████", -1: "····", math.Inf(1): "████"} {
		if got := Meter(fraction, 4); got != want {
			t.Errorf("%v: %q, want %q", fraction, got, want)
		}
	}
	if got := Meter(math.NaN(), 3); got != "···" || Meter(1, 0) != "" {
		t.Errorf("%q", got)
	}
}

func TestSpark(t *testing.T) {
	if got := Spark([]float64{9, 0, 50, math.NaN(), 100, 200}, 100, 5); got != "▁▅ ██" {
		t.Errorf("%q", got)
	}
	if got := Spark([]float64{100}, 100, 3); got != "  █" {
		t.Errorf("%q", got)
	}
	if got := Spark([]float64{1}, 0, 2); got != "  " {
		t.Errorf("%q", got)
	}
}
