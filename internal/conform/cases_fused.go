package conform

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
)

func init() {
	offer(softmaxCases, ir.Softmax, ir.LogSoftmax)
	offer(softmaxGradCases, ir.SoftmaxGrad, ir.LogSoftmaxGrad)
	offer(crossEntropyCases, ir.CrossEntropy, ir.CrossEntropyGrad)
	offer(headCases, ir.LinearCrossEntropy, ir.LinearCrossEntropyGrad)
	offer(rowNormCases, ir.LayerNorm, ir.RMSNorm)
	offer(rowNormGradCases, ir.LayerNormGrad, ir.RMSNormGrad)
	offer(addNormCases, ir.AddNorm)
	offer(addNormGradCases, ir.AddNormGrad)
	offer(batchNormCases, ir.BatchNorm, ir.BatchNormGrad, ir.BatchNormEval)
	offer(attentionCases, ir.Attention, ir.AttentionGrad)
	offer(selfAttentionCases, ir.SelfAttention, ir.SelfAttentionGrad)
	offer(lstmCases, ir.LSTMStep, ir.LSTMStepGrad)
	offer(sumSquaresCases, ir.SumSquares)
	offer(gradNormCases, ir.GradNorm)
	offer(castAllCases, ir.CastAll)
	offer(trackMomentsCases, ir.TrackMoments)
	offer(lossScaleCases, ir.LossScale)
	offer(sgdCases, ir.SGD)
	offer(adamCases, ir.AdamW)
	offer(adam8bitCases, ir.Adam8bit)
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		if code.Row().Rule != nil {
			offer(ruleCases, code)
		}
	}
}

// rowSizes are shapes of ops over rows.
func (g *gen) rowSizes() [][]int {
	list := [][]int{{1, 1}, {0, 3}, {3, 5}, {2, 1, 7}, {17, 33}, {2, 1031}}
	if !g.short {
		list = append(list, []int{301, 131})
	}
	return list
}

func softmaxCases(g *gen) {
	for _, shape := range append(g.rowSizes(), []int{}, []int{7}, []int{3, 0}) {
		g.add("a shape", ir.Attr{}, ir.Params{}, g.of(spread, shape...))
	}
	inf, nan := math.Inf(-1), math.NaN()
	g.add("masked, large and NaN rows", ir.Attr{}, ir.Params{}, g.of(values([]float64{1, inf, 2, inf, inf, inf, nan, 1, 2, 1000, 1000, -1000}, 1), 4, 3))
}

// probabilities are rows that a softmax could give.
func probabilities(r *rand.Rand, t *ir.Type) ref.Array { return activated(ir.Softmax, r, t) }

func logProbabilities(r *rand.Rand, t *ir.Type) ref.Array { return activated(ir.LogSoftmax, r, t) }

func activated(code ir.Code, r *rand.Rand, t *ir.Type) ref.Array {
	op := ir.New(code, ir.Attr{}, t)
	out, err := ref.Eval(&op, nil, []ref.Array{normal(r, t)})
	if err != nil {
		panic("conform: " + err.Error())
	}
	return out[0]
}

func softmaxGradCases(g *gen) {
	f := fill(probabilities)
	if g.code == ir.LogSoftmaxGrad {
		f = logProbabilities
	}
	for _, shape := range append(g.rowSizes(), []int{7}, []int{3, 0}) {
		g.add("a shape", ir.Attr{}, ir.Params{}, g.of(f, shape...), g.of(normal, shape...))
	}
}

