package doctor

// Variables are those of the environment that probes read; no other is ever looked at. With each goes the form in which its
// value may leave the machine in a bundle, empty for those whose values stay here.
var Variables = map[string]string{
	visible: "cards", "CUDA_DEVICE_ORDER": "word", "NVIDIA_VISIBLE_DEVICES": "cards", "NVIDIA_DRIVER_CAPABILITIES": "words",
	"LD_LIBRARY_PATH": "library", "LD_PRELOAD": "",
	"CUDA_LAUNCH_BLOCKING": "number", "CUDA_DEVICE_MAX_CONNECTIONS": "number", "CUDA_MODULE_LOADING": "word", "CUDA_DISABLE_PTX_JIT": "number",
	"CUDA_FORCE_PTX_JIT": "number", "CUDA_CACHE_DISABLE": "number", "CUDA_CACHE_PATH": "", "CUDA_CACHE_MAXSIZE": "number", "CUDA_HOME": "", "CUDA_PATH": "",
	"CUDA_MPS_PIPE_DIRECTORY": "", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "number", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "cards",
	"CUDA_INJECTION64_PATH": "", "CUDA_INJECTION32_PATH": "", "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "number", "CUDA_COREDUMP_FILE": "",
	"CUDA_DEVICE_WAITS_ON_EXCEPTION": "number", "CUDA_PROFILE": "number", "CUDA_AUTO_BOOST": "number", "NSIGHT_CUDA_DEBUGGER": "number",
	"CUBLAS_WORKSPACE_CONFIG": "workspace", "TORCH_CUDNN_DETERMINISTIC": "number", "TORCH_SHOW_CPP_STACKTRACES": "number", "TORCH_DISTRIBUTED_DEBUG": "word",
	"TORCH_CUDA_ARCH_LIST": "", "PYTORCH_NO_CUDA_MEMORY_CACHING": "number", "PYTORCH_CUDA_ALLOC_CONF": "", "PYTORCH_ALLOC_CONF": "",
	"NCCL_DEBUG": "word", "NCCL_P2P_DISABLE": "number", "NCCL_SHM_DISABLE": "number", "NCCL_IB_DISABLE": "number", "NCCL_P2P_LEVEL": "word",
	"NCCL_SOCKET_IFNAME": "interface", "NCCL_IB_HCA": "", "NCCL_ALGO": "", "NCCL_PROTO": "",
	"RANK": "number", "LOCAL_RANK": "number", "WORLD_SIZE": "number", "LOCAL_WORLD_SIZE": "number", "OMP_NUM_THREADS": "number",
	"VIRTUAL_ENV": "", "CONDA_PREFIX": "", "WARPLINE_BLOCKING": "number", "WARPLINE_LIBCUDA": "", "WARPLINE_NVML": "", "WARPLINE_CPU": "word",
	"HSA_OVERRIDE_GFX_VERSION": "version",
}
