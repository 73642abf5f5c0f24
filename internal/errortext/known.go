package errortext

import (
	"slices"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/literal"
)

// Class is what kind of root a text is, for those who look for the first failure of a job.
type Class string

// The classes.
const (
	Program  Class = "program"  // the program's own mistake, or more than the card has
	Host     Class = "host"     // the host's memory, files and limits, of which the job took too much
	Hardware Class = "hardware" // the card, its links, or the machine is broken
	Setup    Class = "setup"    // driver, libraries, what is visible: the program never got to compute
	Notice   Class = "notice"   // a warning that stops nothing
)

// Row is a text that is known.
type Row struct {
	Name, Rule string
	Class      Class
	pattern    *literal.Pattern // of the text without its spaces
	title      string           // $1, $2, … are what the parentheses of the pattern held
	fix        string
	disproved  string
	sure       finding.Confidence
	pytorch    bool // an out-of-memory of PyTorch's allocators: judged by its figures
	bytes      int  // the parentheses that hold a size in bytes that was asked for
	xid        int  // those that hold a number of the driver's errors
}

// Unnamed is an exception of Python that no row knows.
var Unnamed = Row{Name: "exception", Rule: "J01", Class: Program}

// text is a pattern over text without spaces, in any case.
func text(forms ...string) *literal.Pattern {
	for i, f := range forms {
		forms[i] = strings.ReplaceAll(f, " ", "")
	}
	return literal.NewPattern(`(?i)`, forms...)
}

// rows are asked in this order, and the first whose text begins in a line has it.
var rows = slices.Concat(memoryRows, placementRows, deviceRows, setupRows, hostRows, programRows, buildRows, noticeRows)

// table is of their patterns, in the same order.
var table = sync.OnceValue(func() *literal.Table {
	patterns := make([]*literal.Pattern, len(rows))
	for i := range rows {
		patterns[i] = rows[i].pattern
	}
	return literal.NewTable(patterns...)
})

// Rows are all texts that are known.
func Rows() []Row { return rows }

