package data_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// noisy is counted(n) with a random number added to a value of each sample.
func noisy(n int) data.Source[data.Pair] {
	return data.Map(counted(n), func(_ *data.Pair, row data.Row) error {
		data.Values[float32](row, 0)[1] += row.Rand().Float32()
		return nil
	})
}

// wrappers are all sources made of others; one more row joins the tests below.
var wrappers = []struct {
	name string
	make func(t *testing.T) data.Source[data.Pair]
	want []int64 // labels in the set's order
}{
	{"Map", func(*testing.T) data.Source[data.Pair] { return noisy(5) }, []int64{0, 1, 2, 3, 4}},
	{"MapTo", func(*testing.T) data.Source[data.Pair] {
		return data.MapTo(noisy(5), []data.Field{{DType: dtype.F32, Shape: []int{3}}, {DType: dtype.I64}}, func(from, to data.Row) error {
			copy(data.Values[float32](to, 0)[1:], data.Values[float32](from, 0))
			data.Values[float32](to, 0)[0] = to.Rand().Float32()
			to.Copy(1, from)
			return nil
		})
	}, []int64{0, 1, 2, 3, 4}},
	{"Subset", func(*testing.T) data.Source[data.Pair] { return data.Subset(noisy(9), 2, 7) }, []int64{2, 3, 4, 5, 6}},
	{"Select", func(*testing.T) data.Source[data.Pair] { return data.Select(noisy(9), []int{8, 0, 8, 3, 5}) }, []int64{8, 0, 8, 3, 5}},
	{"Filter", func(t *testing.T) data.Source[data.Pair] {
		src, err := data.Filter(noisy(300), func(row data.Row) bool { return data.Values[int64](row, 1)[0]%43 == 7 })
		if err != nil {
			t.Fatal(err)
		}
		return src
	}, []int64{7, 50, 93, 136, 179, 222, 265}},
	{"Concat", func(*testing.T) data.Source[data.Pair] {
		return data.Concat(noisy(0), noisy(2), noisy(0), noisy(3), noisy(0))
	}, []int64{0, 1, 0, 1, 2}},
	{"Interleave", func(*testing.T) data.Source[data.Pair] {
		return data.Interleave(noisy(2), noisy(0), noisy(4), noisy(3))
	}, []int64{0, 0, 0, 1, 1, 1, 2, 2, 3}},
	{"Cache", func(*testing.T) data.Source[data.Pair] { return data.Cache(noisy(6)) }, []int64{0, 1, 2, 3, 4, 5}},
	{"CacheDir", func(t *testing.T) data.Source[data.Pair] { return cacheDir(t, noisy(6), t.TempDir()) }, []int64{0, 1, 2, 3, 4, 5}},
}

