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
	Adam8bit                              // (scale[], codes f64[2·Codes], then p, g, m u8, v u8, largest m f32[blocks], largest v f32[blocks], t i64[] per parameter) → p, m, v and the largest in place; p0 to p6 as of AdamW

	RMSprop                 // of each [Rule]: see there
	RMSpropMomentum         //
	RMSpropCentered         //
	RMSpropCenteredMomentum //
	Adagrad                 //
	NAdam                   //
	RAdam                   //
	AMSGrad                 //
	Lion                    //
	ScheduleFree            //
	Adadelta                //
	Adamax                  //
	Rprop                   //
	ASGD                    //
	MeanStep                // p is a mean of what g has been

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
	Adam8bit:     {Name: "adam8bit", Group: Updates, Class: Floats, Fused: true, min: 2, max: many, Params: 7, infer: inferAdam8bit, flops: multiFlops, Gradient: noGradient(isUpdate), Tolerance: Coded},

	RMSprop: {Name: "rmsprop", Rule: &Rule{State: []string{"v"}, Settings: []string{"alpha", "eps"},
		Text: pull + meanSquare + "p = p - lr * (g / (sqrt(v) + eps))"}},
	RMSpropMomentum: {Name: "rmsprop_momentum", Rule: &Rule{State: []string{"v", "buf"}, Settings: []string{"alpha", "eps", "momentum"},
		Text: pull + meanSquare + "buf = momentum*buf + g / (sqrt(v) + eps); p = p - lr*buf"}},
	RMSpropCentered: {Name: "rmsprop_centered", Rule: &Rule{State: []string{"v", "m"}, Settings: []string{"alpha", "eps"},
		Text: pull + meanSquare + centre + "p = p - lr * (g / (sqrt(variance) + eps))"}},
	RMSpropCenteredMomentum: {Name: "rmsprop_centered_momentum", Rule: &Rule{State: []string{"v", "m", "buf"}, Settings: []string{"alpha", "eps", "momentum"},
		Text: pull + meanSquare + centre + "buf = momentum*buf + g / (sqrt(variance) + eps); p = p - lr*buf"}},
	Adagrad: {Name: "adagrad", Rule: &Rule{State: []string{"sum"}, Settings: []string{"lr_decay", "eps"},
		Text: pull + "sum = sum + g*g; p = p - lr / (1 + (t-1)*lr_decay) * (g / (sqrt(sum) + eps))"}},
	NAdam: {Name: "nadam", Rule: &Rule{State: []string{"m", "v"}, Settings: []string{"beta1", "beta2", "eps", "fading"}, Numbers: []string{"mus"},
		Text: pull + shrink + moments + "f = pow(fading, t); mu = beta1*(1 - 0.5*f); next = beta1*(1 - 0.5*f*fading); " +
			"root = sqrt(v) / sqrt(1 - pow(beta2, t)) + eps; p = p - lr*(1-mu)/(1-mus)*g/root - lr*next/(1-mus*next)*m/root"}},
	RAdam: {Name: "radam", Rule: &Rule{State: []string{"m", "v"}, Settings: []string{"beta1", "beta2", "eps"},
		Text: pull + shrink + moments + "k = pow(beta2, t); most = 2/(1-beta2) - 1; rho = most - 2*t*k/(1-k); " +
			"rect = sqrt((rho-4)*(rho-2)*most / ((most-4)*(most-2)*rho) * (1-k)); " +
			"p = p - lr/(1-pow(beta1, t))*m * where(rho > 5, rect/(sqrt(v) + eps), 1)"}},
	AMSGrad: {Name: "amsgrad", Rule: &Rule{State: []string{"m", "v", "top"}, Settings: []string{"beta1", "beta2", "eps"},
		Text: pull + shrink + moments + "top = maximum(top, v); p = p - lr/(1-pow(beta1, t))*m / (sqrt(top)/sqrt(1-pow(beta2, t)) + eps)"}},
	Lion: {Name: "lion", Rule: &Rule{State: []string{"m"}, Settings: []string{"beta1", "beta2"},
		Text: pull + shrink + "p = p - lr*sign(beta1*m + (1-beta1)*g); m = beta2*m + (1-beta2)*g"}},
	ScheduleFree: {Name: "schedule_free", Rule: &Rule{State: []string{"z", "v"}, Settings: []string{"beta1", "beta2", "eps"}, Numbers: []string{"share"},
		Text: pull + "v = beta2*v + (1-beta2)*g*g; u = g / (sqrt(v)/sqrt(1-pow(beta2, t)) + eps) + decay*p; " +
			"p = p + share*(z-p) + lr*(beta1*(1-share)-1)*u; z = z - lr*u"}},
	Adadelta: {Name: "adadelta", Rule: &Rule{State: []string{"v", "acc"}, Settings: []string{"rho", "eps"},
		Text: pull + "v = rho*v + (1-rho)*g*g; u = sqrt(acc+eps)/sqrt(v+eps)*g; acc = rho*acc + (1-rho)*u*u; p = p - lr*u"}},
	Adamax: {Name: "adamax", Rule: &Rule{State: []string{"m", "top"}, Settings: []string{"beta1", "beta2", "eps"},
		Text: pull + "m = m + (1-beta1)*(g-m); top = maximum(beta2*top, abs(g)+eps); p = p - lr/(1-pow(beta1, t))*m/top"}},
	Rprop: {Name: "rprop", Rule: &Rule{State: []string{"prev", "step"}, Settings: []string{"less", "more", "least", "most"},
		Text: pull + "agree = g*prev; step = where(t > 1, step, lr) * where(agree > 0, more, where(agree < 0, less, 1)); " +
			"step = minimum(maximum(step, least), most); g = where(agree < 0, 0, g); p = p - where(lr > 0, step, 0)*sign(g); prev = g"}},
	ASGD: {Name: "asgd", Rule: &Rule{State: []string{"ax"}, Settings: []string{"lambd", "t0"}, Numbers: []string{"eta"},
		Text: pull + "p = p*(1 - lambd*eta) - eta*g; n = t - 1 - t0; ax = where(n > 1, p + (1 - 1/n)*(ax-p), p)"}},
	MeanStep: {Name: "mean_step", Rule: &Rule{Numbers: []string{"share"}, Text: "p = p + share*(g-p)", Part: true}},
}

// Parts of rules.
const (
	pull       = "g = g + coupled*p; "
	shrink     = "p = p*(1 - lr*decay); "
	moments    = "m = m + (1-beta1)*(g-m); v = beta2*v + (1-beta2)*g*g; "
	meanSquare = "v = alpha*v + (1-alpha)*g*g; "
	centre     = "m = m + (1-alpha)*(g-m); variance = maximum(v - m*m, 0); "
)
