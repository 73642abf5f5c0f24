/* A program on the driver API, for tests: what it does is its first argument. C and C++. The declarations are its own. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

typedef struct {
	unsigned int grid[3], block[3], shared;
	CUstream stream;
	void *attributes;
	unsigned int count;
} CUlaunchConfig;

typedef struct {
	size_t srcX, srcY;
	int srcType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	void *srcArray;
	size_t srcPitch, dstX, dstY;
	int dstType;
	void *dstHost;
	CUdeviceptr dstDevice;
	void *dstArray;
	size_t dstPitch, width, height;
} CUDA_MEMCPY2D;

#ifdef __cplusplus
extern "C" {
#endif
CUresult cuInit(unsigned int);
CUresult cuDriverGetVersion(int *);
CUresult cuGetErrorName(CUresult, const char **);
CUresult cuGetErrorString(CUresult, const char **);
CUresult cuGetProcAddress(const char *, void **, int, uint64_t);
CUresult cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
CUresult cuDeviceGet(CUdevice *, int);
CUresult cuDeviceGetCount(int *);
CUresult cuDeviceGetName(char *, int, CUdevice);
CUresult cuDeviceGetAttribute(int *, int, CUdevice);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuCtxCreate_v2(CUcontext *, unsigned int, CUdevice);
CUresult cuCtxDestroy_v2(CUcontext);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxGetCurrent(CUcontext *);
CUresult cuCtxPushCurrent_v2(CUcontext);
CUresult cuCtxPopCurrent_v2(CUcontext *);
CUresult cuCtxGetDevice(CUdevice *);
CUresult cuCtxSynchronize(void);
CUresult cuModuleLoad(CUmodule *, const char *);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleLoadDataEx(CUmodule *, const void *, unsigned int, int *, void **);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule, const char *);
CUresult cuFuncGetAttribute(int *, int, CUfunction);
CUresult cuFuncGetParamInfo(CUfunction, size_t, size_t *, size_t *);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, CUfunction, int, size_t);
CUresult cuOccupancyMaxPotentialBlockSize(int *, int *, CUfunction, void *, size_t, int);
CUresult cuMemGetInfo_v2(size_t *, size_t *);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemAllocPitch_v2(CUdeviceptr *, size_t *, size_t, size_t, unsigned int);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemAllocHost_v2(void **, size_t);
CUresult cuMemFreeHost(void *);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *, size_t *, CUdeviceptr);
CUresult cuPointerGetAttribute(void *, int, CUdeviceptr);
CUresult cuMemcpy(CUdeviceptr, CUdeviceptr, size_t);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void *, size_t, CUstream);
CUresult cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr, const void *, size_t, CUstream);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *);
CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t);
CUresult cuMemsetD16_v2(CUdeviceptr, unsigned short, size_t);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned int, size_t, CUstream);
CUresult cuStreamCreate(CUstream *, unsigned int);
CUresult cuStreamDestroy_v2(CUstream);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned int);
CUresult cuStreamBeginCapture_v2(CUstream, int);
CUresult cuStreamEndCapture(CUstream, CUgraph *);
CUresult cuEventCreate(CUevent *, unsigned int);
CUresult cuEventRecord(CUevent, CUstream);
CUresult cuEventSynchronize(CUevent);
CUresult cuEventElapsedTime(float *, CUevent, CUevent);
CUresult cuLaunchKernel(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, CUstream,
		void **, void **);
CUresult cuLaunchKernelEx(const CUlaunchConfig *, CUfunction, void **, void **);
CUresult cuLaunchHostFunc(CUstream, void (*)(void *), void *);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long);
CUresult cuGraphGetNodes(CUgraph, CUgraphNode *, size_t *);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
CUresult cuMemAllocManaged(CUdeviceptr *, size_t, unsigned int);
CUresult cuTensorMapEncodeTiled(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *, const uint32_t *, int, int, int, int);
CUresult cuTensorMapReplaceAddress(void *, void *);
CUresult cuTensorMapEncodeIm2col(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const int *, const int *, uint32_t, uint32_t,
		const uint32_t *, int, int, int, int);
CUresult cuIpcGetMemHandle(void *, CUdeviceptr);
CUresult cuGetExportTable(const void **, const void *);
CUresult cuLinkCreate_v2(unsigned int, int *, void **, void **);
CUresult cuTexRefCreate(void **);
CUresult cuMemAlloc(unsigned int *, unsigned int);
#ifdef __cplusplus
}
#endif

static void check(CUresult r, const char *call, int line) {
	const char *name = "?", *text = "?";
	if (r == 0) return;
	cuGetErrorName(r, &name);
	cuGetErrorString(r, &text);
	fprintf(stderr, "line %d: %s: %s: %s\n", line, call, name, text);
	exit(3);
}

#define OK(call) check(call, #call, __LINE__)
#define WANT(x) do { if (!(x)) { fprintf(stderr, "line %d: not so: %s\n", __LINE__, #x); exit(4); } } while (0)

/* add adds a to n numbers; the broken one is one number off. spin goes on for a number of turns. */
#define KERNEL(name, compare) \
	".visible .entry " name "(.param .u64 x, .param .u32 n, .param .f32 a)\n{\n" \
	".reg .b64 %p, %o; .reg .b32 %t, %c, %b, %n; .reg .f32 %f, %a; .reg .pred %q;\n" \
	"ld.param.u64 %p, [x]; ld.param.u32 %n, [n]; ld.param.f32 %a, [a];\n" \
	"mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %b, %ntid.x;\n" \
	"mad.lo.u32 %t, %c, %b, %t;\nsetp." compare ".u32 %q, %t, %n;\n@%q ret;\n" \
	"mul.wide.u32 %o, %t, 4;\nadd.s64 %p, %p, %o;\n" \
	"ld.global.f32 %f, [%p];\nadd.f32 %f, %f, %a;\nst.global.f32 [%p], %f;\nret;\n}\n"

