//go:build purego || !amd64

package kernels

// vectorLength is the number of elements of x that assembly takes: none.
func vectorLength([]float32) int { return 0 }

func rowMaxAssembly([]float32) float32                 { panic("kernels: no assembly") }
func rowExpAssembly(_, _ []float32, _ float32) float64 { panic("kernels: no assembly") }
func rowSquaresAssembly([]float32, float64) float64    { panic("kernels: no assembly") }
func rowDotAssembly(_, _ []float32) float64            { panic("kernels: no assembly") }

func rowSumAssembly([]float32) float64                               { panic("kernels: no assembly") }
func rowWeighAssembly(_, _, _ []float32, _ float32)                  { panic("kernels: no assembly") }
func rowAffineAssembly(_, _ []float32, _, _, _ float32)              { panic("kernels: no assembly") }
func rowNormalizeAssembly(_, _, _, _ []float32, _, _ float32)        { panic("kernels: no assembly") }
func rowMixAssembly(_, _, _ []float32, _, _, _, _ float32)           { panic("kernels: no assembly") }
func rowGatherAssembly(_, _ []float64, _, _ []float32, _, _ float64) { panic("kernels: no assembly") }

func rowAdamAssembly(_, _, _, _ []float32, _ *AdamRates) { panic("kernels: no assembly") }
