// Package sim has kernels to run on the simulated GPU: their sources and the PTX that clang makes of them.
package sim

import "embed"

// Files are sum, sum_bug and tour, each as CUDA C++ and as PTX.
//
//go:embed sum.cu sum.ptx sum_bug.cu sum_bug.ptx tour.cu tour.ptx
var Files embed.FS
