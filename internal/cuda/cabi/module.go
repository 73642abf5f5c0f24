package cabi

import (
	"encoding/binary"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// layout is where the parameters of a kernel lie in their buffer.
type layout struct {
	offsets, sizes []int
	bytes          int
}

func module(w uint64) driver.Module     { return driver.Module(w) }
func function(w uint64) driver.Function { return driver.Function(w) }

// Libraries are modules of the current context here, and their kernels its functions.
var _ = add(map[string]handler{
	"cuModuleLoadData":      func(t *Thread, a *Args) driver.Result { return t.load(a[0], a[1], nil) },
	"cuModuleLoadDataEx":    loadWithLog,
	"cuModuleLoadFatBinary": func(t *Thread, a *Args) driver.Result { return t.load(a[0], a[1], nil) },
	"cuModuleLoad":          func(t *Thread, a *Args) driver.Result { return t.loadFile(a[0], a[1]) },
	"cuLibraryLoadData":     func(t *Thread, a *Args) driver.Result { return t.load(a[0], a[1], nil) },
	"cuLibraryLoadFromFile": func(t *Thread, a *Args) driver.Result { return t.loadFile(a[0], a[1]) },
	"cuModuleUnload":        unload,
	"cuLibraryUnload":       unload,
	"cuLibraryGetModule":    func(t *Thread, a *Args) driver.Result { return t.write(a[0], encoded(a[1])) },
	"cuModuleGetFunction":   getFunction,
	"cuLibraryGetKernel":    getFunction,
	"cuKernelGetFunction":   func(t *Thread, a *Args) driver.Result { return t.write(a[0], encoded(a[1])) },
	"cuModuleGetGlobal_v2":  getGlobal,
	"cuLibraryGetGlobal":    getGlobal,
	"cuModuleGetLoadingMode": func(t *Thread, a *Args) driver.Result {
		return give[int](t, a[0])(1, driver.Success) // eager
	},
	"cuFuncLoad": func(t *Thread, a *Args) driver.Result { return t.FuncLoad(function(a[0])) },
	"cuFuncIsLoaded": func(t *Thread, a *Args) driver.Result {
		return give[int](t, a[0])(1, t.FuncLoad(function(a[1])))
	},
	"cuFuncGetAttribute": func(t *Thread, a *Args) driver.Result {
		return give[int](t, a[0])(t.FuncGetAttribute(driver.FuncAttribute(a.int(1)), function(a[2])))
	},
	"cuKernelGetAttribute": func(t *Thread, a *Args) driver.Result {
		return give[int](t, a[0])(t.FuncGetAttribute(driver.FuncAttribute(a.int(1)), function(a[2])))
	},
	"cuFuncSetAttribute": func(t *Thread, a *Args) driver.Result {
		return t.FuncSetAttribute(function(a[0]), driver.FuncAttribute(a.int(1)), a.int(2))
	},
	"cuKernelSetAttribute": func(t *Thread, a *Args) driver.Result {
		return t.FuncSetAttribute(function(a[1]), driver.FuncAttribute(a.int(0)), a.int(2))
	},
	"cuFuncSetCacheConfig":     func(t *Thread, a *Args) driver.Result { return t.FuncLoad(function(a[0])) },
	"cuKernelSetCacheConfig":   func(t *Thread, a *Args) driver.Result { return t.FuncLoad(function(a[0])) },
	"cuFuncSetSharedMemConfig": func(t *Thread, a *Args) driver.Result { return t.FuncLoad(function(a[0])) },
	"cuFuncGetParamInfo":       paramInfo,
	"cuKernelGetParamInfo":     paramInfo,

	"cuOccupancyMaxActiveBlocksPerMultiprocessor":          occupancy,
	"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags": occupancy,
	"cuOccupancyMaxPotentialBlockSize":                     largestBlock,
	"cuOccupancyMaxPotentialBlockSizeWithFlags":            largestBlock,
})

// loaded gives the module of an image.
func (t *Thread) loaded(at uint64, image []byte, tell func(log string, r driver.Result)) driver.Result {
	m, log, r := t.ModuleLoadData(image)
	if tell != nil {
		tell(log, r)
	}
	if r != driver.Success {
		return r
	}
	t.mu.Lock()
	t.modules[m] = image
	t.mu.Unlock()
	return t.write(at, encoded(m))
}

// Image is what a module was made of, nil if it was unloaded.
func (p *Process) Image(m driver.Module) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.modules[m]
}

func (t *Thread) load(at, image uint64, tell func(log string, r driver.Result)) driver.Result {
	p, r := t.image(image)
	if r != driver.Success {
		if tell != nil {
			tell(t.why, r)
		}
		return r
	}
	return t.loaded(at, p, tell)
}

func (t *Thread) loadFile(at, name uint64) driver.Result {
	p, r := t.text(name, maxName)
	if r != driver.Success {
		return r
	}
	if t.ReadFile == nil {
		return driver.NotSupported
	}
	image, err := t.ReadFile(string(p))
	if err != nil {
		return t.refuse(driver.Result(301), err.Error())
	}
	for i, c := range image {
		if c == 0 {
			image = image[:i] // what ends a text; of machine code the first bytes are enough to refuse it
			break
		}
	}
	return t.loaded(at, image, nil)
}

