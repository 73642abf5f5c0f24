package kernels

import "math"

// AdamRates are the scalars of an update by [Adam].
type AdamRates struct {
	Scale   float32 // of the gradient
	Coupled float32 // weight decay that is added to the gradient
	Rest1   float32 // 1-β1
	Beta2   float32
	Rest2   float32 // 1-β2
	Eps     float32
	Root    float32 // 1/√(1-β2ᵗ)
	Step    float32 // rate/(1-β1ᵗ)
	Keep    float32 // 1 - rate·decay
}

// Adam updates weights p and the moments m and v by the gradient g, all of one length, in PyTorch's order of operations:
//
//	d = g·Scale + Coupled·p
//	m = m + Rest1·(d-m)
//	v = v·Beta2 + (Rest2·d)·d
//	p = p·Keep - (Step·m)/(√v·Root + Eps)
func Adam(p, g, m, v []float32, c *AdamRates) {
	g, m, v = g[:len(p)], m[:len(p)], v[:len(p)]
	if assembly() {
		adamAssembly(p, g, m, v, c)
		return
	}
	for i, w := range p {
		d := g[i]*c.Scale + c.Coupled*w
		m[i] += c.Rest1 * (d - m[i])
		v[i] = v[i]*c.Beta2 + c.Rest2*d*d
		p[i] = w*c.Keep - c.Step*m[i]/(float32(math.Sqrt(float64(v[i])))*c.Root+c.Eps)
	}
}

// SGD updates weights p by the gradient g, of one length: p = p - rate·(g·scale + decay·p).
func SGD(p, g []float32, scale, decay, rate float32) {
	g = g[:len(p)]
	if assembly() {
		sgdAssembly(p, g, scale, decay, rate)
		return
	}
	for i, v := range p {
		p[i] = v - float32(rate*(float32(g[i]*scale)+float32(decay*v)))
	}
}

// SGDRates are the scalars of an update by [SGDMomentum].
type SGDRates struct {
	Scale, Decay, Rate, Momentum float32
	Nesterov                     bool // go ahead by the momentum once more
}

// SGDMomentum updates weights p and the momentum m by the gradient g, all of one length:
//
//	d = g·Scale + Decay·p
//	m = Momentum·m + d
//	p = p - Rate·m, or with Nesterov p - Rate·(d + Momentum·m)
func SGDMomentum(p, g, m []float32, c *SGDRates) {
	g, m = g[:len(p)], m[:len(p)]
	if assembly() {
		sgdMomentumAssembly(p, g, m, c)
		return
	}
	for i, v := range p {
		d := float32(g[i]*c.Scale) + float32(c.Decay*v)
		m[i] = float32(c.Momentum*m[i]) + d
		step := m[i]
		if c.Nesterov {
			step = d + float32(c.Momentum*step)
		}
		p[i] = v - float32(c.Rate*step)
	}
}
