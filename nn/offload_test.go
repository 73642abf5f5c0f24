package nn_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// stack is a model of blocks that keep more than their results.
func stack(env *tensor.Env, blocks int) nn.Sequential {
	var model nn.Sequential
	for range blocks {
		model = append(model, &counted{nn.NewLinear(env, 16, 64), nn.NewLinear(env, 64, 16), new(int)},
			&nested{nn.Sequential{nn.NewLinear(env, 16, 48), nn.Tanh{}, nn.GELU{}, nn.NewLinear(env, 48, 16), nn.Tanh{}}})
	}
	for range nn.Params(model) {
	}
	return model
}

// nested is a block with blocks in it.
type nested struct{ Inner nn.Sequential }

func (b *nested) Forward(x *tensor.Tensor) *tensor.Tensor {
	return x.Add(b.Inner.Forward(x).Sigmoid()).Square()
}

// stepped is the loss of a step with its gradients, and the most bytes of the device at once.
func stepped(env *tensor.Env, model nn.Sequential, key uint64) (out []float64, peak int64) {
	d := env.Device()
	d.Collect()
	d.ResetPeak()
	e, s := env.Scope(key)
	defer s.End()
	loss := model.Forward(e.Randn(200, 16)).Square().Mean()
	loss.Backward()
	out = loss.Floats()
	for _, p := range nn.Params(model) {
		out = append(out, p.Grad().Floats()...)
		p.DropGrad()
	}
	return out, d.Memory().Peak
}

// TestOffload: what blocks keep goes to the host and comes back with the same bits, on simulated cards that let work and copies take
// effect in several orders; as much less is held on a device that computes nothing; the processor's memory is the host's.
func TestOffload(t *testing.T) {
	saved := map[string]int64{}
	for _, name := range []string{"cpu", "null:a100-80x3:2", "sim:a100-80x3:2"} {
		env, err := tensor.Fresh(name)
		if err != nil {
			t.Fatal(err)
		}
		model := stack(env, 3)
		want, whole := stepped(env, model, 1)
		for try := range 3 {
			got, peak := stepped(env.Offload(), model, 1)
			if !slices.Equal(got, want) {
				t.Fatalf("%s: another step: %v, want %v", name, got[:1], want[:1])
			}
			saved[name] = whole - peak
			now, most := env.Device().Parked()
			if moves := env.Device().Parks() == ""; moves != (most > 0) || now != 0 || moves != (name != "cpu") || moves != (peak < whole) {
				t.Errorf("%s, step %d: %d bytes at the host, %d at most; a peak of %d, without %d (%s)", name, try, now, most, peak, whole, env.Device().Parks())
			}
		}
	}
	if saved["null:a100-80x3:2"] != saved["sim:a100-80x3:2"] {
		t.Error(fmt.Sprint(saved))
	}
}

// TestOffloadIsForgotten: neither a model nor what its blocks kept outlives the graph, whether Backward ran through it or not, and in
// whatever scope.
func TestOffloadIsForgotten(t *testing.T) {
	env, err := tensor.Fresh("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	d := env.Device()
	step := func(scoped, backward bool) {
		e := env
		if scoped {
			inner, s := env.Scope()
			defer s.End()
			e = inner
		}
		loss := stack(env, 3).Forward(e.Randn(200, 16).In(e.Offload())).Square().Mean()
		if backward {
			loss.Backward()
		}
	}
	for i := range 4 {
		scoped, backward := i&1 > 0, i&2 > 0
		for range 3 {
			step(scoped, backward)
		}
		d.Collect()
		d.Collect()
		if now, _ := d.Parked(); now > 0 || d.Memory().Used > 0 {
			t.Errorf("in a scope %v, with Backward %v: %d bytes at the host, %d on the device", scoped, backward, now, d.Memory().Used)
		}
	}
}