func crossEntropyCases(g *gen) {
	for _, s := range [][2]int{{1, 1}, {0, 3}, {3, 5}, {17, 33}, {5, 1031}, {131, 67}} {
		for _, p := range []ir.Params{ir.Scalars(0, -100), ir.Scalars(0.1, 0)} {
			g.entropy("a shape", p, s[0], g.of(spread, s[0], s[1]), between(0, s[1]))
		}
	}
	far := 1e6 // where f32 holds steps of 1/16
	if g.dt == dtype.F16 {
		far = 1e4
	}
	for _, p := range []ir.Params{ir.Scalars(0, -100), ir.Scalars(0.1, 2)} {
		g.entropy("logits far from 0", p, 7, g.of(around(far), 7, 33), between(0, 33))
	}
	g.entropy("large logits", ir.Scalars(0, -100), 3, g.of(values([]float64{1000, -1000, 0, 0, 0, 0, -1000, -1001, -999}, 1), 3, 3), between(0, 3))
	g.entropy("all ignored", ir.Scalars(0, -100), 3, g.of(spread, 3, 4), between(-100, -99))
	well := len(g.cases)
	g.entropy("a label too large", ir.Scalars(0, -100), 3, g.of(spread, 3, 4), values([]float64{1, 2, 4}, 1))
	g.entropy("a negative label", ir.Scalars(0.1, -100), 3, g.of(spread, 3, 4), values([]float64{1, -1, 0}, 1))
	for _, c := range g.cases[well:] {
		c.Fails = true
	}
}

// around are numbers about v, a few steps of the dtype apart.
func around(v float64) fill {
	return func(r *rand.Rand, t *ir.Type) ref.Array {
		step := v * t.DType.Epsilon()
		if t.DType == dtype.F64 {
			step = 1
		}
		x := make([]float64, t.Size())
		for i := range x {
			x[i] = v + step*float64(r.IntN(64))
		}
		return ref.Floats(t, x...)
	}
}

// entropy adds cases of the op or of its gradient: of each row, and of their mean.
func (g *gen) entropy(why string, p ir.Params, rows int, x operand, labels fill) {
	_, logits := x.draw(g.r)
	_, classes := operand{ir.Dense(dtype.I64, rows), labels}.draw(g.r)
	in := []operand{{x.t, fixed(logits)}, {ir.Dense(dtype.I64, rows), fixed(classes)}}
	mean := ir.Attr{Flag: ir.Mean}
	if g.code == ir.CrossEntropy {
		g.add(why, ir.Attr{}, p, in...)
		g.add(why+", the mean", mean, p, in...)
		return
	}
	in = append(in, g.wide(statistics(logits), 2, rows))
	counted := 0.
	for _, l := range classes.Data {
		if l != math.Float64frombits(p.Value[1]) {
			counted++
		}
	}
	g.add(why, ir.Attr{}, p, append(slices.Clone(in), g.wide(normal, rows))...)
	g.add(why+", the mean", mean, p, append(in, g.wide(normal), g.wide(values([]float64{counted}, 1)))...)
}

// statistics are what CrossEntropy keeps of rows.
func statistics(x ref.Array) fill {
	return func(_ *rand.Rand, t *ir.Type) ref.Array {
		n := t.Dim(1)
		op := ir.New(ir.CrossEntropy, ir.Attr{}, x.Type, ir.Dense(dtype.I64, n))
		p := ir.Scalars(0, 0)
		out, err := ref.Eval(&op, &p, []ref.Array{x, ref.Floats(op.In(1), make([]float64, n)...)})
		if err != nil {
			panic("conform: " + err.Error())
		}
		return out[1]
	}
}

func (g *gen) normSizes() [][2]int {
	list := [][2]int{{1, 1}, {0, 3}, {3, 5}, {17, 33}, {3, 1031}}
	if !g.short {
		list = append(list, [2]int{301, 131})
	}
	return list
}

func rowNormCases(g *gen) {
	eps := ir.Scalars(1e-5)
	for _, s := range g.normSizes() {
		x, v := g.of(shifted, s[0], s[1]), g.of(normal, s[1])
		g.add("plain", ir.Attr{}, eps, x)
		g.add("with weights", ir.Attr{}, eps, x, v)
		if g.code == ir.LayerNorm {
			g.add("with weights and biases", ir.Attr{}, eps, x, v, v)
		}
	}
	g.add("constant rows", ir.Attr{}, ir.Scalars(1e-3), g.of(constant, 3, 8), g.of(normal, 8))
	g.add("zeros", ir.Attr{}, eps, g.of(values([]float64{0}, 1), 2, 8), g.of(normal, 8))
}

