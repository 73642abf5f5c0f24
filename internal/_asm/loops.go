package main

import "fmt"

// vectors writes the loops over float32 that elementwise operations, rows and updates are made of.
func vectors(f *file) {
	for _, s := range []isa{avx512, avx2} {
		for _, m := range mappings {
			f.vectorLoop(s, m.loop())
		}
		for _, l := range rowLoops {
			f.vectorLoop(s, l)
		}
	}
	f.writeConstants()
}

// mapping is an elementwise function of one or two operands and two numbers.
type mapping struct {
	name   string
	value  string // of an element, as its comment says
	inputs int
	params []string
	unroll int
	body   func(b *block)
}

func (m mapping) loop() vectorLoop {
	return vectorLoop{
		name:     m.name,
		doc:      fmt.Sprintf("is\n\n\tfor i := range n {\n\t\tdst[i] = %s\n\t}", m.value),
		pointers: []string{"dst", "x", "y"}[:1+m.inputs],
		scalars:  m.params,
		unroll:   m.unroll,
		mapping:  true,
		body:     m.body,
	}
}

// one and two make bodies of a function of operands.
func one(f func(b *block, x value) value) func(b *block) {
	return func(b *block) { b.store("dst", f(b, b.load("x"))) }
}

func two(f func(b *block, x, y value) value) func(b *block) {
	return func(b *block) { b.store("dst", f(b, b.load("x"), b.load("y"))) }
}

var mappings = []mapping{
	{"exp", "exp(x[i])", 1, nil, 1, one((*block).exp)},
	{"expm1", "expm1(x[i])", 1, nil, 1, expm1Body},
	{"log", "log(x[i])", 1, nil, 1, logBody},
	{"log1p", "log1p(x[i])", 1, nil, 1, log1pBody},
	{"tanh", "tanh(x[i])", 1, nil, 1, one((*block).tanh)},
	{"sigmoid", "1 / (1 + exp(-x[i]))", 1, nil, 1, one((*block).sigmoid)},
	{"erf", "erf(x[i])", 1, nil, 1, one((*block).erf)},
	{"gelu", "x[i] * Φ(x[i])", 1, nil, 1, geluBody},
	{"geluTanh", "x[i] * sigmoid(2*√(2/π) * (x[i] + 0.044715*x[i]³))", 1, nil, 1, geluTanhBody},
	{"silu", "x[i] * sigmoid(x[i])", 1, nil, 1, one((*block).silu)},
	{"geluGrad", "y[i] * (Φ(x[i]) + x[i]*φ(x[i]))", 2, nil, 1, geluGradBody},
	{"geluTanhGrad", "y[i] * geluTanh'(x[i])", 2, nil, 1, geluTanhGradBody},
	{"siluGrad", "y[i] * silu'(x[i])", 2, nil, 1, siluGradBody},
	{"sqrt", "√x[i]", 1, nil, 1, one(func(b *block, x value) value { return b.unary("VSQRTPS", x) })},
	{"rsqrt", "1 / √x[i]", 1, nil, 1, one(func(b *block, x value) value {
		return b.div(b.held(b.constant(1)), b.unary("VSQRTPS", x))
	})},
	{"relu", "0 where x[i] < 0, else x[i]", 1, nil, 4, one(func(b *block, x value) value { return b.max(b.held(b.constant(0)), x) })},
	{"reluGrad", "0 where x[i] <= 0, else y[i]", 2, nil, 2, two(func(b *block, x, y value) value {
		return b.choose(atMost, x, b.constant(0), b.constant(0), y)
	})},
	{"add", "x[i] + y[i]", 2, nil, 4, two((*block).add)},
	{"sub", "x[i] - y[i]", 2, nil, 4, two((*block).sub)},
	{"mul", "x[i] * y[i]", 2, nil, 4, two((*block).mul)},
	{"div", "x[i] / y[i]", 2, nil, 1, two((*block).div)},
	{"affine", "p*x[i] + q, rounded twice", 1, []string{"p", "q"}, 4, one(func(b *block, x value) value {
		return b.add(b.mul(x, b.scalar("p")), b.scalar("q"))
	})},
	{"axpy", "x[i] + p*y[i], rounded twice", 2, []string{"p"}, 4, two(func(b *block, x, y value) value {
		return b.add(x, b.mul(y, b.scalar("p")))
	})},
	{"lerp", "x[i] + p*(y[i]-x[i]), rounded each time", 2, []string{"p"}, 2, two(func(b *block, x, y value) value {
		return b.add(x, b.mul(b.sub(y, x), b.scalar("p")))
	})},
	{"clamp", "x[i], but at least p and at most q", 1, []string{"p", "q"}, 2, one(func(b *block, x value) value {
		return b.min(b.scalar("q"), b.max(b.scalar("p"), x)) // NaN stays
	})},
	{"maximum", "max(x[i], y[i])", 2, nil, 2, two(func(b *block, x, y value) value {
		return b.extreme(x, y, b.max(x, y), b.and(x, y))
	})},
	{"minimum", "min(x[i], y[i])", 2, nil, 2, two(func(b *block, x, y value) value {
		return b.extreme(x, y, b.min(x, y), b.or(x, y))
	})},
	{"drop", "0 where y[i] < p, else x[i] * q", 2, []string{"p", "q"}, 2, two(func(b *block, x, y value) value {
		return b.choose(less, y, b.scalar("p"), b.constant(0), b.mul(x, b.scalar("q")))
	})},
	{"tanhSum", "tanh(x[i] + y[i])", 2, nil, 1, two(func(b *block, x, y value) value { return b.tanh(b.add(x, y)) })},
	{"sigmoidSum", "1 / (1 + exp(-x[i]-y[i]))", 2, nil, 1, two(func(b *block, x, y value) value { return b.sigmoid(b.add(x, y)) })},
	{"weigh", "x[i] * (y[i]-p)", 2, []string{"p"}, 2, two(func(b *block, x, y value) value {
		return b.mul(x, b.sub(y, b.scalar("p")))
	})},
}