static const char *head = ".version 7.4\n.target sm_80\n.address_size 64\n";
static const char *kernels =
	".version 7.4\n.target sm_80\n.address_size 64\n"
	".visible .global .align 4 .b32 answer = 42;\n"
	KERNEL("add", "ge") KERNEL("broken", "gt")
	".visible .entry empty()\n{\nret;\n}\n"
	".visible .entry column(.param .u64 x)\n{\n.reg .b64 %p, %o; .reg .b32 %t;\nld.param.u64 %p, [x];\nmov.u32 %t, %tid.x;\n"
	"mul.wide.u32 %o, %t, 128; add.s64 %p, %p, %o;\nld.global.f32 %t, [%p];\nret;\n}\n"
	".visible .entry spin(.param .u64 x)\n{\n.reg .b64 %p; .reg .b32 %i; .reg .pred %q;\nld.param.u64 %p, [x];\nmov.u32 %i, 0;\n"
	"again:\nadd.u32 %i, %i, 1;\nst.global.u32 [%p], %i;\nsetp.ne.u32 %q, %i, 0;\n@%q bra again;\nret;\n}\n";

enum { N = 1000 };

static CUdevice device;
static CUcontext context;
static CUmodule module;
static CUfunction add, broken, empty, spin;
static CUdeviceptr x;
static float host[N];

static void begin(void) {
	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	OK(cuCtxCreate_v2(&context, 0, device));
	OK(cuModuleLoadData(&module, kernels));
	OK(cuModuleGetFunction(&add, module, "add"));
	OK(cuModuleGetFunction(&broken, module, "broken"));
	OK(cuModuleGetFunction(&empty, module, "empty"));
	OK(cuModuleGetFunction(&spin, module, "spin"));
	OK(cuMemAlloc_v2(&x, sizeof host));
	for (int i = 0; i < N; i++) host[i] = (float)i;
	OK(cuMemcpyHtoD_v2(x, host, sizeof host));
}

static void launch(CUfunction f, CUstream s) {
	unsigned int n = N;
	float a = 0.5f;
	void *parameters[] = {&x, &n, &a};
	OK(cuLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, s, parameters, NULL));
}

static void compare(const float *got, float more) {
	for (int i = 0; i < N; i++) WANT(got[i] == (float)i + more);
}