func rowNormGradCases(g *gen) {
	for _, s := range g.normSizes() {
		in := []operand{g.of(normal, s[0], s[1]), g.of(shifted, s[0], s[1])}
		if g.code == ir.LayerNormGrad {
			in = append(in, g.wide(shifted, s[0]))
		}
		in = append(in, g.wide(positive, s[0]))
		g.add("plain", ir.Attr{}, ir.Params{}, in...)
		g.add("with weights", ir.Attr{}, ir.Params{}, append(in, g.of(normal, s[1]))...)
	}
}

// outlying are normal numbers, but a first sample of three channels of two that lies far away.
func outlying(r *rand.Rand, t *ir.Type) ref.Array {
	x := normal(r, t)
	for i := range 6 {
		x.Data[i] = 1000
	}
	return x
}

// normActs adds the forms of a norm: alone, with something added, with relu.
func (g *gen) normActs(p ir.Params, r operand, in ...operand) {
	relu := ir.Attr{Act: ir.ActReLU}
	g.add("a shape", ir.Attr{}, p, in...)
	g.add("a shape, relu", relu, p, in...)
	in = append(in, r)
	g.add("a shape, added", ir.Attr{}, p, in...)
	g.add("a shape, added, relu", relu, p, in...)
}

// lowTypes are the types that a result may be rounded to beside the operands'.
func (g *gen) lowTypes() []dtype.DType {
	if g.dt == dtype.F32 {
		return []dtype.DType{0, dtype.BF16, dtype.F16}
	}
	return []dtype.DType{0}
}

// as is the operand's shape in a dtype, unless that is not set.
func (o operand) as(dt dtype.DType) operand {
	if dt != 0 {
		o.t = o.t.As(dt)
	}
	return o
}

func lstmCases(g *gen) {
	for _, s := range g.rowSizes() {
		n, h := s[0], s[len(s)-1]
		gates, cell := func(f fill) operand { return g.of(f, n, 4*h) }, func() operand { return g.of(normal, n, h) }
		if g.code == ir.LSTMStep {
			g.add("a shape", ir.Attr{}, ir.Params{}, gates(spread), gates(normal), cell())
			continue
		}
		g.add("a shape", ir.Attr{}, ir.Params{}, cell(), cell(), gates(normal), cell(), cell())
	}
}

func addNormCases(g *gen) {
	eps := ir.Scalars(1e-5)
	for _, s := range g.normSizes() {
		x, v := g.of(shifted, s[0], s[1]), g.of(normal, s[1])
		for _, low := range g.lowTypes() {
			g.add("alone", ir.Attr{DType: low}, eps, x, v, v)
			g.add("added", ir.Attr{DType: low}, eps, x, v, v, g.of(normal, s[0], s[1]).as(low))
		}
	}
}

func addNormGradCases(g *gen) {
	for _, s := range g.normSizes() {
		x, stats := g.of(shifted, s[0], s[1]), []operand{g.wide(shifted, s[0]), g.wide(positive, s[0]), g.of(normal, s[1])}
		for _, low := range g.lowTypes() {
			in := append([]operand{x, g.of(normal, s[0], s[1]).as(low)}, stats...)
			g.add("alone", ir.Attr{}, ir.Params{}, in...)
			g.add("added", ir.Attr{DType: low}, ir.Params{}, append(in, g.of(normal, s[0], s[1]))...)
		}
	}
}

