package libcuda

import (
	"sync"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// Numbers of cuda.h.
const (
	locationDevice = 1
	typePinned     = 1
)

// location is a CUmemLocation.
type location struct {
	kind int32
	id   int32
}

// allocationProp is a CUmemAllocationProp.
type allocationProp struct {
	kind        int32
	handleTypes int32
	location    location
	win32       uintptr
	flags       [8]byte
}

// accessDesc is a CUmemAccessDesc.
type accessDesc struct {
	location location
	flags    int32
}

// described is what the calls of this file point to, beside scratch.
type described struct {
	prop   allocationProp
	access accessDesc
}

var describeds = sync.Pool{New: func() any { return new(described) }}

// ofDevice calls f with the address of the properties of memory of a device.
func ofDevice[T any](d driver.Device, f func(prop uintptr) (T, driver.Result)) (T, driver.Result) {
	s := describeds.Get().(*described)
	defer describeds.Put(s)
	s.prop = allocationProp{kind: typePinned, location: location{locationDevice, int32(d)}}
	return f(uintptr(unsafe.Pointer(&s.prop)))
}

// bindVirtual binds what drivers have had from CUDA 10.2 on, and what not every system has.
func (b *binder) bindVirtual(a *driver.API) {
	granularity := b.want("cuMemGetAllocationGranularity")
	reserve := b.want("cuMemAddressReserve")
	free := b.want("cuMemAddressFree")
	create := b.want("cuMemCreate")
	release := b.want("cuMemRelease")
	mapAt := b.want("cuMemMap")
	unmap := b.want("cuMemUnmap")
	access := b.want("cuMemSetAccess")

	a.MemGetAllocationGranularity = func(d driver.Device, g driver.Granularity) (int64, driver.Result) {
		return ofDevice(d, func(prop uintptr) (int64, driver.Result) { return get[int64](granularity, prop, uintptr(g)) })
	}
	a.MemAddressReserve = func(bytes, alignment int64, hint driver.Ptr) (driver.Ptr, driver.Result) {
		return get[driver.Ptr](reserve, uintptr(bytes), uintptr(alignment), uintptr(hint), 0)
	}
	a.MemAddressFree = func(p driver.Ptr, bytes int64) driver.Result { return call(free, uintptr(p), uintptr(bytes)) }
	a.MemCreate = func(bytes int64, on driver.Device) (driver.MemHandle, driver.Result) {
		return ofDevice(on, func(prop uintptr) (driver.MemHandle, driver.Result) {
			return get[driver.MemHandle](create, uintptr(bytes), prop, 0)
		})
	}
	a.MemRelease = func(h driver.MemHandle) driver.Result { return call(release, uintptr(h)) }
	a.MemMap = func(p driver.Ptr, bytes, offset int64, h driver.MemHandle) driver.Result {
		return call(mapAt, uintptr(p), uintptr(bytes), uintptr(offset), uintptr(h), 0)
	}
	a.MemUnmap = func(p driver.Ptr, bytes int64) driver.Result { return call(unmap, uintptr(p), uintptr(bytes)) }
	a.MemSetAccess = func(p driver.Ptr, bytes int64, by driver.Device, what driver.Access) driver.Result {
		s := describeds.Get().(*described)
		defer describeds.Put(s)
		s.access = accessDesc{location{locationDevice, int32(by)}, int32(what)}
		return call(access, uintptr(p), uintptr(bytes), uintptr(unsafe.Pointer(&s.access)), 1)
	}
}
