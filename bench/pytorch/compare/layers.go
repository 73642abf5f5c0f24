package main

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

func products() map[string]op {
	return map[string]op{
		"matmul": {(*drawer).matmul, func(in ts, _ *Attrs) ts { return only(in[0].MatMul(in[1])) }},
		"linear": {(*drawer).linear, func(in ts, _ *Attrs) ts { return only(in[0].Linear(in[1], third(in))) }},
		"linear_act": {
			func(d *drawer) { d.linear(); d.c.Attrs.Axis = d.IntN(len(smooth)) },
			func(in ts, a *Attrs) ts { return only(in[0].LinearAct(in[1], third(in), smooth[a.Axis])) },
		},
		"conv2d": {(*drawer).conv, func(in ts, a *Attrs) ts { return only(in[0].Conv2d(in[1], third(in), convOf(a))) }},
		"conv_transpose2d": {(*drawer).convTranspose, func(in ts, a *Attrs) ts {
			return only(in[0].ConvTranspose2d(in[1], third(in), tensor.ConvTranspose{Conv: convOf(a), OutputPadding: [2]int{a.N[7], a.N[8]}}))
		}},
		"max_pool2d":       {(*drawer).pool, func(in ts, a *Attrs) ts { return only(in[0].MaxPool2d(poolOf(a))) }},
		"avg_pool2d":       {(*drawer).pool, func(in ts, a *Attrs) ts { return only(in[0].AvgPool2d(poolOf(a))) }},
		"attention":        {func(d *drawer) { d.attention("") }, attention},
		"attention_causal": {func(d *drawer) { d.attention("causal") }, attention},
		"attention_bool":   {func(d *drawer) { d.attention("bool") }, attention},
		"attention_added":  {func(d *drawer) { d.attention("added") }, attention},
		"attention_shared": {(*drawer).attentionShared, attention},
		"rotary": {(*drawer).rotary, func(in ts, a *Attrs) ts {
			return only(in[0].Rotary(tensor.Rotary{Base: float64(a.P), Width: a.N[0], Interleaved: a.Flag, Start: a.N[1]}, nil))
		}},
	}
}

// smooth are the activations of an op that have no kink, in the order of compare.py's.
var smooth = []tensor.Act{tensor.NoAct, tensor.ActGELU, tensor.ActGELUTanh, tensor.ActSiLU}

// linear appends values, a weight and perhaps a bias.
func (d *drawer) linear() {
	dt, k, n := d.float(), d.size(), d.size()
	d.add(dt, append(d.shape(0, 2), k), d.normal)
	d.add(dt, []int{n, k}, d.plain)
	if d.IntN(2) == 0 {
		d.add(dt, []int{n}, d.plain)
	}
}

// third is the third operand, or nil.
func third(in ts) *tensor.Tensor {
	if len(in) < 3 {
		return nil
	}
	return in[2]
}

func (d *drawer) matmul() {
	dt, m, k, n := d.float(), d.size(), d.size(), d.size()
	lead := d.shape(0, 2)
	a, b := append(append([]int{}, lead...), m, k), append(d.broadcast(lead), k, n)
	switch d.IntN(6) {
	case 0:
		a = []int{k}
	case 1:
		b = []int{k}
	}
	d.add(dt, a, d.normal)
	d.add(dt, b, d.plain)
}

func (d *drawer) conv() {
	dt, groups := d.float(), 1+d.IntN(2)
	in, out := groups*(1+d.IntN(2)), groups*(1+d.IntN(3))
	kh, kw := 1+d.IntN(3), 1+d.IntN(3)
	a := &d.c.Attrs
	a.N = []int{1 + d.IntN(2), 1 + d.IntN(2), d.IntN(2), d.IntN(2), 1 + d.IntN(2), 1 + d.IntN(2), groups}
	d.add(dt, []int{1 + d.IntN(2), in, a.N[4]*(kh-1) + 1 + d.IntN(4), a.N[5]*(kw-1) + 1 + d.IntN(4)}, d.normal)
	d.add(dt, []int{out, in / groups, kh, kw}, d.plain)
	if d.IntN(2) == 0 {
		d.add(dt, []int{out}, d.plain)
	}
}

func (d *drawer) convTranspose() {
	dt, groups := d.float(), 1+d.IntN(2)
	in, out := groups*(1+d.IntN(2)), groups*(1+d.IntN(3))
	a := &d.c.Attrs
	a.N = []int{1 + d.IntN(3), 1 + d.IntN(3), d.IntN(2), d.IntN(2), 1 + d.IntN(2), 1 + d.IntN(2), groups}
	a.N = append(a.N, d.IntN(a.N[0]), d.IntN(a.N[1]))
	d.add(dt, []int{1 + d.IntN(2), in, 2 + d.IntN(3), 2 + d.IntN(3)}, d.normal)
	d.add(dt, []int{in, out / groups, 2 + d.IntN(2), 2 + d.IntN(2)}, d.plain)
	if d.IntN(2) == 0 {
		d.add(dt, []int{out}, d.plain)
	}
}

