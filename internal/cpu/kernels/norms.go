package kernels

import "math"

//go:generate go run -C ../../_asm . planes ../cpu/kernels

// Norm is rows of neighbouring places of a few channels, and what batch norm knows of each place: loops that sums, a
// normalisation and its gradient are made of. A field that a loop does not name is not used.
type Norm[T Float] struct {
	Rows, N, Stride int  // rows of N places, Stride elements apart
	One             bool // parameters are one for all places: the first NormVector elements are equal

	X, G, Y []T // operands, and what is written
	Other   []T // what is added, or, with Result, its gradient; nil: nothing
	Result  []T // of relu: nil, or where it is not above 0 a gradient counts as 0

	Sum, More  []T // a sum for each place
	M, P, Q, R []T // parameters
	Floor      T   // least result: 0 for relu, else -∞
}

// NormVector is how many elements parameters of all places have.
const NormVector = 16

// NoFloor is a Floor that changes nothing.
func NoFloor[T Float]() T { return T(math.Inf(-1)) }

// at is the place of a parameter.
func (a *Norm[T]) at(j int) int {
	if a.One {
		return 0
	}
	return j
}

// each calls body for each row's first element.
func (a *Norm[T]) each(body func(at int)) {
	for i := range a.Rows {
		body(i * a.Stride)
	}
}

// Add adds X to Sum.
func (a *Norm[T]) Add() {
	if a.assembly(normAdd) {
		return
	}
	a.each(func(at int) {
		for j, v := range a.X[at:][:a.N] {
			a.Sum[j] += v
		}
	})
}

// Deviations adds X-M to Sum and its square to More.
func (a *Norm[T]) Deviations() {
	if a.assembly(normDeviate) {
		return
	}
	a.each(func(at int) {
		for j, v := range a.X[at:][:a.N] {
			d := v - a.M[a.at(j)]
			a.Sum[j] += d
			a.More[j] += d * d
		}
	})
}

// Apply stores (X-M)·P + Q, and Other, in Y, but at least Floor.
func (a *Norm[T]) Apply() {
	if a.assembly(normForward) {
		return
	}
	a.each(func(at int) {
		y := a.Y[at:][:a.N]
		for j, v := range a.X[at:][:a.N] {
			k := a.at(j)
			y[j] = (v-a.M[k])*a.P[k] + a.Q[k]
		}
		if a.Other != nil {
			for j, v := range a.Other[at:][:a.N] {
				y[j] += v
			}
		}
		for j, v := range y {
			y[j] = max(v, a.Floor)
		}
	})
}

// passed is G, or 0 where Result is not above 0.
func (a *Norm[T]) passed(i int) T {
	if a.Result != nil && a.Result[i] <= 0 {
		return 0
	}
	return a.G[i]
}

// GradSums adds G, as far as Result lets it pass, to Sum, its product with X-M to More, and stores it in
// Other.
func (a *Norm[T]) GradSums() {
	if a.assembly(normBackwardSums) {
		return
	}
	a.each(func(at int) {
		for j, v := range a.X[at:][:a.N] {
			h := a.passed(at + j)
			if a.Other != nil {
				a.Other[at+j] = h
			}
			a.Sum[j] += h
			a.More[j] += h * (v - a.M[a.at(j)])
		}
	})
}

// GradApply stores P·G - Q·(X-M) - R in Y, with G as far as Result lets it pass.
func (a *Norm[T]) GradApply() {
	if a.assembly(normBackward) {
		return
	}
	a.each(func(at int) {
		y := a.Y[at:][:a.N]
		for j, v := range a.X[at:][:a.N] {
			k := a.at(j)
			y[j] = a.P[k]*a.passed(at+j) - (a.Q[k]*(v-a.M[k]) + a.R[k])
		}
	})
}

// normLoop is a loop of a Norm.
type normLoop int

const (
	normAdd normLoop = iota
	normDeviate
	normForward
	normBackwardSums
	normBackward
)
