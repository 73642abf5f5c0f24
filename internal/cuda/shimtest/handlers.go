package shimtest

import (
	"maps"
	"math"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// A handler calls the table with the arguments in the words, as testdata/shim.c packs them, and puts the results in
// their place.
type handler func(a *driver.API, w []uint64) driver.Result

// handlers are by symbol.
var handlers = map[string]handler{
	"cuInit":             func(a *driver.API, w []uint64) driver.Result { return a.Init(uint32(w[0])) },
	"cuDriverGetVersion": func(a *driver.API, w []uint64) driver.Result { return give[int](w)(a.DriverGetVersion()) },

	"cuDeviceGetCount": func(a *driver.API, w []uint64) driver.Result { return give[int](w)(a.DeviceGetCount()) },
	"cuDeviceGet": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.Device](w)(a.DeviceGet(int(int32(w[0]))))
	},
	"cuDeviceGetName": func(a *driver.API, w []uint64) driver.Result {
		return giveText(w)(a.DeviceGetName(device(w[2])))
	},
	"cuDeviceGetPCIBusId": func(a *driver.API, w []uint64) driver.Result {
		return giveText(w)(a.DeviceGetPCIBusId(device(w[2])))
	},
	"cuDeviceGetUuid_v2": deviceGetUuid,
	"cuDeviceTotalMem_v2": func(a *driver.API, w []uint64) driver.Result {
		return give[int64](w)(a.DeviceTotalMem(device(w[0])))
	},
	"cuDeviceGetAttribute": func(a *driver.API, w []uint64) driver.Result {
		return give[int](w)(a.DeviceGetAttribute(driver.Attribute(w[0]), device(w[1])))
	},
	"cuDeviceCanAccessPeer": deviceCanAccessPeer,

	"cuDevicePrimaryCtxRetain": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.Context](w)(a.DevicePrimaryCtxRetain(device(w[0])))
	},
	"cuDevicePrimaryCtxRelease_v2": func(a *driver.API, w []uint64) driver.Result {
		return a.DevicePrimaryCtxRelease(device(w[0]))
	},
	"cuDevicePrimaryCtxReset_v2": func(a *driver.API, w []uint64) driver.Result {
		return a.DevicePrimaryCtxReset(device(w[0]))
	},
	"cuDevicePrimaryCtxSetFlags_v2": func(a *driver.API, w []uint64) driver.Result {
		return a.DevicePrimaryCtxSetFlags(device(w[0]), uint32(w[1]))
	},
	"cuCtxSetCurrent": func(a *driver.API, w []uint64) driver.Result { return a.CtxSetCurrent(driver.Context(w[0])) },
	"cuCtxGetCurrent": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.Context](w)(a.CtxGetCurrent())
	},
	"cuCtxSynchronize": func(a *driver.API, w []uint64) driver.Result { return a.CtxSynchronize() },
	"cuCtxEnablePeerAccess": func(a *driver.API, w []uint64) driver.Result {
		return a.CtxEnablePeerAccess(driver.Context(w[0]))
	},
	"cuCtxGetStreamPriorityRange": func(a *driver.API, w []uint64) driver.Result {
		return giveTwo[int, int](w)(a.CtxGetStreamPriorityRange())
	},

	"cuModuleLoadDataEx": moduleLoad,
	"cuModuleUnload":     func(a *driver.API, w []uint64) driver.Result { return a.ModuleUnload(driver.Module(w[0])) },
	"cuModuleGetFunction": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.Function](w)(a.ModuleGetFunction(driver.Module(w[0]), string(bytesAt(w[1], w[2]))))
	},
	"cuModuleGetGlobal_v2": func(a *driver.API, w []uint64) driver.Result {
		return giveTwo[driver.Ptr, int64](w)(a.ModuleGetGlobal(driver.Module(w[0]), string(bytesAt(w[1], w[2]))))
	},
	"cuFuncLoad": func(a *driver.API, w []uint64) driver.Result { return a.FuncLoad(driver.Function(w[0])) },
	"cuFuncGetAttribute": func(a *driver.API, w []uint64) driver.Result {
		return give[int](w)(a.FuncGetAttribute(driver.FuncAttribute(w[0]), driver.Function(w[1])))
	},
	"cuFuncSetAttribute": func(a *driver.API, w []uint64) driver.Result {
		return a.FuncSetAttribute(driver.Function(w[0]), driver.FuncAttribute(w[1]), int(int32(w[2])))
	},
	"cuOccupancyMaxActiveBlocksPerMultiprocessor": func(a *driver.API, w []uint64) driver.Result {
		f := driver.Function(w[0])
		return give[int](w)(a.OccupancyMaxActiveBlocksPerMultiprocessor(f, int(int32(w[1])), int64(w[2])))
	},

	"cuMemGetInfo_v2": func(a *driver.API, w []uint64) driver.Result { return giveTwo[int64, int64](w)(a.MemGetInfo()) },
	"cuMemAlloc_v2": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.Ptr](w)(a.MemAlloc(int64(w[0])))
	},
	"cuMemFree_v2": func(a *driver.API, w []uint64) driver.Result { return a.MemFree(driver.Ptr(w[0])) },
	"cuMemAllocAsync": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.Ptr](w)(a.MemAllocAsync(int64(w[0]), stream(w[1])))
	},
	"cuMemFreeAsync": func(a *driver.API, w []uint64) driver.Result {
		return a.MemFreeAsync(driver.Ptr(w[0]), stream(w[1]))
	},
	"cuMemHostAlloc": func(a *driver.API, w []uint64) driver.Result {
		return give[uintptr](w)(a.MemHostAlloc(int64(w[0]), uint32(w[1])))
	},
	"cuMemFreeHost": func(a *driver.API, w []uint64) driver.Result { return a.MemFreeHost(uintptr(w[0])) },
	"cuMemHostRegister_v2": func(a *driver.API, w []uint64) driver.Result {
		return a.MemHostRegister(uintptr(w[0]), int64(w[1]), uint32(w[2]))
	},
	"cuMemHostUnregister": func(a *driver.API, w []uint64) driver.Result { return a.MemHostUnregister(uintptr(w[0])) },

	"cuMemcpyHtoD_v2": func(a *driver.API, w []uint64) driver.Result {
		return a.MemcpyHtoD(driver.Ptr(w[0]), uintptr(w[1]), int64(w[2]))
	},
	"cuMemcpyDtoH_v2": func(a *driver.API, w []uint64) driver.Result {
		return a.MemcpyDtoH(uintptr(w[0]), driver.Ptr(w[1]), int64(w[2]))
	},
	"cuMemcpyDtoD_v2": func(a *driver.API, w []uint64) driver.Result {
		return a.MemcpyDtoD(driver.Ptr(w[0]), driver.Ptr(w[1]), int64(w[2]))
	},
	"cuMemcpyHtoDAsync_v2": func(a *driver.API, w []uint64) driver.Result {
		return a.MemcpyHtoDAsync(driver.Ptr(w[0]), uintptr(w[1]), int64(w[2]), stream(w[3]))
	},
	"cuMemcpyDtoHAsync_v2": func(a *driver.API, w []uint64) driver.Result {
		return a.MemcpyDtoHAsync(uintptr(w[0]), driver.Ptr(w[1]), int64(w[2]), stream(w[3]))
	},
	"cuMemcpyDtoDAsync_v2": func(a *driver.API, w []uint64) driver.Result {
		return a.MemcpyDtoDAsync(driver.Ptr(w[0]), driver.Ptr(w[1]), int64(w[2]), stream(w[3]))
	},
	"cuMemcpyPeerAsync": func(a *driver.API, w []uint64) driver.Result {
		dst, src := driver.Ptr(w[0]), driver.Ptr(w[2])
		return a.MemcpyPeerAsync(dst, driver.Context(w[1]), src, driver.Context(w[3]), int64(w[4]), stream(w[5]))
	},
	"cuMemsetD8Async": func(a *driver.API, w []uint64) driver.Result {
		return a.MemsetD8Async(driver.Ptr(w[0]), uint8(w[1]), int64(w[2]), stream(w[3]))
	},
	"cuMemsetD32Async": func(a *driver.API, w []uint64) driver.Result {
		return a.MemsetD32Async(driver.Ptr(w[0]), uint32(w[1]), int64(w[2]), stream(w[3]))
	},

	"cuStreamCreateWithPriority": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.Stream](w)(a.StreamCreateWithPriority(uint32(w[0]), int(int32(w[1]))))
	},
	"cuStreamDestroy_v2":  func(a *driver.API, w []uint64) driver.Result { return a.StreamDestroy(stream(w[0])) },
	"cuStreamSynchronize": func(a *driver.API, w []uint64) driver.Result { return a.StreamSynchronize(stream(w[0])) },
	"cuStreamQuery":       func(a *driver.API, w []uint64) driver.Result { return a.StreamQuery(stream(w[0])) },
	"cuStreamWaitEvent": func(a *driver.API, w []uint64) driver.Result {
		return a.StreamWaitEvent(stream(w[0]), event(w[1]))
	},

	"cuEventCreate": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.Event](w)(a.EventCreate(uint32(w[0])))
	},
	"cuEventDestroy_v2": func(a *driver.API, w []uint64) driver.Result { return a.EventDestroy(event(w[0])) },
	"cuEventRecord": func(a *driver.API, w []uint64) driver.Result {
		return a.EventRecord(event(w[0]), stream(w[1]))
	},
	"cuEventSynchronize": func(a *driver.API, w []uint64) driver.Result { return a.EventSynchronize(event(w[0])) },
	"cuEventQuery":       func(a *driver.API, w []uint64) driver.Result { return a.EventQuery(event(w[0])) },
	"cuEventElapsedTime": func(a *driver.API, w []uint64) driver.Result {
		ms, r := a.EventElapsedTime(event(w[0]), event(w[1]))
		w[0] = uint64(math.Float32bits(ms))
		return r
	},

	"cuLaunchKernel":   launch,
	"cuLaunchKernelEx": launch,
}

