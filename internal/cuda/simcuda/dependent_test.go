package simcuda

import (
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// TestTritonDependent: launches of Triton's that begin before the one ahead has ended, whose sum each adds to, right as they are
// and found out without their wait.
func TestTritonDependent(t *testing.T) {
	file, err := os.ReadFile("../../simrun/testdata/triton/add_dependent_sm90.ptx")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(file), ".version 9.4", ".version 8.7", 1) // which the driver knows
	const wait = "griddepcontrol.wait ;"
	if !strings.Contains(text, wait) {
		t.Fatal("no wait in it")
	}
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"as it is", text, false},
		{"no wait", strings.Replace(text, wait, "", 1), true},
	} {
		for _, seed := range []uint64{0, 1, 2, 3, 4} {
			r := newRig(t, Config{Card: "h100-80", Checks: gpusim.AllChecks, Seed: seed, Collect: true})
			var add driver.Function
			r.do(0, func() driver.Result {
				m, _, res := r.api.ModuleLoadData([]byte(c.text))
				if res == driver.Success {
					add, res = r.api.ModuleGetFunction(m, "add_dependent")
				}
				return res
			})
			const n = 1003
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(i)
			}
			px, sum, blocks := r.upload(0, x), r.upload(0, make([]float32, n)), [3]uint32{4, 1, 1}
			for range 3 {
				r.do(0, func() driver.Result {
					return r.api.LaunchKernelEx(&driver.LaunchConfig{Grid: blocks, Block: [3]uint32{128, 1, 1}, Dependent: true},
						add, pack(px, sum, sum, int32(n), uint64(0), uint64(0)))
				})
			}
			for i, got := range r.download(0, sum, n) {
				if got != 3*x[i] {
					t.Fatalf("%s, seed %d: element %d is %v, want %v", c.name, seed, i, got, 3*x[i])
				}
			}
			if found := r.sys.Findings(); (len(found) > 0) != c.want {
				t.Errorf("%s, seed %d: %v", c.name, seed, found)
			}
		}
	}
}
