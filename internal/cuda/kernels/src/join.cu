// Cat: operands joined along a dimension are rows side by side. The operands travel in a table; blockIdx.y is the
// operand, whose elements the blocks of that row share, 16 bytes to a thread where all rows allow.
//
//warpline:module join_b8 -DT=u8 -DNAME(op)=op##_b8
//warpline:module join_b16 -DT=u16 -DNAME(op)=op##_b16
//warpline:module join_b32 -DT=u32 -DNAME(op)=op##_b32
//warpline:module join_b64 -DT=u64 -DNAME(op)=op##_b64
#include "index.cuh"

// Joined is up to 64 operands; its twin in Go is joined.
struct Joined {
	struct {
		const T *in;
		i64 begin; // in a row of the result
		Divisor64 width;
	} part[64];
};

KERNEL(256) NAME(cat)(T *out, Joined t, i64 rows, i64 total) {
	const int N = 16 / sizeof(T);
	const T *in = t.part[blockIdx.y].in;
	i64 begin = t.part[blockIdx.y].begin;
	Divisor64 width = t.part[blockIdx.y].width;
	i64 n = rows * width.by;
	if ((width.by | begin | total) % N == 0 && aligned(in, 16) && aligned(out, 16)) {
		for (i64 i = globalThread() * N; i < n; i += globalThreads() * N) {
			i64 column = i, row = width.split(column);
			storeWhole<N>(out + row * total + begin + column, load<N>(in + i, true));
		}
		return;
	}
	for (i64 i = globalThread(); i < n; i += globalThreads()) {
		i64 column = i, row = width.split(column);
		out[row * total + begin + column] = in[i];
	}
}
