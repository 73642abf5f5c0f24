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
	suite := devicetest.New(t)
	large := suite.Large()
	defer par.SetThreads(par.Threads())
	for _, level := range cpufeat.Levels() {
		t.Run(level.String(), func(t *testing.T) {
			defer cpufeat.Set(level)()
			par.SetThreads(1)
			one := suite.Run(t, cpu.New)
			par.SetThreads(2)
			for name, sum := range large.Run(t, cpu.New) {
				if sum != one[name] {
					t.Errorf("%s: the bits depend on the number of threads", name)
				}
			}
			t.Run("gradients", func(t *testing.T) { suite.RunGrads(t, cpu.New) })
		})
	}
	t.Run("lowered", func(t *testing.T) { suite.RunLowered(t, cpu.New) })
}

func TestContract(t *testing.T) { devicetest.Contract(t, cpu.New) }
