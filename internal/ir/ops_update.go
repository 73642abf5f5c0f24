package ir

// The codes of updates, over any number of parameters.
const (
	SumSquares   Code = endRowwise + iota // any operands → one number[]: f64 if one of them is, else f32
	GradNorm                              // (counts i64[n], turn i64[n], then gradients) → norm[], scale[], skip i64[], and counts + turn unless skip in place; p0 largest norm (0: any), p1 what gradients are multiplied by, p2 whether to skip when the norm is not finite (an integer)
	LossScale                             // (scale f32[], inverse f64[], good i64[], then skip i64[] of each optimizer) → the first three in place; p0 growth, p1 backoff, p2 interval (an integer)
	CastAll                               // any operands → each converted to Attr.DType, as by Cast
	TrackMoments                          // (mean[c], var[c], count i64[], then mean[c] and biased var[c] of a batch) → the first three in place: towards the batch's by p0, the variance times p1, and one more
	SGD                                   // (scale[], then p, g and, with Momentum, buf per parameter) → p, buf in place; p0 rate, p1 momentum, p2 weight decay, p3 factor of the rate, p4 skip (an integer)
	AdamW                                 // (scale[], then p, g, m, v, t i64[] per parameter) → p, m, v in place; t the number of this update from 1; p0 rate, p1 β1, p2 β2, p3 eps, p4 weight decay, p5 factor of the rate, p6 skip (an integer)

	codeCount
)

// Codes is the number of op codes, Invalid included.
const Codes = int(codeCount)

var updateRows = rows{
	SumSquares:   {Name: "sum_squares", Group: Updates, Class: Floats, Fused: true, min: 1, max: many, infer: inferSumSquares, flops: multiFlops, Gradient: rule("sum_squares"), Tolerance: Sums},
	GradNorm:     {Name: "grad_norm", Group: Updates, Class: Any, Fused: true, min: 2, max: many, Params: 3, infer: inferGradNorm, flops: multiFlops, Gradient: noGradient(isUpdate), Tolerance: Sums},
	LossScale:    {Name: "loss_scale", Group: Updates, Class: Floats, Fused: true, min: 3, max: many, Params: 3, infer: inferLossScale, flops: perResult(2), Gradient: noGradient(isUpdate), Tolerance: Exact},
	CastAll:      {Name: "cast_all", Group: Updates, Class: Floats, Fused: true, min: 1, max: many, infer: inferCastAll, reads: reads{fields: fieldDType}, Gradient: noGradient(isUpdate), Tolerance: Exact},
	TrackMoments: {Name: "track_moments", Group: Updates, Class: Floats, Fused: true, min: 5, Params: 2, infer: inferTrackMoments, flops: perOperand(4), Gradient: noGradient(isUpdate), Tolerance: Updated},
	SGD:          {Name: "sgd", Group: Updates, Class: Floats, Fused: true, min: 1, max: many, Params: 5, infer: inferSGD, reads: reads{fields: fieldFlag, flags: Nesterov | Momentum}, flops: multiFlops, Gradient: noGradient(isUpdate), Tolerance: Updated},
	AdamW:        {Name: "adamw", Group: Updates, Class: Floats, Fused: true, min: 1, max: many, Params: 7, infer: inferAdamW, reads: reads{fields: fieldFlag, flags: Coupled}, flops: multiFlops, Gradient: noGradient(isUpdate), Tolerance: Updated},
}
