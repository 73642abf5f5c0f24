package gpusim

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/warp"
)

// sampled chooses about n blocks of a grid, by the grid alone: places that are spread evenly over it, and beside each the next block
// along every dimension, from which it shows what blocks share. Each place is the numbers of its blocks in the list, the first its
// own.
func sampled(grid [3]int, n int) (list []int, places [][]int) {
	strides, dims := [3]int{1, grid[0], grid[0] * grid[1]}, 0
	for _, size := range grid {
		if size > 1 {
			dims++
		}
	}
	total, groups := grid[0]*grid[1]*grid[2], max(1, n/(1+dims))
	for i := range groups {
		base := int((2*float64(i) + 1) / float64(2*groups) * float64(total))
		place := []int{base}
		for d, size := range grid {
			switch at := base / strides[d] % size; {
			case size == 1:
			case at+1 < size:
				place = append(place, base+strides[d])
			default:
				place = append(place, base-strides[d])
			}
		}
		list, places = append(list, place...), append(places, place)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	for _, place := range places {
		for i, index := range place {
			place[i], _ = slices.BinarySearch(list, index)
		}
	}
	return list, places
}

// maxSampled is how many blocks can be told apart in what they touch.
const maxSampled = 32

// sample chooses the blocks to be counted, if not all are.
func (g *grid) sample(o Options) bool {
	n := min(o.Sample, maxSampled)
	if !o.Counters || n <= 0 || n >= g.Total {
		return false
	}
	g.Marked, g.places = sampled(g.dims(), n)
	g.only = g.Marked
	return true
}

// mark chooses blocks of which it is kept what each touches, where all are counted.
func (g *grid) mark() {
	const few = 8
	if g.Total > few {
		g.Marked, g.places = sampled(g.dims(), few)
		return
	}
	for i := range g.Total {
		g.Marked, g.places = append(g.Marked, i), append(g.places, []int{i})
	}
}

func (g *grid) dims() [3]int { return [3]int{int(g.Dims[0]), int(g.Dims[1]), int(g.Dims[2])} }

// others runs the blocks that are not counted, with code that does not look at accesses unless a check wants it.
func (g *grid) others(o Options, cores int) (*grid, error) {
	o.Counters = false
	c, err := g.kernel.compiled(o.variant(g.dev.Track))
	if err != nil {
		return nil, err
	}
	rest := newGrid(g.dev, g.kernel, c, g.dims(), [3]int{int(g.Block[0]), int(g.Block[1]), int(g.Block[2])}, g.dynamic, g.Params, o)
	rest.without, rest.Stale = g.only, g.Stale
	rest.failed.Store(g.failed.Load())
	workers := rest.runApart(cores)
	sum := warp.NewTally(c)
	for _, wk := range workers {
		sum.Add(&wk.Tally)
		rest.Dismiss(wk)
	}
	rest.rest = tallied{&sum, c}
	if rest.Stopped.Load() {
		g.Stopped.Store(true)
	}
	return rest, nil
}

// touched estimates the sectors that all blocks touch together from what the counted ones do. A sector that a place's own block
// shares with the next one along a dimension is shared along all of it; one that it does not is touched anew by each. Own is what one
// block touches, on average.
func (g *grid) touched(t *warp.Traffic) (all, own float64) {
	factors := g.factors()
	sum, seen := 0.0, 0.0
	t.Sectors(func(blocks uint32) {
		seen++
		for _, place := range g.places {
			if blocks>>place[0]&1 == 0 {
				continue
			}
			own++
			anew := 1.0
			for i, next := range place[1:] {
				if blocks>>next&1 == 0 {
					anew *= factors[i]
				}
			}
			sum += anew
		}
	})
	if own /= float64(len(g.places)); g.only == nil {
		return seen, own
	}
	return max(seen, sum/float64(len(g.places))), own
}

// factors are the sizes of the dimensions along which there is more than one block.
func (g *grid) factors() (list []float64) {
	for _, size := range g.dims() {
		if size > 1 {
			list = append(list, float64(size))
		}
	}
	return list
}

// scale is the blocks of the grid over those that were counted.
func (g *grid) scale() float64 {
	if g.only == nil {
		return 1
	}
	return float64(g.Total) / float64(len(g.only))
}

// scaled is a count of the counted blocks for all.
func scaled(n uint64, by float64) uint64 {
	if by == 1 {
		return n
	}
	return uint64(math.Round(float64(n) * by))
}
