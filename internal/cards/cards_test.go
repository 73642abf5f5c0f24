package cards

import (
	"math"
	"regexp"
	"slices"
	"testing"
)

func TestCards(t *testing.T) {
	ordered := slices.IsSortedFunc(All, func(a, b Card) int {
		if c := slices.Compare(a.Compute[:], b.Compute[:]); c != 0 {
			return c
		}
		return int(a.Memory/GiB - b.Memory/GiB)
	})
	if !ordered {
		t.Error("the cards are not in order")
	}
	// A name that ends like "x4" would be read as a number of devices.
	count := regexp.MustCompile(`x\d+$|[^a-z0-9-]|^\d+$`)
	for i, c := range All {
		if count.MatchString(c.Name) || slices.Contains(Names()[:i], c.Name) {
			t.Errorf("card %q has a bad name or one that another has", c.Name)
		}
		if c.Memory < GiB || c.SMs < 1 || c.Compute[0] < 5 || c.Source == "" || c.Model == "" || c.L2 < mib || c.Link < 1 || c.TensorClock < 1 || c.SM().Compute != c.Compute {
			t.Errorf("%+v lacks a fact", c)
		}
	}
	// Clocks of memory and chip are known to lie in these ranges, so that a slip in a column shows.
	for _, c := range All {
		if k := c.MemoryClock(); k < 800_000 || k > 15_000_000 || c.Clock < 1400 || c.Clock > 2600 {
			t.Errorf("%s: memory at %d kHz, multiprocessors at %d MHz", c.Name, k, c.Clock)
		}
	}
	if c, _ := Find("rtx-4090"); c.MemoryClock() != 10_500_000 {
		t.Error(c.MemoryClock())
	}
	if c, ok := Find(Default); !ok || c.Name != Default {
		t.Error(c, ok)
	}
	if _, ok := Find("h900"); ok {
		t.Error("a card that does not exist is found")
	}
}

// TestPeaks compares the rates that follow from clocks with those that makers and the sources state, in TFLOP/s.
func TestPeaks(t *testing.T) {
	for name, want := range map[string][3]float64{ // float32, tf32, half
		"v100-32": {15.7, 0, 125}, "t4": {8.1, 0, 65}, "a100-80": {19.5, 156, 312}, "rtx-3090": {35.6, 35.6, 71}, "l4": {30.3, 60.6, 121},
		"rtx-4090": {82.6, 82.6, 165}, "l40s": {91.6, 183, 366}, "h100-pcie": {51.2, 378, 756}, "h100-80": {66.9, 495, 989},
		"h200": {66.9, 495, 989}, "b200": {74.4, 1127, 2250}, "rtx-5090": {104.8, 104.8, 209.5}, "rtx-a6000": {38.7, 77.4, 154.8}, "gtx-1650": {3, 0, 0},
	} {
		c, ok := Find(name)
		if !ok {
			t.Fatal(name)
		}
		for i, got := range []float64{c.Vector(), c.TensorPeak(TF32), c.Tensor()} {
			if got/1e12 < 0.99*want[i] || got/1e12 > 1.01*want[i] {
				t.Errorf("%s: %v TFLOP/s, want %v", name, got/1e12, want[i])
			}
		}
	}
	a100, _ := Find("a100-80")
	if a100.TensorPeak(Float8) != 0 || a100.TensorPeak(Float64) < 19.4e12 || a100.TensorPeak(Int8) < 623e12 || a100.L2Bandwidth() < 7.2e12 {
		t.Error(a100.TensorPeak(Float8), a100.TensorPeak(Float64), a100.TensorPeak(Int8), a100.L2Bandwidth())
	}
}

// TestMatch: every card is told from all others by what its driver reports of it, or another one; with ECC off a T4 has 15.83 GiB.
func TestMatch(t *testing.T) {
	for _, c := range All {
		for _, memory := range []int64{c.Memory, c.Memory - c.Memory*3/100, c.Memory + c.Memory*3/100} {
			if found, ok := Match(c.Compute, c.SMs, memory); !ok || found.Name != c.Name {
				t.Errorf("%s with %d bytes is taken for %q", c.Name, memory, found.Name)
			}
		}
	}
	if c, ok := Match([2]int{7, 5}, 40, gib(15.83)); !ok || c.Name != "t4" {
		t.Errorf("a T4 without ECC is taken for %q", c.Name)
	}
	if c, ok := Match([2]int{8, 0}, 1, 80*GiB); ok {
		t.Errorf("one multiprocessor is taken for %s", c.Name)
	}
}

// TestCPUs compares what follows from channels, units and clocks with what makers and their guides state.
func TestCPUs(t *testing.T) {
	seen := map[string]bool{}
	for i := range CPUs {
		c := &CPUs[i]
		if seen[c.Name] || c.Model == "" || c.Source == "" || c.Cores < 1 || c.Clock > c.Boost || c.Vector*c.Units == 0 || c.L1*c.L2*c.Bandwidth == 0 {
			t.Errorf("%+v", c)
		}
		seen[c.Name] = true
		if want := float64(c.Channels*8*c.Transfers) / 1e3; c.Channels > 0 && (float64(c.Bandwidth) < want-1 || float64(c.Bandwidth) > want+1) {
			t.Errorf("%s: %d GB/s, its channels have %v", c.Name, c.Bandwidth, want)
		}
		if f := c.Float32Rate(); c.BFloat16 != 0 && c.BFloat16 < 2*f || c.Int8 != 0 && c.Int8 < 2*f {
			t.Errorf("%s: %d, %d, %d operations a clock", c.Name, f, c.BFloat16, c.Int8)
		}
	}
	for name, want := range map[string][4]float64{ // TFLOP/s at the nominal clock
		"epyc-9654": {7.37, 3.69, 14.7, 29.5},
		"xeon-8480": {7.17, 3.58, 229, 459},
		"apple-m1":  {0.41, 0.205, 0, 1.64},
		"graviton4": {8.6, 4.3, 34.4, 68.8},
	} {
		i := slices.IndexFunc(CPUs, func(c CPU) bool { return c.Name == name })
		f32, f64, bf16, int8 := CPUs[i].Peaks()
		for k, got := range []float64{f32, f64, bf16, int8} {
			if math.Abs(got/1e12-want[k]) > 0.01*want[k] {
				t.Errorf("%s: %v, want %v", name, got/1e12, want[k])
			}
		}
	}
}
