package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/tensor"
)

// T is what [Test] needs of a *testing.T.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Sizes are those that [Test] takes: none, one, a few, around a warp and around usual blocks, a prime, and more than a block.
func Sizes() []int { return []int{0, 1, 3, 31, 32, 33, 127, 256, 257, 1009, 2050} }

// orders are the simulated runs of a size: under all checks each, in different orders of blocks, warps and lanes.
var orders = []string{"", "seed=1", "seed=2,schedule=independent", "seed=3", "seed=4,schedule=independent"}

// SeedEnv repeats the random numbers of a failed [Test], which prints the assignment.
const SeedEnv = "WARPLINE_TEST_SEED"

// Test runs a function for each of some sizes, those of [Sizes] where none are given, in several orders of blocks, warps and
// lanes, each on a simulated GPU of its own under all checks; and for each size on the card, where there is one. The function
// makes operands of the size, launches the kernel by [Case.Launch], and says by [Case.Want] what must have come out. What the
// checks find fails the test, with the kernel's line, block and thread.
//
//	kernel.Test(t, ptx, "swish", func(c *kernel.Case) {
//		x, y := c.Randn(c.N), c.Empty(dtype.F32, c.N)
//		c.Launch(kernel.Cover(c.N, 256), x, y, c.N)
//		in := x.Floats()
//		c.Want(y, 1e-6, func(i int) float64 { return in[i] / (1 + math.Exp(-in[i])) })
//	})
func Test(t T, source []byte, name string, f func(c *Case), sizes ...int) {
	t.Helper()
	if len(sizes) == 0 {
		sizes = Sizes()
	}
	seed := rand.Uint64()
	if s := os.Getenv(SeedEnv); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("%s=%q: want an unsigned decimal number", SeedEnv, s)
		}
		seed = n
	}
	card, err := cardFor(source)
	if err != nil {
		t.Fatalf("%v", err)
	}
	r := &runs{t: t, source: source, name: name, f: f, seed: seed}
	for i, words := range orders {
		words = strings.Trim("check=all,"+words, ",")
		for _, n := range sizes {
			r.run(fmt.Sprintf("sim:%s, %s", card, words), i%2 == 1, n, func() (*tensor.Env, error) { return tensor.Simulated(card, words) })
		}
	}
	if slices.Contains(tensor.Devices(), "cuda:0") {
		for _, n := range sizes {
			r.run("cuda:0", true, n, func() (*tensor.Env, error) { return tensor.Open("cuda:0") })
		}
	}
	if r.failed > maxFailures {
		t.Errorf("kernel %s: %d more runs failed", name, r.failed-maxFailures)
	}
	if r.failed > 0 {
		t.Errorf("repeat with %s=%d", SeedEnv, seed)
	}
}

// cardFor is a card that runs a module.
func cardFor(source []byte) (string, error) {
	m, err := ptx.Parse(string(source))
	if err != nil {
		return "", err
	}
	fits := func(c cards.Card) bool { return 10*c.Compute[0]+c.Compute[1] >= m.Target.SM }
	if c, _ := cards.Find(cards.Default); fits(c) {
		return c.Name, nil
	}
	for _, c := range cards.All {
		if fits(c) {
			return c.Name, nil
		}
	}
	return "", fmt.Errorf("no card runs code for %v", m.Target)
}

// maxFailures is how many failed runs a test tells of.
const maxFailures = 3

type runs struct {
	t      T
	source []byte
	name   string
	f      func(c *Case)
	seed   uint64
	failed int
}

