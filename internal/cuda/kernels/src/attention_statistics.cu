// The statistics of queries that all gradients of an attention use, in stats[heads][t padded to 64]. A warp takes a query.
//
//warpline:module attention_statistics_f32 -DELEM=f32 -DNAME(op)=op##_f32
//warpline:module attention_statistics_f64 -DELEM=f64 -DNAME(op)=op##_f64
//warpline:module attention_statistics_f16 -DELEM=f16 -DNAME(op)=op##_f16
//warpline:module attention_statistics_bf16 -DELEM=bf16 -DNAME(op)=op##_bf16
#include "attention.cuh"

typedef wide<ELEM> STAT;

KERNEL(256) NAME(attention_statistics)(Statistic<STAT> *stats, const ELEM *g, const ELEM *o, const STAT *lse, Heads h) {
	for (i64 place = WarpTeam::first(); place < i64(h.count) * h.padded(); place += WarpTeam::stride()) {
		i32 query = i32(place % h.padded());
		Statistic<STAT> s = {infinity<STAT>, 0};
		if (query < h.t) {
			i64 head = place / h.padded(), row = head * h.t + query, at = h.place(h.o, head, query);
			sweep<ELEM>(WarpTeam{}, inSteps<perStep<ELEM>>(h.e, g + at, o + at), h.e, [&](auto width, i32 i) INLINED {
				auto a = load<width.value>(g + at + i), b = load<width.value>(o + at + i);
#pragma unroll
				for (int j = 0; j < width.value; j++)
					s.delta += a[j] * b[j];
			});
			s.delta = WarpTeam::all(s.delta, Plus{});
			if (lse[row] != -infinity<STAT>)
				s.shift = lse[row];
		}
		if (laneID() == 0)
			stats[place] = s;
	}
}
