package kineto

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// View is a trace to look at: all that took time, in lanes in which nothing lies over anything else. It does not change, so that
// several may ask it at once.
type View struct {
	Span   Window // from the first to the last event
	Lanes  []Lane // streams of devices first
	Events int    // that the lanes have
	Left   int    // that are too many, or have times that are no numbers
	Cut    string // where the file breaks off, and how

	t      *Trace // of which names and classes are left
	all    []event
	begins []int // of Lanes, in all; and where the last ends
	labels map[[2]string]string
}

// Lane is a row of events, one after the other. What lies within an event of a row is a lane below.
type Lane struct {
	Name   string `json:"name"`
	Depth  int    `json:"depth"`
	Device bool   `json:"device"`
	Events int    `json:"events"`
}

// What a view has at most.
const (
	viewLimit = 8 << 20 // events
	lanesMost = 4096
)

// Looks are what events are told apart by, with colours; the index is Found.Look's.
var Looks = []string{"products", "communication", "other compute", "ranges", "waits", "driver's calls", "operations and functions", "copies"}

const (
	lookProducts = iota
	lookTalks
	lookComputes
	lookRanges
	lookWaits
	lookCalls
	lookOps
	lookCopies
)

// Look reads a trace, as Read does, to be looked at.
func Look(ctx context.Context, r io.Reader) (*View, error) {
	v := &View{labels: map[[2]string]string{}}
	if _, err := readInto(ctx, r, v); err != nil {
		return nil, err
	}
	return v, nil
}

// see keeps an event with its place in the file, which takes the room of what rules ask for.
func (rd *reading) see(name uint32, k kind) {
	at := rd.w.offset()
	e := event{start: rd.p.start, dur: rd.p.dur, name: name, kind: k, ext: uint32(at >> 32), aux: uint32(at)}
	if k == kernel || k == copying || k == setting {
		e.track = rd.stream()
	} else {
		e.track = rd.row()
	}
	rd.correlate(&e)
	if len(rd.ops) >= viewLimit {
		rd.viewed.Left++
		return
	}
	rd.ops = append(rd.ops, e)
}

// label keeps what the file calls a thread or a process.
func (rd *reading) label() {
	key := [2]string{string(rd.p.pid), string(rd.p.tid)}
	switch string(rd.p.name) {
	case "process_name":
		key[1] = ""
	case "thread_name":
	default:
		return
	}
	if len(rd.viewed.labels) < tracksLimit {
		rd.viewed.labels[key] = shown(unescape(rd.p.label, string(rd.p.label)))
	}
}

// finish puts the events that were read into lanes.
func (v *View) finish(rd *reading) {
	v.t, v.all, v.Cut = rd.Trace, rd.ops, rd.counts.cut
	v.Left += rd.counts.garbage
	v.t.classes, v.t.ops, v.t.names.ids = rd.classes, nil, nil
	v.order()
	slices.SortFunc(v.all, func(a, b event) int { return cmp.Or(cmp.Compare(a.track, b.track), byStart(&a, &b)) })
	v.arrange(v.nest())
	if len(v.all) == 0 {
		return
	}
	v.Span = extent(v.all)
	if d := v.Span.Dur(); d < 0 || d > 1<<62 {
		v.Span.End = v.Span.Start + 1<<62 // what is later than that has a time that is none
	}
	for i := range v.Lanes {
		v.Lanes[i].Name = v.rowName(v.all[v.begins[i]].track)
	}
}

// order numbers tracks anew: streams by device, then threads as they came.
func (v *View) order() {
	places := make([]int, len(v.t.tracks))
	for i := range places {
		places[i] = i
	}
	t := v.t.tracks
	sorting.By(places, func(a, b int) int {
		x, y := &t[a], &t[b]
		if host := cmp.Compare(min(y.device, 0), min(x.device, 0)); host != 0 || x.device < 0 {
			return host
		}
		return cmp.Or(cmp.Compare(x.device, y.device), cmp.Compare(x.stream, y.stream))
	})
	now, tracks := make([]uint16, len(places)), make([]track, len(places))
	for to, from := range places {
		now[from], tracks[to] = uint16(to), t[from]
	}
	for i := range v.all {
		v.all[i].track = now[v.all[i].track]
	}
	v.t.tracks = tracks
}

