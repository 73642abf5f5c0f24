// The words of CUDA C++ that the kernels need, for clang without NVIDIA's headers: qualifiers, element types, what a warp
// does together. Everything here is __device__ and inline.
#pragma once
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define DEVICE __device__ __attribute__((always_inline)) inline
// INLINED is what a lambda needs after its parameters, so that what it captures stays in registers.
#define INLINED __attribute__((always_inline))
// KERNEL(256) is the head of a kernel whose blocks have at most 256 threads; KERNEL(256, 4) also says that four of them on a
// multiprocessor are enough, where ptxas would spill registers for the sake of more.
#define KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
#include <__clang_cuda_builtin_vars.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;

// TURING is whether the card is of compute capability 7.5: its tensor cores take f16 alone, it converts to bf16 by no
// instruction, knows no NaN in a maximum, and copies into shared memory by way of registers.
#define TURING (__CUDA_ARCH__ < 800)

// The 16-bit floating-point types are storage: arithmetic is done in f32. A bool is a byte, 0 or 1.
struct f16 {
	u16 bits;
};
struct bf16 {
	u16 bits;
};
enum boolean : u8 {};

// wide<T> is the type that values of T are computed in.
template <class T> struct Wide {
	typedef T type;
};
template <> struct Wide<f16> {
	typedef f32 type;
};
template <> struct Wide<bf16> {
	typedef f32 type;
};
template <> struct Wide<boolean> {
	typedef u8 type;
};
template <class T> using wide = typename Wide<T>::type;

DEVICE f32 widen(f16 x) {
	f32 y;
	asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
	return y;
}
DEVICE f32 widen(bf16 x) { return __builtin_bit_cast(f32, u32(x.bits) << 16); }
DEVICE u8 widen(boolean x) { return u8(x); }
template <class T> DEVICE T widen(T x) { return x; }

// narrow<T> rounds to nearest even.
template <class T> struct Narrow {
	static DEVICE T from(T x) { return x; }
};
template <> struct Narrow<f16> {
	static DEVICE f16 from(f32 x) {
		f16 y;
		asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
		return y;
	}
};
template <> struct Narrow<bf16> {
	static DEVICE bf16 from(f32 x) {
		bf16 y;
#if TURING
		u32 b = __builtin_bit_cast(u32, x);
		y.bits = x != x ? 0x7fff : (b + 0x7fff + (b >> 16 & 1)) >> 16;
#else
		asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#endif
		return y;
	}
};
template <> struct Narrow<boolean> {
	static DEVICE boolean from(u8 x) { return boolean(x != 0); }
};
template <class T> DEVICE T narrow(wide<T> x) { return Narrow<T>::from(x); }

// maxNaN and minNaN are NaN where an operand is.
#if TURING
const f32 noNumber = __builtin_bit_cast(f32, 0x7fffffff); // as max.NaN and min.NaN have it
DEVICE f32 maxNaN(f32 x, f32 y) { return x != x || y != y ? noNumber : __nvvm_fmax_f(x, y); }
DEVICE f32 minNaN(f32 x, f32 y) { return x != x || y != y ? noNumber : __nvvm_fmin_f(x, y); }
#else
DEVICE f32 maxNaN(f32 x, f32 y) { return __nvvm_fmax_nan_f(x, y); }
DEVICE f32 minNaN(f32 x, f32 y) { return __nvvm_fmin_nan_f(x, y); }
#endif

// Vec is N neighbours, loaded and stored at once where they are aligned as a whole.
template <class T, int N> struct alignas(sizeof(T) * N) Vec {
	T v[N];
};

const u32 everyLane = ~0u;

DEVICE u32 laneID() { return threadIdx.x % 32; }
DEVICE f32 shuffleXor(f32 v, int mask) { return __nvvm_shfl_sync_bfly_f32(everyLane, v, mask, 31); }
DEVICE i32 shuffleXor(i32 v, int mask) { return __nvvm_shfl_sync_bfly_i32(everyLane, v, mask, 31); }
DEVICE u32 shuffleXor(u32 v, int mask) { return u32(shuffleXor(i32(v), mask)); }
DEVICE u64 shuffleXor(u64 v, int mask) { return u64(shuffleXor(u32(v >> 32), mask)) << 32 | shuffleXor(u32(v), mask); }
DEVICE i64 shuffleXor(i64 v, int mask) { return i64(shuffleXor(u64(v), mask)); }
DEVICE f64 shuffleXor(f64 v, int mask) { return __builtin_bit_cast(f64, shuffleXor(__builtin_bit_cast(u64, v), mask)); }
DEVICE u32 shuffle(u32 v, int lane) { return __nvvm_shfl_sync_idx_i32(everyLane, v, lane, 31); }
DEVICE void syncWarp() { __nvvm_bar_warp_sync(everyLane); }
DEVICE void barrier() { __nvvm_bar_sync(0); }

DEVICE u32 sharedAddress(const void *p) { return u32(u64((const __attribute__((address_space(3))) void *)p)); }

DEVICE i64 globalThread() { return i64(blockIdx.x) * blockDim.x + threadIdx.x; }
DEVICE i64 globalThreads() { return i64(gridDim.x) * blockDim.x; }

// Fault is where a kernel leaves the first thing that its arguments do not allow; the host reads it when it next waits.
struct Fault {
	u32 launch; // serial number of the launch, 0 while there is none
	u32 kind;   // 1: an index out of range
	i64 value, bound;
};

// outOfRange reports an index. The first report of all launches stays.
DEVICE void outOfRange(Fault *f, u32 launch, i64 index, i64 bound) {
	u32 none;
	asm volatile("atom.global.cas.b32 %0, [%1], 0, %2;" : "=r"(none) : "l"(&f->launch), "r"(launch) : "memory");
	if (none == 0) {
		f->kind = 1;
		f->value = index;
		f->bound = bound;
	}
}
