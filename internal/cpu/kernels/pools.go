package kernels

// Pooling is the sizes of a pooling of planes of H×W to OH×OW. Every window has an element within the plane.
type Pooling struct {
	H, W, OH, OW                                   int
	KernelH, KernelW, StrideH, StrideW, PadH, PadW int
}

// Rows and Cols are the part of the window of an output row or column that lies within the plane.
func (g *Pooling) Rows(r int) (lo, hi int) { return within(r*g.StrideH-g.PadH, g.KernelH, g.H) }

// Cols are those of a column.
func (g *Pooling) Cols(c int) (lo, hi int) { return within(c*g.StrideW-g.PadW, g.KernelW, g.W) }

func within(lo, n, size int) (int, int) { return max(lo, 0), min(lo+n, size) }

// Pairs reports the common case of windows of 2×2 side by side.
func (g *Pooling) Pairs() bool {
	return g.KernelH == 2 && g.KernelW == 2 && g.StrideH == 2 && g.StrideW == 2 && g.PadH == 0 && g.PadW == 0
}
