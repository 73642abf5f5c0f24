// Kernels whose blocks talk to each other, correct by PTX's memory model: the check of global memory must find nothing in
// them, and most of what package mutate does to them. All take 8 blocks of 64 threads: x has 512 numbers, y is for 512 results
// and work has 4096 words, zero at first. What they compute is in lockfree_test.go.
#include "cuda.h"

#define KERNEL extern "C" __global__ void __launch_bounds__(64)
#define ARGS const unsigned *x, unsigned *y, unsigned *work
typedef unsigned u32;
typedef unsigned long long u64;

// Strong accesses by order and scope.
#define LOAD(name, words) __device__ __forceinline__ u32 name(const u32 *p) { \
	u32 v; asm volatile("ld." words ".global.u32 %0, [%1];" : "=r"(v) : "l"(__builtin_addressof(*p)) : "memory"); return v; }
#define STORE(name, words) __device__ __forceinline__ void name(u32 *p, u32 v) { asm volatile("st." words ".global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
#define ADD(name, words) __device__ __forceinline__ u32 name(u32 *p, u32 v) { \
	u32 r; asm volatile("atom." words ".global.add.u32 %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(v) : "memory"); return r; }
LOAD(relaxed, "relaxed.gpu")
LOAD(acquire, "acquire.gpu")
LOAD(acquireSys, "acquire.sys")
STORE(storeRelaxed, "relaxed.gpu")
STORE(release, "release.gpu")
STORE(releaseSys, "release.sys")
ADD(addRelaxed, "relaxed.gpu")
ADD(addRelease, "release.gpu")
ADD(addAcquire, "acquire.gpu")
ADD(addBoth, "acq_rel.gpu")
__device__ __forceinline__ u32 casAcquire(u32 *p, u32 old, u32 v) {
	u32 r;
	asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], %2, %3;" : "=r"(r) : "l"(p), "r"(old), "r"(v) : "memory");
	return r;
}
__device__ __forceinline__ u32 casBoth(u32 *p, u32 old, u32 v) {
	u32 r;
	asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], %2, %3;" : "=r"(r) : "l"(p), "r"(old), "r"(v) : "memory");
	return r;
}
__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Sums over the block.
__device__ __noinline__ u32 blockScan(u32 v, u32 *total) {
	__shared__ u32 part[64];
	int t = threadIdx.x;
	part[t] = v;
	__syncthreads();
#pragma unroll 1
	for (int d = 1; d < 64; d *= 2) {
		u32 add = t >= d ? part[t - d] : 0;
		__syncthreads();
		part[t] += add;
		__syncthreads();
	}
	*total = part[63];
	u32 mine = part[t];
	__syncthreads();
	return mine;
}
__device__ u32 blockSum(u32 v) {
	u32 total;
	blockScan(v, &total);
	return total;
}
__device__ int index() { return blockIdx.x * 64 + threadIdx.x; }

// Scans.

KERNEL scan_chained_volatile(ARGS) {
	volatile u32 *flag = work;
	u32 *sum = work + 64;
	__shared__ u32 before;
	u32 total, mine = blockScan(x[index()], &total);
	if (threadIdx.x == 0) {
		before = 0;
		if (blockIdx.x > 0) {
			while (flag[blockIdx.x - 1] == 0)
				;
			__threadfence();
			before = sum[blockIdx.x - 1];
		}
		sum[blockIdx.x] = before + total;
		__threadfence();
		flag[blockIdx.x] = 1;
	}
	__syncthreads();
	y[index()] = before + mine;
}

KERNEL scan_chained_plain(ARGS) {
	u32 *flag = work, *sum = work + 64;
	__shared__ u32 before;
	u32 total, mine = blockScan(x[index()], &total);
	if (threadIdx.x == 0) {
		before = 0;
		if (blockIdx.x > 0) {
			while (relaxed(&flag[blockIdx.x - 1]) == 0)
				;
			fence();
			before = sum[blockIdx.x - 1];
		}
		sum[blockIdx.x] = before + total;
		fence();
		storeRelaxed(&flag[blockIdx.x], 1);
	}
	__syncthreads();
	y[index()] = before + mine;
}

