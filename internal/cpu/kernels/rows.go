package kernels

import "math"

// Loops over one row of float32 that softmax, losses, normalization and updates spend their time in. Sums are formed in
// float64. The loops in Go have four chains, so that additions overlap; assembly takes the whole vectors of a row.

// RowMax returns the largest element of x, -∞ if there is none. A NaN may be passed over or returned.
func RowMax(x []float32) float32 {
	m := float32(math.Inf(-1))
	if n := vectorLength(x); n > 0 {
		m = rowMaxAssembly(x[:n])
		x = x[n:]
	}
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

// RowExp stores exp(x-shift) in dst, which may be x, and returns the sum of what it stored. Errors are below 2 ulp.
func RowExp(dst, x []float32, shift float32) (sum float64) {
	n := vectorLength(x)
	if n > 0 {
		sum = rowExpAssembly(dst[:n], x[:n], shift)
	}
	dst, x = dst[n:len(x)], x[n:]
	for i, v := range x {
		dst[i] = v - shift
	}
	Exp(dst, dst)
	for _, v := range dst {
		sum += float64(v)
	}
	return sum
}

// RowSquares returns the sum of the squared distances of x from m.
func RowSquares(x []float32, m float64) (sum float64) {
	n := vectorLength(x)
	if n > 0 {
		sum = rowSquaresAssembly(x[:n], m)
	}
	var b, c, d float64
	for x = x[n:]; len(x) >= 4; x = x[4:] {
		p, q, r, s := float64(x[0])-m, float64(x[1])-m, float64(x[2])-m, float64(x[3])-m
		sum += p * p
		b += q * q
		c += r * r
		d += s * s
	}
	for _, v := range x {
		p := float64(v) - m
		b += p * p
	}
	return (sum + b) + (c + d)
}

// RowDot returns the sum of the products of x and y, which has as many elements.
func RowDot(x, y []float32) (sum float64) {
	n := vectorLength(x)
	if n > 0 {
		sum = rowDotAssembly(x[:n], y[:n])
	}
	var b, c, d float64
	for x, y = x[n:], y[n:]; len(x) >= 4 && len(y) >= 4; x, y = x[4:], y[4:] {
		sum += float64(x[0]) * float64(y[0])
		b += float64(x[1]) * float64(y[1])
		c += float64(x[2]) * float64(y[2])
		d += float64(x[3]) * float64(y[3])
	}
	for i, v := range x {
		b += float64(v) * float64(y[i])
	}
	return (sum + b) + (c + d)
}

// RowSum returns the sum of x.
func RowSum(x []float32) (sum float64) {
	n := vectorLength(x)
	if n > 0 {
		sum = rowSumAssembly(x[:n])
	}
	var b, c, d float64
	for x = x[n:]; len(x) >= 4; x = x[4:] {
		sum += float64(x[0])
		b += float64(x[1])
		c += float64(x[2])
		d += float64(x[3])
	}
	for _, v := range x {
		b += float64(v)
	}
	return (sum + b) + (c + d)
}

// RowWeigh stores y·(g-s) in dst, which may be y or g. All have the length of y.
func RowWeigh(dst, y, g []float32, s float32) {
	n := vectorLength(y)
	if n > 0 {
		rowWeighAssembly(dst[:n], y[:n], g[:n], s)
	}
	dst, g = dst[n:], g[n:]
	for i, v := range y[n:] {
		dst[i] = v * (g[i] - s)
	}
}

// RowAffine stores (x-m)·s + b in dst, which may be x.
func RowAffine(dst, x []float32, m, s, b float32) {
	n := vectorLength(x)
	if n > 0 {
		rowAffineAssembly(dst[:n], x[:n], m, s, b)
	}
	dst = dst[n:]
	for i, v := range x[n:] {
		dst[i] = (v-m)*s + b
	}
}

// RowNormalize stores (x-m)·s·w + b in dst, where w and b have the length of x.
func RowNormalize(dst, x, w, b []float32, m, s float32) {
	n := vectorLength(x)
	if n > 0 {
		rowNormalizeAssembly(dst[:n], x[:n], w[:n], b[:n], m, s)
	}
	dst, w, b = dst[n:], w[n:], b[n:]
	for i, v := range x[n:] {
		dst[i] = (v-m)*s*w[i] + b[i]
	}
}

// RowMix stores p·g - q·(x-m) - r in dst, which may be g. All have the length of x.
func RowMix(dst, g, x []float32, p, q, m, r float32) {
	n := vectorLength(x)
	if n > 0 {
		rowMixAssembly(dst[:n], g[:n], x[:n], p, q, m, r)
	}
	dst, g = dst[n:], g[n:]
	for i, v := range x[n:] {
		dst[i] = p*g[i] - q*(v-m) - r
	}
}

// RowGather adds g to db and g·(x-m)·s to dw. All have the length of x.
func RowGather(db, dw []float64, g, x []float32, m, s float64) {
	n := vectorLength(x)
	if n > 0 {
		rowGatherAssembly(db[:n], dw[:n], g[:n], x[:n], m, s)
	}
	db, dw, g = db[n:], dw[n:], g[n:]
	for i, v := range x[n:] {
		db[i] += float64(g[i])
		dw[i] += float64(g[i]) * ((float64(v) - m) * s)
	}
}

// AdamRates are the scalars of an update by [Adam].
type AdamRates struct {
	Scale   float32 // of the gradient
	Coupled float32 // weight decay that is added to the gradient
	Rest1   float32 // 1-β1
	Beta2   float32
	Rest2   float32 // 1-β2
	Eps     float32
	Root    float32 // √(1-β2ᵗ)
	Step    float32 // rate/(1-β1ᵗ)
	Keep    float32 // 1 - rate·decay
}

// Adam updates weights p and the moments m and v by the gradient g, all of one length, in PyTorch's order of operations:
//
//	d = g·Scale + Coupled·p
//	m = m + Rest1·(d-m)
//	v = v·Beta2 + (Rest2·d)·d
//	p = p·Keep - (Step·m)/(√v/Root + Eps)
func Adam(p, g, m, v []float32, c *AdamRates) {
	n := vectorLength(p)
	if n > 0 {
		rowAdamAssembly(p[:n], g[:n], m[:n], v[:n], c)
	}
	g, m, v = g[n:], m[n:], v[n:]
	for i, w := range p[n:] {
		d := g[i]*c.Scale + c.Coupled*w
		m[i] += c.Rest1 * (d - m[i])
		v[i] = v[i]*c.Beta2 + c.Rest2*d*d
		p[n+i] = w*c.Keep - c.Step*m[i]/(float32(math.Sqrt(float64(v[i])))/c.Root+c.Eps)
	}
}
