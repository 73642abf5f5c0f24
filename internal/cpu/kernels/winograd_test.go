package kernels

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestWinograd compares with the maps in Go, bit by bit, and looks at all of the result, for what was written beside.
func TestWinograd(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		// squares draws places that do not overlap, some of which go backwards, and the elements they need.
		squares := func(size, lines, n int) (s Squares, room int) {
			s.Col = WinogradLanes + r.IntN(9)
			s.Row = size*s.Col + r.IntN(9)
			s.Step = size*s.Row + r.IntN(9)
			s.Line = n*s.Step + r.IntN(9)
			room = lines * s.Line
			if r.IntN(2) == 0 {
				s.At, s.Row, s.Col = (size-1)*(s.Row+s.Col), -s.Row, -s.Col
			}
			return s, room
		}
		for range 100 {
			for w := range winogradMaps {
				lines, n := r.IntN(4), r.IntN(5)
				from, least := squares(winogradMaps[w].from, lines, n)
				src := noise[float32](r, least)
				to, least := squares(winogradMaps[w].to, lines, n)
				dst := noise[float32](r, least+1)
				bias := [][]float32{nil, noise[float32](r, WinogradLanes)}[r.IntN(2)]
				want := slices.Clone(dst)
				for l := range lines {
					for i := range n {
						Winograd(w).square(want, to.At+i*to.Step+l*to.Line, to, src, from.At+i*from.Step+l*from.Line, from, bias)
					}
				}
				Winograd(w).Apply(dst, to, src, from, lines, n, bias)
				if !slices.Equal(dst, want) {
					t.Fatalf("map %d of %d×%d squares from %+v to %+v differs", w, lines, n, from, to)
				}
			}
		}
	})
}
