// Package snapshot reads what PyTorch and Warpline write of a device's memory, snapshots (torch.cuda.memory._dump_snapshot,
// prof.History) and raw timelines (export_memory_timeline), and says who holds memory, whether it grows from step to step,
// what is stuck and what the allocator gives back by itself, and who made the peak.
//
// The format of snapshots is that of torch/cuda/memory.py (_snapshot), read by package pickle, which runs no code.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/pickle"
	"github.com/warpline-ml/warpline/internal/render"
)

// oldPickle is the begin of a file of the first protocol that calls something at once, as made to do harm.
var oldPickle = regexp.MustCompile(`^c[\w.]+\n[\w.]+\n`)

// Is says whether a file that begins with head is a pickle. Which one shows only on reading: Diagnose says of others that they
// are no snapshots, and what code they name.
func Is(head []byte) bool {
	return len(head) > 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 || oldPickle.Match(head)
}

// Diagnose reads a snapshot. A file that is cut gives a report of what is before the cut, with a note; one that names code, or
// is no snapshot, is an error that says where.
func Diagnose(ctx context.Context, name string, r io.Reader) (*finding.Report, error) {
	s, d, err := read(reader{ctx, r})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil && (s == nil || errors.Is(err, pickle.ErrCode)) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	report := s.report()
	report.File = name
	if err != nil {
		events := 0
		for _, t := range s.Traces {
			events += len(t)
		}
		report.Notes, report.Checked = []string{cutNote(err, events)}, []string{} // what is missing is neither well nor free
	}
	if d.Replaced > 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("%d names have bytes that are no UTF-8", d.Replaced))
	}
	return report, nil
}

