package bench

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/tensor"
)

func sidesOf(t *testing.T, c CompareConfig) (sides []Side, list []Crossing) {
	t.Helper()
	list, err := Compare(t.Context(), c, func(s Side) error { sides = append(sides, s); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return sides, list
}

// TestCompare: each program computes the same on a processor and on a simulated card, whose step has parts that do not exceed it by
// more than copies beside kernels, and the same times again.
func TestCompare(t *testing.T) {
	for _, p := range programs {
		if p.name != "matmul" && p.name != "mlp" { // the others differ in their network alone, and take a simulated card long
			env, err := tensor.Fresh("cpu")
			if err != nil {
				t.Fatal(err)
			}
			if v := p.make(env, 1, rand.New(rand.NewPCG(1, 2)))(env).Item(); !(v > 0 && v < 10) {
				t.Errorf("%s: a loss of %v", p.name, v)
			}
			continue
		}
		c := CompareConfig{Task: p.name, Devices: []string{"cpu", "sim:a100-80"}, Sizes: []int{1, 2}, Seed: 3}
		sides, list := sidesOf(t, c)
		if len(sides) != 4 || len(list) != 1 || list[0].Device != "sim:a100-80" || list[0].Against != "cpu" || !list[0].Modelled {
			t.Fatalf("%s: %+v, %+v", p.name, sides, list)
		}
		for i := range sides {
			s := &sides[i]
			other := &sides[i^1]
			if s.N != 1+i/2 || s.Modelled != (i%2 == 1) || !(0 < s.Low && s.Low <= s.MS && s.MS <= s.High) || s.Peak <= 0 || math.Abs(s.Value-other.Value) > 1e-3*math.Abs(s.Value)+1e-5 {
				t.Errorf("%s: %+v beside %+v", p.name, s, other)
			}
			if s.Modelled && (s.Kernels == nil || *s.Kernels <= 0 || *s.Copies <= 0 || *s.Kernels+*s.Launches > s.MS*1.0001 || math.Abs(s.Speedup*s.MS-other.MS) > 1e-9*other.MS) {
				t.Errorf("%s: %+v", p.name, s)
			}
		}
		if text := SidesText(sides, 100) + CrossingsText(list, sides) + SidesPlot(sides).Terminal(80, 10, false); !strings.Contains(text, "(modelled)") || !strings.Contains(text, "sim:a100-80") {
			t.Errorf("%s: %s", p.name, text)
		}
	}
	c := CompareConfig{Task: "matmul", Devices: []string{"sim:a100-80", "sim:h100-80"}, Sizes: []int{64}, Seed: 3}
	a, _ := sidesOf(t, c)
	b, _ := sidesOf(t, c)
	for i := range a {
		if a[i].MS != b[i].MS || *a[i].Kernels != *b[i].Kernels || *a[i].Copies != *b[i].Copies {
			t.Errorf("%+v, then %+v", a[i], b[i])
		}
	}
}

// TestCrossings derives where lines cross: a card that gains a factor of 4 for each factor of 4 in size, from half as quick on.
func TestCrossings(t *testing.T) {
	side := func(n int, speedup float64) []Side {
		return []Side{{N: n, Device: "cpu", Speedup: 1}, {N: n, Device: "sim:0", Speedup: speedup, Modelled: true}}
	}
	for _, c := range []struct {
		speedups [3]float64
		from     float64
		always   bool
	}{
		{[3]float64{0.5, 2, 8}, 2, false},
		{[3]float64{0.25, 1.0 / 2, 2}, 8, false},
		{[3]float64{2, 0.5, 2}, 8, false}, // what is quicker at a small size does not count
		{[3]float64{1, 2, 4}, 0, true},
		{[3]float64{2, 2, 0.5}, 0, false},
	} {
		var sides []Side
		for i, s := range c.speedups {
			sides = append(sides, side(1<<(2*i), s)...)
		}
		list := crossings(sides, []string{"cpu", "sim:0"})
		if len(list) != 1 || list[0].Always != c.always || (list[0].From != nil) != (c.from > 0) || c.from > 0 && math.Abs(*list[0].From-c.from) > 1e-9 {
			t.Errorf("%v: %+v", c.speedups, list)
		}
	}
}

// TestCompareRefusals: what cannot be compared is refused before anything runs.
func TestCompareRefusals(t *testing.T) {
	two := []string{"cpu", "sim:0"}
	for _, c := range []struct {
		CompareConfig
		text, hint string
	}{
		{CompareConfig{Task: "mlpp", Devices: two}, `no task "mlpp"`, "did you mean mlp?"},
		{CompareConfig{Task: "mlp", Devices: two[:1]}, "1 device", "two or more"},
		{CompareConfig{Task: "mlp", Devices: []string{"cpu", "cpu"}}, "cpu is there twice", "once"},
		{CompareConfig{Task: "mlp", Devices: []string{"cpu", "null:h200"}}, "computes nothing", "sim:CARD"},
		{CompareConfig{Task: "mlp", Devices: []string{"cpu", "sim:h300"}}, "h300", ""},
		{CompareConfig{Task: "mlp", Devices: two, Sizes: []int{0}}, "a size of 0", "from 1"},
	} {
		_, err := Compare(t.Context(), c.CompareConfig, func(Side) error { t.Errorf("%+v: a side", c.CompareConfig); return nil })
		var known *advice.Error
		if !errors.As(err, &known) || !strings.Contains(known.Text, c.text) || !strings.Contains(known.Hint, c.hint) {
			t.Errorf("%+v: %v, hint %v", c.CompareConfig, err, known)
		}
	}
}
