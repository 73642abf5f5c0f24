package data_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

func TestSequencesArePadded(t *testing.T) {
	x := [][]float32{{1, 2, 3, 4}, {}, {5, 6}, {7, 8, 9, 10, 11, 12}, nil}
	for _, name := range []string{"cpu", "sim:0"} {
		env, err := tensor.Fresh(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, workers := range []int{-1, 2} {
			var got [][]float64
			for b, err := range data.Batches(env, data.Sequences(x, []int{2}, -1, []int64{0, 1, 2, 3, 4}), data.Config{Size: 2, Workers: workers}) {
				if err != nil {
					t.Fatal(err)
				}
				if want := []int{b.Size(), b.Mask.Dim(1), 2}; !slices.Equal(b.X.Shape(), want) {
					t.Errorf("shape %v, want %v", b.X.Shape(), want)
				}
				got = append(got, b.X.Floats(), b.Mask.Floats(), b.Lengths.Floats(), b.Y.Floats())
			}
			want := [][]float64{
				{1, 2, 3, 4, -1, -1, -1, -1}, {1, 1, 0, 0}, {2, 0}, {0, 1},
				{5, 6, -1, -1, -1, -1, 7, 8, 9, 10, 11, 12}, {1, 0, 0, 1, 1, 1}, {1, 3}, {2, 3},
				{}, {}, {0}, {4},
			}
			if !slices.EqualFunc(got, want, slices.Equal[[]float64]) {
				t.Errorf("%s, %d workers: %v", name, workers, got)
			}
		}
	}
}

// TestRaggedKeepsRows: rows that were made before the memory grew keep what they hold, whatever batch comes after.
func TestRaggedKeepsRows(t *testing.T) {
	env := fresh(t)
	var x [][]int32
	for n := range 40 {
		row := make([]int32, (n*7)%23)
		for k := range row {
			row[k] = int32(100*n + k + 1)
		}
		x = append(x, row)
	}
	at := 0
	for b, err := range data.Batches(env, data.Sequences(x, nil, 0, make([]int64, len(x))), data.Config{Size: 9}) {
		if err != nil {
			t.Fatal(err)
		}
		rows, long := tensor.Data[int32](b.X), b.X.Dim(1)
		for r := range b.Size() {
			want := append(slices.Clone(x[at]), make([]int32, long-len(x[at]))...)
			if got := rows[r*long : (r+1)*long]; !slices.Equal(got, want) {
				t.Errorf("sample %d: %v, want %v", at, got, want)
			}
			at++
		}
	}
}

func TestBadSequences(t *testing.T) {
	env := fresh(t)
	refused(t, env, "sequence 1 has 3 values, for items of shape [2]", func() {
		data.Sequences([][]float32{{1, 2}, {1, 2, 3}}, []int{2}, 0, []int64{0, 1})
	})
	refused(t, env, "1 targets of shape [] for 2 sequences", func() { data.Sequences([][]float32{{1}, {2}}, nil, 0, []int64{0}) })
	refused(t, env, "items of shape [0]", func() { data.Sequences([][]float32{{}}, []int{0}, 0, []int64{0}) })
}

// TestBatchesOfMaps: what has a name comes in a map, which Split cuts too.
func TestBatchesOfMaps(t *testing.T) {
	env := fresh(t)
	for b, err := range data.Batches(env, every{4}, data.Config{Size: 4}) {
		if err != nil {
			t.Fatal(err)
		}
		if got := len(slices.Collect(maps.Keys(b.Tensors))); got != len(dtype.All())+1 || b.Tensors["i64"].Dim(0) != 4 {
			t.Errorf("%d tensors", got)
		}
		var rows []float64
		for mb := range data.Split(b, 2) {
			rows = append(rows, mb.Tensors["i64"].Floats()...)
		}
		if !slices.Equal(rows, []float64{0, 1, 1, 1, 0, 1, 1, 1}) {
			t.Errorf("split rows %v", rows)
		}
	}
	for _, err := range data.Batches(env, unnamed{}, data.Config{Size: 1}) {
		if err == nil || !strings.Contains(err.Error(), `tensor 1 of the source has the name "a", which is none or has come before`) {
			t.Error(err)
		}
	}
}

// unnamed has a name twice.
type unnamed struct{}

func (unnamed) Len() int { return 1 }
func (unnamed) Fields() []data.Field {
	return []data.Field{{DType: dtype.F32, Name: "a"}, {DType: dtype.F32, Name: "a"}}
}
func (unnamed) Fill(*data.Named, data.Row, int) error { return nil }
