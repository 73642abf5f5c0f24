package data

import (
	"errors"
	"iter"
	"reflect"
	"slices"

	"github.com/warpline-ml/warpline/tensor"
)

// Split yields n microbatches of b's rows (fewer if b has fewer rows), each with a scope inside b's. The first
// dimension of b's first tensor counts as its rows; tensors, also those of a map, and slices of as many entries are split, other fields are
// the same in each part. A batch that no loader made needs an Env. Weight a part's mean loss by its Fraction: the
// gradients then add up to those of b.
func Split[B Batch](b B, n int) iter.Seq[B] {
	return func(yield func(B) bool) {
		if reflect.ValueOf(b).IsNil() || b.turn().Env == nil {
			tensor.Raise("data.Split", "give its Turn an Env, or take a batch of data.Batches", "the batch is nil, or has no Env")
		}
		src := reflect.ValueOf(b).Elem()
		rows := rowsOf(src)
		n := max(1, min(n, rows))
		for k := range n {
			if !part(b, src, k, rows*k/n, rows*(k+1)/n, rows, yield) {
				return
			}
		}
	}
}

// rowsOf is the number of rows of a batch, 0 without tensors.
func rowsOf(batch reflect.Value) int {
	for _, index := range fieldsOf(batch.Type()).index {
		if t := batch.FieldByIndex(index).Interface().(*tensor.Tensor); t != nil && t.Rank() > 0 {
			return t.Dim(0)
		}
	}
	if index := fieldsOf(batch.Type()).named; index != nil {
		for _, t := range batch.FieldByIndex(index).Interface().(map[string]*tensor.Tensor) {
			if t != nil && t.Rank() > 0 {
				return t.Dim(0)
			}
		}
	}
	return 0
}

// part is the turn of microbatch k, with rows lo to hi-1 of rows.
func part[B Batch](b B, src reflect.Value, k, lo, hi, rows int, yield func(B) bool) bool {
	whole := b.turn()
	t := openTurn(whole.Env, uint64(k))
	defer t.end()
	t.at, t.fraction, t.size = whole.at, whole.Fraction(), hi-lo
	if rows > 0 {
		t.fraction *= float64(hi-lo) / float64(rows)
	}
	out := reflect.New(src.Type())
	out.Elem().Set(src)
	cut(out.Elem(), &t, lo, hi, rows)
	mb := out.Interface().(B)
	*mb.turn() = t
	return yield(mb)
}

// cut replaces per-row fields of v, and of structs embedded in it, by their rows lo to hi-1.
func cut(v reflect.Value, t *Turn, lo, hi, rows int) {
	for i := range v.NumField() {
		f, info := v.Field(i), v.Type().Field(i)
		switch {
		case f.Type() == turnType:
		case info.Anonymous && f.Kind() == reflect.Struct:
			cut(f, t, lo, hi, rows)
		case !info.IsExported():
		case f.Type() == tensorType:
			if x := f.Interface().(*tensor.Tensor); x != nil {
				f.Set(reflect.ValueOf(rowsOfTensor(x, lo, hi, rows).In(t.Env)))
			}
		case f.Type() == namedType:
			m := map[string]*tensor.Tensor{}
			for name, x := range f.Interface().(map[string]*tensor.Tensor) {
				m[name] = rowsOfTensor(x, lo, hi, rows).In(t.Env)
			}
			f.Set(reflect.ValueOf(m))
		case f.Kind() == reflect.Slice && f.Len() == rows:
			f.Set(f.Slice(lo, hi))
		}
	}
}

func rowsOfTensor(x *tensor.Tensor, lo, hi, rows int) *tensor.Tensor {
	if x.Rank() == 0 || x.Dim(0) != rows {
		return x
	}
	return x.Slice(0, lo, hi)
}

// Both is a turn of two loaders.
type Both[A, B any] struct {
	A A
	B B
}

// Zip walks two loaders together, to the end of the shorter one. Both turns end before either loader goes on. An error
// of either comes beside both.
func Zip[A, B Batch](a iter.Seq2[A, error], b iter.Seq2[B, error]) iter.Seq2[Both[A, B], error] {
	return func(yield func(Both[A, B], error) bool) {
		next, stop := iter.Pull2(b)
		defer stop()
		for va, errA := range a {
			vb, errB, ok := next()
			if !ok || !both(va, vb, errA, errB, yield) {
				return
			}
		}
	}
}

func both[A, B Batch](a A, b B, errA, errB error, yield func(Both[A, B], error) bool) bool {
	if errA == nil {
		defer a.turn().end()
	}
	if errB == nil {
		defer b.turn().end()
	}
	return yield(Both[A, B]{a, b}, errors.Join(errA, errB))
}

// Divisors are the numbers that divide n, in order: into as many equal parts a batch of n rows can be split.
func Divisors(n int) (list []int) {
	var large []int
	for d := 1; d <= n/d; d++ {
		if n%d > 0 {
			continue
		}
		if list = append(list, d); d < n/d {
			large = append(large, n/d)
		}
	}
	slices.Reverse(large)
	return append(list, large...)
}