func batchNormCases(g *gen) {
	eps := ir.Scalars(1e-5)
	list := [][3]int{{1, 1, 1}, {3, 2, 5}, {4, 7, 1}, {2, 3, 35}, {5, 0, 3}, {1, 3, 1031}}
	if !g.short {
		list = append(list, [3]int{9, 33, 49}, [3]int{70, 5, 101})
	}
	if g.code == ir.BatchNorm {
		g.add("a first row far away", ir.Attr{}, eps, g.of(outlying, 64, 3, 2), g.wide(normal, 3), g.wide(normal, 3))
	}
	for _, s := range list {
		x, c := g.of(shifted, s[0], s[1], s[2]), s[1]
		mean, variance, w, b := g.wide(shifted, c), g.wide(positive, c), g.wide(normal, c), g.wide(normal, c)
		r := g.of(normal, s[0], s[1], s[2])
		switch g.code {
		case ir.BatchNorm:
			g.normActs(eps, r, x, w, b)
		case ir.BatchNormGrad:
			in, y := []operand{r, x, mean, variance, w}, g.of(values([]float64{0, -1, 2, -0.5, 1e-3}, 1), s[0], s[1], s[2])
			g.add("a shape", ir.Attr{}, eps, in...)
			g.add("a shape, relu", ir.Attr{}, eps, append(slices.Clone(in), y)...)
			g.add("a shape, added, relu", ir.Attr{Flag: ir.Residual}, eps, append(in, y)...)
		case ir.BatchNormEval:
			g.normActs(eps, r, x, mean, variance, w, b)
		}
	}
}

func attentionCases(g *gen) {
	type sizes struct{ b, h, t, s, d, e int }
	list := []sizes{{1, 1, 1, 1, 1, 1}, {2, 3, 5, 5, 4, 4}, {1, 2, 7, 11, 8, 3}, {1, 2, 11, 7, 5, 8}, {2, 1, 3, 0, 4, 2}, {2, 1, 0, 3, 4, 2}}
	if !g.short {
		list = append(list, sizes{2, 2, 67, 67, 32, 32}, sizes{1, 2, 130, 133, 16, 24})
	}
	for _, z := range list {
		for _, causal := range []bool{false, true} {
			q, k, v := g.of(normal, z.b, z.h, z.t, z.d), g.of(normal, z.b, z.h, z.s, z.d), g.of(normal, z.b, z.h, z.s, z.e)
			mask := []int{z.b, z.h, z.t, z.s}
			g.attention("no mask", causal, q, k, v)
			g.attention("a mask", causal, q, k, v, operand{ir.Dense(dtype.Bool, mask...), masked(z.s, 1, 0)})
			g.attention("added numbers", causal, q, k, v, g.of(masked(z.s, 0.5, math.Inf(-1)), mask...))
		}
	}
	if g.code == ir.Attention {
		g.strided()
	}
}

// strided has operands that lie as they come: heads inside of positions, keys and values side by side in a longer buffer,
// heads that share keys, columns apart, a mask for all heads and queries.
func (g *gen) strided() {
	view := func(shape, strides []int) operand { return operand{ir.Strided(g.dt, shape, strides), normal} }
	seen := operand{ir.Strided(dtype.Bool, []int{2, 3, 5, 7}, []int{7, 0, 0, 1}), masked(3, 1, 0)}
	inside := view([]int{2, 3, 5, 8}, []int{120, 8, 24, 1})
	cache := view([]int{2, 3, 7, 8}, []int{480, 8, 48, 1})
	shared := view([]int{2, 3, 7, 8}, []int{56, 0, 8, 1})
	turned := view([]int{2, 3, 7, 8}, []int{168, 56, 1, 7})
	added := operand{ir.Strided(g.dt, []int{2, 3, 5, 7}, []int{0, 0, 1, 5}), normal}
	for _, causal := range []bool{false, true} {
		g.attention("heads inside of positions", causal, inside, cache, cache, seen)
		g.attention("shared keys", causal, inside, shared, turned, added)
		g.attention("columns apart", causal, view([]int{2, 3, 5, 8}, []int{120, 40, 1, 5}), turned, shared)
	}
	g.attention("one query", false, view([]int{1, 4, 1, 32}, []int{384, 32, 384, 1}), view([]int{1, 4, 70, 32}, []int{0, 32, 256, 1}), view([]int{1, 4, 70, 32}, []int{0, 32, 256, 1}))
}

