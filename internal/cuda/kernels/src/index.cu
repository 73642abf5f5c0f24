// What moves elements without looking into them: Gather, Embedding and Pad, for elements of 1, 2, 4 and 8 bytes. A
// thread makes an element of the result, or 16 bytes of a row where its length and place allow. Where an index is out of
// range the result is zeros.
//
//warpline:module index_b8 -DT=u8 -DNAME(op)=op##_b8
//warpline:module index_b16 -DT=u16 -DNAME(op)=op##_b16
//warpline:module index_b32 -DT=u32 -DNAME(op)=op##_b32
//warpline:module index_b64 -DT=u64 -DNAME(op)=op##_b64
#include "index.cuh"

// gather takes out[…i…] from x[…idx[…i…]…]; start is where x has index 0, in the order of idx.
KERNEL(256) NAME(gather)(T *out, const T *__restrict__ x, const i64 *__restrict__ idx, i64 n, i64 size, i64 step, Strided start, Fault *fault, u32 launch) {
	for (i64 i = globalThread(); i < n; i += globalThreads()) {
		i64 v = idx[i];
		bool in = u64(v) < u64(size);
		if (!in)
			outOfRange(fault, launch, v, size);
		out[i] = in ? x[start.at(i) + v * step] : T();
	}
}

// Rows is a table of rows of width elements, or of vectors of 16 bytes.
struct Rows {
	i64 n, size; // indices, and rows of the table
	Divisor64 width, vectors;
};

template <class V> DEVICE void takeRows(V *out, const V *w, const i64 *idx, i64 n, i64 size, const Divisor64 &width, Fault *fault, u32 launch) {
	for (i64 i = globalThread(); i < n * i64(width.by); i += globalThreads()) {
		i64 column = i, row = width.split(column), v = idx[row];
		bool in = u64(v) < u64(size);
		if (!in && column == 0)
			outOfRange(fault, launch, v, size);
		out[i] = in ? w[v * width.by + column] : V();
	}
}

KERNEL(256) NAME(embedding)(T *out, const T *__restrict__ w, const i64 *__restrict__ idx, Rows r, Fault *fault, u32 launch) {
	typedef Words<16>::type V;
	if (r.vectors.by > 0 && aligned(out, 16) && aligned(w, 16))
		takeRows((V *)out, (const V *)w, idx, r.n, r.size, r.vectors, fault, launch);
	else
		takeRows(out, w, idx, r.n, r.size, r.width, fault, launch);
}

// Padding says where the elements of x, every so many from the first on, are along a dimension of the result.
struct Padding {
	i64 n; // elements of the result
	Divisor64 inner, along, every;
	i64 before, size; // of x along the dimension
};

KERNEL(256) NAME(pad)(T *out, const T *__restrict__ x, T value, Padding p) {
	for (i64 i = globalThread(); i < p.n; i += globalThreads()) {
		i64 l = i, j = p.inner.split(l), outer = p.along.split(j);
		T v = value;
		if (j -= p.before; j >= 0) {
			i64 at = p.every.split(j);
			if (j == 0 && at < p.size)
				v = x[(outer * p.size + at) * p.inner.by + l];
		}
		out[i] = v;
	}
}
