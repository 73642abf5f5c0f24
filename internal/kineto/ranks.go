package kineto

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Thresholds of the comparison of ranks.
const (
	lateShare = 0.05 // of a step that a rank comes later than the first to a collective
	lateSteps = 0.5  // of the steps in which it is the same rank
	apart     = 0.03 // by which a rank's kernels take longer than the same kernels of others, for its clocks to be the reason
)

// Group says what the traces of several ranks of a job show together: who the others wait for, and why. A collective ends on
// all its ranks at once, which is what their clocks are aligned by. Collectives are matched by process group and number; sends
// and receives never are. The members' Details must be of Diagnose.
func Group(ctx context.Context, members []*finding.Report) (*finding.Report, error) {
	rep := &finding.Report{Kind: "group", Figures: map[string]any{}}
	j := newJob(members, rep)
	if len(j.ranks) < 2 {
		return rep, ctx.Err()
	}
	j.match()
	j.align()
	j.figures()
	j.judge()
	return rep, ctx.Err()
}

// job is several ranks of one training.
type job struct {
	report *finding.Report
	ranks  []*rank
	meets  []*meeting
	late   *lateness
}

// rank is one of them.
type rank struct {
	*Trace
	n      int    // of the job
	file   string // that it is of
	skew   int64  // its clock is ahead of the first's by this
	known  bool   // skew is
	marked []Step // steps of the window that is judged
}

// meeting is a collective that several ranks were seen at.
type meeting struct {
	at       []int32 // by rank: index in its Collectives; -1
	numbered bool    // the recorder had numbered it
}

func newJob(members []*finding.Report, rep *finding.Report) *job {
	j := &job{report: rep}
	world := 0
	for i, m := range members {
		t, ok := m.Detail.(*Trace)
		if !ok || t == nil {
			continue
		}
		r := &rank{Trace: t, n: t.Rank, file: m.File}
		if r.n < 0 {
			r.n = i
			j.note("%s does not say its rank, and is taken for rank %d", m.File, i)
		}
		if other := slices.IndexFunc(j.ranks, func(o *rank) bool { return o.n == r.n }); other >= 0 {
			j.note("%s and %s are both of rank %d: the second is left out of the comparison", j.ranks[other].file, m.File, r.n)
			continue
		}
		r.marked = r.stepsWithin(r.Judged)
		world = max(world, t.World)
		j.ranks = append(j.ranks, r)
	}
	sorting.By(j.ranks, func(a, b *rank) int { return cmp.Compare(a.n, b.n) })
	if world > len(j.ranks) {
		j.note("traces of %d of the job's %d ranks: what the others do is not seen", len(j.ranks), world)
	}
	return j
}

func (j *job) note(format string, args ...any) {
	j.report.Notes = append(j.report.Notes, fmt.Sprintf(format, args...))
}

// stepsWithin are the steps of a window; all, where the window is the device's own.
func (t *Trace) stepsWithin(w Window) []Step {
	var in []Step
	for _, s := range t.Steps {
		if s.Start >= w.Start && s.End <= w.End {
			in = append(in, s)
		}
	}
	if len(in) < t.Marked {
		return t.Steps
	}
	return in
}

// meetingKey tells collectives apart: process group, its ranks, the operation where it has no number, and the number.
type meetingKey struct {
	group, ranks, name string
	seq                int64
}

// match finds which collectives of the ranks are one.
func (j *job) match() {
	found := map[meetingKey]*meeting{}
	var order []meetingKey
	loose := j.countable()
	for n, r := range j.ranks {
		for i := range r.Collectives {
			c := &r.Collectives[i]
			k := meetingKey{c.Group, c.Ranks, "", c.Seq}
			switch {
			case c.P2P:
				continue
			case c.Seq < 0 && !loose[meetingKey{c.Group, c.Ranks, c.Name, 0}]:
				continue
			case c.Seq < 0:
				k.name, k.seq = c.Name, int64(c.Order)
			}
			m := found[k]
			if m == nil {
				m = &meeting{at: slices.Repeat([]int32{-1}, len(j.ranks)), numbered: c.Seq >= 0}
				found[k] = m
				order = append(order, k)
			}
			if m.at[n] < 0 { // several kernels of one operation: the first is when it came
				m.at[n] = int32(i)
			}
		}
	}
	for _, k := range order {
		if m := found[k]; m.members() > 1 {
			j.meets = append(j.meets, m)
		}
	}
}

// countable are the groups and operations whose collectives may be told by counting them: where no number is recorded, all
// ranks that have any have as many, and the file names the group's ranks or all ranks of the job are at hand.
func (j *job) countable() map[meetingKey]bool {
	counts := map[meetingKey]map[int]int{}
	for n, r := range j.ranks {
		for i := range r.Collectives {
			c := &r.Collectives[i]
			if c.P2P || c.Seq >= 0 {
				continue
			}
			k := meetingKey{c.Group, c.Ranks, c.Name, 0}
			if counts[k] == nil {
				counts[k] = map[int]int{}
			}
			counts[k][n]++
		}
	}
	may := map[meetingKey]bool{}
	for k, by := range counts {
		same, first := true, -1
		for _, n := range by {
			same = same && (first < 0 || first == n)
			first = n
		}
		whole := k.ranks != "" || len(by) == len(j.ranks) && j.ranks[0].World <= len(j.ranks)
		may[k] = same && whole
	}
	return may
}

func (m *meeting) members() (n int) {
	for _, i := range m.at {
		if i >= 0 {
			n++
		}
	}
	return n
}

