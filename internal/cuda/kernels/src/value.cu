// Elementwise ops whose value is an expression in their row (package ir): VALUE is its steps, as gen writes them, one
// module per op and element type. A row that is by hand has kernels in other sources.
//
//warpline:values
#include "elementwise.cuh"

const int W = longWidth;
const bool quick = false;

#if OPERANDS == 1
KERNEL(256) FUNCTION(T *out, const T *x, const Layout<1> l PARAMETERS) {
	map<W, quick>(out, x, l, [=](C x) -> C { VALUE });
}
#else
KERNEL(256) FUNCTION(T *out, const T *x, const T *y, const Layout<2> l PARAMETERS) {
	map<W, quick>(out, x, y, l, [=](C x, C y) -> C { VALUE });
}
#endif
