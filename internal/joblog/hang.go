package joblog

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Hang is a collective that a rank waited for in vain, as NCCL's watchdog tells it.
type Hang struct {
	Rank      int
	inGroup   int    // its rank in the process group
	Group     string // process group, empty where the text does not say
	Seq       int64
	Op        string
	In        int64 // elements; below 0: unknown
	Out       int64
	Waited    time.Duration
	At        stamp
	Enqueued  int64 // last, below 0: unknown
	Completed int64
	File      string
	Line      int64
}

var (
	timedOut = regexp.MustCompile(`Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d+), OpType=(\w+)(?:, TensorShape=\[[^\]]*\])?(?:, NumelIn=(\d+), NumelOut=(\d+))?(?:, Timeout\(ms\)=(\d+))?\)\s+ran for (\d+) milliseconds`)
	progress = regexp.MustCompile(`\[PG (?:ID )?(\S+)(?: \(?[\w-]+\)?)?(?: PG GUID [^\]]*?)? Rank (\d+)\].*?(?:at work(?: sequence id)?|NCCL work): (\d+),? (?:PG status: )?last enqueued (?:NCCL )?work: (-?\d+), last completed (?:NCCL )?work: (-?\d+)`)
)

// mostHangs is how many are kept of a log.
const mostHangs = 16 << 10

// watchdog reads a line of NCCL's watchdog, if it is one.
func (p *parser) watchdog(text string, n int64, o origin) bool {
	if !strings.Contains(text, "atchdog") && !strings.Contains(text, "last enqueued") {
		return false
	}
	if m := timedOut.FindStringSubmatch(text); m != nil {
		ms, _ := strconv.ParseInt(m[6], 10, 64)
		h := &Hang{Rank: o.rank, inGroup: o.inGroup, Seq: big(m[1]), Op: m[2], In: big(m[3]), Out: big(m[4]), Waited: time.Duration(min(ms, 1<<40)) * time.Millisecond, At: o.at, Enqueued: nobody, Completed: nobody, File: p.File, Line: n}
		if h.Rank >= 0 {
			p.Ranks[h.Rank] = true
		}
		if len(p.Hangs) < mostHangs {
			p.Hangs = append(p.Hangs, h)
		}
		p.marks++
		return true
	}
	m := progress.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	for _, h := range slices.Backward(p.Hangs) {
		if h.inGroup == number(m[2]) && (o.rank < 0 || h.Rank == o.rank) && h.Seq == big(m[3]) && h.Group == "" {
			h.Group, h.Enqueued, h.Completed = m[1], big(m[4]), big(m[5])
			break
		}
	}
	return true
}

// big is a whole number, below 0 where there is none.
func big(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return nobody
	}
	return n
}

// since is when the rank began to wait.
func (h *Hang) since() stamp {
	if h.At.IsZero() {
		return h.At
	}
	return stamp{Time: h.At.Add(-h.Waited), yearless: h.At.yearless}
}

// call is the collective in words.
func (h *Hang) call() string {
	s := fmt.Sprintf("%s number %d", strings.ToLower(strings.Trim(h.Op, "_")), h.Seq)
	if h.In >= 0 {
		s += fmt.Sprintf(" of %d elements", h.In)
	}
	return s
}

// stuck is what the ranks that waited say together.
type stuck struct {
	first   map[int]*Hang // the earliest of each rank
	ranks   []int         // that wait
	missing []int         // of the job, that say nothing
	world   int
}

// waits puts the hangs of a job together: of each rank the first collective of the process group that has waited longest.
// Groups count for themselves, so only one is looked at.
func waits(hangs []*Hang, world int, seen map[int]bool) *stuck {
	s := &stuck{first: map[int]*Hang{}, world: world}
	group, whole := longest(hangs)
	for _, h := range hangs {
		if h.Rank < 0 || h.Group != group && h.Group != "" && group != "" {
			continue
		}
		if f := s.first[h.Rank]; f == nil || h.Seq < f.Seq {
			s.first[h.Rank] = h
		}
	}
	s.ranks = slices.Sorted(maps.Keys(s.first))
	for r := range seen {
		s.world = max(s.world, r+1)
	}
	if !whole || len(seen) < 2 {
		return s // who belongs to the group is not said, or it is the log of one rank
	}
	for r := range min(s.world, 1<<14) {
		if s.first[r] == nil {
			s.missing = append(s.missing, r)
		}
	}
	return s
}

// longest is the process group of the hang that has waited longest, and whether all ranks are in it.
func longest(hangs []*Hang) (group string, whole bool) {
	var waited time.Duration
	for _, h := range hangs {
		if h.Waited > waited {
			group, waited = h.Group, h.Waited
		}
	}
	return group, group == "" || group == "0" || strings.Contains(group, "default")
}

// kinds are the waiting ranks by the collective that they wait for, most first.
func (s *stuck) kinds() [][]*Hang {
	by := map[string][]*Hang{}
	for _, r := range s.ranks {
		h := s.first[r]
		key := fmt.Sprint(h.Seq, h.Op, h.In, h.Out)
		by[key] = append(by[key], h)
	}
	var all [][]*Hang
	for _, k := range by {
		all = append(all, k)
	}
	sorting.By(all, func(a, b []*Hang) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a[0].Seq, b[0].Seq), cmp.Compare(a[0].Rank, b[0].Rank))
	})
	return all
}

