package data_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// rich is a batch with tensors of several dtypes, some of an embedded struct, and fields that are none.
type rich struct {
	data.Pair
	Mask  *tensor.Tensor
	Names []string
	Note  string
}

type richSource struct{ n int }

func (s richSource) Len() int { return s.n }
func (s richSource) Fields() []data.Field {
	return []data.Field{{DType: dtype.F64, Shape: []int{2, 1}}, {DType: dtype.I32}, {DType: dtype.Bool, Shape: []int{3}}}
}
func (s richSource) Fill(b *rich, row data.Row, i int) error {
	data.Values[float64](row, 0)[1] = float64(i)
	data.Values[int32](row, 1)[0] = int32(-i)
	data.Values[bool](row, 2)[2] = i%2 == 1
	b.Names, b.Note = append(b.Names, fmt.Sprint("sample ", i)), "rich"
	return nil
}

func TestAnyBatchType(t *testing.T) {
	env := fresh(t)
	for b, err := range data.Batches(env, richSource{3}, data.Config{Size: 3}) {
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(b.X.Shape(), []int{3, 2, 1}) || !slices.Equal(b.Y.Shape(), []int{3}) || !slices.Equal(b.Mask.Shape(), []int{3, 3}) {
			t.Fatalf("shapes %v, %v, %v", b.X.Shape(), b.Y.Shape(), b.Mask.Shape())
		}
		if got := tensor.Data[float64](b.X); !slices.Equal(got, []float64{0, 0, 0, 1, 0, 2}) {
			t.Errorf("X is %v", got)
		}
		if got := tensor.Data[bool](b.Mask); !slices.Equal(got, []bool{false, false, false, false, false, true, false, false, false}) {
			t.Errorf("Mask is %v", got)
		}
		var names []string
		sum := 0.0
		for mb := range data.Split(b, 2) {
			names = append(names, fmt.Sprint(mb.Names, mb.Note, tensor.Data[int32](mb.Y)))
			sum += mb.Fraction()
		}
		if want := []string{"[sample 0]rich[0]", "[sample 1 sample 2]rich[-1 -2]"}; !slices.Equal(names, want) {
			t.Errorf("got %q", names)
		}
		if math.Abs(sum-1) > 1e-15 {
			t.Errorf("the fractions add up to %v", sum)
		}
	}
}

// A batch that no loader made is split like one that a loader made, once it has an Env.
func TestSplitOfABatchMadeByHand(t *testing.T) {
	env := fresh(t)
	b := &data.Pair{X: env.Ones(3, 2)}
	b.Hold()()
	for _, b := range []*data.Pair{b, nil} {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor {
			for range data.Split(b, 2) {
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "the batch is nil, or has no Env") {
			t.Error(err)
		}
	}
	b.Env = env
	sum := b.Fraction()
	for mb := range data.Split(b, 2) {
		sum += mb.Fraction()
	}
	if math.Abs(sum-2) > 1e-15 {
		t.Errorf("the fractions of the whole and of its parts add up to %v", sum)
	}
}

func TestSplitCoversTheRowsAndAddsUp(t *testing.T) {
	env := fresh(t)
	for b, err := range data.Batches(env, counted(7), data.Config{Size: 7}) {
		if err != nil {
			t.Fatal(err)
		}
		want := b.X.Mean().Item()
		for n := range 10 {
			var rows []int64
			mean, parts := 0.0, 0
			draws := map[float64]bool{b.Env.Rand().Item(): true}
			for mb := range data.Split(b, n) {
				rows = append(rows, tensor.Data[int64](mb.Y)...)
				mean += mb.X.Mean().Item() * mb.Fraction()
				draws[mb.Env.Rand().Item()] = true
				parts++
			}
			if !slices.Equal(rows, []int64{0, 1, 2, 3, 4, 5, 6}) || parts != max(1, min(n, 7)) || len(draws) != parts+1 {
				t.Errorf("%d parts: %d of them, rows %v, %d different draws", n, parts, rows, len(draws))
			}
			testutil.Close(t, []float64{mean}, []float64{want}, 1e-6, 0)
		}
	}
}

func TestZip(t *testing.T) {
	env := fresh(t)
	bad := source{6, func(_ *data.Pair, _ data.Row, i int) error {
		if i == 2 {
			return errors.New("unreadable")
		}
		return nil
	}}
	var log []string
	for z, err := range data.Zip(data.Batches(env, counted(4), data.Config{Size: 1}), data.Batches(env, bad, data.Config{Size: 2, Name: "b"})) {
		if err != nil {
			log = append(log, err.Error())
			continue
		}
		if z.A.Env.Rand().Item() == z.B.Env.Rand().Item() {
			t.Error("both draw the same numbers")
		}
		log = append(log, fmt.Sprint(tensor.Data[int64](z.A.Y), z.B.Y.Dim(0)))
	}
	if want := []string{"[0] 2", "data: epoch 0, batch 1, sample 2: unreadable", "[2] 2"}; !slices.Equal(log, want) {
		t.Errorf("got %q", log)
	}
}

func TestNested(t *testing.T) {
	env := fresh(t)
	draws, n := map[float64]bool{}, 0
	for outer, err := range data.Batches(env, counted(4), data.Config{Size: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		for inner, err := range data.Batches(outer.Env, counted(3), data.Config{Size: 1, Workers: 2, Name: "inner"}) {
			if err != nil {
				t.Fatal(err)
			}
			draws[inner.X.Add(outer.X).Sum().Add(inner.Env.Rand()).Item()] = true
			n++
		}
		outer.X.Scale(1)
	}
	if n != 6 || len(draws) != 6 {
		t.Errorf("%d turns, %d different values", n, len(draws))
	}
}

// TestDivisors: they are what divides, in order, also of numbers that nobody could count to.
func TestDivisors(t *testing.T) {
	for n := range 100 {
		var want []int
		for d := 1; d <= n; d++ {
			if n%d == 0 {
				want = append(want, d)
			}
		}
		if got := data.Divisors(n); !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
	}
	if got := data.Divisors(1 << 40); len(got) != 41 || got[40] != 1<<40 {
		t.Errorf("%v", got)
	}
}
