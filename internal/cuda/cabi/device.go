package cabi

import "github.com/warpline-ml/warpline/internal/cuda/driver"

// lastAttribute is beyond those of cuda.h 13. What a device does not know of these it has not: their value is 0.
const lastAttribute = 150

var _ = add(map[string]handler{
	"cuDeviceGetCount": func(t *Thread, a *Args) driver.Result { return give[int](t, a[0])(t.DeviceGetCount()) },
	"cuDeviceGet": func(t *Thread, a *Args) driver.Result {
		return give[driver.Device](t, a[0])(t.DeviceGet(a.int(1)))
	},
	"cuDeviceGetName": func(t *Thread, a *Args) driver.Result {
		return t.giveText(a[0], a.int(1))(t.DeviceGetName(device(a[2])))
	},
	"cuDeviceGetPCIBusId": func(t *Thread, a *Args) driver.Result {
		return t.giveText(a[0], a.int(1))(t.DeviceGetPCIBusId(device(a[2])))
	},
	"cuDeviceGetByPCIBusId": byBus,
	"cuDeviceGetUuid":       uuid, "cuDeviceGetUuid_v2": uuid,
	"cuDeviceTotalMem_v2": func(t *Thread, a *Args) driver.Result {
		return give[int64](t, a[0])(t.DeviceTotalMem(device(a[1])))
	},
	"cuDeviceGetAttribute": func(t *Thread, a *Args) driver.Result {
		v, r := t.DeviceGetAttribute(driver.Attribute(a.int(1)), device(a[2]))
		if r == driver.InvalidValue && a.int(1) > 0 && a.int(1) < lastAttribute {
			v, r = 0, driver.Success
		}
		return give[int](t, a[0])(v, r)
	},
	"cuDeviceComputeCapability": func(t *Thread, a *Args) driver.Result {
		major, r := t.DeviceGetAttribute(driver.ComputeMajor, device(a[2]))
		if r != driver.Success {
			return r
		}
		minor, r := t.DeviceGetAttribute(driver.ComputeMinor, device(a[2]))
		return giveTwo[int, int](t, a[0], a[1])(major, minor, r)
	},
	"cuDeviceCanAccessPeer": func(t *Thread, a *Args) driver.Result {
		can, r := t.DeviceCanAccessPeer(device(a[1]), device(a[2]))
		v := 0
		if can {
			v = 1
		}
		return give[int](t, a[0])(v, r)
	},

	"cuDevicePrimaryCtxRetain": func(t *Thread, a *Args) driver.Result {
		return give[driver.Context](t, a[0])(t.retained(device(a[1])))
	},
	"cuDevicePrimaryCtxRelease": release, "cuDevicePrimaryCtxRelease_v2": release,
	"cuDevicePrimaryCtxReset": reset, "cuDevicePrimaryCtxReset_v2": reset,
	"cuDevicePrimaryCtxSetFlags": setFlags, "cuDevicePrimaryCtxSetFlags_v2": setFlags,
	"cuDevicePrimaryCtxGetState": func(t *Thread, a *Args) driver.Result {
		active := 0
		t.mu.Lock()
		for _, d := range t.devices {
			if d == device(a[0]) {
				active = 1
			}
		}
		t.mu.Unlock()
		return giveTwo[int, int](t, a[1], a[2])(0, active, driver.Success)
	},

	"cuCtxCreate_v2": func(t *Thread, a *Args) driver.Result { return t.createContext(a[0], device(a[2])) },
	"cuCtxCreate_v3": func(t *Thread, a *Args) driver.Result { return t.createContext(a[0], device(a[4])) },
	"cuCtxCreate_v4": func(t *Thread, a *Args) driver.Result { return t.createContext(a[0], device(a[3])) },
	"cuCtxDestroy":   destroyContext, "cuCtxDestroy_v2": destroyContext,
	"cuCtxPushCurrent_v2": func(t *Thread, a *Args) driver.Result { return t.push(driver.Context(a[0])) },
	"cuCtxPopCurrent_v2":  func(t *Thread, a *Args) driver.Result { return t.pop(a[0]) },
	"cuCtxSetCurrent":     func(t *Thread, a *Args) driver.Result { return t.CtxSetCurrent(driver.Context(a[0])) },
	"cuCtxGetCurrent": func(t *Thread, a *Args) driver.Result {
		return give[driver.Context](t, a[0])(t.CtxGetCurrent())
	},
	"cuCtxGetDevice": func(t *Thread, a *Args) driver.Result {
		return give[driver.Device](t, a[0])(t.currentDevice())
	},
	"cuCtxSynchronize":      func(t *Thread, a *Args) driver.Result { return t.CtxSynchronize() },
	"cuCtxEnablePeerAccess": func(t *Thread, a *Args) driver.Result { return t.CtxEnablePeerAccess(driver.Context(a[0])) },
	"cuCtxGetStreamPriorityRange": func(t *Thread, a *Args) driver.Result {
		return giveTwo[int, int](t, a[0], a[1])(t.CtxGetStreamPriorityRange())
	},
	"cuCtxGetApiVersion": func(t *Thread, a *Args) driver.Result { return give[uint32](t, a[1])(3020, driver.Success) },
	"cuCtxGetFlags":      func(t *Thread, a *Args) driver.Result { return give[uint32](t, a[0])(0, driver.Success) },
	"cuCtxGetLimit": func(t *Thread, a *Args) driver.Result {
		v, ok := limits[a.int(1)]
		if !ok {
			return driver.Result(215)
		}
		return give[uint64](t, a[0])(v, driver.Success)
	},
	"cuCtxSetLimit": done, "cuCtxSetFlags": done, "cuCtxSetCacheConfig": done, "cuCtxSetSharedMemConfig": done, "cuCtxResetPersistingL2Cache": done,
	"cuCtxGetCacheConfig":     func(t *Thread, a *Args) driver.Result { return give[int](t, a[0])(0, driver.Success) },
	"cuCtxGetSharedMemConfig": func(t *Thread, a *Args) driver.Result { return give[int](t, a[0])(1, driver.Success) },
})

