package kineto

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// judge says who the others wait for, and why; that nobody is late; or that it cannot be told.
func (j *job) judge() {
	switch l := j.late; {
	case l.steps == 0:
		j.note("whether a rank comes late cannot be told from its collectives: %s", j.whyNot())
		j.unequal()
	case float64(l.last[l.worst]) > lateSteps*float64(l.steps):
		j.add(j.straggler(l.worst))
	default:
		j.report.Checked = append(j.report.Checked, fmt.Sprintf("when the ranks come to their collectives: no rank is the last in most of %d steps", l.steps))
		if text := j.pathText(); text != "" {
			j.note("the critical path through the ranks: %s", text)
		}
	}
}

func (j *job) add(f *finding.Finding) {
	f.Rule, f.Name = "R35", "straggler"
	j.report.Findings = append(j.report.Findings, *f)
	if text := j.pathText(); text != "" {
		j.note("the critical path through the ranks: %s", text)
	}
}

// whyNot is why no collective of several ranks is known to be one.
func (j *job) whyNot() string {
	n, p2p := 0, 0
	for _, r := range j.ranks {
		n += len(r.Collectives)
		for i := range r.Collectives {
			if r.Collectives[i].P2P {
				p2p++
			}
		}
	}
	switch {
	case n == 0:
		return "the files have none"
	case n == p2p:
		return "all communication is between two"
	case len(j.meets) > 0:
		return "no step is marked around them"
	}
	return "they have no numbers, and the ranks have not the same number of them"
}

// unequal compares the ranks' steps where collectives tell nothing: in a synchronous training all steps are as long as the
// slowest rank's, on which communication waits least.
func (j *job) unequal() {
	least, most := j.ranks[0], j.ranks[0]
	var comm []int64
	for _, r := range j.ranks {
		m := r.mean()
		if len(r.marked) == 0 {
			return
		}
		comm = append(comm, m.Comm)
		if m.Comm < least.mean().Comm {
			least = r
		}
		if m.Comm > most.mean().Comm {
			most = r
		}
	}
	gap := most.mean().Comm - least.mean().Comm
	step := least.mean().End
	if len(j.ranks) > 2 && float64(gap) > lateShare*float64(step) && float64(medianNS(comm)-least.mean().Comm) > lateShare*float64(step) {
		f := j.straggler(slices.Index(j.ranks, least))
		f.Confidence, f.Gain = finding.Low, finding.Saves(time.Duration(medianNS(comm)-least.mean().Comm), "the time that the others communicate longer, half of them at least")
		j.add(f)
		return
	}
	j.report.Checked = append(j.report.Checked, fmt.Sprintf("the ranks' steps: communication takes between %s and %s of them",
		percent(ratio(least.mean().Comm, least.mean().End)), percent(ratio(most.mean().Comm, most.mean().End))))
}

// straggler is the finding that a rank comes late.
func (j *job) straggler(n int) *finding.Finding {
	r, others := j.ranks[n], j.others(n)
	f := &finding.Finding{Confidence: finding.Medium, DisprovedBy: "the traces of other steps, in which another rank is the last"}
	lost := medianNS(j.late.lost[n])
	f.Gain = finding.Saves(time.Duration(lost), "the median time between the first and this rank at the collective that they come to furthest apart")
	if j.late.steps > 0 {
		f.Evidence = append(f.Evidence, counted("last_steps", j.late.last[n], "rank %d comes last to a collective in %d of %d steps, %s behind the first at the median",
			r.n, j.late.last[n], j.late.steps, duration(lost)))
		if slices.ContainsFunc(j.meets, func(m *meeting) bool { return m.numbered }) {
			f.Confidence = finding.High
		}
	}
	m := r.mean()
	reason := j.reason(r, m, others)
	f.Title = fmt.Sprintf("The other ranks wait for rank %d: %s", r.n, reason.why)
	f.Fix = reason.fix
	f.Evidence = append(f.Evidence, reason.evidence, timing("comm_us", m.Comm, "communication takes %s a step on it, %s on the others: theirs is waiting", duration(m.Comm), duration(others.Comm)))
	return f
}

// others is what a step has on the other ranks, at the median of each.
func (j *job) others(n int) (m Step) {
	median := func(of func(Step) int64) int64 {
		var all []int64
		for i, r := range j.ranks {
			if i != n {
				all = append(all, of(r.mean()))
			}
		}
		return medianNS(all)
	}
	return Step{Window: Window{0, median(func(s Step) int64 { return s.Dur() })}, Busy: median(func(s Step) int64 { return s.Busy }),
		Compute: median(func(s Step) int64 { return s.Compute }), Comm: median(func(s Step) int64 { return s.Comm }), Loader: median(func(s Step) int64 { return s.Loader })}
}

// reason is why a rank is late.
type reason struct {
	why, fix string
	evidence finding.Evidence
}

// reason is the largest of what the rank has more of than the others: waits for batches, computation, or the host's rest.
func (j *job) reason(r *rank, m, others Step) reason {
	loader, compute := m.Loader-others.Loader, m.Compute-others.Compute
	host := (m.Dur() - m.Busy - m.Loader) - (others.Dur() - others.Busy - others.Loader)
	switch most := max(loader, compute, host); most {
	case loader:
		return reason{"its loader is slow", fmt.Sprintf("look at the data of rank %d: its disk and network, the CPUs that its workers have, samples that are larger than the others'", r.n),
			timing("loader_us", m.Loader, "it waits %s a step for its batch, the others %s", duration(m.Loader), duration(others.Loader))}
	case compute:
		return j.computes(r, m, others)
	}
	return reason{"its host is slow", fmt.Sprintf("look at the host of rank %d: other processes on its CPUs, pinning to the card's NUMA node (warpline doctor there), garbage collection, logging that only this rank does", r.n),
		timing("host_us", m.Dur()-m.Busy, "its device is idle %s a step, the others' %s", duration(m.Dur()-m.Busy), duration(others.Dur()-others.Busy))}
}