// The options of the compiler that say where its log goes. The sizes come in the place of pointers, and go back there.
const (
	optionInfoLog      = 3
	optionInfoLogSize  = 4
	optionErrorLog     = 5
	optionErrorLogSize = 6
)

func loadWithLog(t *Thread, a *Args) driver.Result {
	if a.u32(2) > maxList {
		return t.refuse(driver.InvalidValue, "more options of the compiler than there are")
	}
	n := int(a.u32(2))
	options, r := t.read(a[3], 4*max(n, 1))
	if n > 0 && r != driver.Success {
		return r
	}
	values, r := t.words(a[4], n)
	if r != driver.Success {
		return r
	}
	var buffer [7]uint64
	var place [7]uint64
	for i, v := range values {
		if k := binary.LittleEndian.Uint32(options[4*i:]); k < uint32(len(buffer)) {
			buffer[k], place[k] = v, a[4]+uint64(8*i)
		}
	}
	return t.load(a[0], a[1], func(log string, r driver.Result) {
		k := optionInfoLog
		if r != driver.Success {
			k = optionErrorLog
		}
		for _, k2 := range []int{optionInfoLog, optionErrorLog} {
			text := ""
			if k2 == k {
				text = log
			}
			size := int(uint32(buffer[k2+1]))
			if buffer[k2] == 0 || size == 0 {
				continue
			}
			t.giveText(buffer[k2], size)(text, driver.Success)
			t.write(place[k2+1], encoded(uint32(min(len(text)+1, size))))
		}
	})
}

func unload(t *Thread, a *Args) driver.Result {
	r := t.ModuleUnload(module(a[0]))
	if r == driver.Success {
		t.mu.Lock()
		delete(t.modules, module(a[0]))
		t.mu.Unlock()
	}
	return r
}

func getFunction(t *Thread, a *Args) driver.Result {
	name, r := t.text(a[2], maxName)
	if r != driver.Success {
		return r
	}
	return give[driver.Function](t, a[0])(t.ModuleGetFunction(module(a[1]), string(name)))
}

func getGlobal(t *Thread, a *Args) driver.Result {
	name, r := t.text(a[3], maxName)
	if r != driver.Success {
		return r
	}
	p, n, r := t.ModuleGetGlobal(module(a[2]), string(name))
	if r == driver.Success {
		t.keep(allocation{base: uint64(p), bytes: uint64(n)})
	}
	return giveTwo[driver.Ptr, int64](t, a[0], a[1])(p, n, r)
}

// layout is that of a function's parameters.
func (t *Thread) layout(f driver.Function) (layout, driver.Result) {
	t.mu.Lock()
	l, ok := t.layouts[f]
	t.mu.Unlock()
	if ok {
		return l, driver.Success
	}
	var r driver.Result
	if l.offsets, l.sizes, r = t.Parameters(f); r != driver.Success {
		return l, r
	}
	if n := len(l.sizes); n > 0 {
		l.bytes = l.offsets[n-1] + l.sizes[n-1]
	}
	t.mu.Lock()
	t.layouts[f] = l
	t.mu.Unlock()
	return l, r
}

func paramInfo(t *Thread, a *Args) driver.Result {
	l, r := t.layout(function(a[0]))
	switch {
	case r != driver.Success:
		return r
	case a[1] >= uint64(len(l.offsets)):
		return t.refuse(driver.InvalidValue, "the kernel has fewer parameters")
	}
	return giveTwo[int64, int64](t, a[2], a[3])(int64(l.offsets[a[1]]), int64(l.sizes[a[1]]), r)
}

func occupancy(t *Thread, a *Args) driver.Result {
	return give[int](t, a[0])(t.OccupancyMaxActiveBlocksPerMultiprocessor(function(a[1]), a.int(2), int64(a[3])))
}

// largestBlock looks for the block with which most threads are resident: (minGrid, block, function, shared memory of a block, bytes,
// limit).
func largestBlock(t *Thread, a *Args) driver.Result {
	if a[3] != 0 {
		return t.refuse(driver.NotSupported, "shared memory that depends on the block's size is not simulated: pass a null pointer and the bytes")
	}
	d, r := t.currentDevice()
	if r != driver.Success {
		return r
	}
	sms, r := t.DeviceGetAttribute(driver.MultiprocessorCount, d)
	if r != driver.Success {
		return r
	}
	most, r := t.FuncGetAttribute(driver.FuncMaxThreadsPerBlock, function(a[2]))
	if r != driver.Success {
		return r
	}
	if limit := a.int(5); limit > 0 {
		most = min(most, limit)
	}
	best, block := 0, 0
	for n := most; n > 0; n = (n - 1) / 32 * 32 {
		blocks, r := t.OccupancyMaxActiveBlocksPerMultiprocessor(function(a[2]), n, int64(a[4]))
		if r != driver.Success {
			return r
		}
		if blocks*n > best*block {
			best, block = blocks, n
		}
	}
	return giveTwo[int, int](t, a[0], a[1])(best*sms, block, driver.Success)
}
