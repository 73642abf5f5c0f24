package ref

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/rng"
)

func init() {
	set(unmoved, ir.Reshape, ir.Copy)
	set(permute, ir.Permute)
	set(expand, ir.Expand)
	set(slice, ir.Slice)
	set(full, ir.Full)
	set(iota_, ir.Iota)
	set(uniform, ir.Uniform)
	set(normal, ir.Normal)
	set(randInt, ir.RandInt)
	set(cast, ir.Cast)
	set(dropout, ir.Dropout)
}

// unmoved keeps the elements in their order.
func unmoved(c *call) ([]Array, error) {
	from := make([]int, len(c.in[0].Data))
	for i := range from {
		from[i] = i
	}
	return c.pick(&c.in[0], from, 0)
}

// moved takes each element of the result from the place that f gives for its index.
func (c *call) moved(f func(at, from []int)) ([]Array, error) {
	x := &c.in[0]
	var list []int
	from := make([]int, x.Type.Rank())
	each(c.out[0].Shape(), func(at []int) {
		f(at, from)
		list = append(list, place(x.Type.Shape(), from))
	})
	return c.pick(x, list, 0)
}

func permute(c *call) ([]Array, error) {
	return c.moved(func(at, from []int) {
		for i, v := range at {
			from[c.op.Attr.Dims[i]] = v
		}
	})
}

func expand(c *call) ([]Array, error) {
	shape := c.in[0].Type.Shape()
	return c.moved(func(at, from []int) {
		for i, d := range shape {
			from[i] = 0
			if d != 1 {
				from[i] = at[len(at)-len(shape)+i]
			}
		}
	})
}

func slice(c *call) ([]Array, error) {
	start, step := int(c.op.Attr.Dims[0]), int(c.op.Attr.Dims[2])
	return c.moved(func(at, from []int) {
		copy(from, at)
		from[c.axis()] = start + step*at[c.axis()]
	})
}

// converted is an array in another dtype, by [dtype.Convert].
func converted(t *ir.Type, a Array) Array {
	src := Array{Type: a.Type, Data: a.Data, Int: a.Int}
	if integral(a.Type.DType) {
		return convertInts(t, &src)
	}
	return convertFloats(t, src.Data)
}

func convertFloats(t *ir.Type, src []float64) Array {
	dt := t.DType
	if integral(dt) {
		v := make([]int64, len(src))
		for i, x := range src {
			v[i] = int64(dt.Encode(x))
		}
		return Ints(t, v...)
	}
	v := make([]float64, len(src))
	for i, x := range src {
		v[i] = dt.Decode(dt.Encode(x))
	}
	return Floats(t, v...)
}

// convertInts rounds once, which float64 on the way would not.
func convertInts(t *ir.Type, a *Array) Array {
	src := make([]int64, len(a.Data))
	for i := range src {
		src[i] = a.int(i)
	}
	switch t.DType {
	case dtype.F32:
		return narrowed[float32](t, src)
	case dtype.F64:
		return narrowed[float64](t, src)
	case dtype.F16:
		return narrowed[dtype.Float16](t, src)
	case dtype.BF16:
		return narrowed[dtype.BFloat16](t, src)
	case dtype.F8E4M3:
		return narrowed[dtype.Float8E4M3](t, src)
	case dtype.F8E5M2:
		return narrowed[dtype.Float8E5M2](t, src)
	}
	return Ints(t, src...)
}

// narrowed rounds to D and widens again.
func narrowed[D dtype.Element](t *ir.Type, src []int64) Array {
	d, v := make([]D, len(src)), make([]float64, len(src))
	dtype.Convert(d, src)
	dtype.Convert(v, d)
	return Floats(t, v...)
}

func cast(c *call) ([]Array, error) { return []Array{converted(c.out[0], c.in[0])}, nil }

// made is a result of numbers that are rounded to its dtype.
func (c *call) made(data []float64) ([]Array, error) {
	return []Array{convertFloats(c.out[0], data)}, nil
}

// generated is a result whose element i is f(i).
func (c *call) generated(f func(i int) float64) ([]Array, error) {
	v := make([]float64, c.out[0].Size())
	for i := range v {
		v[i] = f(i)
	}
	return c.made(v)
}

func full(c *call) ([]Array, error) {
	return c.generated(func(int) float64 { return c.scalar(0) })
}

func iota_(c *call) ([]Array, error) {
	return c.generated(func(i int) float64 { return c.scalar(0) + float64(i)*c.scalar(1) })
}

// uniform draws f64 with 53 bits and the other dtypes with 24, element by element, so that it is Go that draws and not the assembly
// that is judged. The 16-bit types are rounded from f32, to the value below where that gives the excluded bound.
func uniform(c *call) ([]Array, error) {
	lo, hi, key := c.scalar(0), c.scalar(1), rng.Key(c.p.Value[2])
	return c.generated(func(i int) float64 {
		if c.out[0].DType == dtype.F64 {
			var v [1]float64
			rng.FillUniform64(v[:], key, uint64(i), lo, hi)
			return v[0]
		}
		var v [1]float32
		rng.FillUniform32(v[:], key, uint64(i), float32(lo), float32(hi))
		return below16(c.out[0].DType, float64(v[0]), lo, hi)
	})
}

// below16 is v, or of a 16-bit dtype something that rounds to the largest value below hi where v rounds to hi.
func below16(dt dtype.DType, v, lo, hi float64) float64 {
	for dt != dtype.F32 && lo < hi && convertFloats(ir.Dense(dt), []float64{v}).Data[0] >= hi {
		v -= math.Abs(v) * dt.Epsilon() / 4
	}
	return v
}

func normal(c *call) ([]Array, error) {
	mean, std, key := c.scalar(0), c.scalar(1), rng.Key(c.p.Value[2])
	return c.generated(func(i int) float64 {
		if c.out[0].DType == dtype.F64 {
			var v [1]float64
			rng.FillNormal64(v[:], key, uint64(i), mean, std)
			return v[0]
		}
		var v [1]float32
		rng.FillNormal32(v[:], key, uint64(i), float32(mean), float32(std))
		return float64(v[0])
	})
}

func randInt(c *call) ([]Array, error) {
	lo, hi := int64(c.p.Value[0]), int64(c.p.Value[1])
	v := make([]int64, c.out[0].Size())
	for i := range v {
		rng.FillInts(v[i:i+1], rng.Key(c.p.Value[2]), uint64(i), lo, hi)
	}
	return []Array{converted(c.out[0], Ints(ir.Dense(dtype.I64, c.out[0].Shape()...), v...))}, nil
}

// dropout compares the numbers that [ir.Uniform] draws in f32 from [0, 1), whatever the dtype of x.
func dropout(c *call) ([]Array, error) {
	p, key := c.scalar(0), rng.Key(c.p.Value[1])
	out := make([]float64, len(c.in[0].Data))
	for i, x := range c.in[0].Data {
		var u [1]float32
		if rng.FillUniform32(u[:], key, uint64(i), 0, 1); float64(u[0]) >= p {
			out[i] = x / (1 - p)
		}
	}
	return c.one(out)
}
