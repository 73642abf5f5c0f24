package simcuda

import (
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim/tensormap"
)

func (s *System) encodeTiled(t *driver.TensorMap) (driver.CUtensorMap, driver.Result) {
	return s.encodeMap(t, false)
}

func (s *System) encodeIm2col(t *driver.TensorMap) (driver.CUtensorMap, driver.Result) {
	return s.encodeMap(t, true)
}

// encodeMap makes a map, or refuses what NVIDIA's driver documents that it refuses.
func (s *System) encodeMap(t *driver.TensorMap, im2col bool) (raw driver.CUtensorMap, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		n := len(t.Dims)
		switch {
		case n < 1 || n > tensormap.MaxRank:
			return c.refuse(driver.InvalidValue, "a tensor map of %d dimensions; there are 1 to %d", n, tensormap.MaxRank)
		case len(t.Strides) != n-1 || len(t.ElementStrides) != n || !im2col && len(t.Box) != n:
			return c.refuse(driver.InvalidValue, "a tensor map of %d dimensions with %d strides, %d element strides and %d sizes of a box", n, len(t.Strides), len(t.ElementStrides), len(t.Box))
		case im2col && (len(t.Lower) != max(n-2, 0) || len(t.Upper) != max(n-2, 0)):
			return c.refuse(driver.InvalidValue, "a tensor map of %d dimensions with corners of %d and %d", n, len(t.Lower), len(t.Upper))
		case c.dev.sim.Card.Compute[0] < 9:
			return c.refuse(driver.NotSupported, "a tensor map on a card of compute capability %d.%d", c.dev.sim.Card.Compute[0], c.dev.sim.Card.Compute[1])
		}
		m := mapOf(t, im2col)
		if err := m.Check(); err != nil {
			return c.refuse(driver.InvalidValue, "%v", err)
		}
		raw = m.Bytes()
		return driver.Success
	})
	return raw, r
}

// moveMap is a map with another address.
func (s *System) moveMap(old driver.CUtensorMap, p driver.Ptr) (raw driver.CUtensorMap, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		m, err := tensormap.Parse(old[:])
		if err == nil {
			m.Addr = uint64(p)
			err = m.Check()
		}
		if err != nil {
			return c.refuse(driver.InvalidValue, "%v", err)
		}
		raw = m.Bytes()
		return driver.Success
	})
	return raw, r
}

// mapOf is the map as the simulator has it; what does not fit into its fields it refuses.
func mapOf(t *driver.TensorMap, im2col bool) *tensormap.Map {
	m := &tensormap.Map{Elem: tensormap.Elem(min(uint32(t.Type), 255)), Rank: len(t.Dims), Addr: uint64(t.Address), Im2col: im2col,
		Interleave: tensormap.Interleave(min(uint32(t.Interleave), 255)), Swizzle: tensormap.Swizzle(min(uint32(t.Swizzle), 255)), NaN: t.Fill != 0,
		Channels: int(t.Channels), Pixels: int(t.Pixels)}
	for i, d := range t.Dims {
		m.Dim[i], m.Step[i] = d, int(t.ElementStrides[i])
		if i > 0 {
			m.Stride[i] = t.Strides[i-1]
		}
		if !im2col {
			m.Box[i] = int(t.Box[i])
		}
	}
	for i := range t.Lower {
		if im2col {
			m.Lower[i], m.Upper[i] = int(t.Lower[i]), int(t.Upper[i])
		}
	}
	return m
}
