package cabi

import (
	"encoding/binary"
	"fmt"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// What extra says instead of a list of parameters, and the attributes of launches that change something.
const (
	extraEnd    = 0
	extraBuffer = 1
	extraSize   = 2

	attributeCooperative = 2
	attributeCluster     = 4
	attributeDependent   = 6
)

// maxParams is more than a kernel's parameters take.
const maxParams = 1 << 16

var _ = add(map[string]handler{
	"cuLaunchKernel": func(t *Thread, a *Args) driver.Result {
		c := driver.LaunchConfig{Grid: a.dim(1), Block: a.dim(4), Shared: a.u32(7), Stream: t.stream(a[8])}
		return t.launch(&c, function(a[0]), a[9], a[10])
	},
	"cuLaunchKernelEx": launchEx,
	"cuLaunchCooperativeKernel": func(t *Thread, a *Args) driver.Result {
		c := driver.LaunchConfig{Grid: a.dim(1), Block: a.dim(4), Shared: a.u32(7), Stream: t.stream(a[8])}
		if r := t.resident(&c, function(a[0])); r != driver.Success {
			return r
		}
		return t.launch(&c, function(a[0]), a[9], 0)
	},
})

func (t *Thread) launch(c *driver.LaunchConfig, f driver.Function, params, extra uint64) driver.Result {
	p, r := t.parameters(f, params, extra)
	if r != driver.Success {
		return r
	}
	return t.LaunchKernelEx(c, f, p)
}

// parameters puts the parameters of a kernel into one buffer: from a list of pointers, or as extra has them.
func (t *Thread) parameters(f driver.Function, params, extra uint64) ([]byte, driver.Result) {
	if extra != 0 {
		return t.buffer(extra)
	}
	l, r := t.layout(f)
	switch {
	case r != driver.Success || len(l.sizes) == 0:
		return nil, r
	case params == 0:
		return nil, t.refuse(driver.InvalidValue, fmt.Sprintf("the kernel has %d parameters, and the launch gives none", len(l.sizes)))
	}
	at, r := t.words(params, len(l.sizes))
	if r != driver.Success {
		return nil, r
	}
	p := make([]byte, l.bytes)
	for i, n := range l.sizes {
		if err := t.Memory.Read(p[l.offsets[i]:][:n], uintptr(at[i])); err != nil {
			return nil, t.refuse(driver.InvalidValue, fmt.Sprintf("parameter %d: %v", i, err))
		}
	}
	return p, r
}

// buffer is what extra names: words of pairs, the buffer's address and where its size stands.
func (t *Thread) buffer(extra uint64) ([]byte, driver.Result) {
	var at uint64
	size := uint64(0)
	for i := range 3 {
		w, r := t.words(extra+uint64(16*i), 1)
		if r != driver.Success {
			return nil, r
		}
		if w[0] == extraEnd {
			break
		}
		v, r := t.words(extra+uint64(16*i)+8, 1)
		if r != driver.Success {
			return nil, r
		}
		switch w[0] {
		case extraBuffer:
			at = v[0]
		case extraSize:
			n, r := t.words(v[0], 1)
			if r != driver.Success {
				return nil, r
			}
			size = n[0]
		default:
			return nil, t.refuse(driver.InvalidValue, fmt.Sprintf("extra has %#x where a tag should be", w[0]))
		}
	}
	if size == 0 || size > maxParams {
		return nil, t.refuse(driver.InvalidValue, fmt.Sprintf("extra has a buffer of %d bytes", size))
	}
	return t.read(at, int(size))
}

// launchEx takes a CUlaunchConfig: dimensions, shared memory, stream at 32, attributes at 40 and their number at 48. An attribute has 72
// bytes, of which its value begins at 8.
func launchEx(t *Thread, a *Args) driver.Result {
	p, r := t.read(a[0], 56)
	if r != driver.Success {
		return r
	}
	u32 := func(p []byte, i int) uint32 { return binary.LittleEndian.Uint32(p[4*i:]) }
	dim := func(p []byte, i int) [3]uint32 { return [3]uint32{u32(p, i), u32(p, i+1), u32(p, i+2)} }
	c := driver.LaunchConfig{Grid: dim(p, 0), Block: dim(p, 3), Shared: u32(p, 6), Stream: t.stream(binary.LittleEndian.Uint64(p[32:]))}
	if u32(p, 12) > maxList {
		return t.refuse(driver.InvalidValue, "more attributes of a launch than there are")
	}
	n := int(u32(p, 12))
	if n > 0 {
		const size = 72
		list, r := t.read(binary.LittleEndian.Uint64(p[40:]), n*size)
		if r != driver.Success {
			return r
		}
		for i := range n {
			x := list[i*size:]
			switch v := x[8:]; u32(x, 0) {
			case attributeCluster:
				c.Cluster = dim(v, 0)
			case attributeDependent:
				c.Dependent = u32(v, 0) != 0
			case attributeCooperative:
				if u32(v, 0) == 0 {
					continue
				}
				if r := t.resident(&c, function(a[1])); r != driver.Success {
					return r
				}
			}
		}
	}
	return t.launch(&c, function(a[1]), a[2], a[3])
}

// resident refuses a grid whose blocks, which wait for each other, are not all on the card at once.
func (t *Thread) resident(c *driver.LaunchConfig, f driver.Function) driver.Result {
	d, r := t.currentDevice()
	if r != driver.Success {
		return r
	}
	sms, r := t.DeviceGetAttribute(driver.MultiprocessorCount, d)
	if r != driver.Success {
		return r
	}
	n, r := t.OccupancyMaxActiveBlocksPerMultiprocessor(f, int(c.Block[0]*c.Block[1]*c.Block[2]), int64(c.Shared))
	if r != driver.Success {
		return r
	}
	if blocks := int64(c.Grid[0]) * int64(c.Grid[1]) * int64(c.Grid[2]); blocks > int64(n*sms) {
		return t.refuse(driver.CooperativeTooLarge, fmt.Sprintf("%d blocks, of which %d are on the card at once", blocks, n*sms))
	}
	return driver.Success
}
