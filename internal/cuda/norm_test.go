package cuda_test

import (
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/conform"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// checkedLauncher launches on a simulated device under all checks.
func checkedLauncher(t *testing.T) *conform.Launcher {
	t.Helper()
	dev := opener(t, simcuda.Config{Checks: gpusim.AllChecks})()
	l, err := conform.NewLauncher(dev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// same launches an op and compares it with the reference.
func same(t *testing.T, l *conform.Launcher, code ir.Code, p ir.Params, in ...ref.Array) []ref.Array {
	t.Helper()
	want := evaluate(t, code, ir.Attr{}, p, in)
	near(t, code.String(), in[0].Type, launched(t, l, code, ir.Attr{}, p, in), want)
	return want
}

// TestRows covers what the conformance suite's rows do not: steps of 16 bytes by warps and by blocks, more rows than a
// grid has warps, and sums over columns that are cut into ranges.
func TestRows(t *testing.T) {
	l := checkedLauncher(t)
	r := testutil.Rand(t)
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64, dtype.BF16} {
		sizes := [][2]int{{5, 64}, {3, 1024}, {2, 2064}}
		if dt == dtype.F32 {
			sizes = append(sizes, [2]int{16400, 1}, [2]int{200, 132})
		}
		for _, size := range sizes {
			x, g := drawn(r, dt, size[0], size[1]), drawn(r, dt, size[0], size[1])
			for _, code := range []ir.Code{ir.Softmax, ir.LogSoftmax} {
				y := same(t, l, code, ir.Params{}, x)
				same(t, l, code+ir.SoftmaxGrad-ir.Softmax, ir.Params{}, y[0], g)
			}
			w := drawn(r, dt, size[1])
			for i := range w.Data { // a row of one element has gradient 0, but for the rounding of w·g times 1/√eps
				w.Data[i] /= 4
			}
			y := same(t, l, ir.LayerNorm, ir.Scalars(1e-3), x, w, w)
			same(t, l, ir.LayerNormGrad, ir.Params{}, g, x, y[1], y[2], w)
			y = same(t, l, ir.RMSNorm, ir.Scalars(1e-3), x, w)
			same(t, l, ir.RMSNormGrad, ir.Params{}, g, x, y[1])
			testEntropy(t, l, x)
		}
	}
}

func testEntropy(t *testing.T, l *conform.Launcher, x ref.Array) {
	t.Helper()
	n, classes := x.Type.Dim(0), x.Type.Dim(1)
	labels := make([]int64, n)
	for i := range labels {
		labels[i] = int64(i % (classes + 1)) // one past the last is the ignored one
	}
	y, p := ref.Ints(ir.Dense(dtype.I64, n), labels...), ir.Scalars(0.1, float64(classes))
	out := same(t, l, ir.CrossEntropy, p, x, y)
	same(t, l, ir.CrossEntropyGrad, p, x, y, out[1], out[0])
}

// TestChannels covers channels cut into ranges, and tiles of several channels.
func TestChannels(t *testing.T) {
	l := checkedLauncher(t)
	r := testutil.Rand(t)
	for _, dt := range []dtype.DType{dtype.F32, dtype.F16} {
		for _, size := range [][3]int{{20, 2, 250}, {20, 2, 252}, {700, 35, 1}, {300, 2, 7}} {
			x, g := drawn(r, dt, size[:]...), drawn(r, dt, size[:]...)
			wide := ir.Wide(dt)
			w, b := drawn(r, wide, size[1]), drawn(r, wide, size[1])
			eps := ir.Scalars(1e-3)
			y := same(t, l, ir.BatchNorm, eps, x, w, b)
			same(t, l, ir.BatchNormEval, eps, x, y[1], y[2], w, b)
			same(t, l, ir.BatchNormGrad, eps, g, x, y[1], y[2], w)
			same(t, l, ir.BatchNormGrad, eps, g, x, y[1], y[2], w, y[0])
		}
	}
}
