//go:build purego || !amd64

package kernels

// HasWinograd reports whether the active level has the maps in assembly: it has not.
func HasWinograd() bool { return false }

func (Winograd) assembly(_ []float32, _ Squares, _ []float32, _ Squares, _ int, _ []float32) bool {
	return false
}
