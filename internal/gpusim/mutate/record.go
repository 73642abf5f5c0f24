package mutate

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/internal/gpusim"
)

// Recorder makes cases of launches that somebody else does: the tests of an engine, say. Its Observe goes to
// gpusim.Device.Observe. Each 8 bytes of a parameter buffer that are an address in a live allocation become a pointer to a
// Buffer with what the allocation holds at that moment.
type Recorder struct {
	PerKernel int // cases kept of each kernel, of different grids or blocks; 0 means 1
	MaxBytes  int // launches with more memory than this are left out; 0 means 1 MiB

	mu     sync.Mutex
	suites []*Suite
	bySrc  map[string]*Suite
	kept   map[*gpusim.Kernel][]*Case
}

// pointer is a place in a parameter buffer that holds an address.
type pointer struct {
	at     int // in the parameter buffer
	buffer int // number of the buffer
	off    uint64
}

// Observe records a launch.
func (r *Recorder) Observe(c *gpusim.Call) {
	c0 := &Case{Kernel: c.Kernel.Name, Grid: c.Grid, Block: c.Block, Shared: c.Shared, params: append([]byte{}, c.Params...)}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.kept[c.Kernel]
	same := func(k *Case) bool { return k.Grid == c0.Grid && k.Block == c0.Block }
	if len(kept) >= max(r.PerKernel, 1) || slices.ContainsFunc(kept, same) || !r.buffers(c, c0) {
		return
	}
	if r.kept == nil {
		r.bySrc, r.kept = map[string]*Suite{}, map[*gpusim.Kernel][]*Case{}
	}
	r.kept[c.Kernel] = append(kept, c0)
	s := r.suite(c.Kernel.Source())
	s.Cases = append(s.Cases, c0)
}

// Suites are the recorded cases by module, in the order of their first launches. Names and reasons are the caller's to
// fill in.
func (r *Recorder) Suites() []*Suite {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.suites
}

func (r *Recorder) suite(src string) *Suite {
	s := r.bySrc[src]
	if s == nil {
		s = &Suite{Source: src}
		r.bySrc[src] = s
		r.suites = append(r.suites, s)
	}
	return s
}

// buffers finds the pointers of a launch and copies what they point to.
func (r *Recorder) buffers(c *gpusim.Call, to *Case) bool {
	total, limit := 0, r.MaxBytes
	if limit == 0 {
		limit = 1 << 20
	}
	number := map[uint64]int{}
	for at := 0; at+8 <= len(c.Params); at += 8 {
		addr := binary.LittleEndian.Uint64(c.Params[at:])
		lo, size, ok := c.Device.Extent(addr)
		if !ok {
			continue
		}
		i, known := number[lo]
		if !known {
			if total += size; total > limit {
				return false
			}
			b := &Buffer{Size: size}
			if c.Device.Written(lo, 1) || c.Device.Written(addr, 1) {
				b.Data = make([]byte, size)
				if c.Device.Read(b.Data, lo) != nil {
					return false
				}
			}
			i = len(to.buffers)
			number[lo] = i
			to.buffers = append(to.buffers, b)
		}
		to.pointers = append(to.pointers, pointer{at, i, addr - lo})
	}
	return true
}

// fill puts the addresses of the buffers into a recorded parameter buffer.
func (c *Case) fill(addrs []uint64) []byte {
	params := append([]byte{}, c.params...)
	for _, p := range c.pointers {
		binary.LittleEndian.PutUint64(params[p.at:], addrs[p.buffer]+p.off)
	}
	return params
}
