// The kernels of attention_tiled.cuh, attention or with GRAD its gradients. The including file has defined ForwardKit,
// QueryKit and KeyKit.
#pragma once
#include "attention_tiled.cuh"

// HOT is the head of a kernel of which so many blocks fit a multiprocessor: three with 168 registers a thread, two with
// 255. The gradients of keys and values, float32 rows of 128, and wide rows of 16 bits under a mask would spill some of 168.
#define HOT(blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)

constexpr bool maskedPairs = MASKED && sizeof(ELEM) == 2;

#ifndef GRAD
HOT(sizeof(ELEM) * WIDTH >= 512 || maskedPairs && WIDTH >= 64 ? 2 : 3) NAME(attention_tiled)(ELEM *o, f32 *lse, const ELEM *q, const ELEM *k, const ELEM *v, const ELEM *mask, Heads h, f32 scale) {
	forward<ForwardKit>(o, lse, q, k, v, mask, h, scale);
}
#else
HOT(maskedPairs && WIDTH > 64 ? 2 : 3) NAME(attentiongrad_tiled_q)(ELEM *dq, const ELEM *g, const ELEM *q, const ELEM *k, const ELEM *v, const ELEM *mask,
                                const Statistic<f32> *stats, Heads h, f32 scale) {
	queryGrad<QueryKit>(dq, Operands<ELEM>{g, q, k, v, mask, stats, h, scale});
}
HOT(2) NAME(attentiongrad_tiled_kv)(ELEM *dk, ELEM *dv, const ELEM *g, const ELEM *q, const ELEM *k, const ELEM *v,
                                 const ELEM *mask, const Statistic<f32> *stats, Heads h, f32 scale) {
	keyGrad<KeyKit>(dk, dv, Operands<ELEM>{g, q, k, v, mask, stats, h, scale});
}
#endif
