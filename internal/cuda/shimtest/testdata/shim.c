/* A libcuda for tests: the functions that the engine binds, with the prototypes of the CUDA driver API. Each checks what
 * its caller handed over, packs its arguments into words, and hands these to a function that shim_install was given; the
 * words come back with the results. Without one it answers something plausible at once: the no-op library.
 *
 * Declared after cuda.h 13.2, with __CUDA_API_VERSION_INTERNAL, the prototypes compile: they are the header's.
 *
 * Compiled by package shimtest. -DcuX=hidden_cuX leaves cuX out, as an older driver would. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef int CUdevice;
typedef int CUdevice_attribute;
typedef int CUfunction_attribute;
typedef int CUjit_option;
typedef int CUlaunchAttributeID;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct { char bytes[16]; } CUuuid;

typedef union {
	char pad[64];
	struct { unsigned int x, y, z; } clusterDim;
	int programmaticStreamSerializationAllowed;
} CUlaunchAttributeValue;

typedef struct {
	CUlaunchAttributeID id;
	char pad[8 - sizeof(CUlaunchAttributeID)];
	CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct {
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned int numAttrs;
} CUlaunchConfig;

typedef int CUstreamCaptureMode;
typedef int CUstreamCaptureStatus;
typedef int CUgraphNodeType;
typedef int CUgraphExecUpdateResult;
typedef int CUmemorytype;
typedef uint64_t cuuint64_t;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUarray_st *CUarray;
typedef struct CUkern_st *CUkernel;

typedef struct {
	CUfunction func;
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;

typedef struct {
	CUfunction func;
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
	CUkernel kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	void *reserved0;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	void *reserved1;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct {
	CUdeviceptr dst;
	size_t pitch;
	unsigned int value, elementSize;
	size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct {
	CUgraphExecUpdateResult result;
	CUgraphNode errorNode;
	CUgraphNode errorFromNode;
} CUgraphExecUpdateResultInfo;

typedef int CUmemAllocationGranularity_flags;
typedef unsigned long long CUmemGenericAllocationHandle;

typedef struct {
	int type;
	int id;
} CUmemLocation;

typedef struct {
	int type;
	int requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType;
		unsigned char gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} CUmemAllocationProp;

typedef struct {
	CUmemLocation location;
	int flags;
} CUmemAccessDesc;

/* The numbers are named as in cuda.h, and the structures are of its sizes. */
#define NUMBER(name, value) name = value,
#define SIZE_OF(type, value)
#define OFFSET_OF(type, field, value)
enum {
#include "numbers.h"
};
#undef NUMBER
#undef SIZE_OF
#undef OFFSET_OF
#define NUMBER(name, value)
#define SIZE_OF(type, value) _Static_assert(sizeof(type) == value, #type);
#define OFFSET_OF(type, field, value) _Static_assert(offsetof(type, field) == value, #type "." #field);
#include "numbers.h"
#undef NUMBER
#undef SIZE_OF
#undef OFFSET_OF
_Static_assert(sizeof(size_t) == 8, "words");

#define FUNCTIONS(X) \
	X(cuInit) X(cuDriverGetVersion) \
	X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetUuid_v2) X(cuDeviceTotalMem_v2) \
	X(cuDeviceGetAttribute) X(cuDeviceGetPCIBusId) X(cuDeviceCanAccessPeer) \
	X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease_v2) X(cuDevicePrimaryCtxReset_v2) \
	X(cuDevicePrimaryCtxSetFlags_v2) X(cuCtxSetCurrent) X(cuCtxGetCurrent) X(cuCtxSynchronize) \
	X(cuCtxEnablePeerAccess) X(cuCtxGetStreamPriorityRange) \
	X(cuModuleLoadDataEx) X(cuModuleUnload) X(cuModuleGetFunction) X(cuModuleGetGlobal_v2) \
	X(cuFuncLoad) X(cuFuncGetAttribute) X(cuFuncSetAttribute) X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
	X(cuMemGetInfo_v2) X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemAllocAsync) X(cuMemFreeAsync) \
	X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemHostRegister_v2) X(cuMemHostUnregister) \
	X(cuMemGetAllocationGranularity) X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemCreate) X(cuMemRelease) \
	X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess) \
	X(cuMemcpyHtoD_v2) X(cuMemcpyDtoH_v2) X(cuMemcpyDtoD_v2) \
	X(cuMemcpyHtoDAsync_v2) X(cuMemcpyDtoHAsync_v2) X(cuMemcpyDtoDAsync_v2) X(cuMemcpyPeerAsync) \
	X(cuMemsetD8Async) X(cuMemsetD32Async) \
	X(cuStreamCreateWithPriority) X(cuStreamDestroy_v2) X(cuStreamSynchronize) X(cuStreamQuery) X(cuStreamWaitEvent) \
	X(cuEventCreate) X(cuEventDestroy_v2) X(cuEventRecord) X(cuEventSynchronize) X(cuEventQuery) X(cuEventElapsedTime) \
	X(cuLaunchKernel) X(cuLaunchKernelEx) \
	X(cuStreamBeginCapture_v2) X(cuStreamEndCapture) X(cuStreamIsCapturing) X(cuStreamGetCaptureInfo_v2) \
	X(cuThreadExchangeStreamCaptureMode) X(cuGraphCreate) X(cuGraphDestroy) X(cuGraphClone) X(cuGraphNodeFindInClone) \
	X(cuGraphAddKernelNode) X(cuGraphAddKernelNode_v2) X(cuGraphAddMemcpyNode) X(cuGraphAddMemsetNode) X(cuGraphAddEmptyNode) \
	X(cuGraphAddEventRecordNode) X(cuGraphAddEventWaitNode) X(cuGraphAddChildGraphNode) \
	X(cuGraphAddDependencies) X(cuGraphRemoveDependencies) X(cuGraphDestroyNode) X(cuGraphGetNodes) X(cuGraphGetEdges) \
	X(cuGraphNodeGetType) X(cuGraphNodeGetDependencies) X(cuGraphInstantiateWithFlags) X(cuGraphExecUpdate_v2) \
	X(cuGraphExecKernelNodeSetParams) X(cuGraphExecKernelNodeSetParams_v2) X(cuGraphExecMemcpyNodeSetParams) \
	X(cuGraphExecMemsetNodeSetParams) X(cuGraphUpload) X(cuGraphLaunch) X(cuGraphExecDestroy)

