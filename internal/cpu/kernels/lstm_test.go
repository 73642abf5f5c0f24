package kernels

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestLSTM compares a step and its gradient with the formulas in float64.
func TestLSTM(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		for _, n := range []int{0, 1, 7, 8, 16, 29, 100, 8<<10 + 5} {
			draw := func(n int) []float32 {
				x := make([]float32, n)
				for i := range x {
					x[i] = float32(2 * r.NormFloat64())
				}
				return x
			}
			x, s, cell, dh, dnext := draw(4*n), draw(4*n), draw(n), draw(n), draw(n)
			y, h, next, da, dc := make([]float32, 4*n+1), make([]float32, n+1), make([]float32, n+1), make([]float32, 4*n+1), make([]float32, n+1)
			LSTMGates(y[:4*n], x, s)
			LSTMCell(h[:n], next, y, cell)
			LSTMGrad(da, dc[:n], dh, dnext, y, cell, next)
			want := [5][]float64{make([]float64, 4*n+1), make([]float64, n+1), make([]float64, n+1), make([]float64, 4*n+1), make([]float64, n+1)}
			for j := range n {
				a := func(gate int) float64 { return float64(x[gate*n+j]) + float64(s[gate*n+j]) }
				i, f, g, o, c := Sigmoid64(a(0)), Sigmoid64(a(1)), math.Tanh(a(2)), Sigmoid64(a(3)), float64(cell[j])
				after := f*c + i*g
				th, out := math.Tanh(after), float64(dh[j])
				d := out*o*(1-th*th) + float64(dnext[j])
				for gate, v := range [4][2]float64{{i, d * g * i * (1 - i)}, {f, d * c * f * (1 - f)}, {g, d * i * (1 - g*g)}, {o, out * th * o * (1 - o)}} {
					want[0][gate*n+j], want[3][gate*n+j] = v[0], v[1]
				}
				want[1][j], want[2][j], want[4][j] = o*th, after, d*f
			}
			for k, got := range [5][]float32{y, h, next, da, dc} { // the last element of each is not theirs
				wide := make([]float64, len(got))
				for j, v := range got {
					wide[j] = float64(v)
				}
				testutil.Close(t, wide, want[k], 1e-6, 3e-6)
			}
		}
	})
}
