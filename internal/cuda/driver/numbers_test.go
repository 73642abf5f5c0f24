package driver_test

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// inHeader are the names that constants other than results have in cuda.h.
var inHeader = map[string]string{
	"MaxThreadsPerBlock": "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK", "MaxBlockDimX": "CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X",
	"MaxBlockDimY": "CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y", "MaxBlockDimZ": "CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z",
	"MaxGridDimX": "CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X", "MaxGridDimY": "CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y",
	"MaxGridDimZ": "CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z", "MaxSharedPerBlock": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK",
	"TotalConstant": "CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY", "WarpSize": "CU_DEVICE_ATTRIBUTE_WARP_SIZE",
	"MaxRegistersPerBlock": "CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK", "ClockRate": "CU_DEVICE_ATTRIBUTE_CLOCK_RATE",
	"MultiprocessorCount": "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT", "Integrated": "CU_DEVICE_ATTRIBUTE_INTEGRATED",
	"CanMapHostMemory": "CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY", "ConcurrentKernels": "CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS",
	"PCIBusID": "CU_DEVICE_ATTRIBUTE_PCI_BUS_ID", "MemoryClockRate": "CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE",
	"MemoryBusWidth": "CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH", "L2CacheSize": "CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE",
	"MaxThreadsPerSM": "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR", "AsyncEngineCount": "CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT",
	"UnifiedAddressing": "CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING", "ComputeMajor": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
	"ComputeMinor": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR", "MaxSharedPerSM": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
	"MaxRegistersPerSM": "CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR", "ManagedMemory": "CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY",
	"PageableMemoryAccess": "CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS", "CooperativeLaunch": "CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH",
	"MaxSharedPerBlockOptin": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", "MaxBlocksPerSM": "CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR",
	"ReservedSharedPerBlock": "CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK", "MemoryPoolsSupported": "CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED",
	"ClusterLaunch": "CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH", "VirtualMemory": "CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED",
	"GranularityMinimum": "CU_MEM_ALLOC_GRANULARITY_MINIMUM", "GranularityRecommended": "CU_MEM_ALLOC_GRANULARITY_RECOMMENDED",
	"AccessNone": "CU_MEM_ACCESS_FLAGS_PROT_NONE", "AccessRead": "CU_MEM_ACCESS_FLAGS_PROT_READ", "AccessReadWrite": "CU_MEM_ACCESS_FLAGS_PROT_READWRITE",

	"FuncMaxThreadsPerBlock": "CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK", "FuncSharedSize": "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES",
	"FuncConstSize": "CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES", "FuncLocalSize": "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES",
	"FuncNumRegs": "CU_FUNC_ATTRIBUTE_NUM_REGS", "FuncPTXVersion": "CU_FUNC_ATTRIBUTE_PTX_VERSION",
	"FuncBinaryVersion": "CU_FUNC_ATTRIBUTE_BINARY_VERSION", "FuncMaxDynamicShared": "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
	"FuncPreferredCarveout": "CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT",

	"CtxSchedBlockingSync": "CU_CTX_SCHED_BLOCKING_SYNC", "StreamNonBlocking": "CU_STREAM_NON_BLOCKING",
	"EventBlockingSync": "CU_EVENT_BLOCKING_SYNC", "EventDisableTiming": "CU_EVENT_DISABLE_TIMING", "HostPortable": "CU_MEMHOSTALLOC_PORTABLE",
	"CaptureGlobal": "CU_STREAM_CAPTURE_MODE_GLOBAL", "CaptureThreadLocal": "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL",
	"CaptureRelaxed": "CU_STREAM_CAPTURE_MODE_RELAXED", "CaptureNone": "CU_STREAM_CAPTURE_STATUS_NONE",
	"CaptureActive": "CU_STREAM_CAPTURE_STATUS_ACTIVE", "CaptureInvalidated": "CU_STREAM_CAPTURE_STATUS_INVALIDATED",
	"NodeKernel": "CU_GRAPH_NODE_TYPE_KERNEL", "NodeMemcpy": "CU_GRAPH_NODE_TYPE_MEMCPY", "NodeMemset": "CU_GRAPH_NODE_TYPE_MEMSET",
	"NodeGraph": "CU_GRAPH_NODE_TYPE_GRAPH", "NodeEmpty": "CU_GRAPH_NODE_TYPE_EMPTY", "NodeWaitEvent": "CU_GRAPH_NODE_TYPE_WAIT_EVENT",
	"NodeEventRecord": "CU_GRAPH_NODE_TYPE_EVENT_RECORD", "UpdateSuccess": "CU_GRAPH_EXEC_UPDATE_SUCCESS",
	"UpdateError": "CU_GRAPH_EXEC_UPDATE_ERROR", "UpdateTopologyChanged": "CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED",
	"UpdateNodeTypeChanged":   "CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED",
	"UpdateFunctionChanged":   "CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED",
	"UpdateParametersChanged": "CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED",
	"UpdateNotSupported":      "CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED",
	"GraphAutoFreeOnLaunch":   "CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH",
	"GraphUseNodePriority":    "CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY",

	"StreamLegacy": "CU_STREAM_LEGACY", "StreamPerThread": "CU_STREAM_PER_THREAD",
}

// constants are those of the package that are written with a number, by type and name.
func constants(t *testing.T) map[[2]string]int64 {
	found := map[[2]string]int64{}
	for _, f := range testutil.Source(t, ".", false) {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			number, ok := spec.Values[0].(*ast.BasicLit)
			if !ok || number.Kind != token.INT {
				return true
			}
			typ, _ := spec.Type.(*ast.Ident)
			v, err := strconv.ParseInt(number.Value, 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			key := [2]string{"", spec.Names[0].Name}
			if typ != nil {
				key[0] = typ.Name
			}
			found[key] = v
			return true
		})
	}
	return found
}