// extreme is the larger or the smaller of two numbers, or one where both are zeros, and NaN where one of them is.
func (b *block) extreme(x, y, number, zero value) value {
	number = b.choose(equal, x, y, zero, number)
	return b.choose(unordered, x, y, b.add(x, y), number)
}

// doubles is how totals are formed: in float64.
var doubles = []total{{double: true}}

var rowLoops = []vectorLoop{
	{name: "sin", doc: "is\n\n\tfor i := range n {\n\t\tdst[i] = sin(x[i])\n\t}\n\nup to the vector that holds an |x[i]| of 2²⁰ or more. It returns how far it came.",
		pointers: []string{"dst", "x"}, partial: true, body: turnBody(0)},
	{name: "cos", doc: "is sin for the cosine.", pointers: []string{"dst", "x"}, partial: true, body: turnBody(1)},
	{name: "rowMax", doc: "returns the largest of n elements, -∞ of none. NaN may be passed over or returned.",
		pointers: []string{"x"}, unroll: 4, ahead: 4096, totals: []total{{lowest: true}}, body: func(b *block) { b.accumulateMax(0, b.load("x")) }},
	{name: "rowExtreme", doc: "returns the largest p·x[i], -∞ of none, and a sum that is NaN if an element is NaN or infinite, else 0.",
		pointers: []string{"x"}, scalars: []string{"p"}, unroll: 2, ahead: 4096, totals: []total{{lowest: true}, {}}, apart: true, body: func(b *block) {
			x := b.load("x")
			b.accumulateMax(0, b.mul(x, b.scalar("p")))
			b.accumulate(1, "VADDPS", b.mul(x, b.constant(0)))
		}},
	{name: "rowExp", doc: "stores exp(x[i]-shift) and returns the sum: of four vectors pair by pair in float32, and of these in float64.",
		pointers: []string{"dst", "x"}, scalars: []string{"shift"}, group: 4, totals: []total{{double: true}, {double: true}}, body: func(b *block) {
			b.addHalves(b.pairwise(func() value {
				y := b.exp(b.sub(b.load("x"), b.scalar("shift")))
				b.store("dst", y)
				return b.inUse(y)
			}))
		}},
	{name: "rowSum", doc: "returns Σ x[i], in float64.",
		pointers: []string{"x"}, unroll: 4, totals: doubles, body: func(b *block) { b.addWide(b.load("x")) }},
	{name: "rowTotal", doc: "returns Σ x[i]: of groups of eight vectors pair by pair in float32, and of these in float64.",
		pointers: []string{"x"}, group: 8, ahead: 4096, totals: []total{{double: true}, {double: true}}, body: func(b *block) {
			b.addHalves(b.pairwise(func() value { return b.load("x") }))
		}},
	{name: "rowSquares", doc: "returns Σ (x[i]-m)², in float64.",
		pointers: []string{"x"}, scalars: []string{"*m"}, unroll: 2, totals: doubles, body: func(b *block) {
			x := b.load("x")
			lo, hi := b.wide(x)
			for upper, v := range []value{lo, hi} {
				d := b.inUseDouble(b.binary("VSUBPD", v, b.scalar("m")), upper == 1)
				b.accumulateProduct(0, d, d)
			}
		}},
	{name: "rowMoments", doc: "returns Σ (x[i]-c) and Σ (x[i]-c)², in float64.",
		pointers: []string{"x"}, scalars: []string{"*c"}, unroll: 2, ahead: 4096, totals: []total{{double: true}, {double: true}}, apart: true, body: func(b *block) {
			lo, hi := b.wide(b.load("x"))
			for upper, v := range []value{lo, hi} {
				d := b.inUseDouble(b.binary("VSUBPD", v, b.scalar("c")), upper == 1)
				b.accumulate(0, "VADDPD", d)
				b.accumulateProduct(1, d, d)
			}
		}},
	{name: "rowDot", doc: "returns Σ x[i]·y[i], in float64.",
		pointers: []string{"x", "y"}, unroll: 2, totals: doubles, body: func(b *block) {
			lo, hi := b.wide(b.load("x"))
			lo2, hi2 := b.wide(b.load("y"))
			b.accumulateProduct(0, lo, lo2)
			b.accumulateProduct(0, hi, hi2)
		}},
	{name: "rowAffine", doc: "stores (x[i]-m)·s + b.",
		pointers: []string{"dst", "x"}, scalars: []string{"m", "s", "b"}, unroll: 4, body: func(b *block) {
			b.store("dst", b.fma(b.sub(b.load("x"), b.scalar("m")), b.scalar("s"), b.scalar("b")))
		}},
	{name: "rowNormalize", doc: "stores (x[i]-m)·s·w[i] + b[i].",
		pointers: []string{"dst", "x", "w", "b"}, scalars: []string{"m", "s"}, unroll: 2, body: func(b *block) {
			y := b.mul(b.sub(b.load("x"), b.scalar("m")), b.scalar("s"))
			b.store("dst", b.fma(y, b.load("w"), b.load("b")))
		}},
	{name: "rowMix", doc: "stores p·grad[i] - q·(x[i]-m) - r.",
		pointers: []string{"dst", "grad", "x"}, scalars: []string{"p", "q", "m", "r"}, unroll: 2, body: func(b *block) {
			d := b.sub(b.load("x"), b.scalar("m"))
			y := b.sub(b.mul(b.load("grad"), b.scalar("p")), b.scalar("r"))
			b.store("dst", b.fnma(d, b.scalar("q"), y))
		}},
	{name: "rowGather", doc: "adds grad[i] to db[i] and grad[i]·(x[i]-m)·s to dw[i].",
		pointers: []string{"*db", "*dw", "grad", "x"}, scalars: []string{"*m", "*s"}, body: gatherBody},
	{name: "sumRows", doc: "adds four rows, pair by pair in float32, to acc[i]:\n\n\tacc[i] += (a[i] + b[i]) + (c[i] + d[i])",
		pointers: []string{"*acc", "a", "b", "c", "d"}, body: func(b *block) {
			x := b.add(b.add(b.load("a"), b.load("b")), b.add(b.load("c"), b.load("d")))
			lo, hi := b.wide(x)
			b.storeDouble("acc", false, b.binary("VADDPD", lo, b.loadDouble("acc", false)))
			b.storeDouble("acc", true, b.binary("VADDPD", hi, b.loadDouble("acc", true)))
		}},
	{name: "sumEight", doc: "adds eight rows as sumRows adds four:\n\n\tacc[i] += ((row0[i] + row1[i]) + (row2[i] + row3[i])) + ((row4[i] + row5[i]) + (row6[i] + row7[i]))",
		pointers: []string{"*acc", "row0", "row1", "row2", "row3", "row4", "row5", "row6", "row7"}, body: func(b *block) {
			row := func(i int) value { return b.load(fmt.Sprint("row", i)) }
			x := b.add(b.add(row(0), row(1)), b.add(row(2), row(3)))
			y := b.add(b.add(row(4), row(5)), b.add(row(6), row(7)))
			lo, hi := b.wide(b.add(x, y))
			b.storeDouble("acc", false, b.binary("VADDPD", lo, b.loadDouble("acc", false)))
			b.storeDouble("acc", true, b.binary("VADDPD", hi, b.loadDouble("acc", true)))
		}},
	{name: "fromF16", doc: "widens whole vectors.", pointers: []string{"dst", "~x"}, whole: true, unroll: 2,
		body: func(b *block) { b.store("dst", b.loadNarrow("VCVTPH2PS", "x")) }},
	{name: "fromBF16", doc: "widens whole vectors.", pointers: []string{"dst", "~x"}, whole: true, unroll: 2,
		body: func(b *block) { b.store("dst", b.shift("VPSLLD", 16, b.loadNarrow("VPMOVZXWD", "x"))) }},
	{name: "toF16", doc: "rounds whole vectors.", pointers: []string{"~dst", "x"}, whole: true, unroll: 2,
		body: func(b *block) { b.storeF16("dst", b.load("x")) }},
	{name: "toBF16", doc: "rounds whole vectors.", pointers: []string{"~dst", "x"}, whole: true, unroll: 2,
		body: func(b *block) { b.storeLow("dst", b.toBF16(b.load("x"))) }},
	{name: "adam", doc: "updates n elements as Adam says.",
		pointers: []string{"p", "grad", "m", "v"}, scalars: []string{"scale", "coupled", "rest1", "beta2", "rest2", "eps", "root", "step", "keep"}, body: adamBody},
	{name: "sgd", doc: "updates n elements as SGD says.",
		pointers: []string{"p", "grad"}, scalars: []string{"scale", "decay", "rate"}, unroll: 2, body: func(b *block) {
			p := b.load("p")
			d := b.add(b.mul(b.load("grad"), b.scalar("scale")), b.mul(p, b.scalar("decay")))
			b.store("p", b.sub(p, b.mul(d, b.scalar("rate"))))
		}},
	{name: "sgdMomentum", doc: "updates n elements as SGDMomentum says.",
		pointers: []string{"p", "grad", "m"}, scalars: []string{"scale", "decay", "rate", "momentum"}, body: func(b *block) { b.momentum(false) }},
	{name: "sgdNesterov", doc: "updates n elements as SGDMomentum says, ahead.",
		pointers: []string{"p", "grad", "m"}, scalars: []string{"scale", "decay", "rate", "momentum"}, body: func(b *block) { b.momentum(true) }},
	{name: "lstmCell", doc: "is what LSTMCell says.", pointers: []string{"h", "next", "yi", "yf", "yg", "yo", "cell"}, body: func(b *block) {
		next := b.mul(b.load("yf"), b.load("cell"))
		next = b.add(next, b.mul(b.load("yi"), b.load("yg")))
		b.store("next", next)
		b.store("h", b.mul(b.tanh(next), b.load("yo")))
	}},
	{name: "lstmGradCell", doc: "is the gradient of the cell behind a step, and of the gate o.",
		pointers: []string{"d", "da", "dh", "dnext", "yo", "next"}, body: func(b *block) {
			dh, o, t := b.load("dh"), b.load("yo"), b.tanh(b.load("next"))
			b.store("d", b.add(b.bend(b.mul(dh, o), t), b.load("dnext")))
			b.store("da", b.slope(b.mul(dh, t), o))
		}},
	{name: "lstmGradGates", doc: "is the gradient of the gates i, f and g from that of the cell behind the step, d, in whose place is that of the cell before.",
		pointers: []string{"di", "df", "dg", "d", "yi", "yf", "yg", "cell"}, body: func(b *block) {
			d, i, f, g := b.load("d"), b.load("yi"), b.load("yf"), b.load("yg")
			b.store("di", b.slope(b.mul(d, g), i))
			b.store("df", b.slope(b.mul(d, b.load("cell")), f))
			b.store("dg", b.bend(b.mul(d, i), g))
			b.store("d", b.mul(d, f))
		}},
}

