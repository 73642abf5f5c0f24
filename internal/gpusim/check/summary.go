package check

import (
	"cmp"
	"unsafe"
)

// summary is what blocks did to a page.
type summary [pageSize / rowSize]rowSummary

// rowSummary is what blocks did to a row. Units that only one block has touched are kept as that has left them: most of what a kernel
// writes by single lanes.
type rowSummary struct {
	reads, writes extent
	only          []cell // of 1<<shift bytes; nil where others have touched the row, or it is of the widest units
	shift         uint8
}

// extent is by unit of a row the lowest and the highest record of a read, or of a write.
type extent struct {
	fine  uint8  // by how much units are finer than the widest
	whole ends   // with the widest
	parts []ends // with others; nil for none at all
}

// ends are the first and the last of records in the order of blocks; a clock of 0 is none.
type ends struct{ first, last record }

func (e *ends) add(r record) {
	if e.first.clock == 0 || r.before(e.first) {
		e.first = r
	}
	if e.last.clock == 0 || e.last.before(r) {
		e.last = r
	}
}

// before is an order of records that does not depend on who came first.
func (r record) before(o record) bool {
	if r.block != o.block {
		return r.block < o.block
	}
	return r.who < o.who
}

// EndBlock adds what a block did to the summary of a launch whose blocks run apart.
func (g *Global) EndBlock() {
	if g == nil || !g.launch.Apart {
		return
	}
	r := g.launch
	r.mu.Lock()
	defer r.mu.Unlock()
	for number, p := range g.pages {
		r.add(number, p)
		g.recycle(p)
	}
	clear(g.pages)
	clear(g.recent[:])
	g.used = 0
}

func (r *Races) add(number uint64, p *page) {
	s := r.summary[number]
	if s == nil {
		if r.used += int(unsafe.Sizeof(*s)); r.used > maxPages {
			r.leave |= omitsPages
			return
		}
		s = &summary{}
		r.summary[number] = s
	}
	for i := range p.rows {
		r.addRow(&s[i], &p.rows[i])
	}
}

// addRow adds what a block did to a row. The cells of the first one that touches it are taken from it.
func (r *Races) addRow(to *rowSummary, from *row) {
	switch {
	case from.shift == maxShift && from.whole.read.clock|from.whole.write.clock == 0:
	case from.shift == maxShift:
		r.share(to)
		r.addTo(&to.reads, from.whole.read, 0, maxShift)
		r.addTo(&to.writes, from.whole.write, 0, maxShift)
	case to.only == nil && to.reads.none() && to.writes.none():
		to.only, to.shift = from.cells, from.shift
		r.used += len(to.only) * int(unsafe.Sizeof(cell{}))
		*from = row{shift: maxShift}
	default:
		r.share(to)
		r.spread(to, from.cells, from.shift)
	}
}

// share makes a row that one block has touched one of several.
func (r *Races) share(to *rowSummary) {
	if only := to.only; only != nil {
		r.used -= len(only) * int(unsafe.Sizeof(cell{}))
		to.only = nil
		r.spread(to, only, to.shift)
	}
}

func (r *Races) spread(to *rowSummary, cells []cell, shift uint8) {
	for j := range cells {
		r.addTo(&to.reads, cells[j].read, j, shift)
		r.addTo(&to.writes, cells[j].write, j, shift)
	}
}

func (e *extent) none() bool { return e.fine == 0 && e.whole.first.clock == 0 }

// addTo adds what was done to the i-th unit of a row.
func (r *Races) addTo(e *extent, x record, i int, shift uint8) {
	if x.clock == 0 {
		return
	}
	if maxShift-shift > e.fine {
		r.refine(e, maxShift-shift)
	}
	if e.fine == 0 {
		e.whole.add(x)
		return
	}
	unit := maxShift - e.fine
	n := 1 << (shift - unit)
	for j := range n {
		e.parts[i*n+j].add(r.at(x, uint32(j)<<unit))
	}
}

// refine makes the units of a row finer.
func (r *Races) refine(e *extent, fine uint8) {
	parts := make([]ends, 1<<fine)
	for i := range parts {
		parts[i] = r.ends(e, i<<(maxShift-fine))
	}
	r.used += (len(parts) - len(e.parts)) * int(unsafe.Sizeof(ends{}))
	e.fine, e.parts = fine, parts
}

// ends is what was done to the byte at an offset in the row.
func (r *Races) ends(e *extent, at int) ends {
	x := e.whole
	if e.fine > 0 {
		x = e.parts[at>>(maxShift-e.fine)]
	}
	off := uint32(at) & (rowSize>>e.fine - 1)
	return ends{r.at(x.first, off), r.at(x.last, off)}
}

// summarise finds what two blocks did to the same bytes.
func (r *Races) summarise() {
	for number, s := range r.summary {
		for i := range s {
			w := &s[i].writes // none of a row that only one block has touched
			step := rowSize >> max(w.fine, s[i].reads.fine)
			for at := 0; (w.fine > 0 || w.whole.first.clock != 0) && at < rowSize; at += step {
				r.compare(r.ends(w, at), r.ends(&s[i].reads, at), number<<pageBits+uint64(i)<<maxShift+uint64(at))
			}
		}
	}
}

// compare finds what two blocks did to one unit.
func (r *Races) compare(wrote, read ends, at uint64) {
	first, last := wrote.first, wrote.last
	if first.clock == 0 {
		return
	}
	if !r.together(last.block, first.block) {
		r.apart(first, last, at)
	}
	switch {
	case read.first.clock == 0:
	case !r.together(read.first.block, first.block):
		r.apart(read.first, first, at)
	case !r.together(read.last.block, first.block):
		r.apart(first, read.last, at)
	case !r.together(last.block, first.block): // and the only reader is the first writer
		r.apart(read.first, last, at)
	}
}

// apart notes two accesses by blocks that nothing orders.
func (r *Races) apart(x, y record, at uint64) {
	if y.block < x.block {
		x, y = y, x
	}
	if a, b := r.accesses[x.access()], r.accesses[y.access()]; a.Strong && b.Strong && a.alike(b) {
		return // reductions by bulk copies: other strong accesses are where blocks talk
	}
	k := pair{x.access(), y.access(), true}
	e := &race{pair: k, first: x, second: y, at: at, why: "nothing orders the blocks of a grid, and these do not talk to each other", count: 1}
	if old := r.found[k]; old != nil {
		e.count += old.count
		if old.compare(e) < 0 {
			old.count = e.count
			return
		}
	} else if len(r.found) == maxRaces {
		r.leave |= OmitsFindings
		return
	}
	r.found[k] = e
}

// compare is an order of races that does not depend on who came first.
func (x *race) compare(y *race) int {
	return cmp.Or(cmp.Compare(x.second.block, y.second.block), cmp.Compare(x.first.block, y.first.block), cmp.Compare(x.at, y.at),
		cmp.Compare(x.second.who, y.second.who), cmp.Compare(x.first.who, y.first.who))
}
