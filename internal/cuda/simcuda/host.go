package simcuda

import (
	"errors"
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// Host is the memory of the process whose driver a System is.
type Host interface {
	hostmem.Memory
	Alloc(n int) (hostmem.Block, error) // for MemHostAlloc
	Free(b hostmem.Block) error
}

// thisHost is that of this process.
type thisHost struct{ hostmem.Own }

func (thisHost) Alloc(n int) (hostmem.Block, error) { return hostmem.Alloc(n) }
func (thisHost) Free(b hostmem.Block) error         { return b.Free() }

// here is whether the host's memory is this process's.
func (s *System) here() bool {
	_, here := s.cfg.Host.(thisHost)
	return here
}

// hostPiece is what is held at once of a copy of memory of another process.
const hostPiece = 16 << 20

// inPieces goes through the n bytes of a copy: at once, or piece by piece where they have to be held in between.
func (s *System) inPieces(n int, f func(at, n int) error) error {
	if s.here() {
		return f(0, n)
	}
	for at := 0; at < n; at += hostPiece {
		if err := f(at, min(hostPiece, n-at)); err != nil {
			return err
		}
	}
	return nil
}

// fetched is what lies in the host's memory: of this process the memory itself.
func (s *System) fetched(addr uintptr, n int) ([]byte, error) {
	if s.here() {
		return hostmem.Bytes(addr, n), nil
	}
	p := make([]byte, n)
	return p, s.cfg.Host.Read(p, addr)
}

// stored lets f fill memory of the host.
func (s *System) stored(addr uintptr, n int, f func(p []byte) error) error {
	if s.here() {
		return f(hostmem.Bytes(addr, n))
	}
	p := make([]byte, n)
	if err := f(p); err != nil {
		return err
	}
	return s.cfg.Host.Write(addr, p)
}

// readable refuses memory of another process that is not there, as far as its ends tell. Of this process it would be a crash.
func (c *context) readable(addr uintptr, n int) driver.Result {
	host := c.dev.sys.cfg.Host
	for _, at := range []uintptr{addr, addr + uintptr(n) - 1} {
		if err := host.Read(make([]byte, 1), at); err != nil {
			return c.refuse(driver.InvalidValue, "%d bytes at host address %#x: %v", n, addr, err)
		}
	}
	return driver.Success
}

// pinned is page-locked host memory: made here, or somebody's and registered.
type pinned struct {
	lo, hi uintptr
	ctx    *context
	block  hostmem.Block // zero if registered
	by     string        // the call that made it
	number int           // among all allocations of the machine
}

// overlap is the range of pinned ones that share a byte with [lo, hi).
func (s *System) overlap(lo, hi uintptr) (i, j int) {
	for i < len(s.pinned) && s.pinned[i].hi <= lo {
		i++
	}
	for j = i; j < len(s.pinned) && s.pinned[j].lo < hi; j++ {
	}
	return i, j
}

// covered reports whether all of [lo, hi) is pinned in one piece.
func (s *System) covered(lo, hi uintptr) bool {
	i, j := s.overlap(lo, hi)
	return i < j && s.pinned[i].lo <= lo && hi <= s.pinned[i].hi
}

// locked reports whether a range is pinned, and refuses one that is in part.
func (c *context) locked(host uintptr, n int64) (bool, driver.Result) {
	if host == 0 || n < 0 || host+uintptr(n) < host {
		return false, c.refuse(driver.InvalidValue, "a copy of %d bytes at host address %#x", n, host)
	}
	s := c.dev.sys
	i, j := s.overlap(host, host+uintptr(n))
	switch {
	case i == j:
		return false, driver.Success
	case s.covered(host, host+uintptr(n)):
		return true, driver.Success
	}
	return false, c.refuse(driver.InvalidValue, "%d bytes at host address %#x are only in part in pinned memory [%#x, %#x)", n, host, s.pinned[i].lo, s.pinned[i].hi)
}

// hostFlags are those of cuda.h: portable, mapped, write-combined.
const hostFlags = 7

func (s *System) hostAlloc(bytes int64, flags uint32) (host uintptr, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		if r := c.quiet("MemHostAlloc"); r != driver.Success {
			return r
		}
		if bytes <= 0 || flags&^hostFlags != 0 {
			return c.refuse(driver.InvalidValue, "%d bytes of pinned memory, flags %#x", bytes, flags)
		}
		b, err := s.cfg.Host.Alloc(int(bytes))
		if err != nil {
			return c.refuse(driver.OutOfMemory, "%v", err)
		}
		s.pin(pinned{b.Addr, b.Addr + uintptr(bytes), c, b, s.maker("MemHostAlloc"), s.taken()})
		host = b.Addr
		return driver.Success
	})
	return host, r
}

