package ref

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	set(layerNorm, ir.LayerNorm)
	set(layerNormGrad, ir.LayerNormGrad)
	set(addNorm, ir.AddNorm)
	set(addNormGrad, ir.AddNormGrad)
	set(rmsNorm, ir.RMSNorm)
	set(rmsNormGrad, ir.RMSNormGrad)
	set(batchNorm, ir.BatchNorm)
	set(batchNormGrad, ir.BatchNormGrad)
	set(batchNormEval, ir.BatchNormEval)
}

// moments are the mean and the biased variance, in two passes.
func moments(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, variance
}

// vector is element j of optional operand i, or a default.
func (c *call) vector(i, j int, otherwise float64) float64 {
	if i < len(c.in) {
		return c.in[i].Data[j]
	}
	return otherwise
}

func layerNorm(c *call) ([]Array, error) {
	m, n := rows(&c.in[0])
	y, mean, rstd := make([]float64, m*n), make([]float64, m), make([]float64, m)
	for i := range m {
		x := c.in[0].Data[i*n : (i+1)*n]
		var variance float64
		mean[i], variance = moments(x)
		rstd[i] = 1 / math.Sqrt(variance+c.scalar(0))
		for j, v := range x {
			y[i*n+j] = (v-mean[i])*rstd[i]*c.vector(1, j, 1) + c.vector(2, j, 0)
		}
	}
	return c.results(y, mean, rstd)
}

func addNorm(c *call) ([]Array, error) {
	if len(c.in) == 3 {
		return layerNorm(c)
	}
	sum := make([]float64, len(c.in[0].Data))
	for i, v := range c.in[0].Data {
		sum[i] = v + c.in[3].Data[i]
	}
	norm := *c
	norm.in, norm.out = []Array{Floats(c.in[0].Type, sum...), c.in[1], c.in[2]}, c.out[:3]
	out, err := layerNorm(&norm)
	return append(out, Floats(c.out[3], sum...)), err
}

func addNormGrad(c *call) ([]Array, error) {
	norm := *c
	norm.in, norm.out = []Array{c.in[1], c.in[0], c.in[2], c.in[3], c.in[4]}, c.out[:3]
	out, err := layerNormGrad(&norm)
	if err != nil {
		return nil, err
	}
	for i := range out[0].Data {
		out[0].Data[i] += c.vector(5, i, 0)
	}
	if len(c.out) == 4 {
		out = append(out, Floats(c.out[3], out[0].Data...))
	}
	return out, nil
}

func rmsNorm(c *call) ([]Array, error) {
	m, n := rows(&c.in[0])
	y, rstd := make([]float64, m*n), make([]float64, m)
	for i := range m {
		x := c.in[0].Data[i*n : (i+1)*n]
		var square float64
		for _, v := range x {
			square += v * v / float64(n)
		}
		rstd[i] = 1 / math.Sqrt(square+c.scalar(0))
		for j, v := range x {
			y[i*n+j] = v * rstd[i] * c.vector(1, j, 1)
		}
	}
	return c.results(y, rstd)
}

// normGrad is the gradient of y = (x-mean)·rstd·w + b by rows, given standardised rows. centred is whether the mean was
// subtracted.
func (c *call) normGrad(standard []float64, rstd *Array, weight int, centred bool) (dx, dw, db []float64) {
	g := c.in[0].Data
	m, n := rows(&c.in[0])
	dx, dw, db = make([]float64, m*n), make([]float64, n), make([]float64, n)
	for i := range m {
		var a, b float64 // the means of g·w and g·w·y
		for j := range n {
			gw := g[i*n+j] * c.vector(weight, j, 1)
			if centred {
				a += gw / float64(n)
			}
			b += gw * standard[i*n+j] / float64(n)
			dw[j] += g[i*n+j] * standard[i*n+j]
			db[j] += g[i*n+j]
		}
		for j := range n {
			dx[i*n+j] = rstd.Data[i] * (g[i*n+j]*c.vector(weight, j, 1) - a - standard[i*n+j]*b)
		}
	}
	return dx, dw, db
}

