package libcuda

import (
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/dl"
)

// binder looks symbols up and keeps account of those that are missing.
type binder struct {
	lib     *dl.Library
	err     error    // of the first required one
	missing []string // optional ones
}

// errIncomplete is that of a library without a function that every supported driver has.
var errIncomplete = errors.New("the library is of a driver older than 470")

// errForeign is that of a library without the function that every driver has had from the first.
var errForeign = errors.New("the library is no CUDA driver")

func (b *binder) need(symbol string) dl.Proc {
	p, err := b.lib.Lookup(symbol)
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("%w: %w", lacking(symbol), err)
	}
	return p
}

// lacking is what a library without a symbol is.
func lacking(symbol string) error {
	if symbol == "cuInit" {
		return errForeign
	}
	return errIncomplete
}

// want is need for what a driver may lack: what only newer ones have, and what the engine does not call. It returns 0 then.
func (b *binder) want(symbol string) dl.Proc {
	p, err := b.lib.Lookup(symbol)
	if err != nil {
		b.missing = append(b.missing, symbol)
	}
	return p
}

// wantNewer is want for a function of which older drivers have a version that takes the same arguments.
func (b *binder) wantNewer(symbol, older string) dl.Proc {
	if p, err := b.lib.Lookup(symbol); err == nil {
		return p
	}
	b.missing = append(b.missing, symbol)
	return b.want(older)
}

// mostResults is beyond all results there are and will soon be.
const mostResults = 2000

// learn asks the library for the names of results that this program does not know.
func (b *binder) learn() {
	name, meaning := b.want("cuGetErrorName"), b.want("cuGetErrorString")
	for r := range driver.Result(mostResults) {
		if r.Known() {
			continue
		}
		if s := stringOf(name, r); s != "" {
			driver.Learn(r, s, stringOf(meaning, r))
		}
	}
}

// file is the path that the library was loaded from, name if the system does not tell.
func (b *binder) file(name string) string {
	if path := b.need("cuInit").File(); path != "" {
		return path
	}
	return name
}

func (b *binder) bind() *driver.API {
	a := new(driver.API)
	b.bindDevices(a)
	b.bindContexts(a)
	b.bindModules(a)
	b.bindMemory(a)
	b.bindVirtual(a)
	b.bindCopies(a)
	b.bindStreams(a)
	b.bindEvents(a)
	b.bindLaunch(a)
	b.bindCapture(a)
	b.bindGraphs(a)
	b.bindNodes(a)
	b.bindGraphExecs(a)
	return a
}

func (b *binder) bindDevices(a *driver.API) {
	initialize := b.need("cuInit")
	version := b.need("cuDriverGetVersion")
	count := b.need("cuDeviceGetCount")
	device := b.need("cuDeviceGet")
	name := b.need("cuDeviceGetName")
	uuid := b.want("cuDeviceGetUuid_v2")
	total := b.need("cuDeviceTotalMem_v2")
	attribute := b.need("cuDeviceGetAttribute")
	pci := b.need("cuDeviceGetPCIBusId")
	peer := b.want("cuDeviceCanAccessPeer")

	a.Init = func(flags uint32) driver.Result { return call(initialize, uintptr(flags)) }
	a.DriverGetVersion = func() (int, driver.Result) { return getInt(version) }
	a.DeviceGetCount = func() (int, driver.Result) { return getInt(count) }
	a.DeviceGet = func(ordinal int) (driver.Device, driver.Result) {
		return get[driver.Device](device, uintptr(ordinal))
	}
	a.DeviceGetName = func(d driver.Device) (string, driver.Result) { return getText(name, d) }
	a.DeviceGetUuid = func(d driver.Device) ([16]byte, driver.Result) { return get[[16]byte](uuid, uintptr(d)) }
	a.DeviceTotalMem = func(d driver.Device) (int64, driver.Result) { return get[int64](total, uintptr(d)) }
	a.DeviceGetAttribute = func(what driver.Attribute, d driver.Device) (int, driver.Result) {
		return getInt(attribute, uintptr(what), uintptr(d))
	}
	a.DeviceGetPCIBusId = func(d driver.Device) (string, driver.Result) { return getText(pci, d) }
	a.DeviceCanAccessPeer = func(d, other driver.Device) (bool, driver.Result) {
		can, r := getInt(peer, uintptr(d), uintptr(other))
		return can != 0, r
	}
}

