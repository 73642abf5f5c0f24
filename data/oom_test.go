package data_test

import (
	"errors"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/tensor"
)

// TestUploadOutOfMemory: memory that runs out while a batch is made, by workers or without them, ends the loop with an error,
// leaves nothing behind, and the next loop runs.
func TestUploadOutOfMemory(t *testing.T) {
	src := data.InMemory(make([]float32, 8*16), []int{16}, make([]int64, 8))
	for _, device := range []string{"cpu", "null:a100-80", "sim:a100-80x6:0"} {
		for _, workers := range []int{-1, 2} {
			env, err := tensor.Fresh(device)
			if err != nil {
				t.Fatal(err)
			}
			loop := func() (turns int, err error) {
				_, err = tensor.Try(env, func(env *tensor.Env) int {
					for b, failed := range data.Batches(env, src, data.Config{Size: 2, Workers: workers}) {
						if failed != nil {
							t.Fatal(failed)
						}
						b.X.Exp()
						turns++
					}
					return 0
				})
				return turns, err
			}
			before := env.Device().Memory()
			for k := range 4 { // allocations of a turn: two uploads and one of its own
				env.Device().FailAt(k + 1)
				turns, err := loop()
				var oom *tensor.OOMError
				if !errors.As(err, &oom) || turns != k/3 {
					t.Errorf("%s, %d workers, allocation %d: %d turns, %v", device, workers, k, turns, err)
				}
				if m := env.Device().Memory(); m.Used != before.Used || m.Scopes != before.Scopes {
					t.Errorf("%s, %d workers, allocation %d: %+v is left, before %+v", device, workers, k, m, before)
				}
			}
			env.Device().FailAt(0)
			if turns, err := loop(); turns != 4 || err != nil {
				t.Errorf("%s, %d workers, afterwards: %d turns, %v", device, workers, turns, err)
			}
		}
	}
}