func layerNormGrad(c *call) ([]Array, error) {
	_, n := rows(&c.in[0])
	y := make([]float64, len(c.in[1].Data))
	for i, x := range c.in[1].Data {
		y[i] = (x - c.in[2].Data[i/n]) * c.in[3].Data[i/n]
	}
	dx, dw, db := c.normGrad(y, &c.in[3], 4, true)
	return c.results(dx, dw, db)
}

func rmsNormGrad(c *call) ([]Array, error) {
	_, n := rows(&c.in[0])
	y := make([]float64, len(c.in[1].Data))
	for i, x := range c.in[1].Data {
		y[i] = x * c.in[2].Data[i/n]
	}
	dx, dw, _ := c.normGrad(y, &c.in[2], 3, false)
	return c.results(dx, dw)
}

// channel lists the places of channel k of x[n,c,s].
func channel(x *ir.Type, k int) (places []int) {
	for i := range x.Size() {
		if i/x.Dim(2)%x.Dim(1) == k {
			places = append(places, i)
		}
	}
	return places
}

func batchNorm(c *call) ([]Array, error) {
	x := &c.in[0]
	channels := x.dim(1)
	y, mean, variance := make([]float64, len(x.Data)), make([]float64, channels), make([]float64, channels)
	for k := range channels {
		list := channel(x.Type, k)
		var values []float64
		for _, i := range list {
			values = append(values, x.Data[i])
		}
		mean[k], variance[k] = moments(values)
		for _, i := range list {
			v := (x.Data[i]-mean[k])/math.Sqrt(variance[k]+c.scalar(0))*c.in[1].Data[k] + c.in[2].Data[k]
			y[i] = c.joined(v, 3, i)
		}
	}
	return c.results(y, mean, variance)
}

// joined adds element i of an optional operand and applies the activation.
func (c *call) joined(v float64, residual, i int) float64 {
	v += c.vector(residual, i, 0)
	if c.op.Attr.Act == ir.ActReLU {
		v = max(v, 0)
	}
	return v
}

// passed is the gradient behind relu's result, an optional operand: 0 where that is not above 0.
func (c *call) passed(g []float64, result int) []float64 {
	out := slices.Clone(g)
	for i := range out {
		if c.vector(result, i, 1) <= 0 {
			out[i] = 0
		}
	}
	return out
}

func batchNormGrad(c *call) ([]Array, error) {
	g, x, mean, variance, w := c.passed(c.in[0].Data, 5), c.in[1].Data, c.in[2].Data, c.in[3].Data, c.in[4].Data
	t := c.in[1].Type
	dx, dw, db := make([]float64, len(x)), make([]float64, t.Dim(1)), make([]float64, t.Dim(1))
	for k := range t.Dim(1) {
		list := channel(t, k)
		n, rstd := float64(len(list)), 1/math.Sqrt(variance[k]+c.scalar(0))
		for _, i := range list {
			dw[k] += g[i] * (x[i] - mean[k]) * rstd
			db[k] += g[i]
		}
		for _, i := range list {
			dx[i] = w[k] * rstd * (g[i] - db[k]/n - (x[i]-mean[k])*rstd*dw[k]/n)
		}
	}
	if c.op.Attr.Flag&ir.Residual != 0 {
		return c.results(dx, dw, db, g)
	}
	return c.results(dx, dw, db)
}

func batchNormEval(c *call) ([]Array, error) {
	x := &c.in[0]
	mean, variance, w, b := c.in[1].Data, c.in[2].Data, c.in[3].Data, c.in[4].Data
	y := make([]float64, len(x.Data))
	for i, v := range x.Data {
		k := i / x.dim(2) % x.dim(1)
		y[i] = c.joined((v-mean[k])/math.Sqrt(variance[k]+c.scalar(0))*w[k]+b[k], 5, i)
	}
	return c.one(y)
}