// recordNext is how the next hang tells more.
const recordNext = "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/shared/nccl_trace_rank_ torchrun …, then warpline diagnose /shared"

// finding is what the hang means; nil where nobody waits.
func (s *stuck) finding() *finding.Finding {
	if len(s.ranks) == 0 {
		return nil
	}
	kinds := s.kinds()
	f := &finding.Finding{Rule: "R37", Name: "hang", Gain: finding.Gain{Text: "the run goes on"}, Evidence: s.evidence(kinds)}
	f.Line = fmt.Sprintf("line %d", kinds[0][0].Line)
	switch {
	case len(kinds) > 1:
		s.differ(f, kinds)
	case len(s.missing) > 0 && len(s.missing) < s.world:
		s.absent(f, kinds[0][0])
	case len(s.ranks) == 1:
		h := kinds[0][0]
		f.Title = fmt.Sprintf("rank %d waited in vain for %s; its log alone does not tell for whom", s.ranks[0], h.call())
		f.Fix = "give the folder with the logs of all ranks: warpline diagnose DIR names the one that is missing"
		f.Confidence, f.DisprovedBy = finding.High, "the job went on afterwards"
	default:
		h := kinds[0][0]
		f.Title = fmt.Sprintf("%s: %d ranks wait for the same %s; which one holds it up cannot be told from this", verdictRestart, len(s.ranks), h.call())
		f.Fix = "start again from the last checkpoint, and with the flight recorder: " + recordNext
		f.Confidence = finding.Low
		f.DisprovedBy = "a rank that stands elsewhere in its stack (py-spy dump --pid PID on each node)"
	}
	return f
}

// differ is the finding of ranks that wait for different collectives.
func (s *stuck) differ(f *finding.Finding, kinds [][]*Hang) {
	most, odd := kinds[0], kinds[len(kinds)-1]
	for _, k := range kinds[1:] {
		if k[0].Seq != most[0].Seq {
			continue
		}
		odd = k
	}
	if most[0].Seq != odd[0].Seq {
		behind, ahead := odd, most
		if most[0].Seq < odd[0].Seq {
			behind, ahead = most, odd
		}
		f.Title = fmt.Sprintf("%s: behind is %s, at %s, while %s came to %s: fewer calls were made there", verdictProgram, who(behind), behind[0].call(), who(ahead), ahead[0].call())
		f.Fix = fmt.Sprintf("look what rank %d leaves out, or the others do more: a branch on the rank or the data, batches of uneven number (join, drop_last=True), an evaluation or a checkpoint on rank 0 alone", behind[0].Rank)
	} else {
		f.Title = fmt.Sprintf("%s: the call of %s is %s, and that of %s is %s", verdictProgram, who(odd), odd[0].call(), who(most), most[0].call())
		f.Fix = fmt.Sprintf("look for a branch on the rank before that call: rank %d takes another way; TORCH_DISTRIBUTED_DEBUG=DETAIL names the call and its line", odd[0].Rank)
	}
	f.Confidence, f.DisprovedBy = finding.High, "the ranks belong to different process groups, of which each counts for itself"
}

// absent is the finding of ranks that never came.
func (s *stuck) absent(f *finding.Finding, h *Hang) {
	f.Title = fmt.Sprintf("%s: %d of %d ranks wait for %s, and %s did not come to it", verdictRestart, len(s.ranks), s.world, h.call(), ranksOf(s.missing))
	f.Fix = fmt.Sprintf("read the log of rank %d at the time when the others began to wait%s; if it says nothing, start again and watch that node: py-spy dump --pid PID shows where it stands", s.missing[0], when(h.since()))
	f.Confidence, f.DisprovedBy = finding.Medium, fmt.Sprintf("rank %d waits as well and its log is not here", s.missing[0])
}

// when is a time behind a word, or empty.
func when(at stamp) string {
	if at.IsZero() {
		return ""
	}
	return " (" + at.String() + ")"
}

// evidence are the figures of a hang.
func (s *stuck) evidence(kinds [][]*Hang) (all []finding.Evidence) {
	for _, k := range kinds[:min(len(kinds), 4)] {
		h := k[0]
		text := fmt.Sprintf("%s waited %s for %s", who(k), render.Duration(h.Waited), h.call())
		if h.Enqueued >= 0 {
			text += fmt.Sprintf(" (last enqueued %d, last completed %d)", h.Enqueued, h.Completed)
		}
		all = append(all, finding.Evidence{Name: "collective", Value: h.Seq, Text: text})
	}
	if len(s.missing) > 0 && len(s.missing) < s.world {
		all = append(all, finding.Evidence{Name: "missing", Value: listed(s.missing), Text: "nothing is said by " + ranksOf(s.missing)})
	}
	return all
}

// who are the ranks of some hangs in words.
func who(hangs []*Hang) string {
	var all []int
	for _, h := range hangs {
		all = append(all, h.Rank)
	}
	return ranksOf(all)
}

// listed are ranks as people write them: "0-2, 5".
func listed(all []int) string {
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	var parts []string
	for i := 0; i < len(all); {
		j := i
		for j+1 < len(all) && all[j+1] == all[j]+1 {
			j++
		}
		switch {
		case j == i:
			parts = append(parts, strconv.Itoa(all[i]))
		case j == i+1:
			parts = append(parts, strconv.Itoa(all[i]), strconv.Itoa(all[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", all[i], all[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