static void expect(float more) {
	static float got[N];
	OK(cuMemcpyDtoH_v2(got, x, sizeof got));
	compare(got, more);
}

static void add_up(void *p) { ++*(int *)p; }

/* What a program that is right does, by most ways there are. */
static void everything(void) {
	char name[64];
	int v = 0, count = 0;
	size_t a = 0, b = 0;
	OK(cuDriverGetVersion(&v));
	WANT(v >= 12000);
	begin();
	OK(cuDeviceGetCount(&count));
	WANT(count == 1);
	OK(cuDeviceGetName(name, sizeof name, device));
	WANT(strstr(name, "A100") != NULL);
	OK(cuDeviceGetAttribute(&v, 75, device));
	WANT(v == 8);
	OK(cuDeviceGetAttribute(&v, 16, device));
	WANT(v == 108);
	OK(cuDeviceGetAttribute(&v, 83, device));
	WANT(v == 0); /* managed memory */

	launch(add, NULL);
	expect(0.5f);
	/* Parameters in a buffer, and a launch by a structure. */
	struct { CUdeviceptr x; unsigned int n; float a; } buffer = {x, N, 0.5f};
	size_t size = sizeof buffer;
	void *extra[] = {(void *)1, &buffer, (void *)2, &size, NULL};
	OK(cuLaunchKernel(add, 4, 1, 1, 256, 1, 1, 0, NULL, NULL, extra));
	expect(1);
	CUlaunchConfig config = {{4, 1, 1}, {256, 1, 1}, 0, NULL, NULL, 0};
	void *parameters[] = {&buffer.x, &buffer.n, &buffer.a};
	OK(cuLaunchKernelEx(&config, add, parameters, NULL));
	expect(1.5f);
	OK(cuFuncGetParamInfo(add, 2, &a, &b));
	WANT(a == 12 && b == 4);
	WANT(cuFuncGetParamInfo(add, 3, &a, &b) == 1);
	OK(cuFuncGetAttribute(&v, 0, add));
	WANT(v == 1024);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&v, add, 256, 0));
	WANT(v == 8);
	OK(cuOccupancyMaxPotentialBlockSize(&count, &v, add, NULL, 0, 0));
	WANT(v == 1024 && count == 2 * 108);

	/* Pinned memory, streams, events, a function of the host. */
	CUstream s, other;
	CUevent first, last;
	float *pinned, ms = -1;
	OK(cuMemAllocHost_v2((void **)&pinned, sizeof host));
	memcpy(pinned, host, sizeof host);
	OK(cuStreamCreate(&s, 1));
	OK(cuStreamCreate(&other, 1));
	OK(cuEventCreate(&first, 0));
	OK(cuEventCreate(&last, 0));
	OK(cuEventRecord(first, s));
	OK(cuMemcpyHtoDAsync_v2(x, pinned, sizeof host, s));
	launch(add, s);
	OK(cuEventRecord(last, s));
	OK(cuStreamWaitEvent(other, last, 0));
	launch(add, other);
	OK(cuMemcpyDtoHAsync_v2(pinned, x, sizeof host, other));
	v = 41;
	OK(cuLaunchHostFunc(other, add_up, &v));
	OK(cuStreamSynchronize(other));
	WANT(v == 42);
	compare(pinned, 1);
	OK(cuEventSynchronize(last));
	OK(cuEventElapsedTime(&ms, first, last));
	WANT(ms > 0 && ms < 1);
	OK(cuMemcpyHtoDAsync_v2_ptsz(x, host, sizeof host, NULL));
	OK(cuStreamSynchronize((CUstream)2));
	expect(0);

	/* A graph. */
	CUgraph graph;
	CUgraphExec exec;
	size_t nodes = 0;
	OK(cuStreamBeginCapture_v2(s, 0));
	launch(add, s);
	launch(add, s);
	OK(cuStreamEndCapture(s, &graph));
	OK(cuGraphGetNodes(graph, NULL, &nodes));
	WANT(nodes == 2);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, s));
	OK(cuGraphLaunch(exec, s));
	OK(cuStreamSynchronize(s));
	expect(2);
	OK(cuMemFreeHost(pinned));
	OK(cuStreamDestroy_v2(s));
	OK(cuStreamDestroy_v2(other));

	/* Fills, rows, addresses. */
	CUdeviceptr p, base;
	static unsigned char rows[3][16], back[3][5];
	OK(cuMemAllocPitch_v2(&p, &a, 5, 3, 4));
	WANT(a == 512);
	OK(cuMemsetD8_v2(p, 7, a * 3));
	OK(cuMemsetD16_v2(p, 0x0908, 2));
	memset(rows, 3, sizeof rows);
	CUDA_MEMCPY2D in = {0};
	in.srcX = 1; in.srcType = 1; in.srcHost = rows; in.srcPitch = 16;
	in.dstY = 1; in.dstType = 2; in.dstDevice = p; in.dstPitch = a; in.width = 2; in.height = 2;
	OK(cuMemcpy2D_v2(&in));
	CUDA_MEMCPY2D out = {0};
	out.srcType = 2; out.srcDevice = p; out.srcPitch = a;
	out.dstType = 1; out.dstHost = back; out.dstPitch = 5; out.width = 5; out.height = 3;
	OK(cuMemcpy2D_v2(&out));
	static const unsigned char want[3][5] = {{8, 9, 8, 9, 7}, {3, 3, 7, 7, 7}, {3, 3, 7, 7, 7}};
	WANT(memcmp(back, want, sizeof want) == 0);
	OK(cuMemGetAddressRange_v2(&base, &b, p + 700));
	WANT(base == p && b == 3 * 512);
	OK(cuPointerGetAttribute(&v, 2, p + 3));
	WANT(v == 2);
	WANT(cuPointerGetAttribute(&v, 2, (CUdeviceptr)(uintptr_t)host) == 1);
	OK(cuMemcpy(p, (CUdeviceptr)(uintptr_t)host, 64));
	OK(cuMemcpy((CUdeviceptr)(uintptr_t)back, p, 8));
	WANT(memcmp(back, host, 8) == 0);
	OK(cuMemsetD32Async(p, 5, 4, NULL));
	OK(cuMemFree_v2(p));
	OK(cuMemGetInfo_v2(&a, &b));
	WANT(a < b && b >= 80000000000ul);

	/* A variable, a module in a file, one with a mistake. */
	OK(cuModuleGetGlobal_v2(&p, &a, module, "answer"));
	OK(cuMemcpyDtoH_v2(&v, p, 4));
	WANT(a == 4 && v == 42);
	FILE *f = fopen("kernels.ptx", "w");
	WANT(f && fputs(kernels, f) > 0 && fclose(f) == 0);
	CUmodule m;
	OK(cuModuleLoad(&m, "kernels.ptx"));
	OK(cuModuleUnload(m));
	WANT(cuModuleLoad(&m, "none.ptx") == 301);
	char log[512] = "";
	int options[] = {5, 6};
	void *values[] = {log, (void *)sizeof log};
	WANT(cuModuleLoadDataEx(&m, ".version 7.4\n.target sm_80\n.address_size 64\n.entry bad() { nonsense; }\n", 2, options, values) == 218);
	WANT(strstr(log, "line 4") && (unsigned int)(uintptr_t)values[1] == strlen(log) + 1);

	/* Contexts. */
	CUcontext c;
	OK(cuCtxPopCurrent_v2(&c));
	WANT(c == context);
	WANT(cuCtxSynchronize() == 201);
	OK(cuCtxPushCurrent_v2(context));
	OK(cuCtxGetDevice(&v));
	WANT(v == device);

	/* Functions by their names. */
	CUresult (*alloc)(CUdeviceptr *, size_t) = NULL;
	int status = -1;
	OK(cuGetProcAddress("cuMemAlloc", (void **)&alloc, 11000, 0));
	WANT(alloc == cuMemAlloc_v2);
	alloc = NULL;
	OK(cuGetProcAddress_v2("cuMemAlloc", (void **)&alloc, 12000, 0, &status));
	WANT(alloc == cuMemAlloc_v2 && status == 0);
	void *g = NULL, *h = NULL;
	OK(cuGetProcAddress("cuGetProcAddress", &g, 11030, 0));
	OK(cuGetProcAddress("cuGetProcAddress", &h, 12000, 0));
	WANT(g == (void *)cuGetProcAddress && h == (void *)cuGetProcAddress_v2);
	OK(cuGetProcAddress("cuMemcpyHtoDAsync", &g, 12000, 2));
	WANT(g == (void *)cuMemcpyHtoDAsync_v2_ptsz);
	WANT(cuGetProcAddress_v2("cuNonsense", &g, 12000, 0, &status) == 500 && g == NULL && status == 1);
	WANT(cuInit(1) == 1);
	WANT(cuMemcpyHtoD_v2(x, (void *)8, 16) == 1); /* a pointer to nowhere */
	OK(cuMemFree_v2(x));
	OK(cuCtxDestroy_v2(context));
	puts("all is right");
}