// slope is v·y·(1-y), the gradient of a sigmoid with the result y, and bend v·(1-y²), that of a tanh.
func (b *block) slope(v, y value) value {
	v = b.mul(v, y)
	return b.sub(v, b.mul(v, y))
}

func (b *block) bend(v, y value) value { return b.sub(v, b.mul(b.mul(y, y), v)) }

// addHalves adds the lower half of x to one total of float64, and the upper half to another.
func (b *block) addHalves(x value) {
	lo, hi := b.wide(x)
	b.accumulate(0, "VADDPD", lo)
	b.accumulate(1, "VADDPD", hi)
}

// addWide adds x to a total of float64.
func (b *block) addWide(x value) {
	lo, hi := b.wide(x)
	b.accumulate(0, "VADDPD", lo)
	b.accumulate(0, "VADDPD", hi)
}

func gatherBody(b *block) {
	g, gUpper := b.wide(b.load("grad"))
	x, xUpper := b.wide(b.load("x"))
	for i, v := range [][2]value{{g, x}, {gUpper, xUpper}} {
		upper := i == 1
		b.storeDouble("db", upper, b.binary("VADDPD", v[0], b.loadDouble("db", upper)))
		d := b.commuting("VMULPD", b.binary("VSUBPD", v[1], b.scalar("m")), b.scalar("s"))
		b.storeDouble("dw", upper, b.fmaD(d, v[0], b.loadDouble("dw", upper)))
	}
}

func (b *block) momentum(ahead bool) {
	p := b.load("p")
	d := b.add(b.mul(b.load("grad"), b.scalar("scale")), b.mul(p, b.scalar("decay")))
	m := b.add(b.mul(b.load("m"), b.scalar("momentum")), d)
	b.store("m", m)
	if ahead {
		m = b.add(d, b.mul(m, b.scalar("momentum")))
	}
	b.store("p", b.sub(p, b.mul(m, b.scalar("rate"))))
}

func adamBody(b *block) {
	p, m, v := b.load("p"), b.load("m"), b.load("v")
	d := b.add(b.mul(b.load("grad"), b.scalar("scale")), b.mul(p, b.scalar("coupled")))
	m = b.add(m, b.mul(b.sub(d, m), b.scalar("rest1")))
	b.store("m", m)
	v = b.add(b.mul(v, b.scalar("beta2")), b.mul(b.mul(d, b.scalar("rest2")), d))
	b.store("v", v)
	under := b.add(b.mul(b.unary("VSQRTPS", v), b.scalar("root")), b.scalar("eps"))
	b.store("p", b.sub(b.mul(p, b.scalar("keep")), b.div(b.mul(m, b.scalar("step")), under)))
}
