package main

import (
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// fixed makes the last operand one without a gradient.
func (d *drawer) fixed() { d.c.In[len(d.c.In)-1].Fixed = true }

// line appends an operand whose dimension Axis is not empty.
func (d *drawer) line(dt dtype.DType, least, most int) (n int) {
	s := d.shape(least, most)
	d.c.Attrs.Axis = d.axis(s)
	at := (d.c.Attrs.Axis + len(s)) % len(s)
	s[at] = max(s[at], 1)
	d.filled(dt, s)
	return s[at]
}

// untied appends an operand of f32 or f64 none of whose elements are equal: of equal ones PyTorch takes any.
func (d *drawer) untied() (n int) {
	d.special = false
	n = d.line([]dtype.DType{dtype.F32, dtype.F64}[d.IntN(2)], 1, 3)
	o := &d.c.In[0]
	for i, p := range d.Perm(len(o.Data)) {
		o.Data[i] = num(float64(p)/4 - 3)
	}
	d.dense()
	return n
}

// dense makes the last operand row-major if it repeats.
func (d *drawer) dense() {
	if o := &d.c.In[len(d.c.In)-1]; o.Layout == "expanded" {
		o.Layout = "dense"
	}
}

func two(x, y *tensor.Tensor) ts { return ts{x, y} }

func ordered() map[string]op {
	first := func(f func(in ts, a *Attrs) ts) op {
		return op{func(d *drawer) { n := d.untied(); d.c.Attrs.N = []int{1 + d.IntN(n), d.IntN(2)} }, f}
	}
	return map[string]op{
		"sort": {
			func(d *drawer) {
				s := d.shape(1, 3)
				d.filled(d.any(), s)
				d.c.Attrs.Axis, d.c.Attrs.Flag = d.axis(s), d.IntN(2) == 0
			},
			func(in ts, a *Attrs) ts { return two(in[0].Sort(a.Axis, a.Flag)) },
		},
		"argsort": {
			func(d *drawer) {
				s := d.shape(1, 3)
				d.filled(d.any(), s)
				d.c.Attrs.Axis, d.c.Attrs.Flag = d.axis(s), d.IntN(2) == 0
			},
			func(in ts, a *Attrs) ts { return only(in[0].ArgSort(a.Axis, a.Flag)) },
		},
		"topk": first(func(in ts, a *Attrs) ts { return two(in[0].TopK(a.N[0], a.Axis, a.N[1] == 1)) }),
		"topk_values": {
			func(d *drawer) {
				n := d.line(d.number(), 1, 3)
				d.fixed()
				d.c.Attrs.N = []int{d.IntN(n + 1), d.IntN(2)}
			},
			func(in ts, a *Attrs) ts { v, _ := in[0].TopK(a.N[0], a.Axis, a.N[1] == 1); return only(v) },
		},
		"kthvalue": first(func(in ts, a *Attrs) ts { return two(in[0].KthValue(a.N[0], a.Axis)) }),
		"median":   first(func(in ts, a *Attrs) ts { return two(in[0].Median(a.Axis)) }),
		"median_values": {
			func(d *drawer) {
				d.line(d.number(), 1, 3)
				d.fixed()
				d.dense() // PyTorch 2.15 takes elements of the wrong lines of an expanded value
			},
			func(in ts, a *Attrs) ts { v, _ := in[0].Median(a.Axis); return only(v) },
		},
		"cumprod": alongAxis((*tensor.Tensor).CumProd, (*drawer).number),
		"cummax": {
			func(d *drawer) { d.line(d.number(), 1, 3) },
			func(in ts, a *Attrs) ts { return two(in[0].CumMax(a.Axis)) },
		},
		"cummin": {
			func(d *drawer) { d.line(d.number(), 1, 3) },
			func(in ts, a *Attrs) ts { return two(in[0].CumMin(a.Axis)) },
		},
		"searchsorted": {
			func(d *drawer) {
				dt, s := d.number(), d.shape(1, 3)
				if d.IntN(2) == 0 { // one row for all
					d.rising(dt, s[:1])
				} else {
					d.rising(dt, s)
					s = append(slices.Clone(s[:len(s)-1]), d.size())
				}
				d.filled(dt, s)
				d.c.Attrs.Flag = d.IntN(2) == 0
			},
			func(in ts, a *Attrs) ts { return only(in[0].SearchSorted(in[1], a.Flag)) },
		},
		"bucketize": {
			func(d *drawer) {
				dt := d.number()
				d.filled(dt, d.shape(0, 3))
				d.rising(dt, d.shape(1, 1))
				d.c.Attrs.Flag = d.IntN(2) == 0
			},
			func(in ts, a *Attrs) ts { return only(in[0].Bucketize(in[1], a.Flag)) },
		},
		"unique": {
			func(d *drawer) {
				d.special = false
				d.add([]dtype.DType{dtype.F32, dtype.I64, dtype.U8, dtype.Bool}[d.IntN(4)], d.shape(0, 3), func() float64 { return float64(d.IntN(5)) })
			},
			func(in ts, _ *Attrs) ts { v, inverse, counts := in[0].Unique(); return ts{v, inverse, counts} },
		},
		"bincount": {
			func(d *drawer) {
				s := d.shape(1, 1)
				d.indices(6, s)
				d.c.Attrs.N = []int{d.IntN(9)}
				if d.IntN(2) == 0 {
					d.filled([]dtype.DType{dtype.F32, dtype.F64}[d.IntN(2)], s)
					d.fixed()
				}
			},
			func(in ts, a *Attrs) ts {
				if len(in) == 1 {
					return only(in[0].BinCount(nil, a.N[0]))
				}
				return only(in[0].BinCount(in[1], a.N[0]))
			},
		},
		"nonzero": {
			func(d *drawer) { d.add(d.any(), d.shape(0, 3), func() float64 { return float64(d.IntN(3)) }) },
			func(in ts, _ *Attrs) ts { return only(in[0].NonZero()) },
		},
		"masked_select": {
			func(d *drawer) {
				s := d.shape(0, 3)
				d.filled(d.any(), d.broadcast(s))
				d.add(dtype.Bool, d.broadcast(s), func() float64 { return float64(d.IntN(2)) })
			},
			func(in ts, _ *Attrs) ts { return only(in[0].MaskedSelect(in[1])) },
		},
	}
}

// rising appends rows in order.
func (d *drawer) rising(dt dtype.DType, s []int) {
	d.special = false
	d.filled(dt, s)
	o := &d.c.In[len(d.c.In)-1]
	o.Layout = "dense"
	n := s[len(s)-1]
	for lo := 0; n > 0 && lo < len(o.Data); lo += n {
		slices.Sort(o.Data[lo : lo+n])
	}
}
