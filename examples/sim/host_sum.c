//go:build ignore

// The line above keeps it out of the package of Go beside it, which a machine with a C compiler could not build with it.

/* A program on the CUDA driver API, in C or C++: it sums 1000 ones by the kernel of the PTX file that it is given. The declarations are
 * its own, and nothing is linked: cc -o host_sum host_sum.c -ldl */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long CUdeviceptr;

static void *lib;

/* CALL calls a function of the driver by its name. */
#define CALL(name, types, ...) do { \
	int r = ((int (*) types)dlsym(lib, name))(__VA_ARGS__); \
	if (r != 0) { printf("%s: error %d\n", name, r); exit(3); } \
} while (0)

int main(int argc, char **argv) {
	if (argc != 2 || !(lib = dlopen("libcuda.so.1", RTLD_NOW))) {
		printf("usage: host_sum FILE.ptx, where there is a libcuda.so.1\n");
		return 2;
	}
	int device, n = 1000;
	char name[64];
	void *context, *module, *sum;
	CUdeviceptr x, y;
	float ones[1000], sums[4];
	for (int i = 0; i < n; i++) ones[i] = 1;
	CALL("cuInit", (unsigned), 0);
	CALL("cuDeviceGet", (int *, int), &device, 0);
	CALL("cuDeviceGetName", (char *, int, int), name, sizeof name, device);
	CALL("cuCtxCreate_v2", (void **, unsigned, int), &context, 0, device);
	CALL("cuModuleLoad", (void **, const char *), &module, argv[1]);
	CALL("cuModuleGetFunction", (void **, void *, const char *), &sum, module, "sum");
	CALL("cuMemAlloc_v2", (CUdeviceptr *, size_t), &x, sizeof ones);
	CALL("cuMemAlloc_v2", (CUdeviceptr *, size_t), &y, sizeof sums);
	CALL("cuMemcpyHtoD_v2", (CUdeviceptr, const void *, size_t), x, ones, sizeof ones);
	void *arguments[] = {&x, &y, &n};
	CALL("cuLaunchKernel", (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
		sum, 4, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL);
	CALL("cuMemcpyDtoH_v2", (void *, CUdeviceptr, size_t), sums, y, sizeof sums);
	printf("%s: %g %g %g %g\n", name, sums[0], sums[1], sums[2], sums[3]);
	return 0;
}
