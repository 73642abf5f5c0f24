package kineto

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// A view is seen through tiles: at level n the span is in 2^n of them, and each has so many of its lanes.
const (
	TileLanes = 32      // lanes of a tile
	TileTicks = 1 << 15 // by which the times of a tile are told
	tileBins  = 512     // what is shorter than such a part of a tile is told together
	tileText  = 24      // of 1024 parts of a tile, what an event has at least whose name is told
	tileMark  = 16      // bytes
)

// Levels is how many levels of tiles a view has: bins of the last are nanoseconds.
func (v *View) Levels() int {
	n := 1
	for v.wide(n) > tileBins && n < 48 {
		n++
	}
	return n
}

// wide is how long a tile of a level is, in nanoseconds.
func (v *View) wide(level int) int64 { return max((v.Span.Dur()+1<<level-1)>>level, 1) }

// Tile is a part of the view, for programs that draw: of the lanes from TileLanes*block on, what lies in the tile of a level, in the
// order of lanes and times, as so many (uint32) marks of
//
//	lane, from, to  uint16, of the tile; ticks
//	look, share     uint8, of what is told together the share in which there is anything
//	event           uint32, the first where there are several
//	name            uint32, 0 where there is no room for it
//
// and the names as JSON, by number. All numbers are little-endian. A tile that the view does not have is empty.
func (v *View) Tile(level, index, block int) []byte {
	p := painter{v: v, out: make([]byte, 4), names: map[uint32]string{}}
	if level >= 0 && level < v.Levels() && index >= 0 && index < 1<<level && block >= 0 && block < len(v.Lanes) {
		wide := v.wide(level)
		start := v.Span.Start + int64(index)*wide
		p.w = Window{start, start + wide}
		for lane := TileLanes * block; lane < min(TileLanes*(block+1), len(v.Lanes)); lane++ {
			p.lane(lane)
		}
	}
	binary.LittleEndian.PutUint32(p.out, uint32((len(p.out)-4)/tileMark))
	names, _ := json.Marshal(p.names) // strings always have a form
	return append(p.out, names...)
}

// painter makes a tile.
type painter struct {
	v     *View
	w     Window
	out   []byte
	names map[uint32]string
	// of the lane
	row   uint16
	end   int // tick up to which there is something
	last  []byte
	crowd crowd
}

// crowd is what is told together: events of a bin.
type crowd struct {
	n, bin  int
	first   int // event
	busy    int // ticks
	longest int64
	look    int
}

func (p *painter) tick(at int64) int {
	return int(min(max(float64(at-p.w.Start)/float64(p.w.Dur()), 0), 1) * TileTicks)
}

const binTicks = TileTicks / tileBins

func (p *painter) lane(lane int) {
	p.row, p.end, p.last, p.crowd = uint16(lane%TileLanes), 0, nil, crowd{}
	short := p.w.Dur() / tileBins
	from, to := p.v.within(lane, p.w)
	for i := from; i < to; i++ {
		e := &p.v.all[i]
		if e.dur > short {
			at := p.tick(e.start)
			p.together(at)
			p.alone(i, at)
			continue
		}
		from, to := p.tick(e.start), p.tick(e.end())
		for at := from; ; {
			bin := min(at/binTicks, tileBins-1)
			if p.crowd.n > 0 && bin != p.crowd.bin {
				p.together(TileTicks)
			}
			next := (bin + 1) * binTicks
			p.crowd.add(e, i, bin, min(to, next)-at, p.v)
			if at = next; at >= to {
				break
			}
		}
	}
	p.together(TileTicks)
}

func (c *crowd) add(e *event, i, bin, ticks int, v *View) {
	if c.n == 0 {
		*c = crowd{bin: bin, first: i, longest: -1}
	}
	c.n++
	c.busy += ticks
	if e.dur > c.longest {
		c.longest, c.look = e.dur, v.look(e)
	}
}

// alone marks an event of which something is to be seen.
func (p *painter) alone(i, from int) {
	e := &p.v.all[i]
	to, name := max(p.tick(e.end()), from+1), uint32(0)
	if (to-from)*1024 >= tileText*TileTicks {
		name = e.name
		p.names[name] = shown(p.v.t.Name(e))
	}
	p.mark(from, to, p.v.look(e), 255, i, name)
	p.last = nil
}

// shown is a name that is not too long for a picture.
func shown(name string) string {
	if len(name) > 160 {
		return strings.ToValidUTF8(name[:160], "") + "…"
	}
	return name
}

// shares are how many shares of what is told together differ.
const shares = 8

// together marks what is short, up to a tick at the farthest, as one with what is before it where that looks alike.
func (p *painter) together(most int) {
	c := &p.crowd
	if c.n == 0 {
		return
	}
	from := max(c.bin*binTicks, min(p.end, (c.bin+1)*binTicks-1))
	to := max(min((c.bin+1)*binTicks, most), from+1)
	share := byte(255 * min(max((2*c.busy*shares+to-from)/(2*(to-from)), 1), shares) / shares)
	c.n = 0
	if last := p.last; last != nil && p.end == from && last[6] == byte(c.look) && last[7] == share {
		p.end = to
		binary.LittleEndian.PutUint16(last[4:], uint16(to))
		return
	}
	p.mark(from, to, c.look, share, c.first, 0)
	p.last = p.out[len(p.out)-tileMark:]
}

