package tracetest

import (
	"fmt"
	"strings"
)

// Options break one thing each of a training that is well.
type Options struct {
	Steps      int
	Loader     int64 // ns that a batch takes longer
	Items      int   // values read in each step, spread over it
	Pageable   bool  // batches are copied from pageable memory
	Tiny       int   // copies of 4 KiB a step
	Copies     int64 // bytes of a batch, copied on the computing stream
	HostCost   int64 // ns of Python before each launch
	Tiny2      bool  // kernels of 3 µs in place of all others
	Float32    bool  // products beside tensor cores
	Unfused    bool  // an optimizer that goes from parameter to parameter
	NoDevice   bool
	Exposed    bool // communication behind backward
	Messages   int  // all-reduces of 8 KiB a step
	Scores     bool // attention writes its scores
	Malloc     bool // allocations in each step
	Loads      bool // code is loaded in every other step
	Checkpoint bool // every third step copies all parameters back
	Volta      bool // a card of compute capability 7.0
	Pauses     bool // every fourth step the host pauses
	Odd        bool // a vocabulary of 50,257
	FewBlocks  bool
	Elementary bool  // operations on elements are not fused
	Reserved   int64 // bytes at the peak
	Summed     bool  // gradients are never zeroed
	Zeroed     bool  // they are filled with zeros
	Replicated int   // cards that one process drives by DataParallel
	Gloo       bool  // the backend of the job
	Accumulate int   // batches before each step of the optimizer, of which all but the last are under no_sync
	Sync       bool  // none is
	Idle       int64 // ns a step in which a launched kernel waits for something that is not in the trace
}

// layer is a convolution of ResNet-50, as it occurs n times: FLOP of a picture's forward pass, and elements of its result.
type layer struct {
	n        int
	flop     float64
	elements float64
}

// resnet are the stages of ResNet-50 at 224 x 224: 8.4e9 FLOP a picture, of multiply-adds twice the number in arXiv
// 1512.03385, table 1, shared out evenly within a stage.
var resnet = []layer{{1, 0.236e9, 802816}, {9, 0.150e9, 400000}, {13, 0.160e9, 200000}, {19, 0.165e9, 100000}, {11, 0.150e9, 50000}}

// newMachine is a machine that launches in 5 µs, its file's metadata those of rank 0 of world processes.
func newMachine(world int) *Machine {
	m := &Machine{LaunchCost: 5 * us, now: 10 * ms, free: map[int]int64{}}
	if world > 1 {
		m.Meta = fmt.Sprintf(`"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": %d, "nccl_version": "2.21.5"}, `, world)
	}
	return m
}

// ResNet is ResNet-50 of 256 pictures with mixed precision, channels last and compiled: 53 convolutions forward and twice
// that backward on tensor cores, each with one fused kernel behind it that reads and writes its result once, and an optimizer
// of four kernels. Batches come from workers within 0.2 ms, pinned, on a stream of their own.
func ResNet(o Options) []byte {
	m := newMachine(1)
	m.noDevice = o.NoDevice
	m.Old = true
	const batch = 256
	for i := range o.Steps {
		m.step(i, &o, func() {
			m.batch(&o, batch*3*224*224*4)
			for range 3 {
				for _, l := range resnet {
					for range l.n {
						m.product(&o, "aten::convolution", "[[256, 64, 56, 56], [64, 64, 3, 3]]", l.flop*batch)
						m.fused(&o, l.elements*batch*2*2)
					}
					m.extras(&o)
				}
			}
			m.optimizer(&o, 25.6e6)
		})
	}
	return m.JSON()
}

// GPT is GPT-2 of 124 million parameters, 16 sequences of 1,024 tokens in bfloat16 with flash attention and a fused loss, on
// rank 0 of 8: products forward and twice that backward, gradients reduced in buckets of 25 MB on a stream of their own
// while backward goes on (busbw 200 GB/s), and a fused AdamW.
func GPT(o Options) []byte {
	m := newMachine(8)
	m.noDevice, m.volta = o.NoDevice, o.Volta
	const tokens, hidden = 16 * 1024, 768
	m.backend(&o)
	for i := range o.Steps {
		m.step(i, &o, func() {
			for k := range max(o.Accumulate, 1) {
				m.batch(&o, tokens*8*2)
				m.passes(&o, tokens, hidden, o.Sync || k+1 >= o.Accumulate)
			}
			m.optimizer(&o, 124e6)
		})
	}
	return m.JSON()
}

// backend writes how the job communicates.
func (m *Machine) backend(o *Options) {
	if o.Gloo {
		m.Meta = strings.Replace(m.Meta, "nccl", "gloo", 1)
	}
}

