package conform

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(createCases([]float64{0}, []float64{1}, []float64{-2.75}, []float64{300}, []float64{1e-30}), ir.Full)
	offer(createCases([]float64{0, 1}, []float64{-5, 3}, []float64{200, -1}), ir.Iota)
	offer(randomCases([]float64{0, 1}, []float64{-3, 5}, []float64{0.1, 0.3}), ir.Uniform)
	offer(randomCases([]float64{0, 1}, []float64{-3, 0.02}), ir.Normal)
	offer(randIntCases, ir.RandInt)
	offer(dropoutCases, ir.Dropout)
	offer(copyCases, ir.Copy)
	offer(castCases, ir.Cast)
	offer(viewCases, ir.Reshape, ir.Permute, ir.Expand, ir.Slice)

	offer(gatherCases, ir.Gather)
	offer(scatterCases, ir.ScatterAdd)
	offer(embeddingCases, ir.Embedding)
	offer(embeddingGradCases, ir.EmbeddingGrad)
	offer(catCases, ir.Cat)
	offer(padCases, ir.Pad)
	offer(sortCases, ir.Sort)
	offer(lastAtCases, ir.LastAt)
}

// results are types that creation ops and copies write.
func (g *gen) results() []*ir.Type {
	m, n := g.big()
	return []*ir.Type{ir.Dense(g.dt), ir.Dense(g.dt, 0), ir.Dense(g.dt, 7), ir.Dense(g.dt, 3, 5), ir.Dense(g.dt, m, n),
		transposed(g.dt, m, n), stepped(g.dt, 5, 2, 9), rowsApart(g.dt, m, n)}
}

func createCases(params ...[]float64) func(g *gen) {
	return func(g *gen) {
		for i, p := range params {
			for j, t := range g.results() {
				if i > 0 && j > 3 && j < 7 {
					continue // once is enough of the large ones
				}
				g.add("a result", ir.Attr{Out: t}, ir.Scalars(p...))
			}
		}
	}
}

// keyed adds a random key to parameters.
func (g *gen) keyed(p ...float64) ir.Params { return g.withKey(ir.Scalars(p...)) }

func (g *gen) withKey(p ir.Params) ir.Params {
	p.Value[p.N] = g.r.Uint64()
	p.N++
	return p
}

func randomCases(params ...[]float64) func(g *gen) {
	return func(g *gen) {
		for _, p := range params {
			for _, t := range g.results() {
				g.add("a result", ir.Attr{Out: t}, g.keyed(p...))
			}
		}
	}
}

func randIntCases(g *gen) {
	bounds := [][2]int64{{0, 10}, {3, 4}, {0, 256}}
	switch g.dt {
	case dtype.U8:
		bounds[2] = [2]int64{0, 255}
	case dtype.I64: // which float64 would round
		bounds = append(bounds, [2]int64{1<<53 + 1, 1<<53 + 3}, [2]int64{math.MinInt64, math.MaxInt64}, [2]int64{math.MaxInt64 - 1, math.MaxInt64})
	}
	for _, b := range bounds {
		for _, t := range g.results() {
			g.add("a result", ir.Attr{Out: t}, g.withKey(ir.Integers(b[0], b[1])))
		}
	}
}

func dropoutCases(g *gen) {
	for _, shape := range g.shapes() {
		g.add("a shape", ir.Attr{}, g.keyed(0.3), g.of(plain, shape...))
	}
	g.add("nothing dropped", ir.Attr{}, g.keyed(0), g.of(plain, 61))
	g.add("all dropped", ir.Attr{}, g.keyed(1), g.of(positive, 61))
}

func copyCases(g *gen) {
	for _, shape := range g.shapes() {
		g.add("a shape", ir.Attr{}, ir.Params{}, g.of(plain, shape...))
	}
	m, n := g.big()
	for i, name := range viewNames {
		g.add("from "+name, ir.Attr{}, ir.Params{}, operand{g.views(m, n)[name], plain})
		g.add("from "+name, ir.Attr{}, ir.Params{}, operand{g.views(3, 5, 2, 7)[name], plain})
		if i > 2 {
			continue // a result cannot repeat
		}
		for _, from := range viewNames {
			g.add("from "+from+" to "+name, ir.Attr{Out: g.views(m, n)[name]}, ir.Params{}, operand{g.views(m, n)[from], plain})
		}
	}
	swapped := ir.Strided(g.dt, []int{5, 33, 17}, []int{33 * 17, 1, 33})
	g.add("the last two dimensions swapped", ir.Attr{}, ir.Params{}, operand{swapped, plain})
}

