package cards

import "strings"

// Type is a kind of operands that tensor cores take.
type Type uint8

// The types, each with sums in float32 or int32.
const (
	Float16 Type = iota
	BFloat16
	TF32
	Int8
	Float8
	Float64
	Types // how many there are
)

var typeNames = [Types]string{"float16", "bfloat16", "tf32", "int8", "float8", "float64"}

// String is what people read.
func (t Type) String() string { return typeNames[t] }

// TensorRate is the operations a clock of a multiprocessor's tensor cores, dense; 0 for a type they do not take.
func (c *Card) TensorRate(t Type) int {
	since := func(major, minor int) int {
		if c.Compute[0] > major || c.Compute[0] == major && c.Compute[1] >= minor {
			return c.Half
		}
		return 0
	}
	switch t {
	case BFloat16:
		return since(8, 0)
	case TF32:
		return since(8, 0) / 2
	case Int8:
		if strings.HasPrefix(c.Model, "GeForce") { // whose rate with sums in float32 is halved
			return 4 * since(7, 5)
		}
		return 2 * since(7, 5)
	case Float8:
		return 2 * since(8, 9)
	case Float64: // as many as float32 without tensor cores, in A100 and H100
		if c.Compute == [2]int{8, 0} || c.Compute == [2]int{9, 0} {
			return c.Half / 16
		}
		return 0
	}
	return c.Half
}

// HalfRate is the operations a clock of a multiprocessor in half precision without tensor cores: pairs of multiply-adds.
func (c *Card) HalfRate() float64 { return float64(4 * c.SM().Half) }

// TensorPeak is the dense rate of the tensor cores in a type, operations a second.
func (c *Card) TensorPeak(t Type) float64 {
	return float64(c.SMs*c.TensorRate(t)) * 1e6 * float64(c.TensorClock)
}

// Tensor is the dense rate of the tensor cores in bfloat16, float16 before Ampere, FLOP/s; 0 for a card without any.
func (c *Card) Tensor() float64 { return c.TensorPeak(Float16) }

// Vector is the rate of multiply-adds of float32, FLOP/s.
func (c *Card) Vector() float64 {
	return 2 * float64(c.SM().Float32*c.SMs) * 1e6 * float64(c.Clock)
}

// assumedL2 is the bytes a clock that L2 gives a multiprocessor of a card whose rate is not published.
const assumedL2 = 32

// L2Bandwidth is what L2 gives all multiprocessors, bytes a second.
func (c *Card) L2Bandwidth() float64 {
	rate := c.L2Rate
	if rate == 0 {
		rate = assumedL2 * c.SMs
	}
	return float64(rate) * 1e6 * float64(c.Clock)
}

// SM is what the card's multiprocessors have.
func (c *Card) SM() *SM { return SMOf(c.Compute) }