KERNEL scan_chained_release(ARGS) {
	u32 *flag = work, *sum = work + 64;
	__shared__ u32 before;
	u32 total, mine = blockScan(x[index()], &total);
	if (threadIdx.x == 0) {
		before = 0;
		if (blockIdx.x > 0) {
			while (acquire(&flag[blockIdx.x - 1]) == 0)
				;
			before = sum[blockIdx.x - 1];
		}
		sum[blockIdx.x] = before + total;
		release(&flag[blockIdx.x], 1);
	}
	__syncthreads();
	y[index()] = before + mine;
}

KERNEL scan_chained_packed(ARGS) { // flag and sum in one word need no fence
	volatile u64 *state = (volatile u64 *)work;
	__shared__ u32 before;
	u32 total, mine = blockScan(x[index()], &total);
	if (threadIdx.x == 0) {
		before = 0;
		if (blockIdx.x > 0) {
			u64 s;
			while ((s = state[blockIdx.x - 1]) == 0)
				;
			before = s;
		}
		state[blockIdx.x] = 1ull << 32 | (before + total);
	}
	__syncthreads();
	y[index()] = before + mine;
}

KERNEL scan_lookback(ARGS) { // sums of blocks or of all up to them, the flag says which
	u32 *flag = work, *own = work + 64, *all = work + 128;
	__shared__ u32 before;
	u32 total, mine = blockScan(x[index()], &total);
	if (threadIdx.x == 0) {
		int b = blockIdx.x;
		u32 sum = 0;
		own[b] = total;
		if (b == 0)
			all[b] = total;
		fence();
		storeRelaxed(&flag[b], b == 0 ? 2 : 1);
		for (int i = b - 1; i >= 0; i--) {
			u32 f;
			while ((f = relaxed(&flag[i])) == 0)
				;
			fence();
			sum += f == 2 ? all[i] : own[i];
			if (f == 2)
				break;
		}
		if (b > 0) {
			all[b] = sum + total;
			fence();
			storeRelaxed(&flag[b], 2);
		}
		before = sum;
	}
	__syncthreads();
	y[index()] = before + mine;
}

KERNEL scan_lookback_packed(ARGS) {
	u64 *state = (u64 *)work;
	__shared__ u32 before;
	u32 total, mine = blockScan(x[index()], &total);
	if (threadIdx.x == 0) {
		int b = blockIdx.x;
		u32 sum = 0;
		atomicExch(&state[b], (b == 0 ? 2ull : 1ull) << 32 | total);
		for (int i = b - 1; i >= 0; i--) {
			u64 s;
			while ((s = atomicAdd(&state[i], 0ull)) == 0)
				;
			sum += (u32)s;
			if (s >> 32 == 2)
				break;
		}
		if (b > 0)
			atomicExch(&state[b], 2ull << 32 | (sum + total));
		before = sum;
	}
	__syncthreads();
	y[index()] = before + mine;
}

KERNEL scan_lookback_warp(ARGS) { // the lanes of a warp look at 32 blocks at once; blocks by the order in which they start
	u32 *flag = work, *own = work + 64, *all = work + 128, *count = work + 256;
	__shared__ u32 before, me;
	if (threadIdx.x == 0)
		me = atomicAdd(count, 1u);
	__syncthreads();
	int b = me, lane = threadIdx.x;
	u32 total, mine = blockScan(x[b * 64 + threadIdx.x], &total);
	if (threadIdx.x == 0) {
		(b == 0 ? all : own)[b] = total;
		__threadfence();
		((volatile u32 *)flag)[b] = b == 0 ? 2 : 1;
		before = 0;
	}
	__syncthreads();
	if (b > 0 && threadIdx.x < 32) {
		u32 f = 2, v = 0;
		int i = b - 1 - lane;
		if (i >= 0) {
			while ((f = ((volatile u32 *)flag)[i]) == 0)
				;
			__threadfence();
			v = f == 2 ? all[i] : own[i];
		}
		unsigned full = __ballot_sync(~0u, f == 2);
		int first = __ffs(full) - 1;
		if (lane > first)
			v = 0;
		for (int d = 16; d > 0; d /= 2)
			v += __shfl_xor_sync(~0u, v, d);
		if (lane == 0) {
			before = v;
			all[b] = v + total;
			__threadfence();
			((volatile u32 *)flag)[b] = 2;
		}
	}
	__syncthreads();
	y[b * 64 + threadIdx.x] = before + mine;
}