func convOf(a *Attrs) tensor.Conv {
	return tensor.Conv{Stride: [2]int{a.N[0], a.N[1]}, Padding: [2]int{a.N[2], a.N[3]}, Dilation: [2]int{a.N[4], a.N[5]}, Groups: a.N[6]}
}

func (d *drawer) pool() {
	kh, kw := 1+d.IntN(3), 1+d.IntN(3)
	d.c.Attrs.N = []int{kh, kw, 1 + d.IntN(3), 1 + d.IntN(3), d.IntN(kh/2 + 1), d.IntN(kw/2 + 1)}
	d.add(d.float(), []int{1 + d.IntN(2), 1 + d.IntN(3), kh + d.IntN(5), kw + d.IntN(5)}, d.apart)
}

func poolOf(a *Attrs) tensor.Pool {
	return tensor.Pool{Kernel: [2]int{a.N[0], a.N[1]}, Stride: [2]int{a.N[2], a.N[3]}, Padding: [2]int{a.N[4], a.N[5]}}
}

func (d *drawer) attention(form string) {
	d.special = false // what hides a key is part of the form
	dt, b, h, t, s, w, e := d.float(), 1+d.IntN(2), 1+d.IntN(2), 1+d.IntN(5), 1+d.IntN(5), 1+d.IntN(5), 1+d.IntN(5)
	if form == "causal" {
		s = t
	}
	d.add(dt, []int{b, h, t, w}, d.plain)
	d.add(dt, []int{b, h, s, w}, d.plain)
	d.add(dt, []int{b, h, s, e}, d.plain)
	switch d.c.Attrs.Word = form; form {
	case "bool":
		first := -1
		d.add(dtype.Bool, []int{b, h, t, s}, func() float64 {
			if first++; first%s == 0 {
				return 1 // a row that sees nothing is NaN in PyTorch
			}
			return float64(d.IntN(2))
		})
		d.c.In[3].Layout = "dense"
	case "added":
		d.add(dt, []int{1, h, t, s}, d.plain)
	}
}

// attentionShared appends queries of more heads than keys, which stand behind some of these, and draws a window and a scale.
func (d *drawer) attentionShared() {
	d.special = false
	dt, b, groups, t, start, w, e := d.float(), 1+d.IntN(2), 1+d.IntN(2), 1+d.IntN(5), d.IntN(4), 1+d.IntN(5), 1+d.IntN(5)
	d.add(dt, []int{b, groups * (1 + d.IntN(3)), t, w}, d.plain)
	d.add(dt, []int{b, groups, start + t, w}, d.plain)
	d.add(dt, []int{b, groups, start + t, e}, d.plain)
	a := &d.c.Attrs
	a.Word, a.N = []string{"", "causal"}[d.IntN(2)], []int{d.IntN(5) - 1, d.IntN(4) - 1, start}
	d.p(0, 0.3, -0.5)
}

func (d *drawer) rotary() {
	pairs := 1 + d.IntN(3)
	d.add(d.float(), append(d.shape(0, 2), d.size(), 2*pairs+d.IntN(3)), d.normal)
	d.c.Attrs.N, d.c.Attrs.Flag = []int{2 * pairs, d.IntN(20)}, d.IntN(2) == 0
	d.p(10000, 100)
}

func attention(in ts, a *Attrs) ts {
	m := tensor.Mask{Causal: a.Word == "causal", Scale: float64(a.P)}
	if len(in) > 3 {
		m.Keys = in[3]
	}
	if len(a.N) > 0 {
		m.Window, m.Start = &tensor.Window{Left: a.N[0], Right: a.N[1]}, a.N[2]
	}
	return only(tensor.Attention(in[0], in[1], in[2], m))
}

const eps = 1e-3

