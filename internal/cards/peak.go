package cards

// tensor is the dense rate of tensor cores in bfloat16 with sums in float32 (float16 before Ampere), TFLOP/s, by the data
// sheets of NVIDIA; for GeForce cards half of what they reach with sums in float16.
var tensor = map[string]float64{
	"v100-16": 125, "v100-32": 125, "t4": 65, "a100-40": 312, "a100-80": 312, "rtx-3090": 71, "l4": 121, "rtx-4090": 165.2,
	"l40s": 362, "h100-pcie": 756, "h100-80": 989, "h200": 989, "b200": 2250, "rtx-5090": 209.5,
}

// Tensor is the dense rate of the tensor cores in bfloat16, FLOP/s; 0 for a card without any.
func (c *Card) Tensor() float64 { return 1e12 * tensor[c.Name] }

// Vector is the rate of multiply-adds of float32, FLOP/s: 64 lanes to a multiprocessor on Volta, Turing and A100, 128 since.
func (c *Card) Vector() float64 {
	lanes := 128
	if c.Compute[0] < 8 || c.Compute == [2]int{8, 0} {
		lanes = 64
	}
	return 2 * float64(lanes*c.SMs) * 1e6 * float64(c.Clock)
}
