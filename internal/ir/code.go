package ir

// Code names an operation. Its meaning, operands, attributes and parameters are documented here and enforced by the
// shape rules; x, y, … are operands, p0, p1, … launch parameters (float64 bits unless said otherwise).
type Code uint8

// Views make another type of the same storage; they are never launched.
const (
	Invalid Code = iota
	Reshape      // x in the shape of Attr.Out
	Permute      // dimension i of the result is dimension Attr.Dims[i] of x
	Expand       // x broadcast to the shape of Attr.Out, with stride 0 where it repeats
	Slice        // x[Dims[0] : Dims[0]+Dims[1]·Dims[2] : Dims[2]] along Axis: start, length, step

	// Creation. Random ops take the key as p2 (an integer); element i depends on (key, i) only.
	Full    // p0 everywhere, type Attr.Out
	Iota    // p0 + i·p1 in row-major order, type Attr.Out
	Uniform // uniform in [p0, p1), type Attr.Out
	Normal  // mean p0, standard deviation p1, type Attr.Out
	RandInt // integers in [p0, p1), type Attr.Out; p0 and p1 are integers

	// Movement.
	Copy // x into the (possibly strided) type Attr.Out, or row-major when Attr.Out is nil
	Cast // x converted to Attr.DType: to nearest even, towards zero into integers

	// Elementwise, one operand. All keep the dtype.
	Neg
	Abs
	Sign
	Floor
	Ceil
	Round // half to even
	Trunc
	Sqrt
	Rsqrt
	Exp
	Expm1
	Log
	Log1p
	Sin
	Cos
	Tanh
	Sigmoid
	Erf
	ReLU // max(x, 0), NaN stays
	Not  // of bool

	// Elementwise with launch parameters.
	Affine    // p0·x + p1
	PowScalar // x^p0
	Clamp     // min(max(x, p0), p1)
	Dropout   // x·[u ≥ p0]/(1-p0) with u uniform from key p1 (an integer)
	Axpy      // x + p0·y
	Lerp      // x + p0·(y-x)

	// Elementwise, two operands of one dtype and shape.
	Add
	Sub
	Mul
	Div
	Pow
	Rem // x - y·floor(x/y), the sign of y
	Maximum
	Minimum
	Eq // comparisons give bool
	Ne
	Lt
	Le
	And
	Or
	Xor

	Where // Where(c, x, y): x where c, else y

	// Reductions over Attr.Axes; reduced dimensions stay as 1 when Attr.Keep.
	Sum
	Prod
	ReduceMax // NaN wins
	ReduceMin
	ArgMax // over Attr.Axis, i64: the first of equals, NaN wins
	ArgMin
	CumSum // along Attr.Axis

	// Products.
	MatMul           // x[…,m,k]·y[…,k,n], equal leading dimensions
	Conv2d           // x[n,c,h,w] with w[o,c/g,kh,kw] and optionally a bias[o]; Dims: stride, padding, dilation (h, w each), groups
	Conv2dGradInput  // (g, w) → type Attr.Out of x
	Conv2dGradWeight // (g, x) → type Attr.Out of w
	MaxPool2d        // x[n,c,h,w] → y and i64 places in the plane; Dims: kernel, stride, padding (h, w each)
	MaxPool2dGrad    // (g, places) → type Attr.Out of x
	AvgPool2d        // x[n,c,h,w], padding counted; Dims as MaxPool2d
	AvgPool2dGrad    // g → type Attr.Out of x

	// Indexing. Indices are i64; one out of range is an error of the launch.
	Gather        // out[…i…] = x[…idx[…i…]…] along Axis
	ScatterAdd    // (x, idx, src) → x with src added at idx along Axis, in order
	Embedding     // (w[v,d], idx[…]) → […,d]
	EmbeddingGrad // (g[…,d], idx[…]) → type Attr.Out of w
	Cat           // operands joined along Axis
	Pad           // p0 around x along Axis; Dims: before, after, between neighbours

	// Fused ops: each has a lowering to the primitives above.
	Linear           // (x[…,k], w[n,k], optionally b[n]) → act(x·wᵀ+b), Attr.Act
	GELU             // x·Φ(x)
	GELUTanh         // its tanh form
	SiLU             // x·sigmoid(x)
	ReLUGrad         // (y, g) → g where y > 0
	GELUGrad         // (x, g)
	GELUTanhGrad     // (x, g)
	SiLUGrad         // (x, g)
	Softmax          // over the last dimension
	LogSoftmax       // over the last dimension
	SoftmaxGrad      // (y, g)
	LogSoftmaxGrad   // (y, g)
	CrossEntropy     // (x[n,c], labels i64[n]) → loss[n], log-sum-exp[n]; p0 smoothing, p1 ignored label; f32 for 16-bit x
	CrossEntropyGrad // (x, labels, lse, g[n]) → type of x; parameters as above
	LayerNorm        // (x[r,d], w[d], b[d]) or (x, w) or (x) → y, mean[r], rstd[r]; p0 eps; f32 statistics for 16-bit x
	LayerNormGrad    // (g, x, mean, rstd, w) or (g, x, mean, rstd) → dx, dw[d], db[d]
	RMSNorm          // (x[r,d], w[d]) or (x) → y, rstd[r]; p0 eps
	RMSNormGrad      // (g, x, rstd, w) or (g, x, rstd) → dx, dw[d]
	BatchNorm        // (x[n,c,s], w[c], b[c]) → y, mean[c], biased var[c] of the batch; p0 eps
	BatchNormGrad    // (g, x, mean, var, w) → dx, dw, db; p0 eps
	BatchNormEval    // (x[n,c,s], mean[c], var[c], w[c], b[c]) → y; p0 eps
	Attention        // (q[b,h,t,d], k[b,h,s,d], v[b,h,s,e], optionally mask[b,h,t,s]) → o, lse[b,h,t]; p0 scale; Attr.Causal
	AttentionGrad    // (g, q, k, v, o, lse, optionally mask) → dq, dk, dv
	SumSquares       // any operands → one number[]: f64 if one of them is, else f32
	SGD              // (scale[], then p, g and, with Momentum, buf per parameter) → p, buf in place; p0 rate, p1 momentum, p2 weight decay
	AdamW            // (scale[], then p, g, m, v per parameter) → p, m, v in place; p0 rate, p1 β1, p2 β2, p3 eps, p4 weight decay, p5 1-β1ᵗ, p6 1-β2ᵗ

	codeCount
)

// Codes is the number of op codes, Invalid included.
const Codes = int(codeCount)
