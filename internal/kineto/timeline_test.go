package kineto

import (
	"math/rand/v2"
	"testing"

	"github.com/warpline-ml/warpline/internal/kineto/tracetest"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// someWindows are windows within [0, n), some empty, some that touch.
func someWindows(r *rand.Rand, n int64) []Window {
	w := make([]Window, r.IntN(8))
	for i := range w {
		start := r.Int64N(n)
		w[i] = Window{start, start + r.Int64N(n-start)}
	}
	return w
}

// covered marks the points of time that windows cover.
func covered(w []Window, n int64) []bool {
	c := make([]bool, n)
	for _, x := range w {
		for t := x.Start; t < x.End; t++ {
			c[t] = true
		}
	}
	return c
}

// TestSpans: unions, intersections and differences are those of the points of time.
func TestSpans(t *testing.T) {
	r := testutil.Rand(t)
	const n = 40
	for range 2000 {
		x, y := someWindows(r, n), someWindows(r, n)
		a, b := covered(x, n), covered(y, n)
		s, o := unionOf(x), unionOf(y)
		same(t, "union", s, func(i int64) bool { return a[i] }, n)
		same(t, "both", s.both(o), func(i int64) bool { return a[i] && b[i] }, n)
		same(t, "without", s.without(o), func(i int64) bool { return a[i] && !b[i] }, n)
		w := Window{r.Int64N(n / 2), n/2 + r.Int64N(n/2)}
		same(t, "in", s.in(w), func(i int64) bool { return a[i] && i >= w.Start && i < w.End }, n)
		same(t, "touching", touching(s, w).in(w), func(i int64) bool { return a[i] && i >= w.Start && i < w.End }, n)
	}
}

func same(t *testing.T, what string, s spans, want func(int64) bool, n int64) {
	t.Helper()
	c := covered(s, n)
	for i := range n {
		if c[i] != want(i) {
			t.Fatalf("%s: %v at %d", what, s, i)
		}
	}
	for i := range s {
		if s[i].Start >= s[i].End || i > 0 && s[i].Start <= s[i-1].End && what == "union" {
			t.Fatalf("%s: %v is not in order, or touches", what, s)
		}
	}
}

func analysed(t *testing.T, trace []byte) *analysis {
	t.Helper()
	return read(t, string(trace)).analyse()
}

// TestReplay: without a change the timeline is the recorded one, to the nanosecond; what is known to be saved is.
func TestReplay(t *testing.T) {
	slow := tracetest.Options{Steps: 6, Loader: 600 * ms}
	for name, trace := range map[string][]byte{
		"ResNet": tracetest.ResNet(tracetest.Options{Steps: 6}), "GPT": tracetest.GPT(tracetest.Options{Steps: 6}),
		"loader": tracetest.ResNet(slow), "items": tracetest.GPT(tracetest.Options{Steps: 6, Items: 3}),
		"host": tracetest.GPT(tracetest.Options{Steps: 6, HostCost: ms}),
	} {
		if saved := analysed(t, trace).replay(change{}); saved != 0 {
			t.Errorf("%s: no change saves %d ns", name, saved)
		}
	}
	// Without its waits for batches, a slow loader's training is as long as one with a fast loader, within what the device
	// has to do behind the last batch.
	a, fast := analysed(t, tracetest.ResNet(slow)), analysed(t, tracetest.ResNet(tracetest.Options{Steps: 6}))
	got := a.window.Dur() - a.replay(change{without: a.loader})
	if want := fast.window.Dur(); float64(got) < 0.9*float64(want) || float64(got) > 1.1*float64(want) {
		t.Errorf("without waits the steps take %d ns; with a fast loader they take %d", got, want)
	}
	// Kernels twice as fast in a device that is always busy take half of the time.
	b := analysed(t, tracetest.GPT(tracetest.Options{Steps: 6}))
	half := b.replay(change{scale: func(int) float64 { return 0.5 }})
	if share := b.share(half); share < 0.45 || share > 0.5 {
		t.Errorf("kernels twice as fast save %.3f of the time", share)
	}
}

// TestWaitsAreRemoved: a replay without reading values is as long as a training that reads none.
func TestWaitsAreRemoved(t *testing.T) {
	slow := tracetest.Options{Steps: 6, Items: 4, HostCost: 100_000}
	a := analysed(t, tracetest.ResNet(slow))
	slow.Items = 0
	want := analysed(t, tracetest.ResNet(slow)).window.Dur()
	got := a.window.Dur() - a.replay(change{free: func(c *event) bool { return a.class(c)&isWait != 0 }})
	if float64(got) > 1.15*float64(want) || float64(got) < 0.95*float64(want) {
		t.Errorf("without waits the steps take %d ns; without the values they take %d", got, want)
	}
}

// TestLink: a correlation that several processes use is that of the last launch before the kernel; ids of 64 bits are told
// apart.
func TestLink(t *testing.T) {
	tr := read(t, `[
		{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10, "dur": 1, "args": {"correlation": 7}},
		{"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernel", "pid": 2, "tid": 1, "ts": 50, "dur": 2, "args": {"correlation": 7}},
		{"ph": "X", "cat": "hip_runtime", "name": "hipLaunchKernel", "pid": 2, "tid": 1, "ts": 60, "dur": 2, "args": {"correlation": 9223372036854775000}},
		{"ph": "X", "cat": "kernel", "name": "a", "ts": 20, "dur": 1, "args": {"stream": 7, "correlation": 7}},
		{"ph": "X", "cat": "kernel", "name": "b", "ts": 55, "dur": 1, "args": {"stream": 7, "correlation": 7}},
		{"ph": "X", "cat": "kernel", "name": "c", "ts": 65, "dur": 1, "args": {"stream": 7, "correlation": 9223372036854775000}},
		{"ph": "X", "cat": "kernel", "name": "d", "ts": 70, "dur": 1, "args": {"stream": 7, "correlation": 8}},
		{"ph": "X", "cat": "kernel", "name": "e", "ts": 75, "dur": 1, "args": {"stream": 7}}]`)
	for i, want := range []int64{10_000, 50_000, 60_000, -1, -1} {
		got := int64(-1)
		if l := tr.launched(i); l != nil {
			got = l.start
		}
		if got != want {
			t.Errorf("%s was launched at %d, and should be at %d", tr.Name(&tr.device[i]), got, want)
		}
	}
}

// TestNames: kernels of Volta to Blackwell and of AMD are told to be on tensor cores, beside them, or neither.
func TestNames(t *testing.T) {
	for name, want := range map[string]class{
		"volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn":                                          isTensor,
		"turing_h1688gemm_128x128_ldg8_tn":                                                      isTensor,
		"ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn":                           isTensor,
		"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(cutlass::P)": isTensor,
		"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1":        isTensor,
		"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT":                                             isTensor,
		"cutlass3x_sm100_bstensorop_s128x128x64gemm_block_scaled":                               isTensor,
		"void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4> >":               isTensor,
		"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128":         isTensor,
		"Cijk_Alik_Bljk_SB_MT64x16x32_MI16x16x1_SN":                                             isTensor,
		"ampere_sgemm_128x64_nn":                                                                isPlain,
		"volta_scudnn_128x128_stridedB_splitK_small_nn_v1":                                      isPlain,
		"void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(cutlass::P)":          isPlain,
		"void gemv2T_kernel_val<int, int, float, float>":                                        isPlain,
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)":            isComm,
		"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t":                                            isComm,
		"void deep_ep::internode::dispatch<8, false>":                                           isComm,
		"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >":    isShort,
		"triton_poi_fused_add_cos_sin_0":                                                        isShort,
		"ProfilerStep#17":                                                                       isStep,
		"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__":                         isLoader,
		"cudaDeviceSynchronize":                                                                 isWait, "hipStreamSynchronize": isWait, "cudaStreamWaitEvent": 0, "aten::mm": 0,
		"cudaGraphLaunch": isGraph, "cudaMalloc": isMemory, "cudaHostAlloc": isMemory, "cuModuleLoadData": isLoad,
	} {
		if got := classOf(name); got != want {
			t.Errorf("%s: %b, and should be %b", name, got, want)
		}
	}
}
