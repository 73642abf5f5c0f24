package check

import (
	"cmp"
	"sort"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// Ahead is what the launch ahead in the stream has touched, for one that may begin before that has ended (programmatic dependent launch): until
// its blocks have waited by griddepcontrol.wait, nothing of that is there for sure, and what that reads it may be reading still.
type Ahead struct{ Reads, Writes []Span }

// early is the first access of an instruction to what the launch ahead has touched, and how many there were.
type early struct {
	access *Access
	first  record
	lane   uint64 // its address
	of     Span
	wrote  bool // the launch ahead
	count  int
}

// tooEarly looks at bytes that a lane accesses before its block has waited for the launch ahead.
func (g *Global) tooEarly(o *Order, w uint32, lane int, a *Access, at uint64, bytes int) {
	of, wrote := meets(g.launch.ahead.Writes, at, bytes), true
	if of == nil && a.Write {
		of, wrote = meets(g.launch.ahead.Reads, at, bytes), false
	}
	if of == nil {
		return
	}
	if g.early == nil {
		g.early = map[int]*early{}
	}
	e := &early{a, g.record(o, w, lane, a), at, *of, wrote, 1}
	if old := g.early[a.Id]; old != nil {
		e = old.with(e)
	}
	g.early[a.Id] = e
}

// with puts two together; the one of the lower block stays.
func (e *early) with(o *early) *early {
	n := e.count + o.count
	if o.first.before(e.first) {
		e = o
	}
	e.count = n
	return e
}

// meets is the first of ascending spans that has one of some bytes.
func meets(list []Span, at uint64, bytes int) *Span {
	i := sort.Search(len(list), func(i int) bool { return list[i].Hi > at })
	if i == len(list) || list[i].Lo >= at+uint64(bytes) {
		return nil
	}
	return &list[i]
}

// TooEarly are the accesses to what the launch ahead has touched by blocks that had not waited for it, in the order of blocks.
func (r *Races) TooEarly(cores []*Global, about func(a *Access, by Party, at uint64, of Span, wrote bool, count int)) {
	if r == nil || r.ahead == nil {
		return
	}
	all := map[int]*early{}
	for _, g := range cores {
		if g == nil {
			continue
		}
		for id, e := range g.early {
			if old := all[id]; old != nil {
				e = old.with(e)
			}
			all[id] = e
		}
	}
	list := make([]*early, 0, len(all))
	for _, e := range all {
		list = append(list, e)
	}
	sorting.By(list, func(x, y *early) int {
		return cmp.Or(cmp.Compare(x.first.block, y.first.block), cmp.Compare(x.first.who, y.first.who))
	})
	for _, e := range list {
		about(e.access, Party{e.first.block, uint32(e.first.thread())}, e.lane, e.of, e.wrote, e.count)
	}
}
