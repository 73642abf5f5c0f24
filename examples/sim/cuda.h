// The words of CUDA C++ that kernels use, for clang without NVIDIA's headers or libraries. Include it in the place of
// cuda_runtime.h, cuda_fp16.h, cuda_bf16.h, cuda_pipeline.h, stdio.h and assert.h. docs/simulator.md lists what it has.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict
#define __WORD __device__ __forceinline__ __attribute__((nodebug)) // what is found in a word is of the line that has it
#include <__clang_cuda_builtin_vars.h> // threadIdx, blockIdx, blockDim, gridDim, warpSize

typedef __SIZE_TYPE__ size_t;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t, uint;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long uintptr_t;
typedef unsigned char uchar;
typedef unsigned short ushort;

// Vectors: float4 and the like, with make_float4.
#define __VECTOR(T, name) \
	struct __align__(2 * sizeof(T)) name##2 { T x, y; }; \
	struct name##3 { T x, y, z; }; \
	struct __align__(sizeof(T) < 8 ? 4 * sizeof(T) : 16) name##4 { T x, y, z, w; }; \
	__WORD name##2 make_##name##2(T x, T y) { return {x, y}; } \
	__WORD name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
	__WORD name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
__VECTOR(char, char)
__VECTOR(unsigned char, uchar)
__VECTOR(short, short)
__VECTOR(unsigned short, ushort)
__VECTOR(int, int)
__VECTOR(unsigned, uint)
__VECTOR(long long, longlong)
__VECTOR(unsigned long long, ulonglong)
__VECTOR(float, float)
__VECTOR(double, double)

