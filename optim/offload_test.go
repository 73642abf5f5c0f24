package optim_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// TestOffloadedState: what is saved of offloaded state, and what is loaded, does not take the card's memory for all of it at once, and
// has the numbers of state that stays there.
func TestOffloadedState(t *testing.T) {
	const layers, width = 8, 64 // of which each has two moments of width × width
	offloading := func(away bool) (optim.Optimizer, *tensor.Device, func()) {
		env, err := tensor.Fresh("sim:0")
		if err != nil {
			t.Fatal(err)
		}
		var model nn.Sequential
		for range layers {
			model = append(model, nn.NewLinear(env.Seed(1), width, width))
		}
		opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{})
		if away {
			opt.Offload()
		}
		return opt, env.Device(), func() {
			e, scope := env.Scope()
			defer scope.End()
			model.Forward(e.Ones(2, width)).Square().Mean().Backward()
			opt.Step()
		}
	}
	at, _, step := offloading(false)
	step()
	want := maps.Collect(at.State())

	opt, d, step := offloading(true)
	step()
	d.ResetPeak()
	before, saved := d.Memory().Peak, maps.Collect(opt.State())
	for name, x := range want {
		if !slices.Equal(saved[name].Floats(), x.Floats()) {
			t.Errorf("%s is another", name)
		}
	}
	const one = 4 * width * width
	if more := d.Memory().Peak - before; len(saved) != len(want) || more > 2*one {
		t.Errorf("%d tensors of state take %d bytes of the card to be read, one of them %d", len(saved), more, one)
	}

	for _, away := range []bool{false, true} {
		again, d, step := offloading(away)
		d.ResetPeak()
		before, room := d.Memory().Peak, int64(4*one)
		if !away {
			room += 2 * layers * one
		}
		if err := again.Load(saved, opt.Counters()); err != nil {
			t.Fatal(err)
		}
		if more := d.Memory().Peak - before; more > room {
			t.Errorf("offloaded %v: state takes %d bytes of the card to be loaded, one tensor of it %d", away, more, one)
		}
		for name, x := range again.State() {
			if !slices.Equal(want[name].Floats(), x.Floats()) {
				t.Errorf("offloaded %v: %s is another", away, name)
			}
		}
		step()
	}
}