// passes are GPT's forward pass and twice that backward, whose gradients are reduced or not.
func (m *Machine) passes(o *Options, tokens, hidden float64, reduced bool) {
	name := "DistributedDataParallel.forward"
	if o.Replicated > 0 {
		name = "DataParallel.forward"
	}
	for pass := range 3 {
		layers := func() {
			for l := range 12 {
				m.block(o, tokens, hidden)
				if pass == 2 && l%2 == 0 && !o.Exposed && reduced {
					m.reduce(25<<20, int64(25<<20*1.75/200), 7)
				}
			}
		}
		if pass == 0 {
			m.Range("user_annotation", name, "", layers)
		} else {
			layers()
		}
		m.head(o, tokens, hidden)
		m.extras(o)
	}
	for card := 1; card < o.Replicated; card++ {
		m.event("kernel", "triton_poi_fused_add_mul_0", card, 7, m.now, 5*us, fmt.Sprintf(`"device": %d, "stream": 7, "correlation": 0`, card))
	}
	for range o.Messages {
		m.reduce(8<<10, 30*us, 7)
	}
	if o.Exposed && reduced {
		for range 6 {
			m.reduce(25<<20, 2*ms, 7)
		}
	}
}

func (m *Machine) step(i int, o *Options, inside func()) {
	m.Range("user_annotation", fmt.Sprintf("ProfilerStep#%d", i+3), "", func() {
		inside()
		if o.Malloc {
			m.Call("cudaFree", 20*ms)
			m.Call("cudaMalloc", ms)
		}
		if o.Loads && i%2 == 0 {
			m.Call("cuModuleLoadData", 30*ms)
		}
		if o.Checkpoint && i%3 == 1 {
			m.Copy("DtoH (Device -> Pinned)", 7, 3<<30, 22, false)
			m.Sync(7)
		}
		if o.Pauses && i%4 == 2 {
			m.Work(200 * ms)
		}
		if o.Reserved > 0 {
			m.out.WriteString(fmt.Sprintf(",\n"+`{"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 4242, "tid": 4242, "ts": %s, "args": {"Device Type": 1, "Device Id": 0, "Bytes": 512, "Total Allocated": %d, "Total Reserved": %d}}`,
				micro(m.now), o.Reserved-1<<30, o.Reserved))
		}
	})
	m.Work(20 * us)
}

