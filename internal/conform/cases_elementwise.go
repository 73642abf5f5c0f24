package conform

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		if code.Row().Group == ir.Elementwise && code != ir.Dropout {
			offer(elementwiseCases(code.Row()), code)
		}
	}
}

// elementwiseCases are the maker that follows from an op's row.
func elementwiseCases(row *ir.Row) func(g *gen) {
	try := row.Try
	if row.Params == 0 {
		try = []ir.Params{{}}
	}
	f := plain
	if row.Domain[0] == ir.Positives {
		f = positive
	}
	switch operands, _ := row.Operands(); {
	case operands == 3:
		return whereCases
	case operands == 2:
		return binaryCases(f, try[0])
	case row.Params > 0 && row.Domain[0] == ir.Positives:
		return powerCases(try)
	case row.Params > 0:
		return scaledCases(try...)
	case row.Domain[0] == ir.Positives:
		return unaryCases(log2s)
	case row.Domain[0] == ir.Inside:
		return unaryCases(inside)
	case row.Domain[0] == ir.Above:
		return unaryCases(shifted)
	}
	return unaryCases(plain)
}

// shapes are those that every elementwise op is tried on.
func (g *gen) shapes() [][]int {
	all := [][]int{{}, {0}, {1}, {7}, {2, 0, 3}, {3, 5}, {1, 17, 1}, {1031}}
	if !g.short {
		all = append(all, []int{40009})
	}
	return all
}

// big is a number of rows and columns that fill several vectors and tiles of an engine.
func (g *gen) big() (m, n int) {
	if g.short {
		return 19, 67
	}
	return 37, 130
}

// huge adds a view that is large enough for several threads.
func (g *gen) huge(p ir.Params, fills ...fill) {
	if g.short {
		return
	}
	in := []operand{{transposed(g.dt, 131, 257), fills[0]}}
	for _, f := range fills[1:] {
		in = append(in, g.of(f, 131, 257))
	}
	g.add("a large view", ir.Attr{}, p, in...)
}

// views are strided types of a shape, by name.
func (g *gen) views(shape ...int) map[string]*ir.Type {
	return map[string]*ir.Type{
		"transposed": transposed(g.dt, shape...), "with gaps": stepped(g.dt, shape...),
		"rows apart": rowsApart(g.dt, shape...), "a repeated row": repeated(g.dt, 0, shape...),
		"a repeated column": repeated(g.dt, len(shape)-1, shape...), "one number": number(g.dt, shape...),
	}
}

// viewNames fixes an order.
var viewNames = []string{"transposed", "with gaps", "rows apart", "a repeated row", "a repeated column", "one number"}

func unaryCases(f fill) func(g *gen) {
	return func(g *gen) {
		for _, shape := range g.shapes() {
			c := g.add("a shape", ir.Attr{}, ir.Params{}, g.of(f, shape...))
			if len(shape) == 1 {
				g.inPlace(c, 0)
			}
		}
		g.specials(ir.Params{})
		g.huge(ir.Params{}, f)
		m, n := g.big()
		for _, name := range viewNames {
			g.add(name, ir.Attr{}, ir.Params{}, operand{g.views(m, n)[name], f})
			g.add(name, ir.Attr{}, ir.Params{}, operand{g.views(3, 2, 5)[name], f})
		}
	}
}

// specials adds awkward values: of sines and cosines only those that every engine reduces well.
func (g *gen) specials(p ir.Params) {
	switch {
	case !g.dt.IsFloat():
		g.add("the ends of the range", ir.Attr{}, p, g.of(extremes(1), 28))
	case g.code == ir.Sin || g.code == ir.Cos || g.code == ir.Tan || g.code == ir.Sinc:
		g.add("several periods", ir.Attr{}, p, g.of(spread, 311))
		g.add("no angle", ir.Attr{}, p, g.of(values([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0}, 1), 8))
	default:
		g.add("NaN, infinities, zeros, subnormals", ir.Attr{}, p, g.of(values(special(g.dt), 1), 3*len(special(g.dt))))
		g.add("a wide range", ir.Attr{}, p, g.of(spread, 311))
	}
}

