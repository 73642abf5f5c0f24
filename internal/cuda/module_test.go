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
	for _, c := range companies {
		for _, p := range slices.Concat(c.first, c.rest) {
			name := strings.Replace(p, "*", "f32", 1)
			if !slices.ContainsFunc(kernels.Modules(), func(m *kernels.Module) bool { return m.Name == name }) {
				t.Errorf("there is no module %s", name)
			}
		}
	}
}