// align finds how far the ranks' clocks are apart, from rank to rank by the collectives that they have in common.
func (j *job) align() {
	j.ranks[0].known = true
	for found := true; found; {
		found = false
		for n, r := range j.ranks {
			if r.known {
				continue
			}
			if skews := j.skews(n); len(skews) > 0 {
				r.skew, r.known, found = medianNS(skews), true, true
			}
		}
	}
	j.meets = slices.DeleteFunc(j.meets, func(m *meeting) bool {
		for n, i := range m.at {
			if i >= 0 && !j.ranks[n].known {
				return true
			}
		}
		return false
	})
	sort.SliceStable(j.meets, func(a, b int) bool { return j.end(j.meets[a]) < j.end(j.meets[b]) })
}

// skews are how far rank n's clock is ahead of those that are known, by each collective.
func (j *job) skews(n int) (all []int64) {
	for _, m := range j.meets {
		if m.at[n] < 0 {
			continue
		}
		for o, i := range m.at {
			if r := j.ranks[o]; i >= 0 && r.known {
				all = append(all, j.ranks[n].Collectives[m.at[n]].End-(r.Collectives[i].End-r.skew))
				break
			}
		}
	}
	return all
}

// start is when rank n came, by the first rank's clock.
func (j *job) start(m *meeting, n int) int64 {
	return j.ranks[n].Collectives[m.at[n]].Start - j.ranks[n].skew
}

// end is when the last rank was done.
func (j *job) end(m *meeting) int64 {
	end := int64(-1 << 62)
	for n, i := range m.at {
		if i >= 0 {
			end = max(end, j.ranks[n].Collectives[i].End-j.ranks[n].skew)
		}
	}
	return end
}

// arrivals are who came first and last, and how far they were apart.
func (j *job) arrivals(m *meeting) (last int, spread int64) {
	first, latest := int64(1<<62), int64(-1<<62)
	for n, i := range m.at {
		if i < 0 {
			continue
		}
		at := j.start(m, n)
		first = min(first, at)
		if at > latest {
			latest, last = at, n
		}
	}
	return last, latest - first
}

// lateness is what the collectives tell of who comes late.
type lateness struct {
	steps  int   // that have collectives
	last   []int // by rank: steps in which it comes last, by more than lateShare
	lost   [][]int64
	worst  int // rank
	spread []int64
}

// lates finds, for each step, the collective that the ranks come to furthest apart.
func (j *job) lates() *lateness {
	l := &lateness{last: make([]int, len(j.ranks)), lost: make([][]int64, len(j.ranks))}
	type most struct {
		rank   int
		spread int64
	}
	steps := map[int]most{}
	for _, m := range j.meets {
		last, spread := j.arrivals(m)
		s := j.stepOf(m)
		if s < 0 {
			continue
		}
		if was, ok := steps[s]; !ok || spread > was.spread {
			steps[s] = most{last, spread}
		}
	}
	l.steps = len(steps)
	for s, m := range steps {
		l.spread = append(l.spread, m.spread)
		if float64(m.spread) > lateShare*float64(j.stepTime(s)) {
			l.last[m.rank]++
			l.lost[m.rank] = append(l.lost[m.rank], m.spread)
		}
	}
	for n := range l.last {
		if l.last[n] > l.last[l.worst] {
			l.worst = n
		}
	}
	return l
}

// stepOf is in which of the first member's steps a collective was launched; -1 in none.
func (j *job) stepOf(m *meeting) int {
	for n, i := range m.at {
		if i < 0 {
			continue
		}
		r := j.ranks[n]
		at := r.Collectives[i].Launched
		s := sort.Search(len(r.marked), func(s int) bool { return r.marked[s].End > at })
		if s < len(r.marked) && r.marked[s].Start <= at {
			return s
		}
		return -1
	}
	return -1
}

// stepTime is how long a step is on the rank that has it longest.
func (j *job) stepTime(s int) (ns int64) {
	for _, r := range j.ranks {
		if s < len(r.marked) {
			ns = max(ns, r.marked[s].Dur())
		}
	}
	return ns
}

// RankStep is what is told of one rank, of a step.
type RankStep struct {
	Rank    int     `json:"rank"`
	File    string  `json:"file"`
	Steps   int     `json:"steps"`
	Step    float64 `json:"step_us"`
	Busy    float64 `json:"busy_us"`
	Compute float64 `json:"compute_us"`
	Comm    float64 `json:"comm_us"`
	Loader  float64 `json:"loader_us"`
	Last    int     `json:"last_steps"` // in which it came last, by more than a twentieth
}

// mean is what its steps have on average.
func (r *rank) mean() (m Step) {
	for _, s := range r.marked {
		m.End += s.Dur()
		m.Busy, m.Compute, m.Comm, m.Loader = m.Busy+s.Busy, m.Compute+s.Compute, m.Comm+s.Comm, m.Loader+s.Loader
	}
	if n := int64(len(r.marked)); n > 0 {
		m.End, m.Busy, m.Compute, m.Comm, m.Loader = m.End/n, m.Busy/n, m.Compute/n, m.Comm/n, m.Loader/n
	}
	return m
}

func (j *job) figures() {
	j.late = j.lates()
	f := j.report.Figures
	var rows []RankStep
	for n, r := range j.ranks {
		m := r.mean()
		rows = append(rows, RankStep{r.n, r.file, len(r.marked), us(m.End), us(m.Busy), us(m.Compute), us(m.Comm), us(m.Loader), j.late.last[n]})
	}
	f["ranks"], f["collectives_matched"] = rows, len(j.meets)
	f["arrival_spread_median_us"] = nil
	if len(j.late.spread) > 0 {
		f["arrival_spread_median_us"] = us(medianNS(j.late.spread))
	}
	parts, steps := j.path()
	f["critical_path_of_ranks"] = j.pathRows(parts, steps)
}
