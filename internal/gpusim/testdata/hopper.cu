// A product of matrices for Hopper, as people write it: boxes of A and B come by the tensor memory accelerator into a ring of stages,
// a warp issues them, two groups of four warps multiply, and the result leaves by boxes as well.
#include "shim.h"

struct alignas(64) TensorMap { char bytes[128]; };

constexpr int BM = 128, BN = 256, BK = 64, STAGES = 4, CONSUMERS = 2;
constexpr int STAGE = (BM + BN) * BK * 2; // bytes

__device__ inline void init(unsigned bar, int count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory"); }

__device__ inline void expect(unsigned bar, int bytes) {
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ inline void arrive(unsigned bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory"); }

__device__ inline void wait(unsigned bar, int parity) {
	asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(bar), "r"(parity) : "memory");
}

__device__ inline void load(unsigned to, const TensorMap *map, int x, int y, unsigned bar) {
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(bar) : "memory");
}

// descriptor is a tile whose rows are 128 bytes, swizzled.
__device__ inline unsigned long long descriptor(unsigned at) {
	return (unsigned long long)(at >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

__device__ inline void multiply(float (&d)[128], unsigned long long a, unsigned long long b) {
	asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, 1, 1, 1, 0, 0;"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
		: "l"(a), "l"(b));
}

extern __shared__ __attribute__((aligned(1024))) char shared[];

// gemm_tma is C = A·Bᵀ of A[M,K] and B[N,K]: C[M,N] in float32. M is a multiple of 128, N of 256, K of 64. Blocks are of 384 threads.
__attribute__((launch_bounds(384, 1))) KERNEL gemm_tma(const TensorMap *a, const TensorMap *b, const TensorMap *c, int k) {
	unsigned base = sharedAddress(shared);
	unsigned full = base + STAGES * STAGE, empty = full + 8 * STAGES;
	int group = threadIdx.x / 128, lane = threadIdx.x % 128;
	if (threadIdx.x == 0) {
		for (int i = 0; i < STAGES; i++) {
			init(full + 8 * i, 1);
			init(empty + 8 * i, CONSUMERS);
		}
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
	__syncthreads();
	int m = blockIdx.y * BM, n = blockIdx.x * BN;
	if (group == CONSUMERS) {
		asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
		if (lane == 0) {
			for (int i = 0, at = 0; at < k; i++, at += BK) {
				int s = i % STAGES;
				wait(empty + 8 * s, i / STAGES % 2 ^ 1);
				unsigned to = base + s * STAGE, bar = full + 8 * s;
				expect(bar, STAGE);
				load(to, a, at, m, bar);
				load(to + BM * BK * 2, b, at, n, bar);
			}
		}
		return;
	}
	asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
	float d[128];
#pragma unroll
	for (int i = 0; i < 128; i++) d[i] = 0;
	for (int i = 0, at = 0; at < k; i++, at += BK) {
		int s = i % STAGES;
		wait(full + 8 * s, i / STAGES % 2);
		unsigned from = base + s * STAGE;
		asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
		for (int j = 0; j < BK / 16; j++)
			multiply(d, descriptor(from + group * 64 * 128 + 32 * j), descriptor(from + BM * BK * 2 + 32 * j));
		asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
		if (lane == 0) arrive(empty + 8 * s);
	}
	// Both groups have read all stages: the tile of C takes their place, 32 columns of 128 rows after the other.
	asm volatile("bar.sync 1, 256;" ::: "memory");
	int row = group * 64 + lane / 32 * 16 + lane % 32 / 4, col = lane % 4 * 2;
#pragma unroll
	for (int i = 0; i < 128; i += 2) {
		int r = row + (i >> 1 & 1) * 8, x = col + (i >> 2) * 8;
		unsigned at = base + x / 32 * BM * 128 + r * 128 + x % 32 * 4;
		at ^= at >> 3 & 0x70;
		asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(d[i]), "f"(d[i + 1]) : "memory");
	}
	asm volatile("fence.proxy.async.shared::cta;\nbar.sync 1, 256;" ::: "memory");
	if (threadIdx.x == 0) {
#pragma unroll
		for (int i = 0; i < BN / 32; i++)
			asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(c), "r"(n + 32 * i), "r"(m), "r"(base + i * BM * 128) : "memory");
		asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
	}
}
