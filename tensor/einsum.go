package tensor

import (
	"slices"
	"strings"
)

// Einsum is PyTorch's: products of the operands' elements, summed over the letters that the equation's result lacks. Letters
// name dimensions, "..." those that broadcast; without "->" the result has the letters that occur once, in alphabetical
// order, behind the broadcast ones. A letter that an operand has twice is its diagonal. Pairs of operands become matrix
// products, at each turn the pair whose product costs least.
func Einsum(equation string, ts ...*Tensor) *Tensor {
	if len(ts) == 0 {
		raise("Einsum", "give at least one operand", "no operands")
	}
	in := allInside("Einsum", ts...)
	for _, t := range in[1:] {
		in[0], _ = promoted(in[0], t)
	}
	for i := range in {
		in[i] = in[i].Cast(in[0].DType())
	}
	p := parseEinsum(equation, in)
	return in[0].Env().Tidy(func(e *Env) *Tensor {
		parts := make([]labelled, len(in))
		for i, t := range in {
			parts[i] = t.inside(e).labelled(p, p.in[i])
		}
		for len(parts) > 1 {
			i, j := p.cheapest(parts)
			a, b := parts[i], parts[j]
			parts = append(slices.Delete(slices.Delete(parts, j, j+1), i, i+1), labelled{})
			rest := parts[:len(parts)-1]
			parts[len(parts)-1] = p.join(a, b, func(l rune) bool { return p.needed(l, rest) })
		}
		return p.finish(parts[0])
	})
}

// einsum is an equation: a list of dimensions for each operand and for the result. Broadcast ones are letters below 0,
// counted from the last.
type einsum struct {
	in   [][]rune
	out  []rune
	size map[rune]int
}

// labelled is a value whose dimensions are named, each once.
type labelled struct {
	t    *Tensor
	dims []rune
}

func parseEinsum(equation string, in []*Tensor) *einsum {
	text := strings.ReplaceAll(equation, " ", "")
	left, right, given := strings.Cut(text, "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(in) {
		raise("Einsum", "separate them with commas", "%q has %d operands, and %d are given", equation, len(terms), len(in))
	}
	p := &einsum{size: map[rune]int{}}
	wide := 0
	for i, term := range terms {
		dims := p.dims(equation, term, in[i].Rank())
		for k, l := range dims {
			p.measure(equation, l, in[i].Shape()[k])
			if l < 0 {
				wide = max(wide, int(-l))
			}
		}
		p.in = append(p.in, dims)
	}
	if !given {
		right = p.once(left)
	}
	p.out = p.dims(equation, right, len(strings.ReplaceAll(right, "...", ""))+wide)
	for i, l := range p.out {
		if _, known := p.size[l]; !known || slices.Contains(p.out[:i], l) {
			raise("Einsum", "each letter of the result once, from the operands", "the result of %q has %q", equation, string(l))
		}
	}
	return p
}

// dims are the letters of a term with so many dimensions.
func (p *einsum) dims(equation, term string, rank int) (list []rune) {
	before, after, wide := strings.Cut(term, "...")
	n := len(before) + len(after)
	if strings.ContainsFunc(before+after, func(l rune) bool { return !('a' <= l && l <= 'z' || 'A' <= l && l <= 'Z') }) {
		raise("Einsum", `write letters, "...", commas and "->"`, "%q in %q", term, equation)
	}
	if n > rank || !wide && n < rank {
		raise("Einsum", "name each dimension, or write ... for those that are left", "%q of %q for %d dimensions", term, equation, rank)
	}
	list = []rune(before)
	for k := rank - n; wide && k > 0; k-- {
		list = append(list, rune(-k))
	}
	return append(list, []rune(after)...)
}

func (p *einsum) measure(equation string, l rune, n int) {
	old, known := p.size[l]
	switch {
	case !known || old == 1:
		p.size[l] = n
	case n != old && n != 1:
		raise("Einsum", "a letter's sizes must be equal, or 1 where one is repeated", "sizes %d and %d of one dimension in %q", old, n, equation)
	}
}

// once is the result of an equation without one.
func (p *einsum) once(left string) string {
	var letters []rune
	for _, l := range strings.NewReplacer("...", "", ",", "").Replace(left) {
		if strings.Count(left, string(l)) == 1 {
			letters = append(letters, l)
		}
	}
	slices.Sort(letters)
	if strings.Contains(left, "...") {
		return "..." + string(letters)
	}
	return string(letters)
}

