package cpu_test

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/device/devicetest"
	"github.com/warpline-ml/warpline/internal/par"
)

// TestConformance runs every op on every level, and what is large on one thread and on two, whose bits must be equal.
func TestConformance(t *testing.T) {
	threads := par.Threads()
	defer par.SetThreads(threads)
	var variants []devicetest.Variant
	for _, level := range cpufeat.Levels() {
		use := func(n int) func() (restore func()) {
			return func() (restore func()) {
				par.SetThreads(n)
				return cpufeat.Set(level)
			}
		}
		one := level.String() + " on 1 thread"
		variants = append(variants, devicetest.Variant{Name: one, Use: use(1)},
			devicetest.Variant{Name: level.String() + " on 2 threads", Use: use(2), SameAs: one})
	}
	devicetest.Run(t, cpu.New, variants...)
}