// Every constant has the number of cuda.h. Neither the simulated GPU nor the driver's stand-in would notice another: both
// are written with these constants.
func TestNumbers(t *testing.T) {
	numbers, found := shimtest.Numbers(), constants(t)
	if len(found) < 90 || len(numbers) < 150 {
		t.Fatalf("%d constants, %d numbers", len(found), len(numbers))
	}
	results := 0
	for key, v := range found {
		typ, name := key[0], key[1]
		want := inHeader[name]
		if typ == "Result" {
			want = driver.Result(v).String() // which TestNames compares
			results++
		}
		if n, ok := numbers[want]; !ok || n != v {
			t.Errorf("%s %s is %d, in cuda.h %s is %d", typ, name, v, want, n)
		}
	}
	if len(found) != results+len(inHeader) {
		t.Errorf("%d constants, %d of them results, and %d names", len(found), results, len(inHeader))
	}
}

// isResult reports whether a number is a CUresult.
func isResult(name string) bool {
	return name == "CUDA_SUCCESS" || strings.HasPrefix(name, "CUDA_ERROR_")
}

// Every result of cuda.h has its name there and a meaning, and no other has one.
func TestNames(t *testing.T) {
	known := 0
	for name, n := range shimtest.Numbers() {
		if !isResult(name) {
			continue
		}
		known++
		if r := driver.Result(n); r.String() != name {
			t.Errorf("%d is %s, want %s", n, r, name)
		}
		if e := (&driver.Error{Call: "f", Result: driver.Result(n)}); strings.HasSuffix(e.Error(), ": ") || strings.Contains(e.Error()+e.Hint(), "\n") {
			t.Errorf("%q, %q", e, e.Hint())
		}
	}
	for r := range driver.Result(2000) {
		if r.Known() {
			known--
		}
	}
	if known != 0 {
		t.Errorf("%d results of cuda.h more than the package has", known)
	}
}

// What NVIDIA says of these results: further work returns the same error, until the process ends or the context does.
func TestSticky(t *testing.T) {
	sticky := []string{"ECC_UNCORRECTABLE", "NVLINK_UNCORRECTABLE", "CONTAINED", "ILLEGAL_ADDRESS", "LAUNCH_TIMEOUT", "CONTEXT_IS_DESTROYED", "ASSERT",
		"HARDWARE_STACK_ERROR", "ILLEGAL_INSTRUCTION", "MISALIGNED_ADDRESS", "INVALID_ADDRESS_SPACE", "INVALID_PC", "LAUNCH_FAILED", "TENSOR_MEMORY_LEAK",
		"MPS_CLIENT_TERMINATED", "EXTERNAL_DEVICE"}
	numbers := shimtest.Numbers()
	for _, name := range sticky {
		if r := driver.Result(numbers["CUDA_ERROR_"+name]); !r.Sticky() {
			t.Errorf("%s is not sticky", r)
		}
		delete(numbers, "CUDA_ERROR_"+name)
	}
	for name, n := range numbers {
		if isResult(name) && driver.Result(n).Sticky() {
			t.Errorf("%s is sticky", name)
		}
	}
}

// What keeps a card from running the kernels that the program has as PTX, or from being opened, is told with what to do.
func TestHints(t *testing.T) {
	for _, test := range []struct {
		call   string
		result driver.Result
		words  []string
	}{
		{"cuModuleLoadDataEx", 221, []string{"libnvidia-ptxjitcompiler", "compute,utility"}},
		{"cuModuleLoadDataEx", 222, []string{"update", "470"}},
		{"cuModuleLoadDataEx", 223, []string{"CUDA_DISABLE_PTX_JIT"}},
		{"cuModuleLoadDataEx", 209, []string{"7.5"}},
		{"cuDevicePrimaryCtxRetain", 46, []string{"exclusively", "nvidia-smi -c 0"}},
		{"cuDevicePrimaryCtxRetain", 999, []string{"Prohibited", "nvidia-smi -c 0"}},
		{"cuDevicePrimaryCtxRetain", 2, []string{"nvidia-smi"}},
		{"cuDevicePrimaryCtxRetain", 102, []string{"license"}},
		{"cuDevicePrimaryCtxRetain", 304, []string{"/dev/nvidia"}},
		{"cuInit", 999, []string{"nvidia_uvm"}},
	} {
		e := &driver.Error{Call: test.call, Result: test.result}
		for _, w := range test.words {
			if !strings.Contains(e.Hint(), w) {
				t.Errorf("%s: %q is not in %q", e, w, e.Hint())
			}
		}
	}
	if h := (&driver.Error{Call: "cuMemAlloc", Result: driver.InvalidValue}).Hint(); h != "" {
		t.Errorf("a hint on a wrong argument: %q", h)
	}
}

func TestLearn(t *testing.T) {
	driver.Learn(4711, "CUDA_ERROR_NEW", "is new")
	driver.Learn(driver.NotReady, "CUDA_ERROR_OTHER", "is another")
	if s := driver.Check("cuInit", 4711).Error(); s != "cuInit: CUDA_ERROR_NEW (4711): is new" || driver.NotReady.String() != "CUDA_ERROR_NOT_READY" {
		t.Errorf("%s; %s", s, driver.NotReady)
	}
	if s := driver.Check("cuInit", 4712).Error(); s != "cuInit: CUDA error 4712 (4712)" {
		t.Error(s)
	}
}
