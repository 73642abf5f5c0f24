package simcuda

import (
	"bytes"
	"fmt"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// task is what a call gives to a stream, and what a node of a graph does. It does not change, and may run often.
type task interface {
	kind() kind
	// run takes effect in a context and returns what it takes.
	run(c *context) cost
	// missing says what the task needs that is gone, without which it cannot be begun; empty if there is nothing.
	missing() string
}

// kernelTask runs a kernel.
type kernelTask struct {
	f           *function
	grid, block [3]int
	cluster     [3]int // zero for what the kernel was compiled for
	shared      int
	params      []byte
	dependent   bool // it may begin before the launch ahead of it has ended
}

func (*kernelTask) kind() kind { return kernel }
func (t *kernelTask) run(c *context) cost {
	return c.execute(t)
}

func (t *kernelTask) missing() string {
	if t.f.mod.gone {
		return "the module of kernel " + t.f.kernel.Name
	}
	return ""
}

// copyTask copies bytes between two ends: memory of a device, or of the host.
type copyTask struct {
	to, from *context // whose device it is; nil for the host
	dst, src uint64   // on a device
	dstHost  uintptr
	srcHost  uintptr
	staged   []byte // what was read of pageable memory at the call; nil to read when it is copied
	n        int
	locked   [2]bool // whether the host's memory was pinned, of the destination and the source
}

// hosts are the addresses in memory of the host; 0 for none.
func (t *copyTask) hosts() [2]uintptr { return [2]uintptr{t.dstHost, t.srcHost} }

// pinned reports whether all memory of the host was pinned.
func (t *copyTask) pinned() bool {
	h := t.hosts()
	return (h[0] == 0 || t.locked[0]) && (h[1] == 0 || t.locked[1])
}

// unpinned is memory of the host that was pinned when a graph was made and is not any more; 0 for none.
func (t *copyTask) unpinned(s *System) uintptr {
	for i, h := range t.hosts() {
		if t.locked[i] && !s.covered(h, h+uintptr(t.n)) {
			return h
		}
	}
	return 0
}

func (t *copyTask) missing() string { return "" }

func (t *copyTask) kind() kind {
	switch {
	case t.to == nil && t.from == nil:
		return mark
	case t.from == nil:
		return upload
	case t.to == t.from:
		return kernel
	}
	return download
}

func (t *copyTask) run(c *context) cost {
	s := c.dev.sys
	if h := t.unpinned(s); h != 0 {
		c.fail(driver.IllegalAddress, fmt.Sprintf("a copy in a graph: host memory at %#x, of %d bytes, is pinned no more", h, t.n))
		return cost{}
	}
	if s.cfg.Off && !(s.cfg.Clock && t.from == nil && t.n <= smallUpload) {
		if t.to == nil {
			c.check(s.inPieces(t.n, func(at, n int) error {
				return s.stored(t.dstHost+uintptr(at), n, func(p []byte) error { clear(p); return nil })
			}), "a copy to the host")
		}
		return s.copied(t)
	}
	t.move(c)
	if s.touching(c) {
		var reads, writes []gpusim.Span
		if t.from != nil {
			reads = []gpusim.Span{{Lo: t.src, Hi: t.src + uint64(t.n)}}
		}
		if t.to != nil {
			writes = []gpusim.Span{{Lo: t.dst, Hi: t.dst + uint64(t.n)}}
		}
		s.touched(c, "copy", reads, writes)
	}
	return s.copied(t)
}

// smallUpload is up to how many bytes kernels of which some blocks run find what was copied to them: labels, and ids of tokens.
const smallUpload = 1 << 20

// copied is what a copy takes.
func (s *System) copied(t *copyTask) cost {
	switch {
	case t.from == nil || t.to == nil:
		return s.transferred(int64(t.n), t.pinned())
	case t.to != t.from:
		return s.peered(int64(t.n))
	}
	return moved(2*int64(t.n), s.card.Bandwidth)
}

// move copies the bytes.
func (t *copyTask) move(c *context) {
	s := c.dev.sys
	switch {
	case t.from == nil && t.to == nil:
		c.check(s.inPieces(t.n, func(at, n int) error { return t.within(s, at, n) }), "a copy on the host")
	case t.from == nil:
		t.to.check(s.inPieces(t.n, func(at, n int) error {
			src, err := t.source(s, at, n)
			if err != nil {
				return err
			}
			return t.to.dev.sim.Write(t.dst+uint64(at), src)
		}), "a copy from the host")
	case t.to == nil:
		err := s.inPieces(t.n, func(at, n int) error {
			return s.stored(t.dstHost+uintptr(at), n, func(p []byte) error { return t.from.dev.sim.Read(p, t.src+uint64(at)) })
		})
		if err != nil {
			t.from.check(err, "a copy to the host")
		} else {
			t.from.checkWritten(driver.Ptr(t.src), t.n)
		}
	default:
		c.check(gpusim.Copy(t.to.dev.sim, t.dst, t.from.dev.sim, t.src, t.n), "a copy on the device")
	}
}

// source is a part of what is copied from the host.
func (t *copyTask) source(s *System, at, n int) ([]byte, error) {
	if t.staged != nil {
		return t.staged[at : at+n], nil
	}
	return s.fetched(t.srcHost+uintptr(at), n)
}

// within copies a part from one place of the host to another.
func (t *copyTask) within(s *System, at, n int) error {
	src, err := t.source(s, at, n)
	if err != nil {
		return err
	}
	return s.stored(t.dstHost+uintptr(at), n, func(p []byte) error { copy(p, src); return nil })
}

// fillTask repeats a pattern.
type fillTask struct {
	on      *context
	dst     driver.Ptr
	pattern []byte
	n       int
}

func (t *fillTask) missing() string { return "" }
func (*fillTask) kind() kind        { return kernel }
func (t *fillTask) run(c *context) cost {
	if cfg := &c.dev.sys.cfg; cfg.Off && !cfg.Clock {
		return cost{}
	} else if !cfg.Off {
		t.on.check(t.on.dev.sim.Fill(uint64(t.dst), t.pattern, t.n), "a fill")
		if s := c.dev.sys; s.touching(c) {
			s.touched(c, "fill", nil, []gpusim.Span{{Lo: uint64(t.dst), Hi: uint64(t.dst) + uint64(t.n*len(t.pattern))}})
		}
	}
	return moved(int64(t.n)*int64(len(t.pattern)), c.dev.sys.card.Bandwidth)
}

// noteTask is an annotation.
type noteTask struct {
	on    *context
	p     driver.Ptr
	bytes int
	state driver.State
	tag   string
}

func (t *noteTask) missing() string { return "" }
func (*noteTask) kind() kind        { return note }
func (t *noteTask) run(*context) cost {
	t.on.check(t.on.dev.sim.Annotate(uint64(t.p), t.bytes, t.state == driver.Fresh, t.tag), "Annotate")
	return cost{}
}

// give gives a task to a stream that may have it: it is queued, or becomes a node of the graph that the stream captures.
func (c *context) give(st *stream, t task) *op {
	if st.capture != nil {
		st.capture.add(st, t)
		return nil
	}
	return c.dev.sys.enqueue(c, st, t.kind(), func() cost { return t.run(st.ctx) })
}

// target finds a stream to give work to, for f to do so. What goes wrong then invalidates a capture of the stream.
func (c *context) target(h driver.Stream, f func(st *stream) driver.Result) driver.Result {
	st, r := c.stream(h)
	if r != driver.Success {
		return r
	}
	if r := c.open(st); r != driver.Success {
		return r
	}
	if r = f(st); r != driver.Success && st.capture != nil {
		st.capture.invalidate("work that was refused: " + c.refused)
	}
	return r
}

// newKernelTask makes a task of a launch that the driver would not refuse.
func (c *context) newKernelTask(h driver.Function, cfg *driver.LaunchConfig, params []byte, keep bool) (*kernelTask, driver.Result) {
	f, r := c.function(h)
	if r != driver.Success {
		return nil, r
	}
	if r := c.admissible(cfg, f, len(params)); r != driver.Success {
		return nil, r
	}
	if keep {
		params = bytes.Clone(params)
	}
	return &kernelTask{f, ints(cfg.Grid), ints(cfg.Block), ints(cfg.Cluster), int(cfg.Shared), params, cfg.Dependent}, driver.Success
}
