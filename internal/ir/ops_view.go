package ir

// The codes of views.
const (
	Reshape Code = 1 + iota // x in the shape of Attr.Out
	Permute                 // dimension i of the result is dimension Attr.Dims[i] of x
	Expand                  // x broadcast to the shape of Attr.Out, with stride 0 where it repeats
	Slice                   // x[Dims[0] : Dims[0]+Dims[1]·Dims[2] : Dims[2]] along Axis: start, length, step

	endViews
)

var viewRows = rows{
	Reshape: {Name: "reshape", Group: Views, min: 1, infer: inferReshape, reads: reads{fields: fieldOut}, Gradient: rule("reshape"), Tolerance: Exact},
	Permute: {Name: "permute", Group: Views, min: 1, infer: inferPermute, reads: reads{fields: fieldDims, dims: perRank}, Gradient: rule("permute"), Tolerance: Exact},
	Expand:  {Name: "expand", Group: Views, min: 1, infer: inferExpand, reads: reads{fields: fieldOut}, Gradient: rule("expand"), Tolerance: Exact},
	Slice:   {Name: "slice", Group: Views, min: 1, infer: inferSlice, reads: reads{fields: fieldAxis | fieldDims, dims: 3}, Gradient: rule("slice"), Tolerance: Exact},
}
