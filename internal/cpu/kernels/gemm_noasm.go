//go:build purego || !(amd64 || arm64)

package kernels

import "github.com/warpline-ml/warpline/internal/cpufeat"

// multiplyAssembly reports that there is no assembly.
func multiplyAssembly(*Product[float32], []BatchDim, int, elements) bool { return false }

// ceiling does nothing: there is no loop on registers alone.
func ceiling(cpufeat.Level, int) (work float64) { return 0 }