// limits are those of contexts that programs ask for: the stack of a thread, the buffer of printf, the heap of kernels. Setting them
// changes nothing: the simulator's own are larger, or there is no such thing.
var limits = map[int]uint64{0: 1024, 1: 1 << 20, 2: 8 << 20}

func uuid(t *Thread, a *Args) driver.Result {
	id, r := t.DeviceGetUuid(device(a[1]))
	if r != driver.Success {
		return r
	}
	return t.write(a[0], id[:])
}

func byBus(t *Thread, a *Args) driver.Result {
	want, r := t.text(a[1], maxName)
	if r != driver.Success {
		return r
	}
	n, r := t.DeviceGetCount()
	for d := range driver.Device(n) {
		if id, _ := t.DeviceGetPCIBusId(d); id == string(want) {
			return give[driver.Device](t, a[0])(d, driver.Success)
		}
	}
	if r == driver.Success {
		r = driver.InvalidDevice
	}
	return r
}

func (t *Thread) retained(d driver.Device) (driver.Context, driver.Result) {
	c, r := t.DevicePrimaryCtxRetain(d)
	if r == driver.Success {
		t.mu.Lock()
		t.devices[c] = d
		t.mu.Unlock()
	}
	return c, r
}

func release(t *Thread, a *Args) driver.Result { return t.DevicePrimaryCtxRelease(device(a[0])) }
func reset(t *Thread, a *Args) driver.Result   { return t.DevicePrimaryCtxReset(device(a[0])) }
func setFlags(t *Thread, a *Args) driver.Result {
	return t.DevicePrimaryCtxSetFlags(device(a[0]), a.u32(1))
}

// createContext makes a context the current one: the primary one, retained once more, since a simulated device has no other.
func (t *Thread) createContext(at uint64, d driver.Device) driver.Result {
	c, r := t.retained(d)
	if r != driver.Success {
		return r
	}
	if r := t.push(c); r != driver.Success {
		return r
	}
	return t.write(at, encoded(c))
}

// destroyContext undoes createContext, on the thread that made it in whole.
func destroyContext(t *Thread, a *Args) driver.Result {
	c := driver.Context(a[0])
	t.mu.Lock()
	d, ok := t.devices[c]
	t.mu.Unlock()
	if !ok {
		return t.refuse(driver.InvalidContext, "there is no such context")
	}
	if now, _ := t.CtxGetCurrent(); now == c {
		t.unstack()
	}
	return t.DevicePrimaryCtxRelease(d)
}

func (t *Thread) push(c driver.Context) driver.Result {
	now, r := t.CtxGetCurrent()
	if r != driver.Success {
		return r
	}
	if r := t.CtxSetCurrent(c); r != driver.Success {
		return r
	}
	t.below = append(t.below, now)
	return driver.Success
}

func (t *Thread) pop(at uint64) driver.Result {
	now, r := t.CtxGetCurrent()
	switch {
	case r != driver.Success:
		return r
	case now == 0:
		return t.refuse(driver.InvalidContext, "no context is current")
	}
	if r := t.unstack(); r != driver.Success || at == 0 {
		return r
	}
	return t.write(at, encoded(now))
}

// unstack makes the context below the current one current.
func (t *Thread) unstack() driver.Result {
	var under driver.Context
	if n := len(t.below); n > 0 {
		under, t.below = t.below[n-1], t.below[:n-1]
	}
	return t.CtxSetCurrent(under)
}

func (t *Thread) currentDevice() (driver.Device, driver.Result) {
	c, r := t.CtxGetCurrent()
	if r != driver.Success {
		return 0, r
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	d, ok := t.devices[c]
	if !ok {
		return 0, driver.InvalidContext
	}
	return d, r
}
