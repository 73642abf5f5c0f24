// One step of a loop whose steps are launches, compiled by examples/sim/build.sh for V100:
//
//	ARCH=sm_70 sh ../../examples/sim/build.sh again.cu && mv again.ptx testdata
#include "cuda.h"

// again: numbers that grow by a counter, which the step before has set.
extern "C" __global__ void again(unsigned *results, unsigned *counter, int r, size_t n) {
	size_t stride = size_t(blockDim.x) * gridDim.x;
	for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
		if (i == 0) counter[(r + 1) % 2] = r + 1;
		if (r == 0)
			results[i] = i;
		else
			results[i] += counter[r % 2];
	}
}
