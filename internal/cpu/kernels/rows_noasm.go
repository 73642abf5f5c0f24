//go:build purego || !(amd64 || arm64)

package kernels

func rowMaxAssembly([]float32) float32                               { panic("kernels: no assembly") }
func rowExpAssembly(_, _ []float32, _ float32) float64               { panic("kernels: no assembly") }
func rowSquaresAssembly([]float32, float64) float64                  { panic("kernels: no assembly") }
func rowDotAssembly(_, _ []float32) float64                          { panic("kernels: no assembly") }
func rowSumAssembly([]float32) float64                               { panic("kernels: no assembly") }
func rowAffineAssembly(_, _ []float32, _, _, _ float32)              { panic("kernels: no assembly") }
func rowNormalizeAssembly(_, _, _, _ []float32, _, _ float32)        { panic("kernels: no assembly") }
func rowMixAssembly(_, _, _ []float32, _, _, _, _ float32)           { panic("kernels: no assembly") }
func rowGatherAssembly(_, _ []float64, _, _ []float32, _, _ float64) { panic("kernels: no assembly") }
func rowTotalAssembly([]float32) float64                             { panic("kernels: no assembly") }
func rowMomentsAssembly([]float32, float64) (_, _ float64)           { panic("kernels: no assembly") }
func sumRowsAssembly(_ []float64, _ []float32, _, _ int)             { panic("kernels: no assembly") }
func rowTotalsAssembly(_ []float64, _ []float32, _, _ int)           { panic("kernels: no assembly") }
func sumOfRowsAssembly([]float64, *[8][]float32, int)                { panic("kernels: no assembly") }
func rowExtremeAssembly([]float32, float32) (float32, bool)          { panic("kernels: no assembly") }
func sgdMomentumAssembly(_, _, _ []float32, _ *SGDRates)             { panic("kernels: no assembly") }
func adamAssembly(_, _, _, _ []float32, _ *AdamRates)                { panic("kernels: no assembly") }
func sgdAssembly(_, _ []float32, _, _, _ float32)                    { panic("kernels: no assembly") }
func lstmCellAssembly(_, _, _, _ []float32)                          { panic("kernels: no assembly") }
func lstmGradAssembly(_, _, _, _, _, _, _ []float32)                 { panic("kernels: no assembly") }
