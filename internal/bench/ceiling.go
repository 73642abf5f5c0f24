package bench

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/tensor"
)

// Ceilings are what no program can pass on a device: of a processor what it has just shown, of a card what its maker says.
type Ceilings struct {
	threads int
	fma     float64         // FLOP/s of float32 in registers, of all threads
	clock   float64         // Hz; 0 if it cannot be measured
	memory  map[int]float64 // bytes a second, by the class of the size
	card    *cards.Card     // nil: the processor
	buffers [3][]float32    // that memory was measured with last
}

// newCeilings are those of an env's device. One that nothing is known of has none: all are 0.
func newCeilings(env *tensor.Env) (*Ceilings, error) {
	c := &Ceilings{memory: map[int]float64{}}
	name, err := device.ParseName(env.Device().Name())
	if err != nil {
		return nil, err
	}
	if name.Kind == "cpu" {
		return c, nil
	}
	c.card = &cards.Card{}
	card := name.Card
	if name.Kind == "null" && card == "" {
		card = cards.Default
	}
	model := env.Device().Properties().Model
	for _, known := range cards.All {
		if known.Name == card || card == "" && strings.Contains(model, known.Model) {
			c.card = &known
		}
	}
	return c, nil
}

// Refresh measures the processor again: the highest that was ever seen counts, since a busy machine shows less than it can.
func (c *Ceilings) Refresh() {
	if c.card != nil {
		return
	}
	if c.threads != par.Threads() {
		*c = Ceilings{threads: par.Threads(), memory: c.memory}
	}
	rates := make([]float64, c.threads)
	par.For(c.threads, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			rates[i] = 2 * kernels.Ceiling(cpufeat.Active())
		}
	})
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	c.clock = max(c.clock, cpufeat.Clock())
	paper := c.clock * float64(cpufeat.Describe().ID.Rate().At(cpufeat.Active())) * float64(c.threads)
	c.fma = max(c.fma, sum, paper)
}

// peak is the FLOP/s of products of a dtype.
func (c *Ceilings) peak(dt dtype.DType) float64 {
	switch {
	case c.card != nil && dt.Size() == 2:
		return c.card.Tensor()
	case c.card != nil:
		return c.card.Vector() / float64(dt.Size()/4)
	case dt == dtype.F64:
		return c.fma / 2
	case dt == dtype.BF16 && cpufeat.Active() == cpufeat.AVX512BF16:
		return max(c.fma, c.clock*float64(cpufeat.Describe().ID.Rate().Pairs*c.threads))
	}
	return c.fma
}

// The sizes at which memory is measured: of three vectors together. What is larger counts as the largest.
const (
	leastBytes = 1 << 14
	mostBytes  = 1 << 28
)

// bandwidth is what memory gives a loop over so many bytes, a second: from whatever cache holds them. Writing counts twice,
// as what is written is fetched before.
func (c *Ceilings) bandwidth(bytes int64) float64 {
	if c.card != nil {
		return 1e9 * float64(c.card.Bandwidth)
	}
	class := (bits.Len64(uint64(min(max(bytes, leastBytes), mostBytes)-1)) + 1) / 2 * 2 // powers of 4
	if c.memory[class] == 0 {
		c.memory[class] = c.triad(1 << class)
	}
	return c.memory[class]
}

// triad measures memory with three vectors of so many bytes together, once per chunk on as many threads as there are and
// once on one, whichever is faster.
func (c *Ceilings) triad(bytes int) (best float64) {
	n := bytes / 12
	for i := range c.buffers {
		if len(c.buffers[i]) < n {
			c.buffers[i] = make([]float32, n)
		}
	}
	x, y, z := c.buffers[0][:n], c.buffers[1][:n], c.buffers[2][:n]
	for _, grain := range []int{n, max(n/c.threads/4, 1024)} {
		for range 4 {
			start, passes := time.Now(), 0
			for passes == 0 || time.Since(start) < 2*time.Millisecond {
				par.For(n, grain, func(lo, hi int) { kernels.Triad(x[lo:hi], y[lo:hi], z[lo:hi], 2, 3) })
				passes++
			}
			best = max(best, 16*float64(n*passes)/time.Since(start).Seconds())
		}
	}
	if bytes == mostBytes {
		c.buffers = [3][]float32{} // it is measured once
	}
	return best
}

// Floor is the least time of launches on the processor or on a card without paper: of each the greater of arithmetic
// and memory. Beside them a turn may move bytes.
func (c *Ceilings) Floor(l Launches, bytes float64) (seconds float64) {
	if c.card != nil && c.card.Bandwidth == 0 {
		return 0
	}
	if bytes > 0 {
		return bytes / c.bandwidth(int64(bytes))
	}
	for _, k := range l {
		seconds += c.least(k)
	}
	return seconds
}

// least is the least time of one launch.
func (c *Ceilings) least(k Launch) float64 {
	moved := float64(k.Bytes)
	if c.card == nil {
		moved += float64(k.Written())
	}
	t := moved / c.bandwidth(k.Bytes)
	if p := c.peak(k.dtype()); p > 0 {
		t = max(t, float64(k.FLOPs)/p)
	}
	return t
}

// dtype is that of the first operand, or of the result where there is none.
func (l Launch) dtype() dtype.DType {
	if in := l.Op.Ins(); len(in) > 0 {
		return in[0].DType
	}
	return l.Out[0].DType
}

// Here is what this machine's processor has just shown.
type Here struct {
	Model   string
	Threads int
	Clock   float64 // Hz; 0 if it cannot be measured
	Float32 float64 // FLOP/s of all threads, in registers
	Memory  float64 // bytes a second of a loop over three vectors, far larger than caches
}

// Measure finds the ceilings of the processor, in some tenths of a second.
func Measure() Here {
	c := &Ceilings{memory: map[int]float64{}}
	c.Refresh()
	return Here{cpufeat.Describe().Model, c.threads, c.clock, c.fma, c.bandwidth(mostBytes)}
}

// String is what was seen, on a line.
func (c *Ceilings) String() string {
	if c.card != nil {
		if c.card.Bandwidth == 0 {
			return "a card of which the program has no figures"
		}
		return fmt.Sprintf("%s, by its maker: %s FLOP/s in bfloat16, %sB/s", c.card.Model, render.Rate(c.card.Tensor()), render.Rate(1e9*float64(c.card.Bandwidth)))
	}
	text := fmt.Sprintf("%s, level %v, %d threads: %.0f GFLOP/s in registers", cpufeat.Describe().Model, cpufeat.Active(), c.threads, c.fma/1e9)
	if c.clock > 0 {
		text += fmt.Sprintf(" at %.2f GHz", c.clock/1e9)
	}
	return text + fmt.Sprintf(", %.1f GB/s of memory", c.bandwidth(mostBytes)/1e9)
}