func norms() map[string]op {
	return map[string]op{
		"layer_norm": {
			func(d *drawer) {
				dt := d.norm(1)
				d.add(dt, d.c.Attrs.Shape, d.plain)
				if d.IntN(2) == 0 {
					d.add(dt, d.c.Attrs.Shape, d.plain)
				}
			},
			func(in ts, _ *Attrs) ts { return only(in[0].LayerNorm(in[1], third(in), eps)) },
		},
		"add_layer_norm": {
			func(d *drawer) {
				dt := d.norm(1)
				d.add(dt, d.c.In[0].Shape, d.plain)
				d.add(dt, d.c.Attrs.Shape, d.plain)
				d.add(dt, d.c.Attrs.Shape, d.plain)
			},
			func(in ts, _ *Attrs) ts {
				sum, y := in[0].AddLayerNorm(in[1], in[2], in[3], eps)
				return ts{sum, y}
			},
		},
		"rms_norm": {
			func(d *drawer) { d.add(d.norm(1), d.c.Attrs.Shape, d.plain) },
			func(in ts, _ *Attrs) ts { return only(in[0].RMSNorm(in[1], eps)) },
		},
		"batch_norm": {
			func(d *drawer) { d.planes(); d.channels(d.plain, false); d.channels(d.plain, false) },
			func(in ts, _ *Attrs) ts {
				y, mean, variance := in[0].BatchNorm(in[1], in[2], eps)
				return ts{y, mean, variance}
			},
		},
		"batch_norm_eval": {
			func(d *drawer) {
				d.planes()
				d.channels(d.plain, true)
				d.channels(func() float64 { return 0.5 + d.Float64() }, true)
				d.channels(d.plain, false)
				d.channels(d.plain, false)
			},
			func(in ts, _ *Attrs) ts { return only(in[0].BatchNormEval(in[1], in[2], in[3], in[4], eps)) },
		},
		"batch_norm_act": {
			func(d *drawer) { d.planes(); d.channels(d.plain, false); d.channels(d.plain, false); d.residual() },
			func(in ts, _ *Attrs) ts {
				y, mean, variance := in[0].BatchNormAct(in[1], in[2], in[3], tensor.ActReLU, eps)
				return ts{y, mean, variance}
			},
		},
		"batch_norm_eval_act": {
			func(d *drawer) {
				d.planes()
				d.channels(d.plain, true)
				d.channels(func() float64 { return 0.5 + d.Float64() }, true)
				d.channels(d.plain, false)
				d.channels(d.plain, false)
				d.residual()
			},
			func(in ts, _ *Attrs) ts {
				return only(in[0].BatchNormEvalAct(in[1], in[2], in[3], in[4], in[5], tensor.ActReLU, eps))
			},
		},
	}
}

// norm appends what is normalised over its last dimensions, whose shape it leaves in Attrs. Rows have 3 elements at
// least: of less the second derivatives are rounding.
func (d *drawer) norm(most int) dtype.DType {
	dt := d.float()
	d.c.Attrs.Shape = append(d.shape(0, most), 3+d.IntN(5))
	d.add(dt, append(d.shape(0, 2), d.c.Attrs.Shape...), d.normal)
	return dt
}

// planes appends [n, c, s]; 16-bit values have statistics and weights in f32.
func (d *drawer) planes() {
	d.add(d.float(), []int{2 + d.IntN(3), 1 + d.IntN(3), 2 + d.IntN(4)}, d.normal)
}

// residual appends what is added to the normalised planes: so far from 0 that the sum is on one side of ReLU's kink.
func (d *drawer) residual() {
	dt, _ := dtype.Parse(d.c.In[0].DType)
	d.add(dt, d.c.In[0].Shape, func() float64 { return math.Copysign(40+d.Float64(), d.plain()) })
}

// channels appends a number per channel of the planes.
func (d *drawer) channels(v func() float64, fixed bool) {
	dt, _ := dtype.Parse(d.c.In[0].DType)
	if dt != dtype.F64 {
		dt = dtype.F32
	}
	d.add(dt, d.c.In[0].Shape[1:2], v)
	d.c.In[len(d.c.In)-1].Fixed = fixed
}

func losses() map[string]op {
	loss := func(f func(x, y *tensor.Tensor, o ...nn.LossOption) *tensor.Tensor) op {
		return op{
			func(d *drawer) {
				dt, s := d.float(), d.shape(1, 3)
				d.add(dt, s, d.apart)
				d.add(dt, s, func() float64 { return d.Float64() })
				d.c.In[1].Fixed = true
				d.c.Attrs.Word = []string{"mean", "sum", "none"}[d.IntN(3)]
			},
			func(in ts, a *Attrs) ts { return only(f(in[0], in[1], reduced(a)...)) },
		}
	}
	return map[string]op{
		"mse": loss(nn.MSE), "bce_with_logits": loss(func(x, y *tensor.Tensor, all ...nn.LossOption) *tensor.Tensor {
			opts := make([]nn.BinaryOption, len(all))
			for i, o := range all {
				opts[i] = o
			}
			return nn.BCEWithLogits(x, y, opts...)
		}),
		"cross_entropy": {
			func(d *drawer) {
				n, c := 1+d.IntN(5), 1+d.IntN(5)
				d.add(d.float(), []int{n, c}, d.normal)
				d.indices(c, []int{n})
				d.c.Attrs.Word = []string{"mean", "sum", "none"}[d.IntN(3)]
				d.c.Attrs.Axis = []int{-100, 0}[d.IntN(2)]
				d.p(0, 0.2)
			},
			func(in ts, a *Attrs) ts {
				opts := []nn.CrossEntropyOption{nn.Smoothing(float64(a.P)), nn.Ignore(a.Axis)}
				for _, o := range reduced(a) {
					opts = append(opts, o)
				}
				return only(nn.CrossEntropy(in[0], in[1], opts...))
			},
		},
	}
}

