// Convolutions as products, see conv.cuh, in f32 without tensor cores.
//
// conv64 and conv128 make tiles of y or of x's gradient, conv_weight64 and conv_weight128 of w's. Weights come 16 bytes at
// a time where their rows allow, what the windows see element by element. conv_taps and conv_turn prepare for them: the
// table of taps, and for x's gradient the weight with its channels in each other's place.
//
//warpline:module conv_f32 -DT=f32 -DSIDE=64 -DNAME(op)=op##64_f32 -DTYPED(op)=op##_f32
//warpline:module conv_large_f32 -DT=f32 -DSIDE=128 -DNAME(op)=op##128_f32 -DTYPED(op)=op##_f32
#include "ffma.cuh"
#include "conv.cuh"

extern "C" __global__ void __launch_bounds__(SIDE *SIDE / 64, SIDE == 64 ? 4 : 1) NAME(conv)(T *__restrict__ to, const T *__restrict__ w, const T *__restrict__ from, const T *__restrict__ bias, const Tap *__restrict__ taps, Sides p, Conv s, i32 input) {
	alignas(1024) extern __shared__ u8 shared[];
	convolve<FmaBlock<SIDE, SIDE, true, false>, 2>(shared, to, w, from, bias, taps, p, s, input);
}

extern "C" __global__ void __launch_bounds__(SIDE *SIDE / 64, SIDE == 64 ? 4 : 1) NAME(conv_weight)(T *__restrict__ dw, const T *__restrict__ g, const T *__restrict__ x, f32 *__restrict__ partial, const Tap *__restrict__ taps, Sides p, Conv s, i32 splits, i32 perSplit) {
	alignas(1024) extern __shared__ u8 shared[];
	convolveWeight<FmaBlock<SIDE, SIDE, true, true>, 2>(shared, dw, g, x, partial, taps, p, s, splits, perSplit);
}

#if SIDE == 64
KERNEL(128) TYPED(conv_taps)(Tap *taps, Conv s, i32 count, i32 padded, i32 input) { fillTaps(taps, s, count, padded, input); }

KERNEL(256) TYPED(conv_turn)(T *__restrict__ turned, const T *__restrict__ w, Conv s) { turnWeight(turned, w, s); }
#endif
