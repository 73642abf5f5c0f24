//go:build purego || !(amd64 || arm64)

package kernels

// assembly reports whether there are vectors: there are none.
func assembly() bool { return false }

func (mapping) inAssembly(_, _, _ []float32, _, _ float32) bool { return false }

func turnInAssembly(_, _ []float32, _ uint64, _ func(dst, x []float32)) bool { return false }

func turnAssembly(_, _ []uint32, _, _, _, _ int) (r, c int) { return 0, 0 }

func widenAssembly(int, []float32, []uint16) int { return 0 }

func narrowAssembly(int, []uint16, []float32) int { return 0 }
