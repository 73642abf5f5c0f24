package ref

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	set(lstmStep, ir.LSTMStep)
	set(lstmStepGrad, ir.LSTMStepGrad)
}

func sigma(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// lstmGate is gate k of cell j of gates[n,4h].
func lstmGate(gates []float64, h, j, k int) *float64 { return &gates[(j/h*4+k)*h+j%h] }

func lstmStep(c *call) ([]Array, error) {
	cell, n := c.in[2].Data, c.in[2].Type.Dim(1)
	h, next, gates := make([]float64, len(cell)), make([]float64, len(cell)), make([]float64, 4*len(cell))
	for j, v := range cell {
		var y [4]float64
		for k := range y {
			a := *lstmGate(c.in[0].Data, n, j, k) + *lstmGate(c.in[1].Data, n, j, k)
			if y[k] = sigma(a); k == 2 {
				y[k] = math.Tanh(a)
			}
			*lstmGate(gates, n, j, k) = y[k]
		}
		next[j] = y[1]*v + y[0]*y[2]
		h[j] = y[3] * math.Tanh(next[j])
	}
	return c.results(h, next, gates)
}

func lstmStepGrad(c *call) ([]Array, error) {
	dh, n := c.in[0].Data, c.in[0].Type.Dim(1)
	da, dc := make([]float64, 4*len(dh)), make([]float64, len(dh))
	for j, g := range dh {
		var y [4]float64
		for k := range y {
			y[k] = *lstmGate(c.in[2].Data, n, j, k)
		}
		t := math.Tanh(c.in[4].Data[j])
		d := c.in[1].Data[j] + g*y[3]*(1-t*t)
		for k, v := range [...]float64{d * y[2] * y[0] * (1 - y[0]), d * c.in[3].Data[j] * y[1] * (1 - y[1]), d * y[0] * (1 - y[2]*y[2]), g * t * y[3] * (1 - y[3])} {
			*lstmGate(da, n, j, k) = v
		}
		dc[j] = d * y[1]
	}
	return c.results(da, dc)
}
