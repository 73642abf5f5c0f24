// Convolutions as products, see conv.cuh, on the tensor cores, with sums in f32: of 16-bit tensors, and of f32 ones rounded
// to TF32.
//
// conv64 and conv128 make tiles of y or of x's gradient, conv_weight64 and conv_weight128 of w's. Weights come 16 bytes at
// a time where their rows allow, what the windows see element by element. conv_taps and conv_turn prepare for them: the
// table of taps, and for x's gradient the weight with its channels in each other's place.
//
//warpline:module conv_f16 -DT=f16 -DSIDE=64 -DNAME(op)=op##64_f16 -DTYPED(op)=op##_f16
//warpline:module conv_large_f16 -DT=f16 -DSIDE=128 -DNAME(op)=op##128_f16 -DTYPED(op)=op##_f16
//warpline:module conv_bf16 -DT=bf16 -DSIDE=64 -DNAME(op)=op##64_bf16 -DTYPED(op)=op##_bf16
//warpline:module conv_large_bf16 -DT=bf16 -DSIDE=128 -DNAME(op)=op##128_bf16 -DTYPED(op)=op##_bf16
//warpline:module conv_tf32 -DT=f32 -DTENSOR=tf32 -DSIDE=64 -DNAME(op)=op##64_tf32 -DTYPED(op)=op##_tf32 @sm_80
//warpline:module conv_large_tf32 -DT=f32 -DTENSOR=tf32 -DSIDE=128 -DNAME(op)=op##128_tf32 -DTYPED(op)=op##_tf32 @sm_80
#include "tf32.cuh"
#include "conv.cuh"

#ifndef TENSOR
#define TENSOR T
#endif

KERNEL(128) NAME(conv)(T *__restrict__ to, const T *__restrict__ w, const T *__restrict__ from, const T *__restrict__ bias, const Tap *__restrict__ taps, Sides p, Conv s, i32 input) {
	alignas(1024) extern __shared__ u8 shared[];
	convolve<MmaBlock<TENSOR, SIDE, SIDE, true, false>, 2>(shared, to, w, from, bias, taps, p, s, input);
}

KERNEL(128) NAME(conv_weight)(T *__restrict__ dw, const T *__restrict__ g, const T *__restrict__ x, f32 *__restrict__ partial, const Tap *__restrict__ taps, Sides p, Conv s, i32 splits, i32 perSplit) {
	alignas(1024) extern __shared__ u8 shared[];
	convolveWeight<MmaBlock<TENSOR, SIDE, SIDE, true, true>, 2>(shared, dw, g, x, partial, taps, p, s, splits, perSplit);
}

#if SIDE == 64
KERNEL(128) TYPED(conv_taps)(Tap *taps, Conv s, i32 count, i32 padded, i32 input) { fillTaps(taps, s, count, padded, input); }

KERNEL(256) TYPED(conv_turn)(T *__restrict__ turned, const T *__restrict__ w, Conv s) { turnWeight(turned, w, s); }
#endif
