// What follows the products in a step of an LSTM, and its gradient: threads take cells in turn, whose gates are h apart. It is there
// for f32; a step in another type is made of elementwise kernels.
//
//warpline:module lstm_f32
#include "math.cuh"

KERNEL(256) lstm_step_f32(f32 *hidden, f32 *next, f32 *gates, const f32 *__restrict__ x, const f32 *__restrict__ r, const f32 *__restrict__ cell, i64 n, i64 h) {
	for (i64 j = i64(blockIdx.x) * 256 + threadIdx.x; j < n; j += i64(gridDim.x) * 256) {
		i64 at = (j / h * 3) * h + j; // of the first gate
		f32 y[4];
		for (int k = 0; k < 4; k++) {
			f32 a = x[at + k * h] + r[at + k * h];
			y[k] = k == 2 ? tanh(a) : sigmoid(a);
			gates[at + k * h] = y[k];
		}
		f32 c = y[1] * cell[j] + y[0] * y[2];
		next[j] = c;
		hidden[j] = y[3] * tanh(c);
	}
}

KERNEL(256) lstm_step_grad_f32(f32 *da, f32 *dc, const f32 *__restrict__ dh, const f32 *__restrict__ dnext, const f32 *__restrict__ gates,
                               const f32 *__restrict__ cell, const f32 *__restrict__ next, i64 n, i64 h) {
	for (i64 j = i64(blockIdx.x) * 256 + threadIdx.x; j < n; j += i64(gridDim.x) * 256) {
		i64 at = (j / h * 3) * h + j;
		f32 i = gates[at], f = gates[at + h], g = gates[at + 2 * h], o = gates[at + 3 * h];
		f32 t = tanh(next[j]), d = dnext[j] + dh[j] * o * (1 - t * t);
		da[at] = d * g * i * (1 - i);
		da[at + h] = d * cell[j] * f * (1 - f);
		da[at + 2 * h] = d * i * (1 - g * g);
		da[at + 3 * h] = dh[j] * t * o * (1 - o);
		dc[j] = d * f;
	}
}