KERNEL scan_lookback_vector(ARGS) { // flag and sum as one vector of 16 bytes
	__shared__ u32 before;
	u32 total, mine = blockScan(x[index()], &total);
	if (threadIdx.x == 0) {
		before = 0;
		u32 f, v, a, b;
		if (blockIdx.x > 0) {
			do
				asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(f), "=r"(v), "=r"(a), "=r"(b) : "l"(work + 4 * (blockIdx.x - 1)) : "memory");
			while (f == 0);
			before = v;
		}
		asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(work + 4 * blockIdx.x), "r"(1), "r"(before + total), "r"(0), "r"(0) : "memory");
	}
	__syncthreads();
	y[index()] = before + mine;
}

// Grid barriers.

__device__ void barrier_fences(u32 *count, u32 goal) {
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		atomicAdd(count, 1u);
		while (*(volatile u32 *)count < goal)
			;
		__threadfence();
	}
	__syncthreads();
}
__device__ void barrier_release(u32 *count, u32 goal) {
	__syncthreads();
	if (threadIdx.x == 0) {
		addRelease(count, 1);
		while (acquire(count) < goal)
			;
	}
	__syncthreads();
}
__device__ void barrier_all_fence(u32 *count, u32 goal) { // every thread for itself, around the barriers
	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0) {
		atomicAdd(count, 1u);
		while (*(volatile u32 *)count < goal)
			;
	}
	__syncthreads();
	__threadfence();
}
__device__ void barrier_atomics(u32 *count, u32 goal) { // the wait is an atomic too
	__syncthreads();
	if (threadIdx.x == 0) {
		addBoth(count, 1);
		while (addAcquire(count, 0) < goal)
			;
	}
	__syncthreads();
}
__device__ void barrier_sense(u32 *count, u32 *sense, u32 turn) { // the last one turns the sense
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		if (atomicAdd(count, 1u) == gridDim.x - 1) {
			*(volatile u32 *)count = 0;
			__threadfence();
			*(volatile u32 *)sense = turn;
		} else {
			while (*(volatile u32 *)sense != turn)
				;
		}
		__threadfence();
	}
	__syncthreads();
}
__device__ void barrier_flags(u32 *in, u32 *out, u32 turn) { // block 0 gathers all flags, and lets all go on
	__syncthreads();
	if (blockIdx.x == 0) {
		if (threadIdx.x > 0 && threadIdx.x < gridDim.x)
			while (acquire(&in[threadIdx.x]) != turn)
				;
		__syncthreads();
		if (threadIdx.x > 0 && threadIdx.x < gridDim.x)
			release(&out[threadIdx.x], turn);
	} else if (threadIdx.x == 0) {
		release(&in[blockIdx.x], turn);
		while (acquire(&out[blockIdx.x]) != turn)
			;
	}
	__syncthreads();
}

#define STENCIL(name, sync1, sync2) \
	KERNEL name(ARGS) { /* two rounds of: each sums the two numbers a block's length further on */ \
		u32 *a = work + 1024, *b = work + 2048, i = index(); \
		a[i] = x[i]; \
		sync1; \
		b[i] = a[i] + a[(i + 64) % 512]; \
		sync2; \
		y[i] = b[i] + b[(i + 128) % 512]; \
	}
STENCIL(grid_fences, barrier_fences(work, 8), barrier_fences(work, 16))
STENCIL(grid_release, barrier_release(work, 8), barrier_release(work, 16))
STENCIL(grid_all_fence, barrier_all_fence(work, 8), barrier_all_fence(work, 16))
STENCIL(grid_atomics, barrier_atomics(work, 8), barrier_atomics(work, 16))
STENCIL(grid_sense, barrier_sense(work, work + 1, 1), barrier_sense(work, work + 1, 2))
STENCIL(grid_flags, barrier_flags(work, work + 64, 1), barrier_flags(work, work + 64, 2))

