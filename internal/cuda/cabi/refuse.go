package cabi

import "strings"

// refusals say of functions that are not simulated why, or what to do, by how their names begin.
var refusals = []struct{ prefix, why string }{
	{"cuGetExportTable", "the tables that the CUDA runtime library (libcudart) asks for are not published: call the driver API, with PTX as modules"},
	{"cuMemAllocManaged", managed}, {"cuMemAdvise", managed}, {"cuMemPrefetch", managed}, {"cuMemRange", managed}, {"cuStreamAttachMem", managed},
	{"cuLibraryGetManaged", managed},
	{"cuIpc", "memory and events of other processes are not simulated: keep the work in one process"},
	{"cuMemExport", "memory for other processes is not simulated: keep the work in one process"},
	{"cuMemImport", "memory for other processes is not simulated: keep the work in one process"},
	{"cuMemPool", pools}, {"cuDeviceGetDefaultMemPool", pools}, {"cuDeviceGetMemPool", pools}, {"cuDeviceSetMemPool", pools}, {"cuMemAllocFromPool", pools},
	{"cuMemHostGetDevicePointer", "kernels do not reach memory of the host here (CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY is 0): copy it"},
	{"cuArray", textures}, {"cuMipmapped", textures}, {"cuTexRef", textures}, {"cuTexObject", textures}, {"cuSurf", textures},
	{"cuModuleGetTexRef", textures}, {"cuModuleGetSurfRef", textures}, {"cuMemcpyA", textures}, {"cuMemcpyDtoA", textures}, {"cuMemcpyHtoA", textures},
	{"cuLink", "the driver's linker is not simulated: hand over one PTX file that has all functions"},
	{"cuTensorMapEncodeIm2colWide", "these maps are of compute capability 10.0, of which no card is simulated: use cuTensorMapEncodeIm2col"},
	{"cuGraphics", "graphics are not simulated"}, {"cuImportExternal", "memory and semaphores of other interfaces are not simulated"},
	{"cuMulticast", "memory of several cards at once is not simulated"}, {"cuGreenCtx", "parts of a card are not simulated"},
	{"cuGraphAddHostNode", "functions of the host in graphs are not simulated: call them when the graph has run"},
	{"cuMemcpy3D", "copies of several planes are not simulated: use cuMemcpy2D_v2"},
	{"cuMemsetD2", "fills of several rows are not simulated: use cuMemsetD8_v2 or cuMemsetD32_v2 for each"},
}

const (
	managed  = "managed memory is not simulated (CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY is 0): use cuMemAlloc_v2 and copies"
	pools    = "pools of memory are not simulated: use cuMemAllocAsync, which needs none, or cuMemAlloc_v2"
	textures = "textures, surfaces and arrays are not simulated: use memory"
)

// Refusal says why a function that Find does not have is not there, and what to do.
func Refusal(name string) string {
	if _, ok := Find(name + "_v2"); ok {
		return "it is the form with addresses of 32 bits: call " + name + "_v2, as cuda.h does"
	}
	for _, r := range refusals {
		if strings.HasPrefix(name, r.prefix) {
			return r.why
		}
	}
	return "the simulated driver does not have it; docs/simulator.md lists under Foreign programs what it has"
}
