package cpu

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// refCrossEntropy is PyTorch's definition on log-probabilities; x has rows of c.
func refCrossEntropy(x, labels []float64, c int, smoothing, ignored float64) (loss, stats []float64) {
	logp := refLogSoftmax(x, c)
	for i := range labels {
		stats = append(stats, slices.Max(x[i*c:(i+1)*c]))
	}
	for i, l := range labels {
		stats = append(stats, x[i*c]-logp[i*c]-stats[i])
		if l == ignored {
			loss = append(loss, 0)
			continue
		}
		mean := 0.
		for _, v := range logp[i*c : (i+1)*c] {
			mean -= v / float64(c)
		}
		loss = append(loss, -(1-smoothing)*logp[i*c+int(l)]+smoothing*mean)
	}
	return loss, stats
}

func TestCrossEntropy(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range floatTypes {
		for _, s := range [][2]int{{1, 1}, {0, 5}, {9, 10}, {31, 17}, {5, 1031}} {
			for _, p := range []ir.Params{ir.Scalars(0, -100), ir.Scalars(0.1, 0), ir.Scalars(0.3, -1)} {
				n, c := s[0], s[1]
				smoothing, ignored := math.Float64frombits(p.Value[0]), math.Float64frombits(p.Value[1])
				x, labels := normals(t, r, 3, ir.Dense(dt, n, c)), whole(t, r, c, ir.Dense(dtype.I64, n))
				if n > 2 && ignored < 0 {
					labels.v[1] = ignored
				}
				loss, stats := refCrossEntropy(x.v, labels.v, c, smoothing, ignored)
				got := evaluate(t, ir.CrossEntropy, ir.Attr{}, p, x, labels)
				name := fmt.Sprint(s, smoothing, ignored)
				near(t, name, got[0], loss, 2e-6, 10, 0)
				near(t, name+" statistics", got[1], stats, 2e-6, 10, 0)
				if len(x.v) > 600 {
					continue
				}
				g := normals(t, r, 1, got[0].t)
				dx := slope(func(x []float64) []float64 {
					loss, _ := refCrossEntropy(x, labels.v, c, smoothing, ignored)
					return loss
				}, x.v, g.v)
				near(t, name+" grad", evaluate(t, ir.CrossEntropyGrad, ir.Attr{}, p, x, labels, got[1], g)[0], dx, 3e-4, 1, 0.51)
			}
		}
	}
}

// A logit of -∞ of another class leaves the loss finite unless smoothing asks for its logarithm.
func TestCrossEntropySpecial(t *testing.T) {
	x := value{ir.Dense(dtype.F32, 1, 2), []float64{0, math.Inf(-1)}}
	y := value{ir.Dense(dtype.I64, 1), []float64{0}}
	near(t, "plain", evaluate(t, ir.CrossEntropy, ir.Attr{}, ir.Scalars(0, -100), x, y)[0], []float64{0}, 0, 0, 0)
	near(t, "smoothed", evaluate(t, ir.CrossEntropy, ir.Attr{}, ir.Scalars(0.1, -100), x, y)[0], []float64{math.Inf(1)}, 0, 0, 0)
}

func TestCrossEntropyRefuses(t *testing.T) {
	x, y := ir.Dense(dtype.F32, 3, 4), ir.Dense(dtype.I64, 3)
	n, two := ir.Dense(dtype.F32, 3), ir.Dense(dtype.F32, 2, 3)
	for _, bad := range []float64{4, -1, math.MaxInt64} {
		_, err := launch(t, ir.New(ir.CrossEntropy, ir.Attr{}, x, y), ir.Scalars(0, -100), make([]float64, 12), []float64{-100, bad, bad})
		want := fmt.Sprintf("label %d in row 1 is out of range: there are 4 classes", int64(min(bad, math.MaxInt64-512)))
		if bad > 4 {
			want = "label 9223372036854775807 in row 1 is out of range: there are 4 classes"
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("label %v: %v", bad, err)
		}
		_, err = launch(t, ir.New(ir.CrossEntropyGrad, ir.Attr{}, x, y, two, n), ir.Scalars(0, -100), make([]float64, 12), []float64{-100, bad, bad}, make([]float64, 6), make([]float64, 3))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("gradient with label %v: %v", bad, err)
		}
	}
}

func BenchmarkCrossEntropy(b *testing.B) {
	x, y, n := ir.Dense(dtype.F32, 2048, 65), ir.Dense(dtype.I64, 2048), ir.Dense(dtype.F32, 2048)
	stats := ir.Dense(dtype.F32, 2, 2048)
	p := ir.Scalars(0, -100)
	b.Run("loss", func(b *testing.B) { rate(b, "GB/s", 4*x.Size(), ir.CrossEntropy, ir.Attr{}, p, x, y) })
	b.Run("dx", func(b *testing.B) { rate(b, "GB/s", 8*x.Size(), ir.CrossEntropyGrad, ir.Attr{}, p, x, y, stats, n) })
}
