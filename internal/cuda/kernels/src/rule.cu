// Optimizers whose update is a rule in their row (package ir): NUMBERS and STEPS are its text, as gen writes it, one module
// per rule and element type. What is one number for a parameter is computed in f64 by one thread of a block, since cards have
// few units for f64.
//
//warpline:rules
#include "update.cuh"
#include "math.cuh"

typedef Tensors<T, 5, T, 4, 2, 36> Updated;
typedef W C;

KERNEL(256) FUNCTION(Updated t, Scale scaling SETTINGS, Word<i64> skip) {
	__shared__ f64 computed[COUNT];
	if (threadIdx.x == 0) {
		const u32 mine = t.mine();
		NUMBERS
	}
	barrier();
	C scale = scaling.value();
	LOADS
	each<OPERANDS>(t, skip != 0, [&](State<OPERANDS> &s, int k) {
		s.v[1][k] *= scale;
		STEPS
	});
}
