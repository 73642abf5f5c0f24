package ir

// The codes of indexing. Indices are i64; one out of range is an error of the launch.
const (
	Gather        Code = endProducts + iota // out[…i…] = x[…idx[…i…]…] along Axis
	ScatterAdd                              // (x, idx, src) → x with src added at idx along Axis, in order
	Embedding                               // (w[v,d], idx[…]) → […,d]
	EmbeddingGrad                           // (g[…,d], idx[…]) → type Attr.Out of w
	Cat                                     // operands joined along Axis
	Pad                                     // p0 around x along Axis; Dims: before, after, between neighbours
	Sort                                    // x → its elements in order along Axis, equal ones as they were, NaN above all, and their i64 places; Descending; Dims: how many of the first, 0 for all
	LastAt                                  // (idx), or (key, idx) → along Axis, as Attr.Out is: the place of the last index that names it, of those with the greatest key, or if Descending the least, NaN before all; 0 without one; and whether there is one

	endIndexing
)

var indexRows = rows{
	Gather:        {Name: "gather", Group: Indexing, min: 2, infer: inferGather, reads: reads{fields: fieldAxis}, takes: true, Gradient: rule("gather"), Tolerance: Exact},
	ScatterAdd:    {Name: "scatter_add", Group: Indexing, Class: Numbers, min: 3, infer: inferScatterAdd, reads: reads{fields: fieldAxis}, flops: scatterFlops, Gradient: rule("scatter_add"), Tolerance: Sums},
	Embedding:     {Name: "embedding", Group: Indexing, min: 2, infer: inferEmbedding, takes: true, Gradient: rule("embedding"), Tolerance: Exact},
	EmbeddingGrad: {Name: "embedding_grad", Group: Indexing, Class: Numbers, min: 2, infer: inferEmbeddingGrad, reads: reads{fields: fieldOut}, flops: perOperand(1), Gradient: rule("embedding_grad"), Tolerance: Sums},
	Cat:           {Name: "cat", Group: Indexing, min: 1, max: many, infer: inferCat, reads: reads{fields: fieldAxis}, Gradient: rule("cat"), Tolerance: Exact},
	Sort:          {Name: "sort", Group: Indexing, Class: Numbers, Fused: true, min: 1, infer: inferSort, reads: reads{fields: fieldAxis | fieldFlag | fieldDims, dims: 1, flags: Descending}, flops: perOperand(1), Gradient: rule("sort"), Tolerance: Exact},
	LastAt:        {Name: "last_at", Group: Indexing, Class: Numbers, Fused: true, min: 1, max: 2, infer: inferLastAt, reads: reads{fields: fieldAxis | fieldFlag | fieldOut, flags: Descending}, flops: perOperand(1), Gradient: noGradient(isIndices), Tolerance: Exact},
	Pad:           {Name: "pad", Group: Indexing, min: 1, Params: 1, infer: inferPad, reads: reads{fields: fieldAxis | fieldDims, dims: 3}, Gradient: rule("pad"), Tolerance: Exact},
}
