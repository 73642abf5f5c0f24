package cpu

import (
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// BenchmarkLSTM is a step of 32 samples of 256 cells, and back, without its products.
func BenchmarkLSTM(b *testing.B) {
	c, gates := ir.Dense(dtype.F32, 32, 256), ir.Dense(dtype.F32, 32, 4*256)
	b.Run("step", func(b *testing.B) {
		rate(b, "Gcells/s", c.Size(), ir.LSTMStep, ir.Attr{}, ir.Params{}, gates, gates, c)
	})
	b.Run("back", func(b *testing.B) {
		rate(b, "Gcells/s", c.Size(), ir.LSTMStepGrad, ir.Attr{}, ir.Params{}, c, c, gates, c, c)
	})
}