func scaledCases(params ...ir.Params) func(g *gen) {
	return func(g *gen) {
		for i, p := range params {
			for _, shape := range g.shapes()[i:] {
				c := g.add("a shape", ir.Attr{}, p, g.of(plain, shape...))
				if len(shape) == 1 {
					g.inPlace(c, 0)
				}
			}
			g.specials(p)
			m, n := g.big()
			for _, name := range viewNames {
				g.add(name, ir.Attr{}, p, operand{g.views(m, n)[name], plain})
			}
		}
	}
}

// powerCases have negative numbers too, of which a function of positive ones gives what PyTorch's does.
func powerCases(params []ir.Params) func(g *gen) {
	return func(g *gen) {
		for _, p := range params {
			g.add("positive", ir.Attr{}, p, g.of(positive, 1031))
			g.add("negative", ir.Attr{}, p, g.of(normal, 7, 5))
			g.specials(p)
		}
		m, n := g.big()
		for i, p := range params {
			g.inPlace(g.add("a large shape", ir.Attr{}, p, g.of(positive, m, n)), 0)
			name := viewNames[i%len(viewNames)]
			g.add(name, ir.Attr{}, p, operand{g.views(m, n)[name], normal})
		}
	}
}

func binaryCases(f fill, p ir.Params) func(g *gen) {
	return func(g *gen) {
		for _, shape := range g.shapes() {
			c := g.add("a shape", ir.Attr{}, p, g.of(f, shape...), g.of(f, shape...))
			if len(shape) == 1 && c.keepsDType() {
				g.inPlace(c, 0)
				g.inPlace(c, 1)
			}
		}
		g.pairs(p)
		g.huge(p, f, f)
		m, n := g.big()
		for i, name := range viewNames {
			other := viewNames[(i+2)%len(viewNames)]
			g.add(name+" and row-major", ir.Attr{}, p, operand{g.views(m, n)[name], f}, g.of(f, m, n))
			g.add("row-major and "+name, ir.Attr{}, p, g.of(f, m, n), operand{g.views(m, n)[name], f})
			g.add(name+" and "+other, ir.Attr{}, p, operand{g.views(5, 3, 7)[name], f}, operand{g.views(5, 3, 7)[other], f})
		}
	}
}

// keepsDType reports whether the result may take the memory of the first operand.
func (c *Case) keepsDType() bool {
	out, err := c.Op.Infer()
	return err == nil && out[0] == c.Op.In(0)
}

// pairs adds every pair of awkward values.
func (g *gen) pairs(p ir.Params) {
	if !g.dt.IsFloat() {
		g.add("the ends of the range", ir.Attr{}, p, g.of(extremes(1), 13*14), g.of(extremes(13), 13*14))
		g.add("ties", ir.Attr{}, p, g.of(few, 61), g.of(few, 61))
		return
	}
	list := special(g.dt)
	n, second := len(list), list
	if g.code == ir.GELUGrad || g.code == ir.GELUTanhGrad || g.code == ir.SiLUGrad {
		second = []float64{0, 1, -2.5, math.NaN()} // an infinite gradient times a derivative near 0 is anything
	}
	g.add("NaN, infinities, zeros, subnormals", ir.Attr{}, p, g.of(values(list, 1), n*n), g.of(values(second, n), n*n))
	g.add("ties", ir.Attr{}, p, g.of(few, 61), g.of(few, 61))
}

func whereCases(g *gen) {
	mask := func(t *ir.Type) operand { return operand{ir.Strided(dtype.Bool, t.Shape(), t.Strides()), whole} }
	for _, shape := range g.shapes() {
		t := ir.Dense(g.dt, shape...)
		c := g.add("a shape", ir.Attr{}, ir.Params{}, mask(t), operand{t, plain}, operand{t, plain})
		if len(shape) == 1 {
			g.inPlace(c, 1)
			g.inPlace(c, 2)
		}
	}
	m, n := g.big()
	for i, name := range viewNames {
		a, b := g.views(m, n)[name], g.views(m, n)[viewNames[(i+1)%len(viewNames)]]
		g.add("views", ir.Attr{}, ir.Params{}, mask(b), operand{a, plain}, g.of(plain, m, n))
		g.add("views", ir.Attr{}, ir.Params{}, mask(a), g.of(plain, m, n), operand{b, plain})
	}
	if g.dt.IsFloat() {
		t := ir.Dense(g.dt, 46)
		g.add("NaN in the branch not taken", ir.Attr{}, ir.Params{}, mask(t), g.of(values(special(g.dt), 1), 46), g.of(values(special(g.dt), 3), 46))
	}
}
