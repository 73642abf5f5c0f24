package simdebug

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// line is a line of a source, or of the PTX where that does not tell its source.
type line struct {
	source string // "file:line"; empty without
	ptx    int    // where there is no source
}

func lineOf(p *warp.Point) line {
	if s := p.Site.Source(); s != "" {
		return line{source: s}
	}
	return line{ptx: p.Site.Inst.Pos.Line}
}

// Break is a place where the launch waits.
type Break struct {
	ID    int    `json:"id"`
	Where string `json:"where"` // as given: "sum.cu:9", "ptx:57", "entry"
	Block int    `json:"block"` // only there; -1 anywhere
	Warp  int    `json:"warp"`  // likewise
	Hits  int    `json:"hits"`

	sites map[uint32]bool
	entry bool
}

// Watch is an address at which the launch waits before an access.
type Watch struct {
	ID    int    `json:"id"`
	Space string `json:"space"`
	Addr  string `json:"address"`
	Bytes int    `json:"bytes"`
	Reads bool   `json:"reads"` // waits for reads too
	Block int    `json:"block"` // of shared memory
	Hits  int    `json:"hits"`

	space ptx.Space
	lo    uint64
}

// hits is the breakpoint or watch that an instruction hits, in words; with a watch, the lane too.
func (s *Session) hits(w *warp.Warp, p *warp.Point, first bool) pause {
	for _, b := range s.breaks {
		if b.Block >= 0 && b.Block != w.CTA.Index || b.Warp >= 0 && b.Warp != int(w.Id) {
			continue
		}
		if b.entry && first || b.sites[p.Site.Id] {
			b.Hits++
			return pause{reason: fmt.Sprintf("breakpoint %d", b.ID)}
		}
	}
	if len(s.watches) == 0 {
		return pause{}
	}
	for i := range p.Touches {
		if why := s.watched(w, p, &p.Touches[i]); why.reason != "" {
			return why
		}
	}
	return pause{}
}

// watched is the watch that an access meets.
func (s *Session) watched(w *warp.Warp, p *warp.Point, t *warp.Touch) pause {
	for _, x := range s.watches {
		if !t.Access.Write && !x.Reads {
			continue
		}
		for m := p.Active(w); m != 0; m &= m - 1 {
			lane := simt.Lowest(m)
			space, at := placed(t.Access.Space, t.At(w, lane))
			n := t.Bytes(w, lane)
			if space != x.space || at+uint64(n) <= x.lo || at >= x.lo+uint64(x.Bytes) || space == ptx.Shared && x.Block != w.CTA.Index {
				continue
			}
			x.Hits++
			id := w.CTA.Launch.ThreadID(w.Id*simt.WarpSize + uint32(lane))
			return pause{lane: &lane, reason: fmt.Sprintf("watch %d: lane %d, thread %d,%d,%d, is about to %s %d bytes at %s %#x", x.ID, lane, id[0], id[1], id[2],
				map[string]string{"write": "write", "read": "read", "atomic": "change"}[t.Access.Verb()], n, space, at)}
		}
	}
	return pause{}
}

// placed is where an address is: the space and the offset in it.
func placed(space ptx.Space, addr uint64) (ptx.Space, uint64) {
	if space == ptx.Generic {
		space = memory.SpaceAt(addr)
		if space != ptx.Global {
			addr -= memory.Window(space)
		}
	}
	if space == ptx.ConstSpace {
		space = ptx.Global
	}
	return space, addr
}

// sitesOf finds the instructions that a place names: "12" or "sum.cu:12" is a line of the source, "ptx:57" one of the PTX.
func (s *Session) sitesOf(where string) (map[uint32]bool, error) {
	points := s.run.code.Symbols.Points
	file, number, named := strings.Cut(where, ":")
	if i := strings.LastIndexByte(where, ':'); i >= 0 {
		file, number = where[:i], where[i+1:]
	}
	if !named {
		file, number = "", where
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return nil, advice.Failf("as in break 12, break sum.cu:12, break ptx:57 or break entry", "%q is not a place in the code", where)
	}
	byPTX := file == "ptx" || file == "" && !sourced(points)
	sites := map[uint32]bool{}
	next := 0
	last := line{}
	for _, p := range points {
		at, of := p.Site.Inst.Pos.Line, ""
		if !byPTX {
			of, at = splitLine(p.Site.Source())
		}
		here := line{source: of, ptx: at}
		if matches := byPTX || of == file || strings.HasSuffix(of, "/"+file) || file == "" && of == s.mainFile(); matches {
			if at == n && here != last {
				sites[p.Site.Id] = true
			}
			if at > n && (next == 0 || at < next) {
				next = at
			}
		}
		last = here
	}
	switch {
	case len(sites) > 0:
		return sites, nil
	case next > 0:
		return nil, advice.Failf(fmt.Sprintf("the next that has is %d", next), "line %s has no code in %s", where, s.run.target.Kernel())
	}
	return nil, advice.Failf("list shows the lines around the one that comes next", "line %s has no code in %s, nor has any behind it", where, s.run.target.Kernel())
}

func sourced(points []*warp.Point) bool {
	for _, p := range points {
		if p.Site.Loc != nil {
			return true
		}
	}
	return false
}

// mainFile is the source of the kernel's first instruction that has one.
func (s *Session) mainFile() string {
	for _, p := range s.run.code.Symbols.Points {
		if p.Site.Loc != nil {
			name, _ := splitLine(p.Site.Source())
			return name
		}
	}
	return ""
}

func splitLine(place string) (file string, n int) {
	i := strings.LastIndexByte(place, ':')
	if i < 0 {
		return "", 0
	}
	n, _ = strconv.Atoi(place[i+1:])
	return place[:i], n
}