static void *thread(void *p) {
	CUstream s;
	CUdeviceptr mine;
	static float zeros[N];
	float got[N], a = 2;
	unsigned int n = N;
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&s, 1));
	OK(cuMemAlloc_v2(&mine, sizeof zeros));
	OK(cuMemcpyHtoDAsync_v2(mine, zeros, sizeof zeros, s));
	void *parameters[] = {&mine, &n, &a};
	for (int i = 0; i < 3; i++) OK(cuLaunchKernel(add, 4, 1, 1, 256, 1, 1, 0, s, parameters, NULL));
	OK(cuMemcpyDtoHAsync_v2(got, mine, sizeof got, s));
	OK(cuStreamSynchronize(s));
	for (int i = 0; i < N; i++) WANT(got[i] == 6);
	OK(cuMemFree_v2(mine));
	return p;
}

/* More threads than there can be at once, some at once. */
static void threads(void) {
	pthread_t t[8];
	begin();
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 8; i++) WANT(pthread_create(&t[i], NULL, thread, NULL) == 0);
		for (int i = 0; i < 8; i++) WANT(pthread_join(t[i], NULL) == 0);
	}
}

/* What is not simulated. */
static void refused(void) {
	CUdeviceptr p;
	char handle[64];
	const void *table;
	void *any;
	unsigned int small;
	begin();
	WANT(cuMemAllocManaged(&p, 64, 1) == 801);
	WANT(cuIpcGetMemHandle(handle, x) == 801);
	WANT(cuGetExportTable(&table, handle) == 801);
	WANT(cuLinkCreate_v2(0, NULL, NULL, &any) == 801);
	WANT(cuTexRefCreate(&any) == 801);
	WANT(cuMemAlloc(&small, 64) == 801);
	static const unsigned char elf[64] = "\177ELF";
	WANT(cuModuleLoadData(&module, elf) == 209);
	/* A fat binary: its head, and an entry of 64 bytes and what it holds. */
	struct { uint32_t magic; uint16_t version, head; uint64_t size; uint16_t kind, one; uint32_t entry; uint64_t payload; uint32_t zero[2];
		uint16_t minor, major; uint32_t sm, name[2]; uint64_t flags, none, unpacked; char text[1024]; } fat;
	memset(&fat, 0, sizeof fat);
	fat.magic = 0xba55ed50; fat.version = 1; fat.head = 16; fat.size = sizeof fat - 16;
	fat.kind = 2; fat.entry = 64; fat.payload = sizeof fat.text; fat.sm = 80;
	struct { uint32_t magic, version; void *data, *more; } wrapper = {0x466243b1, 1, &fat, NULL};
	WANT(cuModuleLoadData(&module, &fat) == 209);
	fat.kind = 1;
	strcat(strcpy(fat.text, head), ".visible .entry only() { ret; }\n");
	OK(cuModuleLoadData(&module, &wrapper));
	OK(cuModuleGetFunction(&add, module, "only"));
	fat.flags = 0x2000;
	WANT(cuModuleLoadData(&module, &fat) == 209);
}

