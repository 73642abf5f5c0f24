package data_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

func fresh(t *testing.T) *tensor.Env {
	t.Helper()
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// counted is a set of n samples: sample i is [i, 10i] with label i.
func counted(n int) data.Source[data.Pair] {
	x, y := make([]float32, 2*n), make([]int64, n)
	for i := range n {
		x[2*i], x[2*i+1], y[i] = float32(i), float32(10*i), int64(i)
	}
	return data.InMemory(x, []int{2}, y)
}

// seen is everything a batch shows: position, labels, values and what its env draws.
type seen struct {
	at   data.Position
	y    []int64
	x    []float32
	draw float64
}

func look(b *data.Pair) seen {
	return seen{b.Position(), tensor.Data[int64](b.Y), tensor.Data[float32](b.X), b.Env.Rand().Item()}
}

func walk(t *testing.T, seq iter.Seq2[*data.Pair, error]) []seen {
	t.Helper()
	var out []seen
	for b, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, look(b))
	}
	return out
}

func labels(s []seen) [][]int64 {
	var out [][]int64
	for _, b := range s {
		out = append(out, b.y)
	}
	return out
}

func TestOrders(t *testing.T) {
	env := fresh(t)
	for _, c := range []struct {
		name   string
		n      int
		config data.Config
		want   [][]int64
	}{
		{"one pass", 5, data.Config{Size: 2}, [][]int64{{0, 1}, {2, 3}, {4}}},
		{"drop last", 5, data.Config{Size: 2, DropLast: true}, [][]int64{{0, 1}, {2, 3}}},
		{"steps over epochs", 3, data.Config{Size: 2, Steps: 5}, [][]int64{{0, 1}, {2}, {0, 1}, {2}, {0, 1}}},
		{"fewer steps than an epoch", 9, data.Config{Size: 2, Steps: 2}, [][]int64{{0, 1}, {2, 3}}},
		{"the rest of the steps", 3, data.Config{Size: 2, Steps: 5, Done: 3, Epoch: 1, Skip: 1}, [][]int64{{2}, {0, 1}}},
		{"all steps done", 3, data.Config{Size: 2, Steps: 5, Done: 5, Epoch: 2, Skip: 1}, nil},
		{"more than all steps done", 3, data.Config{Size: 2, Steps: 3, Done: 5, Epoch: 2, Skip: 1}, nil},
		{"wrap", 5, data.Config{Size: 2, Wrap: true, Steps: 4}, [][]int64{{0, 1}, {2, 3}, {4, 0}, {1, 2}}},
		{"wrap of one pass", 3, data.Config{Size: 2, Wrap: true}, [][]int64{{0, 1}, {2, 0}}},
		{"wrap, batch larger than the set", 2, data.Config{Size: 5, Wrap: true, Steps: 2}, [][]int64{{0, 1, 0, 1, 0}, {1, 0, 1, 0, 1}}},
		{"skip", 5, data.Config{Size: 2, Skip: 1}, [][]int64{{2, 3}, {4}}},
		{"skip all", 5, data.Config{Size: 2, Skip: 3}, nil},
		{"skip with steps", 5, data.Config{Size: 2, Skip: 2, Steps: 2}, [][]int64{{4}, {0, 1}}},
		{"skip a whole epoch with steps", 5, data.Config{Size: 2, Skip: 3, Steps: 1}, [][]int64{{0, 1}}},
		{"wrap beyond the set", 5, data.Config{Size: 2, Wrap: true, Skip: 7, Steps: 1}, [][]int64{{4, 0}}},
		{"empty", 0, data.Config{Size: 2}, nil},
		{"smaller than a batch", 1, data.Config{Size: 100}, [][]int64{{0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := labels(walk(t, data.Batches(env, counted(c.n), c.config))); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestShuffleIsAPermutationOfEachEpoch(t *testing.T) {
	env := fresh(t)
	const n = 23
	got := walk(t, data.Batches(env, counted(n), data.Config{Size: 4, Shuffle: true, Steps: 12}))
	var epochs [2][]int64
	for i, b := range got {
		epochs[i/6] = append(epochs[i/6], b.y...)
	}
	if slices.Equal(epochs[0], epochs[1]) {
		t.Error("two epochs have the same order")
	}
	second := walk(t, data.Batches(env, counted(n), data.Config{Size: 4, Shuffle: true, Epoch: 1}))
	if !reflect.DeepEqual(second, got[6:]) {
		t.Error("Epoch: 1 is not the second epoch")
	}
	for e := range epochs {
		slices.Sort(epochs[e])
		for i, v := range epochs[e] {
			if v != int64(i) {
				t.Fatalf("epoch %d has label %d at rank %d", e, v, i)
			}
		}
	}
	other := walk(t, data.Batches(env, counted(n), data.Config{Size: 4, Shuffle: true, Steps: 12, Name: "other"}))
	if reflect.DeepEqual(labels(other), labels(got)) {
		t.Error("two loaders of different names have the same order")
	}
	if reflect.DeepEqual(labels(walk(t, data.Batches(env.Seed(5), counted(n), data.Config{Size: 4, Shuffle: true, Steps: 12}))), labels(got)) {
		t.Error("two seeds have the same order")
	}
}

func TestDrawIsUniform(t *testing.T) {
	env := fresh(t)
	const n, rows = 7, 7000
	count := make([]float64, n)
	for b, err := range data.Batches(env, counted(n), data.Config{Size: 100, Draw: true, Steps: rows / 100}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range tensor.Data[int64](b.Y) {
			count[v]++
		}
	}
	chi := 0.0
	for _, c := range count {
		chi += (c - rows/n) * (c - rows/n) / (rows / n)
	}
	if chi > 22.5 { // 0.1 % of draws with 6 degrees of freedom
		t.Errorf("counts %v: χ² is %.1f", count, chi)
	}
}

func TestWorkersDoNotMatter(t *testing.T) {
	env := fresh(t)
	augmented := data.Map(counted(31), func(_ *data.Pair, row data.Row) error {
		data.Values[float32](row, 0)[1] += row.Rand().Float32()
		return nil
	})
	for _, c := range []data.Config{
		{Size: 4, Shuffle: true, Steps: 19},
		{Size: 4, Draw: true, Steps: 9},
		{Size: 4, Wrap: true, Steps: 9},
		{Size: 4, DropLast: true},
	} {
		c.Workers = -1
		want := walk(t, data.Batches(env, augmented, c))
		for workers := range 5 {
			for prefetch := range 4 {
				c.Workers, c.Prefetch = workers, prefetch
				if got := walk(t, data.Batches(env, augmented, c)); !reflect.DeepEqual(got, want) {
					t.Fatalf("%+v: batches differ from those without workers", c)
				}
			}
		}
	}
}

func TestResumeEqualsTheUninterruptedRun(t *testing.T) {
	env := fresh(t)
	for _, c := range []data.Config{
		{Size: 4, Shuffle: true, Steps: 20},
		{Size: 4, Shuffle: true, Steps: 20, DropLast: true},
		{Size: 3, Draw: true, Steps: 20},
		{Size: 3, Wrap: true, Steps: 20},
	} {
		want := walk(t, data.Batches(env, counted(13), c))
		for cut := 1; cut < len(want); cut++ {
			rest := c
			at := want[cut-1].at
			rest.Epoch, rest.Skip, rest.Steps = at.Epoch, at.Batch, c.Steps-cut
			if got := walk(t, data.Batches(env, counted(13), rest)); !reflect.DeepEqual(got, want[cut:]) {
				t.Fatalf("%+v: resumed at %+v, it goes another way", c, at)
			}
		}
	}
}

// source is a data set whose Fill is the test's.
type source struct {
	n    int
	fill func(b *data.Pair, row data.Row, i int) error
}

func (s source) Len() int                                     { return s.n }
func (s source) Fields() []data.Field                         { return data.PairFields(nil) }
func (s source) Fill(b *data.Pair, row data.Row, i int) error { return s.fill(b, row, i) }

// TestUnwrittenRowsAreZero: what a sample leaves out of its row is 0, whatever the batch before had there.
func TestUnwrittenRowsAreZero(t *testing.T) {
	env := fresh(t)
	src := source{7, func(_ *data.Pair, row data.Row, i int) error {
		if i%3 > 0 {
			data.Values[int64](row, 1)[0] = int64(i)
		}
		return nil
	}}
	copied := data.MapTo(src, src.Fields(), func(from, to data.Row) error {
		to.Copy(1, from)
		return nil
	})
	for name, src := range map[string]data.Source[data.Pair]{"a source": src, "a copy in rows of its own": copied, "a cache": data.Cache[data.Pair](src)} {
		for _, c := range []data.Config{{Size: 3, Steps: 21, Shuffle: true}, {Size: 5, Steps: 14, Shuffle: true, Workers: 2}, {Size: 7, Steps: 7}} {
			sum := int64(0)
			for b, err := range data.Batches(env, src, c) {
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range tensor.Data[int64](b.Y) {
					sum += v
				}
			}
			if want := int64(7 * (1 + 2 + 4 + 5)); sum != want {
				t.Errorf("%s, %+v: the labels of 7 epochs add up to %d, want %d", name, c, sum, want)
			}
		}
	}
}

func TestSlowWorkerKeepsOrderAndBound(t *testing.T) {
	env := fresh(t)
	var started, handed atomic.Int64
	const workers, prefetch = 3, 2
	src := source{40, func(_ *data.Pair, row data.Row, i int) error {
		if ahead := started.Add(1) - handed.Load(); ahead > workers*prefetch+1 {
			return fmt.Errorf("%d batches ahead", ahead)
		}
		if i%7 == 0 {
			time.Sleep(2 * time.Millisecond)
		}
		data.Values[int64](row, 1)[0] = int64(i)
		return nil
	}}
	want := int64(0)
	for b, err := range data.Batches(env, src, data.Config{Size: 1, Workers: workers, Prefetch: prefetch}) {
		if err != nil {
			t.Fatal(err)
		}
		if got := tensor.Data[int64](b.Y)[0]; got != want {
			t.Fatalf("batch %d has sample %d", want, got)
		}
		want++
		handed.Add(1)
	}
	if want != 40 {
		t.Errorf("%d batches of 40", want)
	}
}

func TestErrorsComeBesideTheirBatch(t *testing.T) {
	bad := errors.New("unreadable")
	for _, workers := range []int{-1, 1, 3} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			env := fresh(t)
			src := source{12, func(_ *data.Pair, row data.Row, i int) error {
				switch i {
				case 5:
					return bad
				case 9:
					panic("broken source")
				}
				data.Values[int64](row, 1)[0] = int64(i)
				return nil
			}}
			var log []string
			for b, err := range data.Batches(env, src, data.Config{Size: 2, Workers: workers}) {
				if err == nil {
					log = append(log, fmt.Sprint(tensor.Data[int64](b.Y)))
					continue
				}
				var at *data.SampleError
				if b != nil || !errors.As(err, &at) {
					t.Fatalf("batch %v beside error %v", b, err)
				}
				log = append(log, err.Error())
				var p *data.PanicError
				if errors.Is(err, bad) == errors.As(err, &p) {
					t.Errorf("the cause of %v is lost", err)
				}
				if p != nil && !strings.Contains(string(p.Stack), "data_test.go") {
					t.Error("the stack does not show the source")
				}
			}
			want := []string{"[0 1]", "[2 3]", "data: epoch 0, batch 2, sample 5: unreadable", "[6 7]",
				"data: epoch 0, batch 4, sample 9: panic: broken source", "[10 11]"}
			if !slices.Equal(log, want) {
				t.Errorf("got %q", log)
			}
		})
	}
}

func TestBadUseIsAnError(t *testing.T) {
	env := fresh(t)
	type odd struct {
		data.Turn
		X *tensor.Tensor
	}
	for name, c := range map[string]struct {
		seq  iter.Seq2[*data.Pair, error]
		want string
	}{
		"no size":        {data.Batches(env, counted(3), data.Config{}), "batch size 0"},
		"negative size":  {data.Batches(env, counted(3), data.Config{Size: -4}), "batch size -4"},
		"absurd skip":    {data.Batches(env, counted(3), data.Config{Size: 3, Wrap: true, Skip: math.MaxInt, Steps: 2}), "more than 2^48"},
		"negative steps": {data.Batches(env, counted(3), data.Config{Size: 1, Steps: -1}), "none may be negative"},
		"two orders":     {data.Batches(env, counted(3), data.Config{Size: 1, Shuffle: true, Wrap: true}), "set one of them"},
		"nothing to go":  {data.Batches(env, counted(0), data.Config{Size: 1, Steps: 3}), "0 samples make no batch"},
		"all dropped":    {data.Batches(env, counted(3), data.Config{Size: 4, Steps: 3, DropLast: true}), "3 samples make no batch of 4"},
		"skip too far":   {data.Batches(env, counted(3), data.Config{Size: 1, Skip: 4}), "4 batches to skip in epochs of 3"},
		"done of none":   {data.Batches(env, counted(3), data.Config{Size: 1, Done: 2}), "set Config.Steps"},
		"negative done":  {data.Batches(env, counted(3), data.Config{Size: 1, Steps: 3, Done: -1}), "none may be negative"},
		"absurd size":    {data.Batches(env, counted(3), data.Config{Size: math.MaxInt, Wrap: true}), "too many for a batch"},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			for b, err := range c.seq {
				if n++; b != nil || err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("got %v, %v; want %q", b, err, c.want)
				}
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("more than one line: %v", err)
				}
				break
			}
			if n != 1 {
				t.Error("no error")
			}
		})
	}
	for _, err := range data.Batches(env, mismatched[odd]{}, data.Config{Size: 1}) {
		if err == nil || !strings.Contains(err.Error(), "fills 2 tensors, data_test.odd has 1 [X]") {
			t.Errorf("got %v", err)
		}
	}
}