#define OP(n) OP_##n,
enum { FUNCTIONS(OP) OPS };
#define NAME(n) #n "\n"
const char shim_names[] = FUNCTIONS(NAME);
uint64_t shim_counts[OPS];

/* What callers did wrong, a line each, as far as it fits. */
char shim_faults[4096];

static CUresult fault(const char *function, const char *condition) {
	static volatile char lock;
	while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE)) {
	}
	size_t n = strlen(shim_faults);
	snprintf(shim_faults + n, sizeof shim_faults - n, "%s: not so: %s\n", function, condition);
	__atomic_clear(&lock, __ATOMIC_RELEASE);
	return CUDA_ERROR_INVALID_VALUE;
}

#define CHECK(condition) do { if (!(condition)) return fault(__func__, #condition); } while (0)
#define ALIGNED(p, n) ((p) != NULL && (uintptr_t)(p) % (n) == 0)
#define OUT(p) CHECK(ALIGNED(p, sizeof *(p)))
#define SIZE(n) CHECK((n) >> 62 == 0)

/* The receiver of calls: (id, operation, words) to a result. */
struct shim_table {
	uint64_t size; /* of this structure */
	uint64_t id;
	int (*call)(uint64_t id, uint64_t op, uint64_t *words);
};

static struct shim_table table;

int shim_install(const struct shim_table *t) {
	CHECK(t != NULL && t->size == sizeof *t && t->call != NULL);
	table = *t;
	return CUDA_SUCCESS;
}

enum { WORDS = 16 };

