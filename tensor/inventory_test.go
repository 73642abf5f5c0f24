package tensor_test

import (
	"runtime"
	"testing"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// TestInventory: what a step's memory serves for, whether or not somebody watched when it was made.
func TestInventory(t *testing.T) {
	for _, name := range []string{"cpu", "null:a100-80", "sim:a100-80x5"} {
		env := fresh(t, name)
		w := tensor.NewParam(env.Ones(7, 5)) // 140 bytes
		w.SetPath("w")
		tensor.NewBuffer(env.Ones(3))
		opt := optim.NewAdamW(func(yield func(string, *tensor.Tensor) bool) { yield("w", w) }, optim.AdamWConfig{})
		count := func() (bytes map[string]int64, kept int64) {
			bytes = map[string]int64{}
			env.Device().Inventory(func(v *tensor.Inventory) {
				kept = v.Kept
				for _, x := range v.Values {
					key := x.Label
					if x.Path != "" {
						key += " of " + x.Path
					}
					bytes[key] += x.Bytes
					if x.Op == "" || x.Site == nil || x.Mem.Size < x.Bytes {
						t.Errorf("%s: %+v", name, x)
					}
				}
				if got := v.Stats.RequestedBytes.All.Current; got != sum(bytes) {
					t.Errorf("%s: values of %v, %d bytes asked for", name, bytes, got)
				}
			})
			return bytes, kept
		}
		turn(env, 0, func(e *tensor.Env) {
			x := e.Ones(2, 7) // 56 bytes
			y := x.MatMul(w)  // 40
			loss := y.Square().Sum()
			bytes, kept := count()
			if bytes["activation"] != 96 || kept != 96 || bytes["parameter of w"] != 140 || bytes["buffer"] != 12 {
				t.Errorf("%s, forward: %v, %d kept", name, bytes, kept)
			}
			backward := watch(t, env, device.KindBackward)
			loss.Backward()
			if all := backward(); len(all) != 2 || all[0].Bytes != 96 || all[0].End || all[1].Bytes != 0 || !all[1].End {
				t.Errorf("%s: told of Backward: %v", name, all)
			}
			if bytes, kept = count(); bytes["gradient of w"] != 140 || kept != 0 {
				t.Errorf("%s, after Backward: %v, %d kept", name, bytes, kept)
			}
			opt.Step()
		})
		env.Device().Collect()
		if bytes, _ := count(); bytes["optimizer state of w"] != 280 || bytes["activation"] != 0 || bytes["gradient of w"] != 0 {
			t.Errorf("%s, after the step: %v", name, bytes)
		}
		runtime.KeepAlive(opt)
	}
}

func sum(m map[string]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}
