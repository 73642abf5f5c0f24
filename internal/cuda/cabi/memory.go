package cabi

import (
	"encoding/binary"
	"slices"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// allocation is a range of device memory, or of pinned memory of the host.
type allocation struct {
	base, bytes uint64
	host        bool
	ctx         driver.Context
}

// The attributes of pointers that are told, and the types of memory.
const (
	pointerContext       = 1
	pointerMemoryType    = 2
	pointerDevicePointer = 3
	pointerHostPointer   = 4
	pointerManaged       = 8
	pointerOrdinal       = 9
	pointerRangeStart    = 11
	pointerRangeSize     = 12
	pointerMapped        = 13

	memoryHost   = 1
	memoryDevice = 2
)

func ptr(w uint64) driver.Ptr { return driver.Ptr(w) }

var _ = add(map[string]handler{
	"cuMemGetInfo_v2": func(t *Thread, a *Args) driver.Result {
		return giveTwo[int64, int64](t, a[0], a[1])(t.MemGetInfo())
	},
	"cuMemAlloc_v2":      func(t *Thread, a *Args) driver.Result { return t.allocate(a[0], a[1], t.MemAlloc) },
	"cuMemAllocPitch_v2": allocPitch,
	"cuMemFree_v2": func(t *Thread, a *Args) driver.Result {
		if a[0] == 0 { // as the driver has it
			return driver.Success
		}
		return t.freed(a[0], t.MemFree(ptr(a[0])))
	},
	"cuMemAllocAsync": func(t *Thread, a *Args) driver.Result {
		return t.allocate(a[0], a[1], func(n int64) (driver.Ptr, driver.Result) { return t.MemAllocAsync(n, t.stream(a[2])) })
	},
	"cuMemFreeAsync": func(t *Thread, a *Args) driver.Result {
		return t.freed(a[0], t.MemFreeAsync(ptr(a[0]), t.stream(a[1])))
	},
	"cuMemHostAlloc":       hostAlloc,
	"cuMemFreeHost":        func(t *Thread, a *Args) driver.Result { return t.freed(a[0], t.MemFreeHost(uintptr(a[0]))) },
	"cuMemHostRegister_v2": hostRegister,
	"cuMemHostUnregister": func(t *Thread, a *Args) driver.Result {
		return t.freed(a[0], t.MemHostUnregister(uintptr(a[0])))
	},
	"cuMemGetAddressRange_v2": func(t *Thread, a *Args) driver.Result {
		x, ok := t.rangeOf(a[2])
		if !ok || x.host {
			return t.refuse(driver.NotFound, "the address is in no allocation")
		}
		return giveTwo[uint64, uint64](t, a[0], a[1])(x.base, x.bytes, driver.Success)
	},
	"cuPointerGetAttribute": func(t *Thread, a *Args) driver.Result { return t.pointer(a[0], a.int(1), a[2]) },
	"cuPointerGetAttributes": func(t *Thread, a *Args) driver.Result {
		if a.u32(0) > maxList {
			return t.refuse(driver.InvalidValue, "more attributes than there are")
		}
		n := int(a.u32(0))
		which, r := t.read(a[1], 4*n)
		if r != driver.Success {
			return r
		}
		to, r := t.words(a[2], n)
		for i := 0; i < len(to) && r == driver.Success; i++ {
			if r = t.pointer(to[i], int(which[4*i]), a[3]); r == driver.InvalidValue { // what does not apply is zero
				r = t.write(to[i], make([]byte, 4))
			}
		}
		return r
	},

	"cuMemcpyHtoD_v2": func(t *Thread, a *Args) driver.Result {
		return t.behindThread(func() driver.Result { return t.MemcpyHtoD(ptr(a[0]), uintptr(a[1]), int64(a[2])) })
	},
	"cuMemcpyDtoH_v2": func(t *Thread, a *Args) driver.Result {
		return t.behindThread(func() driver.Result { return t.MemcpyDtoH(uintptr(a[0]), ptr(a[1]), int64(a[2])) })
	},
	"cuMemcpyDtoD_v2": func(t *Thread, a *Args) driver.Result {
		return t.behindThread(func() driver.Result { return t.MemcpyDtoD(ptr(a[0]), ptr(a[1]), int64(a[2])) })
	},
	"cuMemcpyHtoDAsync_v2": func(t *Thread, a *Args) driver.Result {
		return t.MemcpyHtoDAsync(ptr(a[0]), uintptr(a[1]), int64(a[2]), t.stream(a[3]))
	},
	"cuMemcpyDtoHAsync_v2": func(t *Thread, a *Args) driver.Result {
		return t.MemcpyDtoHAsync(uintptr(a[0]), ptr(a[1]), int64(a[2]), t.stream(a[3]))
	},
	"cuMemcpyDtoDAsync_v2": func(t *Thread, a *Args) driver.Result {
		return t.MemcpyDtoDAsync(ptr(a[0]), ptr(a[1]), int64(a[2]), t.stream(a[3]))
	},
	"cuMemcpyPeerAsync": func(t *Thread, a *Args) driver.Result {
		return t.MemcpyPeerAsync(ptr(a[0]), driver.Context(a[1]), ptr(a[2]), driver.Context(a[3]), int64(a[4]), t.stream(a[5]))
	},
	"cuMemcpyPeer": func(t *Thread, a *Args) driver.Result {
		r := t.MemcpyPeerAsync(ptr(a[0]), driver.Context(a[1]), ptr(a[2]), driver.Context(a[3]), int64(a[4]), t.implied)
		return t.waited(r, t.implied)
	},
	"cuMemcpy": func(t *Thread, a *Args) driver.Result {
		return t.waited(t.copy(a[0], a[1], int64(a[2]), t.implied), t.implied)
	},
	"cuMemcpyAsync": func(t *Thread, a *Args) driver.Result { return t.copy(a[0], a[1], int64(a[2]), t.stream(a[3])) },
	"cuMemcpy2D_v2": func(t *Thread, a *Args) driver.Result { return t.waited(t.copyRows(a[0], t.implied), t.implied) },
	"cuMemcpy2DUnaligned_v2": func(t *Thread, a *Args) driver.Result {
		return t.waited(t.copyRows(a[0], t.implied), t.implied)
	},
	"cuMemcpy2DAsync_v2": func(t *Thread, a *Args) driver.Result { return t.copyRows(a[0], t.stream(a[1])) },

	"cuMemsetD8_v2": func(t *Thread, a *Args) driver.Result {
		return t.MemsetD8Async(ptr(a[0]), uint8(a[1]), int64(a[2]), t.implied)
	},
	"cuMemsetD16_v2": func(t *Thread, a *Args) driver.Result { return t.fill16(a[0], uint16(a[1]), int64(a[2]), t.implied) },
	"cuMemsetD32_v2": func(t *Thread, a *Args) driver.Result {
		return t.MemsetD32Async(ptr(a[0]), a.u32(1), int64(a[2]), t.implied)
	},
	"cuMemsetD8Async": func(t *Thread, a *Args) driver.Result {
		return t.MemsetD8Async(ptr(a[0]), uint8(a[1]), int64(a[2]), t.stream(a[3]))
	},
	"cuMemsetD16Async": func(t *Thread, a *Args) driver.Result {
		return t.fill16(a[0], uint16(a[1]), int64(a[2]), t.stream(a[3]))
	},
	"cuMemsetD32Async": func(t *Thread, a *Args) driver.Result {
		return t.MemsetD32Async(ptr(a[0]), a.u32(1), int64(a[2]), t.stream(a[3]))
	},

	"cuMemGetAllocationGranularity": func(t *Thread, a *Args) driver.Result {
		d, r := t.property(a[1])
		if r != driver.Success {
			return r
		}
		return give[int64](t, a[0])(t.MemGetAllocationGranularity(d, driver.Granularity(a.int(2))))
	},
	"cuMemAddressReserve": func(t *Thread, a *Args) driver.Result {
		return give[driver.Ptr](t, a[0])(t.MemAddressReserve(int64(a[1]), int64(a[2]), ptr(a[3])))
	},
	"cuMemAddressFree": func(t *Thread, a *Args) driver.Result { return t.MemAddressFree(ptr(a[0]), int64(a[1])) },
	"cuMemCreate": func(t *Thread, a *Args) driver.Result {
		d, r := t.property(a[2])
		if r != driver.Success {
			return r
		}
		return give[driver.MemHandle](t, a[0])(t.MemCreate(int64(a[1]), d))
	},
	"cuMemRelease": func(t *Thread, a *Args) driver.Result { return t.MemRelease(driver.MemHandle(a[0])) },
	"cuMemMap": func(t *Thread, a *Args) driver.Result {
		return t.MemMap(ptr(a[0]), int64(a[1]), int64(a[2]), driver.MemHandle(a[3]))
	},
	"cuMemUnmap":     func(t *Thread, a *Args) driver.Result { return t.MemUnmap(ptr(a[0]), int64(a[1])) },
	"cuMemSetAccess": setAccess,
})

// property is the device of a CUmemAllocationProp.
func (t *Thread) property(at uint64) (driver.Device, driver.Result) {
	p, r := t.read(at, 32)
	if r != driver.Success {
		return 0, r
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(p[4*i:]) }
	switch {
	case word(0) != 1 || word(2) != 1:
		return 0, t.refuse(driver.NotSupported, "memory apart from addresses is on a device here: CU_MEM_LOCATION_TYPE_DEVICE")
	case word(1) != 0:
		return 0, t.refuse(driver.NotSupported, "memory for other processes is not simulated: ask for no handle types")
	}
	return driver.Device(int32(word(3))), r
}

// maxList is more than lists of devices, attributes and options have.
const maxList = 64

func setAccess(t *Thread, a *Args) driver.Result {
	n := int(min(a[3], maxList+1))
	if n > maxList {
		return t.refuse(driver.InvalidValue, "access of more devices than there are")
	}
	p, r := t.read(a[2], 12*n)
	for i := 0; i < n && r == driver.Success; i++ {
		word := func(k int) int32 { return int32(binary.LittleEndian.Uint32(p[12*i+4*k:])) }
		r = t.MemSetAccess(ptr(a[0]), int64(a[1]), driver.Device(word(1)), driver.Access(word(2)))
	}
	return r
}

// allocate makes memory and remembers where it is.
func (t *Thread) allocate(at, bytes uint64, f func(bytes int64) (driver.Ptr, driver.Result)) driver.Result {
	p, r := f(int64(bytes))
	if r != driver.Success {
		return r
	}
	t.keep(allocation{base: uint64(p), bytes: bytes})
	return t.write(at, encoded(p))
}

// pitchAlignment is a row's on cards of all kinds.
const pitchAlignment = 512

func allocPitch(t *Thread, a *Args) driver.Result {
	if a[2] == 0 || a[3] == 0 || a[2]>>40 != 0 || a[3]>>40 != 0 {
		return t.refuse(driver.InvalidValue, "rows without bytes, or no rows")
	}
	pitch := (a[2] + pitchAlignment - 1) / pitchAlignment * pitchAlignment
	if r := t.allocate(a[0], pitch*a[3], t.MemAlloc); r != driver.Success {
		return r
	}
	return t.write(a[1], encoded(pitch))
}

// hostAlloc makes memory pinned that the caller has set aside at its first argument.
func hostAlloc(t *Thread, a *Args) driver.Result {
	if t.Offer != nil {
		t.mu.Lock()
		t.Offer(uintptr(a[0]), int64(a[1]))
		_, r := t.MemHostAlloc(int64(a[1]), a.u32(2))
		t.mu.Unlock()
		if r == driver.Success {
			t.keep(allocation{base: a[0], bytes: a[1], host: true})
		}
		return r
	}
	return give[uintptr](t, a[0])(t.MemHostAlloc(int64(a[1]), a.u32(2)))
}

func hostRegister(t *Thread, a *Args) driver.Result {
	r := t.MemHostRegister(uintptr(a[0]), int64(a[1]), a.u32(2))
	if r == driver.Success {
		t.keep(allocation{base: a[0], bytes: a[1], host: true})
	}
	return r
}

func (t *Thread) keep(x allocation) {
	x.ctx, _ = t.CtxGetCurrent()
	t.mu.Lock()
	defer t.mu.Unlock()
	i, old := slices.BinarySearchFunc(t.ranges, x.base, byBase)
	if old {
		t.ranges[i] = x
		return
	}
	t.ranges = slices.Insert(t.ranges, i, x)
}

func byBase(x allocation, base uint64) int {
	switch {
	case x.base < base:
		return -1
	case x.base > base:
		return 1
	}
	return 0
}

// freed forgets a range that was freed.
func (t *Thread) freed(base uint64, r driver.Result) driver.Result {
	if r != driver.Success {
		return r
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i, ok := slices.BinarySearchFunc(t.ranges, base, byBase); ok {
		t.ranges = slices.Delete(t.ranges, i, i+1)
	}
	return r
}

// rangeOf is what an address lies in.
func (t *Thread) rangeOf(addr uint64) (allocation, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, exact := slices.BinarySearchFunc(t.ranges, addr, byBase)
	if !exact {
		i--
	}
	if i < 0 || addr-t.ranges[i].base >= t.ranges[i].bytes {
		return allocation{}, false
	}
	return t.ranges[i], true
}

// pointer tells an attribute of an address.
func (t *Thread) pointer(at uint64, which int, addr uint64) driver.Result {
	x, ok := t.rangeOf(addr)
	if !ok {
		return t.refuse(driver.InvalidValue, "the address is of no memory that the driver gave or registered")
	}
	t.mu.Lock()
	d := t.devices[x.ctx]
	t.mu.Unlock()
	kind := uint32(memoryDevice)
	if x.host {
		kind = memoryHost
	}
	switch {
	case which == pointerContext:
		return t.write(at, encoded(x.ctx))
	case which == pointerMemoryType:
		return t.write(at, encoded(kind))
	case which == pointerDevicePointer && !x.host, which == pointerHostPointer && x.host:
		return t.write(at, encoded(addr))
	case which == pointerManaged:
		return t.write(at, []byte{0})
	case which == pointerOrdinal:
		return t.write(at, encoded(d))
	case which == pointerRangeStart:
		return t.write(at, encoded(x.base))
	case which == pointerRangeSize:
		return t.write(at, encoded(x.bytes))
	case which == pointerMapped:
		return t.write(at, []byte{1})
	}
	return t.refuse(driver.InvalidValue, "the attribute does not apply to the address, or is not simulated")
}

// onDevice is whether an address is of a device. Those of devices and of pinned memory are known; anything else is the host's.
func (t *Thread) onDevice(addr uint64) bool {
	x, ok := t.rangeOf(addr)
	return ok && !x.host
}

// copy copies between addresses of either kind.
func (t *Thread) copy(dst, src uint64, n int64, s driver.Stream) driver.Result {
	return t.copyBetween(dst, src, t.onDevice(dst), t.onDevice(src), n, s)
}

// copyBetween copies between ends that are on a device or not.
func (t *Thread) copyBetween(dst, src uint64, to, from bool, n int64, s driver.Stream) driver.Result {
	switch {
	case to && from:
		return t.MemcpyDtoDAsync(ptr(dst), ptr(src), n, s)
	case to:
		return t.MemcpyHtoDAsync(ptr(dst), uintptr(src), n, s)
	case from:
		return t.MemcpyDtoHAsync(uintptr(dst), ptr(src), n, s)
	}
	if r := t.StreamSynchronize(s); r != driver.Success || n == 0 {
		return r
	}
	const piece = 1 << 20
	for at := int64(0); at < n; at += piece {
		p, r := t.read(src+uint64(at), int(min(piece, n-at)))
		if r == driver.Success {
			r = t.write(dst+uint64(at), p)
		}
		if r != driver.Success {
			return r
		}
	}
	return driver.Success
}

// waited waits for work that was accepted.
func (t *Thread) waited(r driver.Result, s driver.Stream) driver.Result {
	if r != driver.Success {
		return r
	}
	return t.StreamSynchronize(s)
}

// behindThread makes a copy that the host waits for once the stream of the thread is done, where that is the default one.
func (t *Thread) behindThread(f func() driver.Result) driver.Result {
	if t.implied != 0 {
		if r := t.StreamSynchronize(t.implied); r != driver.Success {
			return r
		}
	}
	return f()
}

// fill16 fills with half words: as bytes or words where these are the same.
func (t *Thread) fill16(dst uint64, v uint16, n int64, s driver.Stream) driver.Result {
	switch {
	case v>>8 == v&255:
		return t.MemsetD8Async(ptr(dst), uint8(v), 2*n, s)
	case dst%4 == 0 && n%2 == 0:
		return t.MemsetD32Async(ptr(dst), uint32(v)<<16|uint32(v), n/2, s)
	}
	return t.refuse(driver.NotSupported, "half words fill whole words here: an even number of them, at a multiple of 4 bytes")
}

// rows is a CUDA_MEMCPY2D, as far as it is memory and no array.
type rows struct {
	at, pitch [2]uint64 // of the source and the destination
	device    [2]bool
	width, n  uint64
}

// maxRows is more than a copy has.
const maxRows = 1 << 30

// copyRows copies row by row.
func (t *Thread) copyRows(at uint64, s driver.Stream) driver.Result {
	w, r := t.words(at, 16)
	if r != driver.Success {
		return r
	}
	c := rows{width: w[14], n: w[15]}
	if c.width == 0 || c.n == 0 || c.n > maxRows {
		if c.n > maxRows {
			return t.refuse(driver.InvalidValue, "a copy of more rows than memory has")
		}
		return driver.Success
	}
	for end := range 2 {
		e := w[7*end:]
		c.pitch[end] = max(e[6], c.width)
		switch kind := uint32(e[2]); kind {
		case memoryHost:
			c.at[end] = e[3]
		case memoryDevice:
			c.at[end], c.device[end] = e[4], true
		case 4: // unified: the address tells
			c.at[end], c.device[end] = e[4], t.onDevice(e[4])
		default:
			return t.refuse(driver.NotSupported, "copies to and from arrays are not simulated: use memory")
		}
		c.at[end] += e[1]*c.pitch[end] + e[0]
	}
	for i := uint64(0); i < c.n && r == driver.Success; i++ {
		r = t.copyBetween(c.at[1]+i*c.pitch[1], c.at[0]+i*c.pitch[0], c.device[1], c.device[0], int64(c.width), s)
	}
	return r
}
