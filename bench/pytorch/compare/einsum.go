package main

import (
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// equations of einsum; in those with dots operands have up to two more dimensions there.
var equations = []string{"ij,jk->ik", "bij,bjk->bik", "i,j->ij", "ii->i", "ii", "ij->", "ij->ji", "i,i->", "ij,ij->ij", "bhqd,bhkd->bhqk", "ij,kj,l->il",
	"...ij,...jk->...ik", "...i->...", "ab,cb,cd,de->ae", "iij,jk->ki", "ba,b", "i...,i...->...", "aB,Bc"}

func einsums() map[string]op {
	return map[string]op{"einsum": {
		func(d *drawer) {
			word := equations[d.IntN(len(equations))]
			left, _, _ := strings.Cut(word, "->")
			d.special = d.special && strings.Count(left, ",") < 2 // which infinities meet depends on the order of products
			size, lead, dt := map[rune]int{}, d.shape(0, 2), d.float()
			if strings.Count(left, ",") > 1 { // in what order they are multiplied is the plan's choice, and 16 bits round each product
				dt = []dtype.DType{dtype.F32, dtype.F64}[d.IntN(2)]
			}
			for _, term := range strings.Split(left, ",") {
				before, after, dots := strings.Cut(term, "...")
				var shape []int
				letters := func(list string) {
					for _, l := range list {
						if size[l] == 0 {
							size[l] = 1 + d.IntN(5)
						}
						shape = append(shape, size[l])
					}
				}
				letters(before)
				if dots {
					shape = append(shape, d.broadcast(lead)...)
				}
				letters(after)
				d.add(dt, shape, d.normal)
			}
			d.c.Attrs.Word = word
		},
		func(in ts, a *Attrs) ts { return only(tensor.Einsum(a.Word, in...)) },
	}}
}