/* Attributes of an A100, by number. */
static uint64_t device_attribute(uint64_t what) {
	static const struct { int what, value; } a[] = {
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
		{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
		{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
		{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
		{CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
		{CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
		{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
		{CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1410000},
		{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 108},
		{CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
		{CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
		{CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1},
		{CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1512000},
		{CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
		{CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 41943040},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
		{CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
		{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 167936},
		{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
		{CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
		{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 166912},
		{CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
		{CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
		{CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
	};
	for (size_t i = 0; i < sizeof a / sizeof *a; i++)
		if (what == (uint64_t)a[i].what) return (uint64_t)a[i].value;
	return 0;
}

static uint64_t function_attribute(uint64_t what) {
	switch (what) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return 1024;
	case CU_FUNC_ATTRIBUTE_NUM_REGS: return 32;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION: return 74;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION: return 80;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: return 49152;
	}
	return 0;
}

static uint64_t handle(void) {
	static uint64_t last = 0x1000;
	return __atomic_add_fetch(&last, 0x100, __ATOMIC_RELAXED);
}

static uint64_t address(uint64_t bytes) {
	static uint64_t next = 0x700000000000;
	return __atomic_fetch_add(&next, (bytes + 511) / 512 * 512, __ATOMIC_RELAXED);
}

/* Far from what address gives. */
static uint64_t reservation(uint64_t bytes) {
	static uint64_t next = 0x600000000000;
	return __atomic_fetch_add(&next, bytes, __ATOMIC_RELAXED);
}

static CUresult noop(int op, uint64_t *w) {
	static uint64_t current, capturing = (uint64_t)-1; /* a stream */
	const uint64_t gib = 1 << 30;
	const float ms = 1;
	switch (op) {
	case OP_cuDriverGetVersion: w[0] = 12040; break;
	case OP_cuDeviceGetCount: w[0] = 1; break;
	case OP_cuDeviceGetName: snprintf((char *)w[0], w[1], "no-op"); break;
	case OP_cuDeviceGetPCIBusId: snprintf((char *)w[0], w[1], "0000:01:00.0"); break;
	case OP_cuDeviceGetUuid_v2: memset((void *)w[0], 7, 16); break;
	case OP_cuDeviceTotalMem_v2: w[0] = 80 * gib; break;
	case OP_cuDeviceGetAttribute: w[0] = device_attribute(w[0]); break;
	case OP_cuDeviceCanAccessPeer: w[0] = 0; break;
	case OP_cuCtxSetCurrent: __atomic_store_n(&current, w[0], __ATOMIC_RELAXED); break;
	case OP_cuCtxGetCurrent: w[0] = __atomic_load_n(&current, __ATOMIC_RELAXED); break;
	case OP_cuCtxGetStreamPriorityRange: w[0] = 0; w[1] = (uint64_t)-5; break;
	case OP_cuDevicePrimaryCtxRetain:
	case OP_cuModuleLoadDataEx:
	case OP_cuModuleGetFunction:
	case OP_cuStreamCreateWithPriority:
	case OP_cuEventCreate:
	case OP_cuGraphCreate:
	case OP_cuGraphClone:
	case OP_cuGraphAddKernelNode:
	case OP_cuGraphAddKernelNode_v2:
	case OP_cuGraphAddMemcpyNode:
	case OP_cuGraphAddMemsetNode:
	case OP_cuGraphAddEmptyNode:
	case OP_cuGraphAddEventRecordNode:
	case OP_cuGraphAddEventWaitNode:
	case OP_cuGraphAddChildGraphNode:
	case OP_cuGraphInstantiateWithFlags: w[0] = handle(); break;
	case OP_cuStreamEndCapture:
		__atomic_store_n(&capturing, -1, __ATOMIC_RELAXED);
		w[0] = handle();
		break;
	case OP_cuStreamBeginCapture_v2: __atomic_store_n(&capturing, w[0], __ATOMIC_RELAXED); break;
	case OP_cuStreamIsCapturing: w[0] = w[0] == __atomic_load_n(&capturing, __ATOMIC_RELAXED); break;
	case OP_cuStreamGetCaptureInfo_v2:
		w[0] = w[0] == __atomic_load_n(&capturing, __ATOMIC_RELAXED);
		w[1] = w[2] = 1;
		w[3] = 0;
		break;
	case OP_cuThreadExchangeStreamCaptureMode:
	case OP_cuGraphGetNodes:
	case OP_cuGraphGetEdges:
	case OP_cuGraphNodeGetDependencies: memset(w, 0, WORDS * sizeof *w); break;
	case OP_cuModuleGetGlobal_v2: w[0] = address(256); w[1] = 256; break;
	case OP_cuFuncGetAttribute: w[0] = function_attribute(w[0]); break;
	case OP_cuOccupancyMaxActiveBlocksPerMultiprocessor: w[0] = 8; break;
	case OP_cuMemGetInfo_v2: w[0] = 79 * gib; w[1] = 80 * gib; break;
	case OP_cuMemGetAllocationGranularity: w[0] = 2 << 20; break;
	case OP_cuMemCreate: w[0] = handle(); break;
	case OP_cuMemAddressReserve: w[0] = reservation(w[0]); break;
	case OP_cuMemAlloc_v2:
	case OP_cuMemAllocAsync: w[0] = address(w[0]); break;
	case OP_cuMemHostAlloc: w[0] = (uint64_t)aligned_alloc(4096, (w[0] + 4095) / 4096 * 4096); break;
	case OP_cuMemFreeHost: free((void *)w[0]); break;
	case OP_cuEventElapsedTime: memcpy(w, &ms, sizeof ms); break;
	}
	return CUDA_SUCCESS;
}

static CUresult call(int op, uint64_t *w) {
	__atomic_fetch_add(&shim_counts[op], 1, __ATOMIC_RELAXED);
	return table.call != NULL ? table.call(table.id, op, w) : noop(op, w);
}

#define W(x) (uint64_t)(x)
#define CALL(op, ...) uint64_t w[WORDS] = {__VA_ARGS__}; CUresult r = call(OP_##op, w)
/* PASS pastes by itself: handed on to CALL, a renamed cuX would expand. */
#define PASS(op, ...) uint64_t w[WORDS] = {__VA_ARGS__}; return call(OP_##op, w)
/* GIVE writes a result, if there is one, in the type of the prototype. */
#define GIVE(p, type, word) if (r == CUDA_SUCCESS) *(p) = (type)w[word]

/* Results. */

/* The driver of tomorrow has one more. */
enum { TOMORROW = 950 };

static const char *name_of(CUresult r) {
#define NUMBER(name, value) if (value == r && (value == 0 ? strcmp(#name, "CUDA_SUCCESS") : strncmp(#name, "CUDA_ERROR_", 11)) == 0) return #name;
#define SIZE_OF(type, value)
#define OFFSET_OF(type, field, value)
#include "numbers.h"
	return r == TOMORROW ? "CUDA_ERROR_OF_TOMORROW" : NULL;
}

CUresult cuGetErrorName(CUresult error, const char **pStr) {
	OUT(pStr);
	*pStr = name_of(error);
	return *pStr != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **pStr) {
	OUT(pStr);
	*pStr = error == TOMORROW ? "nobody knew of it" : name_of(error);
	return *pStr != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Devices. */

CUresult cuInit(unsigned int Flags) { PASS(cuInit, W(Flags)); }
CUresult cuDriverGetVersion(int *version) {
	OUT(version);
	CALL(cuDriverGetVersion, 0);
	GIVE(version, int, 0);
	return r;
}

CUresult cuDeviceGetCount(int *count) { OUT(count); CALL(cuDeviceGetCount, 0); GIVE(count, int, 0); return r; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
	OUT(device);
	CALL(cuDeviceGet, W(ordinal));
	GIVE(device, CUdevice, 0);
	return r;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev) {
	CHECK(name != NULL && len > 0 && len <= 4096);
	PASS(cuDeviceGetName, W(name), W(len), W(dev));
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev) {
	CHECK(uuid != NULL);
	PASS(cuDeviceGetUuid_v2, W(uuid), W(dev));
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev) {
	OUT(bytes);
	CALL(cuDeviceTotalMem_v2, W(dev));
	GIVE(bytes, size_t, 0);
	return r;
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev) {
	OUT(pi);
	CALL(cuDeviceGetAttribute, W(attrib), W(dev));
	GIVE(pi, int, 0);
	return r;
}

CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev) {
	CHECK(pciBusId != NULL && len >= 13 && len <= 4096);
	PASS(cuDeviceGetPCIBusId, W(pciBusId), W(len), W(dev));
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peerDev) {
	OUT(can);
	CALL(cuDeviceCanAccessPeer, W(dev), W(peerDev));
	GIVE(can, int, 0);
	return r;
}

/* Contexts. */

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
	OUT(pctx);
	CALL(cuDevicePrimaryCtxRetain, W(dev));
	GIVE(pctx, CUcontext, 0);
	return r;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) { PASS(cuDevicePrimaryCtxRelease_v2, W(dev)); }
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) { PASS(cuDevicePrimaryCtxReset_v2, W(dev)); }
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
	PASS(cuDevicePrimaryCtxSetFlags_v2, W(dev), W(flags));
}

CUresult cuCtxSetCurrent(CUcontext ctx) { PASS(cuCtxSetCurrent, W(ctx)); }
CUresult cuCtxGetCurrent(CUcontext *pctx) { OUT(pctx); CALL(cuCtxGetCurrent, 0); GIVE(pctx, CUcontext, 0); return r; }
CUresult cuCtxSynchronize(void) { PASS(cuCtxSynchronize, 0); }

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
	CHECK(Flags == 0);
	PASS(cuCtxEnablePeerAccess, W(peerContext));
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
	OUT(leastPriority);
	OUT(greatestPriority);
	CALL(cuCtxGetStreamPriorityRange, 0);
	GIVE(leastPriority, int, 0);
	GIVE(greatestPriority, int, 1);
	return r;
}

/* Modules and functions. */

/* The image goes on with its length, which is that of a text; of the options only the logs are known. The driver writes
 * the sizes used over the sizes, in the lower halves. */
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options,
		void **optionValues) {
	OUT(module);
	CHECK(image != NULL);
	CHECK(numOptions == 0 || (ALIGNED(options, 4) && ALIGNED(optionValues, 8)));
	uint64_t logs[4] = {0}; /* information, its size, errors, their size */
	for (unsigned int i = 0; i < numOptions; i++) {
		CHECK(options[i] >= CU_JIT_INFO_LOG_BUFFER && options[i] <= CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
		CHECK(options[i] % 2 == 0 || optionValues[i] != NULL);
		CHECK(options[i] % 2 == 1 || (W(optionValues[i]) > 0 && W(optionValues[i]) <= 1 << 24));
		logs[options[i] - CU_JIT_INFO_LOG_BUFFER] = W(optionValues[i]);
	}
	CHECK((logs[0] == 0) == (logs[1] == 0) && (logs[2] == 0) == (logs[3] == 0));
	for (int i = 0; i < 4; i += 2)
		if (logs[i] != 0) *(char *)logs[i] = 0;
	CALL(cuModuleLoadDataEx, W(image), strlen(image), logs[0], logs[1], logs[2], logs[3]);
	for (unsigned int i = 0; i < numOptions; i++)
		if (options[i] % 2 == 0)
			*(unsigned int *)&optionValues[i] = (unsigned int)strlen((char *)logs[options[i] - CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES]) + 1;
	GIVE(module, CUmodule, 0);
	return r;
}

CUresult cuModuleUnload(CUmodule hmod) { PASS(cuModuleUnload, W(hmod)); }

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name) {
	OUT(hfunc);
	CHECK(name != NULL);
	CALL(cuModuleGetFunction, W(hmod), W(name), strlen(name));
	GIVE(hfunc, CUfunction, 0);
	return r;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name) {
	OUT(dptr);
	OUT(bytes);
	CHECK(name != NULL);
	CALL(cuModuleGetGlobal_v2, W(hmod), W(name), strlen(name));
	GIVE(dptr, CUdeviceptr, 0);
	GIVE(bytes, size_t, 1);
	return r;
}

CUresult cuFuncLoad(CUfunction function) { PASS(cuFuncLoad, W(function)); }

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc) {
	OUT(pi);
	CALL(cuFuncGetAttribute, W(attrib), W(hfunc));
	GIVE(pi, int, 0);
	return r;
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
	PASS(cuFuncSetAttribute, W(hfunc), W(attrib), W(value));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize) {
	OUT(numBlocks);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, W(func), W(blockSize), W(dynamicSMemSize));
	GIVE(numBlocks, int, 0);
	return r;
}

/* Memory. */

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
	OUT(free);
	OUT(total);
	CALL(cuMemGetInfo_v2, 0);
	GIVE(free, size_t, 0);
	GIVE(total, size_t, 1);
	return r;
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
	OUT(dptr);
	SIZE(bytesize);
	CALL(cuMemAlloc_v2, bytesize);
	GIVE(dptr, CUdeviceptr, 0);
	return r;
}

CUresult cuMemFree_v2(CUdeviceptr dptr) { PASS(cuMemFree_v2, dptr); }

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
	OUT(dptr);
	SIZE(bytesize);
	CALL(cuMemAllocAsync, bytesize, W(hStream));
	GIVE(dptr, CUdeviceptr, 0);
	return r;
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) { PASS(cuMemFreeAsync, dptr, W(hStream)); }

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
	OUT(pp);
	SIZE(bytesize);
	CHECK((Flags & ~(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)) == 0);
	CALL(cuMemHostAlloc, bytesize, W(Flags));
	GIVE(pp, void *, 0);
	return r;
}

CUresult cuMemFreeHost(void *p) { PASS(cuMemFreeHost, W(p)); }

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags) {
	SIZE(bytesize);
	PASS(cuMemHostRegister_v2, W(p), bytesize, W(Flags));
}

CUresult cuMemHostUnregister(void *p) { PASS(cuMemHostUnregister, W(p)); }

/* Memory apart from addresses. */

/* The memory is asked for of a device, without anything special. */
#define PROP(p) \
	CHECK(ALIGNED(p, 8)); \
	CHECK(p->type == CU_MEM_ALLOCATION_TYPE_PINNED && p->location.type == CU_MEM_LOCATION_TYPE_DEVICE); \
	CHECK(p->requestedHandleTypes == 0 && p->win32HandleMetaData == NULL); \
	CHECK(p->allocFlags.compressionType == 0 && p->allocFlags.gpuDirectRDMACapable == 0 && p->allocFlags.usage == 0)

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option) {
	OUT(granularity);
	PROP(prop);
	CALL(cuMemGetAllocationGranularity, W(prop->location.id), W(option));
	GIVE(granularity, size_t, 0);
	return r;
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags) {
	OUT(ptr);
	SIZE(size);
	SIZE(alignment);
	CHECK(flags == 0);
	CALL(cuMemAddressReserve, size, alignment, addr);
	GIVE(ptr, CUdeviceptr, 0);
	return r;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) { SIZE(size); PASS(cuMemAddressFree, ptr, size); }

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop, unsigned long long flags) {
	OUT(handle);
	SIZE(size);
	PROP(prop);
	CHECK(flags == 0);
	CALL(cuMemCreate, size, W(prop->location.id));
	GIVE(handle, CUmemGenericAllocationHandle, 0);
	return r;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) { PASS(cuMemRelease, handle); }

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags) {
	SIZE(size);
	SIZE(offset);
	CHECK(flags == 0);
	PASS(cuMemMap, ptr, size, offset, handle);
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) { SIZE(size); PASS(cuMemUnmap, ptr, size); }

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count) {
	SIZE(size);
	CHECK(count == 1 && ALIGNED(desc, 4) && desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE);
	PASS(cuMemSetAccess, ptr, size, W(desc->location.id), W(desc->flags));
}