func selfAttentionCases(g *gen) {
	list := [][4]int{{1, 1, 1, 1}, {2, 3, 5, 4}, {1, 2, 3, 4}, {1, 2, 7, 8}, {2, 1, 0, 2}, {1, 3, 9, 33}}
	if !g.short {
		list = append(list, [4]int{2, 2, 67, 32}, [4]int{1, 2, 130, 16}, [4]int{1, 2, 70, 128})
	}
	for _, z := range list {
		for _, causal := range []bool{false, true} {
			qkv, mask := g.of(normal, z[0], z[2], 3, z[1], z[3]), []int{z[0], z[1], z[2], z[2]}
			g.attention("no mask", causal, qkv)
			g.attention("a mask", causal, qkv, operand{ir.Dense(dtype.Bool, mask...), masked(z[2], 1, 0)})
			g.attention("added numbers", causal, qkv, g.of(masked(z[2], 0.5, math.Inf(-1)), mask...))
		}
	}
}

// masked draws keep or hide, and hides the whole first row.
func masked(row int, keep, hide float64) fill {
	return func(r *rand.Rand, t *ir.Type) ref.Array {
		v := make([]float64, t.Size())
		for i := range v {
			if v[i] = keep; i < row || r.IntN(3) == 0 {
				v[i] = hide
			}
		}
		return ref.Floats(t, v...)
	}
}

func (g *gen) attention(why string, causal bool, in ...operand) {
	a := ir.Attr{Causal: causal}
	p := ir.Scalars(1 / math.Sqrt(float64(in[0].t.Dim(-1))))
	if g.code == ir.Attention || g.code == ir.SelfAttention {
		g.add(why, a, p, in...)
		return
	}
	var types []*ir.Type
	var arrays []ref.Array
	for i, o := range in {
		_, values := o.draw(g.r)
		types, arrays = append(types, o.t), append(arrays, values)
		in[i].fill = fixed(values)
	}
	code, n := ir.Attention, 3 // and the number of operands before a mask
	if g.code == ir.SelfAttentionGrad {
		code, n = ir.SelfAttention, 1
	}
	forward := ir.New(code, a, types...)
	out, err := ref.Eval(&forward, &p, arrays)
	if err != nil {
		panic("conform: " + err.Error())
	}
	all := append([]operand{{out[0].Type, normal}}, in[:n]...)
	all = append(all, operand{out[0].Type, fixed(out[0])}, operand{out[1].Type, fixed(out[1])})
	g.add(why, a, p, append(all, in[n:]...)...)
}

// fixed gives values that are known.
func fixed(a ref.Array) fill { return func(*rand.Rand, *ir.Type) ref.Array { return a } }

func sumSquaresCases(g *gen) {
	g.add("one", ir.Attr{}, ir.Params{}, g.of(normal, 7, 5))
	g.add("nothing", ir.Attr{}, ir.Params{}, g.of(normal, 0))
	g.add("several", ir.Attr{}, ir.Params{}, g.of(normal, 3), g.of(normal), g.of(normal, 0, 2), g.of(normal, g.long()), g.of(normal, 5, 7))
	g.add("several dtypes", ir.Attr{}, ir.Params{}, g.of(normal, 33), operand{ir.Dense(dtype.F32, 17), normal}, operand{ir.Dense(dtype.F64, 9), normal})
}