var memoryRows = []Row{
	{Name: "mps-oom", Rule: "R11", Class: Program, sure: finding.High,
		pattern:   text(`MPS backend out of memory\(MPS allocated:([\d.]+[KMGT]i?B),other allocations:([\d.]+[KMGT]?i?B(?:ytes)?),max allowed:([\d.]+[KMGT]i?B)\)\.(?:Tried to allocate([\d.]+[KMGT]?i?B(?:ytes)?))?`),
		title:     "the Mac's memory for its GPU ran out: $1 in use, $2 of others, $4 asked for, $3 allowed",
		fix:       "halve the batch; close what else uses memory; PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 lifts the limit, and the whole machine may then stall",
		disproved: "the same batch passes after a restart of the machine"},
	{Name: "jax-oom", Rule: "R11", Class: Program, sure: finding.Medium, bytes: 1,
		pattern:   text(`RESOURCE_?EXHAUSTED:(?:Out of memory(?:while trying to allocate|allocating)|Failed to allocate request for[\d.]+[KMGT]iB\()(\d+)(?:bytes|B\))`, `Resource exhausted:Out of memory while trying to allocate(\d+)bytes`),
		title:     "JAX asked for $1, and the card had no such piece",
		fix:       "if another process uses the card: XLA_PYTHON_CLIENT_PREALLOCATE=false, or XLA_PYTHON_CLIENT_MEM_FRACTION=.9; else halve the batch or jax.checkpoint the layers",
		disproved: "the peak that XLA prints (BufferAssignment) is well below the card's memory"},
	{Name: "tensorflow-oom", Rule: "R11", Class: Program, sure: finding.Medium,
		pattern:   text(`OOM when allocating tensor with shape(\[[\d,]*\])and type(\w+?)(?:on/|\W|$)`),
		title:     "TensorFlow had no room for a $2 tensor of shape $1",
		fix:       "halve the batch; tf.config.experimental.set_memory_growth(gpu, True) where another process uses the card",
		disproved: "the same batch passes when nothing else is on the card"},
	{Name: "host-oom", Rule: "D43", Class: Host, sure: finding.High, bytes: 1,
		pattern:   text(`DefaultCPUAllocator:(?:can't allocate memory:|not enough memory:)?you tried to allocate(\d+)bytes`),
		title:     "it is the host's memory that ran out, not the card's: $1 were refused",
		fix:       "free -h and the job's limit (cat /sys/fs/cgroup/memory.max): ask for more, load the checkpoint with mmap=True, or use fewer loader workers",
		disproved: "free memory and limit are far above the request: then ulimit -v, or vm.overcommit_memory=2"},
	{Name: "pytorch-oom", Rule: "R11", Class: Program, pytorch: true, sure: finding.Medium,
		pattern: text(`(?:(CUDA|HIP|XPU|NPU|GPU) out of memory\W*)?Tried to allocate(?:\d+(?:\.\d+)?(?:bytes|[KMGTP]i?B)|more than 1EB)`)},
	{Name: "cublas-alloc", Rule: "R11", Class: Program, sure: finding.Medium,
		pattern:   text(`CUBLAS_STATUS_ALLOC_FAILED`),
		title:     "cuBLAS had no room for its workspace: the card was full before it came",
		fix:       "halve the batch; or leave it room: torch.cuda.set_per_process_memory_fraction(0.95)",
		disproved: "nvidia-smi shows free memory when it fails: then an index out of range is likelier, so run it with CUDA_LAUNCH_BLOCKING=1"},
	{Name: "cudnn-algorithm", Rule: "R11", Class: Program, sure: finding.Low,
		pattern:   text(`Unable to find a valid cuDNN algorithm to run convolution`, `GET was unable to find an engine to execute this computation`),
		title:     "cuDNN found no way to compute a convolution, most often for want of memory for its workspace",
		fix:       "halve the batch; if it fails with batch 1 as well, compare the dtype and the card with what the version of cuDNN supports",
		disproved: "it fails with one small sample on an empty card"},
	{Name: "cuda-oom", Rule: "R11", Class: Program, sure: finding.Medium,
		pattern:   text(`CUDA error:out of memory`, `cudaMalloc failed:out of memory`, `CUDA_ERROR_OUT_OF_MEMORY`, `cudaErrorMemoryAllocation`, `CUDA runtime error\(2\):out of memory`, `CUDA failure(?:2)?'?out of memory`, `CUDA out of memory(?:\.|$)`, `HIP error:out of memory`, `hipErrorOutOfMemory`),
		title:     "the card was out of memory, and the text has no figures: this is how a context, a library or another allocator reports it",
		fix:       "nvidia-smi while it runs: another process on the card is the usual cause (in multi-process jobs, ranks that all use card 0: set the device by LOCAL_RANK); else halve the batch",
		disproved: "nvidia-smi shows the card nearly empty when it fails: then warpline doctor"},
	{Name: "oom-killer", Rule: "D43", Class: Host, sure: finding.High,
		pattern:   text(`Out of memory:Kill(?:ed)?process(\d+)`, `Detected\d+oom[-_]kill event`, `oom-kill:constraint=`, `OOMKilled`, `Memory cgroup out of memory`),
		title:     "the kernel killed the process for want of host memory",
		fix:       "ask for more host memory (--mem, resources.limits.memory), or take less: fewer loader workers, no copy of the data set in each, checkpoints read with mmap=True",
		disproved: "memory.events of the job's cgroup counts no oom_kill"},
	{Name: "ray-oom", Rule: "D43", Class: Host, sure: finding.High,
		pattern:   text(`ray\.exceptions\.OutOfMemoryError`, `due to the node running low on memory`, `Workers? were killed due to memory pressure`),
		title:     "Ray killed a worker because the node ran low on host memory",
		fix:       "give each worker fewer tasks at once (num_cpus in ray.remote), or more memory to the node",
		disproved: "RAY_memory_monitor_refresh_ms=0 lets it run within the node's memory"},
}