func castCases(g *gen) {
	for _, to := range dtype.All() {
		a := ir.Attr{DType: to}
		for _, shape := range [][]int{{}, {0}, {1}, {7}, {1031}} {
			g.add("a shape", a, ir.Params{}, g.of(wideRange, shape...))
		}
		m, n := g.big()
		g.add("transposed", a, ir.Params{}, operand{transposed(g.dt, m, n), wideRange})
		g.add("one number", a, ir.Params{}, operand{number(g.dt, 3, 7), wideRange})
		if g.dt.IsFloat() {
			list := append(special(g.dt), 2147483648, -2147483904, 9.3e18, -9.3e18, 255.9, 256, -1, 65520, 65519, 3.4e38)
			g.add("the ends of the range", a, ir.Params{}, g.of(values(list, 1), 2*len(list)))
		} else {
			g.add("the ends of the range", a, ir.Params{}, g.of(extremes(1), 28))
		}
	}
}

func viewCases(g *gen) {
	m, n := 6, 4
	t := ir.Dense(g.dt, m, n)
	switch g.code {
	case ir.Reshape:
		g.add("a view", ir.Attr{Out: ir.Dense(g.dt, 3, 8)}, ir.Params{}, operand{t, plain})
		g.add("a view of a view", ir.Attr{Out: ir.Dense(g.dt, 2, 3, 1, 4)}, ir.Params{}, operand{rowsApart(g.dt, m, n), plain})
	case ir.Permute:
		g.add("a view", ir.Attr{Dims: dims(1, 0)}, ir.Params{}, operand{t, plain})
		g.add("a view", ir.Attr{Dims: dims(2, 0, 1)}, ir.Params{}, g.of(plain, 2, 3, 5))
	case ir.Expand:
		g.add("a view", ir.Attr{Out: ir.Dense(g.dt, 3, m, n)}, ir.Params{}, operand{t, plain})
		g.add("a view", ir.Attr{Out: ir.Dense(g.dt, 3, 7)}, ir.Params{}, g.of(plain, 3, 1))
	case ir.Slice:
		g.add("a view", ir.Attr{Axis: 1, Dims: dims(1, 2, 2)}, ir.Params{}, operand{t, plain})
		g.add("nothing", ir.Attr{Axis: 0, Dims: dims(6, 0, 1)}, ir.Params{}, operand{t, plain})
	}
}

func dims(v ...int32) (d [ir.MaxRank]int32) {
	copy(d[:], v)
	return d
}

func gatherCases(g *gen) {
	at := func(axis int8) ir.Attr { return ir.Attr{Axis: axis} }
	m, n := g.big()
	g.add("rows", at(1), ir.Params{}, g.of(plain, 3, 5), g.index(5, 3, 7))
	g.add("columns", at(0), ir.Params{}, g.of(plain, 3, 5), g.index(3, 9, 4))
	g.add("the middle", at(1), ir.Params{}, g.of(plain, 2, 5, 3), g.index(5, 2, 1, 3))
	g.add("nothing", at(0), ir.Params{}, g.of(plain, 3), g.index(3, 0))
	g.add("a large shape", at(1), ir.Params{}, g.of(plain, m, n), g.index(n, m, n))
	g.add("an index too large", at(1), ir.Params{}, g.of(plain, 2, 5), g.outside(5, 2, 3)).Fails = true
	g.add("a negative index", at(0), ir.Params{}, g.of(plain, 2, 5), g.outside(-1, 1, 3)).Fails = true
	g.add("an index of nothing", at(1), ir.Params{}, g.of(plain, 3, 0), g.outside(0, 3, 2)).Fails = true
}

// outside is an operand of indices that ends with a bad one.
func (g *gen) outside(bad int, shape ...int) operand {
	t := ir.Dense(dtype.I64, shape...)
	list := make([]float64, t.Size())
	list[len(list)-1] = float64(bad)
	return operand{t, values(list, 1)}
}