/* Copies. */

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t n) {
	SIZE(n);
	PASS(cuMemcpyHtoD_v2, dst, W(src), n);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t n) { SIZE(n); PASS(cuMemcpyDtoH_v2, W(dst), src, n); }
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t n) { SIZE(n); PASS(cuMemcpyDtoD_v2, dst, src, n); }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream s) {
	SIZE(n);
	PASS(cuMemcpyHtoDAsync_v2, dst, W(src), n, W(s));
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n, CUstream s) {
	SIZE(n);
	PASS(cuMemcpyDtoHAsync_v2, W(dst), src, n, W(s));
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s) {
	SIZE(n);
	PASS(cuMemcpyDtoDAsync_v2, dst, src, n, W(s));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dstContext, CUdeviceptr src, CUcontext srcContext, size_t n, CUstream s) {
	SIZE(n);
	PASS(cuMemcpyPeerAsync, dst, W(dstContext), src, W(srcContext), n, W(s));
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char uc, size_t n, CUstream s) {
	SIZE(n);
	PASS(cuMemsetD8Async, dst, W(uc), n, W(s));
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int ui, size_t n, CUstream s) {
	SIZE(n);
	PASS(cuMemsetD32Async, dst, W(ui), n, W(s));
}

/* Streams and events. */

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority) {
	OUT(phStream);
	CHECK((flags & ~CU_STREAM_NON_BLOCKING) == 0);
	CALL(cuStreamCreateWithPriority, W(flags), W(priority));
	GIVE(phStream, CUstream, 0);
	return r;
}

