package ref

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	set(softmax, ir.Softmax)
	set(logSoftmax, ir.LogSoftmax)
	set(softmaxGrad, ir.SoftmaxGrad)
	set(logSoftmaxGrad, ir.LogSoftmaxGrad)
	set(crossEntropy, ir.CrossEntropy)
	set(crossEntropyGrad, ir.CrossEntropyGrad)
}

// logSumExp is m + log of the sum of exp(x-m), m the largest: -Inf for nothing and for -Inf throughout.
func logSumExp(x []float64) float64 {
	m, sum := shifted(x)
	if math.IsInf(m, -1) {
		return m
	}
	return m + math.Log(sum)
}

// shifted returns the largest element m and the sum of exp(x-m).
func shifted(x []float64) (m, sum float64) {
	m = math.Inf(-1)
	for _, v := range x {
		m = max(m, v)
	}
	var t total
	for _, v := range x {
		t.add(math.Exp(v - m))
	}
	return m, t.value()
}

// byRow applies f to corresponding rows of the operands and the result.
func (c *call) byRow(f func(y, a, b []float64)) ([]Array, error) {
	m, n := rows(&c.in[0])
	y := make([]float64, m*n)
	last := c.in[len(c.in)-1].Data
	for i := range m {
		lo, hi := i*n, (i+1)*n
		f(y[lo:hi], c.in[0].Data[lo:hi], last[lo:hi])
	}
	return c.one(y)
}

// softmax of -Inf throughout is NaN.
func softmax(c *call) ([]Array, error) {
	return c.byRow(func(y, x, _ []float64) {
		m, sum := shifted(x)
		for i, v := range x {
			y[i] = math.Exp(v-m) / sum
		}
	})
}

func logSoftmax(c *call) ([]Array, error) {
	return c.byRow(func(y, x, _ []float64) {
		m, sum := shifted(x)
		for i, v := range x {
			y[i] = v - m - math.Log(sum)
		}
	})
}

func softmaxGrad(c *call) ([]Array, error) {
	return c.byRow(func(dx, y, g []float64) {
		var along float64
		for i := range y {
			along += y[i] * g[i]
		}
		for i := range y {
			dx[i] = y[i] * (g[i] - along)
		}
	})
}

func logSoftmaxGrad(c *call) ([]Array, error) {
	return c.byRow(func(dx, y, g []float64) {
		var sum float64
		for _, v := range g {
			sum += v
		}
		for i := range y {
			dx[i] = g[i] - math.Exp(y[i])*sum
		}
	})
}

// label is the class of row i, or ignored.
func (c *call) label(i int) (class int, ignored bool, err error) {
	v, n := c.in[1].int(i), c.in[0].dim(1)
	if float64(v) == c.scalar(1) {
		return 0, true, nil
	}
	if v < 0 || v >= int64(n) {
		return 0, false, c.outside(v, n)
	}
	return int(v), false, nil
}

func crossEntropy(c *call) ([]Array, error) {
	smoothing := c.scalar(0)
	m, n := rows(&c.in[0])
	loss, stats, count := make([]float64, m), make([]float64, 2*m), 0.
	for i := range m {
		x := c.in[0].Data[i*n : (i+1)*n]
		most, sum := shifted(x)
		whole := math.Log(sum)
		stats[i], stats[m+i] = most, whole
		class, ignored, err := c.label(i)
		if err != nil {
			return nil, err
		}
		if ignored {
			continue
		}
		count++
		loss[i] = whole - (1-smoothing)*(x[class]-most)
		if smoothing != 0 {
			for _, v := range x {
				loss[i] -= smoothing / float64(n) * (v - most)
			}
		}
	}
	if c.op.Attr.Flag&ir.Mean == 0 {
		return c.results(loss, stats)
	}
	var t total
	for _, l := range loss {
		t.add(l)
	}
	return c.results([]float64{t.value() / count}, stats, []float64{count})
}

func crossEntropyGrad(c *call) ([]Array, error) {
	smoothing := c.scalar(0)
	m, n := rows(&c.in[0])
	dx := make([]float64, m*n)
	for i := range m {
		class, ignored, err := c.label(i)
		if err != nil {
			return nil, err
		}
		for j := 0; j < n && !ignored; j++ {
			target := smoothing / float64(n)
			if j == class {
				target += 1 - smoothing
			}
			stats := c.in[2].Data
			dx[i*n+j] = (math.Exp(c.in[0].Data[i*n+j]-stats[i]-stats[m+i]) - target) * c.rowGrad(i)
		}
	}
	return c.one(dx)
}

// rowGrad is the gradient of row i's loss.
func (c *call) rowGrad(i int) float64 {
	if c.op.Attr.Flag&ir.Mean != 0 {
		return c.in[3].Data[0] / c.in[4].Data[0]
	}
	return c.in[3].Data[i]
}