KERNEL grid_in_place(ARGS) { // what is read before the barrier is written behind it
	u32 *a = work + 1024, i = index();
	a[i] = x[i];
	barrier_fences(work, 8);
	u32 v = a[i] + a[(i + 64) % 512];
	barrier_fences(work, 16);
	a[i] = v;
	barrier_fences(work, 24);
	y[i] = a[i] + a[(i + 128) % 512];
}

KERNEL neighbours(ARGS) { // a block waits only for the one whose numbers it reads
	u32 *a = work + 1024, *b = work + 2048, *ready = work, *again = work + 64, i = index(), me = blockIdx.x;
	a[i] = x[i];
	__syncthreads();
	if (threadIdx.x == 0) {
		releaseSys(&ready[me], 1);
		while (acquireSys(&ready[(me + 1) % 8]) == 0)
			;
	}
	__syncthreads();
	b[i] = a[i] + a[(i + 64) % 512];
	__syncthreads();
	if (threadIdx.x == 0) {
		releaseSys(&again[me], 1);
		while (acquireSys(&again[(me + 2) % 8]) == 0)
			;
	}
	__syncthreads();
	y[i] = b[i] + b[(i + 128) % 512];
}

// Sums of all, by the block that comes last.

KERNEL last_fence(ARGS) {
	u32 *part = work + 64;
	__shared__ bool last;
	u32 s = blockSum(x[index()]);
	if (threadIdx.x == 0) {
		part[blockIdx.x] = s;
		__threadfence();
		last = atomicInc(work, gridDim.x - 1) == gridDim.x - 1;
		__threadfence();
	}
	__syncthreads();
	if (last) {
		u32 all = blockSum(threadIdx.x < 8 ? part[threadIdx.x] : 0);
		if (threadIdx.x == 0)
			y[0] = all;
	}
}

KERNEL last_volatile(ARGS) { // as in CUDA's own example: the parts are volatile, and no fence follows
	volatile u32 *part = work + 64;
	__shared__ bool last;
	u32 s = blockSum(x[index()]);
	if (threadIdx.x == 0) {
		part[blockIdx.x] = s;
		__threadfence();
		last = atomicInc(work, gridDim.x - 1) == gridDim.x - 1;
	}
	__syncthreads();
	if (last) {
		u32 all = blockSum(threadIdx.x < 8 ? part[threadIdx.x] : 0);
		if (threadIdx.x == 0)
			y[0] = all;
	}
}

KERNEL last_all_fence(ARGS) { // as in PyTorch: all threads fence before the barrier and after it
	u32 *part = work + 1024;
	__shared__ bool last;
	part[index()] = x[index()];
	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0)
		last = atomicAdd(work, 1u) == gridDim.x - 1;
	__syncthreads();
	if (last) {
		__threadfence();
		u32 s = 0;
#pragma unroll 1
		for (int i = threadIdx.x; i < 512; i += 64)
			s += part[i];
		s = blockSum(s);
		if (threadIdx.x == 0)
			y[0] = s;
	}
}

KERNEL last_acq_rel(ARGS) {
	u32 *part = work + 1024;
	__shared__ bool last;
	part[index()] = x[index()];
	__syncthreads();
	if (threadIdx.x == 0)
		last = addBoth(work, 1) == gridDim.x - 1;
	__syncthreads();
	if (last) {
		u32 s = 0;
#pragma unroll 1
		for (int i = threadIdx.x; i < 512; i += 64)
			s += part[i];
		s = blockSum(s);
		if (threadIdx.x == 0)
			y[0] = s;
	}
}

KERNEL last_tree(ARGS) { // pairs of blocks: who comes second goes on with both
	u32 *part = work + 64, *count = work;
	__shared__ u32 s;
	u32 mine = blockSum(x[index()]);
	if (threadIdx.x == 0) {
		u32 at = blockIdx.x + 8;
		s = mine;
		for (;;) {
			part[at] = s;
			if (at == 1)
				break;
			if (addBoth(&count[at / 2], 1) == 0)
				return;
			s += part[at ^ 1];
			at /= 2;
		}
		y[0] = s;
	}
}

KERNEL sum_atomics(ARGS) {
	u32 s = blockSum(x[index()]);
	if (threadIdx.x == 0)
		atomicAdd(y, s);
}

// Blocks that add to one tile in turn, or together.

