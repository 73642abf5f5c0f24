package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Stale finds stores to sectors that the same launch reads by ld.global.nc, in either order: the cache behind such a
// load is not kept coherent, so it may answer with what was there before the launch or with what another block's load
// brought in. Blocks run on several cores; for each sector the least mark is kept, which does not depend on who came
// first.
type Stale struct {
	accesses []*Access // by id

	mu    sync.Mutex
	areas []*memory.Sectors
}

// A mark is one more than the block's index, thread and access, so that 0 is none.
const (
	markAccess = 20 // bits of the number of the access in its kernel
	markThread = 10
)

// Follows is whether the access is one of those that are followed: stores and loads by .nc.
func (s *Stale) Follows(a *Access) bool {
	return s != nil && (a.Write || a.Nc) && (a.Space == ptx.Global || a.Space == ptx.Generic)
}

// NewStale is nil for a launch that has nothing to watch, or too much.
func NewStale(nc bool, accesses []*Access, checks Check) (s *Stale, o Omission) {
	switch {
	case !nc || checks&Racecheck == 0:
		return nil, 0
	case len(accesses) >= 1<<markAccess:
		return nil, omitsStale
	}
	return &Stale{accesses: accesses}, 0
}

// area finds the marks of an allocation, and makes them on its first access in the launch.
func (s *Stale) area(al *memory.Allocation) *memory.Sectors {
	if x := al.Marks.Load(); x != nil && x.Of == s {
		return x
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := al.Marks.Load(); x != nil && x.Of == s {
		return x
	}
	n := (len(al.Data) + memory.SectorSize - 1) / memory.SectorSize
	x := &memory.Sectors{Of: s, Alloc: al, Readers: make([]atomic.Uint64, n), Writes: make([]atomic.Uint64, n)}
	al.Marks.Store(x)
	s.areas = append(s.areas, x)
	return x
}

// Touch marks the sectors of an access by a thread of the block of that index.
func (s *Stale) Touch(index int, thread uint32, a *Access, al *memory.Allocation, addr uint64) {
	x := s.area(al)
	marks := x.Readers
	if a.Write {
		marks = x.Writes
	}
	block := min(uint64(index), math.MaxUint32)
	m := (block<<markThread|uint64(thread))<<markAccess | uint64(a.Id) + 1
	from, to := (addr-al.Lo)/memory.SectorSize, (addr-al.Lo+uint64(a.Size)-1)/memory.SectorSize
	for i := from; i <= to; i++ {
		for old := marks[i].Load(); (old == 0 || m < old) && !marks[i].CompareAndSwap(old, m); old = marks[i].Load() {
		}
	}
}

// Findings are the sectors that were both read by .nc and written, one for each two instructions.
func (s *Stale) Findings(kernel string, threadID func(t uint32) [3]uint32, blockID func(i int) [3]uint32) []Finding {
	thread := func(m uint64) [3]uint32 { return threadID(uint32(m >> markAccess & (1<<markThread - 1))) }
	block := func(m uint64) [3]uint32 { return blockID(int(m >> (markAccess + markThread))) }
	type pair struct{ read, write uint64 }
	byPair := map[pair]int{}
	var out []Finding
	slices.SortFunc(s.areas, func(a, b *memory.Sectors) int { return cmp.Compare(a.Alloc.Lo, b.Alloc.Lo) })
	for _, x := range s.areas {
		for i := range x.Writes {
			r, w := x.Readers[i].Load(), x.Writes[i].Load()
			if r == 0 || w == 0 {
				continue
			}
			ids := pair{(r - 1) & (1<<markAccess - 1), (w - 1) & (1<<markAccess - 1)}
			if at, ok := byPair[ids]; ok {
				out[at].Count++
				continue
			}
			byPair[ids] = len(out)
			out = append(out, s.finding(kernel, thread, block, x, i, r-1, w-1))
		}
		x.Alloc.Marks.Store(nil)
	}
	return out
}

func (s *Stale) finding(kernel string, thread, block func(m uint64) [3]uint32, x *memory.Sectors, sector int, read, write uint64) Finding {
	a := s.accesses[write&(1<<markAccess-1)]
	r := s.accesses[read&(1<<markAccess-1)]
	return Finding{Check: Racecheck, Kernel: kernel, Block: block(write), Thread: thread(write), Line: a.Site.Inst.Pos.Line,
		Source: a.Site.Source(), Inst: a.Site.Inst.Name(), Count: 1, Space: "global", Addr: x.Alloc.Lo + uint64(sector)*memory.SectorSize,
		Size: memory.SectorSize, Alloc: x.Alloc.String(),
		Msg: fmt.Sprintf("write to a sector that the same launch reads by %s, which may see the old value%s, by %s",
			r.Site.Inst.Name(), r.Site.At().aside(), Who(thread(read), block(read)))}
}