// mismatched is a source that fills two tensors, whatever B has.
type mismatched[B any] struct{}

func (mismatched[B]) Len() int                     { return 1 }
func (mismatched[B]) Fields() []data.Field         { return data.PairFields(nil) }
func (mismatched[B]) Fill(*B, data.Row, int) error { return nil }

// goroutines waits until the count is back at before.
func goroutines(t *testing.T, before int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestEveryWayOutStopsWorkersAndEndsScopes(t *testing.T) {
	env := fresh(t)
	config := data.Config{Size: 2, Workers: 3, Steps: 50}
	before, scopes := runtime.NumGoroutine(), env.Device().Memory().Scopes
	ways := map[string]func(){
		"end": func() { walk(t, data.Batches(env, counted(5), config)) },
		"break": func() {
			for range data.Batches(env, counted(5), config) {
				break
			}
		},
		"panic": func() {
			defer func() { recover() }()
			for range data.Batches(env, counted(5), config) {
				panic("user")
			}
		},
		"cancel": func() {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			c := config
			c.Context = ctx
			why, n := errors.New("enough"), 0
			for b, err := range data.Batches(env, counted(5), c) {
				if err != nil {
					if n != 3 || b != nil || !errors.Is(err, why) {
						t.Errorf("after %d batches: %v", n, err)
					}
					continue
				}
				if n++; n == 3 {
					cancel(why)
				}
			}
			if n != 3 {
				t.Errorf("%d batches after cancelling in the third", n)
			}
		},
		"zip, first ends": func() {
			long := config
			for range data.Zip(data.Batches(env, counted(5), data.Config{Size: 5, Steps: 2, Workers: 2}), data.Batches(env, counted(5), long)) {
			}
		},
		"zip, second ends": func() {
			for range data.Zip(data.Batches(env, counted(5), config), data.Batches(env, counted(5), data.Config{Size: 5, Steps: 2, Workers: 2})) {
			}
		},
		"zip, panic": func() {
			defer func() { recover() }()
			for range data.Zip(data.Batches(env, counted(5), config), data.Batches(env, counted(5), config)) {
				panic("user")
			}
		},
		"split, break": func() {
			for b := range data.Batches(env, counted(5), config) {
				for range data.Split(b, 2) {
					break
				}
			}
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			way()
			goroutines(t, before+1) // the subtest's own
			if n := env.Device().Memory().Scopes; n != scopes {
				t.Errorf("%d scopes are open, %d before", n, scopes)
			}
		})
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	env := fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	release := make(chan struct{})
	src := source{4, func(_ *data.Pair, _ data.Row, i int) error {
		if i == 1 {
			cancel()
			<-release
		}
		return nil
	}}
	before, n := runtime.NumGoroutine(), 0
	for _, err := range data.Batches(env, src, data.Config{Size: 1, Workers: 1, Context: ctx}) {
		if err == nil {
			n++
			continue
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		close(release)
	}
	if n > 1 {
		t.Errorf("%d batches", n)
	}
	goroutines(t, before)
}

func TestBatchIsReleasedWhenTheLoopGoesOn(t *testing.T) {
	env := fresh(t)
	var last *tensor.Tensor
	for b, err := range data.Batches(env, counted(4), data.Config{Size: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		if last != nil {
			if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { return last.Scale(1) }); err == nil {
				t.Error("a value of the first batch is alive in the second")
			}
		}
		last = b.X.Scale(2) //warpline:ok V02
	}
}

func TestHold(t *testing.T) {
	env := fresh(t)
	var x *tensor.Tensor
	var release func()
	for b, err := range data.Batches(env, counted(2), data.Config{Size: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		x, release = b.X, b.Hold()
	}
	if got := tensor.Data[float32](x); got[3] != 10 {
		t.Errorf("got %v", got)
	}
	release()
	release()
	if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { return x.Scale(1) }); err == nil {
		t.Error("the value is alive after release")
	}
}

func TestSubset(t *testing.T) {
	env := fresh(t)
	for _, c := range []struct {
		lo, hi int
		want   [][]int64
	}{{1, 3, [][]int64{{1, 2}}}, {0, 5, [][]int64{{0, 1}, {2, 3}, {4}}}, {5, 5, nil}} {
		if got := labels(walk(t, data.Batches(env, data.Subset(counted(5), c.lo, c.hi), data.Config{Size: 2}))); !reflect.DeepEqual(got, c.want) {
			t.Errorf("Subset(%d, %d): %v", c.lo, c.hi, got)
		}
	}
	for _, c := range [][2]int{{-1, 2}, {3, 6}, {4, 2}, {6, 6}} {
		refused(t, env, "of a set of 5", func() { data.Subset(counted(5), c[0], c[1]) })
	}
}

// refused wants f to panic with a [tensor.Error] that has some text.
func refused(t *testing.T, env *tensor.Env, want string, f func()) {
	t.Helper()
	_, err := env.Try(func(*tensor.Env) *tensor.Tensor {
		f()
		return nil
	})
	if e := (*tensor.Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestInMemoryTargets: targets have any dtype and shape, and a batch knows its samples.
func TestInMemoryTargets(t *testing.T) {
	env := fresh(t)
	x, y := []float64{1, 2, 3, 4, 5, 6}, []float32{10, 11, 20, 21, 30, 31}
	var sizes []int
	var last []float32
	for b, err := range data.Batches(env, data.InMemory(x, []int{2}, y, 2), data.Config{Size: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		if b.X.DType() != dtype.F64 || !slices.Equal(b.Y.Shape(), []int{b.Size(), 2}) {
			t.Errorf("X is %s, Y has shape %v", b.X.DType(), b.Y.Shape())
		}
		sizes, last = append(sizes, b.Size()), tensor.Data[float32](b.Y)
	}
	if !slices.Equal(sizes, []int{2, 1}) || !slices.Equal(last, []float32{30, 31}) {
		t.Errorf("batches of %v, the last target %v", sizes, last)
	}
	refused(t, env, "7 values for inputs of shape [2]", func() { data.InMemory(make([]float32, 7), []int{2}, make([]int64, 3)) })
	refused(t, env, "5 for targets of shape [2]", func() { data.InMemory(make([]float32, 4), []int{2}, make([]float32, 5), 2) })
	refused(t, env, "1 samples have 0 and 1 values", func() { data.InMemory(make([]float32, 2), []int{0}, make([]int64, 1)) })
}

func TestNullDevice(t *testing.T) {
	env, err := tensor.Fresh("null")
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range data.Batches(env, counted(3), data.Config{Size: 2, DropLast: true, Workers: 1}) {
		if err != nil || !slices.Equal(b.X.Shape(), []int{2, 2}) {
			t.Fatalf("%v, %v", b, err)
		}
	}
}

// TestStagedBatches: batches that workers have staged for a device hold what those on the CPU do, also where an epoch ends with
// fewer rows, and a loop that ends early gives back what nobody has taken.
func TestStagedBatches(t *testing.T) {
	sim, err := tensor.Fresh("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	c := data.Config{Size: 4, Shuffle: true, Steps: 6}
	batches := func(env *tensor.Env, workers, most int) (out [][]float64) {
		c.Workers = workers
		for b, err := range data.Batches(env, counted(11), c) {
			if err != nil {
				t.Fatal(err)
			}
			if out = append(out, b.X.Floats(), b.Y.Floats()); len(out) == 2*most {
				break
			}
		}
		return out
	}
	want := batches(fresh(t), -1, -1)
	for _, workers := range []int{-1, 1, 3} {
		if got := batches(sim, workers, -1); !reflect.DeepEqual(got, want) {
			t.Errorf("%d workers: %v, want %v", workers, got, want)
		}
		if got := batches(sim, workers, 2); !reflect.DeepEqual(got, want[:4]) {
			t.Errorf("%d workers, the first two: %v, want %v", workers, got, want[:4])
		}
	}
}
