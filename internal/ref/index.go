package ref

import (
	"fmt"
	"sort"

	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	set(gather, ir.Gather)
	set(scatterAdd, ir.ScatterAdd)
	set(embedding, ir.Embedding)
	set(embeddingGrad, ir.EmbeddingGrad)
	set(cat, ir.Cat)
	set(pad, ir.Pad)
	set(sorted, ir.Sort)
	set(lastAt, ir.LastAt)
}

func (c *call) outside(i int64, n int) error {
	return fmt.Errorf("ref: %s: index %d is outside of [0, %d)", c.op.Code, i, n)
}

// along lists, for each index of idx, the place in x that it names along the axis.
func (c *call) along(x, idx *Array) (places []int, err error) {
	i := 0
	from := make([]int, x.Type.Rank())
	each(idx.Type.Shape(), func(at []int) {
		v := idx.int(i)
		i++
		if v < 0 || v >= int64(x.dim(c.axis())) {
			err = c.outside(v, x.dim(c.axis()))
			return
		}
		copy(from, at)
		from[c.axis()] = int(v)
		places = append(places, place(x.Type.Shape(), from))
	})
	return places, err
}

func gather(c *call) ([]Array, error) {
	places, err := c.along(&c.in[0], &c.in[1])
	if err != nil {
		return nil, err
	}
	return c.pick(&c.in[0], places, 0)
}

// added is the result of adding the elements of src to x at places.
func (c *call) added(x, src *Array, places []int) ([]Array, error) {
	if integral(x.Type.DType) {
		v := make([]int64, len(x.Data))
		for i := range v {
			v[i] = x.int(i)
		}
		for i, to := range places {
			v[to] += src.int(i)
		}
		return c.ints(v)
	}
	v := append([]float64(nil), x.Data...)
	for i, to := range places {
		v[to] += src.Data[i]
	}
	return c.one(v)
}

func scatterAdd(c *call) ([]Array, error) {
	places, err := c.along(&c.in[0], &c.in[1])
	if err != nil {
		return nil, err
	}
	return c.added(&c.in[0], &c.in[2], places)
}

// lines lists the places in a table of n rows of d numbers that indices name.
func (c *call) lines(idx *Array, n, d int) (places []int, err error) {
	for i := range idx.Data {
		v := idx.int(i)
		if v < 0 || v >= int64(n) {
			return nil, c.outside(v, n)
		}
		for j := range d {
			places = append(places, int(v)*d+j)
		}
	}
	return places, nil
}

func embedding(c *call) ([]Array, error) {
	places, err := c.lines(&c.in[1], c.in[0].dim(0), c.in[0].dim(1))
	if err != nil {
		return nil, err
	}
	return c.pick(&c.in[0], places, 0)
}

func embeddingGrad(c *call) ([]Array, error) {
	w := c.out[0]
	places, err := c.lines(&c.in[1], w.Dim(0), w.Dim(1))
	if err != nil {
		return nil, err
	}
	return c.added(&Array{Type: w, Data: make([]float64, w.Size())}, &c.in[0], places)
}

func sorted(c *call) ([]Array, error) {
	x, axis := &c.in[0], c.axis()
	_, n, inner := split(x.Type.Shape(), axis)
	k := c.out[0].Dim(axis)
	from, places := make([]int, c.out[0].Size()), make([]int64, c.out[0].Size())
	for line := range c.out[0].Size() / max(k, 1) {
		at := func(j int) int { return (line/inner*n+j)*inner + line%inner }
		order := make([]int, n)
		for j := range order {
			order[j] = j
		}
		sort.SliceStable(order, func(i, j int) bool { return c.after(x, at(order[j]), at(order[i])) })
		for j, p := range order[:k] {
			to := (line/inner*k+j)*inner + line%inner
			from[to], places[to] = at(p), int64(p)
		}
	}
	values, err := c.pick(x, from, 0)
	return append(values, Ints(c.out[1], places...)), err
}

func lastAt(c *call) ([]Array, error) {
	idx := &c.in[len(c.in)-1]
	to, err := c.along(&Array{Type: c.out[0]}, idx)
	if err != nil {
		return nil, err
	}
	_, n, inner := split(idx.Type.Shape(), c.axis())
	won := map[int]int{} // the element of idx that each place has
	for i, p := range to {
		if old, ok := won[p]; !ok || len(c.in) == 1 || !c.before(&c.in[0], i, old) {
			won[p] = i
		}
	}
	places, hit := make([]int64, c.out[0].Size()), make([]int64, c.out[0].Size())
	for p, i := range won {
		places[p], hit[p] = int64(i/inner%n), 1
	}
	return []Array{Ints(c.out[0], places...), Ints(c.out[1], hit...)}, nil
}

// before reports whether element i of x loses to element j: NaN to none, in either order.
func (c *call) before(x *Array, i, j int) bool {
	if a, b := x.Data, x.Type.DType; b.IsFloat() && (a[i] != a[i] || a[j] != a[j]) {
		return a[i] == a[i]
	}
	return c.after(x, j, i)
}

// after reports whether element i of x comes after element j in the op's order.
func (c *call) after(x *Array, i, j int) bool {
	if c.op.Attr.Flag&ir.Descending != 0 {
		i, j = j, i
	}
	if integral(x.Type.DType) {
		return x.int(i) > x.int(j)
	}
	a, b := x.Data[i], x.Data[j]
	return a > b || a != a && b == b
}

func cat(c *call) ([]Array, error) {
	all := Array{Type: c.out[0]}
	from := make([]int, c.out[0].Size())
	start := 0
	for _, a := range c.in {
		i := len(all.Data)
		each(a.Type.Shape(), func(at []int) {
			to := append([]int(nil), at...)
			to[c.axis()] += start
			from[place(c.out[0].Shape(), to)] = i
			i++
		})
		for j := range a.Data {
			if integral(a.Type.DType) {
				all.Int = append(all.Int, a.int(j))
			}
		}
		all.Data = append(all.Data, a.Data...)
		start += a.dim(c.axis())
	}
	return c.pick(&all, from, 0)
}

func pad(c *call) ([]Array, error) {
	before, step := int(c.op.Attr.Dims[0]), int(c.op.Attr.Dims[2])+1
	x := &c.in[0]
	filler := convertFloats(ir.Dense(x.Type.DType), []float64{c.scalar(0)})
	from := make([]int, c.out[0].Size())
	for i := range from {
		from[i] = -1
	}
	i := 0
	each(x.Type.Shape(), func(at []int) {
		to := append([]int(nil), at...)
		to[c.axis()] = before + step*at[c.axis()]
		from[place(c.out[0].Shape(), to)] = i
		i++
	})
	return c.pick(x, from, filler.Data[0])
}
