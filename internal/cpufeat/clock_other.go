//go:build purego || !amd64

package cpufeat

// Clock is 0: it is not known here.
func Clock() float64 { return 0 }