static void *killer(void *p) {
	usleep(300000);
	kill(getpid(), SIGKILL);
	return p;
}

static void got(int s) {
	char text[] = "got USR1\n";
	if (s == SIGUSR1 && write(1, text, sizeof text - 1) > 0) _exit(7);
}

/* The kernels of Hopper copy a box of 256 bytes of a tensor and hand it out. */
#define BOX(name, copy) \
	".visible .entry " name "(.param .align 64 .b8 map[128], .param .u64 out)\n{\n" \
	".reg .b64 %m, %o, %x; .reg .b32 %t, %b, %s, %v, %zero; .reg .b16 %h; .reg .pred %first, %p;\n" \
	".shared .align 128 .b8 s[256]; .shared .align 8 .b64 bar;\n" \
	"mov.u32 %t, %tid.x; mov.u32 %s, s; mov.u32 %b, bar; mov.b16 %h, 0; setp.eq.u32 %first, %t, 0;\n" \
	"@%first mbarrier.init.shared::cta.b64 [%b], 1;\n@%first fence.mbarrier_init.release.cluster;\nbar.sync 0;\n" \
	"mov.b64 %m, map; cvta.param.u64 %m, %m;\n" \
	"@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 256;\n" copy "\n" \
	"wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0;\n@!%p bra wait;\n" \
	"shl.b32 %t, %t, 2; add.u32 %s, %s, %t; ld.shared.u32 %v, [%s];\n" \
	"ld.param.u64 %o, [out]; cvt.u64.u32 %x, %t; add.s64 %o, %o, %x; st.global.u32 [%o], %v;\nret;\n}\n"

