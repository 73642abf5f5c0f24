package digits

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/internal/rng"
)

func TestGlyphTable(t *testing.T) {
	for digit, ways := range glyphs {
		for w, g := range ways {
			if g.weight < 1 || len(g.strokes) == 0 {
				t.Errorf("%d, way %d: weight %d, %d strokes", digit, w, g.weight, len(g.strokes))
			}
			for _, s := range g.strokes {
				if len(s) < 2 || len(s) > maxKnots {
					t.Errorf("%d, way %d: a stroke of %d knots, want 2 to %d", digit, w, len(s), maxKnots)
				}
				for _, k := range s {
					if k[0] < 0 || k[0] > 100 || k[1] < 0 || k[1] > 100 || k[2] < 0 || k[2] > corner {
						t.Errorf("%d, way %d: knot %v", digit, w, k)
					}
				}
			}
		}
	}
}

func TestPickFollowsWeights(t *testing.T) {
	ways := []glyph{{weight: 1}, {weight: 5}, {weight: 2}}
	r := rng.Stream{Key: 1}
	const n = 8000
	count := map[*glyph]float64{}
	for range n {
		count[pick(ways, &r)]++
	}
	for i := range ways {
		want := n * float64(ways[i].weight) / 8
		if got := count[&ways[i]]; math.Abs(got-want) > 4*math.Sqrt(want) {
			t.Errorf("way %d of weight %d chosen %v times of %d", i, ways[i].weight, got, n)
		}
	}
}

// TestPathHoldsEveryGlyph checks that no glyph, however jittered, is cut short.
func TestPathHoldsEveryGlyph(t *testing.T) {
	for digit, ways := range glyphs {
		for w := range ways {
			for seed := range rng.Key(300) {
				var p path
				p.trace(&ways[w], &rng.Stream{Key: seed})
				starts := 0
				for i := range p.n {
					if p.starts[i] {
						starts++
					}
				}
				if p.n == maxPoints || starts != len(ways[w].strokes) {
					t.Fatalf("%d, way %d: %d points, %d strokes of %d", digit, w, p.n, starts, len(ways[w].strokes))
				}
			}
		}
	}
}

// TestCatmullRom uses that the spline goes through its two middle knots and
// reproduces polynomials of degree two.
func TestCatmullRom(t *testing.T) {
	f := func(t float64) float64 { return 3*t*t - 2*t + 1 }
	for _, at := range []float64{0, 0.125, 0.5, 0.8, 1} {
		if got := catmullRom(f(-1), f(0), f(1), f(2), at); math.Abs(got-f(at)) > 1e-14 {
			t.Errorf("at %v: %v, want %v", at, got, f(at))
		}
	}
	if b, c := catmullRom(9, 2, 5, -7, 0), catmullRom(9, 2, 5, -7, 1); b != 2 || c != 5 {
		t.Errorf("the ends are %v and %v, want 2 and 5", b, c)
	}
}

// TestPieceArea compares the ink of one piece with the area of its outline:
// a rectangle and two half discs, which the soft edge enlarges by π·soft²/12.
func TestPieceArea(t *testing.T) {
	const a, b, soft = 2.0, 2.7, 1.2
	for _, c := range []struct{ from, to point }{
		{point{8, 14}, point{20, 14}},
		{point{9.3, 6.1}, point{18.7, 21.4}},
		{point{14.2, 13.6}, point{14.2, 13.6}},
	} {
		for _, radius := range []float64{a, b} {
			var ink canvas
			ink.piece(c.from, c.to, radius, radius, soft)
			sum := 0.0
			for _, v := range ink {
				sum += v
			}
			length := math.Hypot(c.to.x-c.from.x, c.to.y-c.from.y)
			want := 2*radius*length + math.Pi*(radius*radius+soft*soft/12)
			if math.Abs(sum-want) > 0.02*want {
				t.Errorf("from %v to %v, radius %v: ink %.2f, want %.2f", c.from, c.to, radius, sum, want)
			}
		}
	}
}

func TestFitCentresAndScales(t *testing.T) {
	for seed := range rng.Key(200) {
		var p path
		r := rng.Stream{Key: seed}
		p.trace(&glyphs[seed%10][0], &r)
		p.warp(&r)
		p.lean(&r)
		p.fit(1.5, &r)
		lo, hi := p.bounds()
		if box := max(hi.x-lo.x, hi.y-lo.y) + 3; box < 0.87*boxSide || box > 1.13*boxSide {
			t.Errorf("seed %d: fitted into %.1f pixels, want %v within 12 %%", seed, box, boxSide)
		}
		if m := p.mass(); max(math.Abs(m.x-14), math.Abs(m.y-14)) > 5*shiftSD {
			t.Errorf("seed %d: centre of mass at %.1f, %.1f", seed, m.x, m.y)
		}
	}
}