CUresult cuStreamDestroy_v2(CUstream s) { PASS(cuStreamDestroy_v2, W(s)); }
CUresult cuStreamSynchronize(CUstream s) { PASS(cuStreamSynchronize, W(s)); }
CUresult cuStreamQuery(CUstream s) { PASS(cuStreamQuery, W(s)); }

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned int Flags) {
	CHECK(Flags == 0);
	PASS(cuStreamWaitEvent, W(s), W(e));
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags) {
	OUT(phEvent);
	CHECK((Flags & ~(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING)) == 0);
	CALL(cuEventCreate, W(Flags));
	GIVE(phEvent, CUevent, 0);
	return r;
}

CUresult cuEventDestroy_v2(CUevent e) { PASS(cuEventDestroy_v2, W(e)); }
CUresult cuEventRecord(CUevent e, CUstream s) { PASS(cuEventRecord, W(e), W(s)); }
CUresult cuEventSynchronize(CUevent e) { PASS(cuEventSynchronize, W(e)); }
CUresult cuEventQuery(CUevent e) { PASS(cuEventQuery, W(e)); }

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent start, CUevent end) {
	OUT(pMilliseconds);
	CALL(cuEventElapsedTime, W(start), W(end));
	if (r == CUDA_SUCCESS) memcpy(pMilliseconds, w, sizeof *pMilliseconds); /* the lower half: the machine is little-endian */
	return r;
}

