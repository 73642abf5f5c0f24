package shapes_test

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/shapes"
	"github.com/warpline-ml/warpline/tensor"
)

const size = shapes.Side * shapes.Side

// counts are the pixels of a class by their grey value, of levels.
type counts [2][levels]int

// levels are so many that two pixels hardly ever share one, and thresholds between them are all that there are.
const levels = 1 << 14

func (c *counts) add(x []float32, labels []int64) {
	for k, v := range x {
		c[labels[k]][int(v*(levels-1))]++
	}
}

// best is the highest mean IoU of all thresholds, and of both ways to take its sides.
func (c *counts) best() (best float64) {
	var all, below [2]float64
	for class := range all {
		for _, n := range c[class] {
			all[class] += float64(n)
		}
	}
	for level := range levels {
		for _, shape := range []int{0, 1} { // which class is below
			right, wrong := below[shape], below[1-shape] // taken for shape: below[0]+below[1]
			rest := all[1-shape] - wrong                 // of the other class, above
			missed := all[shape] - right
			best = max(best, (right/(all[shape]+wrong)+rest/(all[1-shape]+missed))/2)
		}
		for class := range below {
			below[class] += float64(c[class][level])
		}
	}
	return best
}

// TestThresholds: no threshold finds the shapes, neither one for all pictures nor the best of any, whichever of its sides is taken for
// shape.
func TestThresholds(t *testing.T) {
	_, held := shapes.Split(0, 200)
	x, labels := make([]float32, size), make([]int64, size)
	var whole counts
	highest := 0.0
	for i := range held.Len() {
		shapes.Draw(x, labels, held.Seed, held.First+i)
		var one counts
		one.add(x, labels)
		whole.add(x, labels)
		highest = max(highest, one.best())
	}
	t.Logf("mean IoU %.3f by one threshold; by the best of each picture %.3f at most", whole.best(), highest)
	if whole.best() >= 0.6 || highest >= 0.6 {
		t.Error("thresholds find shapes")
	}
}

// TestBest: the search for a threshold finds one where there is one, on either side.
func TestBest(t *testing.T) {
	x := []float32{0.1, 0.2, 0.3, 0.8, 0.9}
	for _, labels := range [][]int64{{0, 0, 0, 1, 1}, {1, 1, 1, 0, 0}} {
		var c counts
		c.add(x, labels)
		if c.best() != 1 {
			t.Errorf("labels %v: %v", labels, c.best())
		}
	}
	var c counts
	c.add(x, []int64{0, 1, 0, 1, 0}) // best: all below 0.25 or so is ground, or the like
	if got := c.best(); got < 0.4 || got > 0.6 {
		t.Errorf("alternating labels: %v", got)
	}
}

// TestDraw: samples are the same each time, differ from one another, have values from 0 to 1, and shapes of the shares that people see;
// a loader has them in the shapes that the package tells.
func TestDraw(t *testing.T) {
	env, err := tensor.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	train, test := shapes.Split(40, 40)
	var all [][]float32
	inside := 0.0
	for _, set := range []shapes.Set{train, test} {
		for b, err := range data.Batches(env, set, data.Config{Size: 20}) {
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(b.X.Shape(), []int{20, 1, shapes.Side, shapes.Side}) || !slices.Equal(b.Y.Shape(), []int{20, shapes.Side, shapes.Side}) {
				t.Fatal(b.X.Shape(), b.Y.Shape())
			}
			for _, y := range tensor.Data[int64](b.Y) {
				inside += float64(y)
			}
			for x := range slices.Chunk(tensor.Data[float32](b.X), size) {
				if slices.Min(x) < 0 || slices.Max(x) > 1 || slices.Max(x)-slices.Min(x) < 0.8 {
					t.Errorf("values from %v to %v", slices.Min(x), slices.Max(x))
				}
				if slices.ContainsFunc(all, func(o []float32) bool { return slices.Equal(o, x) }) {
					t.Error("a picture comes twice")
				}
				all = append(all, slices.Clone(x))
			}
		}
	}
	if share := inside / 80 / size; share < 0.1 || share > 0.35 {
		t.Errorf("%.2f of the pixels are of shapes", share)
	}
	x, labels := make([]float32, size), make([]int64, size)
	shapes.Draw(x, labels, 3, -5)
	again, twice := make([]float32, size), make([]int64, size)
	shapes.Draw(again, twice, 3, -5)
	if !slices.Equal(x, again) || !slices.Equal(labels, twice) {
		t.Error("a sample is another when drawn again")
	}
}