// labelled takes diagonals, until each letter is there once, and repeats what broadcasts.
func (t *Tensor) labelled(p *einsum, dims []rune) labelled {
	dims = slices.Clone(dims)
	for i, l := range dims {
		if t.Dim(i) != p.size[l] {
			shape := slices.Clone(t.Shape())
			shape[i] = p.size[l]
			t = t.expand(shape)
		}
	}
	for i := 0; i < len(dims); i++ {
		if j := slices.Index(dims[i+1:], dims[i]); j >= 0 {
			l, k := dims[i], i+1+j
			t = t.Diagonal(0, i, k)
			dims = append(slices.Delete(slices.Delete(dims, k, k+1), i, i+1), l)
			i = -1
		}
	}
	return labelled{t, dims}
}

// needed reports whether the result, or an operand that is still to come, has a dimension.
func (p *einsum) needed(l rune, rest []labelled) bool {
	return slices.Contains(p.out, l) || slices.ContainsFunc(rest, func(x labelled) bool { return slices.Contains(x.dims, l) })
}

// cheapest is the pair with the fewest products, and of those the first.
func (p *einsum) cheapest(parts []labelled) (a, b int) {
	least := -1.0
	for i := range parts {
		for j := i + 1; j < len(parts); j++ {
			cost := 1.0
			for _, l := range union(parts[i].dims, parts[j].dims) {
				cost *= float64(p.size[l])
			}
			if least < 0 || cost < least {
				least, a, b = cost, i, j
			}
		}
	}
	return a, b
}

func union(a, b []rune) []rune {
	out := slices.Clone(a)
	for _, l := range b {
		if !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// join is the product of two values, summed over dimensions that nobody needs any more: a matrix product for each element
// of those that both have and the result keeps.
func (p *einsum) join(a, b labelled, needed func(rune) bool) labelled {
	a, b = a.without(b.dims, needed), b.without(a.dims, needed)
	var batch, inner, rows, columns []rune
	for _, l := range a.dims {
		switch {
		case !slices.Contains(b.dims, l):
			rows = append(rows, l)
		case needed(l):
			batch = append(batch, l)
		default:
			inner = append(inner, l)
		}
	}
	for _, l := range b.dims {
		if !slices.Contains(a.dims, l) {
			columns = append(columns, l)
		}
	}
	dims := slices.Concat(batch, rows, columns)
	if len(inner) == 0 { // nothing is summed
		x, y := a.spread(dims), b.spread(dims)
		return labelled{x.Mul(y), dims}
	}
	x := a.order(slices.Concat(batch, rows, inner)).Reshape(p.volume(batch), p.volume(rows), p.volume(inner))
	y := b.order(slices.Concat(batch, inner, columns)).Reshape(p.volume(batch), p.volume(inner), p.volume(columns))
	return labelled{x.MatMul(y).Reshape(p.shape(dims)...), dims}
}

// without sums dimensions that neither the other value nor anybody later has.
func (x labelled) without(other []rune, needed func(rune) bool) labelled {
	var axes []int
	var dims []rune
	for i, l := range x.dims {
		if slices.Contains(other, l) || needed(l) {
			dims = append(dims, l)
		} else {
			axes = append(axes, i)
		}
	}
	if len(axes) == 0 {
		return x
	}
	return labelled{x.t.total(axes), dims}
}

// total is a sum in t's own dtype.
func (t *Tensor) total(axes []int) *Tensor { return t.Sum(axes...).Cast(t.DType()) }

// order puts dimensions in another order.
func (x labelled) order(dims []rune) *Tensor {
	at := make([]int, len(dims))
	for i, l := range dims {
		at[i] = slices.Index(x.dims, l)
	}
	return x.t.Permute(at...)
}

// spread is the value with the given dimensions, of size 1 where it has none.
func (x labelled) spread(dims []rune) *Tensor {
	var own []rune
	shape := make([]int, len(dims))
	for i, l := range dims {
		shape[i] = 1
		if at := slices.Index(x.dims, l); at >= 0 {
			own, shape[i] = append(own, l), x.t.Dim(at)
		}
	}
	return x.order(own).Reshape(shape...)
}

func (p *einsum) shape(dims []rune) []int {
	shape := make([]int, len(dims))
	for i, l := range dims {
		shape[i] = p.size[l]
	}
	return shape
}

func (p *einsum) volume(dims []rune) int {
	n := 1
	for _, d := range p.shape(dims) {
		n *= d
	}
	return n
}

// finish sums what is left over and puts the result in order.
func (p *einsum) finish(x labelled) *Tensor {
	x = x.without(nil, func(l rune) bool { return slices.Contains(p.out, l) })
	checkShape("Einsum", p.shape(p.out))
	for _, l := range p.out {
		if !slices.Contains(x.dims, l) { // all operands have size 1 there, or none has it
			x = labelled{x.t.Unsqueeze(-1), append(x.dims, l)}
		}
	}
	return x.order(p.out)
}