// run is one of a test's, on a device that open opens.
func (r *runs) run(where string, filled bool, n int, open func() (*tensor.Env, error)) {
	r.t.Helper()
	env, err := open()
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	c := &Case{N: n, filled: filled, rand: rand.New(rand.NewPCG(r.seed, uint64(n)))}
	_, err = tensor.Try(env.NoGrad(), func(env *tensor.Env) struct{} {
		m, err := Load(env, r.source)
		if err != nil {
			r.t.Fatalf("%v", err)
		}
		c.Env, c.kernel = env, m.Kernel(r.name)
		r.f(c)
		env.Sync()
		return struct{}{}
	})
	if err != nil {
		c.wrong = append([]string{err.Error()}, c.wrong...)
	} else if c.launches == 0 {
		c.wrong = append(c.wrong, "the function launched nothing: it calls c.Launch")
	}
	if len(c.wrong) == 0 {
		return
	}
	if r.failed++; r.failed <= maxFailures {
		r.t.Errorf("kernel %s of %d on %s:\n\t%s", r.name, n, where, strings.Join(c.wrong, "\n\t"))
	}
}

// Case is one run of a [Test], for the goroutine that it calls.
type Case struct {
	N   int         // the size
	Env *tensor.Env // of the device

	kernel   *Kernel
	filled   bool // what the kernel writes holds NaN before
	rand     *rand.Rand
	launches int
	wrong    []string
}

// Rand draws random numbers, the same ones in each order of a size.
func (c *Case) Rand() *rand.Rand { return c.rand }

// Randn makes float32 numbers of the standard normal distribution, the same ones in each order of a size.
func (c *Case) Randn(shape ...int) *tensor.Tensor {
	v := make([]float32, ir.Dense(dtype.F32, shape...).Size())
	for i := range v {
		v[i] = float32(c.rand.NormFloat64())
	}
	return tensor.From(c.Env, v, shape...)
}

// Empty makes a value for the kernel to write, as [Empty]. In some orders it holds NaN before, or 85 where it holds no floats, so
// that elements that nobody writes show.
func (c *Case) Empty(dt dtype.DType, shape ...int) *tensor.Tensor {
	switch {
	case !c.filled:
		return Empty(c.Env, dt, shape...)
	case dt.IsFloat():
		return c.Env.FullOf(dtype.F32, math.NaN(), shape...).Cast(dt)
	}
	return c.Env.FullOf(dt, 85, shape...)
}

// Launch launches the kernel, as [Kernel.Launch], and waits for it, so that what is found is known to be its.
func (c *Case) Launch(g Grid, args ...any) {
	c.launches++
	c.Env.Sync()
	c.kernel.Launch(c.Env, g, args...)
	c.Env.Sync()
}

// Want compares y's elements, in row-major order, with a function in float64. They may be off by a tolerance, of numbers beyond
// 1 as a share.
func (c *Case) Want(y *tensor.Tensor, tolerance float64, want func(i int) float64) {
	got := y.Floats()
	wrong, first, last, worst := 0, 0, 0, 0.0
	for i, g := range got {
		w := want(i)
		off := math.Abs(g-w) / max(1, math.Abs(w))
		if g == w || math.IsNaN(g) && math.IsNaN(w) || off <= tolerance {
			continue
		}
		if wrong == 0 {
			first = i
		}
		wrong++
		last, worst = i, max(worst, off)
	}
	if wrong == 0 {
		return
	}
	text := fmt.Sprintf("%s of %v is %v, want %v; ", element(first, y.Shape()), y.Type(), got[first], want(first))
	switch {
	case wrong == 1:
		text += "the others are right"
	case wrong == last-first+1:
		text += fmt.Sprintf("%d in a row are wrong, up to %s", wrong, element(last, y.Shape()))
	default:
		text += fmt.Sprintf("%d of %d are wrong, the last %s", wrong, len(got), element(last, y.Shape()))
	}
	if !math.IsNaN(worst) && worst > 0 {
		text += fmt.Sprintf("; off by %.3g at most, %.3g is allowed", worst, tolerance)
	}
	c.wrong = append(c.wrong, text)
}

// element names the i-th element by its place.
func element(i int, shape []int) string {
	place := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		place[d] = i % shape[d]
		i /= shape[d]
	}
	return strings.ReplaceAll(fmt.Sprint("element ", place), " [", " [")
}
