package metric

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// freshEnv is a CPU of the test's own, on which what is released turns into NaN.
func freshEnv(t *testing.T) *tensor.Env {
	t.Helper()
	env, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	env.Device().Poison(true)
	return env
}

// identity gives its input as logits, and sees in which modes it runs.
type identity struct{ t *testing.T }

func (m identity) Forward(x *tensor.Tensor) *tensor.Tensor {
	if x.Env().Training() || x.Env().Recording() {
		m.t.Error("evaluation trains or records")
	}
	return x
}

// logits are random rows of c values and labels, with the sums that a metric must find, computed apart.
func logits(t *testing.T, n, c int) (x []float32, y []int64, right int, loss float64) {
	r := testutil.Rand(t)
	for range n {
		row := make([]float64, c)
		best, sum := 0, 0.0
		for j := range row {
			v := float32(r.NormFloat64())
			x, row[j] = append(x, v), float64(v)
			if row[j] > row[best] {
				best = j
			}
			sum += math.Exp(row[j])
		}
		label := r.IntN(c)
		y = append(y, int64(label))
		loss += math.Log(sum) - row[label]
		if best == label {
			right++
		}
	}
	return x, y, right, loss / float64(n)
}

func TestEvaluate(t *testing.T) {
	env := freshEnv(t)
	for _, n := range []int{1, 255, 256, 700} {
		x, y, right, loss := logits(t, n, 7)
		s, err := Evaluate(env, identity{t}, data.InMemory(x, []int{7}, y))
		if err != nil {
			t.Fatal(err)
		}
		if want := float64(right) / float64(n); s.Accuracy != want || s.Samples != n {
			t.Errorf("%d samples: accuracy %v of %d, want %v", n, s.Accuracy, s.Samples, want)
		}
		testutil.Close(t, []float64{s.Loss}, []float64{loss}, 1e-5, 1e-6)
		if got := Accuracy(env, identity{t}, data.InMemory(x, []int{7}, y)); got != s.Accuracy {
			t.Errorf("Accuracy %v, Evaluate %v", got, s.Accuracy)
		}
	}
	if s, err := Evaluate(env, identity{t}, data.InMemory([]float32(nil), []int{7}, []int64(nil))); err != nil || !math.IsNaN(s.Accuracy) {
		t.Errorf("empty set: %v, %v", s, err)
	}
}

func TestEvaluateBadSet(t *testing.T) {
	env := freshEnv(t)
	broken := data.Map(data.InMemory(make([]float32, 7), []int{7}, []int64{0}), func(*data.Pair, data.Row) error { return errors.New("a broken set") })
	if _, err := Evaluate(env, identity{t}, broken); err == nil {
		t.Error("a broken set is no error")
	}
	_, err := env.Try(func(env *tensor.Env) *tensor.Tensor {
		Accuracy(env, identity{t}, broken)
		return nil
	})
	if e := (*tensor.Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Text, "a broken set") {
		t.Errorf("Accuracy of a broken set: %v", err)
	}
}

func TestMean(t *testing.T) {
	env := freshEnv(t)
	var m Mean
	if !math.IsNaN(m.Value()) {
		t.Error("an empty mean is a number")
	}
	w := nn.NewParam(env.Ones())
	want := 0.0
	for i := range 5 {
		e, scope := env.Scope(uint64(i))
		loss := w.In(e).Scale(float64(i)) // recorded
		m.Add(loss, i+1)
		want += float64(i * (i + 1))
		loss.Backward() // reads what Add must not have changed
		scope.End()
	}
	if got := m.Value(); got != want/15 || m.Count() != 15 {
		t.Errorf("mean %v of %d, want %v of 15", got, m.Count(), want/15)
	}
	kept, shared := m, m
	if m.Reset(); m.Count() != 0 || !math.IsNaN(m.Value()) {
		t.Error("Reset keeps samples")
	}
	m.Add(env.Full(7), 1)
	if got := kept.Value(); got != want/15 {
		t.Errorf("Reset and another value make %v of a copy that was %v", got, want/15)
	}
	m.Reset()
	m.Add(freshEnv(t).Full(3), 2) // on another device
	if m.Value() != 3 {
		t.Errorf("a mean of 3 is %v", m.Value())
	}
	shared.Clear()
	sum := shared.sum
	if shared.Add(env.Full(5), 2); shared.Value() != 5 || shared.sum != sum {
		t.Errorf("a mean of 5 is %v behind Clear", shared.Value())
	}
	shared.Clear()
	shared.Add(freshEnv(t).Full(4), 2)
	if shared.Value() != 4 {
		t.Errorf("a mean of 4 is %v", shared.Value())
	}
	var p Perplexity
	p.Add(env.Full(math.Log(8)), 3)
	p.Add(env.Full(math.Log(2)), 3)
	testutil.Close(t, []float64{p.Value()}, []float64{4}, 1e-6, 0)
}

