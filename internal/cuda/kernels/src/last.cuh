// How the last of the blocks that sum parts adds these, so that no second kernel does.
#pragma once
#include "base.cuh"

// lastOfColumn is whether the other blocks of this block's column of the grid have left what they wrote before, which this
// block then sees. Which block that is depends on the schedule; what it adds, in the order of the parts, does not. tickets
// has a number for each column of a grid of several rows, 0 before and after every launch.
DEVICE bool lastOfColumn(u32 *tickets) {
	if (gridDim.y == 1)
		return true;
	__shared__ bool last;
	barrier();
	if (threadIdx.x == 0) {
		u32 before;
		asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(tickets + blockIdx.x), "r"(gridDim.y - 1) : "memory");
		last = before == gridDim.y - 1;
	}
	barrier();
	return last;
}

// inOrder adds the parts of a number: n of them, so far apart.
template <class W> DEVICE W inOrder(const W *parts, u32 n, i64 apart) {
	W sum = 0;
#pragma unroll 8
	for (u32 i = 0; i < n; i++)
		sum += parts[i * apart];
	return sum;
}
