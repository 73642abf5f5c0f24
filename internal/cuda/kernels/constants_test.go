package kernels_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// The polynomials behind normal numbers stand twice, for the CPU and for GPUs. A digit that differs shows in one number of
// twenty million, which no comparison of results would meet.
func TestConstantsOfNormalNumbers(t *testing.T) {
	gpu, cpu := literals(t, "src/philox.cuh"), literals(t, "../../rng/normal.go")
	if len(cpu) < 20 {
		t.Fatalf("%d constants in package rng", len(cpu))
	}
	for _, c := range cpu {
		if !slices.Contains(gpu, c) {
			t.Errorf("package rng has %s, philox.cuh has not", c)
		}
	}
	if len(gpu) != len(cpu)+1 { // 2π, which Go computes
		t.Errorf("%d constants in philox.cuh, %d in package rng", len(gpu), len(cpu))
	}
}

// literals lists the decimal numbers of many digits in a source file.
func literals(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`\d\.\d{12,}(e-?\d+)?`).FindAllString(string(text), -1)
}