func gradNormCases(g *gen) {
	inf := values([]float64{1, math.Inf(1)}, 1)
	for _, p := range []ir.Params{ir.Scalars(0, 1, 0), ir.Scalars(0.5, 1, 0), ir.Scalars(1e9, 0.25, 0), flagged(ir.Scalars(2, 0.5, 0))} {
		for _, in := range [][]operand{
			{g.of(normal, 7, 5)},
			{g.of(normal, 3), g.of(normal), g.of(normal, 0, 2), g.of(normal, g.long()), g.of(normal, 5, 7)},
			{g.of(normal, 33), {ir.Dense(dtype.F32, 17), normal}, {ir.Dense(dtype.F64, 9), normal}},
			{g.of(values([]float64{0}, 1), 5)},
			{g.of(inf, 5)},
			{},
		} {
			counts := operand{ir.Dense(dtype.I64, 3+len(in)), between(0, 1000)}
			turn := operand{counts.t, between(0, 2)}
			g.add("several gradients", ir.Attr{}, p, append([]operand{counts, turn}, in...)...).Alias = []int{-1, -1, -1, 0}
		}
	}
}

func castAllCases(g *gen) {
	for _, to := range []dtype.DType{dtype.BF16, dtype.F16, dtype.F32, dtype.F64} {
		a := ir.Attr{DType: to}
		g.add("several", a, ir.Params{}, g.of(normal, 3), g.of(normal), g.of(normal, 0, 2), g.of(normal, g.long()), g.of(normal, 5, 7))
		g.add("several dtypes", a, ir.Params{}, g.of(normal, 33), operand{ir.Dense(dtype.F32, 17), normal}, operand{ir.Dense(dtype.F64, 9), normal})
		g.add("many", a, ir.Params{}, slices.Repeat([]operand{g.of(normal, 2), g.of(spread, 3)}, 100)...)
	}
}

func trackMomentsCases(g *gen) {
	for _, f := range []float64{0, 0.1, 0.75, 1} {
		for _, n := range []int{1, 33, 1031} {
			g.add("a step", ir.Attr{}, ir.Scalars(f, 1.25), g.of(normal, n), g.of(normal, n), operand{ir.Dense(dtype.I64), between(0, 1000)}, g.of(normal, n), g.of(normal, n)).Alias = []int{0, 1, 2}
		}
	}
}

// flagged sets the last parameter, an integer.
func flagged(p ir.Params) ir.Params {
	p.Value[p.N-1] = 1
	return p
}

func lossScaleCases(g *gen) {
	p := ir.Scalars(1.7, 0.3, 0)
	p.Value[2] = 3
	for _, scale := range []float64{1 << 16, 1000, math.Ldexp(1, 127), math.Ldexp(1, -127)} {
		for good := -1; good < 3; good++ {
			for found := range 3 {
				one := func(dt dtype.DType, v float64) operand { return operand{ir.Dense(dt), values([]float64{v}, 1)} }
				in := []operand{one(dtype.F32, scale), one(dtype.F64, 1/scale), one(dtype.I64, float64(good))}
				for i := range 2 {
					in = append(in, one(dtype.I64, float64(found>>i)))
				}
				g.add("a step", ir.Attr{}, p, in...).Alias = []int{0, 1, 2}
			}
		}
	}
}

// updateSizes are the parameters of an optimizer's cases.
func (g *gen) updateSizes() [][][]int {
	return [][][]int{{}, {{1}}, {{3, 5}, {0}, {7}}, {{1031}, {2, 2}, {g.long()}, {3}, {11}}}
}

// update adds a case of an optimizer, whose results lie in the memory of its operands. group says what the operands of
// one parameter are drawn from; a fifth is the number of the update.
func (g *gen) update(why string, a ir.Attr, p ir.Params, scale float64, group ...fill) {
	for _, shapes := range g.updateSizes() {
		in := []operand{{ir.Dense(dtype.F32), values([]float64{scale}, 1)}}
		var alias []int
		for _, shape := range shapes {
			for j, f := range group {
				if n, ok := numbered(g.code, j); ok {
					in = append(in, operand{ir.Dense(n), f})
					continue
				}
				if j != 1 {
					alias = append(alias, len(in))
				}
				in = append(in, g.of(f, shape...))
			}
		}
		g.add(why, a, p, in...).Alias = alias
	}
}