/* Launches. Parameters must come in one buffer: extra = {pointer tag, buffer, size tag, &size, end tag}. */

#define PARAMETERS() \
	CHECK(kernelParams == NULL); \
	const void *params = NULL; \
	size_t size = 0; \
	if (extra != NULL) { \
		CHECK(ALIGNED(extra, 8)); \
		CHECK(extra[0] == (void *)CU_LAUNCH_PARAM_BUFFER_POINTER && extra[2] == (void *)CU_LAUNCH_PARAM_BUFFER_SIZE); \
		CHECK(extra[4] == (void *)CU_LAUNCH_PARAM_END); \
		CHECK(extra[1] != NULL && ALIGNED(extra[3], 8)); \
		params = extra[1]; \
		size = *(size_t *)extra[3]; \
		CHECK(size > 0 && size <= 32764); \
	}

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
		unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
		CUstream hStream, void **kernelParams, void **extra) {
	PARAMETERS();
	PASS(cuLaunchKernel, W(f), gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
		W(hStream), W(params), size);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra) {
	CHECK(ALIGNED(config, 8));
	CHECK(config->numAttrs == 0 || ALIGNED(config->attrs, 8));
	CHECK(config->numAttrs <= 2);
	PARAMETERS();
	uint64_t cluster[3] = {0}, dependent = 0;
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttribute *a = &config->attrs[i];
		CHECK(a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION || a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
		if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
			CHECK(a->value.clusterDim.x > 0 && a->value.clusterDim.y > 0 && a->value.clusterDim.z > 0);
			cluster[0] = a->value.clusterDim.x;
			cluster[1] = a->value.clusterDim.y;
			cluster[2] = a->value.clusterDim.z;
		} else {
			CHECK(a->value.programmaticStreamSerializationAllowed == 1);
			dependent = 1;
		}
	}
	PASS(cuLaunchKernelEx, W(f), config->gridDimX, config->gridDimY, config->gridDimZ,
		config->blockDimX, config->blockDimY, config->blockDimZ, config->sharedMemBytes,
		W(config->hStream), W(params), size, cluster[0], cluster[1], cluster[2], dependent);
}

/* Capture. */

CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) { PASS(cuStreamBeginCapture_v2, W(s), W(mode)); }

CUresult cuStreamEndCapture(CUstream s, CUgraph *phGraph) {
	OUT(phGraph);
	CALL(cuStreamEndCapture, W(s));
	*phGraph = r == CUDA_SUCCESS ? (CUgraph)w[0] : NULL;
	return r;
}

CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *captureStatus) {
	OUT(captureStatus);
	CALL(cuStreamIsCapturing, W(s));
	GIVE(captureStatus, CUstreamCaptureStatus, 0);
	return r;
}

