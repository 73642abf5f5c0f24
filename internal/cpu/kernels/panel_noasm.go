//go:build purego || !(amd64 || arm64)

package kernels

// There is no assembly: every function reports that it did nothing.

func panelRows() (rows, width int, ok bool) { return 0, 0, false }

func readsSteps() bool { return false }

func multiplyPanel(*Panel[float32]) bool { return false }

func (p *Packing[T]) assembly(*View) bool { return false }

func packTaps([]float32, int, []float32, int, int, int, int, int) bool { return false }

func packLanes([]float32, int, []float32, int, int, int, int) bool { return false }