func init() {
	maps.Copy(handlers, graphHandlers)
	maps.Copy(handlers, virtualHandlers)
}

func device(w uint64) driver.Device { return driver.Device(w) }
func stream(w uint64) driver.Stream { return driver.Stream(w) }
func event(w uint64) driver.Event   { return driver.Event(w) }

// bytesAt views the caller's memory.
func bytesAt(addr, n uint64) []byte { return hostmem.Bytes(uintptr(addr), int(n)) }

type word interface {
	~int | ~int32 | ~int64 | ~uintptr | ~uint64
}

// give puts a result in the first word.
func give[T word](w []uint64) func(T, driver.Result) driver.Result {
	return func(v T, r driver.Result) driver.Result {
		w[0] = uint64(v)
		return r
	}
}

// giveTwo puts results in the first two words.
func giveTwo[T, U word](w []uint64) func(T, U, driver.Result) driver.Result {
	return func(v T, u U, r driver.Result) driver.Result {
		w[0], w[1] = uint64(v), uint64(u)
		return r
	}
}

// giveText writes a text to a buffer of the caller: its address and length are the first two words.
func giveText(w []uint64) func(string, driver.Result) driver.Result {
	return func(s string, r driver.Result) driver.Result {
		if r == driver.Success {
			writeText(w[0], w[1], s)
		}
		return r
	}
}

