package cuda

import (
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/kernels"
)

// TestCompanies looks up every module that is compiled ahead of use: a name that there is no module of is passed over in
// silence.
func TestCompanies(t *testing.T) {
	modules := planner().kernels.Modules()
	wanted := func(name string) {
		if !slices.ContainsFunc(modules, func(m *kernels.Module) bool { return m.Name == name }) {
			t.Errorf("there is no module %s", name)
		}
	}
	for _, c := range companies {
		for _, p := range slices.Concat(c.first, c.rest) {
			for _, dt := range []string{"f32", "f16", "bf16"} {
				wanted(strings.Replace(p, "*", dt, 1))
			}
		}
	}
	for _, m := range modules {
		if !strings.HasPrefix(m.Name, "attention_mma_") && !strings.HasPrefix(m.Name, "attention_ffma_") {
			continue // of others some companions are in a few dtypes only
		}
		for _, name := range companions(m.Name) {
			wanted(name)
		}
	}
}
