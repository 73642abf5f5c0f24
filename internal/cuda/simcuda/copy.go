package simcuda

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// copyTime is what a copy costs besides bytes over bandwidth, in ns.
const copyTime = 2000

// pageableShare is the part of the link's bandwidth that pageable memory gets, in percent: 40 to 50 are commonly measured.
const pageableShare = 45

// moved is what so many bytes take at so many GB/s.
func moved(n int64, bandwidth int) cost { return whole(copyTime + n/int64(bandwidth)) }

// transferred is what a copy between host and device takes.
func (s *System) transferred(n int64, pinned bool) cost {
	if !pinned {
		n = n * 100 / pageableShare
	}
	return moved(n, s.card.Link)
}

// peered is what a copy between devices takes: by their own link, which has two directions, or by way of the host.
func (s *System) peered(n int64) cost { return moved(n, max(s.card.Peer/2, s.card.Link)) }

// device checks that a range is in an allocation and returns the context of its device.
func (c *context) device(p driver.Ptr, n int64) (*context, driver.Result) {
	o := c.owner(p)
	if o == nil || n < 0 {
		return nil, c.refuse(driver.InvalidValue, "%d bytes at device address %#x, which is none", n, uint64(p))
	}
	if o.err != driver.Success {
		return nil, o.err
	}
	return o, c.accept(o.dev.sim.Reserved(uint64(p), int(n)))
}

// transfer is a copy between host and device.
type transfer struct {
	dev    driver.Ptr
	host   uintptr
	n      int64
	stream driver.Stream
	sync   bool
}

func (s *System) copyToDevice(dst driver.Ptr, src uintptr, n int64) driver.Result {
	return s.in(func(c *context) driver.Result { return c.upload(transfer{dst, src, n, 0, true}) })
}

func (s *System) copyToDeviceAsync(dst driver.Ptr, src uintptr, n int64, h driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result { return c.upload(transfer{dst, src, n, h, false}) })
}

func (s *System) copyToHost(dst uintptr, src driver.Ptr, n int64) driver.Result {
	return s.in(func(c *context) driver.Result { return c.download(transfer{src, dst, n, 0, true}) })
}

func (s *System) copyToHostAsync(dst uintptr, src driver.Ptr, n int64, h driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result { return c.download(transfer{src, dst, n, h, false}) })
}

// admit checks a transfer.
func (c *context) admit(t transfer) (st *stream, o *context, pinned bool, r driver.Result) {
	if st, r = c.stream(t.stream); r != driver.Success {
		return nil, nil, false, r
	}
	if pinned, r = c.locked(t.host, t.n); r != driver.Success {
		return nil, nil, false, r
	}
	o, r = c.device(t.dev, t.n)
	return st, o, pinned, r
}

// upload copies to the device. Pageable memory is read at the call, pinned memory in the order of the stream. The call
// for synchronous copies waits for the work ahead of it, but for the copy itself only if the memory is pinned: the
// driver returns once pageable memory is staged, and streams without implicit order may not see the bytes yet.
func (c *context) upload(t transfer) driver.Result {
	if t.n == 0 {
		return driver.Success
	}
	st, o, pinned, r := c.admit(t)
	if r != driver.Success {
		return r
	}
	src := hostmem.Bytes(t.host, int(t.n))
	if !pinned {
		if t.sync {
			if r := c.wait(st.mark()); r != driver.Success {
				return r
			}
		}
		if c.dev.sys.cfg.LateEffects {
			src = bytes.Clone(src)
		}
	}
	done := c.dev.sys.enqueue(c, st, upload, func() cost {
		o.check(o.dev.sim.Write(uint64(t.dev), src), "a copy from the host")
		return c.dev.sys.transferred(t.n, pinned)
	})
	if t.sync && pinned {
		return c.wait(done)
	}
	return driver.Success
}

// download copies to the host. The synchronous call returns when the copy is done. The asynchronous one does not wait for
// one to pinned memory; to pageable memory it may or may not, so that under late effects it does not.
func (c *context) download(t transfer) driver.Result {
	if t.n == 0 {
		return driver.Success
	}
	st, o, pinned, r := c.admit(t)
	if r != driver.Success {
		return r
	}
	done := c.dev.sys.enqueue(c, st, download, func() cost {
		dst := hostmem.Bytes(t.host, int(t.n))
		if err := o.dev.sim.Read(dst, uint64(t.dev)); err != nil {
			o.check(err, "a copy to the host")
		} else {
			o.checkWritten(t.dev, int(t.n))
		}
		return c.dev.sys.transferred(t.n, pinned)
	})
	if t.sync || !pinned && !c.dev.sys.cfg.LateEffects {
		if r := st.ctx.wait(done); r != driver.Success {
			return r
		}
		c.follow(st.ctx)
		return c.err
	}
	return driver.Success
}