struct dim3 {
	unsigned x, y, z;
	__host__ __device__ constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
__WORD __cuda_builtin_threadIdx_t::operator uint3() const { return {x, y, z}; }
__WORD __cuda_builtin_blockIdx_t::operator uint3() const { return {x, y, z}; }
__WORD __cuda_builtin_blockDim_t::operator dim3() const { return dim3(x, y, z); }
__WORD __cuda_builtin_gridDim_t::operator dim3() const { return dim3(x, y, z); }

// Output and errors.
extern "C" __device__ int printf(const char *format, ...);
extern "C" __device__ __attribute__((noreturn)) void __assertfail(const char *text, const char *file, unsigned line, const char *function, size_t size);
#ifdef NDEBUG
#define assert(x) ((void)0)
#else
#define assert(x) ((x) ? (void)0 : __assertfail(#x, __FILE__, __LINE__, __func__, 1))
#endif
__WORD void __trap() { __builtin_trap(); }

// Barriers and fences. __syncthreads is clang's own.
__WORD int __syncthreads_count(int p) { return __nvvm_bar0_popc(p); }
__WORD int __syncthreads_and(int p) { return __nvvm_bar0_and(p); }
__WORD int __syncthreads_or(int p) { return __nvvm_bar0_or(p); }
__WORD void __syncwarp(unsigned mask = ~0u) { __nvvm_bar_warp_sync(mask); }
__WORD void __threadfence_block() { __nvvm_membar_cta(); }
__WORD void __threadfence() { __nvvm_membar_gl(); }
__WORD void __threadfence_system() { __nvvm_membar_sys(); }
__WORD void __nanosleep(unsigned ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }

// Votes.
__WORD int __all_sync(unsigned mask, int p) { return __nvvm_vote_all_sync(mask, p); }
__WORD int __any_sync(unsigned mask, int p) { return __nvvm_vote_any_sync(mask, p); }
__WORD unsigned __ballot_sync(unsigned mask, int p) { return __nvvm_vote_ballot_sync(mask, p); }
__WORD unsigned __activemask() {
	unsigned m;
	asm volatile("activemask.b32 %0;" : "=r"(m));
	return m;
}
__WORD unsigned __match_any_sync(unsigned mask, unsigned v) { return __nvvm_match_any_sync_i32(mask, v); }
__WORD unsigned __match_all_sync(unsigned mask, unsigned v, int *all) {
	unsigned same;
	asm volatile("{ .reg .pred p; match.all.sync.b32 %0|p, %2, %3; selp.s32 %1, 1, 0, p; }" : "=r"(same), "=r"(*all) : "r"(v), "r"(mask));
	return same;
}

// Shuffles of what has 4 or 8 bytes. A lane that no other reads from may pass what it never set (maybe_undef): otherwise clang
// takes it that every lane has set it, and drops the condition under which only one does.
#define __SHUFFLE(name, mode, Lane, clamp) \
	template <class T> __WORD T name(unsigned mask, __attribute__((maybe_undef)) T v, Lane lane, int width = 32) { \
		static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle of 4 or 8 bytes"); \
		int part[sizeof(T) / 4]; \
		__builtin_memcpy(part, &v, sizeof(T)); \
		for (int &p : part) \
			p = __nvvm_shfl_sync_##mode##_i32(mask, p, lane, (32 - width) << 8 | clamp); \
		__builtin_memcpy(&v, part, sizeof(T)); \
		return v; \
	}
__SHUFFLE(__shfl_sync, idx, int, 31)
__SHUFFLE(__shfl_up_sync, up, unsigned, 0)
__SHUFFLE(__shfl_down_sync, down, unsigned, 31)
__SHUFFLE(__shfl_xor_sync, bfly, int, 31)

// Sums and the like over a warp, of integers.
#define __REDUCE(name, op, T, type) \
	__WORD T __reduce_##name##_sync(unsigned mask, T v) { \
		T r; \
		asm volatile("redux.sync." op "." type " %0, %1, %2;" : "=r"(r) : "r"(v), "r"(mask)); \
		return r; \
	}
__REDUCE(add, "add", int, "s32")
__REDUCE(min, "min", int, "s32")
__REDUCE(max, "max", int, "s32")
__REDUCE(add, "add", unsigned, "u32")
__REDUCE(min, "min", unsigned, "u32")
__REDUCE(max, "max", unsigned, "u32")
__REDUCE(and, "and", unsigned, "b32")
__REDUCE(or, "or", unsigned, "b32")
__REDUCE(xor, "xor", unsigned, "b32")

// Atomics, at any generic address; what they return is the value before.
__WORD int atomicAdd(int *p, int v) { return __nvvm_atom_add_gen_i(p, v); }
__WORD unsigned atomicAdd(unsigned *p, unsigned v) { return __nvvm_atom_add_gen_i((int *)p, v); }
__WORD unsigned long long atomicAdd(unsigned long long *p, unsigned long long v) { return __nvvm_atom_add_gen_ll((long long *)p, v); }
__WORD float atomicAdd(float *p, float v) { return __nvvm_atom_add_gen_f(p, v); }
__WORD double atomicAdd(double *p, double v) { return __nvvm_atom_add_gen_d(p, v); }
__WORD int atomicSub(int *p, int v) { return atomicAdd(p, -v); }
__WORD unsigned atomicSub(unsigned *p, unsigned v) { return atomicAdd(p, -v); }
__WORD int atomicMin(int *p, int v) { return __nvvm_atom_min_gen_i(p, v); }
__WORD int atomicMax(int *p, int v) { return __nvvm_atom_max_gen_i(p, v); }
__WORD unsigned atomicMin(unsigned *p, unsigned v) { return __nvvm_atom_min_gen_ui(p, v); }
__WORD unsigned atomicMax(unsigned *p, unsigned v) { return __nvvm_atom_max_gen_ui(p, v); }
__WORD unsigned atomicInc(unsigned *p, unsigned v) { return __nvvm_atom_inc_gen_ui(p, v); }
__WORD unsigned atomicDec(unsigned *p, unsigned v) { return __nvvm_atom_dec_gen_ui(p, v); }
__WORD int atomicAnd(int *p, int v) { return __nvvm_atom_and_gen_i(p, v); }
__WORD int atomicOr(int *p, int v) { return __nvvm_atom_or_gen_i(p, v); }
__WORD int atomicXor(int *p, int v) { return __nvvm_atom_xor_gen_i(p, v); }
__WORD unsigned atomicAnd(unsigned *p, unsigned v) { return __nvvm_atom_and_gen_i((int *)p, v); }
__WORD unsigned atomicOr(unsigned *p, unsigned v) { return __nvvm_atom_or_gen_i((int *)p, v); }
__WORD unsigned atomicXor(unsigned *p, unsigned v) { return __nvvm_atom_xor_gen_i((int *)p, v); }
__WORD int atomicExch(int *p, int v) { return __nvvm_atom_xchg_gen_i(p, v); }
__WORD unsigned atomicExch(unsigned *p, unsigned v) { return __nvvm_atom_xchg_gen_i((int *)p, v); }
__WORD unsigned long long atomicExch(unsigned long long *p, unsigned long long v) { return __nvvm_atom_xchg_gen_ll((long long *)p, v); }
__WORD float atomicExch(float *p, float v) { return __builtin_bit_cast(float, __nvvm_atom_xchg_gen_i((int *)p, __builtin_bit_cast(int, v))); }
__WORD int atomicCAS(int *p, int old, int v) { return __nvvm_atom_cas_gen_i(p, old, v); }
__WORD unsigned atomicCAS(unsigned *p, unsigned old, unsigned v) { return __nvvm_atom_cas_gen_i((int *)p, old, v); }
__WORD unsigned long long atomicCAS(unsigned long long *p, unsigned long long old, unsigned long long v) { return __nvvm_atom_cas_gen_ll((long long *)p, old, v); }

// Bits.
__WORD int __popc(unsigned v) { return __builtin_popcount(v); }
__WORD int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
__WORD int __clz(int v) { return v ? __builtin_clz(v) : 32; }
__WORD int __clzll(long long v) { return v ? __builtin_clzll(v) : 64; }
__WORD int __ffs(int v) { return __builtin_ffs(v); }
__WORD int __ffsll(long long v) { return __builtin_ffsll(v); }
__WORD unsigned __brev(unsigned v) { return __builtin_bitreverse32(v); }
__WORD unsigned long long __brevll(unsigned long long v) { return __builtin_bitreverse64(v); }
__WORD int __float_as_int(float v) { return __builtin_bit_cast(int, v); }
__WORD unsigned __float_as_uint(float v) { return __builtin_bit_cast(unsigned, v); }
__WORD float __int_as_float(int v) { return __builtin_bit_cast(float, v); }
__WORD float __uint_as_float(unsigned v) { return __builtin_bit_cast(float, v); }
__WORD int __mulhi(int a, int b) { return (long long)a * b >> 32; }
__WORD unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
__WORD long long __double_as_longlong(double v) { return __builtin_bit_cast(long long, v); }
__WORD double __longlong_as_double(long long v) { return __builtin_bit_cast(double, v); }
#define __WORDS3(name, inst, T, A) \
	__WORD T name(A a, A b, T c) { \
		T r; \
		asm(inst " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); \
		return r; \
	}
__WORDS3(__byte_perm, "prmt.b32", unsigned, unsigned)
__WORDS3(__funnelshift_l, "shf.l.wrap.b32", unsigned, unsigned)
__WORDS3(__funnelshift_lc, "shf.l.clamp.b32", unsigned, unsigned)
__WORDS3(__funnelshift_r, "shf.r.wrap.b32", unsigned, unsigned)
__WORDS3(__funnelshift_rc, "shf.r.clamp.b32", unsigned, unsigned)
__WORDS3(__dp4a, "dp4a.s32.s32", int, int)
__WORDS3(__dp4a, "dp4a.u32.u32", unsigned, unsigned)
template <class T> __WORD T __ldg(const T *p) { return *p; }
__WORD void *memset(void *p, int v, size_t n) { return __builtin_memset(p, v, n); }
__WORD void *memcpy(void *to, const void *from, size_t n) { return __builtin_memcpy(to, from, n); }

// Numbers. min and max take two of one type.
template <class T> __WORD T min(T a, T b) { return b < a ? b : a; }
template <class T> __WORD T max(T a, T b) { return a < b ? b : a; }
__WORD int abs(int v) { return v < 0 ? -v : v; }
__WORD float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__WORD float fminf(float a, float b) { return __builtin_fminf(a, b); }
__WORD float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
__WORD float fabsf(float v) { return __builtin_fabsf(v); }
__WORD float floorf(float v) { return __builtin_floorf(v); }
__WORD float ceilf(float v) { return __builtin_ceilf(v); }
__WORD float truncf(float v) { return __builtin_truncf(v); }
__WORD float rintf(float v) { return __builtin_rintf(v); }
__WORD float roundf(float v) { return __builtin_copysignf(truncf(fabsf(v) + (fabsf(v) < 0x1p23f ? 0x1.fffffep-2f : 0)), v); } // halves go away from 0
__WORD float copysignf(float a, float b) { return __builtin_copysignf(a, b); }
__WORD float sqrtf(float v) { return __nvvm_sqrt_rn_f(v); }
template <class T> __WORD bool isnan(T v) { return v != v; }
template <class T> __WORD bool isinf(T v) { return v == (T)__builtin_inf() || v == -(T)__builtin_inf(); }
template <class T> __WORD bool isfinite(T v) { return !isnan(v) && !isinf(v); }
__WORD float __saturatef(float v) { return __nvvm_saturate_f(v); }
__WORD float __fadd_rn(float a, float b) { return __nvvm_add_rn_f(a, b); } // never joined to a fused multiply-add
__WORD float __fmul_rn(float a, float b) { return __nvvm_mul_rn_f(a, b); }
__WORD float __fmaf_rn(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
__WORD float __fdiv_rn(float a, float b) { return __nvvm_div_rn_f(a, b); }
__WORD float __frcp_rn(float v) { return __nvvm_rcp_rn_f(v); }
__WORD float __fsqrt_rn(float v) { return __nvvm_sqrt_rn_f(v); }
__WORD float __int2float_rn(int v) { return v; }
__WORD int __float2int_rn(float v) { return __nvvm_f2i_rn(v); }
__WORD int __float2int_rz(float v) { return __nvvm_f2i_rz(v); }
__WORD int __float2int_rd(float v) { return __nvvm_f2i_rm(v); }
__WORD int __float2int_ru(float v) { return __nvvm_f2i_rp(v); }
__WORD double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
__WORD double fmin(double a, double b) { return __builtin_fmin(a, b); }
__WORD double fmax(double a, double b) { return __builtin_fmax(a, b); }
__WORD double fabs(double v) { return __builtin_fabs(v); }
__WORD double sqrt(double v) { return __nvvm_sqrt_rn_d(v); }
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define INT_MAX __INT_MAX__
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX (2u * INT_MAX + 1)
#define M_PI 3.14159265358979323846
#define NULL nullptr

// Approximations of the special function unit: relative errors of some 2^-21, those of CUDA's own functions are smaller.
__WORD float rsqrtf(float v) { return __nvvm_rsqrt_approx_f(v); }
__WORD float exp2f(float v) { return __nvvm_ex2_approx_f(v); }
__WORD float log2f(float v) { return __nvvm_lg2_approx_f(v); }
__WORD float expf(float v) { return exp2f(v * 1.44269504f); }
__WORD float logf(float v) { return log2f(v) * 0.69314718f; }
__WORD float powf(float a, float b) { return exp2f(b * log2f(a)); } // a > 0
__WORD float sinf(float v) { return __nvvm_sin_approx_f(v); }      // absolute error; for |v| up to π
__WORD float cosf(float v) { return __nvvm_cos_approx_f(v); }
__WORD float tanhf(float v) {
	float r;
	asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(v)); // 2^-11
	return r;
}
__WORD float erff(float v) { // Abramowitz and Stegun 7.1.26: absolute error 5e-7
	float t = 1 / fmaf(0.3275911f, fabsf(v), 1);
	float p = fmaf(fmaf(fmaf(fmaf(1.061405429f, t, -1.453152027f), t, 1.421413741f), t, -0.284496736f), t, 0.254829592f) * t;
	return copysignf(1 - p * expf(-v * v), v);
}
__WORD float __expf(float v) { return expf(v); }
__WORD float __logf(float v) { return logf(v); }
__WORD float __sinf(float v) { return sinf(v); }
__WORD float __cosf(float v) { return cosf(v); }
__WORD float __fdividef(float a, float b) { return a * __nvvm_rcp_approx_ftz_f(b); }

// Floating point of 16 bits. A half computes in its own precision, a __nv_bfloat16 turns into float and back, or computes in pairs.
typedef _Float16 half, __half;
struct __align__(4) half2 { half x, y; };
typedef half2 __half2;
__WORD float __half2float(half v) { return v; }
__WORD half __float2half(float v) { return v; }
__WORD half __hadd(half a, half b) { return a + b; }
__WORD half __hmul(half a, half b) { return a * b; }
__WORD half __hfma(half a, half b, half c) {
	unsigned short r, x = __builtin_bit_cast(unsigned short, a), y = __builtin_bit_cast(unsigned short, b), z = __builtin_bit_cast(unsigned short, c);
	asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(r) : "h"(x), "h"(y), "h"(z));
	return __builtin_bit_cast(half, r);
}
__WORD half2 make_half2(half x, half y) { return {x, y}; }
struct __nv_bfloat16 { unsigned short bits; };
__WORD float __bfloat162float(__nv_bfloat16 v) { return __uint_as_float((unsigned)v.bits << 16); }
__WORD __nv_bfloat16 __float2bfloat16(float v) {
	__nv_bfloat16 r;
	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
	return r;
}

struct __align__(4) __nv_bfloat162 { __nv_bfloat16 x, y; };
__WORD half2 __floats2half2_rn(float x, float y) { return {(half)x, (half)y}; }
__WORD half2 __float22half2_rn(float2 v) { return {(half)v.x, (half)v.y}; }
__WORD half2 __half2half2(half v) { return {v, v}; }
__WORD float2 __half22float2(half2 v) { return {v.x, v.y}; }
__WORD float __low2float(half2 v) { return v.x; }
__WORD float __high2float(half2 v) { return v.y; }
__WORD __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__float2bfloat16(x), __float2bfloat16(y)}; }
__WORD float2 __bfloat1622float2(__nv_bfloat162 v) { return {__bfloat162float(v.x), __bfloat162float(v.y)}; }