func cacheDir[B any](t *testing.T, src data.Source[B], dir string) *data.Cached[B] {
	t.Helper()
	c, err := data.CacheDir(src, dir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestWrappers(t *testing.T) {
	for _, w := range wrappers {
		t.Run(w.name, func(t *testing.T) {
			src := w.make(t)
			var got []int64
			for _, b := range walk(t, data.Batches(fresh(t), src, data.Config{Size: 2})) {
				got = append(got, b.y...)
			}
			if !slices.Equal(got, w.want) || src.Len() != len(w.want) {
				t.Errorf("%d samples %v, want %v", src.Len(), got, w.want)
			}
			if s := fmt.Sprint(src); !strings.Contains(s, "(") {
				t.Errorf("%q does not tell what it is made of", s)
			}
		})
	}
}

// orders are all ways to walk a set; one more row joins the tests below.
func orders(t *testing.T, n int) map[string]data.Config {
	weights, classes := make([]float64, n), make([]int, n)
	for i := range n {
		weights[i], classes[i] = float64(1+i%3), i%3
	}
	return map[string]data.Config{
		"in order":   {},
		"shuffle":    {Shuffle: true},
		"drop last":  {Shuffle: true, DropLast: true},
		"draw":       {Draw: true},
		"wrap":       {Wrap: true},
		"weighted":   {Sampler: must(data.Weighted(weights, n+3, true))},
		"without":    {Sampler: must(data.Weighted(weights, n-1, false))},
		"stratified": {Sampler: data.Stratified(classes)},
		"grouped":    {Sampler: data.Grouped(classes)},
		"bucketed":   {Sampler: data.Bucketed(classes)},
		"streams":    {Sampler: data.Streams()},
		"ordered": {Sampler: data.Ordered(n, func(n int, r *rand.Rand) []int {
			return r.Perm(n)
		})},
	}
}

// TestEverySourceInEveryOrder: workers do not matter, and a run that goes on after any step has the batches of one that was never
// interrupted, also when the source is made anew.
func TestEverySourceInEveryOrder(t *testing.T) {
	env := fresh(t)
	for _, w := range wrappers {
		src := w.make(t)
		for name, c := range orders(t, src.Len()) {
			c.Size, c.Steps, c.Workers = 2, 9, -1
			want := walk(t, data.Batches(env, src, c))
			if len(want) != c.Steps {
				t.Fatalf("%s, %s: %d batches", w.name, name, len(want))
			}
			c.Workers = 3
			if got := walk(t, data.Batches(env, w.make(t), c)); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: workers change the batches", w.name, name)
			}
			for cut := 1; cut < len(want); cut++ {
				rest := c
				at := want[cut-1].at
				rest.Epoch, rest.Skip, rest.Done = at.Epoch, at.Batch, cut
				if got := walk(t, data.Batches(env, w.make(t), rest)); !reflect.DeepEqual(got, want[cut:]) {
					t.Errorf("%s, %s: resumed at %+v, it goes another way", w.name, name, at)
				}
			}
		}
	}
}

// TestRandIsTheSamples: what a sample draws in an epoch depends on neither order nor batch size; in the next epoch it is another
// number, and where a sample comes twice each has its own.
func TestRandIsTheSamples(t *testing.T) {
	env := fresh(t)
	const n = 7
	drawn := func(c data.Config) map[int64][]float32 {
		out := map[int64][]float32{}
		for _, b := range walk(t, data.Batches(env, noisy(n), c)) {
			for i, y := range b.y {
				out[y] = append(out[y], b.x[2*i+1])
			}
		}
		return out
	}
	want := drawn(data.Config{Size: 1})
	perm := data.Ordered(n, func(n int, r *rand.Rand) []int { return r.Perm(n) })
	for _, c := range []data.Config{{Size: 3}, {Size: 2, Shuffle: true}, {Size: n, Sampler: perm}, {Size: 2, Shuffle: true, Workers: 3}} {
		if got := drawn(c); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
	next := drawn(data.Config{Size: 1, Epoch: 1})
	twice := drawn(data.Config{Size: 2, Sampler: data.Ordered(2*n, func(n int, r *rand.Rand) []int { return append(r.Perm(n), r.Perm(n)...) })})
	for i := range int64(n) {
		if next[i][0] == want[i][0] {
			t.Errorf("sample %d draws the same in two epochs", i)
		}
		if len(twice[i]) != 2 || twice[i][0] == twice[i][1] {
			t.Errorf("sample %d comes twice with %v", i, twice[i])
		}
	}
}

func TestJoiningBadSources(t *testing.T) {
	env := fresh(t)
	other := data.InMemory([]float32{1}, []int{1}, []int64{0})
	refused(t, env, "source 1 has", func() { data.Concat(counted(3), other) })
	refused(t, env, "source 1 has", func() { data.Interleave(counted(3), other) })
	refused(t, env, "no sources", func() { data.Concat[data.Pair]() })
	refused(t, env, "sample 3 of a set of 3", func() { data.Select(counted(3), []int{0, 3}) })
	refused(t, env, "sample -1 of a set of 3", func() { data.Select(counted(3), []int{-1}) })
	refused(t, env, "has the field Names", func() { data.Cache[rich](richSource{3}) })
	bad := errors.New("unreadable")
	broken := source{200, func(_ *data.Pair, _ data.Row, i int) error {
		switch i {
		case 130:
			return bad
		case 150:
			panic("broken")
		}
		return nil
	}}
	if _, err := data.Filter(broken, func(data.Row) bool { return true }); !errors.Is(err, bad) || !strings.Contains(err.Error(), "sample 130") {
		t.Errorf("Filter of a broken set: %v", err)
	}
	dir := t.TempDir()
	if _, err := data.CacheDir(broken, dir, ""); !errors.Is(err, bad) {
		t.Errorf("CacheDir of a broken set: %v", err)
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("a broken set leaves %v", files)
	}
	if _, err := data.CacheDir(counted(3), filepath.Join(os.DevNull, "x"), ""); err == nil {
		t.Error("a folder that cannot be is no error")
	}
}

// counting counts what is read of a source.
func counting[B any](src data.Source[B], n *atomic.Int64) data.Source[B] {
	return data.Map(src, func(*B, data.Row) error {
		n.Add(1)
		return nil
	})
}

func TestCacheReadsOnce(t *testing.T) {
	env := fresh(t)
	var n atomic.Int64
	src := data.Cache(counting(noisy(10), &n))
	first := walk(t, data.Batches(env, src, data.Config{Size: 3}))
	if got := walk(t, data.Batches(env, src, data.Config{Size: 3})); !reflect.DeepEqual(got, first) || n.Load() != 10 {
		t.Errorf("%d reads of 10 samples, or other values", n.Load())
	}
	shuffled := walk(t, data.Batches(env, src, data.Config{Size: 3, Shuffle: true, Workers: 2}))
	fresh := walk(t, data.Batches(env, data.Cache(noisy(10)), data.Config{Size: 3, Shuffle: true, Workers: 2}))
	if !reflect.DeepEqual(shuffled, fresh) {
		t.Error("what is kept depends on the batch that read it first")
	}
}

// all is every tensor of a walk as floats.
func all[B any, P interface {
	*B
	data.Batch
}](t *testing.T, env *tensor.Env, src data.Source[B], tensors func(b *B) []*tensor.Tensor) (out [][]float64) {
	t.Helper()
	for b, err := range data.Batches[B, P](env, src, data.Config{Size: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range tensors(b) {
			out = append(out, x.Cast(dtype.F64).Floats())
		}
	}
	return out
}

// every is a source with a field of each dtype, one of Any length, by names.
type every struct{ n int }

func (e every) Len() int { return e.n }
func (e every) Fields() (out []data.Field) {
	for _, d := range dtype.All() {
		out = append(out, data.Field{DType: d, Shape: []int{2}, Name: d.String()})
	}
	return append(out, data.Field{DType: dtype.F32, Shape: []int{data.Any, 3}, Name: "ragged"})
}

func (e every) Fill(_ *data.Named, row data.Row, i int) error {
	v := []float64{float64(i % 2), 1}
	for k, d := range dtype.All() {
		switch d {
		case dtype.F32:
			dtype.Convert(data.Values[float32](row, k), v)
		case dtype.F64:
			dtype.Convert(data.Values[float64](row, k), v)
		case dtype.F16:
			dtype.Convert(data.Values[dtype.Float16](row, k), v)
		case dtype.BF16:
			dtype.Convert(data.Values[dtype.BFloat16](row, k), v)
		case dtype.I64:
			dtype.Convert(data.Values[int64](row, k), v)
		case dtype.I32:
			dtype.Convert(data.Values[int32](row, k), v)
		case dtype.U8:
			dtype.Convert(data.Values[uint8](row, k), v)
		case dtype.Bool:
			dtype.Convert(data.Values[bool](row, k), v)
		case dtype.F8E4M3:
			dtype.Convert(data.Values[dtype.Float8E4M3](row, k), v)
		case dtype.F8E5M2:
			dtype.Convert(data.Values[dtype.Float8E5M2](row, k), v)
		default:
			return fmt.Errorf("no values of %s", d)
		}
	}
	for j, n := 0, len(data.Ragged[float32](row, len(dtype.All()), i%3)); j < n; j++ {
		data.Values[float32](row, len(dtype.All()))[j] = float32(10*i + j)
	}
	return nil
}

func named(b *data.Named) (out []*tensor.Tensor) {
	for _, name := range slices.Sorted(maps.Keys(b.Tensors)) {
		out = append(out, b.Tensors[name])
	}
	return out
}

// TestCachesKeepEveryDType: what comes out of either cache is what went in, of every dtype and of ragged fields.
func TestCachesKeepEveryDType(t *testing.T) {
	env := fresh(t)
	want := all(t, env, every{5}, named)
	if len(want) != 3*(len(dtype.All())+1) {
		t.Fatalf("%d tensors", len(want))
	}
	memory := data.Cache[data.Named](every{5})
	for pass := range 2 {
		if got := all(t, env, memory, named); !reflect.DeepEqual(got, want) {
			t.Errorf("pass %d in memory: %v, want %v", pass, got, want)
		}
	}
	if got := all(t, env, cacheDir[data.Named](t, every{5}, t.TempDir()), named); !reflect.DeepEqual(got, want) {
		t.Errorf("in a file: %v, want %v", got, want)
	}
}

// TestCacheDirKnowsItsContent: a file serves the set that it was made of, and no other; what is cut or damaged is made again or told.
func TestCacheDirKnowsItsContent(t *testing.T) {
	env, dir := fresh(t), t.TempDir()
	var n atomic.Int64
	read := func() int64 { return n.Swap(0) }
	path := cacheDir(t, counting(counted(100), &n), dir).Path()
	if got := read(); got != 64+100 {
		t.Errorf("%d reads to make it", got)
	}
	if cacheDir(t, counting(counted(100), &n), dir); read() != 64 {
		t.Error("it is made although it is there")
	}
	for name, other := range map[string]data.Source[data.Pair]{"longer": counted(101), "other values": noisy(100), "other fields": data.InMemory(make([]float32, 100), []int{1}, make([]int64, 100))} {
		if c := cacheDir(t, other, dir); c.Path() == path {
			t.Errorf("%s: the same file", name)
		}
	}
	if c, err := data.CacheDir(counted(100), dir, "another name"); err != nil || c.Path() == path {
		t.Errorf("another name: the same file, %v", err)
	} else {
		c.Close()
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := walk(t, data.Batches(env, counted(100), data.Config{Size: 9}))
	for k := range 60 {
		bad := slices.Clone(whole)
		if at := k * len(whole) / 60; k%2 == 0 {
			bad = bad[:at]
		} else {
			bad[at] ^= 0x40
		}
		if err := os.WriteFile(path, bad, 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := data.CacheDir(counted(100), dir, "")
		if err != nil {
			t.Fatal(err)
		}
		var got []seen
		for b, err := range data.Batches(env, c, data.Config{Size: 9}) {
			if err != nil {
				if !strings.Contains(err.Error(), "is damaged; delete the file") {
					t.Error(err)
				}
				got = nil
				break
			}
			got = append(got, look(b))
		}
		if got != nil && !reflect.DeepEqual(got, want) {
			t.Errorf("damage %d goes unseen", k)
		}
		c.Close()
		os.Remove(path)
	}
}
