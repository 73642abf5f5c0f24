package kineto

import "strings"

// class is what a name tells, found out once for each name.
type class uint32

const (
	isStep       class = 1 << iota // ProfilerStep#N
	isLoader                       // waits for the next batch of a DataLoader
	isComm                         // a kernel of communication
	isWait                         // a call that waits for the device
	isGraph                        // launches a graph
	isTensor                       // a matrix product, convolution or attention on tensor cores
	isPlain                        // one beside them
	isOptim                        // the optimizer's step
	isMemory                       // allocates or frees memory of the device or the host
	isLoad                         // loads code of the device
	isReplicated                   // DataParallel's forward pass
	isReplica                      // DistributedDataParallel's
	isGloo                         // Gloo's work on the host
	isAccumulate                   // adds a gradient to its parameter's
	isZeros                        // fills tensors with zeros
	isZeroing                      // the optimizer's zero_grad
	isShort                        // an elementwise kernel, or one that reduces or copies
)

// rules of names: a name has a class where it has a prefix, or contains a word, in lower case.
var classWords = []struct {
	class         class
	prefix, words []string
}{
	{isStep, []string{"profilerstep"}, nil},
	{isLoader, nil, []string{"enumerate(dataloader)", "dataloaderiter.__next__"}},
	{isComm, []string{"nccl", "rccl", "oneccl", "mscclpp", "nvshmem", "deep_ep", "void deep_ep", "void nccl", "msccl"},
		[]string{"nccldevkernel", "ncclkernel", "nvshmem", "deep_ep::", "rccl_", "oneccl", "cross_device_reduce", "all_reduce_kernel",
			"allreduce_", "multimem_all", "two_shot_all", "one_shot_all"}},
	{isWait, nil, []string{"synchronize"}},
	{isGraph, nil, []string{"graphlaunch"}},
	{isTensor, nil, tensorWords},
	{isPlain, nil, plainWords},
	{isOptim, []string{"optimizer.step"}, nil},
	{isReplicated, []string{"dataparallel.forward"}, nil},
	{isReplica, []string{"distributeddataparallel.forward"}, nil},
	{isAccumulate, []string{"torch::autograd::accumulategrad"}, nil},
	{isZeros, []string{"aten::zero_", "aten::_foreach_zero_"}, nil},
	{isZeroing, []string{"optimizer.zero_grad"}, nil},
	{isGloo, []string{"gloo:"}, nil},
	{isMemory, []string{"cudamalloc", "cudafree", "cuda_malloc", "cumemalloc", "cumemfree", "hipmalloc", "hipfree",
		"cudahostalloc", "hiphostmalloc"}, nil},
	{isLoad, []string{"cumoduleload", "culibraryload", "cudalibraryload", "hipmoduleload"}, nil},
	{isShort, nil, []string{"elementwise", "reduce_kernel", "multi_tensor_apply", "fillfunctor", "catarraybatched", "triton_poi", "triton_red",
		"triton_per", "softmax", "layer_norm", "layernorm", "bn_fw", "bn_bw", "batch_norm", "rms_norm", "dropout"}},
}

// tensorWords are parts of the names of kernels that use tensor cores: of cuBLAS and cuDNN since Volta (h884, s1688, 16816),
// cuBLASLt and its successors (xmma, nvjet), cutlass (tensorop, wgmma, sm90, sm100), attention, and AMD's matrix cores (mfma,
// Tensile's MT…_MI…, ck_tile).
var tensorWords = []string{
	"h884", "s884", "i8816", "h1688", "s1688", "f1688", "c1688", "d884", "16816", "16832", "h16816", "s16816", "bf16_s", "hmma", "imma", "dmma",
	"xmma", "wgmma", "gmma", "tcgen05", "umma", "nvjet", "tensorop", "tensor_op", "tensor16x8", "wmma",
	"flash_fwd", "flash_bwd", "flash_attn", "flash::", "fmha", "cudnn_generated_fort_native_sdpa", "cudnn_generated_oss_sdpa",
	"mfma", "ck_tile::", "device_gemm_xdl", "xdlops", "_mi32x32", "_mi16x16",
	"tf32", "turing_fp16", "volta_fp16", "ampere_fp16", "ampere_bf16", "sm75_xmma", "sm80_xmma", "sm90_xmma", "sm100_xmma",
	"mma_tensor", "deep_gemm", "marlin",
}

// plainWords are parts of the names of matrix products and convolutions that use none.
var plainWords = []string{
	"sgemm", "dgemm", "hgemm", "gemmsn", "gemmk1", "gemv", "scudnn", "hcudnn", "implicit_convolve", "implicit_gemm", "winograd", "cf32",
	"gemm_kernel", "igemm", "cijk_", "dgrad", "wgrad", "dgrad_engine", "wgrad_alg", "convolve", "conv2d", "conv_depthwise", "fft2d", "gemm_fp32", "cutlass::kernel", "simt",
	"cublaslt", "splitkreduce", "gemm2n", "ffma", "triton_mm", "triton_tem_fused_mm", "triton_tem_fused_addmm", "triton_tem_fused_bmm",
}

func classOf(name string) class {
	if len(name) > 4096 {
		return 0 // a stack
	}
	lower := strings.ToLower(name)
	var c class
	for i := range classWords {
		if matches(lower, classWords[i].prefix, classWords[i].words) {
			c |= classWords[i].class
		}
	}
	if c&isTensor != 0 {
		c &^= isPlain
	}
	if c&isComm != 0 {
		c &^= isTensor | isPlain | isShort
	}
	return c
}

func matches(lower string, prefixes, words []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(lower, p) {
			return true
		}
	}
	for _, w := range words {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return false
}

// Families of kernels, as HolisticTraceAnalysis has them, with products told from the rest of computation.
const (
	Communication = "communication"
	Memory        = "memory"
	Product       = "product" // matrix products, convolutions, attention
	Computation   = "computation"
)

func (t *Trace) family(e *event) string {
	switch c := t.class(e); {
	case c&isComm != 0:
		return Communication
	case e.kind != kernel:
		return Memory
	case c&(isTensor|isPlain) != 0:
		return Product
	}
	return Computation
}

func (t *Trace) class(e *event) class { return t.classes[e.name] }

// archs are words of kernels' names with the compute capability that they tell of, times ten.
var archs = []struct {
	word string
	sm   int
}{{"sm100", 100}, {"sm90", 90}, {"hopper", 90}, {"sm80", 80}, {"ampere", 80}, {"sm75", 75}, {"turing", 75}, {"volta", 70}, {"sm70", 70}}

// archOf is the compute capability that a kernel's name tells of, times ten; 0 where it does not.
func archOf(name string) int {
	lower := strings.ToLower(name)
	for _, a := range archs {
		if strings.Contains(lower, a.word) {
			return a.sm
		}
	}
	return 0
}