KERNEL splitk_turns(ARGS) {
	if (threadIdx.x == 0)
		while (acquire(work) != blockIdx.x)
			;
	__syncthreads();
	y[threadIdx.x] += x[index()];
	__syncthreads();
	if (threadIdx.x == 0)
		release(work, blockIdx.x + 1);
}

KERNEL splitk_turns_fences(ARGS) { // as in CUTLASS's semaphore
	if (threadIdx.x == 0) {
		while (*(volatile u32 *)work != blockIdx.x)
			;
		__threadfence();
	}
	__syncthreads();
	y[threadIdx.x] += x[index()];
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		*(volatile u32 *)work = blockIdx.x + 1;
	}
}

KERNEL splitk_last(ARGS) {
	u32 *part = work + 1024;
	__shared__ bool last;
	part[index()] = x[index()];
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		last = atomicAdd(work, 1u) == gridDim.x - 1;
		__threadfence();
	}
	__syncthreads();
	if (!last)
		return;
	u32 s = 0;
	for (int k = 0; k < 8; k++)
		s += part[k * 64 + threadIdx.x];
	y[threadIdx.x] = s;
}

KERNEL splitk_atomics(ARGS) { atomicAdd(&y[threadIdx.x], x[index()]); }

// Locks around y[0].

#define GUARDED(name, take, give) \
	KERNEL name(ARGS) { \
		u32 s = blockSum(x[index()]); \
		if (threadIdx.x == 0) { \
			take; \
			y[0] += s; \
			give; \
		} \
	}
__device__ u32 ticketed(u32 *lock) {
	u32 mine = atomicAdd(lock, 1u);
	while (acquire(lock + 1) != mine)
		;
	return mine;
}
GUARDED(lock_fences, while (atomicCAS(work, 0u, 1u) != 0); __threadfence(), __threadfence(); atomicExch(work, 0u))
GUARDED(lock_acquire, while (casAcquire(work, 0, 1) != 0), release(work, 0))
GUARDED(lock_look_first, do while (relaxed(work) != 0); while (casAcquire(work, 0, 1) != 0), release(work, 0))
GUARDED(lock_ticket, u32 mine = ticketed(work), release(work + 1, mine + 1))
GUARDED(lock_sleep, while (atomicExch(work, 1u) != 0) __nanosleep(20); fence(), fence(); storeRelaxed(work, 0))
GUARDED(lock_volatile, while (atomicCAS(work, 0u, 1u) != 0); __threadfence(), __threadfence(); *(volatile u32 *)work = 0)

KERNEL lock_warps(ARGS) { // each lane for itself
	for (bool done = false; !done;) {
		if (casAcquire(&work[threadIdx.x % 4], 0, 1) == 0) {
			y[threadIdx.x % 4] += x[index()];
			release(&work[threadIdx.x % 4], 0);
			done = true;
		}
	}
}

KERNEL lock_block(ARGS) { // one thread takes it for all
	if (threadIdx.x == 0) {
		while (atomicCAS(work, 0u, 1u) != 0)
			;
		__threadfence();
	}
	__syncthreads();
	y[threadIdx.x] += x[index()];
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		atomicExch(work, 0u);
	}
}

KERNEL lock_two(ARGS) { // hand over hand
	u32 s = blockSum(x[index()]);
	if (threadIdx.x == 0) {
		while (casAcquire(work, 0, 1) != 0)
			;
		y[0] += s;
		while (casAcquire(work + 1, 0, 1) != 0)
			;
		release(work, 0);
		y[1] += s;
		release(work + 1, 0);
	}
}

KERNEL lock_readers(ARGS) { // blocks of odd numbers read what the others write: 0x10000 for a writer, 1 for each reader
	u32 s = blockSum(x[index()]);
	if (threadIdx.x != 0)
		return;
	if (blockIdx.x % 2 == 0) {
		while (casAcquire(work, 0, 0x10000) != 0)
			;
		work[64] += s;
		work[65] += s;
		addRelease(work, -0x10000);
	} else {
		while (addAcquire(work, 1) >= 0x10000)
			addRelaxed(work, -1);
		y[blockIdx.x] = work[64] == work[65];
		addRelease(work, -1);
	}
}

