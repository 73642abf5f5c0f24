package train

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSpikes plants spikes into losses and norms of several kinds, and finds these and no others.
func TestSpikes(t *testing.T) {
	kinds := map[string]func(step int, z float64) float64{
		"steady":         func(_ int, z float64) float64 { return 3 + 0.05*z },
		"falling":        func(step int, z float64) float64 { return (1 + 9*math.Exp(-float64(step)/150)) * math.Exp(0.05*z) },
		"long tail":      func(_ int, z float64) float64 { return 0.01 * math.Exp(1.2*z) },
		"falls to 0":     func(step int, z float64) float64 { return math.Exp(-float64(step)/100) * math.Exp(0.5*z) },
		"rises by a bit": func(step int, z float64) float64 { return (1 + float64(step)/1000) * math.Exp(0.1*z) },
	}
	for name, f := range kinds {
		for seed := range uint64(20) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			var calm, ill health
			for step := 1; step <= 1000; step++ {
				v := f(step, rnd.NormFloat64())
				calm.step(step, v, v)
				if step == 500 || step == 501 {
					v *= 1e9
				}
				ill.step(step, v, v)
			}
			if len(calm.spikes) > 0 {
				t.Errorf("%s, seed %d: %+v", name, seed, calm.spikes)
			}
			want := map[string]bool{"loss": true, "gradient norm": true}
			for _, s := range ill.spikes {
				if !want[s.What] || s.Step != 500 || s.Steps != 2 || s.Times < 1e4 {
					t.Errorf("%s, seed %d: %+v", name, seed, s)
				}
				delete(want, s.What)
			}
			if len(want) > 0 {
				t.Errorf("%s, seed %d: not found: %v", name, seed, want)
			}
		}
	}
}

// TestLevel: a loss that stays high is told once, and is what is typical then; what has no logarithm is left alone.
func TestLevel(t *testing.T) {
	var h health
	rnd := rand.New(rand.NewPCG(3, 4))
	for step := 1; step <= 400; step++ {
		v := 1 + 0.01*rnd.NormFloat64()
		switch {
		case step > 200:
			v *= 5
		case step%50 == 0:
			v = []float64{0, -1, math.NaN(), math.Inf(1)}[step/50%4]
		}
		h.step(step, v, math.NaN())
	}
	if len(h.spikes) != 1 || h.spikes[0].Step != 201 || h.spikes[0].Steps != stays {
		t.Errorf("%+v", h.spikes)
	}
}
