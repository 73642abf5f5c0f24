package examples

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// here is the line of its call, as errors write it, and next the one after.
func here() string { return lineAfter(0) }
func next() string { return lineAfter(1) }

func lineAfter(n int) string {
	_, _, line, _ := runtime.Caller(2)
	return fmt.Sprintf("lines_test.go:%d", line+n)
}

// TestLines: what goes wrong below an iterator or a function of the library, or in what the program gives it to call, is
// told of the program's line, wherever the compiler has put the library's closures. CI runs it without inlining, too.
func TestLines(t *testing.T) {
	for name, f := range map[string]func(env *tensor.Env, line *string){
		"nn.Params": func(env *tensor.Env, line *string) {
			type net struct{ hidden *nn.Linear }
			*line = next()
			for range nn.Params(&net{nn.NewLinear(env, 1, 1)}) {
			}
		},
		"the body of nn.State": func(env *tensor.Env, line *string) {
			for _, p := range nn.State(nn.NewLinear(env, 2, 3)) {
				*line = next()
				p.Reshape(5)
			}
		},
		"nn.Init": func(env *tensor.Env, line *string) {
			nn.Init(nn.NewLinear(env, 2, 3), func(_ string, p *tensor.Tensor) {
				*line = next()
				p.Reshape(5)
			})
		},
		"data.Batches": func(env *tensor.Env, line *string) {
			set := pairs(8)
			env.Device().SetLimit(1)
			*line = next()
			for range data.Batches(env, set, data.Config{Size: 4}) {
			}
		},
		"the body of data.Batches": func(env *tensor.Env, line *string) {
			for b := range data.Batches(env, pairs(8), data.Config{Size: 4}) {
				*line = next()
				b.X.Reshape(5)
			}
		},
		"data.Map": func(env *tensor.Env, line *string) {
			set := data.Map(pairs(8), func(*data.Pair, data.Row) error {
				*line = next()
				env.Ones(2).Reshape(5)
				return nil
			})
			for _, err := range data.Batches(env, set, data.Config{Size: 4}) {
				if p := (*data.PanicError)(nil); errors.As(err, &p) {
					panic(p.Value)
				}
			}
		},
		"data.Split": func(env *tensor.Env, line *string) {
			var gone *data.Pair
			for b := range data.Batches(env, pairs(8), data.Config{Size: 4}) {
				gone = b
			}
			*line = next()
			for range data.Split(gone, 2) { //warpline:ok V27
			}
		},
		"data.Zip": func(env *tensor.Env, line *string) {
			first, second := data.Batches(env, pairs(8), data.Config{Size: 4}), data.Batches(env, pairs(8), data.Config{Size: 4, Name: "second"})
			both := data.Zip(first, second)
			env.Device().SetLimit(1)
			*line = next()
			for range both {
			}
		},
		"the second of data.Zip": func(env *tensor.Env, line *string) {
			first, second := data.Batches(env, pairs(8), data.Config{Size: 4}), data.Batches(env, pairs(8), data.Config{Size: 4, Name: "second"})
			both := data.Zip(first, second)
			env.Device().FailAt(3)
			*line = "unknown" // iter.Pull runs it on a stack of its own, which does not lead to the program
			for range both {
			}
		},
		"GPT.Generate": func(env *tensor.Env, line *string) {
			g := model.NewGPT(env, model.GPTConfig{Vocab: 3, Context: 4, Layers: 1, Heads: 1, Width: 2, Eps: 1e-5})
			*line = next()
			for range g.Generate(env, []int64{7}, 2, model.SampleConfig{}) {
			}
		},
		"optim.NewSGD": func(env *tensor.Env, line *string) {
			wrong := func(_ string, _ *tensor.Tensor, r *optim.Rates) { r.Scale = -1 }
			linear := nn.NewLinear(env, 1, 1)
			*line = next()
			optim.NewSGD(nn.Params(linear), optim.SGDConfig{Rule: wrong})
		},
		"maps.All": func(env *tensor.Env, line *string) {
			wrong := func(_ string, _ *tensor.Tensor, r *optim.Rates) { r.Scale = -1 }
			weights := map[string]*tensor.Tensor{"w": nn.NewParam(env.Ones(3))}
			*line = next()
			optim.NewSGD(maps.All(weights), optim.SGDConfig{Rule: wrong})
		},
		"a Rule": func(env *tensor.Env, line *string) {
			optim.NewSGD(nn.Params(nn.NewLinear(env, 1, 1)), optim.SGDConfig{Rule: func(_ string, p *tensor.Tensor, _ *optim.Rates) {
				*line = next()
				p.Reshape(5)
			}})
		},
		"optim.Stepwise": func(env *tensor.Env, line *string) {
			*line = next()
			optim.Stepwise(1, 0.1, 0)
		},
		"tensor.Recompute": func(env *tensor.Env, line *string) {
			w, n := nn.NewParam(env.Ones(3)), 0
			loss := tensor.Recompute(env.Ones(3), func(x *tensor.Tensor) *tensor.Tensor {
				if n++; n > 1 {
					return x.Mul(w)
				}
				return x.Mul(w).Exp()
			}).Sum()
			*line = next()
			loss.Backward()
		},
		"OnGrad": func(env *tensor.Env, line *string) {
			w := nn.NewParam(env.Ones(3))
			w.OnGrad(func(g *tensor.Tensor) *tensor.Tensor {
				*line = next()
				return g.Reshape(5)
			})
			w.Exp().Sum().Backward()
		},
		"what OnGrad returns": func(env *tensor.Env, line *string) {
			w := nn.NewParam(env.Ones(3))
			w.OnGrad(func(g *tensor.Tensor) *tensor.Tensor { return g.Slice(0, 0, 1) })
			*line = next()
			w.Exp().Sum().Backward()
		},
		"tensor.Func": func(env *tensor.Env, line *string) {
			f := tensor.Func{
				Forward: func(_ *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{in[0].Exp()} },
				Backward: func(_ *tensor.Call, grads []*tensor.Tensor) []*tensor.Tensor {
					*line = next()
					return []*tensor.Tensor{grads[0].Reshape(5)}
				},
			}
			f.Apply(nn.NewParam(env.Ones(3)))[0].Sum().Backward()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var want string
			env := fresh(t, "cpu")
			_, err := env.Try(func(*tensor.Env) *tensor.Tensor {
				f(env, &want)
				return nil
			})
			if got := lineOf(err); got != want {
				t.Errorf("%v: at %s, want %s", err, got, want)
			}
		})
	}
}

