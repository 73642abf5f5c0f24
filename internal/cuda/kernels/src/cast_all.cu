// Conversions of many float32 tensors in one launch.
//
//warpline:module cast_all_f16 -DT=f16 -DNAME(op)=op##_f16
//warpline:module cast_all_bf16 -DT=bf16 -DNAME(op)=op##_bf16
#include "index.cuh"
#include "tensors.cuh"

KERNEL(256) NAME(cast_all)(Tensors<f32, 1, T, 1, 0, 144> t) {
	const int N = 4;
	u32 m = t.mine();
	i64 to = t.to(m);
	const f32 *x = t.in[0][m];
	T *y = t.out[0][m];
	bool whole = aligned(x, 16) && aligned(y, 8);
	for (i64 i = t.from(m) + threadIdx.x * N; i < to; i += 256 * N) {
		Vec<T, N> v;
		if (whole && i + N <= to) {
			auto wide = load<N>(x + i, true);
#pragma unroll
			for (int k = 0; k < N; k++)
				v.v[k] = narrow<T>(wide.v[k]);
			storeWhole<N>(y + i, v);
		} else {
			for (int k = 0; k < N && i + k < to; k++)
				y[i + k] = narrow<T>(x[i + k]);
		}
	}
}