func (s *System) pin(p pinned) {
	i, _ := s.overlap(p.lo, p.hi)
	s.pinned = slices.Insert(s.pinned, i, p)
}

// hostFree waits for all work of all devices, which may use the memory.
func (s *System) hostFree(host uintptr) driver.Result {
	return s.in(func(c *context) driver.Result {
		if r := c.quiet("MemFreeHost, which waits"); r != driver.Success {
			return r
		}
		i, j := s.overlap(host, host+1)
		if i == j || s.pinned[i].block.Addr != host {
			return c.refuse(driver.InvalidValue, "%#x is not the start of memory from MemHostAlloc", host)
		}
		s.drain()
		b := s.pinned[i].block
		s.pinned = slices.Delete(s.pinned, i, j)
		if err := s.cfg.Host.Free(b); err != nil {
			return c.refuse(driver.Unknown, "%v", err)
		}
		return c.err
	})
}

// drain waits for all work of all devices.
func (s *System) drain() {
	var ops []*op
	for _, d := range s.devices {
		if d.ctx != nil {
			ops = append(ops, d.ctx.tails()...)
		}
	}
	s.force(ops...)
}

func (s *System) hostRegister(host uintptr, bytes int64, flags uint32) driver.Result {
	return s.in(func(c *context) driver.Result {
		if r := c.quiet("MemHostRegister"); r != driver.Success {
			return r
		}
		if host == 0 || bytes <= 0 || flags&^hostFlags != 0 || host+uintptr(bytes) < host {
			return c.refuse(driver.InvalidValue, "%d bytes to register at %#x, flags %#x", bytes, host, flags)
		}
		if i, j := s.overlap(host, host+uintptr(bytes)); i != j {
			return c.refuse(driver.HostMemoryRegistered, "[%#x, %#x) is pinned", s.pinned[i].lo, s.pinned[i].hi)
		}
		s.pin(pinned{lo: host, hi: host + uintptr(bytes), ctx: c})
		return driver.Success
	})
}

// hostUnregister waits, as hostFree does.
func (s *System) hostUnregister(host uintptr) driver.Result {
	return s.in(func(c *context) driver.Result {
		if r := c.quiet("MemHostUnregister, which waits"); r != driver.Success {
			return r
		}
		if host == 0 {
			return c.refuse(driver.InvalidValue, "host address 0")
		}
		i, j := s.overlap(host, host+1)
		if i == j || s.pinned[i].lo != host || s.pinned[i].block.Size != 0 {
			return c.refuse(driver.HostMemoryNotRegistered, "%#x is not the start of registered memory", host)
		}
		s.drain()
		s.pinned = slices.Delete(s.pinned, i, j)
		return c.err
	})
}

// freeHost gives back the pinned memory of a context.
func (s *System) freeHost(c *context) error {
	var err error
	s.drain()
	s.pinned = slices.DeleteFunc(s.pinned, func(p pinned) bool {
		if p.ctx != c {
			return false
		}
		err = errors.Join(err, s.cfg.Host.Free(p.block))
		return true
	})
	if err != nil {
		return fmt.Errorf("pinned memory of device %d: %w", c.dev.ordinal, err)
	}
	return nil
}
