//go:build purego || !amd64

package kernels

// MaxPool pools planes of float32 in assembly: there is none.
type MaxPool struct{}

// NewMaxPool is nil where there is no assembly for such a pooling.
func NewMaxPool(*Pooling) *MaxPool { return nil }

// Plane returns false: nothing was done.
func (*MaxPool) Plane(_ []float32, _ []int64, _ []float32) bool { return false }

// MaxPairsGrad returns false: there is no assembly.
func MaxPairsGrad(_ *Pooling, _, _ []float32, _ []int64) bool { return false }
