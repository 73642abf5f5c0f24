package cabi

import (
	"encoding/binary"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

var _ = add(map[string]handler{
	"cuTensorMapEncodeTiled": func(t *Thread, a *Args) driver.Result {
		m, r := t.tensor(a)
		if r != driver.Success {
			return r
		}
		n := len(m.Dims)
		if m.Box, r = t.numbers(a[6], n); r != driver.Success {
			return r
		}
		if m.ElementStrides, r = t.numbers(a[7], n); r != driver.Success {
			return r
		}
		m.Interleave, m.Swizzle, m.Fill = int32(a[8]), int32(a[9]), int32(a[11]) // 10: what L2 fetches, which changes no result
		return t.giveMap(a[0], func() (driver.CUtensorMap, driver.Result) { return t.TensorMapEncodeTiled(m) })
	},
	"cuTensorMapEncodeIm2col": func(t *Thread, a *Args) driver.Result {
		m, r := t.tensor(a)
		if r != driver.Success {
			return r
		}
		n := max(len(m.Dims)-2, 0)
		lower, r := t.numbers(a[6], n)
		if r != driver.Success {
			return r
		}
		upper, r := t.numbers(a[7], n)
		if r != driver.Success {
			return r
		}
		for i := range n {
			m.Lower, m.Upper = append(m.Lower, int32(lower[i])), append(m.Upper, int32(upper[i]))
		}
		m.Channels, m.Pixels = a.u32(8), a.u32(9)
		if m.ElementStrides, r = t.numbers(a[10], len(m.Dims)); r != driver.Success {
			return r
		}
		m.Interleave, m.Swizzle, m.Fill = int32(a[11]), int32(a[12]), int32(a[14])
		return t.giveMap(a[0], func() (driver.CUtensorMap, driver.Result) { return t.TensorMapEncodeIm2col(m) })
	},
	"cuTensorMapReplaceAddress": func(t *Thread, a *Args) driver.Result {
		if t.TensorMapReplaceAddress == nil {
			return t.refuse(driver.NotSupported, "the driver makes no tensor maps")
		}
		var old driver.CUtensorMap
		raw, r := t.read(a[0], len(old))
		if r != driver.Success {
			return r
		}
		copy(old[:], raw)
		return t.giveMap(a[0], func() (driver.CUtensorMap, driver.Result) { return t.TensorMapReplaceAddress(old, driver.Ptr(a[1])) })
	},
})

// tensor reads what all maps begin with: type, rank, address, sizes of dimensions, strides of all but the first.
func (t *Thread) tensor(a *Args) (*driver.TensorMap, driver.Result) {
	if t.TensorMapEncodeTiled == nil {
		return nil, t.refuse(driver.NotSupported, "the driver makes no tensor maps")
	}
	n := int(a.u32(2))
	if n < 1 || n > 5 {
		return nil, t.refuse(driver.InvalidValue, "a tensor map has 1 to 5 dimensions")
	}
	m := &driver.TensorMap{Type: int32(a[1]), Address: driver.Ptr(a[3])}
	var r driver.Result
	if m.Dims, r = t.words(a[4], n); r == driver.Success {
		m.Strides, r = t.words(a[5], n-1)
	}
	return m, r
}

// numbers reads words of 32 bits from the caller.
func (t *Thread) numbers(at uint64, n int) ([]uint32, driver.Result) {
	if n == 0 {
		return nil, driver.Success
	}
	p, r := t.read(at, 4*n)
	if r != driver.Success {
		return nil, r
	}
	list := make([]uint32, n)
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(p[4*i:])
	}
	return list, r
}

// giveMap puts a map where the caller wants it: on a multiple of 64.
func (t *Thread) giveMap(at uint64, encode func() (driver.CUtensorMap, driver.Result)) driver.Result {
	if at == 0 || at%64 != 0 {
		return t.refuse(driver.InvalidValue, "a tensor map lies on a multiple of 64 bytes")
	}
	raw, r := encode()
	if r != driver.Success {
		return r
	}
	return t.write(at, raw[:])
}
