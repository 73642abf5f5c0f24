package ir

// The codes of functions of rows, each with a lowering.
const (
	Softmax          Code = endBits + iota // over the last dimension
	LogSoftmax                             // over the last dimension
	SoftmaxGrad                            // (y, g)
	LogSoftmaxGrad                         // (y, g)
	CrossEntropy                           // (x[n,c], labels i64[n]) → loss[n], stats[2,n]; with Mean → loss[], stats, count[]; p0 smoothing, p1 ignored label; f32 for 16-bit x
	CrossEntropyGrad                       // (x, labels, stats, g[n]), with Mean (x, labels, stats, g[], count[]) → type of x; parameters as above
	LayerNorm                              // (x[r,d], w[d], b[d]) or (x, w) or (x) → y, mean[r], rstd[r]; p0 eps; f32 statistics for 16-bit x
	LayerNormGrad                          // (g, x, mean, rstd, w) or (g, x, mean, rstd) → dx, dw[d], db[d]
	RMSNorm                                // (x[r,d], w[d]) or (x) → y, rstd[r]; p0 eps
	RMSNormGrad                            // (g, x, rstd, w) or (g, x, rstd) → dx, dw[d]
	BatchNorm                              // (x[n,c,s], w[c], b[c], optionally r like x) → act(x̂·w + b + r), mean[c], biased var[c] of the batch; Attr.Act none or relu; p0 eps
	BatchNormGrad                          // (g, x, mean, var, w) → dx, dw, db; with relu's result y after them g counts as 0 where y ≤ 0, and with Residual that is a result too; p0 eps
	BatchNormEval                          // (x[n,c,s], mean[c], var[c], w[c], b[c], optionally r like x) → act(x̂·w + b + r); Attr.Act none or relu; p0 eps
	Attention                              // (q[b,h,t,d], k[b,h,s,d], v[b,h,s,e], optionally mask[b,h,t,s]) → o, lse[b,h,t]; p0 scale; Attr.Causal
	AttentionGrad                          // (g, q, k, v, o, lse, optionally mask) → dq, dk, dv
	AddNorm                                // LayerNorm (x[r,d], w[d], b[d]) → y, mean[r], rstd[r], y of type Attr.DType if set; with f[r,d], of x's type or y's, that of x+f, which is a result too; p0 eps
	AddNormGrad                            // (x, g, mean, rstd, w, optionally h[r,d]) → dx + h, dw, db, with Attr.DType dx + h in that type too; g may have fewer bits than x

	SelfAttention     // Attention of (qkv[b,t,3,h,d], optionally mask[b,h,t,t]) → o[b,t,h,d], lse[b,h,t]
	SelfAttentionGrad // (g, qkv, o, lse, optionally mask) → dqkv

	LinearCrossEntropy     // (x[n,k], w[c,k], labels i64[n]) → loss[n] of logits x·wᵀ; with Total or Mean → loss[], count[], then with GradX dx[n,k], with GradW dw[c,k], all as wide as losses; parameters as CrossEntropy
	LinearCrossEntropyGrad // (x, w, labels, g[n]) → with GradX dx, with GradW dw, of the type of x; parameters as above

	LSTMStep     // (x[n,4h], r[n,4h], c[n,h]) → o·tanh(c'), c' = f·c + i·g, and the gates[n,4h] i, f, g, o = σ, σ, tanh, σ of x + r
	LSTMStepGrad // (dh[n,h], dc'[n,h], gates[n,4h], c[n,h], c'[n,h]) → the gradient of x and of r [n,4h], dc

	endRowwise
)

