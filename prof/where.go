package prof

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Finding is one thing that costs a program time or memory, with its evidence and what to do.
type Finding = finding.Finding

// LoaderRange is the range in which a program waits for a batch, as package data opens it.
const LoaderRange = "loader"

// Findings says what is wrong with the steps of the window, what costs most first, five at most. None is an answer: what was
// looked at is in [Profile.Checked].
func (p *Profile) Findings() []Finding { return finding.Judge(p.Facts()) }

// Checked says what Findings looks at. What the devices do not have is not among it.
func (p *Profile) Checked() string { return finding.Checked(p.Facts()) }

// Facts are the figures that findings follow from.
func (p *Profile) Facts() *finding.Facts {
	s := p.Summary()
	f := &finding.Facts{Took: p.Took, Steps: len(p.steps), Busy: s.Busy, Copies: s.Copies, NoGradient: p.Unreached, Growing: p.growing}
	names := map[string]bool{}
	for _, d := range p.Devices {
		names[d.Name] = true
		f.Timed, f.Modelled = f.Timed || d.Timed, f.Modelled || d.Modelled
	}
	f.Device = strings.Join(slices.Sorted(maps.Keys(names)), ", ")
	p.launches(f)
	p.products(f)
	f.Moves = p.moves()
	p.idle(f)
	return f
}

// launches counts them, and says whether the host itself computes.
func (p *Profile) launches(f *finding.Facts) {
	var took []int64
	onHost := 0
	for i := range p.all {
		e := p.at(i)
		if e.kind != device.KindLaunch {
			continue
		}
		took = append(took, e.ended-e.began)
		if e.span > 0 && !e.Captured {
			f.Watching += 2 * p.Devices[e.Device].Stamping
		}
		if e.Step > 0 {
			continue
		}
		f.Launches++
		if e.Hosted {
			onHost++
		} else {
			f.LaunchHost += time.Duration(e.took)
		}
	}
	f.OnHost = f.Launches > 0 && onHost == f.Launches
	if len(took) > 0 {
		slices.Sort(took)
		f.Kernel = time.Duration(took[len(took)/2])
	}
}

// products are what tensor cores do, and what only moves memory, by the figures of the card.
func (p *Profile) products(f *finding.Facts) {
	lines, products := map[string]time.Duration{}, products()
	for i := range p.all {
		e := p.at(i)
		if e.kind != device.KindLaunch {
			continue
		}
		card, known := p.Devices[e.Device].card()
		switch d := e.worked(); {
		case products[e.kernel.Op]:
			f.Products += d
			if in := e.kernel.Ins[0].Type; in == torchName(dtype.F32) || in == torchName(dtype.F64) {
				f.Wide += d
				lines[p.sites[e.Site].Line] += d
			}
		case known && e.Step == 0 && rate(e.kernel.Bytes, d) > 0.6e9*float64(card.Bandwidth):
			f.Elementwise += d
		}
		if known && card.Half > 0 {
			f.Tensor = max(f.Tensor, card.Tensor()/card.Vector())
		}
	}
	f.WideLine = longest(lines)
}

// card is the model of GPU that d is, or imitates.
func (d *Device) card() (cards.Card, bool) {
	return cards.Match(d.Properties.Compute, d.Properties.Multiprocessors, d.Properties.Memory)
}

// products are the operations of which tensor cores do most: those that a policy runs in 16 bits, and their gradients.
var products = sync.OnceValue(func() map[string]bool {
	low := map[string]bool{}
	for c := ir.Invalid + 1; int(c) < ir.Codes; c++ {
		low[c.Row().Name] = c.Row().Autocast == ir.CastLow
	}
	m := map[string]bool{}
	for c := ir.Invalid + 1; int(c) < ir.Codes; c++ {
		of, _, _ := strings.Cut(c.Row().Name, "_grad")
		m[c.Row().Name] = low[of]
	}
	return m
})