static const char *boxes =
	".version 8.0\n.target sm_90a\n.address_size 64\n"
	BOX("tiled", "@%first cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%m, {4, 2}], [%b];")
	BOX("im2col", "@%first cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%s], [%m, {0, 2, 0}], [%b], {%h};");

static void box(const char *name, const void *map, int first, int row) {
	CUmodule m;
	CUfunction f;
	CUdeviceptr out;
	int got[64];
	OK(cuModuleLoadData(&m, boxes));
	OK(cuModuleGetFunction(&f, m, name));
	OK(cuMemAlloc_v2(&out, sizeof got));
	void *parameters[] = {(void *)map, &out};
	OK(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
	OK(cuMemcpyDtoH_v2(got, out, sizeof got));
	for (int i = 0; i < 64; i++) WANT(got[i] == first + i / 8 * row + i % 8);
	OK(cuMemFree_v2(out));
	OK(cuModuleUnload(m));
}

static void maps(void) {
	char room[192];
	void *map = (void *)(((uintptr_t)room + 63) & ~(uintptr_t)63);
	CUdeviceptr p;
	int words[512];
	uint64_t dims[] = {32, 16, 1}, strides[] = {128, 128 * 16}, images[] = {8, 64, 1}, pixels[] = {32, 32 * 64};
	uint32_t size[] = {8, 8}, step[] = {1, 1, 1};
	int none[] = {0};
	begin();
	for (int i = 0; i < 512; i++) words[i] = i;
	OK(cuMemAlloc_v2(&p, sizeof words));
	OK(cuMemcpyHtoD_v2(p, words, sizeof words));
	OK(cuTensorMapEncodeTiled(map, 3, 2, (void *)p, dims, strides, size, step, 0, 0, 0, 0));
	box("tiled", map, 2 * 32 + 4, 32);
	OK(cuTensorMapReplaceAddress(map, (void *)(p + 128)));
	box("tiled", map, 3 * 32 + 4, 32);
	WANT(cuTensorMapReplaceAddress(map, (void *)(p + 4)) == 1);
	WANT(cuTensorMapReplaceAddress((char *)map + 8, (void *)p) == 1);
	OK(cuTensorMapReplaceAddress(map, (void *)p));
	box("tiled", map, 2 * 32 + 4, 32);
	memset(map, 0, 128);
	WANT(cuTensorMapReplaceAddress(map, (void *)p) == 1);
	OK(cuTensorMapEncodeIm2col(map, 3, 3, (void *)p, images, pixels, none, none, 8, 8, step, 0, 0, 0, 0));
	box("im2col", map, 2 * 8, 8);
	WANT(cuTensorMapEncodeTiled(map, 3, 2, (void *)(p + 4), dims, strides, size, step, 0, 0, 0, 0) == 1);
	WANT(cuTensorMapEncodeTiled((char *)map + 8, 3, 2, (void *)p, dims, strides, size, step, 0, 0, 0, 0) == 1);
	WANT(cuTensorMapEncodeTiled(map, 3, 6, (void *)p, dims, strides, size, step, 0, 0, 0, 0) == 1);
	OK(cuMemFree_v2(p));
	OK(cuMemFree_v2(x));
}

int main(int argc, char **argv) {
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t t;
	if (strcmp(what, "everything") == 0) everything();
	else if (strcmp(what, "threads") == 0) threads();
	else if (strcmp(what, "refused") == 0) refused();
	else if (strcmp(what, "maps") == 0) maps();
	else if (strcmp(what, "broken") == 0) {
		begin();
		launch(broken, NULL);
		WANT(cuCtxSynchronize() == 700);
	} else if (strcmp(what, "column") == 0) { /* lanes that are 128 bytes apart, twice: once few of them */
		begin();
		for (unsigned int blocks = 1; blocks <= 7; blocks += 6) {
			CUfunction f;
			void *parameters[] = {&x};
			OK(cuModuleGetFunction(&f, module, "column"));
			OK(cuLaunchKernel(f, 1, blocks, 1, 31, 1, 1, 0, NULL, parameters, NULL));
		}
		OK(cuCtxSynchronize());
		OK(cuMemFree_v2(x));
	} else if (strcmp(what, "unwritten") == 0) {
		begin();
		CUdeviceptr p;
		OK(cuMemAlloc_v2(&p, 16));
		OK(cuMemcpyDtoH_v2(host, p, 16));
	} else if (strcmp(what, "twice") == 0) {
		begin();
		OK(cuMemFree_v2(x));
		WANT(cuMemFree_v2(x) == 1);
	} else if (strcmp(what, "late") == 0) { /* the memory changes between the call and what waits for it */
		float *pinned;
		begin();
		OK(cuMemAllocHost_v2((void **)&pinned, sizeof host));
		memcpy(pinned, host, sizeof host);
		OK(cuMemcpyHtoDAsync_v2(x, pinned, sizeof host, NULL));
		pinned[1] = 77;
		OK(cuMemcpyDtoH_v2(host, x, sizeof host));
		printf("%g\n", host[1]);
	} else if (strcmp(what, "fork") == 0) {
		begin();
		int status;
		if (fork() == 0) _exit(cuCtxSynchronize());
		wait(&status);
		WANT(WEXITSTATUS(status) == 3);
		launch(add, NULL);
		expect(0.5f);
	} else if (strcmp(what, "die") == 0) {
		begin();
		WANT(pthread_create(&t, NULL, killer, NULL) == 0);
		void *parameters[] = {&x};
		cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
	} else if (strcmp(what, "hang") == 0) { /* in a launch, until somebody ends it */
		begin();
		puts("ready");
		fflush(stdout);
		void *parameters[] = {&x};
		cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
	} else if (strcmp(what, "exit") == 0) {
		begin();
		exit(5);
	} else if (strcmp(what, "signal") == 0) {
		signal(SIGUSR1, got);
		puts("ready");
		fflush(stdout);
		sleep(60);
	} else if (strcmp(what, "orphan") == 0) { /* outlives the program that was run, and tells of its calls by a file */
		if (fork() == 0) execl(argv[0], argv[0], "outlive", argv[2], NULL);
		for (int i = 0; i < 600 && access("ready", F_OK) != 0; i++) usleep(10000);
	} else if (strcmp(what, "outlive") == 0) {
		begin();
		FILE *ready = fopen("ready", "w");
		WANT(ready && fclose(ready) == 0);
		CUresult r = 0;
		for (int i = 0; i < 600 && r == 0; i++) {
			usleep(10000);
			r = cuCtxSynchronize();
		}
		FILE *f = fopen(argv[2], "w");
		if (f) fprintf(f, "%d\n", r);
		return f && fclose(f) == 0 ? 0 : 1;
	} else if (strcmp(what, "empty") == 0) {
		begin();
		for (int i = 0; i < 100; i++) OK(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	} else if (strcmp(what, "echo") == 0) {
		int c;
		while ((c = getchar()) != EOF) putchar(c + 1);
		fputs("told\n", stderr);
	}
	return 0;
}