// Arithmetic of pairs. For bfloat16, sm_80 has sums and products as products and sums with 1 and -0.
#define __PAIR2(T, name, inst) \
	__WORD T name(T a, T b) { \
		unsigned r, x = __builtin_bit_cast(unsigned, a), y = __builtin_bit_cast(unsigned, b); \
		asm(inst " %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); \
		return __builtin_bit_cast(T, r); \
	}
#define __PAIR3(T, name, inst) \
	__WORD T name(T a, T b, T c) { \
		unsigned r, x = __builtin_bit_cast(unsigned, a), y = __builtin_bit_cast(unsigned, b), z = __builtin_bit_cast(unsigned, c); \
		asm(inst " %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); \
		return __builtin_bit_cast(T, r); \
	}
__PAIR2(half2, __hadd2, "add.rn.f16x2")
__PAIR2(half2, __hsub2, "sub.rn.f16x2")
__PAIR2(half2, __hmul2, "mul.rn.f16x2")
__PAIR2(half2, __hmin2, "min.f16x2")
__PAIR2(half2, __hmax2, "max.f16x2")
__PAIR3(half2, __hfma2, "fma.rn.f16x2")
__PAIR2(__nv_bfloat162, __hmin2, "min.bf16x2")
__PAIR2(__nv_bfloat162, __hmax2, "max.bf16x2")
__PAIR3(__nv_bfloat162, __hfma2, "fma.rn.bf16x2")
__WORD __nv_bfloat162 __hadd2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hfma2(a, __floats2bfloat162_rn(1, 1), b); }
__WORD __nv_bfloat162 __hmul2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hfma2(a, b, __floats2bfloat162_rn(-0.0f, -0.0f)); }

// Copies from global to shared memory that go on beside the threads: cp.async of 4, 8 or 16 bytes.
__WORD unsigned __cvta_generic_to_shared(const void *p) { return (unsigned)(size_t)(const __attribute__((address_space(3))) void *)p; }
__WORD void __pipeline_memcpy_async(void *to, const void *from, size_t bytes) {
	unsigned at = __cvta_generic_to_shared(to);
	if (bytes == 16)
		asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
	else if (bytes == 8)
		asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(at), "l"(from) : "memory");
	else
		asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
}
__WORD void __pipeline_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
#define __pipeline_wait_prior(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

// Barriers in shared memory, which cuda::barrier is made of.
typedef unsigned long long __mbarrier_t;
__WORD void __mbarrier_init(__mbarrier_t *b, unsigned count) {
	asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(__cvta_generic_to_shared(b)), "r"(count) : "memory");
}
__WORD unsigned long long __mbarrier_arrive(__mbarrier_t *b) {
	unsigned long long state;
	asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(__cvta_generic_to_shared(b)) : "memory");
	return state;
}
__WORD bool __mbarrier_test_wait(__mbarrier_t *b, unsigned long long state) {
	unsigned over;
	asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
		: "=r"(over) : "r"(__cvta_generic_to_shared(b)), "l"(state) : "memory");
	return over;
}

__WORD long long clock64() { return __nvvm_read_ptx_sreg_clock64(); }
__WORD int clock() { return __nvvm_read_ptx_sreg_clock(); }
