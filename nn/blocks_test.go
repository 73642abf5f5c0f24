package nn_test

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// counted is a program's own block. It counts its runs.
type counted struct {
	In, Out *nn.Linear
	runs    *int
}

func (c *counted) Forward(x *tensor.Tensor) *tensor.Tensor {
	*c.runs++
	return x.Add(c.Out.Forward(c.In.Forward(x).ReLU().Dropout(0.3)))
}

// TestBlocks: of the parts that a model has, those that are asked for run twice, in training only, and keep less; of a product and
// its activation, whose result the next layer keeps anyway, there is nothing to save. The step is the same.
func TestBlocks(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	var runs [3]int
	block := func(i int) *counted {
		return &counted{nn.NewLinear(env, 4, 8), nn.NewLinear(env, 8, 4), &runs[i]}
	}
	attention := nn.NewAttention(env, 4, nn.AttentionConfig{Heads: 2})
	model := nn.Sequential{
		nn.NewLinear(env, 4, 4), nn.Tanh{}, block(0), nn.Sequential{block(1), nn.NewLinear(env, 4, 4), nn.ReLU{}, attention}, nn.Recompute(block(2)),
	}
	for range nn.Params(model) { // which tells them their paths
	}
	forward := func(e *tensor.Env) float64 {
		runs = [3]int{}
		loss := model.Forward(e.Seed(3).Randn(2, 5, 4)).Square().Mean()
		loss.Backward()
		return loss.Item()
	}
	gradients := func() (all []float64) {
		for _, p := range nn.Params(model) {
			if p.Grad() != nil {
				all = append(all, p.Grad().Floats()...)
			}
			p.DropGrad()
		}
		return all
	}
	want := forward(env)
	wanted := gradients()
	kept := func(parts *tensor.Parts) int64 {
		e, s := env.Recompute(parts).Scope()
		defer s.End()
		d := env.Device()
		d.Collect()
		before := d.Memory().Used
		loss := model.Forward(e.Ones(2, 5, 4)).Square().Mean()
		defer loss.Backward()
		d.Collect()
		return d.Memory().Used - before
	}
	kept(tensor.PartsOf(tensor.PartNone)) // which leaves gradients behind that others write into
	all := kept(tensor.PartsOf(tensor.PartNone))
	for _, c := range []struct {
		name  string
		parts *tensor.Parts
		runs  [3]int
	}{
		{"none", tensor.PartsOf(tensor.PartNone), [3]int{1, 1, 2}},
		{"blocks", tensor.PartsOf(tensor.PartBlock), [3]int{2, 2, 2}},
		{"attention", tensor.PartsOf(tensor.PartAttention), [3]int{1, 1, 2}},
		{"some", tensor.PartsAt("3.0"), [3]int{1, 2, 2}},
		{"layers", tensor.PartsAt("0", "3.1"), [3]int{1, 1, 2}},
	} {
		gradients()
		if got := forward(env.Recompute(c.parts)); got != want || !slices.Equal(gradients(), wanted) {
			t.Errorf("%s: loss %v, want %v, or other gradients", c.name, got, want)
		}
		if runs != c.runs {
			t.Errorf("%s: runs %v, want %v", c.name, runs, c.runs)
		}
		if now := kept(c.parts); (now < all) == (c.name == "none" || c.name == "layers") {
			t.Errorf("%s keeps %d bytes, as it is %d", c.name, now, all)
		}
	}
	runs = [3]int{}
	model.Forward(env.NoGrad().Recompute(tensor.PartsOf(tensor.PartBlock)).Ones(2, 5, 4))
	if runs != [3]int{1, 1, 1} {
		t.Errorf("without gradients, runs %v", runs)
	}
}