// TestLinesOfMemory: a loss belongs to the line that asked for it, with whatever option.
func TestLinesOfMemory(t *testing.T) {
	env := fresh(t, "cpu")
	var lines []string
	var losses []*tensor.Tensor
	env.Do(func(e *tensor.Env) *tensor.Tensor {
		x, y, rows, classes := e.Ones(3), e.Zeros(3), e.Ones(2, 3), e.Arange(2)
		for _, loss := range []func() (string, *tensor.Tensor){
			func() (string, *tensor.Tensor) { return here(), nn.MSE(x, y) },
			func() (string, *tensor.Tensor) { return here(), nn.MSE(x, y, nn.Summed()) },
			func() (string, *tensor.Tensor) { return here(), nn.CrossEntropy(rows, classes) },
			func() (string, *tensor.Tensor) { return here(), nn.CrossEntropy(rows, classes, nn.Summed()) },
			func() (string, *tensor.Tensor) { return here(), nn.BCEWithLogits(x, y, nn.Summed()) },
		} {
			line, l := loss()
			lines, losses = append(lines, line), append(losses, l)
		}
		return nil
	})
	for i, l := range losses {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor { l.Item(); return nil })
		if want := " at " + lines[i] + " was released"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func pairs(n int) data.Source[data.Pair] {
	return data.InMemory(make([]float32, n), []int{1}, make([]int64, n))
}

// lineOf is where an error says it comes from.
func lineOf(err error) string {
	var own *tensor.Error
	var memory *tensor.OOMError
	switch {
	case errors.As(err, &own):
		return own.Line
	case errors.As(err, &memory):
		return memory.Line
	}
	return "nowhere"
}