func (m *Machine) batch(o *Options, bytes int64) {
	m.Range("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "", func() { m.Work(200*us + o.Loader) })
	kind, rate, stream := "HtoD (Pinned -> Device)", 22.0, 20
	if o.Pageable {
		kind, rate, stream = "HtoD (Pageable -> Device)", 5, 7
	}
	if o.Copies > 0 {
		bytes, stream = o.Copies, 7
	}
	m.Op("aten::copy_", "[[256, 3, 224, 224]]", `["float"]`, func() {
		m.Copy(kind, stream, bytes, rate, o.Pageable)
		if o.Pageable {
			m.Sync(stream)
		}
	})
	for range o.Tiny {
		m.Op("aten::copy_", "[[1024]]", `["float"]`, func() { m.Copy("DtoD (Device -> Device)", 7, 4096, 2, false) })
	}
}

func (m *Machine) product(o *Options, op, shapes string, flop float64) {
	m.Work(o.HostCost)
	switch {
	case o.Tiny2:
		m.Product(op, shapes, `["c10::BFloat16", "c10::BFloat16"]`, "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32", 0, 1)
	case o.Float32:
		m.Product(op, shapes, `["float", "float"]`, "ampere_sgemm_128x64_nn", flop, plainRate)
	default:
		m.Product(op, shapes, `["c10::BFloat16", "c10::BFloat16"]`, "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32", flop, tensorRate)
	}
}

// fused is one kernel for all that happens to a result; or one for each of four operations.
func (m *Machine) fused(o *Options, bytes float64) {
	m.Work(o.HostCost)
	switch {
	case o.Tiny2:
		m.Move("CompiledFunction", "triton_poi_fused_add_mul_0", 0)
	case o.Elementary:
		for _, op := range []string{"aten::add", "aten::mul", "aten::relu", "aten::add_"} {
			m.Move(op, "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)", bytes)
		}
	default:
		extra := ""
		if o.FewBlocks {
			extra = `"blocks per SM": 0.25`
		}
		m.Op("CompiledFunction", "[]", "[]", func() {
			m.Launch("triton_poi_fused_add_mul_0", 7, int64(bytes/memoryRate)+2*us, extra)
			if o.FewBlocks {
				m.Launch("triton_red_fused_sum_0", 7, int64(4*bytes/memoryRate)+2*us, extra)
			}
		})
	}
}

// block is one block of a transformer: four products, attention, two fused operations.
func (m *Machine) block(o *Options, tokens, hidden float64) {
	m.product(o, "aten::mm", "[[16384, 768], [768, 2304]]", 2*tokens*hidden*3*hidden)
	if o.Scores {
		scores := 16.0 * 12 * 1024 * 1024
		for _, op := range []string{"aten::mul", "aten::masked_fill", "aten::_softmax"} {
			m.Op(op, "[[16, 12, 1024, 1024]]", `["c10::BFloat16"]`, func() { m.Launch("triton_fused_softmax", 7, int64(scores*2*2/memoryRate), "") })
		}
	}
	m.Op("aten::_scaled_dot_product_flash_attention", "[[16, 12, 1024, 64]]", `["c10::BFloat16"]`, func() {
		m.Work(o.HostCost)
		dur := int64(4*tokens*1024*hidden/2/tensorRate) + 2*us
		if o.Tiny2 {
			dur = 2 * us
		}
		m.Launch("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 64, 4> >", 7, dur, "")
	})
	m.product(o, "aten::mm", "[[16384, 768], [768, 768]]", 2*tokens*hidden*hidden)
	m.fused(o, tokens*hidden*2*3)
	m.product(o, "aten::mm", "[[16384, 768], [768, 3072]]", 2*tokens*hidden*4*hidden)
	m.fused(o, tokens*hidden*4*2*2)
	m.product(o, "aten::mm", "[[16384, 3072], [3072, 768]]", 2*tokens*hidden*4*hidden)
}

func (m *Machine) head(o *Options, tokens, hidden float64) {
	m.product(o, "aten::mm", "[[16384, 768], [768, 50304]]", 2*tokens*hidden*50304)
	if o.Odd {
		m.Product("aten::mm", "[[16384, 768], [768, 50257]]", `["c10::BFloat16", "c10::BFloat16"]`, "sm80_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_align1", 2*tokens*hidden*50257, tensorRate*0.4)
	}
}

func (m *Machine) reduce(bytes, dur int64, after int) {
	m.Op("record_param_comms", "[[1024]]", `["c10::BFloat16"]`, func() {
		m.Launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 40, dur,
			fmt.Sprintf(`"blocks per SM": 0.2, "Collective name": "allreduce", "In msg nelems": %d, "Out msg nelems": %d, "Group size": 8, "dtype": "BFloat16", "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"`, bytes/2, bytes/2), after)
	})
}

// extras are what is wrong in many places of a step.
func (m *Machine) extras(o *Options) {
	for range o.Items {
		m.Op("aten::_local_scalar_dense", "[[]]", `["float"]`, func() {
			m.Copy("DtoH (Device -> Pinned)", 7, 4, 1, false)
			m.Sync(7)
		})
		m.Work(100 * us)
	}
	if o.Idle > 0 {
		m.free[7] = max(m.free[7], m.now) + o.Idle
	}
}

// gradients are those of 24 parameters, as backward leaves them.
func (m *Machine) gradients(o *Options) {
	for range 24 {
		m.Op("torch::autograd::AccumulateGrad", "[]", "[]", func() {
			if o.Summed {
				m.Op("aten::add_", "[]", "[]", func() { m.Launch("triton_poi_fused_add_0", 7, 2*us, "") })
			}
		})
	}
}

// zeroGrad lets them go, or fills them with zeros.
func (m *Machine) zeroGrad(o *Options, parameters float64) {
	if o.Summed {
		return
	}
	m.Range("user_annotation", "Optimizer.zero_grad#AdamW.zero_grad", "", func() {
		if o.Zeroed {
			const tensors = 148
			for range tensors {
				m.Op("aten::zero_", "[]", "[]", func() { m.Launch("triton_poi_fused_zeros_0", 7, int64(4*parameters/tensors/memoryRate)+2*us, "") })
			}
		}
	})
}

func (m *Machine) optimizer(o *Options, parameters float64) {
	m.gradients(o)
	defer m.zeroGrad(o, parameters)
	m.Range("user_annotation", "Optimizer.step#AdamW.step", "", func() {
		n, name := 4, "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4> >"
		if o.Unfused {
			n, name = 1200, "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"
			m.Work(4 * ms)
		}
		if o.Tiny2 {
			parameters = 0
		}
		for range n {
			m.Work(o.HostCost)
			m.Launch(name, 7, int64(28*parameters/memoryRate)/int64(n)+2*us, "", 40)
		}
	})
}