var placementRows = []Row{
	{Name: "two-devices", Rule: "R01", Class: Program, sure: finding.High,
		pattern:   text(`Expected all tensors to be on the same device,but found at least two devices,([\w:]+)and([\w:]+)!(?:\(when checking argument for argument(\w+)in method(\w+)\))?`),
		title:     "operands are on different devices, $1 and $2",
		fix:       "move the one that is made in the program: usual are a tensor made in forward without device=x.device, a mask or position table that is no registered buffer, layers in a plain list, labels left on the host",
		disproved: "all operands of that line print the same .device"},
	{Name: "got-device", Rule: "R01", Class: Program, sure: finding.High,
		pattern:   text(`Expected all tensors to be on the same device,but got(\w+)is on([\w:]+),different from other tensors on([\w:]+)`),
		title:     "the operand $1 is on $2, the others are on $3",
		fix:       "move $1: .to($3), where it is made",
		disproved: "all operands of that line print the same .device"},
	{Name: "input-on-host", Rule: "R01", Class: Program, sure: finding.High,
		pattern:   text(`Input type\(torch\.[A-Z]\w*\)and(?:weight|bias)type\(torch\.cuda\.\w+\)should be the same`),
		title:     "the input is on the host and the model on the card",
		fix:       "batch = batch.to(device), for each tensor of the batch, before the model is called",
		disproved: "x.device of the input is the card's"},
	{Name: "model-on-host", Rule: "R01", Class: Program, sure: finding.High,
		pattern:   text(`Input type\(torch\.cuda\.\w+\)and(?:weight|bias)type\(torch\.[A-Z]\w*\)should be the same`),
		title:     "the input is on the card and the layer's weights on the host",
		fix:       "model.to(device) before training; a layer that still stays behind is in a plain list or dict: use nn.ModuleList or nn.ModuleDict",
		disproved: "next(layer.parameters()).device is the card's"},
	{Name: "expected-device", Rule: "R01", Class: Program, sure: finding.High,
		pattern:   text(`Expected object of(?:device type|backend)(\w+)but got(?:device type|backend)(\w+)for argument`, `Tensor for argument#?\d*'?\w*'?is on (\w+),but expected it to be on(\w+)`, `Tensor for'?\w+'?is on(\w+),Tensor for argument#\d+'?\w+'?is on(\w+)`),
		title:     "operands are on different devices",
		fix:       "move both to one device with .to(device) before the line",
		disproved: "all operands of that line print the same .device"},
	{Name: "index-device", Rule: "R01", Class: Program, sure: finding.High,
		pattern:   text(`indices should be either on(\w+)or on the same device as the indexed tensor`),
		title:     "an index is on a card and what it indexes is not",
		fix:       "x[index.to(x.device)]",
		disproved: "index.device and x.device are the same"},
	{Name: "parallel-device", Rule: "R01", Class: Program, sure: finding.High,
		pattern:   text(`module must have its parameters and buffers on device([\w:]+)\(device_ids\[0\]\)but found one of them on device:([\w:]+)`),
		title:     "DataParallel wants the model on $1 and finds a part on $2",
		fix:       "model.to(device_ids[0]) before nn.DataParallel; better, DistributedDataParallel with a process for each card",
		disproved: "every parameter and buffer is on $1"},
	{Name: "numpy-of-card", Rule: "R01", Class: Program, sure: finding.High,
		pattern:   text(`can't convert(?:([\w:]+)device type|CUDA)tensor to numpy`, `can't convert type'?torch\.cuda`),
		title:     "NumPy is asked for a tensor that is on a card",
		fix:       "x.detach().cpu().numpy(); where it is for a log, once in some steps: each waits for the card",
		disproved: "x.device is cpu"},
	{Name: "numpy-of-graph", Rule: "R01", Class: Program, sure: finding.High,
		pattern:   text(`Can't call numpy\(\)on(?:Tensor|Variable)that requires grad`),
		title:     "NumPy is asked for a tensor that belongs to a graph",
		fix:       "x.detach().cpu().numpy(); in evaluation, put the whole under torch.inference_mode()",
		disproved: "x.requires_grad is False"},
	{Name: "card-checkpoint", Rule: "R01", Class: Program, sure: finding.High,
		pattern:   text(`Attempting to deserialize object on(?:a)?CUDA device(?:\d+)?but torch\.cuda\.(?:is_available\(\)is False|device_count\(\)is\d+)`),
		title:     "the checkpoint was saved from a card that is not here",
		fix:       "torch.load(path, map_location=\"cpu\", weights_only=True), then model.to(device); if a card should be here: warpline doctor",
		disproved: "torch.cuda.device_count() is as large as where it was saved"},
	{Name: "meta-tensor", Rule: "R01", Class: Program, sure: finding.Medium,
		pattern:   text(`Cannot copy out of meta tensor;no data!`),
		title:     "a parameter has a shape and no data: it was made on the meta device and never filled",
		fix:       "load the checkpoint before .to(device), or module.to_empty(device=device) and initialise; names that the checkpoint lacks are listed by load_state_dict(strict=True)",
		disproved: "no parameter has .is_meta"},
	{Name: "input-weight-dtype", Rule: "R02", Class: Program, sure: finding.High,
		pattern:   text(`Input type\(([\w.:]+)\)and(?:weight|bias)type\(([\w.:]+)\)should be the same`),
		title:     "the input is $1 and the weights are $2",
		fix:       "run it under torch.autocast(\"cuda\", dtype=torch.bfloat16), or bring the input to the weights' dtype: x.to(next(model.parameters()).dtype)",
		disproved: "both print the same .dtype"},
	{Name: "scalar-type", Rule: "R02", Class: Program, sure: finding.High,
		pattern: text(`expected scalar type(\w+?)but found(\w+)`, `Expected object of scalar type(\w+?)but got scalar type(\w+)`, `expected m1 and m2 to have the same dtype,but got`,
			`mat1 and mat2 must have the same dtype`, `result type(\w+?)can't be cast to the desired output type(\w+)`),
		title:     "operands have different dtypes",
		fix:       "run the forward pass under torch.autocast, or bring both to one dtype with .to(); a model in half precision wants its inputs and its new layers (adapters, heads) in it too",
		disproved: "all operands of that line print the same .dtype"},
	{Name: "not-implemented-for", Rule: "R02", Class: Program, sure: finding.High,
		pattern:   text(`"(\w+)"not implemented for'(\w+)'`),
		title:     "$1 has no kernel for $2 on this device",
		fix:       "for Half or BFloat16 on the host: model.float(), or move it to the card; for Int or Long: labels and masks want another dtype (.long() for classes, .float() for regression)",
		disproved: "the operand prints another .dtype"},
	{Name: "numpy-dtype", Rule: "R02", Class: Program, sure: finding.High,
		pattern:   text(`Got unsupported ScalarType(BFloat16|Half|Float8\w*)`),
		title:     "NumPy has no $1",
		fix:       "x.float().cpu().numpy()",
		disproved: "x.dtype is one that NumPy has"},
	{Name: "unscale-fp16", Rule: "R02", Class: Program, sure: finding.High,
		pattern:   text(`Attempting to unscale FP16 gradients`),
		title:     "a loss scaler met gradients in float16: the weights themselves are in half precision",
		fix:       "keep the weights in float32 and compute under autocast (load without torch_dtype=torch.float16), or train in bfloat16 without a scaler",
		disproved: "all trainable parameters are float32"},
}