/* The nodes are the driver's until the next call; what is not defined is written over with nonsense. */
CUresult cuStreamGetCaptureInfo_v2(CUstream s, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
		const CUgraphNode **dependencies_out, size_t *numDependencies_out) {
	static _Thread_local CUgraphNode nodes[64];
	OUT(captureStatus_out);
	OUT(id_out);
	OUT(graph_out);
	OUT(dependencies_out);
	OUT(numDependencies_out);
	CALL(cuStreamGetCaptureInfo_v2, W(s), W(nodes), sizeof nodes / sizeof *nodes);
	GIVE(captureStatus_out, CUstreamCaptureStatus, 0);
	int defined = r == CUDA_SUCCESS && w[0] == CU_STREAM_CAPTURE_STATUS_ACTIVE;
	*id_out = defined ? w[1] : 77;
	*graph_out = (CUgraph)(defined ? w[2] : 77);
	*dependencies_out = defined ? nodes : NULL;
	*numDependencies_out = defined ? w[3] : 77;
	return r;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
	OUT(mode);
	CALL(cuThreadExchangeStreamCaptureMode, W(*mode));
	GIVE(mode, CUstreamCaptureMode, 0);
	return r;
}

/* Graphs. */

#define LIST(p, n) CHECK((n) == 0 ? (p) == NULL : ALIGNED(p, sizeof *(p)))

CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags) {
	OUT(phGraph);
	CHECK(flags == 0);
	CALL(cuGraphCreate, 0);
	GIVE(phGraph, CUgraph, 0);
	return r;
}

CUresult cuGraphDestroy(CUgraph g) { PASS(cuGraphDestroy, W(g)); }

CUresult cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph) {
	OUT(phGraphClone);
	CALL(cuGraphClone, W(originalGraph));
	GIVE(phGraphClone, CUgraph, 0);
	return r;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph) {
	OUT(phNode);
	CALL(cuGraphNodeFindInClone, W(hOriginalNode), W(hClonedGraph));
	GIVE(phNode, CUgraphNode, 0);
	return r;
}

