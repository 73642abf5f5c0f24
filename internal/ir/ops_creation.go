package ir

// The codes of creation and movement. Random ops take the key as p2 (an integer); element i depends on (key, i) only.
const (
	Full    Code = endViews + iota // p0 everywhere, type Attr.Out
	Iota                           // p0 + i·p1 in row-major order, type Attr.Out
	Uniform                        // uniform in [p0, p1), type Attr.Out
	Normal                         // mean p0, standard deviation p1, type Attr.Out
	RandInt                        // integers in [p0, p1), type Attr.Out; p0 and p1 are integers

	Copy // x into the (possibly strided) type Attr.Out, or row-major when Attr.Out is nil
	Cast // x converted to Attr.DType: to nearest even, towards zero into integers

	endCreation
)

var creationRows = rows{
	Full:    {Name: "full", Group: Creation, Params: 1, infer: given, reads: reads{fields: fieldOut}, Gradient: noGradient(noOperands), Tolerance: Exact},
	Iota:    {Name: "iota", Group: Creation, Class: Numbers, Params: 2, infer: given, reads: reads{fields: fieldOut}, flops: perResult(2), Gradient: noGradient(noOperands), Tolerance: Rounded},
	Uniform: {Name: "uniform", Group: Creation, Class: Floats, Params: 3, infer: given, reads: reads{fields: fieldOut}, flops: perResult(2), Gradient: noGradient(noOperands), Tolerance: Exact},
	Normal:  {Name: "normal", Group: Creation, Class: Floats, Params: 3, infer: given, reads: reads{fields: fieldOut}, flops: perResult(2), Gradient: noGradient(noOperands), Tolerance: Exact},
	RandInt: {Name: "rand_int", Group: Creation, Class: Numbers, Params: 3, infer: given, reads: reads{fields: fieldOut}, flops: perResult(2), Gradient: noGradient(noOperands), Tolerance: Exact},

	Copy: {Name: "copy", Group: Movement, Strides: AnyStride, min: 1, infer: inferCopy, reads: reads{fields: fieldOut}, Gradient: rule("pass"), Tolerance: Exact},
	Cast: {Name: "cast", Group: Movement, Strides: AnyStride, min: 1, infer: inferCast, reads: reads{fields: fieldDType}, Gradient: rule("cast"), Tolerance: Exact},
}
