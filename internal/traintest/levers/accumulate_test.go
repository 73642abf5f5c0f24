package levers_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// learnt is what a step leaves: losses of its last attempt, weights, running statistics, the next random number, and the parts
// that are left to choose from.
type learnt struct {
	losses, state []float64
	next          float64
	left          []int
}

// once makes a step of a model with dropout and batch norms, in which the n-th allocation of what may begin again fails; 0: none.
func once(t *testing.T, device string, parts []int, n int) (l learnt, used int64) {
	t.Helper()
	env, err := tensor.Fresh(device)
	if err != nil {
		t.Fatal(err)
	}
	env = env.Seed(3)
	m := nn.Sequential{nn.NewLinear(env, 6, 8), nn.NewBatchNorm(env, 8), nn.Dropout{P: 0.3}, nn.NewLinear(env, 8, 3)}
	opt := optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 0.1})
	still := nn.NewSnapshot(m)
	values := slices.Repeat([]float32{1, -2, 0.5, 3, -1, 0.25, 2}, 7)[:48]
	src := data.InMemory(values, []int{6}, make([]int64, 8))
	for b, err := range data.Batches(env, src, data.Config{Size: 8}) {
		if err != nil {
			t.Fatal(err)
		}
		still.Take()
		b.Env.Rand() // the path has been drawn from
		undo := func() {
			opt.Discard()
			still.Restore()
			l.losses = nil
		}
		if n > 0 {
			env.Device().FailAt(n)
		}
		l.left = data.Accumulate(b, parts, undo, func(mb *data.Pair) {
			loss := nn.CrossEntropy(m.Forward(mb.X), mb.Y)
			l.losses = append(l.losses, loss.Item())
			loss.Scale(mb.Fraction()).Backward()
		})
		env.Device().FailAt(0)
		l.next = b.Env.Rand().Item()
		opt.Step()
		break
	}
	for _, p := range nn.State(m) {
		l.state = append(l.state, p.Floats()...)
	}
	env.Device().Collect()
	return l, env.Device().Memory().Used
}

// TestAccumulateAnywhere: wherever memory runs out in a batch, it is learnt as if it had been in more parts from the start, and
// nothing of the attempt is left.
func TestAccumulateAnywhere(t *testing.T) {
	for _, device := range []string{"cpu", "sim:0"} {
		whole, _ := once(t, device, []int{1}, 0)
		want, used := once(t, device, []int{2, 4}, 0)
		if fmt.Sprint(whole.losses) == fmt.Sprint(want.losses) || len(want.losses) != 2 {
			t.Fatalf("losses %v of the whole, %v of parts", whole.losses, want.losses)
		}
		failed := 0
		for n := 1; ; n++ {
			got, now := once(t, device, []int{1, 2, 4}, n)
			if len(got.left) == 3 {
				if fmt.Sprint(got.losses, got.state, got.next) != fmt.Sprint(whole.losses, whole.state, whole.next) {
					t.Errorf("%s: in one part %v, whole %v", device, got, whole)
				}
				break
			}
			if failed++; fmt.Sprint(got) != fmt.Sprint(want) || now != used {
				t.Fatalf("%s, allocation %d: %v, in two parts from the start %v; %d bytes are in use, and %d", device, n, got, want, now, used)
			}
		}
		if failed < 20 {
			t.Errorf("%s: memory ran out in %d places", device, failed)
		}
	}
}

// TestAccumulateEnds: where no number of parts fits, the last shortage is the error; what cannot be split is refused.
func TestAccumulateEnds(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	b := &data.Pair{X: env.Ones(4, 2), Y: env.Ones(4)}
	b.Env = env
	undone := 0
	env.Device().SetLimit(env.Device().Memory().Used + 512)
	_, err = tensor.Try(env, func(*tensor.Env) int {
		data.Accumulate(b, []int{1, 2, 4}, func() { undone++ }, func(mb *data.Pair) { mb.Env.Ones(1000) })
		return 0
	})
	if _, ok := err.(*tensor.OOMError); !ok || undone != 3 {
		t.Errorf("%d attempts, %v", undone, err)
	}
	env.Device().SetLimit(0)
	for _, f := range []func(){
		func() { data.Accumulate[*data.Pair](nil, []int{1}, func() {}, func(*data.Pair) {}) },
		func() { data.Accumulate(b, nil, func() {}, func(*data.Pair) {}) },
		func() { data.Accumulate(&data.Pair{X: b.X}, []int{1}, func() {}, func(*data.Pair) {}) },
	} {
		_, err := tensor.Try(env, func(*tensor.Env) int {
			f()
			return 0
		})
		if _, ok := err.(*tensor.Error); !ok {
			t.Errorf("%v", err)
		}
	}
}