// computes tells a card that is slower from a rank that has more to do.
func (j *job) computes(r *rank, m, others Step) reason {
	evidence := timing("compute_us", m.Compute, "it computes %s a step, the others %s", duration(m.Compute), duration(others.Compute))
	slower := j.slower(r)
	if slower > 1+apart {
		evidence.Text += fmt.Sprintf("; the same kernels take %.1f %% longer on it", 100*(slower-1))
		return reason{"its card is slow", fmt.Sprintf("look at the card of rank %d: clocks, power, temperature, other processes (nvidia-smi -q -d PERFORMANCE,CLOCK,POWER; warpline doctor on its node)", r.n), evidence}
	}
	return reason{"it has more to compute", "share the work out evenly: batches of as many tokens, layers by their time and not their number; rank " + fmt.Sprint(r.n) + " has the most", evidence}
}

// slower is how much longer a rank's kernels take than the same kernels of the others: the median over names, each weighed by
// its time.
func (j *job) slower(r *rank) float64 {
	type one struct {
		ratio  float64
		weight int64
	}
	var all []one
	var sum int64
	for _, k := range r.Kernels {
		if k.Family == Communication || k.Family == Memory {
			continue
		}
		var of []int64
		for _, o := range j.ranks {
			if o == r {
				continue
			}
			if i := slices.IndexFunc(o.Kernels, func(x Kernels) bool { return x.Name == k.Name && x.Count > 0 }); i >= 0 {
				of = append(of, o.Kernels[i].NS/int64(o.Kernels[i].Count))
			}
		}
		if mean := medianNS(of); mean > 0 {
			all = append(all, one{float64(k.NS/int64(k.Count)) / float64(mean), k.NS})
			sum += k.NS
		}
	}
	sorting.By(all, func(a, b one) int { return cmp.Compare(a.ratio, b.ratio) })
	var at int64
	for _, o := range all {
		if at += o.weight; 2*at >= sum {
			return o.ratio
		}
	}
	return 1
}

// rankPart is a part of the critical path through several ranks.
type rankPart struct {
	rank  int
	stage Stage
	ns    int64
}

// path goes back from the last collective to who came last, along what it did since the collective before, and so on.
func (j *job) path() (parts []rankPart, steps int) {
	if len(j.meets) == 0 {
		return nil, 0
	}
	of := make([]map[int32]*meeting, len(j.ranks))
	for n := range of {
		of[n] = map[int32]*meeting{}
	}
	for _, m := range j.meets {
		for n, i := range m.at {
			if i >= 0 {
				of[n][i] = m
			}
		}
	}
	sums := map[rankPart]int64{}
	m := j.meets[len(j.meets)-1]
	for guard := 0; m != nil && guard <= len(j.meets); guard++ {
		n, _ := j.arrivals(m)
		sums[rankPart{j.ranks[n].n, OnCommunicate, 0}] += max(j.end(m)-j.start(m, n), 0)
		at, next := m.at[n], (*meeting)(nil)
		for at >= 0 && next == nil { // along the rank, past what is no meeting
			l, ok := j.ranks[n].leg(at)
			if !ok {
				break
			}
			for s, ns := range l.spent {
				sums[rankPart{j.ranks[n].n, Stage(s), 0}] += ns
			}
			at = l.from
			next = of[n][at]
			if at >= 0 && next == nil {
				sums[rankPart{j.ranks[n].n, OnCommunicate, 0}] += j.ranks[n].Collectives[at].Dur()
			}
		}
		if next != nil && j.end(next) >= j.end(m) {
			break
		}
		m = next
	}
	for p, ns := range sums {
		if ns > 0 {
			parts = append(parts, rankPart{p.rank, p.stage, ns})
		}
	}
	sorting.By(parts, func(a, b rankPart) int {
		return cmp.Or(cmp.Compare(b.ns, a.ns), cmp.Compare(a.rank, b.rank), cmp.Compare(a.stage, b.stage))
	})
	return parts, len(j.ranks[0].marked)
}

// leg is how a collective came to begin.
func (t *Trace) leg(of int32) (leg, bool) {
	i, ok := slices.BinarySearchFunc(t.legs, of, func(l leg, of int32) int { return cmp.Compare(l.of, of) })
	if !ok {
		return leg{}, false
	}
	return t.legs[i], true
}

func (j *job) pathRows(parts []rankPart, steps int) []pathRow {
	var all int64
	for _, p := range parts {
		all += p.ns
	}
	rows := []pathRow{}
	for _, p := range parts[:min(len(parts), pathLimit)] {
		rows = append(rows, pathRow{Rank: &p.rank, Stage: p.stage.String(), US: us(p.ns / int64(max(steps, 1))), Share: ratio(p.ns, all)})
	}
	return rows
}

// pathText is the critical path through the ranks in a sentence.
func (j *job) pathText() string {
	parts, _ := j.path()
	var all int64
	for _, p := range parts {
		all += p.ns
	}
	var texts []string
	for _, p := range parts[:min(len(parts), 5)] {
		if ratio(p.ns, all) >= 0.01 {
			texts = append(texts, fmt.Sprintf("rank %d, %s %s", p.rank, p.stage, percent(ratio(p.ns, all))))
		}
	}
	return strings.Join(texts, "; ")
}