// rowName is what a track is called.
func (v *View) rowName(n uint16) string {
	t := &v.t.tracks[n]
	if t.device >= 0 {
		return fmt.Sprintf("GPU %d, stream %d", t.device, t.stream)
	}
	name := cmp.Or(v.labels[[2]string{t.pid, t.tid}], "thread "+t.tid)
	if process := v.labels[[2]string{t.pid, ""}]; process != "" {
		name += " of " + process
	}
	return shown(name)
}

// over is when an event has left its lane to others: what takes no time has its place too.
func (e *event) over() int64 { return max(e.end(), e.start+1) }

// nowhere is the lane of an event that has none.
const nowhere = -1

// nest gives each event, in the order of tracks and starts, the uppermost lane of its track that is free: what lies within an event
// is below it. It returns these.
func (v *View) nest() (lanes []int16) {
	lanes = make([]int16, len(v.all))
	var ends []int64 // of what came last, by depth
	for i := range v.all {
		e := &v.all[i]
		if i == 0 || e.track != v.all[i-1].track {
			ends = ends[:0]
		}
		d := slices.IndexFunc(ends, func(end int64) bool { return end <= e.start })
		if d < 0 {
			if d = len(ends); len(v.Lanes) == lanesMost {
				lanes[i] = nowhere
				v.Left++
				continue
			}
			ends = append(ends, 0)
			v.Lanes = append(v.Lanes, Lane{Depth: d, Device: v.t.tracks[e.track].device >= 0})
		}
		ends[d] = e.over()
		lane := len(v.Lanes) - len(ends) + d
		lanes[i] = int16(lane)
		v.Lanes[lane].Events++
	}
	return lanes
}

// arrange sorts the events by lane, in place of by track; those of a lane keep their order.
func (v *View) arrange(lanes []int16) {
	v.begins = make([]int, len(v.Lanes)+1)
	for i := range v.Lanes {
		v.begins[i+1] = v.begins[i] + v.Lanes[i].Events
	}
	v.Events = v.begins[len(v.Lanes)]
	next, sorted := slices.Clone(v.begins), make([]event, v.Events)
	for i, l := range lanes {
		if l != nowhere {
			sorted[next[l]] = v.all[i]
			next[l]++
		}
	}
	v.all = sorted
}

// lane is that of an event.
func (v *View) lane(i int) int {
	n, found := slices.BinarySearch(v.begins, i)
	if !found {
		n--
	}
	return n
}

// within are the events of a lane that touch a window.
func (v *View) within(lane int, w Window) (from, to int) {
	first, events := v.begins[lane], v.all[v.begins[lane]:v.begins[lane+1]]
	from, _ = slices.BinarySearchFunc(events, w.Start+1, func(e event, at int64) int { return cmp.Compare(e.over(), at) })
	to, _ = slices.BinarySearchFunc(events, w.End, func(e event, at int64) int { return cmp.Compare(e.start, at) })
	return first + from, first + max(from, to)
}

// look is what an event is told apart by.
func (v *View) look(e *event) int {
	switch e.kind {
	case kernel, copying, setting:
		switch v.t.family(e) {
		case Product:
			return lookProducts
		case Communication:
			return lookTalks
		case Memory:
			return lookCopies
		}
		return lookComputes
	case annotation, other:
		return lookRanges
	case call, syncing:
		if v.t.class(e)&isWait != 0 || e.kind == syncing {
			return lookWaits
		}
		return lookCalls
	}
	if v.t.class(e)&isLoader != 0 {
		return lookWaits
	}
	return lookOps
}
