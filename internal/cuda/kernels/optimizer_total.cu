// The sum of what sum_squares has left, by one block.
//
//warpline:module optimizer_total
#include "base.cuh"

DEVICE f64 total(const f64 *sums, i64 n) {
	f64 sum = 0;
	for (i64 i = threadIdx.x; i < n; i += 256)
		sum += sums[i];
	for (int m = 16; m > 0; m /= 2)
		sum += shuffleXor(sum, m);
	__shared__ f64 warps[8];
	if (laneID() == 0)
		warps[threadIdx.x / 32] = sum;
	barrier();
	if (threadIdx.x == 0)
		for (int w = 1; w < 8; w++)
			sum += warps[w];
	return sum;
}

KERNEL(256) sum_squares_total_f32(f32 *out, const f64 *__restrict__ sums, i64 n) {
	f64 sum = total(sums, n);
	if (threadIdx.x == 0)
		*out = f32(sum);
}

KERNEL(256) sum_squares_total_f64(f64 *out, const f64 *__restrict__ sums, i64 n) {
	f64 sum = total(sums, n);
	if (threadIdx.x == 0)
		*out = sum;
}
