// A stable sort of places by key, least significant digit first, 8 bits at a time (Knuth, The Art of Computer
// Programming 3, 5.2.5). The keys are where ScatterAdd and EmbeddingGrad add; places of equal keys stay in order, so
// that whoever adds them up does so in order, and no two threads add to one element.
//
// A block takes a tile of 2048, each of its 8 warps 256 of them in 8 steps. sort_count counts a tile's digits; sums over
// the counts of all tiles, digit by digit, tell sort_place where each tile's elements go.
//
//warpline:module index_sort
#include "index.cuh"

const u32 warps = 8, steps = 8, tile = 32 * warps * steps, digits = 256;

// sort_keys makes the keys: the place that index 0 has in the table, start, and index steps on. An index out of range
// gets the key none, the largest.
KERNEL(256) sort_keys(u32 *keys, u32 *places, const i64 *__restrict__ idx, i64 n, i64 size, i64 step, i64 none, Strided start, Fault *fault, u32 launch) {
	for (i64 i = globalThread(); i < n; i += globalThreads()) {
		i64 v = idx[i];
		bool in = u64(v) < u64(size);
		if (!in)
			outOfRange(fault, launch, v, size);
		keys[i] = in ? u32(start.at(i) + v * step) : u32(none);
		places[i] = u32(i);
	}
}

// Group is the lanes of a warp that have the same digit.
struct Group {
	u32 digit, lanes;
	bool valid;

	DEVICE u32 before() const { return __builtin_popcount(lanes & ((1u << laneID()) - 1)); }
	DEVICE u32 size() const { return __builtin_popcount(lanes); }
	DEVICE bool leads() const { return valid && before() == 0; }
};

// groupOf is this lane's group in a step of its warp.
DEVICE Group groupOf(const u32 *keys, u32 at, u32 n, u32 shift) {
	Group g;
	g.valid = at < n;
	g.digit = g.valid ? keys[at] >> shift & (digits - 1) : digits;
	asm volatile("match.any.sync.b32 %0, %1, %2;" : "=r"(g.lanes) : "r"(g.digit), "r"(everyLane));
	return g;
}

typedef u32 Counts[warps][digits];

DEVICE u32 placeOf(u32 step) { return blockIdx.x * tile + (threadIdx.x / 32 * steps + step) * 32 + laneID(); }

// count leaves how often each digit occurs among each warp's elements.
DEVICE void count(Counts &counts, const u32 *keys, u32 n, u32 shift) {
	for (u32 w = 0; w < warps; w++)
		counts[w][threadIdx.x] = 0;
	barrier();
	u32 *mine = counts[threadIdx.x / 32];
	for (u32 s = 0; s < steps; s++) {
		Group g = groupOf(keys, placeOf(s), n, shift);
		if (g.leads())
			mine[g.digit] += g.size();
		__nvvm_bar_warp_sync(everyLane);
	}
	barrier();
}

// sort_count stores the counts of a tile by digit first.
KERNEL(256) sort_count(u32 *hist, const u32 *__restrict__ keys, u32 n, u32 shift) {
	__shared__ Counts counts;
	count(counts, keys, n, shift);
	u32 sum = 0;
	for (u32 w = 0; w < warps; w++)
		sum += counts[w][threadIdx.x];
	hist[threadIdx.x * gridDim.x + blockIdx.x] = sum;
}

// sort_place moves keys and places; ends are the sums over the counts.
KERNEL(256) sort_place(u32 *keysOut, u32 *placesOut, const u32 *__restrict__ keys, const u32 *__restrict__ places, const u32 *__restrict__ ends, u32 n, u32 shift) {
	__shared__ Counts counts;
	count(counts, keys, n, shift);
	u32 cell = threadIdx.x * gridDim.x + blockIdx.x;
	u32 next = cell == 0 ? 0 : ends[cell - 1];
	for (u32 w = 0; w < warps; w++) {
		u32 c = counts[w][threadIdx.x];
		counts[w][threadIdx.x] = next;
		next += c;
	}
	barrier();
	u32 *mine = counts[threadIdx.x / 32];
	for (u32 s = 0; s < steps; s++) {
		u32 at = placeOf(s);
		Group g = groupOf(keys, at, n, shift);
		u32 to = g.valid ? mine[g.digit] + g.before() : 0;
		__nvvm_bar_warp_sync(everyLane);
		if (g.leads())
			mine[g.digit] += g.size();
		__nvvm_bar_warp_sync(everyLane);
		if (g.valid) {
			keysOut[to] = keys[at];
			placesOut[to] = places[at];
		}
	}
}
