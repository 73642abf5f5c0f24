// Activations and their derivatives; math.cuh has the algorithms, layout.cuh the order of the elements.
//
//warpline:module activation_f32 -DELEMENT=f32 -DNAME(op)=op##_f32
//warpline:module activation_f64 -DELEMENT=f64 -DNAME(op)=op##_f64
//warpline:module activation_f16 -DELEMENT=f16 -DNAME(op)=op##_f16
//warpline:module activation_bf16 -DELEMENT=bf16 -DNAME(op)=op##_bf16
#include "elementwise.cuh"

const int W = longWidth;
const bool quick = false;

UNARY(gelu, gelu)
UNARY(gelu_tanh, geluTanh)
UNARY(silu, silu)
BINARY(gelu_grad, geluGrad)
BINARY(gelu_tanh_grad, geluTanhGrad)
BINARY(silu_grad, siluGrad)
