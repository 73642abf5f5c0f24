package nn

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/tensor"
)

// initialisers are those of torch.nn.init.
var initialisers = map[string]func(p *tensor.Tensor, a attrs){
	"uniform":         func(p *tensor.Tensor, a attrs) { InitUniform(p, a.number("a", 0), a.number("b", 0)) },
	"normal":          func(p *tensor.Tensor, a attrs) { InitNormal(p, a.number("mean", 0), a.number("std", 0)) },
	"constant":        func(p *tensor.Tensor, a attrs) { InitConstant(p, a.number("val", 0)) },
	"xavier_uniform":  func(p *tensor.Tensor, a attrs) { InitXavierUniform(p, a.number("gain", 0)) },
	"xavier_normal":   func(p *tensor.Tensor, a attrs) { InitXavierNormal(p, a.number("gain", 0)) },
	"kaiming_uniform": func(p *tensor.Tensor, a attrs) { InitKaimingUniform(p, a.kaiming()) },
	"kaiming_normal":  func(p *tensor.Tensor, a attrs) { InitKaimingNormal(p, a.kaiming()) },
	"orthogonal":      func(p *tensor.Tensor, a attrs) { InitOrthogonal(p, a.number("gain", 0)) },
	"eye":             func(p *tensor.Tensor, _ attrs) { InitEye(p) },
	"dirac":           func(p *tensor.Tensor, a attrs) { InitDirac(p, a.int("groups", 0)) },
	"sparse":          func(p *tensor.Tensor, a attrs) { InitSparse(p, a.number("sparsity", 0), a.number("std", 0)) },
	"trunc_normal": func(p *tensor.Tensor, a attrs) {
		InitTruncNormal(p, a.number("mean", 0), a.number("std", 0), a.number("a", 0), a.number("b", 0))
	},
}

func (a attrs) kaiming() Kaiming {
	return Kaiming{Activation: a.text("nonlinearity"), Slope: a.number("a", 0), FanOut: a.text("mode") == "fan_out"}
}

// initRow is what PyTorch's initialiser fills a tensor with.
type initRow struct {
	Init         string
	Attrs        attrs
	Shape        []int
	Distribution string
	A, B         float64 // bounds, or mean and deviation; of orthogonal rows their length, squared
	Zeros        int     // of each column
	Values       []float64
}

func initRows(t *testing.T) []initRow {
	var file struct{ Rows []initRow }
	golden.JSON(t, "testdata/initialisers.json", &file)
	return file.Rows
}

// TestInitialisersAsPyTorch: each fills a tensor with the values of PyTorch's, or with what has their bounds and moments.
func TestInitialisersAsPyTorch(t *testing.T) {
	env := freshEnv(t)
	for _, r := range initRows(t) {
		p, sample := NewParam(env.Zeros(r.Shape...)), []float64{}
		for len(sample) == 0 || len(sample) < 3000 && r.Distribution != "values" && r.Distribution != "orthogonal" {
			initialisers[r.Init](p, r.Attrs)
			if r.Distribution == "sparse" {
				sample = append(sample, r.filled(t, p)...)
				if r.Zeros == r.Shape[0] {
					break
				}
			} else if sample = append(sample, p.Floats()...); p.Size() == 0 {
				break
			}
		}
		if why := r.differs(sample); why != "" {
			t.Errorf("%s %v of %v: %s", r.Init, r.Attrs, r.Shape, why)
		}
	}
}

// filled are the elements of a matrix that are not 0, of which PyTorch leaves so many in each column.
func (r *initRow) filled(t *testing.T, p *tensor.Tensor) (v []float64) {
	for c := range p.Dim(1) {
		zeros := 0
		for _, x := range p.Select(1, c).Floats() {
			if x == 0 {
				zeros++
			} else {
				v = append(v, x)
			}
		}
		if zeros != r.Zeros {
			t.Errorf("sparse %v of %v: %d zeros in a column, PyTorch %d", r.Attrs, r.Shape, zeros, r.Zeros)
		}
	}
	return v
}

// differs says how a sample is none of a row's distribution.
func (r *initRow) differs(sample []float64) string {
	mean, std, lo, hi := r.A, r.B, math.Inf(-1), math.Inf(1)
	switch r.Distribution {
	case "values":
		if !slices.Equal(sample, r.Values) {
			return fmt.Sprintf("%v, PyTorch %v", sample, r.Values)
		}
		return ""
	case "orthogonal":
		return r.skew(sample)
	case "uniform":
		mean, std, lo, hi = (r.A+r.B)/2, (r.B-r.A)/math.Sqrt(12), r.A, r.B
	case "truncated":
		lo, hi = r.Attrs.number("a", 0), r.Attrs.number("b", 0)
	}
	if len(sample) == 0 {
		return ""
	}
	m, s, _ := moments(sample)
	slack := 6*std/math.Sqrt(float64(len(sample))) + 1e-3*std
	if math.Abs(m-mean) > slack || math.Abs(s-std) > slack {
		return fmt.Sprintf("mean %v and deviation %v, PyTorch %v and %v", m, s, mean, std)
	}
	if least, most := slices.Min(sample), slices.Max(sample); least < lo-1e-6 || most > hi+1e-6 {
		return fmt.Sprintf("from %v to %v, PyTorch from %v to %v", least, most, lo, hi)
	}
	return ""
}

// skew says how the rows of a matrix, or its columns if they are fewer, are not orthogonal of the row's length.
func (r *initRow) skew(v []float64) string {
	rows, cols := r.Shape[0], len(v)/r.Shape[0]
	at := func(i, k int) float64 { return v[i*cols+k] }
	if n, width := rows, cols; rows > cols {
		at = func(i, k int) float64 { return v[k*width+i] }
		rows, cols = width, n
	}
	for i := range rows {
		for j := range i + 1 {
			dot, want := 0.0, 0.0
			for k := range cols {
				dot += at(i, k) * at(j, k)
			}
			if i == j {
				want = r.A
			}
			if math.Abs(dot-want) > 1e-5 {
				return fmt.Sprintf("rows %d and %d have a product of %v, PyTorch %v", i, j, dot, want)
			}
		}
	}
	return ""
}

// TestEveryInitialiserIsCompared: each that the package exports is one of PyTorch's rows, of five shapes at least.
func TestEveryInitialiserIsCompared(t *testing.T) {
	shapes, files := map[string]map[string]bool{}, testutil.Source(t, ".", true)
	for _, r := range initRows(t) {
		for _, f := range files {
			for _, row := range testutil.Rows(f)[r.Init] {
				names := map[string]bool{}
				testutil.Names(row, nil, names)
				for name := range names {
					if shapes[name] == nil {
						shapes[name] = map[string]bool{}
					}
					shapes[name][fmt.Sprint(r.Shape)] = true
				}
			}
		}
	}
	_, all := exported(t)
	if len(all) < 10 {
		t.Fatalf("%d initialisers", len(all))
	}
	for _, name := range all {
		if n := len(shapes[name]); n < 5 {
			t.Errorf("%s is compared with PyTorch on %d shapes, of 5 at least: add it to init_reference.py and run it", name, n)
		}
	}
}
