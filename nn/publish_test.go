package nn_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// newNormed is a model whose two ends share a weight, with a batch norm between.
func newNormed(env *tensor.Env) nn.Sequential {
	first := nn.NewLinear(env, 4, 4)
	return nn.Sequential{first, nn.NewBatchNorm(env, 4), nn.ReLU{}, first, nn.NewLinear(env, 4, 2)}
}

// TestPublished: goroutines that ask while a model with batch norm and tied weights learns get the answers of one step,
// bit for bit, and in the order of steps; the race detector sees none of it.
func TestPublished(t *testing.T) {
	env, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	model := newNormed(env)
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1, Momentum: 0.9})
	ask := func(m nn.Sequential) (out []float64) {
		env.NoGrad().Eval().Do(func(env *tensor.Env) *tensor.Tensor {
			out = m.Forward(tensor.From(env, []float32{1, 2, 3, 4}, 1, 4)).Floats()
			return nil
		})
		return out
	}
	const steps = 30
	answers := make([][]float64, 1, steps+1)
	answers[0] = ask(model)
	p := nn.Publish(model)

	var stop atomic.Bool
	var readers sync.WaitGroup
	got := make([][][]float64, 4)
	for i := range got {
		readers.Go(func() {
			for last := false; !last; {
				last = stop.Load()
				p.Use(func(m nn.Sequential) { got[i] = append(got[i], ask(m)) })
			}
		})
	}
	for range steps {
		env.Do(func(env *tensor.Env) *tensor.Tensor {
			model.Forward(env.Randn(8, 4)).Square().Mean().Backward()
			return nil
		})
		opt.Step()
		answers = append(answers, ask(model))
		p.Update()
	}
	stop.Store(true)
	readers.Wait()
	for i, list := range got {
		at := 0
		for _, answer := range list {
			for at <= steps && !slices.Equal(answers[at], answer) {
				at++
			}
			if at > steps {
				t.Fatalf("reader %d got %v, which is the answer of no step after the one before", i, answer)
			}
		}
		if at != steps {
			t.Errorf("the last answer of reader %d is of step %d", i, at)
		}
	}
	if slices.Equal(answers[0], answers[steps]) {
		t.Error("nothing was learnt")
	}
}

// TestPublishedLeavesTheModel: copies have no gradients, and the model's parameters learn as without them.
func TestPublishedLeavesTheModel(t *testing.T) {
	env, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	model := newNormed(env)
	p := nn.Publish(model)
	model.Forward(env.Ones(2, 4).Add(env.Randn(2, 4))).Sum().Backward()
	p.Update()
	for path, w := range nn.Params(model) {
		if w.Grad() == nil {
			t.Errorf("%s has no gradient after an update", path)
		}
	}
	p.Use(func(m nn.Sequential) {
		if &m[0] == &model[0] || m[0] != m[3] {
			t.Error("the copy is the model, or has lost what it ties")
		}
		for path, w := range nn.Params(m) {
			if !w.Frozen() || w.Grad() != nil {
				t.Errorf("%s of the copy learns", path)
			}
		}
	})
}

// TestPublishedAfterAFailure: an update that fails leaves what was published, and the next one does not wait for it.
func TestPublishedAfterAFailure(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	other, err := tensor.Fresh("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	model := nn.NewLinear(env, 2, 2)
	p := nn.Publish(model)
	weight := func() (v []float64) {
		p.Use(func(m *nn.Linear) { v = m.Weight.Floats() })
		return v
	}
	before := weight()
	model.Weight.Replace(other.Ones(2, 2))
	for range 3 { // there are two copies
		if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { p.Update(); return nil }); err == nil {
			t.Fatal("a weight on another device is published")
		}
		if got := weight(); !slices.Equal(got, before) {
			t.Errorf("after an update that failed %v is published, and was %v", got, before)
		}
	}
	model.Weight.Replace(env.Full(3, 2, 2))
	p.Update()
	if got := weight(); !slices.Equal(got, []float64{3, 3, 3, 3}) {
		t.Errorf("after an update %v", got)
	}
}

// TestZip refuses models of two kinds.
func TestZip(t *testing.T) {
	env := tensor.Best()
	for name, b := range map[string]any{"fewer": nn.NewLayerNorm(env, 2), "others": nn.Sequential{nn.NewLinear(env, 2, 2)}} {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor {
			for range nn.Zip(nn.NewBatchNorm(env, 2), b) {
			}
			return nil
		})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