// writeText writes as much of s as fits before a NUL.
func writeText(addr, n uint64, s string) {
	if n > 0 {
		b := bytesAt(addr, n)
		b[copy(b[:n-1], s)] = 0
	}
}

func deviceGetUuid(a *driver.API, w []uint64) driver.Result {
	id, r := a.DeviceGetUuid(device(w[1]))
	if r == driver.Success {
		copy(bytesAt(w[0], 16), id[:])
	}
	return r
}

func deviceCanAccessPeer(a *driver.API, w []uint64) driver.Result {
	can, r := a.DeviceCanAccessPeer(device(w[0]), device(w[1]))
	if w[0] = 0; can {
		w[0] = 1
	}
	return r
}

// moduleLoad gets the image with its length, then buffers for information and for errors: what a compiler says goes to
// one of them.
func moduleLoad(a *driver.API, w []uint64) driver.Result {
	image := append([]byte(nil), bytesAt(w[0], w[1])...)
	m, log, r := a.ModuleLoadData(image)
	if r == driver.Success {
		writeText(w[2], w[3], log)
	} else {
		writeText(w[4], w[5], log)
	}
	w[0] = uint64(m)
	return r
}

// launch gets the function, the shape, the parameters with their length, and of cuLaunchKernelEx the attributes.
func launch(a *driver.API, w []uint64) driver.Result {
	dim := func(w []uint64) [3]uint32 { return [3]uint32{uint32(w[0]), uint32(w[1]), uint32(w[2])} }
	c := &driver.LaunchConfig{
		Grid: dim(w[1:]), Block: dim(w[4:]), Shared: uint32(w[7]), Stream: stream(w[8]),
		Cluster: dim(w[11:]), Dependent: w[14] != 0,
	}
	return a.LaunchKernelEx(c, driver.Function(w[0]), append([]byte(nil), bytesAt(w[9], w[10])...))
}
