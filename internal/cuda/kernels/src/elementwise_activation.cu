// Activations and their derivatives, of which a training has one; math.cuh has the algorithms, layout.cuh the order of the
// elements.
//
//warpline:module activation_gelu_f32 -DELEMENT=f32 -DNAME(op)=op##_f32 -DGELU
//warpline:module activation_gelu_f64 -DELEMENT=f64 -DNAME(op)=op##_f64 -DGELU
//warpline:module activation_gelu_f16 -DELEMENT=f16 -DNAME(op)=op##_f16 -DGELU
//warpline:module activation_gelu_bf16 -DELEMENT=bf16 -DNAME(op)=op##_bf16 -DGELU
//warpline:module activation_gelu_tanh_f32 -DELEMENT=f32 -DNAME(op)=op##_f32 -DGELU_TANH
//warpline:module activation_gelu_tanh_f64 -DELEMENT=f64 -DNAME(op)=op##_f64 -DGELU_TANH
//warpline:module activation_gelu_tanh_f16 -DELEMENT=f16 -DNAME(op)=op##_f16 -DGELU_TANH
//warpline:module activation_gelu_tanh_bf16 -DELEMENT=bf16 -DNAME(op)=op##_bf16 -DGELU_TANH
//warpline:module activation_silu_f32 -DELEMENT=f32 -DNAME(op)=op##_f32 -DSILU
//warpline:module activation_silu_f64 -DELEMENT=f64 -DNAME(op)=op##_f64 -DSILU
//warpline:module activation_silu_f16 -DELEMENT=f16 -DNAME(op)=op##_f16 -DSILU
//warpline:module activation_silu_bf16 -DELEMENT=bf16 -DNAME(op)=op##_bf16 -DSILU
#include "elementwise.cuh"

const int W = longWidth;
const bool quick = false;

#if defined GELU
UNARY(gelu, gelu)
BINARY(gelu_grad, geluGrad)
#elif defined GELU_TANH
UNARY(gelu_tanh, geluTanh)
BINARY(gelu_tanh_grad, geluTanhGrad)
#elif defined SILU
UNARY(silu, silu)
BINARY(silu_grad, siluGrad)
#endif
