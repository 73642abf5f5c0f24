package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// drawer makes the operands and numbers of one case.
type drawer struct {
	*rand.Rand
	c *Case
	// special: NaN, infinities, zeros of both signs and ties are among the values
	special bool
}

// Draw makes case id of a seed. Equal arguments give equal cases.
func Draw(seed uint64, id int) *Case {
	r := rand.New(rand.NewPCG(seed, uint64(id)))
	name := names[id%len(names)]
	c := &Case{ID: id, Op: name}
	d := &drawer{Rand: r, c: c, special: r.IntN(4) == 0}
	table[name].draw(d)
	if c.Order = 2; d.special {
		c.Order = 1 // what lies beyond the first derivative of an infinity is nobody's to say
	}
	return c
}

var sizes = []int{1, 2, 3, 5, 7}

// size is small, and rarely 0.
func (d *drawer) size() int {
	if d.IntN(24) == 0 {
		return 0
	}
	return sizes[d.IntN(len(sizes))]
}

// shape has from least to most dimensions.
func (d *drawer) shape(least, most int) []int {
	s := make([]int, least+d.IntN(most-least+1))
	for i := range s {
		s[i] = d.size()
	}
	return s
}

var floatTypes = []dtype.DType{dtype.F32, dtype.F32, dtype.F32, dtype.F64, dtype.F64, dtype.F16, dtype.BF16}

func (d *drawer) float() dtype.DType { return floatTypes[d.IntN(len(floatTypes))] }

// number is floating, or in one case of three an integer.
func (d *drawer) number() dtype.DType {
	if d.IntN(3) > 0 {
		return d.float()
	}
	return []dtype.DType{dtype.I64, dtype.I32, dtype.U8}[d.IntN(3)]
}

// any is a number, or rarely bool.
func (d *drawer) any() dtype.DType {
	if d.IntN(8) == 0 {
		return dtype.Bool
	}
	return d.number()
}

// add appends an operand.
func (d *drawer) add(dt dtype.DType, shape []int, value func() float64) {
	o := Operand{Value: Value{DType: dt.String(), Shape: shape, Data: []num{}}, Layout: d.layout(shape)}
	n := 1
	for _, s := range shape {
		n *= s
	}
	for range n {
		o.Data = append(o.Data, num(round(value(), dt)))
	}
	if o.Layout == "expanded" {
		row := n / shape[0]
		for i := range o.Data {
			o.Data[i] = o.Data[i%row]
		}
	}
	d.c.In = append(d.c.In, o)
}

// layout is one that the shape may have.
func (d *drawer) layout(shape []int) string {
	if slices.Contains(shape, 0) {
		return "dense"
	}
	switch l := layouts[d.IntN(2*len(layouts))/2]; {
	case len(shape) >= 2 || len(shape) == 1 && l != "transposed":
		return l
	}
	return "dense"
}

// round makes v a value of dtype dt.
func round(v float64, dt dtype.DType) float64 {
	switch dt {
	case dtype.F32:
		return float64(float32(v))
	case dtype.F16:
		return float64(dtype.F16FromFloat64(v).Float32())
	case dtype.BF16:
		return float64(dtype.BF16FromFloat64(v).Float32())
	case dtype.F64:
		return v
	case dtype.Bool:
		if v > 0 {
			return 1
		}
		return 0
	case dtype.U8:
		return math.Abs(math.Trunc(v))
	}
	return math.Trunc(v)
}

// normal is around 0; special cases have what is easily got wrong among it.
func (d *drawer) normal() float64 {
	if d.special && d.IntN(4) == 0 {
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1, 1, -1, 2, 30, -90}[d.IntN(11)]
	}
	return 2 * d.NormFloat64()
}

// plain is around 0, never special.
func (d *drawer) plain() float64 { return d.NormFloat64() }

// positive is above 0; special cases take what normal takes.
func (d *drawer) positive() float64 {
	if d.special {
		return d.normal()
	}
	return 0.2 + 2*d.Float64()
}

// apart is around 0, and two of it are rarely near each other or a multiple of 1/4: kinks of the ops lie there.
func (d *drawer) apart() float64 {
	if d.special {
		return d.normal()
	}
	return float64(d.IntN(40)-20)/4 + 0.05 + 0.15*d.Float64()
}

// whole is an integer, rarely one that float32 does not have.
func (d *drawer) whole() float64 {
	if d.IntN(6) == 0 {
		return float64(25_010_001 + d.IntN(9))
	}
	return float64(d.IntN(21) - 10)
}

// fill is apart for floats and whole for integers, which have neither NaN nor infinities.
func (d *drawer) fill(dt dtype.DType) func() float64 {
	if !dt.IsFloat() {
		return func() float64 {
			if v := d.whole(); dt != dtype.U8 {
				return v
			}
			return float64(d.IntN(200))
		}
	}
	return d.apart
}

// filled appends an operand of any values.
func (d *drawer) filled(dt dtype.DType, shape []int) { d.add(dt, shape, d.fill(dt)) }

// indices appends i64 operands below n.
func (d *drawer) indices(n int, shape []int) {
	d.add(dtype.I64, shape, func() float64 { return float64(d.IntN(max(n, 1))) })
}

// broadcast is a shape that broadcasts to shape.
func (d *drawer) broadcast(shape []int) []int {
	s := slices.Clone(shape)
	switch d.IntN(4) {
	case 0:
		return s[d.IntN(len(s)+1):]
	case 1:
		for i := range s {
			if d.IntN(2) == 0 {
				s[i] = 1
			}
		}
	}
	return s
}

// axis is a dimension of a shape, from either end.
func (d *drawer) axis(shape []int) int { return d.IntN(2*len(shape)) - len(shape) }

// axes are some dimensions of a shape, none twice; none at all means all.
func (d *drawer) axes(shape []int) (list []int) {
	for _, i := range d.Perm(len(shape))[:d.IntN(len(shape)+1)] {
		if d.IntN(2) == 0 {
			i -= len(shape)
		}
		list = append(list, i)
	}
	return list
}

// only is the first of results.
func only(t *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{t} }
