package joblog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/errortext"
	"github.com/warpline-ml/warpline/internal/finding"
)

// What to do, as the first words of the verdict.
const (
	verdictRestart = "restart here"
	verdictDrain   = "drain this node"
	verdictProgram = "fix the program"
)

// together is that two failures are of one moment: clocks of nodes differ by less.
const together = 2 * time.Second

// job is what the logs of a job say together.
type job struct {
	logs   []*Log
	events []*Event // of all, in their order
	hangs  []*Hang
	seen   map[int]bool
	world  int
	wait   *stuck
}

// jobOf puts logs together.
func jobOf(logs []*Log) *job {
	j := &job{logs: logs, seen: map[int]bool{}}
	for _, l := range logs {
		j.events = append(j.events, l.Events...)
		j.hangs = append(j.hangs, l.Hangs...)
		j.world = max(j.world, l.World)
		for r := range l.Ranks {
			if r >= 0 {
				j.seen[r] = true
			}
		}
	}
	j.wait = waits(j.hangs, j.world, j.seen)
	j.world = max(j.world, j.wait.world)
	j.settle()
	return j
}

// settle lets exits and the texts of one rank be one failure: the table of torchrun knows rank, node and time, the traceback
// the reason.
func (j *job) settle() {
	for _, e := range j.events {
		if e.class != exit {
			continue
		}
		t := j.textOf(e)
		if t == nil {
			continue
		}
		if t.Rank < 0 {
			t.Rank = e.Rank
		}
		t.Node = cmp.Or(t.Node, e.Node)
		if t.At.IsZero() {
			t.At = e.At
		}
		e.class = consequence
	}
}

// textOf is the error text that an exit is of: one of its rank, or the only one whose rank is not known.
func (j *job) textOf(e *Event) *Event {
	var alone *Event
	n := 0
	for _, t := range j.events {
		if t.class > network || t.class == outside {
			continue
		}
		switch {
		case t.Rank >= 0 && t.Rank == e.Rank, t.Rank < 0 && t.Local >= 0 && t.Local == e.Local:
			return t
		case t.Rank < 0 && t.Local < 0:
			alone = t
			n++
		}
	}
	if e.Exit == 1 && n > 0 && (n == 1 || e.Rank < 0 || !e.Late) {
		return alone
	}
	return nil
}

// root is the first failure, or nil where nothing failed.
func (j *job) root() *Event {
	var best *Event
	for _, e := range j.events {
		if e.class < hang && (best == nil || j.earlier(e, best)) {
			best = e
		}
	}
	return best
}

// earlier tells that a is the root rather than b: by time, in one log by place, else by what it is.
func (j *job) earlier(a, b *Event) bool {
	if a.Late != b.Late {
		return b.Late
	}
	weak := func(e *Event) bool { return e.class == exit || e.class == network }
	if weak(a) != weak(b) && !(a.class == exit && a.Exit < -1) && !(b.class == exit && b.Exit < -1) {
		return weak(b) // an exit without a word, and what peers notice, only count where nothing says more
	}
	if before, known := a.At.before(b.At); known && !a.At.Equal(b.At.Time) {
		return before
	}
	if a.File == b.File && a.File != "" {
		return a.Line < b.Line
	}
	return a.class < b.class
}

