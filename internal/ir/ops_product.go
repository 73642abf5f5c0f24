package ir

// The codes of products and windows.
const (
	MatMul           Code = endReductions + iota // x[…,m,k]·y[…,k,n], equal leading dimensions; of type Attr.DType if set: f32 for 16-bit operands; in Attr.Precision, as Linear and Conv2d
	Conv2d                                       // x[n,c,h,w] with w[o,c/g,kh,kw] and optionally a bias[o]; Dims: stride, padding, dilation (h, w each), groups
	Conv2dGradInput                              // (g, w) → type Attr.Out of x
	Conv2dGradWeight                             // (g, x) → type Attr.Out of w
	MaxPool2d                                    // x[n,c,h,w] → y and i64 places in the plane; Dims: kernel, stride, padding (h, w each)
	MaxPool2dGrad                                // (g, places) → type Attr.Out of x
	AvgPool2d                                    // x[n,c,h,w], padding counted; Dims as MaxPool2d
	AvgPool2dGrad                                // g → type Attr.Out of x
	Resample                                     // x with another size of dimension Axis, by a [Resampling]; Dims: size, curve, corners, step (two halves of float64 bits)
	ResampleGrad                                 // g → type Attr.Out of x

	Linear   // (x[…,k], w[n,k], optionally b[n]) → act(x·wᵀ+b), Attr.Act, and with Before x·wᵀ+b; b may be f32 where x has 16 bits
	BiasGrad // (g[r,n]) → Σg[n] over the rows, of type Attr.DType; with Attr.Act (g, x[r,n]), for ReLU (g, y) → Σd, d = g·act'(x)

	endProducts
)

var productRows = rows{
	MatMul:           {Name: "matmul", Group: Products, Class: Numbers, Strides: AnyStride, min: 2, infer: inferMatMul, reads: reads{fields: fieldDType | fieldPrecision}, flops: matMulFlops, Gradient: rule("matmul"), Autocast: CastLow, Tolerance: Sums},
	Conv2d:           {Name: "conv2d", Group: Products, Class: Floats, min: 2, max: 3, infer: inferConv, reads: reads{fields: fieldDims | fieldPrecision, dims: 7}, flops: conv2dFlops, Gradient: rule("conv2d"), Autocast: CastLow, Tolerance: Sums},
	Conv2dGradInput:  {Name: "conv2d_grad_input", Group: Products, Class: Floats, min: 2, infer: inferConvGradInput, reads: reads{fields: fieldOut | fieldDims | fieldPrecision, dims: 7}, flops: convGradInputFlops, Gradient: rule("conv2d_grad_input"), Tolerance: Sums},
	Conv2dGradWeight: {Name: "conv2d_grad_weight", Group: Products, Class: Floats, min: 2, infer: inferConvGradWeight, reads: reads{fields: fieldOut | fieldDims | fieldPrecision, dims: 7}, flops: convGradWeightFlops, Gradient: rule("conv2d_grad_weight"), Tolerance: Sums},
	MaxPool2d:        {Name: "max_pool2d", Group: Products, Class: Floats, min: 1, infer: inferMaxPool, reads: reads{fields: fieldDims, dims: 6}, flops: perWindow(false), Gradient: rule("max_pool2d"), Tolerance: Exact},
	MaxPool2dGrad:    {Name: "max_pool2d_grad", Group: Products, Class: Floats, min: 2, infer: inferMaxPoolGrad, reads: reads{fields: fieldOut | fieldDims, dims: 6}, flops: perOperand(1), Gradient: rule("max_pool2d_grad"), Tolerance: Sums},
	AvgPool2d:        {Name: "avg_pool2d", Group: Products, Class: Floats, min: 1, infer: inferAvgPool, reads: reads{fields: fieldDims, dims: 6}, flops: perWindow(false), Gradient: rule("avg_pool2d"), Tolerance: Sums},
	AvgPool2dGrad:    {Name: "avg_pool2d_grad", Group: Products, Class: Floats, min: 1, infer: inferAvgPoolGrad, reads: reads{fields: fieldOut | fieldDims, dims: 6}, flops: perWindow(true), Gradient: rule("avg_pool2d_grad"), Tolerance: Sums},
	Resample:         {Name: "resample", Group: Products, Class: Floats, min: 1, infer: inferResample, reads: reads{fields: fieldAxis | fieldDims, dims: 5}, flops: perTap(false), Gradient: rule("resample"), Autocast: CastWideOnCards, Tolerance: Sums},
	ResampleGrad:     {Name: "resample_grad", Group: Products, Class: Floats, min: 1, infer: inferResampleGrad, reads: reads{fields: fieldOut | fieldAxis | fieldDims, dims: 5}, flops: perTap(true), Gradient: rule("resample_grad"), Tolerance: Sums},

	Linear:   {Name: "linear", Group: Products, Class: Floats, Fused: true, min: 2, max: 3, infer: inferLinear, reads: reads{fields: fieldAct | fieldFlag | fieldPrecision, flags: Before}, flops: linearFlops, Gradient: rule("linear"), Autocast: CastLow, keeps: 1 << 2, Tolerance: Sums},
	BiasGrad: {Name: "bias_grad", Group: Products, Class: Floats, Fused: true, min: 1, max: 2, infer: inferBiasGrad, reads: reads{fields: fieldAct | fieldDType}, flops: biasGradFlops, Gradient: rule("bias_grad"), Tolerance: Sums},
}