KERNEL seqlock(ARGS) { // the data is relaxed, and counts if the number is even and did not change
	u32 *seq = work, *data = work + 64;
	if (threadIdx.x != 0)
		return;
	if (blockIdx.x == 0) {
#pragma unroll 1
		for (u32 i = 1; i <= 4; i++) {
			storeRelaxed(seq, 2 * i - 1);
			fence();
			storeRelaxed(data, i);
			storeRelaxed(data + 1, i);
			release(seq, 2 * i);
		}
	} else {
		u32 a, b, before, after;
		do {
			before = acquire(seq);
			a = relaxed(data);
			b = relaxed(data + 1);
			fence();
			after = relaxed(seq);
		} while (before != after || before % 2 == 1);
		y[blockIdx.x] = a == b;
	}
}

// Flags.

KERNEL ping_pong(ARGS) { // blocks 0 and 1 send a number to and fro
	u32 *turn = work, *ball = work + 64;
	if (blockIdx.x > 1 || threadIdx.x != 0)
		return;
#pragma unroll 1
	for (u32 i = blockIdx.x; i < 8; i += 2) {
		while (acquire(turn) != i)
			;
		*ball += x[i];
		release(turn, i + 1);
	}
	if (blockIdx.x == 1)
		y[0] = *ball;
}

KERNEL pipeline(ARGS) { // each block adds its number to what comes from the one before, four times
	u32 *flag = work, *slot = work + 64;
#pragma unroll 1
	for (u32 k = 0; k < 4; k++) {
		u32 v = 0;
		if (blockIdx.x > 0) {
			while (relaxed(&flag[(blockIdx.x - 1) * 4 + k]) == 0)
				;
			fence();
			v = slot[((blockIdx.x - 1) * 4 + k) * 64 % 2048 + threadIdx.x];
		}
		v += x[index()];
		slot[(blockIdx.x * 4 + k) * 64 % 2048 + threadIdx.x] = v;
		if (blockIdx.x == 7)
			y[k * 64 + threadIdx.x] = v;
		__syncthreads();
		if (threadIdx.x == 0) {
			fence();
			storeRelaxed(&flag[blockIdx.x * 4 + k], 1);
		}
	}
}

KERNEL credits(ARGS) { // block 0 sends 16 numbers through two slots, which it gets back
	u32 *sent = work, *taken = work + 32, *slot = work + 64;
	if (threadIdx.x != 0)
		return;
	if (blockIdx.x == 0)
#pragma unroll 1
		for (u32 i = 0; i < 16; i++) {
			while (acquire(taken) + 2 <= i)
				;
			slot[i % 2] = x[i];
			release(sent, i + 1);
		}
	if (blockIdx.x == 1) {
		u32 s = 0;
#pragma unroll 1
		for (u32 i = 0; i < 16; i++) {
			while (acquire(sent) <= i)
				;
			s += slot[i % 2];
			release(taken, i + 1);
		}
		y[0] = s;
	}
}

KERNEL broadcast(ARGS) { // block 0 computes, all the others wait
	u32 *flag = work, *table = work + 1024;
	if (blockIdx.x == 0) {
		table[threadIdx.x] = x[threadIdx.x] * 3;
		__syncthreads();
		if (threadIdx.x == 0)
			release(flag, 1);
	} else {
		while (relaxed(flag) == 0)
			;
		__threadfence();
	}
	y[index()] = table[threadIdx.x] + x[index()];
}

KERNEL once(ARGS) { // whoever comes first computes
	u32 *state = work, *table = work + 1024;
	__shared__ u32 role;
	if (threadIdx.x == 0)
		role = casAcquire(state, 0, 1);
	__syncthreads();
	if (role == 0) {
		table[threadIdx.x] = x[threadIdx.x] * 3;
		__syncthreads();
		if (threadIdx.x == 0)
			release(state, 2);
	}
	if (threadIdx.x == 0)
		while (acquire(state) != 2)
			;
	__syncthreads();
	y[index()] = table[threadIdx.x] + x[index()];
}

// Queues.

KERNEL tiles(ARGS) { // blocks take tiles by a counter
	__shared__ u32 tile;
	for (;;) {
		if (threadIdx.x == 0)
			tile = atomicAdd(work, 1u);
		__syncthreads();
		if (tile >= 8)
			return;
		y[tile * 64 + threadIdx.x] = x[tile * 64 + threadIdx.x] * 3;
		__syncthreads();
	}
}