func sgdCases(g *gen) {
	p := ir.Scalars(0.1, 0.9, 0.01, 0.5, 0)
	g.update("plain", ir.Attr{}, ir.Scalars(0.1, 0, 0, 1, 0), 1, normal, normal)
	g.update("weight decay and scale", ir.Attr{}, ir.Scalars(0.1, 0, 0.01, 2, 0), 0.5, normal, normal)
	g.update("momentum", ir.Attr{Flag: ir.Momentum}, p, 0.5, normal, normal, normal)
	g.update("Nesterov", ir.Attr{Flag: ir.Momentum | ir.Nesterov}, p, 1, normal, normal, normal)
	g.update("nothing", ir.Attr{}, flagged(p), 1, normal, normal)
	g.update("nothing of momentum", ir.Attr{Flag: ir.Momentum}, flagged(p), 1, normal, normal, normal)
}

func adamCases(g *gen) {
	p := ir.Scalars(1e-2, 0.9, 0.99, 1e-8, 0.1, 0.5, 0)
	number := between(1, 100)
	g.update("AdamW", ir.Attr{}, p, 0.5, normal, normal, normal, positive, number)
	g.update("Adam", ir.Attr{Flag: ir.Coupled}, p, 1, normal, normal, normal, positive, number)
	zero := values([]float64{0}, 1)
	g.update("the first step", ir.Attr{}, ir.Scalars(1e-2, 0.9, 0.99, 1e-3, 0, 1, 0), 1, normal, shifted, zero, zero, values([]float64{1}, 1))
	g.update("a late step", ir.Attr{}, p, 1, normal, normal, normal, positive, values([]float64{1 << 40}, 1))
	g.update("nothing", ir.Attr{}, flagged(p), 1, normal, normal, normal, positive, number)
}

// numbered is the dtype of operand j of a group that is a number of the parameter, and not of its shape.
func numbered(code ir.Code, j int) (dtype.DType, bool) {
	r := code.Row().Rule
	switch {
	case r == nil:
		return dtype.I64, j == 4
	case j == 2+len(r.State):
		return dtype.I64, true
	}
	return dtype.F64, j > 2+len(r.State)
}

// ruleCases are of any rule. Settings, and numbers of a parameter, are shares; gradients are positive, so that what takes
// their sign has one.
func ruleCases(g *gen) {
	r := g.code.Row().Rule
	settings := []float64{0.9, 0.99, 1e-3, 0.8, 0.7}
	group := func(state, turn fill) []fill {
		list := []fill{normal, positive}
		for range r.State {
			list = append(list, state)
		}
		list = append(list, turn)
		for range r.Numbers {
			list = append(list, each(func(r *rand.Rand) float64 { return 0.1 + 0.8*r.Float64() }))
		}
		return list
	}
	params := func(rate, factor, coupled, decay float64) ir.Params {
		return ir.Scalars(append(append([]float64{rate, factor, coupled, decay}, settings[:len(r.Settings)]...), 0)...)
	}
	turn := between(1, 100)
	g.update("decay of the gradient", ir.Attr{}, params(0.1, 1, 0.01, 0), 0.5, group(positive, turn)...)
	g.update("decay of the weight", ir.Attr{}, params(0.1, 0.5, 0, 0.1), 2, group(positive, turn)...)
	g.update("the first step", ir.Attr{}, params(0.1, 1, 0, 0), 1, group(values([]float64{0}, 1), values([]float64{1}, 1))...)
	g.update("a late step", ir.Attr{}, params(0.1, 1, 0, 0.1), 1, group(positive, values([]float64{1 << 40}, 1))...)
	g.update("nothing", ir.Attr{}, flagged(params(0.1, 1, 0, 0.1)), 1, group(positive, turn)...)
}
