package ir

// The codes of reductions over Attr.Axes; reduced dimensions stay as 1 when Attr.Keep.
const (
	Sum Code = endElementwise + iota
	Prod
	ReduceMax // NaN wins
	ReduceMin
	ArgMax // over Attr.Axis, i64: the first of equals, NaN wins
	ArgMin
	CumSum // along Attr.Axis

	endReductions
)

var reductionRows = rows{
	Sum:       {Name: "sum", Group: Reduction, Class: Numbers, Strides: AnyStride, min: 1, infer: inferReduce, reads: reads{fields: fieldAxes | fieldKeep}, flops: perOperand(1), Gradient: rule("sum"), Autocast: CastWideOnCards, Tolerance: Sums},
	Prod:      {Name: "prod", Group: Reduction, Class: Numbers, Strides: AnyStride, min: 1, infer: inferReduce, reads: reads{fields: fieldAxes | fieldKeep}, flops: perOperand(1), Gradient: rule("prod"), Autocast: CastWide, Tolerance: Factors},
	ReduceMax: {Name: "reduce_max", Group: Reduction, Class: Ordered, Strides: AnyStride, min: 1, infer: inferReduce, reads: reads{fields: fieldAxes | fieldKeep}, flops: perOperand(1), Gradient: rule("extreme"), Tolerance: Exact},
	ReduceMin: {Name: "reduce_min", Group: Reduction, Class: Ordered, Strides: AnyStride, min: 1, infer: inferReduce, reads: reads{fields: fieldAxes | fieldKeep}, flops: perOperand(1), Gradient: rule("extreme"), Tolerance: Exact},
	ArgMax:    {Name: "arg_max", Group: Reduction, Class: Numbers, min: 1, infer: inferArg, reads: reads{fields: fieldAxis | fieldKeep}, flops: perOperand(1), Gradient: noGradient(isIndices), Tolerance: Exact},
	ArgMin:    {Name: "arg_min", Group: Reduction, Class: Numbers, min: 1, infer: inferArg, reads: reads{fields: fieldAxis | fieldKeep}, flops: perOperand(1), Gradient: noGradient(isIndices), Tolerance: Exact},
	CumSum:    {Name: "cumsum", Group: Reduction, Class: Numbers, min: 1, infer: inferAlong, reads: reads{fields: fieldAxis}, flops: perResult(1), Gradient: rule("cumsum"), Autocast: CastWideOnCards, Tolerance: Sums},
}
