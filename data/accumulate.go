package data

import (
	"reflect"

	"github.com/warpline-ml/warpline/tensor"
)

// Accumulate calls learn for the parts of a batch, one after another: as many equal ones as the first of parts says, from [Divisors]
// for one. When memory runs out, what the parts have made is released, undo is called, and the whole batch begins again in as many
// parts as the next number says, with the same random numbers. It returns the numbers to go on with, of which the first has
// fitted; when the last does not, it panics with the [tensor.OOMError].
//
//	parts := data.Divisors(64)
//	for b, err := range data.Batches(env, src, data.Config{Size: 64}) {
//		parts = data.Accumulate(b, parts, opt.Discard, func(mb *data.Pair) {
//			nn.CrossEntropy(model.Forward(mb.X), mb.Y).Scale(mb.Fraction()).Backward()
//		})
//		opt.Step()
//	}
//
// undo takes back what learn has changed beside values of the parts: it drops gradients, and puts back the running statistics of a
// model that has some (nn.Snapshot). In one part, learn has the batch itself; values that it makes end with learn.
func Accumulate[B Batch](b B, parts []int, undo func(), learn func(part B)) (left []int) {
	if reflect.ValueOf(b).IsNil() || b.turn().Env == nil || len(parts) == 0 {
		tensor.Raise("data.Accumulate", "give the batch's Turn an Env, and numbers of parts", "the batch is nil, or has no Env, or there are no numbers")
	}
	for ; ; parts = parts[1:] {
		oom := b.turn().Env.Attempt(func(e *tensor.Env) {
			whole := within(b, e)
			if parts[0] <= 1 {
				learn(whole)
				return
			}
			for part := range Split(whole, parts[0]) {
				learn(part)
			}
		})
		if oom == nil {
			return parts
		}
		undo()
		if len(parts) == 1 {
			panic(oom)
		}
	}
}

// within is a batch whose values are in e, an env of its turn.
func within[B Batch](b B, e *tensor.Env) B {
	src := reflect.ValueOf(b).Elem()
	out := reflect.New(src.Type())
	out.Elem().Set(src)
	t := *b.turn()
	t.Env = e
	rows := rowsOf(src)
	cut(out.Elem(), &t, 0, rows, rows)
	mb := out.Interface().(B)
	*mb.turn() = t
	return mb
}