func (p *painter) mark(from, to, look int, share byte, event int, name uint32) {
	b := binary.LittleEndian
	p.out = b.AppendUint16(b.AppendUint16(b.AppendUint16(p.out, p.row), uint16(from)), uint16(to))
	p.out = append(p.out, byte(look), share)
	p.out = b.AppendUint32(b.AppendUint32(p.out, uint32(event)), name)
	p.end = to
}

// Total is what the events of a name come to.
type Total struct {
	Name  string `json:"name"`
	Look  int    `json:"look"`
	Calls int    `json:"calls"`
	NS    int64  `json:"ns"` // with what lies within them
}

// Top is what took most time in a window, at most so many names, and how many events there are.
func (v *View) Top(w Window, most int) (top []Total, events int) {
	type sum struct{ calls, ns, look int64 }
	sums := make([]sum, len(v.t.names.names))
	for lane := range v.Lanes {
		from, to := v.within(lane, w)
		events += to - from
		for i := from; i < to; i++ {
			e := &v.all[i]
			s := &sums[e.name]
			if s.calls == 0 {
				s.look = int64(v.look(e))
			}
			s.calls++
			s.ns += min(e.end(), w.End) - max(e.start, w.Start)
		}
	}
	top = []Total{}
	for name, s := range sums {
		if s.calls > 0 {
			top = append(top, Total{shown(v.t.names.names[name]), int(s.look), int(s.calls), s.ns})
		}
	}
	sorting.By(top, func(a, b Total) int { return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(b.Calls, a.Calls)) })
	return top[:min(most, len(top))], events
}

// Found is an event of a view.
type Found struct {
	Event int    `json:"event"`
	Lane  int    `json:"lane"`
	Name  string `json:"name"`
	Look  int    `json:"look"`
	Start int64  `json:"start_ns"` // of the view
	Dur   int64  `json:"dur_ns"`
	Place int64  `json:"-"` // in the file, decompressed
}

// Event is an event by its number.
func (v *View) Event(i int) (Found, bool) {
	if i < 0 || i >= len(v.all) {
		return Found{}, false
	}
	e := &v.all[i]
	return Found{i, v.lane(i), v.t.Name(e), v.look(e), e.start - v.Span.Start, e.dur, int64(e.ext)<<32 | int64(e.aux)}, true
}

// At is the event of a lane at a time of the view, or the next to it that is no farther than some nanoseconds.
func (v *View) At(lane int, at, near int64) (event int, ok bool) {
	if lane < 0 || lane >= len(v.Lanes) {
		return 0, false
	}
	at += v.Span.Start
	from, to := v.within(lane, Window{at - near, at + near + 1})
	off := func(i int) int64 { e := &v.all[i]; return max(e.start-at, at-e.end(), 0) }
	best := from
	for i := from; i < to; i++ {
		if off(i) < off(best) {
			best = i
		}
	}
	return best, from < to
}

// Find are the events whose name has some text in it, in the order of their starts: at most so many of those behind an event, which -1
// is before all, and how many there are in all.
func (v *View) Find(text string, behind, most int) (found []Found, all int) {
	text = strings.ToLower(text)
	hit := make([]bool, len(v.t.names.names))
	for i, name := range v.t.names.names {
		hit[i] = strings.Contains(strings.ToLower(name), text)
	}
	inOrder := func(a, b int) int { return cmp.Or(byStart(&v.all[a], &v.all[b]), cmp.Compare(a, b)) }
	var next []int // in order, at most so many
	for i := range v.all {
		if !hit[v.all[i].name] {
			continue
		}
		all++
		if behind >= 0 && behind < len(v.all) && inOrder(i, behind) <= 0 {
			continue
		}
		if at, _ := slices.BinarySearchFunc(next, i, inOrder); at < most {
			next = slices.Insert(next, at, i)
			next = next[:min(most, len(next))]
		}
	}
	found = []Found{}
	for _, i := range next {
		f, _ := v.Event(i)
		found = append(found, f)
	}
	return found, all
}

// Around are the events that one lies in, the outermost first.
func (v *View) Around(i int) (outer []Found) {
	e, lane := &v.all[i], v.lane(i)
	for l := lane - v.Lanes[lane].Depth; l < lane; l++ {
		from, to := v.within(l, Window{e.start, e.start + 1})
		for k := from; k < to; k++ {
			if x := &v.all[k]; x.start <= e.start && x.end() >= e.end() {
				f, _ := v.Event(k)
				outer = append(outer, f)
			}
		}
	}
	return outer
}

// Linked are what an event launched, at most so many and how many there are in all, or what launched it: calls and work of devices with
// its correlation.
func (v *View) Linked(i, most int) (linked []Found, all int) {
	e := &v.all[i]
	if e.flags&noStart != 0 {
		return nil, 0
	}
	device := func(k kind) bool { return k == kernel || k == copying || k == setting }
	if !device(e.kind) && e.kind != call {
		return nil, 0
	}
	var others []int
	for k := range v.all {
		if x := &v.all[k]; x.id == e.id && x.flags&noStart == 0 && (device(x.kind) && e.kind == call || x.kind == call && device(e.kind) && x.start <= e.start) {
			others = append(others, k)
		}
	}
	if e.kind != call && len(others) > 1 { // several processes: the last that began before
		others = []int{slices.MaxFunc(others, func(a, b int) int { return cmp.Compare(v.all[a].start, v.all[b].start) })}
	}
	for _, k := range others[:min(most, len(others))] {
		f, _ := v.Event(k)
		linked = append(linked, f)
	}
	return linked, len(others)
}