func (b *binder) bindContexts(a *driver.API) {
	retain := b.need("cuDevicePrimaryCtxRetain")
	release := b.need("cuDevicePrimaryCtxRelease_v2")
	reset := b.want("cuDevicePrimaryCtxReset_v2")
	setFlags := b.need("cuDevicePrimaryCtxSetFlags_v2")
	set := b.need("cuCtxSetCurrent")
	current := b.want("cuCtxGetCurrent")
	synchronize := b.want("cuCtxSynchronize")
	enablePeer := b.want("cuCtxEnablePeerAccess")
	priorities := b.want("cuCtxGetStreamPriorityRange")

	a.DevicePrimaryCtxRetain = func(d driver.Device) (driver.Context, driver.Result) {
		return get[driver.Context](retain, uintptr(d))
	}
	a.DevicePrimaryCtxRelease = func(d driver.Device) driver.Result { return call(release, uintptr(d)) }
	a.DevicePrimaryCtxReset = func(d driver.Device) driver.Result { return call(reset, uintptr(d)) }
	a.DevicePrimaryCtxSetFlags = func(d driver.Device, flags uint32) driver.Result {
		return call(setFlags, uintptr(d), uintptr(flags))
	}
	a.CtxSetCurrent = func(c driver.Context) driver.Result { return call(set, uintptr(c)) }
	a.CtxGetCurrent = func() (driver.Context, driver.Result) { return get[driver.Context](current) }
	a.CtxSynchronize = func() driver.Result { return call(synchronize) }
	a.CtxEnablePeerAccess = func(peer driver.Context) driver.Result { return call(enablePeer, uintptr(peer), 0) }
	a.CtxGetStreamPriorityRange = func() (int, int, driver.Result) {
		least, greatest, r := getTwo[int32, int32](priorities)
		return int(least), int(greatest), r
	}
}

func (b *binder) bindModules(a *driver.API) {
	load := b.need("cuModuleLoadDataEx")
	unload := b.need("cuModuleUnload")
	function := b.need("cuModuleGetFunction")
	global := b.want("cuModuleGetGlobal_v2")
	loadFunction := b.want("cuFuncLoad")
	attribute := b.want("cuFuncGetAttribute")
	setAttribute := b.need("cuFuncSetAttribute")
	blocks := b.want("cuOccupancyMaxActiveBlocksPerMultiprocessor")

	a.ModuleLoadData = func(image []byte) (driver.Module, string, driver.Result) { return loadModule(load, image) }
	a.ModuleUnload = func(m driver.Module) driver.Result { return call(unload, uintptr(m)) }
	a.ModuleGetFunction = func(m driver.Module, name string) (driver.Function, driver.Result) {
		return named(name, func(name uintptr) (driver.Function, driver.Result) {
			return get[driver.Function](function, uintptr(m), name)
		})
	}
	a.ModuleGetGlobal = func(m driver.Module, name string) (driver.Ptr, int64, driver.Result) {
		var bytes int64
		p, r := named(name, func(name uintptr) (p driver.Ptr, r driver.Result) {
			p, bytes, r = getTwo[driver.Ptr, int64](global, uintptr(m), name)
			return p, r
		})
		return p, bytes, r
	}
	a.FuncGetAttribute = func(what driver.FuncAttribute, f driver.Function) (int, driver.Result) {
		return getInt(attribute, uintptr(what), uintptr(f))
	}
	a.FuncSetAttribute = func(f driver.Function, what driver.FuncAttribute, value int) driver.Result {
		return call(setAttribute, uintptr(f), uintptr(what), uintptr(value))
	}
	a.FuncLoad = func(f driver.Function) driver.Result { return call(loadFunction, uintptr(f)) }
	if loadFunction == 0 { // before CUDA 12.4 cuModuleGetFunction loaded it: the handle is left to check
		a.FuncLoad = func(f driver.Function) driver.Result {
			_, r := a.FuncGetAttribute(driver.FuncNumRegs, f)
			return r
		}
	}
	a.OccupancyMaxActiveBlocksPerMultiprocessor = func(f driver.Function, size int, shared int64) (int, driver.Result) {
		return getInt(blocks, uintptr(f), uintptr(size), uintptr(shared))
	}
}

