//go:build !purego

package kernels

// Without masks, Go packs what taps see.

func (p *Packing[T]) assembly(*View) bool { return false }

func packTaps([]float32, int, []float32, int, int, int, int, int) bool { return false }
