package kernels

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/kernel"
	"github.com/warpline-ml/warpline/tensor"
)

func TestSwish(t *testing.T) {
	kernel.Test(t, swishPTX, "swish", func(c *kernel.Case) {
		x, y := c.Randn(c.N), c.Empty(dtype.F32, c.N)
		c.Launch(kernel.Cover(c.N, 256), x, y, c.N)
		in := x.Floats()
		c.Want(y, 1e-6, func(i int) float64 { return in[i] / (1 + math.Exp(-in[i])) })
	})
}

func TestSwishGrad(t *testing.T) {
	kernel.Test(t, swishPTX, "swish_grad", func(c *kernel.Case) {
		x, dy, dx := c.Randn(c.N), c.Randn(c.N), c.Empty(dtype.F32, c.N)
		c.Launch(kernel.Cover(c.N, 256), x, dy, dx, c.N)
		in, g := x.Floats(), dy.Floats()
		c.Want(dx, 1e-6, func(i int) float64 {
			s := 1 / (1 + math.Exp(-in[i]))
			return g[i] * s * (1 + in[i]*(1-s))
		})
	})
}

func TestScan(t *testing.T) {
	kernel.Test(t, scanPTX, "scan", func(c *kernel.Case) {
		const rows, threads = 3, 128
		x, y := c.Randn(rows, c.N), c.Empty(dtype.F32, rows, c.N)
		c.Launch(kernel.Grid{Blocks: [3]int{rows}, Threads: [3]int{threads}, Shared: 4 * threads}, x, y, c.N)
		sum, in := 0.0, x.Floats()
		c.Want(y, 1e-4, func(i int) float64 {
			if i%c.N == 0 {
				sum = 0
			}
			sum += in[i]
			return sum
		})
	}, 0, 1, 127, 129, 300)
}

// TestOperations: on a simulated GPU the operations are those of the library, gradients included.
func TestOperations(t *testing.T) {
	env, err := tensor.Simulated("a100-80", "check=all")
	if err != nil {
		t.Fatal(err)
	}
	swish, err := NewSwish(env)
	if err != nil {
		t.Fatal(err)
	}
	scan, err := NewScan(env)
	if err != nil {
		t.Fatal(err)
	}
	values := func() *tensor.Tensor { return env.Arange(35).Cast(dtype.F32).Scale(0.2).AddScalar(-3).Reshape(5, 7) }
	p, q := tensor.NewParam(values()), tensor.NewParam(values())
	swish.Forward(p.Transpose(0, 1)).Square().Sum().Backward()
	q.Transpose(0, 1).SiLU().Square().Sum().Backward()
	near(t, "the gradient of Swish", p.Grad(), q.Grad())
	near(t, "Scan", scan.Forward(values()), values().CumSum(-1))
	f := func(in []*tensor.Tensor) *tensor.Tensor { return swish.Forward(in[0].Cast(dtype.F32)).Cast(dtype.F64) }
	if err := tensor.GradCheck(f, []*tensor.Tensor{values().Cast(dtype.F64)}, tensor.GradCheckConfig{Step: 1e-2, RTol: 1e-2, ATol: 1e-3}); err != nil {
		t.Error(err)
	}
}

func near(t *testing.T, what string, got, want *tensor.Tensor) {
	t.Helper()
	w := want.Floats()
	for i, g := range got.Floats() {
		if math.Abs(g-w[i]) > 1e-5*max(1, math.Abs(w[i])) {
			t.Errorf("%s: element %d is %v, want %v", what, i, g, w[i])
		}
	}
}

// TestBuilt: the PTX was made from the sources beside it.
func TestBuilt(t *testing.T) {
	list, err := os.ReadFile("build.sha256")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for line := range strings.Lines(string(list)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%x", sha256.Sum256(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")))) != sum {
			t.Errorf("%s was changed: examples/sim/build.sh makes all of them again", name)
		}
		named++
	}
	if named != 5 {
		t.Errorf("%d files are named", named)
	}
}
