package optim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// TestCastsAhead trains under precision policies, with weights that are used twice, changed between steps and read by
// graphs of earlier ones: what it gives is what it gives with casts that no step has made ahead.
func TestCastsAhead(t *testing.T) {
	seed := testutil.Rand(t).Uint64()
	for _, device := range []string{"cpu", "sim:0"} {
		for name, build := range optimizers() {
			ahead, late := trained(t, device, build, seed, false), trained(t, device, build, seed, true)
			for i := range late {
				if !slices.Equal(ahead[i], late[i]) {
					t.Fatalf("%s, %s, step %d: %v with casts made ahead, %v without", device, name, i, ahead[i], late[i])
				}
			}
		}
	}
}

// trained is what each of some random steps leaves. With late every cast that a step has made is let go of at once.
func trained(t *testing.T, device string, build func(m any) Optimizer, seed uint64, late bool) (all [][]float64) {
	env, err := tensor.Fresh(device)
	if err != nil {
		t.Fatal(err)
	}
	first := nn.NewLinear(env, 5, 7)
	m := nn.Sequential{first, nn.Tanh{}, nn.NewLinear(env, 7, 5), first, nn.Tanh{}, nn.NewLinear(env, 7, 3)}
	opt := build(m)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 8 {
		e, scope := env.Autocast([]dtype.DType{dtype.BF16, dtype.F16}[r.IntN(2)]).Scope(uint64(i))
		earlier := nn.MSE(m.Forward(e.Randn(4, 5)), e.Randn(4, 3))
		for range r.IntN(3) {
			backward(e, m)
		}
		opt.Step()
		change(m, r, late)
		if r.IntN(2) == 0 {
			earlier.Backward()
			opt.Step()
			change(m, r, late)
		}
		all = append(all, append(values(m), m.Forward(e.NoGrad().Randn(2, 5)).Floats()...))
		scope.End()
	}
	return all
}

// change may write parameters, or put others in their place, and with all it replaces each by itself.
func change(m any, r *rand.Rand, all bool) {
	for _, p := range nn.Params(m) {
		switch v := p.Detach().Scale(0.5); r.IntN(8) {
		case 0:
			p.CopyInPlace(v)
		case 1:
			p.Replace(v)
		}
		if all {
			p.Replace(p.Detach())
		}
	}
}

// TestCastsAheadAreLetGo: beside the parameters and their state there is one cast of each, of the last policy that used it.
func TestCastsAheadAreLetGo(t *testing.T) {
	env := freshEnv(t)
	m := nn.NewLinearNoBias(env, 64, 64)
	opt := NewSGD(nn.Params(m), SGDConfig{LR: 0.1})
	var in []int64
	for i, dt := range []dtype.DType{dtype.BF16, dtype.BF16, dtype.F16, dtype.Invalid} {
		e, scope := env.Scope(uint64(i))
		if dt != dtype.Invalid {
			e = e.Autocast(dt)
		}
		m.Forward(e.Randn(4, 64)).Sum().Backward()
		opt.Step()
		scope.End()
		in = append(in, env.Device().Memory().Used)
	}
	if cast := int64(2 * 64 * 64); in[0] != in[1] || in[0] != in[2] || in[3] != in[0]-cast {
		t.Errorf("bytes in use after steps in bf16, bf16, f16 and without a policy: %v", in)
	}
}