KERNEL queue_slots(ARGS) { // blocks 0 to 3 produce, 4 to 7 consume, each slot has a flag
	u32 *head = work, *tail = work + 1, *full = work + 64, *slot = work + 1024;
	if (blockIdx.x < 4) {
		u32 at = atomicAdd(tail, 1u);
		slot[at] = x[blockIdx.x * 64 + threadIdx.x];
		__threadfence();
		atomicExch(&full[at], 1u);
	} else {
		u32 at = atomicAdd(head, 1u);
		while (atomicAdd(&full[at], 0u) == 0)
			;
		__threadfence();
		atomicAdd(y, slot[at]);
	}
}

KERNEL queue_tail(ARGS) { // one producer that raises the tail, the others take from the head
	u32 *head = work, *tail = work + 1, *slot = work + 1024;
	if (blockIdx.x == 0) {
#pragma unroll 1
		for (u32 i = 0; i < 7; i++) {
			slot[i * 64 + threadIdx.x] = x[i * 64 + threadIdx.x];
			__syncthreads();
			if (threadIdx.x == 0)
				release(tail, i + 1);
		}
		return;
	}
	__shared__ u32 at;
	if (threadIdx.x == 0) {
		at = atomicAdd(head, 1u);
		while (acquire(tail) <= at)
			;
	}
	__syncthreads();
	atomicAdd(y, slot[at * 64 + threadIdx.x]);
}

KERNEL stack_push(ARGS) { // a list that all threads push to and the last block walks
	u32 *top = work, *count = work + 1, *next = work + 1024, me = index() + 1;
	__shared__ bool last;
	u32 old = relaxed(top), seen;
	for (;;) {
		next[me] = old;
		seen = casBoth(top, old, me);
		if (seen == old)
			break;
		old = seen;
	}
	__syncthreads();
	if (threadIdx.x == 0)
		last = addBoth(count, 1) == gridDim.x - 1;
	__syncthreads();
	if (!last || threadIdx.x != 0)
		return;
	u32 s = 0;
	for (u32 i = acquire(top); i != 0; i = next[i])
		s += x[i - 1];
	y[0] = s;
}

KERNEL hash_insert(ARGS) { // keys by compare and swap; the value is there when the state says so
	u32 *state = work + 1024, *value = work + 2048;
	u32 key = index() % 128 + 1, at = key * 7 % 1024;
	for (;; at = (at + 1) % 1024) {
		u32 s = casAcquire(&state[at], 0, 1);
		if (s == 0) {
			value[at] = key * 3;
			release(&state[at], key + 1);
			break;
		}
		while (s == 1)
			s = acquire(&state[at]);
		if (s == key + 1)
			break;
	}
	y[index()] = value[at];
}

// Atomics alone.

KERNEL histogram(ARGS) { atomicAdd(&y[x[index()] % 16], 1u); }

KERNEL max_by_cas(ARGS) {
	u32 v = x[index()], old = *(volatile u32 *)y;
	while (old < v) {
		u32 seen = atomicCAS(y, old, v);
		if (seen == old)
			break;
		old = seen;
	}
}

KERNEL compact(ARGS) { // the odd ones, in no order
	u32 v = x[index()];
	if (v % 2 == 1)
		atomicAdd(y, v + 0 * atomicAdd(work, 1u));
}

KERNEL mark_bits(ARGS) {
	u32 v = x[index()];
	if (!(atomicOr(&work[v / 32], 1u << v % 32) >> v % 32 & 1))
		atomicAdd(y, 1u);
}

KERNEL minimum_labels(ARGS) { // labels along a ring shrink until nothing changes, relaxed
	u32 *label = work + 1024, i = index();
	atomicExch(&label[i], x[i]);
	barrier_release(work, 8);
#pragma unroll 1
	for (int k = 0; k < 4; k++) {
		u32 v = relaxed(&label[(i + 1) % 512]);
		atomicMin(&label[i], v);
	}
	barrier_release(work, 16);
	u32 least = ~0u;
#pragma unroll 1
	for (int k = 0; k < 512; k++)
		least = min(least, label[k]);
	y[i] = least;
}