func (b *binder) bindMemory(a *driver.API) {
	info := b.want("cuMemGetInfo_v2")
	alloc := b.need("cuMemAlloc_v2")
	free := b.need("cuMemFree_v2")
	allocAsync := b.want("cuMemAllocAsync")
	freeAsync := b.want("cuMemFreeAsync")
	hostAlloc := b.need("cuMemHostAlloc")
	hostFree := b.need("cuMemFreeHost")
	register := b.want("cuMemHostRegister_v2")
	unregister := b.want("cuMemHostUnregister")

	a.MemGetInfo = func() (int64, int64, driver.Result) { return getTwo[int64, int64](info) }
	a.MemAlloc = func(bytes int64) (driver.Ptr, driver.Result) { return get[driver.Ptr](alloc, uintptr(bytes)) }
	a.MemFree = func(p driver.Ptr) driver.Result { return call(free, uintptr(p)) }
	a.MemAllocAsync = func(bytes int64, s driver.Stream) (driver.Ptr, driver.Result) {
		return get[driver.Ptr](allocAsync, uintptr(bytes), uintptr(s))
	}
	a.MemFreeAsync = func(p driver.Ptr, s driver.Stream) driver.Result { return call(freeAsync, uintptr(p), uintptr(s)) }
	a.MemHostAlloc = func(bytes int64, flags uint32) (uintptr, driver.Result) {
		return get[uintptr](hostAlloc, uintptr(bytes), uintptr(flags))
	}
	a.MemFreeHost = func(host uintptr) driver.Result { return call(hostFree, host) }
	a.MemHostRegister = func(host uintptr, bytes int64, flags uint32) driver.Result {
		return call(register, host, uintptr(bytes), uintptr(flags))
	}
	a.MemHostUnregister = func(host uintptr) driver.Result { return call(unregister, host) }
}

func (b *binder) bindCopies(a *driver.API) {
	toDevice, toDeviceAsync := b.want("cuMemcpyHtoD_v2"), b.need("cuMemcpyHtoDAsync_v2")
	toHost, toHostAsync := b.want("cuMemcpyDtoH_v2"), b.need("cuMemcpyDtoHAsync_v2")
	within, withinAsync := b.want("cuMemcpyDtoD_v2"), b.need("cuMemcpyDtoDAsync_v2")
	peer := b.need("cuMemcpyPeerAsync")
	set8, set32 := b.need("cuMemsetD8Async"), b.want("cuMemsetD32Async")

	a.MemcpyHtoD = func(dst driver.Ptr, src uintptr, n int64) driver.Result {
		return call(toDevice, uintptr(dst), src, uintptr(n))
	}
	a.MemcpyDtoH = func(dst uintptr, src driver.Ptr, n int64) driver.Result {
		return call(toHost, dst, uintptr(src), uintptr(n))
	}
	a.MemcpyDtoD = func(dst, src driver.Ptr, n int64) driver.Result {
		return call(within, uintptr(dst), uintptr(src), uintptr(n))
	}
	a.MemcpyHtoDAsync = func(dst driver.Ptr, src uintptr, n int64, s driver.Stream) driver.Result {
		return call(toDeviceAsync, uintptr(dst), src, uintptr(n), uintptr(s))
	}
	a.MemcpyDtoHAsync = func(dst uintptr, src driver.Ptr, n int64, s driver.Stream) driver.Result {
		return call(toHostAsync, dst, uintptr(src), uintptr(n), uintptr(s))
	}
	a.MemcpyDtoDAsync = func(dst, src driver.Ptr, n int64, s driver.Stream) driver.Result {
		return call(withinAsync, uintptr(dst), uintptr(src), uintptr(n), uintptr(s))
	}
	a.MemcpyPeerAsync = func(dst driver.Ptr, to driver.Context, src driver.Ptr, from driver.Context, n int64,
		s driver.Stream) driver.Result {
		return call(peer, uintptr(dst), uintptr(to), uintptr(src), uintptr(from), uintptr(n), uintptr(s))
	}
	a.MemsetD8Async = func(dst driver.Ptr, value uint8, n int64, s driver.Stream) driver.Result {
		return call(set8, uintptr(dst), uintptr(value), uintptr(n), uintptr(s))
	}
	a.MemsetD32Async = func(dst driver.Ptr, value uint32, n int64, s driver.Stream) driver.Result {
		return call(set32, uintptr(dst), uintptr(value), uintptr(n), uintptr(s))
	}
}

