package gpusim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// sectorSize is the unit in which caches hold global memory.
const sectorSize = 32

// stale finds stores to sectors that the same launch reads by ld.global.nc, in either order: the cache behind such a
// load is not kept coherent, so it may answer with what was there before the launch or with what another block's load
// brought in. Blocks run on several cores; for each sector the least mark is kept, which does not depend on who came
// first.
type stale struct {
	mu    sync.Mutex
	areas []*sectors
}

// sectors are the marks of one allocation: by sector who read it by .nc, and who wrote it.
type sectors struct {
	of              *stale
	alloc           *allocation
	readers, writes []atomic.Uint64
}

// A mark is one more than the block's index, thread and access, so that 0 is none.
const (
	markAccess = 20 // bits of the number of the access in its kernel
	markThread = 10
)

// watched is whether stores and loads by .nc are followed for an access.
func (a *access) watched(g *grid) bool {
	return g.stale != nil && (a.write || a.nc) && (a.space == ptx.Global || a.space == ptx.Generic)
}

// watch numbers an access of a kernel for marks.
func (c *code) watch(a *access) {
	a.id = len(c.accesses)
	c.accesses = append(c.accesses, a)
	c.nc = c.nc || a.nc
}

// newStale is nil for a launch that has nothing to watch, or too much.
func newStale(c *code, checks Check) (s *stale, o omission) {
	switch {
	case !c.nc || checks&Racecheck == 0:
		return nil, 0
	case len(c.accesses) >= 1<<markAccess:
		return nil, omitsStale
	}
	return &stale{}, 0
}

// area finds the marks of an allocation, and makes them on its first access in the launch.
func (s *stale) area(al *allocation) *sectors {
	if x := al.marks.Load(); x != nil && x.of == s {
		return x
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := al.marks.Load(); x != nil && x.of == s {
		return x
	}
	n := (len(al.data) + sectorSize - 1) / sectorSize
	x := &sectors{of: s, alloc: al, readers: make([]atomic.Uint64, n), writes: make([]atomic.Uint64, n)}
	al.marks.Store(x)
	s.areas = append(s.areas, x)
	return x
}

// touch marks the sectors of an access.
func (s *stale) touch(w *warp, a *access, lane int, al *allocation, addr uint64) {
	x := s.area(al)
	marks := x.readers
	if a.write {
		marks = x.writes
	}
	thread := uint64(w.id*warpSize + uint32(lane))
	block := min(uint64(w.cta.index), math.MaxUint32)
	m := (block<<markThread|thread)<<markAccess | uint64(a.id) + 1
	from, to := (addr-al.lo)/sectorSize, (addr-al.lo+uint64(a.size)-1)/sectorSize
	for i := from; i <= to; i++ {
		for old := marks[i].Load(); (old == 0 || m < old) && !marks[i].CompareAndSwap(old, m); old = marks[i].Load() {
		}
	}
}

// findings are the sectors that were both read by .nc and written, one for each two instructions.
func (s *stale) findings(g *grid) []Finding {
	type pair struct{ read, write uint64 }
	byPair := map[pair]int{}
	var out []Finding
	slices.SortFunc(s.areas, func(a, b *sectors) int { return cmp.Compare(a.alloc.lo, b.alloc.lo) })
	for _, x := range s.areas {
		for i := range x.writes {
			r, w := x.readers[i].Load(), x.writes[i].Load()
			if r == 0 || w == 0 {
				continue
			}
			ids := pair{(r - 1) & (1<<markAccess - 1), (w - 1) & (1<<markAccess - 1)}
			if at, ok := byPair[ids]; ok {
				out[at].Count++
				continue
			}
			byPair[ids] = len(out)
			out = append(out, s.finding(g, x, i, r-1, w-1))
		}
		x.alloc.marks.Store(nil)
	}
	return out
}

func (s *stale) finding(g *grid, x *sectors, sector int, read, write uint64) Finding {
	a := g.code.accesses[write&(1<<markAccess-1)]
	r := g.code.accesses[read&(1<<markAccess-1)]
	thread := func(m uint64) [3]uint32 { return g.threadID(uint32(m >> markAccess & (1<<markThread - 1))) }
	block := func(m uint64) [3]uint32 { return g.blockID(int(m >> (markAccess + markThread))) }
	return Finding{Check: Racecheck, Kernel: g.code.kernel.Name, Block: block(write), Thread: thread(write), Line: a.site.in.Pos.Line,
		Source: a.site.source(), Inst: a.site.in.Name(), Count: 1, Space: "global", Addr: x.alloc.lo + uint64(sector)*sectorSize,
		Size: sectorSize, Alloc: x.alloc.String(),
		Msg: fmt.Sprintf("write to a sector that the same launch reads by %s, which may see the old value%s, by thread %v of block %v",
			r.site.in.Name(), r.site.place().aside(), thread(read), block(read))}
}