func scatterCases(g *gen) {
	at := func(axis int8) ir.Attr { return ir.Attr{Axis: axis} }
	m, n := g.big()
	g.add("rows", at(1), ir.Params{}, g.of(plain, 3, 5), g.index(5, 3, 7), g.of(plain, 3, 7))
	g.add("columns", at(0), ir.Params{}, g.of(plain, 3, 5), g.index(3, 9, 4), g.of(plain, 9, 4))
	g.add("nothing", at(0), ir.Params{}, g.of(plain, 3), g.index(3, 0), g.of(plain, 0))
	g.add("many to few", at(0), ir.Params{}, g.of(plain, 3, 2), g.index(3, 501, 2), g.of(plain, 501, 2))
	g.add("a large shape", at(1), ir.Params{}, g.of(plain, m, n), g.index(n, m, n), g.of(plain, m, n))
	g.add("an index too large", at(1), ir.Params{}, g.of(plain, 2, 5), g.outside(5, 2, 3), g.of(plain, 2, 3)).Fails = true
	g.add("an index of nothing", at(1), ir.Params{}, g.of(plain, 3, 0), g.outside(0, 3, 2), g.of(plain, 3, 2)).Fails = true
}

func embeddingCases(g *gen) {
	m, n := g.big()
	g.add("a table", ir.Attr{}, ir.Params{}, g.of(plain, 7, 5), g.index(7, 3, 4))
	g.add("one index", ir.Attr{}, ir.Params{}, g.of(plain, 7, 5), g.index(7))
	g.add("nothing", ir.Attr{}, ir.Params{}, g.of(plain, 7, 5), g.index(7, 0))
	g.add("rows of nothing", ir.Attr{}, ir.Params{}, g.of(plain, 7, 0), g.index(7, 2))
	g.add("a large shape", ir.Attr{}, ir.Params{}, g.of(plain, m, n), g.index(m, 3, m))
	g.add("an index too large", ir.Attr{}, ir.Params{}, g.of(plain, 7, 5), g.outside(7, 3)).Fails = true
	g.add("a negative index", ir.Attr{}, ir.Params{}, g.of(plain, 7, 5), g.outside(-1, 3)).Fails = true
}

func embeddingGradCases(g *gen) {
	into := func(n, d int) ir.Attr { return ir.Attr{Out: ir.Dense(g.dt, n, d)} }
	m, n := g.big()
	g.add("a table", into(7, 5), ir.Params{}, g.of(plain, 3, 4, 5), g.index(7, 3, 4))
	g.add("nothing", into(7, 5), ir.Params{}, g.of(plain, 0, 5), g.index(7, 0))
	g.add("many to few", into(2, 3), ir.Params{}, g.of(plain, 301, 3), g.index(2, 301))
	g.add("a large shape", into(m, n), ir.Params{}, g.of(plain, 3*m, n), g.index(m, 3*m))
	g.add("an index too large", into(7, 5), ir.Params{}, g.of(plain, 3, 5), g.outside(7, 3)).Fails = true
}

func catCases(g *gen) {
	at := func(axis int8) ir.Attr { return ir.Attr{Axis: axis} }
	m, n := g.big()
	g.add("one", at(0), ir.Params{}, g.of(plain, 3, 2))
	g.add("rows", at(0), ir.Params{}, g.of(plain, 3, 5), g.of(plain, 0, 5), g.of(plain, 1, 5))
	g.add("columns", at(1), ir.Params{}, g.of(plain, 3, 5), g.of(plain, 3, 1), g.of(plain, 3, 0), g.of(plain, 3, 7))
	g.add("many", at(1), ir.Params{}, g.of(plain, 2, 1, 3), g.of(plain, 2, 2, 3), g.of(plain, 2, 3, 3), g.of(plain, 2, 4, 3), g.of(plain, 2, 5, 3))
	g.add("a large shape", at(1), ir.Params{}, g.of(plain, m, n), g.of(plain, m, 3))
}

