package gpusim

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
)

// sampled chooses about n blocks of a grid, by the grid alone: places that are spread evenly along each of its dimensions, in another
// order along each, and beside each the next block along every dimension, from which it shows what blocks share. Each place is the
// numbers of its blocks in the list, the first its own.
func sampled(grid [3]int, n int) (list []int, places [][]int) {
	strides, dims := [3]int{1, grid[0], grid[0] * grid[1]}, 0
	for _, size := range grid {
		if size > 1 {
			dims++
		}
	}
	groups := max(1, n/(1+dims))
	for i := range groups {
		var at [3]int
		base, turn := 0, 1
		for d, size := range grid {
			if size > 1 {
				at[d] = (2*(i*turn%groups) + 1) * size / (2 * groups)
				turn = nextCoprime(turn, groups)
			}
			base += at[d] * strides[d]
		}
		place := []int{base}
		for d, size := range grid {
			switch {
			case size == 1:
			case at[d]+1 < size:
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

// nextCoprime is the next number, from a on, that has no factor in common with n: steps of it go through all n in another order.
func nextCoprime(a, n int) int {
	for a++; ; a++ {
		x, y := a, n
		for y != 0 {
			x, y = y, x%y
		}
		if x == 1 {
			return a
		}
	}
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
	g.only, g.each = g.Marked, make([]amount, len(g.Marked))
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
// shares with the next one along a dimension is shared along all of it; one that it does not is touched anew by each.
func (g *grid) touched(t *warp.Traffic, l *estimate.Launch) {
	var seen tally
	var by [8]tally // of the sectors of places' own blocks, by the dimensions along which they are not shared: sums of whole numbers have no order
	t.Sectors(func(s warp.Sector) {
		seen.add(s)
		for _, place := range g.places {
			if s.Blocks>>place[0]&1 == 0 {
				continue
			}
			apart := 0
			for i, next := range place[1:] {
				apart |= int(1-s.Blocks>>next&1) << i
			}
			by[apart].add(s)
		}
	})
	all, own := estimate.Touched{}, uint64(0)
	for apart, n := range by {
		own += n.all
		anew := 1 / float64(len(g.places))
		for i, size := range g.factors() {
			if apart>>i&1 != 0 {
				anew *= size
			}
		}
		n.addTo(&all, anew)
	}
	l.Own, l.Touched = float64(own)/float64(len(g.places)), estimate.Touched{}
	if seen.addTo(&l.Touched, 1); g.only != nil && all.Unique > l.Unique {
		l.Touched = all
	}
}

// tally counts sectors.
type tally struct{ all, lone, part uint64 }

func (t *tally) add(s warp.Sector) {
	t.all++
	t.lone += simt.Bit(s.Lone)
	t.part += simt.Bit(s.Part)
}

func (t *tally) addTo(sum *estimate.Touched, times float64) {
	sum.Unique += float64(times * float64(t.all)) // rounded before it is added, on every machine
	sum.Lone += float64(times * float64(t.lone))
	sum.Part += float64(times * float64(t.part))
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

// amount is what a block did, as shares of which the blocks of a sample are compared.
type amount struct{ instructions, sectors, wavefronts uint64 }

func (a *amount) of(c *warp.CTA) {
	a.instructions, a.sectors, a.wavefronts = c.Tally.Amount(c.Launch.Code)
}

// Uncertainty is by how much counts that are scaled from some blocks may be off, as shares of them: half the width of the interval that
// would have the true count 95 times of 100, if places had been drawn by chance. Where all blocks do as much it is 0.
type Uncertainty struct{ Instructions, Sectors, Wavefronts float64 }

// uncertainty compares the places of a sample; nil for fewer than two.
func (g *grid) uncertainty() *Uncertainty {
	if len(g.places) < 2 {
		return nil
	}
	return &Uncertainty{
		g.halfWidth(func(a *amount) uint64 { return a.instructions }),
		g.halfWidth(func(a *amount) uint64 { return a.sectors }),
		g.halfWidth(func(a *amount) uint64 { return a.wavefronts }),
	}
}

// halfWidth is that of one count, as a share of it. Blocks of a place lie side by side and may be alike, so that each place counts
// once; where places happen to agree though their blocks do not, what the blocks tell counts.
func (g *grid) halfWidth(of func(*amount) uint64) float64 {
	var blocks, means []float64
	for i := range g.each {
		blocks = append(blocks, float64(of(&g.each[i])))
	}
	for _, place := range g.places {
		sum := 0.0
		for _, i := range place {
			sum += blocks[i]
		}
		means = append(means, sum/float64(len(place)))
	}
	left := 1 - float64(len(blocks))/float64(g.Total) // of the grid, which is not known
	return math.Sqrt(left) * max(interval(means), interval(blocks))
}

// interval is Student's t times the standard error of a mean, over the mean.
func interval(values []float64) float64 {
	if !slices.ContainsFunc(values, func(v float64) bool { return v != values[0] }) {
		return 0
	}
	n, sum, squares := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	for _, v := range values {
		squares += float64((v - sum/n) * (v - sum/n))
	}
	return student[min(len(values)-2, len(student)-1)] * math.Sqrt(squares/(n-1)/n) / (sum / n)
}

// student is the 97.5 % quantile of Student's t by degrees of freedom, from 1 on (any table of it).
var student = [maxSampled/2 - 1]float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131}

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