/* What the functions that add a node have in common. */
#define ADDED CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies
#define ADD(op, ...) \
	OUT(phGraphNode); \
	LIST(dependencies, numDependencies); \
	uint64_t w[WORDS] = {W(hGraph), W(dependencies), numDependencies, __VA_ARGS__}; \
	CUresult r = call(OP_##op, w); \
	GIVE(phGraphNode, CUgraphNode, 0); \
	return r

#define KERNEL_NODE(p) \
	CHECK(ALIGNED(p, 8)); \
	void **kernelParams = p->kernelParams, **extra = p->extra; \
	PARAMETERS()
#define KERNEL_WORDS(p) W(p->func), p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY, p->blockDimZ, \
	p->sharedMemBytes, W(params), size

CUresult cuGraphAddKernelNode(ADDED, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
	KERNEL_NODE(nodeParams);
	ADD(cuGraphAddKernelNode, KERNEL_WORDS(nodeParams));
}

CUresult cuGraphAddKernelNode_v2(ADDED, const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
	KERNEL_NODE(nodeParams);
	CHECK(nodeParams->kern == NULL && nodeParams->ctx == NULL);
	ADD(cuGraphAddKernelNode_v2, KERNEL_WORDS(nodeParams));
}

#define COPY_END(p, end) \
	CHECK(p->end##XInBytes == 0 && p->end##Y == 0 && p->end##Z == 0 && p->end##LOD == 0 && p->end##Array == NULL); \
	CHECK(p->end##MemoryType == CU_MEMORYTYPE_HOST || p->end##MemoryType == CU_MEMORYTYPE_DEVICE); \
	CHECK(p->end##MemoryType != CU_MEMORYTYPE_HOST || (p->end##Host != NULL && p->end##Device == 0)); \
	CHECK(p->end##MemoryType != CU_MEMORYTYPE_DEVICE || p->end##Host == NULL); \
	CHECK(p->end##Pitch >= p->WidthInBytes && p->end##Height >= p->Height)
#define COPY_NODE(p) \
	CHECK(ALIGNED(p, 8)); \
	CHECK(p->Height == 1 && p->Depth == 1 && p->reserved0 == NULL && p->reserved1 == NULL); \
	SIZE(p->WidthInBytes); \
	COPY_END(p, src); \
	COPY_END(p, dst)
#define COPY_WORDS(p) p->dstDevice, p->srcDevice, W(p->dstHost), W(p->srcHost), p->WidthInBytes, W(ctx)

CUresult cuGraphAddMemcpyNode(ADDED, const CUDA_MEMCPY3D *copyParams, CUcontext ctx) {
	COPY_NODE(copyParams);
	ADD(cuGraphAddMemcpyNode, COPY_WORDS(copyParams));
}

#define FILL_NODE(p) \
	CHECK(ALIGNED(p, 8)); \
	CHECK(p->height == 1); \
	SIZE(p->width)
#define FILL_WORDS(p) p->dst, p->value, p->elementSize, p->width, W(ctx)

CUresult cuGraphAddMemsetNode(ADDED, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx) {
	FILL_NODE(memsetParams);
	ADD(cuGraphAddMemsetNode, FILL_WORDS(memsetParams));
}

CUresult cuGraphAddEmptyNode(ADDED) { ADD(cuGraphAddEmptyNode, 0); }
CUresult cuGraphAddEventRecordNode(ADDED, CUevent e) { ADD(cuGraphAddEventRecordNode, W(e)); }
CUresult cuGraphAddEventWaitNode(ADDED, CUevent e) { ADD(cuGraphAddEventWaitNode, W(e)); }
CUresult cuGraphAddChildGraphNode(ADDED, CUgraph childGraph) { ADD(cuGraphAddChildGraphNode, W(childGraph)); }

CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n) {
	LIST(from, n);
	LIST(to, n);
	PASS(cuGraphAddDependencies, W(g), W(from), W(to), n);
}

CUresult cuGraphRemoveDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n) {
	LIST(from, n);
	LIST(to, n);
	PASS(cuGraphRemoveDependencies, W(g), W(from), W(to), n);
}

CUresult cuGraphDestroyNode(CUgraphNode n) { PASS(cuGraphDestroyNode, W(n)); }

CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *numNodes) {
	OUT(numNodes);
	LIST(nodes, *numNodes);
	CALL(cuGraphGetNodes, W(g), W(nodes), *numNodes);
	GIVE(numNodes, size_t, 0);
	return r;
}

CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *numEdges) {
	OUT(numEdges);
	LIST(from, *numEdges);
	LIST(to, *numEdges);
	CALL(cuGraphGetEdges, W(g), W(from), W(to), *numEdges);
	GIVE(numEdges, size_t, 0);
	return r;
}

CUresult cuGraphNodeGetType(CUgraphNode n, CUgraphNodeType *type) {
	OUT(type);
	CALL(cuGraphNodeGetType, W(n));
	GIVE(type, CUgraphNodeType, 0);
	return r;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode n, CUgraphNode *dependencies, size_t *numDependencies) {
	OUT(numDependencies);
	LIST(dependencies, *numDependencies);
	CALL(cuGraphNodeGetDependencies, W(n), W(dependencies), *numDependencies);
	GIVE(numDependencies, size_t, 0);
	return r;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph g, unsigned long long flags) {
	OUT(phGraphExec);
	CALL(cuGraphInstantiateWithFlags, W(g), flags);
	GIVE(phGraphExec, CUgraphExec, 0);
	return r;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec x, CUgraph g, CUgraphExecUpdateResultInfo *resultInfo) {
	CHECK(ALIGNED(resultInfo, 8));
	CALL(cuGraphExecUpdate_v2, W(x), W(g));
	resultInfo->result = (CUgraphExecUpdateResult)w[0];
	resultInfo->errorNode = (CUgraphNode)w[1];
	resultInfo->errorFromNode = (CUgraphNode)w[2];
	return r;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec x, CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
	KERNEL_NODE(nodeParams);
	PASS(cuGraphExecKernelNodeSetParams, W(x), W(n), KERNEL_WORDS(nodeParams));
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec x, CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
	KERNEL_NODE(nodeParams);
	CHECK(nodeParams->kern == NULL && nodeParams->ctx == NULL);
	PASS(cuGraphExecKernelNodeSetParams_v2, W(x), W(n), KERNEL_WORDS(nodeParams));
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec x, CUgraphNode n, const CUDA_MEMCPY3D *copyParams, CUcontext ctx) {
	COPY_NODE(copyParams);
	PASS(cuGraphExecMemcpyNodeSetParams, W(x), W(n), COPY_WORDS(copyParams));
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec x, CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx) {
	FILL_NODE(memsetParams);
	PASS(cuGraphExecMemsetNodeSetParams, W(x), W(n), FILL_WORDS(memsetParams));
}

CUresult cuGraphUpload(CUgraphExec x, CUstream s) { PASS(cuGraphUpload, W(x), W(s)); }
CUresult cuGraphLaunch(CUgraphExec x, CUstream s) { PASS(cuGraphLaunch, W(x), W(s)); }
CUresult cuGraphExecDestroy(CUgraphExec x) { PASS(cuGraphExecDestroy, W(x)); }

/* Names under which the driver keeps old interfaces, some with device addresses of 32 bits: nobody may bind them. */

#define OLD(name) CUresult name(void) { return fault(__func__, "its interface of today is called"); }
OLD(cuDeviceTotalMem) OLD(cuDeviceGetUuid)
OLD(cuDevicePrimaryCtxRelease) OLD(cuDevicePrimaryCtxReset) OLD(cuDevicePrimaryCtxSetFlags)
OLD(cuModuleGetGlobal) OLD(cuMemGetInfo) OLD(cuMemAlloc) OLD(cuMemFree) OLD(cuMemHostRegister)
OLD(cuMemcpyHtoD) OLD(cuMemcpyDtoH) OLD(cuMemcpyDtoD) OLD(cuMemcpyHtoDAsync) OLD(cuMemcpyDtoHAsync) OLD(cuMemcpyDtoDAsync)
OLD(cuStreamDestroy) OLD(cuEventDestroy)
OLD(cuStreamBeginCapture) OLD(cuStreamGetCaptureInfo) OLD(cuGraphInstantiate) OLD(cuGraphExecUpdate)