var rowwiseRows = rows{
	Softmax:          {Name: "softmax", Group: Rowwise, Class: Floats, Fused: true, min: 1, infer: same, flops: perResult(4), Gradient: rule("softmax"), Autocast: CastWideOnCards, Tolerance: Softmaxes},
	LogSoftmax:       {Name: "log_softmax", Group: Rowwise, Class: Floats, Fused: true, min: 1, infer: same, flops: perResult(4), Gradient: rule("log_softmax"), Autocast: CastWideOnCards, Tolerance: Softmaxes},
	SoftmaxGrad:      {Name: "softmax_grad", Group: Rowwise, Class: Floats, Fused: true, min: 2, infer: equal, flops: perResult(4), Gradient: rule("softmax_grad"), Tolerance: Softmaxes},
	LogSoftmaxGrad:   {Name: "log_softmax_grad", Group: Rowwise, Class: Floats, Fused: true, min: 2, infer: equal, flops: perResult(4), Gradient: rule("log_softmax_grad"), Tolerance: Softmaxes},
	CrossEntropy:     {Name: "cross_entropy", Group: Rowwise, Class: Floats, Fused: true, min: 2, Params: 2, infer: inferCrossEntropy, reads: reads{fields: fieldFlag, flags: Mean}, flops: perOperand(4), Gradient: rule("cross_entropy"), Autocast: CastWide, Tolerance: Softmaxes},
	CrossEntropyGrad: {Name: "cross_entropy_grad", Group: Rowwise, Class: Floats, Fused: true, min: 4, max: 5, Params: 2, infer: inferCrossEntropyGrad, reads: reads{fields: fieldFlag, flags: Mean}, flops: perResult(4), Gradient: rule("cross_entropy_grad"), Tolerance: Softmaxes},
	LayerNorm:        {Name: "layer_norm", Group: Rowwise, Class: Floats, Fused: true, min: 1, max: 3, Params: 1, infer: inferLayerNorm, flops: perResult(8), Gradient: rule("layer_norm"), Autocast: CastWideOnCards, Tolerance: Norms},
	LayerNormGrad:    {Name: "layer_norm_grad", Group: Rowwise, Class: Floats, Fused: true, min: 4, max: 5, infer: inferLayerNormGrad, flops: perResult(14), Gradient: rule("layer_norm_grad"), Tolerance: Norms},
	AddNorm:          {Name: "add_norm", Group: Rowwise, Class: Wides, Fused: true, min: 3, max: 4, Params: 1, infer: inferAddNorm, reads: reads{fields: fieldDType}, flops: perResult(9), Gradient: rule("add_norm"), Tolerance: Norms},
	AddNormGrad:      {Name: "add_norm_grad", Group: Rowwise, Class: Wides, Fused: true, min: 5, max: 6, infer: inferAddNormGrad, reads: reads{fields: fieldDType}, flops: perResult(15), Gradient: rule("add_norm_grad"), Tolerance: Norms},
	RMSNorm:          {Name: "rms_norm", Group: Rowwise, Class: Floats, Fused: true, min: 1, max: 2, Params: 1, infer: inferRMSNorm, flops: perResult(5), Gradient: rule("rms_norm"), Autocast: CastWideOnCards, Tolerance: Norms},
	RMSNormGrad:      {Name: "rms_norm_grad", Group: Rowwise, Class: Floats, Fused: true, min: 3, max: 4, infer: inferRMSNormGrad, flops: perResult(10), Gradient: rule("rms_norm_grad"), Tolerance: Norms},
	BatchNorm:        {Name: "batch_norm", Group: Rowwise, Class: Floats, Fused: true, min: 3, max: 4, Params: 1, infer: inferBatchNorm, reads: reads{fields: fieldAct}, flops: perResult(7), Gradient: rule("batch_norm"), Tolerance: Norms},
	BatchNormGrad:    {Name: "batch_norm_grad", Group: Rowwise, Class: Floats, Fused: true, min: 5, max: 6, Params: 1, infer: inferBatchNormGrad, reads: reads{fields: fieldFlag, flags: Residual}, flops: perResult(11), Gradient: rule("batch_norm_grad"), Tolerance: Norms},
	BatchNormEval:    {Name: "batch_norm_eval", Group: Rowwise, Class: Floats, Fused: true, min: 5, max: 6, Params: 1, infer: inferBatchNormEval, reads: reads{fields: fieldAct}, flops: perResult(2), Gradient: rule("batch_norm_eval"), Tolerance: Norms},
	Attention:        {Name: "attention", Group: Rowwise, Class: Floats, Strides: AnyStride, Fused: true, min: 3, max: 4, Params: 1, infer: inferAttention, reads: reads{fields: fieldCausal}, flops: attentionFlops, Gradient: rule("attention"), Autocast: CastLow, Tolerance: Attends},
	AttentionGrad:    {Name: "attention_grad", Group: Rowwise, Class: Floats, Fused: true, min: 6, max: 7, Params: 1, infer: inferAttentionGrad, reads: reads{fields: fieldCausal}, flops: attentionFlops, Gradient: rule("attention_grad"), Tolerance: Attends},

	SelfAttention:     {Name: "self_attention", Group: Rowwise, Class: Floats, Fused: true, min: 1, max: 2, Params: 1, infer: inferSelfAttention, reads: reads{fields: fieldCausal}, flops: selfAttentionFlops, Gradient: rule("self_attention"), Autocast: CastLow, Tolerance: Attends},
	SelfAttentionGrad: {Name: "self_attention_grad", Group: Rowwise, Class: Floats, Fused: true, min: 4, max: 5, Params: 1, infer: inferSelfAttentionGrad, reads: reads{fields: fieldCausal}, flops: selfAttentionFlops, Gradient: rule("self_attention_grad"), Tolerance: Attends},

	LinearCrossEntropy:     {Name: "linear_cross_entropy", Group: Rowwise, Class: Floats, Fused: true, min: 3, Params: 2, infer: inferLinearCrossEntropy, reads: reads{fields: fieldFlag, flags: Mean | Total | GradX | GradW}, flops: linearCrossEntropyFlops, Gradient: rule("linear_cross_entropy"), Autocast: CastLow, Tolerance: Attends},
	LinearCrossEntropyGrad: {Name: "linear_cross_entropy_grad", Group: Rowwise, Class: Floats, Fused: true, min: 4, Params: 2, infer: inferLinearCrossEntropyGrad, reads: reads{fields: fieldFlag, flags: GradX | GradW}, flops: linearCrossEntropyFlops, Gradient: rule("linear_cross_entropy_grad"), Tolerance: Attends},

	LSTMStep:     {Name: "lstm_step", Group: Rowwise, Class: Floats, Fused: true, min: 3, infer: inferLSTMStep, flops: perResult(20), Gradient: rule("lstm_step"), Tolerance: Softmaxes},
	LSTMStepGrad: {Name: "lstm_step_grad", Group: Rowwise, Class: Floats, Fused: true, min: 5, infer: inferLSTMStepGrad, flops: perOperand(24), Gradient: rule("lstm_step_grad"), Tolerance: Softmaxes},
}
