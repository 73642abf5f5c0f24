package simcuda

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// copyTime is what a copy costs besides bytes over bandwidth, in ns.
const copyTime = estimate.CopyStart * 1e9

// pageableShare is the part of the link's bandwidth that pageable memory gets, in percent.
const pageableShare = 100 * estimate.PageableShare

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
	r := c.accept(o.dev.sim.Reserved(uint64(p), int(n)))
	if r != driver.Success {
		c.misused(UseAfterFree, "a copy or a fill", p)
	}
	return o, r
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
	return s.in(func(c *context) driver.Result { return c.transfer(transfer{dst, src, n, 0, true}, c.upload) })
}

func (s *System) copyToDeviceAsync(dst driver.Ptr, src uintptr, n int64, h driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result { return c.transfer(transfer{dst, src, n, h, false}, c.upload) })
}

func (s *System) copyToHost(dst uintptr, src driver.Ptr, n int64) driver.Result {
	return s.in(func(c *context) driver.Result { return c.transfer(transfer{src, dst, n, 0, true}, c.download) })
}

func (s *System) copyToHostAsync(dst uintptr, src driver.Ptr, n int64, h driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result { return c.transfer(transfer{src, dst, n, h, false}, c.download) })
}

// transfer copies by f if there is something to copy.
func (c *context) transfer(t transfer, f func(t transfer, st *stream) driver.Result) driver.Result {
	if t.n == 0 {
		return driver.Success
	}
	return c.target(t.stream, func(st *stream) driver.Result {
		if t.sync {
			if r := c.quiet("a copy that the host waits for"); r != driver.Success {
				return r
			}
		}
		return f(t, st)
	})
}

// admit checks a transfer.
func (c *context) admit(t transfer) (o *context, pinned bool, r driver.Result) {
	if pinned, r = c.locked(t.host, t.n); r != driver.Success {
		return nil, false, r
	}
	o, r = c.device(t.dev, t.n)
	return o, pinned, r
}

// upload copies to the device. Pageable memory is read at the call, pinned memory in the order of the stream, and a graph reads
// either whenever it runs. The call for synchronous copies waits for the work ahead of it, but for the copy itself only if the
// memory is pinned: the driver returns once pageable memory is staged, and streams without implicit order may not see the bytes
// yet.
func (c *context) upload(t transfer, st *stream) driver.Result {
	o, pinned, r := c.admit(t)
	if r != driver.Success {
		return r
	}
	k := &copyTask{to: o, dst: uint64(t.dev), srcHost: t.host, n: int(t.n), locked: [2]bool{false, pinned}}
	if !pinned && st.capture == nil {
		if t.sync {
			if r := c.wait(st.mark()); r != driver.Success {
				return r
			}
		}
		if !c.dev.sys.here() {
			if r := c.readable(t.host, int(t.n)); r != driver.Success {
				return r
			}
		}
		if c.dev.sys.cfg.LateEffects {
			b, err := c.dev.sys.fetched(t.host, int(t.n))
			if err != nil {
				return c.refuse(driver.InvalidValue, "%v", err)
			}
			k.staged = bytes.Clone(b)
		}
	}
	done := c.give(st, k)
	if t.sync && done != nil { // the bytes may be under way still, but all rely on them
		c.dev.sys.order.waited([]*op{done})
	}
	if t.sync && pinned {
		return c.wait(done)
	}
	return driver.Success
}

// download copies to the host. The synchronous call returns when the copy is done. The asynchronous one does not wait for
// one to pinned memory; to pageable memory it may or may not, so that under late effects it does not.
func (c *context) download(t transfer, st *stream) driver.Result {
	o, pinned, r := c.admit(t)
	if r != driver.Success {
		return r
	}
	done := c.give(st, &copyTask{from: o, src: uint64(t.dev), dstHost: t.host, n: int(t.n), locked: [2]bool{pinned, false}})
	if done != nil && (t.sync || !pinned && !c.dev.sys.cfg.LateEffects) {
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
	found := []gpusim.Finding{{Check: gpusim.Initcheck, Kernel: "copy to the host", Msg: "read of memory that was never written",
		Space: "global", Addr: uint64(p), Size: n, Alloc: c.dev.sim.Describe(uint64(p)), Count: 1}}
	if s.cfg.OnRun != nil {
		s.cfg.OnRun(Run{Report: &gpusim.Report{Findings: found}})
	}
	s.found(c, found)
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

// copyOnDevice does not wait either, but belongs to the legacy stream.
func (s *System) copyOnDevice(dst, src driver.Ptr, n int64) driver.Result {
	return s.in(func(c *context) driver.Result {
		if r := c.quiet("a copy in the legacy stream"); r != driver.Success {
			return r
		}
		return c.move(dst, src, n, 0)
	})
}

// copyOnDeviceAsync copies within a device, or between two.
func (s *System) copyOnDeviceAsync(dst, src driver.Ptr, n int64, h driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result { return c.move(dst, src, n, h) })
}

func (c *context) move(dst, src driver.Ptr, n int64, h driver.Stream) driver.Result {
	return c.target(h, func(st *stream) driver.Result {
		if n == 0 {
			return driver.Success
		}
		t, r := c.newMove(dst, src, n)
		if r == driver.Success {
			c.give(st, t)
		}
		return r
	})
}

// newMove is a copy between ranges that are on a device, and that do not overlap.
func (c *context) newMove(dst, src driver.Ptr, n int64) (*copyTask, driver.Result) {
	to, r := c.device(dst, n)
	if r != driver.Success {
		return nil, r
	}
	from, r := c.device(src, n)
	if r != driver.Success {
		return nil, r
	}
	if dst < src+driver.Ptr(n) && src < dst+driver.Ptr(n) {
		return nil, c.refuse(driver.InvalidValue, "a copy of %d bytes from %#x to %#x, which overlap: a card may write before it reads", n, uint64(src), uint64(dst))
	}
	return &copyTask{to: to, from: from, dst: uint64(dst), src: uint64(src), n: int(n)}, driver.Success
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
		return c.fill(dst, binary.LittleEndian.AppendUint32(nil, value), n, h)
	})
}

func (c *context) fill(dst driver.Ptr, pattern []byte, n int64, h driver.Stream) driver.Result {
	return c.target(h, func(st *stream) driver.Result {
		if n == 0 {
			return driver.Success
		}
		t, r := c.newFill(dst, pattern, n)
		if r == driver.Success {
			c.give(st, t)
		}
		return r
	})
}

// newFill is a fill of memory that is on a device, aligned to what it is filled with.
func (c *context) newFill(dst driver.Ptr, pattern []byte, n int64) (*fillTask, driver.Result) {
	size := n * int64(len(pattern))
	if n < 0 || size/int64(len(pattern)) != n {
		return nil, c.refuse(driver.InvalidValue, "a fill of %d elements", n)
	}
	if dst%driver.Ptr(len(pattern)) != 0 {
		return nil, c.refuse(driver.InvalidValue, "a fill with words at %#x, which is no multiple of %d", uint64(dst), len(pattern))
	}
	o, r := c.device(dst, size)
	if r != driver.Success {
		return nil, r
	}
	return &fillTask{o, dst, pattern, int(n)}, driver.Success
}