func (b *binder) bindStreams(a *driver.API) {
	create := b.need("cuStreamCreateWithPriority")
	destroy := b.need("cuStreamDestroy_v2")
	synchronize := b.need("cuStreamSynchronize")
	query := b.want("cuStreamQuery")
	wait := b.need("cuStreamWaitEvent")

	a.StreamCreateWithPriority = func(flags uint32, priority int) (driver.Stream, driver.Result) {
		return get[driver.Stream](create, uintptr(flags), uintptr(priority))
	}
	a.StreamDestroy = func(s driver.Stream) driver.Result { return call(destroy, uintptr(s)) }
	a.StreamSynchronize = func(s driver.Stream) driver.Result { return call(synchronize, uintptr(s)) }
	a.StreamQuery = func(s driver.Stream) driver.Result { return call(query, uintptr(s)) }
	a.StreamWaitEvent = func(s driver.Stream, e driver.Event) driver.Result {
		return call(wait, uintptr(s), uintptr(e), 0)
	}
}

func (b *binder) bindEvents(a *driver.API) {
	create := b.need("cuEventCreate")
	destroy := b.need("cuEventDestroy_v2")
	record := b.need("cuEventRecord")
	synchronize := b.want("cuEventSynchronize")
	query := b.need("cuEventQuery")
	elapsed := b.want("cuEventElapsedTime")

	a.EventCreate = func(flags uint32) (driver.Event, driver.Result) { return get[driver.Event](create, uintptr(flags)) }
	a.EventDestroy = func(e driver.Event) driver.Result { return call(destroy, uintptr(e)) }
	a.EventRecord = func(e driver.Event, s driver.Stream) driver.Result { return call(record, uintptr(e), uintptr(s)) }
	a.EventSynchronize = func(e driver.Event) driver.Result { return call(synchronize, uintptr(e)) }
	a.EventQuery = func(e driver.Event) driver.Result { return call(query, uintptr(e)) }
	a.EventElapsedTime = func(start, end driver.Event) (float32, driver.Result) {
		return get[float32](elapsed, uintptr(start), uintptr(end))
	}
}

func (b *binder) bindLaunch(a *driver.API) {
	ex, plain := b.want("cuLaunchKernelEx"), b.need("cuLaunchKernel")
	a.LaunchKernelEx = func(c *driver.LaunchConfig, f driver.Function, params []byte) driver.Result {
		return launchEx(ex, c, f, params)
	}
	if ex == 0 {
		a.LaunchKernelEx = func(c *driver.LaunchConfig, f driver.Function, params []byte) driver.Result {
			return launchPlain(plain, c, f, params)
		}
	}
}