// checkWritten is initcheck of what a copy takes to the host.
func (c *context) checkWritten(p driver.Ptr, n int) {
	s := c.dev.sys
	if s.cfg.Checks&gpusim.Initcheck == 0 || c.dev.sim.Written(uint64(p), n) {
		return
	}
	s.found(c, []gpusim.Finding{{Check: gpusim.Initcheck, Kernel: "copy to the host", Msg: "read of memory that was never written",
		Space: "global", Addr: uint64(p), Size: n, Alloc: c.dev.sim.Describe(uint64(p)), Count: 1}})
}

// found keeps findings, and fails the context unless they are collected.
func (s *System) found(c *context, list []gpusim.Finding) {
	if len(list) == 0 {
		return
	}
	s.findings = append(s.findings, list[:min(len(list), maxFindings-len(s.findings))]...)
	if s.cfg.Collect {
		return
	}
	why := describe(list[0])
	if len(list) > 1 {
		why += fmt.Sprintf("; and %d findings more", len(list)-1)
	}
	c.fail(driver.LaunchFailed, why)
}

// describe is the text of a finding; that of a copy has no place in a kernel.
func describe(f gpusim.Finding) string {
	if f.Inst != "" {
		return f.String()
	}
	return fmt.Sprintf("%s: %s, %d bytes at %#x, in a %s; %s", f.Check, f.Message(), f.Size, f.Addr, f.Kernel, f.Alloc)
}

func (s *System) copyOnDevice(dst, src driver.Ptr, n int64) driver.Result {
	return s.copyOnDeviceAsync(dst, src, n, 0)
}

// copyOnDeviceAsync is also the synchronous call, which does not wait either. Both ends may be on any device.
func (s *System) copyOnDeviceAsync(dst, src driver.Ptr, n int64, h driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result { return c.move(dst, src, n, h) })
}

func (c *context) move(dst, src driver.Ptr, n int64, h driver.Stream) driver.Result {
	st, r := c.stream(h)
	if r != driver.Success || n == 0 {
		return r
	}
	to, r := c.device(dst, n)
	if r != driver.Success {
		return r
	}
	from, r := c.device(src, n)
	if r != driver.Success {
		return r
	}
	if dst < src+driver.Ptr(n) && src < dst+driver.Ptr(n) {
		return c.refuse(driver.InvalidValue, "a copy of %d bytes from %#x to %#x, which overlap: a card may write before it reads", n, uint64(src), uint64(dst))
	}
	s := c.dev.sys
	k := kernel
	if to != from {
		k = download
	}
	s.enqueue(c, st, k, func() cost {
		st.ctx.check(gpusim.Copy(to.dev.sim, uint64(dst), from.dev.sim, uint64(src), int(n)), "a copy on the device")
		if to != from {
			return s.peered(n)
		}
		return moved(2*n, s.card.Bandwidth)
	})
	return driver.Success
}

func (s *System) copyPeerAsync(dst driver.Ptr, dstCtx driver.Context, src driver.Ptr, srcCtx driver.Context, n int64, h driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result {
		to, from := s.find(dstCtx), s.find(srcCtx)
		switch {
		case to == nil || from == nil:
			return c.refuse(driver.InvalidContext, "a copy between contexts %#x and %#x, which are not both alive", uintptr(dstCtx), uintptr(srcCtx))
		case n != 0 && c.owner(dst) != to:
			return c.refuse(driver.InvalidValue, "the destination %#x is not on device %d", uint64(dst), to.dev.ordinal)
		case n != 0 && c.owner(src) != from:
			return c.refuse(driver.InvalidValue, "the source %#x is not on device %d", uint64(src), from.dev.ordinal)
		}
		return c.move(dst, src, n, h)
	})
}

func (s *System) fill8(dst driver.Ptr, value uint8, n int64, h driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result { return c.fill(dst, []byte{value}, n, h) })
}

func (s *System) fill32(dst driver.Ptr, value uint32, n int64, h driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result {
		if dst%4 != 0 {
			return c.refuse(driver.InvalidValue, "a fill with words at %#x, which is no multiple of 4", uint64(dst))
		}
		return c.fill(dst, binary.LittleEndian.AppendUint32(nil, value), n, h)
	})
}

func (c *context) fill(dst driver.Ptr, pattern []byte, n int64, h driver.Stream) driver.Result {
	st, r := c.stream(h)
	if r != driver.Success || n == 0 {
		return r
	}
	size := n * int64(len(pattern))
	if n < 0 || size/int64(len(pattern)) != n {
		return c.refuse(driver.InvalidValue, "a fill of %d elements", n)
	}
	o, r := c.device(dst, size)
	if r != driver.Success {
		return r
	}
	s := c.dev.sys
	s.enqueue(c, st, kernel, func() cost {
		o.check(o.dev.sim.Fill(uint64(dst), pattern, int(n)), "a fill")
		return moved(size, s.card.Bandwidth)
	})
	return driver.Success
}