// also are failures of other ranks in the moment of the root, which clocks cannot tell apart.
func (j *job) also(root *Event) (ranks []int) {
	for _, e := range j.events {
		if e == root || e.class >= exit || e.Rank == root.Rank || e.Rank < 0 || e.At.IsZero() || root.At.IsZero() {
			continue
		}
		if d := e.At.Sub(root.At.Time); d >= 0 && d < together {
			ranks = append(ranks, e.Rank)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

// waitedBefore tells that ranks had begun to wait before the event: then the event is not why.
func (j *job) waitedBefore(e *Event) bool {
	if len(j.wait.ranks) == 0 || e.class < exit && e.class != setup && e.At.IsZero() {
		return false
	}
	for _, r := range j.wait.ranks {
		h := j.wait.first[r]
		if before, known := h.At.before(e.At); known && before {
			return true
		}
		if _, known := h.At.before(e.At); !known && h.File == e.File && h.Line < e.Line {
			return true
		}
	}
	return false
}

// findings are what the job's logs mean, its root first.
func (j *job) findings() (all []finding.Finding, root *Event) {
	root = j.root()
	if root != nil && j.waitedBefore(root) {
		root = nil
	}
	switch {
	case root != nil:
		all = append(all, j.verdict(root))
		for _, f := range errortext.Merged(root.found) {
			if f.Rule != "J01" {
				all = append(all, f)
			}
		}
	case j.hangSign() != nil:
		all = append(all, *j.hangSign())
	case len(j.wait.ranks) > 0:
		all = append(all, *j.wait.finding())
	default:
		all = j.unexplained()
	}
	return all, root
}

// unexplained is that something failed after a cause that no line names.
func (j *job) unexplained() []finding.Finding {
	i := slices.IndexFunc(j.events, func(e *Event) bool { return e.class == consequence && e.says != "" })
	if i < 0 {
		return nil
	}
	e := j.events[i]
	return []finding.Finding{{Rule: "J03", Name: e.Name, Title: verdictRestart + ": " + e.says, Evidence: []finding.Evidence{e.quote()}, Fix: e.fix,
		Gain: finding.Gain{Text: "the next failure names its cause"}, Confidence: finding.Low, DisprovedBy: "an error above it, or in the log of another rank", Line: fmt.Sprintf("line %d", e.Line)}}
}

// hangSign is the finding of a text that names itself who did not come, or nil.
func (j *job) hangSign() *finding.Finding {
	for _, e := range j.events {
		if e.class != hang {
			continue
		}
		f := &finding.Finding{Rule: "R37", Name: e.Name, Evidence: []finding.Evidence{e.quote()}, Gain: finding.Gain{Text: "the run goes on"}, Confidence: finding.High, Line: fmt.Sprintf("line %d", e.Line),
			DisprovedBy: "the ranks belong to different process groups"}
		if len(e.Missing) > 0 {
			f.Title = fmt.Sprintf("%s: rank %s did not come to the barrier", verdictProgram, listed(e.Missing))
			f.Fix = fmt.Sprintf("read the log of rank %d before that time: it failed, or takes another way", e.Missing[0])
			return f
		}
		f.Title = verdictProgram + ": ranks called different collectives: " + strings.TrimPrefix(e.Text, "Detected mismatch between collectives on ranks. ")
		f.Fix = "look for a branch on the rank before that call: all ranks must make the same calls in the same order"
		return f
	}
	return nil
}

// place is where and when, in words.
func (e *Event) place() string {
	var parts []string
	if e.Node != "" {
		parts = append(parts, e.Node)
	}
	switch {
	case !e.At.IsZero():
		parts = append(parts, e.At.String())
	case !e.After.IsZero():
		parts = append(parts, "after "+e.After.String())
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// name is the rank in words.
func (e *Event) name() string {
	switch {
	case e.Rank >= 0:
		return fmt.Sprintf("rank %d", e.Rank)
	case e.Local >= 0:
		return fmt.Sprintf("local rank %d", e.Local)
	}
	return "a rank"
}

func (e *Event) quote() finding.Evidence {
	where := fmt.Sprintf("line %d", e.Line)
	if e.File != "" {
		where = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return finding.Evidence{Name: "text", Value: e.Text, Text: where + ": " + e.Text}
}

// verdict is the finding of the root.
func (j *job) verdict(e *Event) finding.Finding {
	f := finding.Finding{Evidence: []finding.Evidence{e.quote()}, Gain: finding.Gain{Text: "the job runs again"}, Confidence: finding.High, Line: cmp.Or(e.Site, fmt.Sprintf("line %d", e.Line))}
	do, what := j.judge(e, &f)
	f.Title = fmt.Sprintf("%s: %s%s %s", do, e.name(), e.place(), what)
	if e.Rank < 0 && e.Local < 0 && e.class == outside {
		f.Title = fmt.Sprintf("%s: %s%s", do, what, e.place())
	}
	f.Title += j.rest(e)
	if since := j.waiting(); !since.IsZero() {
		f.Evidence = append(f.Evidence, finding.Evidence{Name: "waiting_since", Value: since.String(), Text: fmt.Sprintf("%s began to wait at %s", ranksOf(j.wait.ranks), since)})
	}
	if also := j.also(e); len(also) > 0 {
		f.Confidence = finding.Medium
		f.Evidence = append(f.Evidence, finding.Evidence{Name: "also", Value: listed(also), Text: fmt.Sprintf("rank %s failed in the same %d seconds: clocks do not tell which was first", listed(also), int(together/time.Second))})
	}
	f.DisprovedBy = cmp.Or(f.DisprovedBy, "a failure of another rank before it, in a log that is not here")
	return f
}

// waiting is when the first of the others began to wait; zero where nobody did, or no log says.
func (j *job) waiting() (first stamp) {
	for _, r := range j.wait.ranks {
		at := j.wait.first[r].since()
		if before, known := at.before(first); known && before || first.IsZero() {
			first = at
		}
	}
	return first
}

// judge gives the verdict's rule, fix and words.
func (j *job) judge(e *Event, f *finding.Finding) (do, what string) {
	if len(e.found) > 0 {
		f.Fix, what = e.found[0].Fix, "failed first: "+e.found[0].Title
		f.DisprovedBy = e.found[0].DisprovedBy
	} else {
		f.Fix, what = e.fix, "failed first: "+e.says
	}
	switch e.class {
	case hardware:
		f.Rule, f.Name = "J02", "hardware"
		if e.Node != "" {
			f.Fix = strings.ReplaceAll(f.Fix, "NODE", e.Node)
		}
		return verdictDrain, what
	case outside:
		f.Rule, f.Name = "J03", "ended-from-outside"
		return verdictRestart, e.says
	case network:
		f.Rule, f.Name, f.Confidence = "J03", "network", finding.Medium
		if e.Peer != "" {
			f.Evidence = append(f.Evidence, finding.Evidence{Name: "peer", Value: e.Peer, Text: "the peer is " + e.Peer})
		}
		return verdictRestart, what
	case host:
		f.Rule, f.Name = "J04", "host"
		return verdictProgram, what
	case exit:
		return j.exited(e, f)
	}
	f.Rule, f.Name = "J01", "own-error"
	if e.class == setup && e.Node != "" && len(j.nodes()) > 1 {
		f.Rule, f.Name = "J02", "setup"
		return verdictDrain, what
	}
	return verdictProgram, what
}

// nodes are those that wrote or failed.
func (j *job) nodes() map[string]bool {
	all := map[string]bool{}
	for _, e := range j.events {
		if e.Node != "" {
			all[e.Node] = true
		}
	}
	for _, l := range j.logs {
		for n := range l.net.nodes {
			all[n] = true
		}
	}
	return all
}

// exited is the verdict over an exit status without a word of why.
func (j *job) exited(e *Event, f *finding.Finding) (do, what string) {
	f.Confidence = finding.Medium
	switch e.Exit {
	case -9, 137:
		f.Rule, f.Name = "J04", "killed"
		f.Fix = "see whether it was for want of host memory: dmesg -T | grep -i oom on that node; then ask for more (--mem), fewer loader workers, checkpoints read with mmap=True"
		f.DisprovedBy = "neither dmesg nor the cgroup's memory.events knows of it: then the scheduler or a person sent the signal"
		return verdictProgram, "was killed first (SIGKILL), without a word: most often for want of host memory"
	case -7, 135:
		f.Rule, f.Name = "J04", "bus-error"
		f.Fix = "give /dev/shm more room (docker run --shm-size=8g, or --ipc=host); until then num_workers=0"
		f.DisprovedBy = "df -h /dev/shm shows room while it runs"
		return verdictProgram, "ended first by a bus error (SIGBUS): most often shared memory ran out"
	case -11, 139:
		f.Rule, f.Name = "J01", "segfault"
		f.Fix = "python -X faulthandler names the line; an extension that was built for another PyTorch is the usual cause"
		return verdictProgram, "crashed first in native code (SIGSEGV)"
	case -15, 143:
		f.Rule, f.Name, f.Fix = "J03", "ended-from-outside", "start it again from its last checkpoint; the scheduler's log says who sent the signal"
		return verdictRestart, "was told to end first (SIGTERM)"
	case -6, 134:
		f.Rule, f.Name = "J01", "aborted-exit"
		f.Fix = "read that rank's own log: NCCL's watchdog or an assertion of C++ ends it so, and says why"
		return verdictProgram, "aborted first (SIGABRT)"
	}
	f.Rule, f.Name, f.Confidence = "J01", "exit-status", finding.Low
	f.Fix = "read that rank's own log (torchrun --log-dir logs --redirects 3 --tee 3 keeps one of each)"
	return verdictProgram, fmt.Sprintf("ended first with status %d, and its reason is not in this log", e.Exit)
}

// rest says what became of the others.
func (j *job) rest(root *Event) string {
	others := map[int]bool{}
	for _, e := range j.events {
		if e != root && e.Rank >= 0 && e.Rank != root.Rank {
			others[e.Rank] = true
		}
	}
	for _, r := range j.wait.ranks {
		if r != root.Rank {
			others[r] = true
		}
	}
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("; what %d other rank%s report%s later is its consequence", len(others), plural(len(others)), third(len(others)))
}

// ranksOf are ranks in words.
func ranksOf(all []int) string {
	if len(all) == 1 {
		return fmt.Sprintf("rank %d", all[0])
	}
	return "ranks " + listed(all)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func third(n int) string {
	if n == 1 {
		return "s"
	}
	return ""
}

// figures are those of a job.
func (j *job) figures(root *Event, all []finding.Finding) map[string]any {
	out := map[string]any{"ranks": len(j.seen), "events": len(j.events), "timeouts": len(j.hangs)}
	if j.world > 0 {
		out["world"] = j.world
	}
	n := 0
	for _, e := range j.events {
		if e != root {
			n++
		}
	}
	out["consequences"] = n
	if len(all) > 0 {
		if do, _, ok := strings.Cut(all[0].Title, ":"); ok && (do == verdictDrain || do == verdictProgram || do == verdictRestart) {
			out["verdict"] = do
		}
	}
	if root == nil {
		return out
	}
	out["root_line"], out["root_file"] = root.Line, root.File
	if root.Rank >= 0 {
		out["root_rank"] = root.Rank
	}
	if root.Node != "" {
		out["root_node"] = root.Node
	}
	if at := cmp.Or(root.At.String(), root.After.String()); at != "" {
		out["root_time"] = at
	}
	maps.Copy(out, root.figures)
	return out
}

// report is what a log says by itself.
func (l *Log) report() *finding.Report {
	j := jobOf([]*Log{l})
	r := &finding.Report{File: l.File, Detail: l}
	l.kind(r)
	if r.Kind == "error" {
		l.single(r)
	}
	if len(r.Findings) == 0 { // of several processes, or what signs say, which are no error texts
		var root *Event
		r.Findings, root = j.findings()
		r.Figures = j.figures(root, r.Findings)
	}
	r.Figures["lines"] = l.Lines
	r.Findings = append(r.Findings, l.leak(r.Findings)...)
	r.Findings = append(r.Findings, l.printed(r.Findings)...)
	r.Findings = append(r.Findings, errortext.Merged(append(l.notices, l.net.findings(j.world)...))...)
	r.Checked = l.checked(j, r.Findings)
	return r
}

// kind tells an error, the log of a job and that of NCCL apart.
func (l *Log) kind(r *finding.Report) {
	texts := slices.ContainsFunc(l.Events, func(e *Event) bool { return e.class < exit })
	switch {
	case (l.nccl > 0 || len(l.Hangs) > 0) && !texts && (len(l.Hangs) > 0 || l.nccl*2 >= l.Lines):
		r.Kind = "nccl-log"
	case l.launcher || len(l.Ranks) > 1 || len(l.Hangs) > 0 || len(l.Events) == 0 && l.marks > 0:
		r.Kind = "job-log"
	default:
		r.Kind = "error"
	}
}

// single is the report of a text of one process: its errors as they are, without a verdict over ranks.
func (l *Log) single(r *finding.Report) {
	r.Figures = map[string]any{}
	var unnamed []finding.Finding
	for _, e := range l.Events {
		if e.class == consequence {
			continue
		}
		if len(r.Figures) == 0 {
			maps.Copy(r.Figures, e.figures)
		}
		for _, f := range e.found {
			if f.Name == "exception" {
				unnamed = append(unnamed, f)
				continue
			}
			r.Findings = append(r.Findings, f)
		}
	}
	r.Findings = errortext.Merged(r.Findings)
	if len(r.Findings) == 0 {
		r.Findings = errortext.Merged(unnamed)
	}
	finding.Sort(r.Findings)
}

// leak is that memory grew up to an out-of-memory.
func (l *Log) leak(found []finding.Finding) []finding.Finding {
	full := slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Rule == "R11" || f.Rule == "O12" || f.Rule == "O04" })
	if f := l.Growth.Leak(); f != nil && full {
		return []finding.Finding{*f}
	}
	return nil
}

// printed is what the figures say that the training prints of itself, but what an error text has said.
func (l *Log) printed(found []finding.Finding) []finding.Finding {
	return slices.DeleteFunc(l.numbers.Findings(), func(f finding.Finding) bool {
		return slices.ContainsFunc(found, func(o finding.Finding) bool { return o.Rule == f.Rule })
	})
}

// checked is what was looked at and is healthy.
func (l *Log) checked(j *job, found []finding.Finding) (all []string) {
	if len(found) == 0 {
		all = append(all, fmt.Sprintf("%d lines: no error text, no failed rank, no timeout of a collective, no kill", l.Lines))
	}
	if len(j.hangs) == 0 && l.nccl > 0 {
		all = append(all, "no collective timed out")
	}
	if len(j.seen) > 1 {
		all = append(all, fmt.Sprintf("%d ranks wrote", len(j.seen)))
	}
	return append(all, l.numbers.Checked()...)
}

// Group is what the reports of several logs and flight-recorder files say together.
func Group(_ context.Context, members []*finding.Report) (*finding.Report, error) {
	var logs []*Log
	var recorders []*finding.Report
	for _, m := range members {
		switch d := m.Detail.(type) {
		case *Log:
			logs = append(logs, d.named())
		case *Dump:
			recorders = append(recorders, m)
		}
	}
	j := jobOf(logs)
	all := &finding.Report{Kind: "group"}
	var root *Event
	all.Findings, root = j.findings()
	all.Figures = j.figures(root, all.Findings)
	if len(logs) == 0 {
		all.Figures = map[string]any{}
	}
	if dumps := dumpsOf(recorders); len(dumps) > 1 {
		f, checked, figures := compare(dumps)
		all.Findings = append(all.Findings, f...)
		all.Checked = append(all.Checked, checked...)
		for k, v := range figures {
			all.Figures[k] = v
		}
	}
	var net transport
	for _, l := range logs {
		net.join(&l.net)
	}
	all.Findings = append(all.Findings, net.findings(j.world)...)
	if len(all.Findings) == 0 && len(logs) > 0 {
		all.Checked = append(all.Checked, fmt.Sprintf("%d logs of %d ranks: no error text, no failed rank, no timeout of a collective", len(logs), max(len(j.seen), len(logs))))
	}
	return all, nil
}

// named gives events that name no rank and no node those of the file's name.
func (l *Log) named() *Log {
	rank, node := rankOf(l.File), nodeOf(l.File)
	if rank >= 0 && len(l.Ranks) <= 1 {
		l.Ranks[rank] = true
		for _, e := range l.Events {
			if e.Rank < 0 && e.class != outside {
				e.Rank = rank
			}
		}
	}
	for _, e := range l.Events {
		e.Node = cmp.Or(e.Node, node)
	}
	return l
}
