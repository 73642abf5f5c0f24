// Times 10,000 launches of an empty kernel through the driver API, one by one: median, 99th percentile and greatest, in µs.
// With a number n it launches a kernel over n numbers of an array of 1000 instead: 1001 is a mistake that memcheck finds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

using CUdeviceptr = unsigned long long;

extern "C" {
int cuInit(unsigned);
int cuDeviceGet(int *, int);
int cuCtxCreate_v2(void **, unsigned, int);
int cuCtxSynchronize();
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuMemAlloc_v2(CUdeviceptr *, size_t);
int cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);
int cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
}

static void ok(int r, const char *call) {
	if (r == 0) return;
	std::printf("%s: error %d\n", call, r);
	std::exit(3);
}
#define OK(call) ok(call, #call)

static const char ptx[] = R"(.version 7.4
.target sm_80
.address_size 64
.visible .entry empty()
{
	ret;
}
.visible .entry add(.param .u64 x, .param .u32 n, .param .f32 a)
{
	.reg .b64 %p, %o;
	.reg .b32 %t, %c, %b, %n;
	.reg .f32 %f, %a;
	.reg .pred %q;
	ld.param.u64 %p, [x];
	ld.param.u32 %n, [n];
	ld.param.f32 %a, [a];
	mov.u32 %t, %tid.x;
	mov.u32 %c, %ctaid.x;
	mov.u32 %b, %ntid.x;
	mad.lo.u32 %t, %c, %b, %t;
	setp.ge.u32 %q, %t, %n;
	@%q ret;
	mul.wide.u32 %o, %t, 4;
	add.s64 %p, %p, %o;
	ld.global.f32 %f, [%p];
	add.f32 %f, %f, %a;
	st.global.f32 [%p], %f;
	ret;
}
)";

// adds launches add over more numbers than there are if n is wrong, and compares the result.
static void adds(void *module, unsigned n) {
	void *add;
	CUdeviceptr x;
	std::vector<float> host(1000, 1.0f);
	float a = 0.5f;
	OK(cuModuleGetFunction(&add, module, "add"));
	OK(cuMemAlloc_v2(&x, 4 * host.size()));
	OK(cuMemcpyHtoD_v2(x, host.data(), 4 * host.size()));
	void *arguments[] = {&x, &n, &a};
	OK(cuLaunchKernel(add, 4, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
	OK(cuMemcpyDtoH_v2(host.data(), x, 4 * host.size()));
	bool right = std::all_of(host.begin(), host.end(), [](float v) { return v == 1.5f; });
	std::printf("add of %u numbers: %s\n", n, right ? "right" : "wrong");
}

int main(int argc, char **argv) {
	int device;
	void *context, *module, *empty;
	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	OK(cuCtxCreate_v2(&context, 0, device));
	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&empty, module, "empty"));
	if (argc > 1) {
		adds(module, (unsigned)std::atoi(argv[1]));
		return 0;
	}
	std::vector<double> us;
	for (int i = 0; i < 11000; i++) {
		auto begin = std::chrono::steady_clock::now();
		OK(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
		std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
		if (i >= 1000) us.push_back(took.count());
	}
	std::sort(us.begin(), us.end());
	std::printf("%zu empty launches: median %.1f us, 99th percentile %.1f us, greatest %.1f us\n", us.size(), us[us.size() / 2], us[us.size() * 99 / 100], us.back());
	return 0;
}
