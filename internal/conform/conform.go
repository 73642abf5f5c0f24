// Package conform is the one conformance suite of engines: cases for every op code, dtype, awkward shape, stride and
// offset, run on a device and compared with the float64 reference of package ref within a table of tolerances. Tests of
// engines use it through devicetest, the program through its check command.
package conform

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
)

// Options choose the cases.
type Options struct {
	Seed  uint64    // of the operands
	Short bool      // without the shapes that are large enough for several threads
	Codes []ir.Code // nil: all
	// Takes tells by the name of a case whether it is wanted, with the copies of it whose results lie in an operand's memory; nil:
	// all are. For others no operands are drawn, so that those of one case hang on which are wanted before it.
	Takes func(name string) bool

	precise bool // without floats of fewer bits than 32
}

// Case is one launch: an op, its operands and what must come of it.
type Case struct {
	Name   string // "matmul/f32/3: [7,13] by [13,5]"
	Why    string // what the case is there for
	Op     ir.Op
	Params ir.Params
	In     []ref.Array // exactly representable values
	Alias  []int       // the operand in whose memory each result lies; -1, or nil: in its own
	Shift  int         // elements by which operands and results are off the device's alignment
	Fails  bool        // the launch must report an error

	dt    dtype.DType // what the maker was asked for
	left  bool        // nobody wants it
	image [][]byte    // operands as a device holds them
	once  sync.Once
	want  []ref.Array
	sizes [][]float64
	err   error
}

// Want returns the reference's results and for each of their elements the magnitude that its error is measured by: the
// sum of the absolute values of the terms it is made of.
func (c *Case) Want() (want []ref.Array, magnitude [][]float64, err error) {
	c.once.Do(func() {
		if c.want, c.err = ref.Eval(&c.Op, &c.Params, c.In); c.err == nil {
			c.sizes = magnitudes(c)
		}
	})
	return c.want, c.sizes, c.err
}

// DType is the one that the case is of.
func (c *Case) DType() dtype.DType { return c.dt }

// alias is the operand in whose memory result i lies, or -1.
func (c *Case) alias(i int) int {
	if c.Alias == nil {
		return -1
	}
	return c.Alias[i]
}

// Cases yields the cases of every code in the order of the codes. Equal options give equal cases.
func Cases(o Options) iter.Seq[*Case] {
	return func(yield func(*Case) bool) {
		for code := ir.Code(1); int(code) < ir.Codes; code++ {
			if makers[code] == nil || o.Codes != nil && !slices.Contains(o.Codes, code) {
				continue
			}
			for _, dt := range dtypes(code) {
				if o.precise && dt.IsFloat() && dt.Size() < dtype.F32.Size() {
					continue
				}
				g := &gen{r: newRand(o.Seed, uint64(code)<<8|uint64(dt)), code: code, dt: dt, short: o.Short, takes: o.Takes}
				makers[code](g)
				for _, c := range g.cases {
					if !c.left && !yield(c) {
						return
					}
				}
			}
		}
	}
}

func newRand(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// makers has the function that makes the cases of each code for one dtype.
var makers [ir.Codes]func(g *gen)

func offer(f func(g *gen), codes ...ir.Code) {
	for _, code := range codes {
		makers[code] = f
	}
}

// dtypes are those that a code's first operand, or its result if it has no operands, is tried with.
func dtypes(code ir.Code) (list []dtype.DType) {
	for _, dt := range dtype.All() {
		takes := code.Row().Class.Has(dt)
		switch code {
		case ir.GradNorm: // after the counts
			takes = ir.Floats.Has(dt)
		case ir.LossScale: // the only dtype of scales
			takes = dt == dtype.F32
		}
		if takes {
			list = append(list, dt)
		}
	}
	return list
}

// gen makes the cases of one code and dtype.
type gen struct {
	r     *rand.Rand
	code  ir.Code
	dt    dtype.DType
	short bool
	takes func(name string) bool
	cases []*Case
}

// operand is a type and what fills it.
type operand struct {
	t    *ir.Type
	fill fill
}

// of is a row-major operand of the generator's dtype.
func (g *gen) of(f fill, shape ...int) operand { return operand{ir.Dense(g.dt, shape...), f} }

// wide is an operand in the precision of statistics.
func (g *gen) wide(f fill, shape ...int) operand {
	return operand{ir.Dense(ir.Wide(g.dt), shape...), f}
}

// index is an operand of indices below n.
func (g *gen) index(n int, shape ...int) operand {
	return operand{ir.Dense(dtype.I64, shape...), between(0, n)}
}

// add makes a case.
func (g *gen) add(why string, attr ir.Attr, p ir.Params, in ...operand) *Case {
	types := make([]*ir.Type, len(in))
	for i, o := range in {
		types[i] = o.t
	}
	c := &Case{Why: why, Op: ir.New(g.code, attr, types...), Params: p, dt: g.dt, Shift: []int{0, 1, 3}[len(g.cases)%3]}
	c.Name = fmt.Sprintf("%s/%s/%d %v", g.code, g.dt, len(g.cases), types)
	if _, err := c.Op.Infer(); err != nil {
		panic(fmt.Sprintf("conform: %s: %v", c.Name, err)) // a mistake in the maker
	}
	g.cases = append(g.cases, c)
	if c.left = g.takes != nil && !g.takes(c.Name); c.left {
		return c
	}
	for _, o := range in {
		image, a := o.draw(g.r)
		c.image, c.In = append(c.image, image), append(c.In, a)
	}
	return c
}

// inPlace makes a copy of a case whose results lie in the memory of operands.
func (g *gen) inPlace(c *Case, alias ...int) {
	d := &Case{Name: fmt.Sprintf("%s in place of %v", c.Name, alias), Why: "the result takes the operand's memory", Op: c.Op, Params: c.Params, In: c.In, Alias: alias, Shift: c.Shift, dt: c.dt, image: c.image, left: c.left}
	g.cases = append(g.cases, d)
}

// draw makes an operand's bytes and the values they hold.
func (o operand) draw(r *rand.Rand) ([]byte, ref.Array) {
	image := make([]byte, o.t.Span()*o.t.DType.Size())
	for i := range image {
		image[i] = poison
	}
	ref.Encode(image, o.t, o.fill(r, o.t))
	return image, ref.Decode(image, o.t)
}
