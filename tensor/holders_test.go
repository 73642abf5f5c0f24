package tensor_test

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// TestHolders: who holds the memory is known on every device when nobody observes it, and adds up to what is in use.
func TestHolders(t *testing.T) {
	for _, name := range []string{"cpu", "null:a100-80", "sim:a100-80x5"} {
		env := fresh(t, name)
		w := tensor.NewParam(env.Ones(7, 5)) // 140 bytes
		w.SetPath("body.first.weight")
		turn(env, 0, func(e *tensor.Env) {
			y := e.Ones(2, 7).MatMul(w).ReLU() // 56 kept, 40, 40 kept
			var sum int64
			kinds, modules, lines := map[string]int64{}, map[string]int64{}, map[string]int64{}
			for _, h := range env.Device().Holders() {
				sum += h.Bytes
				kinds[h.Kind] += h.Bytes
				modules[h.Module] += h.Bytes
				lines[strings.Split(h.Line, ":")[0]] += h.Bytes
			}
			if used := env.Device().Memory().Used; sum != used || lines["holders_test.go"] != used {
				t.Errorf("%s: holders of %d bytes, %d in use; by line %v", name, sum, used, lines)
			}
			if kinds["activation"] < 56+40 || kinds["parameter"] != 140 || modules["body.first"] < 140+40+40 {
				t.Errorf("%s: by kind %v, by module %v", name, kinds, modules)
			}
			y.Sum().Backward()
			for _, h := range env.Device().Holders() {
				if h.Kind == "activation" {
					t.Errorf("%s: after Backward %+v", name, h)
				}
			}
		})
	}
}

// TestOutOfMemoryNamesModule: the operation that memory runs out in, its line and its module.
func TestOutOfMemoryNamesModule(t *testing.T) {
	env := fresh(t, "null:a100-80")
	w := tensor.NewParam(env.Ones(8, 8))
	w.SetPath("net.fc.weight")
	x := env.Ones(4, 8)
	env.Device().FailAt(2)
	_, err := env.Try(func(*tensor.Env) *tensor.Tensor { return x.MatMul(w).Exp().Square() })
	var oom *tensor.OOMError
	if !errors.As(err, &oom) || oom.Op != "exp" || oom.Module != "net.fc" || !strings.HasPrefix(oom.Line, "holders_test.go:") {
		t.Errorf("%+v", err)
	}
}

// TestRehearsal: a device that imitates another needs to the byte what that does, scratch memory and gaps included.
func TestRehearsal(t *testing.T) {
	work := func(env *tensor.Env) {
		w := tensor.NewParam(env.Randn(40, 30))
		for i := range 2 {
			turn(env, i, func(e *tensor.Env) {
				x := e.Randn(600, 40).MatMul(w).Softmax(-1)
				x.Sum(0).Square().Sum().Backward()
				w.DropGrad()
			})
		}
	}
	for _, name := range []string{"cpu", "null:a100-80", "sim:a100-80x5"} {
		env := fresh(t, name)
		env.Device().SetLimit(1)
		_, err := env.Try(func(e *tensor.Env) *tensor.Tensor { return e.Ones(2) })
		var oom *tensor.OOMError
		if !errors.As(err, &oom) || oom.Within() != 1 {
			t.Fatalf("%s: %v", name, err)
		}
		env.Device().SetLimit(0)
		env.Device().ResetPeak()
		work(env)
		like, err := oom.Rehearse(tensor.Rehearsal{})
		if err != nil {
			t.Fatal(err)
		}
		work(like)
		if got, want := like.Device().Memory(), env.Device().Memory(); got.Peak != want.Peak || got.Reserved.Peak != want.Reserved.Peak || got.ValuesPeak != want.ValuesPeak {
			t.Errorf("%s: %+v in rehearsal, %+v really", name, got, want)
		}
		if like.Device().Computes() || like.Device().Name() != name {
			t.Errorf("the rehearsal is on %s", like.Device().Name())
		}
		if _, err := oom.Rehearse(tensor.Rehearsal{AllocConf: "nonsense:1"}); err == nil {
			t.Error("a configuration without meaning is accepted")
		}
	}
}

// TestOutOfMemoryTogether: of goroutines that want more than there is together, those who get it go on, the others get an error
// that adds up, and nothing is left of either.
func TestOutOfMemoryTogether(t *testing.T) {
	for _, name := range []string{"cpu", "sim:a100-80x5"} {
		env := fresh(t, name)
		w := tensor.NewParam(env.Ones(1000))
		before := env.Device().Memory()
		env.Device().SetLimit(before.Used + 100_000) // of 4 × 40,000 bytes
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for range 20 {
					_, err := env.Try(func(env *tensor.Env) *tensor.Tensor {
						x := w.In(env).Expand(10, 1000).Contiguous()
						runtime.Gosched()
						return x.Sum()
					})
					var oom *tensor.OOMError
					if err != nil && !errors.As(err, &oom) {
						t.Errorf("%s: %v", name, err)
					}
					if oom == nil {
						continue
					}
					var sum int64
					for _, n := range oom.ByKind() {
						sum += n
					}
					if sum > oom.Limit || oom.Asked <= 0 {
						t.Errorf("%s: holders of %d bytes under a limit of %d", name, sum, oom.Limit)
					}
				}
			})
		}
		group.Wait()
		env.Device().SetLimit(0)
		env.Device().Collect()
		if m := env.Device().Memory(); m.Used != before.Used || m.Scopes != before.Scopes {
			t.Errorf("%s: %+v is left, before %+v", name, m, before)
		}
		runtime.KeepAlive(w)
	}
}