// moves are the copies, by line and direction.
func (p *Profile) moves() []finding.Move {
	type key struct{ what, line string }
	of := map[key]*finding.Move{}
	sizes := map[key][]int64{}
	for i := range p.all {
		e := p.at(i)
		if e.kind != device.KindCopy {
			continue
		}
		k := key{copyName(e.Text), p.sites[e.Site].Line}
		if of[k] == nil {
			of[k] = &finding.Move{What: k.what, Line: k.line}
		}
		m := of[k]
		m.Count, m.Bytes, m.Took, m.Host = m.Count+1, m.Bytes+e.Bytes, m.Took+e.worked(), m.Host+time.Duration(e.took)
		sizes[k] = append(sizes[k], e.Bytes)
	}
	var all []finding.Move
	for k, m := range of {
		s := sizes[k]
		slices.Sort(s)
		m.Median = s[len(s)/2]
		all = append(all, *m)
	}
	sorting.By(all, func(a, b finding.Move) int {
		return cmp.Or(cmp.Compare(b.Took, a.Took), cmp.Compare(a.Line, b.Line), cmp.Compare(a.What, b.What))
	})
	return all
}

// waiting is a time in which the host waited: for the loader, or at a line for the device.
type waiting struct {
	interval
	point *finding.Wait // nil for the loader
}

// waits are the times in which the host waited, in their order, and the lines where it did.
func (p *Profile) waits() (all []waiting, points []*finding.Wait) {
	at := map[finding.Wait]*finding.Wait{}
	for i := range p.all {
		e := p.at(i)
		s := interval{e.start, e.start + e.took}
		switch {
		case e.kind == device.KindRange && e.part > 0 && p.ranges[e.part-1].Name == LoaderRange:
			all = append(all, waiting{s, nil})
		case e.kind == device.KindWait && e.Text != device.WaitQueue:
			k := finding.Wait{What: e.Text, Line: p.sites[e.Site].Line}
			if at[k] == nil {
				at[k] = &finding.Wait{What: k.What, Line: k.Line}
				points = append(points, at[k])
			}
			w := at[k]
			w.Count, w.Took = w.Count+1, w.Took+time.Duration(e.took)
			all = append(all, waiting{s, w})
		}
	}
	sorting.By(all, func(a, b waiting) int { return cmp.Compare(a.began, b.began) })
	return all, points
}

// idle divides the time in which no device worked. What the program spent in the loader is the loader's; the rest of a gap is
// a wait's if the host came out of it between asking for the work before the gap and for that behind it, since until then
// nothing new could be asked for; else the host's.
func (p *Profile) idle(f *finding.Facts) {
	waits, points := p.waits()
	for _, gap := range p.gaps() {
		loader := time.Duration(0)
		var last *finding.Wait
		for _, w := range waits {
			switch {
			case w.point == nil:
				loader += time.Duration(max(0, min(w.ended, gap.ended)-max(w.began, gap.began)))
			case w.ended >= gap.before && w.ended <= gap.behind:
				last = w.point
			}
		}
		rest := time.Duration(gap.ended-gap.began) - loader
		f.Idle.Loader += loader
		if last == nil {
			f.Idle.Host += rest
			switch {
			case rest > finding.Pause:
				f.Pauses += rest
			case gap.captured:
				f.Captured += rest
			}
			continue
		}
		f.Idle.Wait += rest
		last.Idle += rest
	}
	for _, w := range points {
		f.Waits = append(f.Waits, *w)
	}
	sorting.By(f.Waits, func(a, b finding.Wait) int {
		return cmp.Or(cmp.Compare(b.Idle, a.Idle), cmp.Compare(b.Took, a.Took), cmp.Compare(a.Line, b.Line))
	})
}

// gap is a time in which no device worked, and when the host asked for the work before it and behind it.
type gap struct {
	interval
	before, behind int64
	captured       bool // the work behind it is a captured step's
}

// gaps are the times of the window in which no device worked.
func (p *Profile) gaps() (all []gap) {
	type work struct {
		interval
		asked    int64
		captured bool
	}
	var busy []work
	for i := range p.all {
		if e := p.at(i); e.work() && e.ended > e.began {
			busy = append(busy, work{e.interval, e.start, e.Captured})
		}
	}
	sorting.By(busy, func(a, b work) int { return cmp.Compare(a.began, b.began) })
	var last work
	for _, w := range append(busy, work{interval{int64(p.Took), int64(p.Took)}, int64(p.Took), false}) {
		if w.began > last.ended {
			all = append(all, gap{interval{last.ended, w.began}, last.asked, w.asked, w.captured})
		}
		if w.ended > last.ended {
			last = w
		}
	}
	return all
}
