// The operands of many tensors in one launch. Their addresses travel in parameter space, a table of up to n tensors that fits
// in 4 KiB. A block takes a chunk of 4096 elements, and finds its tensor by bisection in the table of first blocks.
#pragma once
#include "base.cuh"

const i64 chunk = 4096;

// Tensors has ins operands, outs results and numbers addresses of a number for each tensor; its twin in Go is tensorTable.
template <class T, int ins, class U, int outs, int numbers, int n> struct Tensors {
	const T *in[ins][n];
	U *out[outs][n];
	const i64 *number[numbers * n]; // of the update
	i64 size[n];
	u32 first[n + 2]; // block of each, then the number of blocks

	// mine is the tensor of this block.
	DEVICE u32 mine() const {
		u32 low = 0, high = n;
		while (high - low > 1) {
			u32 mid = (low + high) / 2;
			if (first[mid] <= blockIdx.x)
				low = mid;
			else
				high = mid;
		}
		return low;
	}

	// from and to are where the block's chunk of its tensor begins and ends.
	DEVICE i64 from(u32 mine) const { return i64(blockIdx.x - first[mine]) * chunk; }
	DEVICE i64 to(u32 mine) const {
		i64 end = from(mine) + chunk;
		return end < size[mine] ? end : size[mine];
	}
};
