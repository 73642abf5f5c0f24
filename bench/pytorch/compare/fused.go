package main

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// fused are losses and attention as the ops that layers run, and values that come of no operand.
func fused() map[string]op {
	loss := func(linear bool, f func(in ts, a *Attrs) ts) op { return op{func(d *drawer) { d.classes(linear) }, f} }
	return map[string]op{
		"cross_entropy_rows": loss(false, func(in ts, a *Attrs) ts { return only(in[0].CrossEntropy(in[1], float64(a.P), a.Axis)) }),
		"cross_entropy_mean": loss(false, func(in ts, a *Attrs) ts { return only(in[0].CrossEntropyMean(in[1], float64(a.P), a.Axis)) }),
		"linear_cross_entropy": loss(true, func(in ts, a *Attrs) ts {
			return only(in[0].LinearCrossEntropy(in[2], in[1], float64(a.P), a.Axis))
		}),
		"linear_cross_entropy_mean": loss(true, func(in ts, a *Attrs) ts {
			return only(in[0].LinearCrossEntropyMean(in[2], in[1], float64(a.P), a.Axis))
		}),
		"linear_cross_entropy_total": loss(true, func(in ts, a *Attrs) ts {
			total, count := in[0].LinearCrossEntropyTotal(in[2], in[1], float64(a.P), a.Axis)
			return ts{total, count.Cast(dtype.I64)}
		}),
		"self_attention": {
			func(d *drawer) {
				d.special = false
				d.add(d.float(), []int{1 + d.IntN(2), 1 + d.IntN(5), 3, 1 + d.IntN(3), 1 + d.IntN(5)}, d.plain)
				d.c.Attrs.Word = []string{"", "causal"}[d.IntN(2)]
				d.p(0, 0.3)
			},
			func(in ts, a *Attrs) ts {
				return only(tensor.SelfAttention(in[0], tensor.Mask{Causal: a.Word == "causal", Scale: float64(a.P)}))
			},
		},
		"arange": {
			func(d *drawer) { d.filled(dtype.F32, []int{2}); d.c.Attrs.N = []int{d.IntN(12)} },
			func(in ts, a *Attrs) ts { return only(in[0].Env().Arange(a.N[0])) },
		},
		"full": {
			func(d *drawer) {
				d.filled(dtype.F32, []int{2})
				d.c.Attrs.Word, d.c.Attrs.Shape = d.any().String(), d.shape(0, 3)
				d.p(0, 1, 3)
			},
			func(in ts, a *Attrs) ts {
				dt, err := dtype.Parse(a.Word)
				if err != nil {
					panic(err)
				}
				return only(in[0].Env().FullOf(dt, float64(a.P), a.Shape...))
			},
		},
	}
}

// classes appends rows of logits and their labels, or what a weight makes logits of, and the weight.
func (d *drawer) classes(linear bool) {
	d.special = false
	dt := []dtype.DType{dtype.F32, dtype.F64}[d.IntN(2)]
	n, c, k := 1+d.IntN(5), 1+d.IntN(5), 1+d.IntN(5)
	width := c
	if linear {
		width = k
	}
	d.add(dt, []int{n, width}, d.normal)
	d.indices(c, []int{n})
	if linear {
		d.add(dt, []int{c, k}, d.plain)
	}
	d.c.Attrs.Axis = []int{-100, 0}[d.IntN(2)]
	d.p(0, 0.2)
}