func TestConfusion(t *testing.T) {
	env := freshEnv(t)
	c := NewConfusion(env, 3)
	want := [][]int{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}
	r := testutil.Rand(t)
	for _, n := range []int{1, 50, 0, 13} {
		x, y := make([]float32, 3*n), make([]int64, n)
		for i := range y {
			y[i] = int64(r.IntN(2)) // class 2 never occurs
			p := r.IntN(3)
			x[3*i+p] = 1
			want[y[i]][p]++
		}
		c.Add(tensor.From(env, x, n, 3), tensor.From(env, y, n))
	}
	got := c.Counts()
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("row %d: %v, want %v", i, got[i], want[i])
		}
	}
	if a, w := c.Accuracy(), float64(want[0][0]+want[1][1])/64; a != w {
		t.Errorf("accuracy %v, want %v", a, w)
	}
	if rec := c.Recall(); !math.IsNaN(rec[2]) || rec[0] != ratio(want[0][0], want[0][0]+want[0][1]+want[0][2]) {
		t.Errorf("recall %v of %v", rec, want)
	}
	if pre := c.Precision(); pre[1] != ratio(want[1][1], want[0][1]+want[1][1]) {
		t.Errorf("precision %v of %v", pre, want)
	}
	if lines := strings.Count(c.String(), "\n"); lines != 5 {
		t.Errorf("%d lines:\n%s", lines, c)
	}
}

// TestEvaluateHoldsOneBatch: what a pass over a set takes does not grow with its batches, is the same on every engine, and
// does not fit into less than 1/1.25 of it.
func TestEvaluateHoldsOneBatch(t *testing.T) {
	const features, classes = 64, 8
	set := func(batches int) data.Source[data.Pair] {
		n := batches * batchSize
		return data.InMemory(make([]float32, n*features), []int{features}, make([]int64, n))
	}
	var want int64
	for _, name := range []string{"cpu", "null:a100-80", "sim:0"} {
		env, err := tensor.Fresh(name)
		if err != nil {
			t.Fatal(err)
		}
		m := nn.Sequential{nn.NewLinear(env, features, 4*features), nn.GELU{}, nn.NewLinear(env, 4*features, 4*features), nn.Tanh{}, nn.NewLayerNorm(env, 4*features), nn.NewLinear(env, 4*features, classes)}
		dev := env.Device()
		for _, batches := range []int{2, 5} { // the figures' cells are made after the first
			dev.Collect()
			dev.ResetPeak()
			if _, err := Evaluate(env, m, set(batches)); err != nil {
				t.Fatal(err)
			}
			u := dev.Memory()
			if want == 0 {
				want = u.ValuesPeak
			}
			if u.ValuesPeak != want || u.Collections > 0 {
				t.Errorf("%d batches on %s: a peak of %d bytes, %d collections; of two on the CPU %d", batches, name, u.ValuesPeak, u.Collections, want)
			}
		}
		if name != "cpu" {
			continue
		}
		dev.Collect()
		dev.SetLimit(want * 4 / 5)
		_, err = env.Try(func(e *tensor.Env) *tensor.Tensor {
			_, err := Evaluate(e, m, set(2))
			if err != nil {
				t.Error(err)
			}
			return nil
		})
		var oom *tensor.OOMError
		if !errors.As(err, &oom) {
			t.Errorf("%d bytes are enough: %v", want*4/5, err)
		}
	}
}
