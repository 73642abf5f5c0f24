package digits

import (
	"reflect"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/tensor"
)

func first(t *testing.T, src data.Source[data.Pair], n int, workers int) ([]float32, []int64) {
	t.Helper()
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range data.Batches(env, src, data.Config{Size: n, Workers: workers}) {
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(b.X.Shape(), []int{n, 1, 28, 28}) {
			t.Fatalf("shape %v", b.X.Shape())
		}
		return tensor.Data[float32](b.X), tensor.Data[int64](b.Y)
	}
	t.Fatal("no batch")
	return nil, nil
}

func TestSplitDrawsDisjointSamples(t *testing.T) {
	train, test := Split(50, 20)
	if train.Len() != 50 || test.Len() != 20 {
		t.Fatalf("%d and %d samples", train.Len(), test.Len())
	}
	x, labels := first(t, train, 50, 2)
	dst := make([]float32, side*side)
	seen := map[string]bool{}
	for i := range 50 {
		if l := Draw(dst, DefaultSeed, i); int64(l) != labels[i] || !slices.Equal(dst, x[i*side*side:][:side*side]) {
			t.Fatalf("sample %d is not Draw's", i)
		}
		seen[pictureKey(dst)] = true
	}
	y, _ := first(t, test, 20, -1)
	for i := range 20 {
		if k := pictureKey(y[i*side*side:][:side*side]); seen[k] {
			t.Errorf("test sample %d is in both sets", i)
		}
	}
	_, same := Split(10, 20)
	z, _ := first(t, same, 20, -1)
	if !slices.Equal(y, z) {
		t.Error("the test set depends on the size of the other")
	}
	other, _ := SplitSeed(2, 50, 20)
	if w, _ := first(t, other, 50, -1); reflect.DeepEqual(w, x) {
		t.Error("two seeds draw the same set")
	}
}

func pictureKey(p []float32) string {
	b := make([]byte, len(p))
	for i, v := range p {
		b[i] = byte(v * 255)
	}
	return string(b)
}