func padCases(g *gen) {
	m, n := g.big()
	pad := func(axis int8, before, after, between int32) ir.Attr {
		return ir.Attr{Axis: axis, Dims: dims(before, after, between)}
	}
	g.add("around", pad(0, 2, 3, 0), ir.Scalars(1), g.of(plain, 4))
	g.add("between", pad(1, 1, 0, 2), ir.Scalars(0), g.of(plain, 3, 4))
	g.add("the middle", pad(1, 1, 2, 1), ir.Scalars(1), g.of(plain, 2, 3, 5))
	g.add("nothing", pad(0, 2, 1, 3), ir.Scalars(1), g.of(plain, 0, 3))
	g.add("one", pad(0, 0, 1, 5), ir.Scalars(0), g.of(plain, 1, 3))
	g.add("a large shape", pad(1, 3, 5, 0), ir.Scalars(0), g.of(plain, m, n))
	if g.dt.IsFloat() {
		g.add("minus infinity", pad(0, 2, 3, 0), ir.Scalars(math.Inf(-1)), g.of(plain, 4))
	}
}

func lastAtCases(g *gen) {
	m, n := g.big()
	into := func(axis int8, flag ir.Flag, shape ...int) ir.Attr {
		return ir.Attr{Axis: axis, Flag: flag, Out: ir.Dense(dtype.I64, shape...)}
	}
	awkward, size := g.of(extremes(1), 28), 28
	if list := special(g.dt); g.dt.IsFloat() {
		size = 2 * len(list)
		awkward = g.of(values(list, 1), size)
	}
	for _, flag := range []ir.Flag{0, ir.Descending} {
		g.add("rows", into(1, flag, 3, 5), ir.Params{}, g.of(plain, 3, 7), g.index(5, 3, 7))
		g.add("ties in columns", into(0, flag, 4, 3), ir.Params{}, g.of(few, 19, 3), g.index(4, 19, 3))
		g.add("a part of the lines", into(1, flag, 2, 6, 3), ir.Params{}, g.of(few, 1, 9, 2), g.index(6, 1, 9, 2))
		g.add("awkward values", into(0, flag, 3), ir.Params{}, awkward, g.index(3, size))
	}
	g.add("nothing", into(0, 0, 3), ir.Params{}, g.of(plain, 0), g.index(3, 0))
	g.add("a large shape", into(1, 0, m, n), ir.Params{}, g.of(plain, m, n), g.index(n, m, n))
	g.add("an index too large", into(1, 0, 2, 5), ir.Params{}, g.of(plain, 2, 3), g.outside(5, 2, 3)).Fails = true
	g.add("an index of nothing", into(1, 0, 3, 0), ir.Params{}, g.of(plain, 3, 2), g.outside(0, 3, 2)).Fails = true
	if g.dt == dtype.I64 {
		g.add("without keys", into(1, 0, 3, 5), ir.Params{}, g.index(5, 3, 7))
		g.add("many without keys", into(0, 0, 5, 3), ir.Params{}, g.index(5, 301, 3))
		g.add("a negative index", into(0, 0, 5, 3), ir.Params{}, g.outside(-1, 2, 3)).Fails = true
	}
}

func sortCases(g *gen) {
	m, n := g.big()
	along := func(axis int8, flag ir.Flag, k int32) ir.Attr { return ir.Attr{Axis: axis, Flag: flag, Dims: dims(k)} }
	awkward := g.of(extremes(1), 28)
	if list := special(g.dt); g.dt.IsFloat() {
		awkward = g.of(values(list, 1), 2*len(list))
	}
	for _, flag := range []ir.Flag{0, ir.Descending} {
		g.add("the middle", along(1, flag, 0), ir.Params{}, g.of(plain, 2, 6, 3))
		g.add("the first", along(1, flag, 2), ir.Params{}, g.of(plain, 2, 17))
		g.add("ties", along(1, flag, 5), ir.Params{}, g.of(few, 2, 13))
		g.add("awkward values", along(0, flag, 0), ir.Params{}, awkward)
	}
	g.add("the first awkward values", along(0, ir.Descending, 3), ir.Params{}, awkward)
	g.add("one", along(0, 0, 0), ir.Params{}, g.of(plain, 1))
	g.add("nothing", along(0, 0, 0), ir.Params{}, g.of(plain, 0))
	g.add("no rows", along(1, 0, 0), ir.Params{}, g.of(plain, 0, 3))
	g.add("the first of columns", along(0, 0, 1), ir.Params{}, g.of(plain, 9, 4))
	g.add("a large shape", along(1, 0, 0), ir.Params{}, g.of(plain, m, n))
}