// reader ends when its context does.
type reader struct {
	context.Context
	r io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// report has the figures of all devices together, and findings of each.
func (s *Snapshot) report() *finding.Report {
	r := &finding.Report{Kind: "snapshot", Figures: map[string]any{}, Findings: []finding.Finding{}, Checked: []string{}, Detail: s}
	devices := s.devices()
	for _, device := range devices {
		l := s.look(device)
		if len(devices) > 1 {
			l.name = fmt.Sprintf("GPU %d: ", device)
		}
		r.Findings = append(r.Findings, l.judge()...)
		r.Checked = append(r.Checked, l.healthy()...)
		r.Notes = append(r.Notes, l.unjudged()...)
		if left := l.headroom(); left != "" && len(r.Findings) == 0 {
			r.Notes = append(r.Notes, left)
		}
		for k, v := range l.traceFigures(len(devices) > 1) {
			r.Figures[k] = v
		}
	}
	finding.Sort(r.Findings)
	kinds := map[uint64]string{}
	if len(devices) == 1 {
		kinds = s.look(devices[0]).kinds
	}
	s.stateOf(everything, kinds).figures(r.Figures)
	r.Figures["settings_expandable"] = s.expandable()
	r.Figures["top_keys"] = s.Keys
	return r
}

// devices are those that the file has something of.
func (s *Snapshot) devices() (out []int) {
	seen := map[int]bool{}
	for i, t := range s.Traces {
		if len(t) > 0 {
			seen[i] = true
		}
	}
	for _, seg := range s.Segments {
		seen[seg.Device] = true
	}
	for i := range maxDevices {
		if seen[i] {
			out = append(out, i)
		}
	}
	return out
}

// maxDevices are more than a machine has.
const maxDevices = 1024

func (s *Snapshot) look(device int) *look {
	var events []*Event
	if device < len(s.Traces) {
		events = s.Traces[device]
	}
	h := historyOf(events)
	return &look{Snapshot: s, state: s.stateOf(device, h.kinds), history: h}
}

// shown is how many lines a figure lists.
const shown = 10

// figures are those of memory at the end.
func (t *state) figures(f map[string]any) {
	f["segments"], f["blocks"], f["block_states"] = t.segments, t.blocks, t.states
	f["reserved"], f["allocated"], f["active"], f["requested"] = t.reserved, t.allocated, t.active, t.requested
	f["largest_inactive_block"] = t.largest
	f["inactive_bytes_in_segments_with_live_blocks"], f["inactive_bytes_in_fully_free_segments"] = t.stuck, t.free
	f["live"], f["stuck"], f["reclaimable"] = t.allocated, t.stuck, t.free
	f["live_by"] = t.live[:min(shown, len(t.live))]
	if t.private > 0 {
		f["inactive_bytes_in_private_pools"] = t.private
	}
}

// traceFigures are those of a device's events: trace0, and the peak.
func (l *look) traceFigures(many bool) map[string]any {
	f := map[string]any{}
	if len(l.events) == 0 {
		return f
	}
	number := strconv.Itoa(l.device)
	trace := map[string]any{"entries": len(l.events), "actions": l.actions, "net": l.net, "peak_delta": l.peakDelta(),
		"time_us": []int64{l.events[0].Time, l.events[len(l.events)-1].Time}}
	if l.device == 0 {
		trace["entry_keys"] = l.First
	}
	f["trace"+number] = trace
	if !l.peaked() {
		return f
	}
	before := l.baseline(l.state)
	held := l.at(l.peak, before)
	peak := map[string]any{"bytes": l.top(), "time_us": l.events[l.peak].Time, "line": l.events[l.peak].stack.where(), "by": held[:min(shown, len(held))]}
	if many {
		f["peak"+number] = peak
	} else {
		f["peak"] = peak
	}
	return f
}

// healthy is what was looked at and needs nothing done: what the file has, and nothing else.
func (l *look) healthy() (out []string) {
	say := func(format string, args ...any) { out = append(out, l.name+fmt.Sprintf(format, args...)) }
	if l.blocks > 0 && l.fragmented() == nil {
		say("no fragmentation: %s of %s reserved is stuck beside live blocks (%s, 10 %% is the limit); %s more is reclaimable: the allocator gives it back by itself before it fails",
			render.Bytes(l.pinned), render.Bytes(l.reserved), part(l.pinned, l.reserved), render.Bytes(l.free))
		say("a request of up to %s fits without new memory", render.Bytes(l.largest))
	}
	allocs, frees := l.actions["alloc"], l.actions["free_completed"]
	if allocs > 0 && allocs == frees && l.net == 0 {
		say("steady: %d allocations and as many frees, which even out", allocs)
	} else if l.stepsSeen() > growingSteps && l.growing() == nil {
		say("no growth from step to step is seen over %d steps: %d allocations, %d frees, net %s", l.stepsSeen(), allocs, frees, render.Bytes(l.net))
	}
	if allocs > 0 && len(l.ooms) == 0 {
		say("no request failed in the trace")
	}
	if l.peaked() {
		say("the peak is %s, at %s", render.Bytes(l.top()), l.events[l.peak].stack.where())
	}
	if l.emptiesCache() == nil {
		for _, b := range l.emptied[:min(emptiedOften, len(l.emptied))] {
			say("%d segment_free are one empty_cache() of the program, which gave %s back: no sign of fragmentation", b.segments, render.Bytes(b.bytes))
		}
	}
	return out
}

// stepsSeen is how many steps the trace shows.
func (l *look) stepsSeen() int { return len(l.phases(l.Marks, l.device)) }

// peaked tells that the peak is known: what was there before the trace, and what it added.
func (l *look) peaked() bool { return l.peak >= 0 && l.segments > 0 }

// top is the most that was in use.
func (l *look) top() int64 { return l.baseline(l.state) + l.peakDelta() }

// unjudged is what the file leaves open.
func (l *look) unjudged() (out []string) {
	say := func(format string, args ...any) {
		out = append(out, l.name+"could not be judged: "+fmt.Sprintf(format, args...))
	}
	if l.blocks == 0 {
		say("fragmentation, since the file has no blocks of segments")
	}
	switch allocs := l.actions["alloc"]; {
	case allocs == 0:
		say("growth and the peak, since the file has no trace of allocations (torch.cuda.memory._record_memory_history() before the steps)")
	case allocs == l.actions["free_completed"] && l.net == 0:
	case l.stepsSeen() <= growingSteps:
		say("growth from step to step, since the trace shows %d steps and %d are needed", l.stepsSeen(), growingSteps+1)
	}
	return out
}

// headroom says which card the memory would have fitted, since a snapshot does not say which it was.
func (l *look) headroom() string {
	need := l.allocated
	if l.peaked() {
		need = max(need, l.top())
	}
	if need <= 0 || len(l.ooms) > 0 {
		return ""
	}
	s := fmt.Sprintf("%sheadroom: %s in use at most, %s reserved", l.name, render.Bytes(need), render.Bytes(l.reserved))
	best := cards.Card{}
	for _, c := range cards.All {
		if c.Memory >= need+cards.Context && (best.Memory == 0 || c.Memory < best.Memory) {
			best = c
		}
	}
	if best.Memory == 0 {
		return s + "; the file does not say how much the card has, and no single card is known that has as much"
	}
	return s + fmt.Sprintf("; the file does not say how much the card has: with %s for the driver it fits from %s (%s) on, which would have %s left",
		render.Bytes(cards.Context), render.Bytes(best.Memory), best.Model, render.Bytes(best.Memory-need-cards.Context))
}
