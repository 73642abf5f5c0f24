package main

import (
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// arranged are ops that put elements elsewhere.
func arranged() map[string]op {
	along := func(numbers func(d *drawer, n int) []int, f func(in ts, a *Attrs) ts) op {
		return op{
			func(d *drawer) {
				s := d.shape(1, 3)
				d.filled(d.any(), s)
				d.c.Attrs.Axis = d.axis(s)
				d.c.Attrs.N = numbers(d, s[(d.c.Attrs.Axis+len(s))%len(s)])
			},
			f,
		}
	}
	matrix := func(f func(x *tensor.Tensor, k int) *tensor.Tensor, least, most int) op {
		return op{
			func(d *drawer) { d.filled(d.number(), d.shape(least, most)); d.c.Attrs.N = []int{d.IntN(7) - 3} },
			func(in ts, a *Attrs) ts { return only(f(in[0], a.N[0])) },
		}
	}
	return map[string]op{
		"chunk":  along(func(d *drawer, _ int) []int { return []int{1 + d.IntN(4)} }, func(in ts, a *Attrs) ts { return in[0].Chunk(a.Axis, a.N[0]) }),
		"unbind": along(func(*drawer, int) []int { return nil }, func(in ts, a *Attrs) ts { return in[0].Unbind(a.Axis) }),
		"roll":   along(func(d *drawer, n int) []int { return []int{d.IntN(4*n+1) - 2*n} }, func(in ts, a *Attrs) ts { return only(in[0].Roll(a.N[0], a.Axis)) }),
		"repeat_interleave": along(func(d *drawer, _ int) []int { return []int{d.IntN(4)} },
			func(in ts, a *Attrs) ts { return only(in[0].RepeatInterleave(a.N[0], a.Axis)) }),
		"tril":       matrix((*tensor.Tensor).Tril, 2, 4),
		"triu":       matrix((*tensor.Tensor).Triu, 2, 4),
		"diag":       matrix((*tensor.Tensor).Diag, 1, 2),
		"diag_embed": matrix((*tensor.Tensor).DiagEmbed, 1, 3),
		"diagonal": {
			func(d *drawer) {
				s := d.shape(2, 4)
				d.filled(d.any(), s)
				two := d.Perm(len(s))
				d.c.Attrs.N = []int{d.IntN(7) - 3, two[0], two[1] - len(s)}
			},
			func(in ts, a *Attrs) ts { return only(in[0].Diagonal(a.N[0], a.N[1], a.N[2])) },
		},
		"flip": {
			func(d *drawer) { s := d.shape(1, 4); d.filled(d.any(), s); d.c.Attrs.Axes = d.axes(s) },
			func(in ts, a *Attrs) ts { return only(in[0].Flip(a.Axes...)) },
		},
		"repeat": {
			func(d *drawer) {
				s := d.shape(0, 3)
				d.filled(d.any(), s)
				for range len(s) + d.IntN(2) {
					d.c.Attrs.N = append(d.c.Attrs.N, d.IntN(4))
				}
			},
			func(in ts, a *Attrs) ts { return only(in[0].Repeat(a.N...)) },
		},
		"meshgrid": {
			func(d *drawer) {
				dt := d.float()
				for range 1 + d.IntN(3) {
					d.filled(dt, d.shape(0, 1))
				}
			},
			func(in ts, _ *Attrs) ts { return tensor.Meshgrid(in...) },
		},
		"one_hot": {
			func(d *drawer) { d.c.Attrs.N = []int{1 + d.IntN(5)}; d.indices(d.c.Attrs.N[0], d.shape(0, 3)) },
			func(in ts, a *Attrs) ts { return only(in[0].OneHot(a.N[0])) },
		},
		"linspace": {
			func(d *drawer) {
				d.filled(dtype.F32, []int{2})
				d.c.Attrs.N = []int{d.IntN(8)}
				d.p(-1, 0, 0.1)
				d.c.Attrs.Q = []num{5, -3.3}[d.IntN(2)]
			},
			func(in ts, a *Attrs) ts { return only(in[0].Env().Linspace(float64(a.P), float64(a.Q), a.N[0])) },
		},
		"eye": {
			func(d *drawer) { d.filled(dtype.F32, []int{2}); d.c.Attrs.N = []int{d.size(), d.size()} },
			func(in ts, a *Attrs) ts { return only(in[0].Env().Eye(a.N[0], a.N[1])) },
		},
		"take_along": {
			func(d *drawer) {
				s := d.table(1, 3)
				idx := slices.Clone(s)
				for i := range idx {
					if d.IntN(3) == 0 {
						idx[i] = 1
					}
				}
				idx[d.c.Attrs.Axis] = d.size()
				d.indices(s[d.c.Attrs.Axis], idx)
			},
			func(in ts, a *Attrs) ts { return only(in[0].TakeAlong(a.Axis, in[1])) },
		},
	}
}
