package libcuda

import (
	"sync"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/dl"
)

// launchConfig is CUlaunchConfig.
type launchConfig struct {
	grid, block   [3]uint32
	shared        uint32
	_             uint32
	stream        uintptr
	attributes    unsafe.Pointer
	numAttributes uint32
	_             uint32
}

// launchAttribute is CUlaunchAttribute.
type launchAttribute struct {
	id    int32
	_     int32
	value [16]uint32
}

// The attributes used, by their numbers in cuda.h, and the tags of extra.
const (
	attributeCluster   = 4
	attributeDependent = 6 // programmatic stream serialization

	extraBuffer = 1
	extraSize   = 2
)

// extra is the array in which a launch gets its parameters in one buffer: tags, each before its pointer, and a 0.
type extra struct {
	bufferTag uintptr
	buffer    unsafe.Pointer
	sizeTag   uintptr
	size      unsafe.Pointer
	end       uintptr
}

// Structures of the sizes that cuda.h gives them.
var (
	_ [56]byte = [unsafe.Sizeof(launchConfig{})]byte{}
	_ [72]byte = [unsafe.Sizeof(launchAttribute{})]byte{}
	_ [40]byte = [unsafe.Sizeof(extra{})]byte{}
)

// launch is what a launch points to. The driver copies all of it before it returns.
type launch struct {
	config     launchConfig
	attributes [2]launchAttribute
	extra      extra
	size       uint64
}

var launches = sync.Pool{New: func() any {
	l := new(launch)
	l.config.attributes = unsafe.Pointer(&l.attributes[0])
	l.extra = extra{bufferTag: extraBuffer, sizeTag: extraSize, size: unsafe.Pointer(&l.size)}
	return l
}}

// setConfig writes the configuration with its attributes.
func (l *launch) setConfig(c *driver.LaunchConfig) {
	d := &l.config
	d.grid, d.block, d.shared, d.stream = c.Grid, c.Block, c.Shared, uintptr(c.Stream)
	d.numAttributes = 0
	if c.Cluster != [3]uint32{} {
		l.add(attributeCluster, c.Cluster)
	}
	if c.Dependent {
		l.add(attributeDependent, [3]uint32{1})
	}
}

func (l *launch) add(id int32, value [3]uint32) {
	a := &l.attributes[l.config.numAttributes]
	a.id = id
	copy(a.value[:], value[:])
	l.config.numAttributes++
}

// setParams points to the parameters and returns the address of extra, 0 if there are none.
func (l *launch) setParams(params []byte) uintptr {
	if len(params) == 0 {
		return 0
	}
	l.extra.buffer, l.size = unsafe.Pointer(&params[0]), uint64(len(params))
	return uintptr(unsafe.Pointer(&l.extra))
}

// done lets the parameters go.
func (l *launch) done() {
	l.extra.buffer = nil
	launches.Put(l)
}

// launchEx launches through cuLaunchKernelEx.
func launchEx(p dl.Proc, c *driver.LaunchConfig, f driver.Function, params []byte) driver.Result {
	l := launches.Get().(*launch)
	l.setConfig(c)
	r := call(p, uintptr(unsafe.Pointer(&l.config)), uintptr(f), 0, l.setParams(params))
	l.done()
	return r
}

// launchPlain launches through cuLaunchKernel, for drivers before CUDA 11.8. A dependent launch may always wait for the
// one ahead of it; a cluster needs a card that those drivers do not know.
func launchPlain(p dl.Proc, c *driver.LaunchConfig, f driver.Function, params []byte) driver.Result {
	if c.Cluster != [3]uint32{} {
		return driver.NotSupported
	}
	l := launches.Get().(*launch)
	g, b := c.Grid, c.Block
	r := call(p, uintptr(f), uintptr(g[0]), uintptr(g[1]), uintptr(g[2]), uintptr(b[0]), uintptr(b[1]), uintptr(b[2]),
		uintptr(c.Shared), uintptr(c.Stream), 0, l.setParams(params))
	l.done()
	return r
}
