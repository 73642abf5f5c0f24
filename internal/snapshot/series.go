package snapshot

import (
	"cmp"
	"slices"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// Series is the memory of a device over time by owner, for pictures. It is from its first moment on what the file shows: what
// was there before is an owner too.
type Series struct {
	Device   int
	Owners   []string  // the largest first
	At       []int64   // microseconds since the first moment, rising
	Bytes    [][]int64 // by owner, at each moment
	Peak     int64     // most bytes in use
	PeakAt   int64     // microseconds since the first moment
	Holders  []Share   // at the peak, by line and kind, the largest first; none of a raw timeline, which has no lines
	Reserved Reserved
}

// Reserved is what the allocator has from the driver at the end of a file, in bytes; zeros of a raw timeline, which has none of it.
type Reserved struct {
	InUse       int64 `json:"in_use"`
	Stuck       int64 `json:"stuck"`       // free beside live blocks
	Reclaimable int64 `json:"reclaimable"` // in segments with nothing else
}

// mostOwners is how many owners a series tells apart; the others are one.
const mostOwners = 7

// Rest is the owner that stands for all that are not told apart.
const Rest = "the rest"

// Series are the devices' memory over time, in at most so many moments each. Of a device without a trace only the end is there.
func (s *Snapshot) Series(moments int) (all []*Series) {
	for _, device := range s.devices() {
		all = append(all, s.look(device).series(moments))
	}
	return all
}

func (l *look) series(moments int) *Series {
	s := &Series{Device: l.device, Reserved: Reserved{l.allocated, l.stuck, l.free}, Peak: l.allocated, Holders: l.live}
	if l.peak < 0 && len(l.events) == 0 {
		owners, places := ownersOf(sumsOf(l.live))
		row := make([]int64, len(owners))
		for _, h := range l.live {
			row[places(h.Kind)] += h.Bytes
		}
		s.Owners = owners
		s.fill([]moment{{bytes: row}}, 0)
		return s
	}
	before := max(l.baseline(l.state), 0)
	if l.peak >= 0 {
		s.Peak, s.PeakAt = before+l.curve[l.peak], l.events[l.peak].Time-l.events[0].Time
		s.Holders = l.at(l.peak, before)
	}
	owners, places := ownersOf(l.traffic(before))
	s.Owners = owners
	now := make([]int64, len(owners))
	now[places(kindUnknown)] = before
	w := newSampler(moments)
	w.add(l.events[0].Time, now)
	open := map[uint64]opened{}
	for _, e := range l.events {
		switch e.Action {
		case "alloc":
			k := places(e.owner())
			open[e.Addr] = opened{k, e.Size}
			now[k] += e.Size
		case "free_completed":
			o, ok := open[e.Addr]
			if !ok {
				o = opened{places(kindUnknown), e.Size} // from before
			}
			delete(open, e.Addr)
			now[o.owner] -= e.Size
		default:
			continue
		}
		w.add(e.Time, now)
	}
	s.fill(w.all(l.events[len(l.events)-1].Time, now), l.events[0].Time)
	return s
}

// opened is an allocation that has not gone.
type opened struct {
	owner int
	bytes int64
}

// owner is the kind of an event's memory, as the program named it, or its calls tell.
func (e *Event) owner() string {
	if e.kind == "" || e.kind == "unknown" {
		return e.stack.kind
	}
	return e.kind
}

// traffic is, by owner, all that was allocated, and what was there before.
func (l *look) traffic(before int64) map[string]int64 {
	sums := map[string]int64{}
	if before > 0 {
		sums[kindUnknown] = 1 << 62 // told apart in any case
	}
	for _, e := range l.events {
		if e.Action == "alloc" {
			sums[e.owner()] += e.Size
		}
	}
	return sums
}

func sumsOf(all []Share) map[string]int64 {
	sums := map[string]int64{}
	for _, s := range all {
		sums[s.Kind] += s.Bytes
	}
	return sums
}

// ownersOf are the largest of sums, and the places of all owners among them.
func ownersOf(sums map[string]int64) (owners []string, places func(string) int) {
	for name := range sums {
		owners = append(owners, name)
	}
	sorting.By(owners, func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	if len(owners) > mostOwners {
		owners = append(owners[:mostOwners:mostOwners], Rest)
	}
	if len(owners) == 0 {
		owners = []string{kindUnknown}
	}
	index := map[string]int{}
	for i, name := range owners {
		index[name] = i
	}
	return owners, func(name string) int {
		if i, ok := index[name]; ok {
			return i
		}
		return len(owners) - 1
	}
}

// fill takes moments whose times are absolute. Clocks may go back: a moment is never before the one above it.
func (s *Series) fill(all []moment, begin int64) {
	s.Bytes = make([][]int64, len(s.Owners))
	last := int64(0)
	for _, m := range all {
		last = max(last, m.at-begin)
		s.At = append(s.At, last)
		for i, n := range m.bytes {
			s.Bytes[i] = append(s.Bytes[i], max(n, 0))
		}
	}
	s.drop()
}

// drop leaves out owners that never had anything.
func (s *Series) drop() {
	for i := len(s.Owners) - 1; i >= 0; i-- {
		if slices.Max(s.Bytes[i]) == 0 {
			s.Owners, s.Bytes = slices.Delete(s.Owners, i, i+1), slices.Delete(s.Bytes, i, i+1)
		}
	}
}

// moment is who has how much.
type moment struct {
	at, sum int64
	order   int
	bytes   []int64
}

// sampler thins moments out as they come, however many: of each stretch it keeps the one with the least and the one with the
// most in use, and stretches become longer as there are too many.
type sampler struct {
	most    int // stretches, an even number
	length  int // moments of a stretch
	inLast  int // moments of the last one
	seen    int
	stretch []pair
}

// pair is a stretch.
type pair struct{ least, most moment }

// newSampler keeps so many moments at most.
func newSampler(moments int) *sampler { return &sampler{most: max(moments/4*2, 2), length: 1} }

// add takes a moment, whose bytes it copies where it keeps them.
func (s *sampler) add(at int64, bytes []int64) {
	m := moment{at: at, order: s.seen}
	s.seen++
	for _, n := range bytes {
		m.sum += n
	}
	if n := len(s.stretch); n > 0 && s.inLast < s.length {
		s.inLast++
		p := &s.stretch[n-1]
		if m.sum < p.least.sum {
			p.least = m.with(bytes)
		}
		if m.sum > p.most.sum {
			p.most = m.with(bytes)
		}
		return
	}
	if len(s.stretch) == s.most {
		s.halve()
	}
	m = m.with(bytes)
	s.stretch, s.inLast = append(s.stretch, pair{m, m}), 1
}

// with is m with a copy of bytes.
func (m moment) with(bytes []int64) moment {
	m.bytes = slices.Clone(bytes)
	return m
}

// halve makes one of each two stretches.
func (s *sampler) halve() {
	half := s.stretch[:0]
	for i := 0; i < len(s.stretch); i += 2 {
		p, o := s.stretch[i], s.stretch[i+1]
		if o.least.sum < p.least.sum {
			p.least = o.least
		}
		if o.most.sum > p.most.sum {
			p.most = o.most
		}
		half = append(half, p)
	}
	s.stretch, s.length = half, 2*s.length
}

// all are the moments that were kept, in order, and the last.
func (s *sampler) all(at int64, now []int64) (out []moment) {
	for _, p := range s.stretch {
		first, second := p.least, p.most
		if first.order > second.order {
			first, second = second, first
		}
		if out = append(out, first); second.order > first.order {
			out = append(out, second)
		}
	}
	return append(out, moment{at: at, bytes: now})
}

// timelineMoments is how many moments of a raw timeline are kept for pictures.
const timelineMoments = 600

// sample keeps a moment of a raw timeline for pictures.
func (t *timeline) sample() {
	if t.sampled == nil {
		t.sampled = newSampler(timelineMoments)
	}
	t.sampled.add(t.last, t.now[:])
}

// Series is the memory over time of a raw timeline, by category.
func (t *timeline) Series(int) []*Series {
	if t.sampled == nil {
		return nil
	}
	s := &Series{Owners: slices.Clone(categories[:]), Peak: t.peak, PeakAt: max(t.peakAt-t.first, 0) / 1e3}
	s.fill(t.sampled.all(t.last, t.now[:]), t.first)
	for i := range s.At {
		s.At[i] /= 1e3
	}
	return []*Series{s}
}
