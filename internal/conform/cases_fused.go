package conform

import (
	"math"
	"math/rand/v2"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
)

func init() {
	offer(softmaxCases, ir.Softmax, ir.LogSoftmax)
	offer(softmaxGradCases, ir.SoftmaxGrad, ir.LogSoftmaxGrad)
	offer(crossEntropyCases, ir.CrossEntropy, ir.CrossEntropyGrad)
	offer(rowNormCases, ir.LayerNorm, ir.RMSNorm)
	offer(rowNormGradCases, ir.LayerNormGrad, ir.RMSNormGrad)
	offer(batchNormCases, ir.BatchNorm, ir.BatchNormGrad, ir.BatchNormEval)
	offer(attentionCases, ir.Attention, ir.AttentionGrad)
	offer(sumSquaresCases, ir.SumSquares)
	offer(sgdCases, ir.SGD)
	offer(adamCases, ir.AdamW)
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
	g.entropy("large logits", ir.Scalars(0, -100), 3, g.of(values([]float64{1000, -1000, 0, 0, 0, 0, -1000, -1001, -999}, 1), 3, 3), between(0, 3))
	g.entropy("all ignored", ir.Scalars(0, -100), 3, g.of(spread, 3, 4), between(-100, -99))
	g.entropy("a label too large", ir.Scalars(0, -100), 3, g.of(spread, 3, 4), values([]float64{1, 2, 4}, 1)).Fails = true
	g.entropy("a negative label", ir.Scalars(0.1, -100), 3, g.of(spread, 3, 4), values([]float64{1, -1, 0}, 1)).Fails = true
}

// entropy adds a case of the op or of its gradient.
func (g *gen) entropy(why string, p ir.Params, rows int, x operand, labels fill) *Case {
	y := operand{ir.Dense(dtype.I64, rows), labels}
	if g.code == ir.CrossEntropy {
		return g.add(why, ir.Attr{}, p, x, y)
	}
	_, logits := x.draw(g.r)
	return g.add(why, ir.Attr{}, p, operand{x.t, fixed(logits)}, y, g.wide(lse(logits), rows), g.wide(normal, rows))
}

// lse is the log-sum-exp of rows.
func lse(x ref.Array) fill {
	return func(_ *rand.Rand, t *ir.Type) ref.Array {
		op := ir.New(ir.CrossEntropy, ir.Attr{}, x.Type, ir.Dense(dtype.I64, t.Dim(0)))
		p := ir.Scalars(0, 0)
		out, err := ref.Eval(&op, &p, []ref.Array{x, ref.Floats(op.In(1), make([]float64, t.Dim(0))...)})
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

func batchNormCases(g *gen) {
	eps := ir.Scalars(1e-5)
	list := [][3]int{{1, 1, 1}, {3, 2, 5}, {4, 7, 1}, {2, 3, 35}, {5, 0, 3}, {1, 3, 1031}}
	if !g.short {
		list = append(list, [3]int{9, 33, 49}, [3]int{70, 5, 101})
	}
	for _, s := range list {
		x, c := g.of(shifted, s[0], s[1], s[2]), s[1]
		mean, variance, w, b := g.wide(shifted, c), g.wide(positive, c), g.wide(normal, c), g.wide(normal, c)
		switch g.code {
		case ir.BatchNorm:
			g.add("a shape", ir.Attr{}, eps, x, w, b)
		case ir.BatchNormGrad:
			g.add("a shape", ir.Attr{}, eps, g.of(normal, s[0], s[1], s[2]), x, mean, variance, w)
		case ir.BatchNormEval:
			g.add("a shape", ir.Attr{}, eps, x, mean, variance, w, b)
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
	if g.code == ir.Attention {
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
	forward := ir.New(ir.Attention, a, types...)
	out, err := ref.Eval(&forward, &p, arrays)
	if err != nil {
		panic("conform: " + err.Error())
	}
	all := []operand{{out[0].Type, normal}, in[0], in[1], in[2], {out[0].Type, fixed(out[0])}, {out[1].Type, fixed(out[1])}}
	g.add(why, a, p, append(all, in[3:]...)...)
}

// fixed gives values that are known.
func fixed(a ref.Array) fill { return func(*rand.Rand, *ir.Type) ref.Array { return a } }

func sumSquaresCases(g *gen) {
	g.add("one", ir.Attr{}, ir.Params{}, g.of(normal, 7, 5))
	g.add("nothing", ir.Attr{}, ir.Params{}, g.of(normal, 0))
	g.add("several", ir.Attr{}, ir.Params{}, g.of(normal, 3), g.of(normal), g.of(normal, 0, 2), g.of(normal, g.long()), g.of(normal, 5, 7))
	g.add("several dtypes", ir.Attr{}, ir.Params{}, g.of(normal, 33), operand{ir.Dense(dtype.F32, 17), normal}, operand{ir.Dense(dtype.F64, 9), normal})
}

// updateSizes are the parameters of an optimizer's cases.
func (g *gen) updateSizes() [][][]int {
	return [][][]int{{}, {{1}}, {{3, 5}, {0}, {7}}, {{1031}, {2, 2}, {g.long()}, {3}, {11}}}
}

// update adds a case of an optimizer, whose results lie in the memory of its operands. group says what the operands of
// one parameter are drawn from.
func (g *gen) update(why string, a ir.Attr, p ir.Params, scale float64, group ...fill) {
	for _, shapes := range g.updateSizes() {
		in := []operand{{ir.Dense(dtype.F32), values([]float64{scale}, 1)}}
		var alias []int
		for _, shape := range shapes {
			for j, f := range group {
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
	p := ir.Scalars(0.1, 0.9, 0.01)
	g.update("plain", ir.Attr{}, ir.Scalars(0.1, 0, 0), 1, normal, normal)
	g.update("weight decay and scale", ir.Attr{}, ir.Scalars(0.1, 0, 0.01), 0.5, normal, normal)
	g.update("momentum", ir.Attr{Flag: ir.Momentum}, p, 0.5, normal, normal, normal)
	g.update("Nesterov", ir.Attr{Flag: ir.Momentum | ir.Nesterov}, p, 1, normal, normal, normal)
	g.update("the first step", ir.Attr{Flag: ir.Momentum | ir.First}, p, 1, normal, normal, constant)
	g.update("the first step of Nesterov", ir.Attr{Flag: ir.Momentum | ir.First | ir.Nesterov}, p, 1, normal, normal, constant)
}

func adamCases(g *gen) {
	p := ir.Scalars(1e-2, 0.9, 0.99, 1e-8, 0.1, 1-math.Pow(0.9, 3), 1-math.Pow(0.99, 3))
	g.update("AdamW", ir.Attr{}, p, 0.5, normal, normal, normal, positive)
	g.update("Adam", ir.Attr{Flag: ir.Coupled}, p, 1, normal, normal, normal, positive)
	first := ir.Scalars(1e-2, 0.9, 0.99, 1e-3, 0, 0.1, 0.01)
	g.update("the first step", ir.Attr{}, first, 1, normal, shifted, values([]float64{0}, 1), values([]float64{0}, 1))
}
