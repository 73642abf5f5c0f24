package kernels

// LSTMGates makes the gates y = i, f, g, o of a step of an LSTM, one behind the other, from two sums of as many:
//
//	i, f, o = sigmoid(x+r);  g = tanh(x+r)
func LSTMGates(y, x, r []float32) {
	n := len(y) / 4
	sigmoidSum(y[:2*n], x, r)
	if g := y[2*n : 3*n]; !mapTanhSum.inAssembly(g, x[2*n:], r[2*n:], 0, 0) {
		Add(g, x[2*n:], r[2*n:])
		Tanh(g, g)
	}
	sigmoidSum(y[3*n:], x[3*n:], r[3*n:])
}

func sigmoidSum(dst, x, y []float32) {
	if !mapSigmoidSum.inAssembly(dst, x, y, 0, 0) {
		Add(dst, x, y)
		Sigmoid(dst, dst)
	}
}

// LSTMCell is the end of a step with the gates y of [LSTMGates] and the cell before it:
//
//	next = f·cell + i·g;  h = o·tanh(next)
func LSTMCell(h, next, y, cell []float32) {
	n := len(h)
	next, y, cell = next[:n], y[:4*n], cell[:n]
	if assembly() {
		lstmCellAssembly(h, next, y, cell)
		return
	}
	Mul(next, y[n:], cell)
	Mul(h, y, y[2*n:])
	Add(next, next, h)
	Tanh(h, next)
	Mul(h, h, y[3*n:])
}

// LSTMGrad goes back by a step with the gates y and the cells before and behind it: from the gradients dh of its state and
// dnext of its cell to those of the sums that the gates are of, da, and of the cell before, dc.
func LSTMGrad(da, dc, dh, dnext, y, cell, next []float32) {
	n := len(dc)
	da, dh, dnext, y, cell, next = da[:4*n], dh[:n], dnext[:n], y[:4*n], cell[:n], next[:n]
	if assembly() {
		lstmGradAssembly(da, dc, dh, dnext, y, cell, next)
		return
	}
	slope := func(v, y float32) float32 {
		v *= y
		return v - float32(v*y)
	}
	bend := func(v, y float32) float32 { return v - float32(float32(y*y)*v) }
	Tanh(dc, next)
	for j, t := range dc {
		i, f, g, o := y[j], y[n+j], y[2*n+j], y[3*n+j]
		d := bend(float32(dh[j]*o), t) + dnext[j]
		da[j], da[n+j] = slope(d*g, i), slope(d*cell[j], f)
		da[2*n+j], da[3*n+j] = bend(float32(d*i), g), slope(dh[j]*t, o)
		dc[j] = d * f
	}
}