func reduced(a *Attrs) []nn.LossOption {
	switch a.Word {
	case "sum":
		return []nn.LossOption{nn.Summed()}
	case "none":
		return []nn.LossOption{nn.Unreduced()}
	}
	return nil
}

// inPlace are writes into a value or a view of it. Word says which view; Flag that the written value is recorded itself.
func inPlace() map[string]op {
	all := map[string]op{}
	for name, f := range map[string]func(t, u *tensor.Tensor, a *Attrs){
		"add_":   func(t, u *tensor.Tensor, _ *Attrs) { t.AddInPlace(u) },
		"sub_":   func(t, u *tensor.Tensor, _ *Attrs) { t.SubInPlace(u) },
		"mul_":   func(t, u *tensor.Tensor, _ *Attrs) { t.MulInPlace(u) },
		"div_":   func(t, u *tensor.Tensor, _ *Attrs) { t.DivInPlace(u) },
		"lerp_":  func(t, u *tensor.Tensor, _ *Attrs) { t.LerpInPlace(u, 0.3) },
		"axpy_":  func(t, u *tensor.Tensor, _ *Attrs) { t.AddScaledInPlace(u, 2) },
		"copy_":  func(t, u *tensor.Tensor, _ *Attrs) { t.CopyInPlace(u) },
		"scale_": func(t, _ *tensor.Tensor, _ *Attrs) { t.ScaleInPlace(3) },
		"clamp_": func(t, _ *tensor.Tensor, _ *Attrs) { t.ClampInPlace(-1, 1) },
		"fill_":  func(t, _ *tensor.Tensor, _ *Attrs) { t.FillInPlace(2) },
	} {
		all[name] = op{(*drawer).written, func(in ts, a *Attrs) ts { return written(in, a, f) }}
	}
	return all
}

func (d *drawer) written() {
	dt, m, n := d.float(), 2+d.IntN(3), 2+d.IntN(3)
	d.add(dt, []int{m, n}, d.apart)
	a := &d.c.Attrs
	a.Word = []string{"whole", "rows", "column", "transposed", "row of columns"}[d.IntN(5)]
	shape := map[string][]int{"whole": {m, n}, "rows": {m - 1, n}, "column": {m}, "transposed": {n, m}, "row of columns": {n - 1}}[a.Word]
	other := dt
	if d.IntN(3) == 0 {
		other = d.float()
	}
	d.add(other, d.broadcast(shape), d.divisor)
	d.c.In[0].Fixed, a.Flag = d.IntN(3) == 0, d.IntN(2) == 0
	a.N = []int{d.IntN(2), d.IntN(2)} // the operand is recorded; the view is used afterwards
}

// written returns the value, and the view after the write.
func written(in ts, a *Attrs, f func(t, u *tensor.Tensor, a *Attrs)) ts {
	h, u := in[0].Clone(), in[1]
	if a.Flag {
		h = in[0].Scale(1.5)
	}
	if a.N[0] == 1 {
		u = u.Scale(0.5)
	}
	v := h
	switch a.Word {
	case "rows":
		v = h.Slice(0, 1, h.Dim(0))
	case "column":
		v = h.Select(1, 1)
	case "transposed":
		v = h.Transpose(0, 1)
	case "row of columns":
		v = h.Slice(1, 1, h.Dim(1)).Select(0, 0)
	}
	f(v, u, a)
	if a.N[1] == 1 {
		return ts{h.Square(), v.Sigmoid()}
	}
	return only(h.Square())
}

// recipes are what docs/pytorch.md says to write for functions that are not here.
func recipes() map[string]op {
	one := func(f func(x *tensor.Tensor) *tensor.Tensor) op {
		return op{
			func(d *drawer) { d.add(d.float(), d.shape(1, 3), d.normal) },
			func(in ts, _ *Attrs) ts { return only(f(in[0])) },
		}
	}
	return map[string]op{
		"leaky_relu": one(func(x *tensor.Tensor) *tensor.Tensor { return tensor.Where(x.Gt(x.ZerosLike()), x, x.Scale(0.01)) }),
		"elu": one(func(x *tensor.Tensor) *tensor.Tensor {
			return tensor.Where(x.Gt(x.ZerosLike()), x, x.Minimum(x.FullLike(1)).Expm1())
		}),
		"softplus": one(func(x *tensor.Tensor) *tensor.Tensor { return tensor.Stack(0, x, x.ZerosLike()).LogSumExp(0) }),
	}
}
