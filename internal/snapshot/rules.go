package snapshot

import (
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

// Thresholds.
const (
	stuckShare   = 0.10     // of reserved memory
	stuckLeast   = 20 << 20 // what the allocator itself leaves of one large segment
	emptiedOften = 3        // bursts of empty_cache() in one trace
	statesShare  = 0.20     // of the peak, made by an optimizer that reaches it
	keptShare    = 0.40     // of what an evaluation makes, in use at once
	keptLeast    = 50       // allocations of an evaluation
	keptOfPeak   = 0.10     // of the peak
)

// look is a device as the rules see it.
type look struct {
	*Snapshot
	*state
	*history
	name string // of the device, where there are several
}

// rules judge a device.
var rules = []struct {
	id    string
	judge func(*look) *finding.Finding
}{
	{"R05", (*look).fragmented},
	{"R06", (*look).growing},
	{"R09", (*look).evaluated},
	{"R10", (*look).madeStates},
	{"R11", (*look).ranOut},
	{"R19", (*look).emptiesCache},
}

// judge has all findings of a device, in the order of rules.
func (l *look) judge() (out []finding.Finding) {
	for _, r := range rules {
		if f := r.judge(l); f != nil {
			f.Rule = r.id
			f.Title = l.name + f.Title
			out = append(out, *f)
		}
	}
	return out
}

// collects is whether the allocator gives cached segments back by a threshold of its own: that looks like a retry.
func (s *Snapshot) collects() bool {
	f, _ := s.Settings["garbage_collection_threshold"].(float64)
	return f > 0
}

func (s *Snapshot) expandable() bool { return s.Settings["expandable_segments"] == true }

// retried is how often the allocator gave everything back to serve a request.
func (l *look) retried() int {
	if l.collects() {
		return 0
	}
	return l.retries
}

// refused is the request that failed although the memory was there in pieces, or nil.
func (l *look) refused() *Event {
	for _, e := range l.ooms {
		if e.Size <= l.pinned+e.Free && e.Size > e.Free {
			return e
		}
	}
	return nil
}

func measured(name string, value int64, format string, args ...any) finding.Evidence {
	return finding.Evidence{Name: name, Value: value, Unit: "bytes", Text: fmt.Sprintf(format, args...)}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func part(n, of int64) string {
	if of <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

// fragmented is R05: memory that is free and cannot serve, because live blocks lie beside it.
func (l *look) fragmented() *finding.Finding {
	share := float64(l.pinned) > stuckShare*float64(l.reserved) && l.pinned >= stuckLeast
	retries, refused := l.retried(), l.refused()
	if !share && retries == 0 && refused == nil {
		return nil
	}
	f := &finding.Finding{
		Title: fmt.Sprintf("memory is fragmented: %s of %s reserved is free but stuck between live blocks", render.Bytes(l.pinned), render.Bytes(l.reserved)),
		Evidence: []finding.Evidence{
			measured("stuck", l.pinned, "stuck: %s (%s of reserved), in %d segments that live blocks keep", render.Bytes(l.pinned), part(l.pinned, l.reserved), len(l.worst)),
			measured("reclaimable", l.free, "reclaimable: %s in segments with no live block, which the allocator gives back by itself: no part of this", render.Bytes(l.free)),
			measured("largest_inactive_block", l.largest, "the largest request that fits without new memory: %s in one piece", render.Bytes(l.largest)),
		},
		Fix: l.settings(), Gain: finding.Gain{Text: "at most what is stuck", Bytes: l.pinned}, Confidence: finding.High,
		DisprovedBy: "as much is stuck after a run with the setting",
	}
	if retries > 0 {
		f.Title = fmt.Sprintf("the allocator ran out %s and gave all it could back to the driver to go on", times(retries))
		if share {
			f.Title += fmt.Sprintf("; %s is stuck between live blocks", render.Bytes(l.pinned))
		}
		f.Evidence = append(f.Evidence, finding.Evidence{Name: "retries", Value: retries, Text: fmt.Sprintf("%s segments were given back right before the driver was asked again, and not by empty_cache()", times(retries))})
		f.Gain.Text += "; each retry waits for the device, frees and allocates"
		if !share {
			f.Confidence = finding.Medium
		}
	}
	if refused != nil {
		f.Title = fmt.Sprintf("a request of %s failed although %s was free in pieces", render.Bytes(refused.Size), render.Bytes(l.pinned+refused.Free))
		f.Evidence = append(f.Evidence, measured("request", refused.Size, "the request of %s at %s; the driver had %s left", render.Bytes(refused.Size), refused.stack.where(), render.Bytes(refused.Free)))
	}
	f.Evidence = append(f.Evidence, l.pins()...)
	return f
}

// pins are the worst segments, and the lines whose blocks keep them.
func (l *look) pins() (out []finding.Evidence) {
	for _, seg := range l.worst[:min(3, len(l.worst))] {
		live := shares{}
		for _, b := range seg.Blocks {
			if b.State != unused {
				live.add(b.stack, l.kinds[b.Address], b.Size)
			}
		}
		var who []string
		for _, s := range live.sorted()[:min(2, len(live))] {
			who = append(who, fmt.Sprintf("%s (%s) with %s in %d blocks", s.Line, s.Kind, render.Bytes(s.Bytes), s.Blocks))
		}
		out = append(out, measured("segment", seg.stuck, "segment %#x of %s: %s stuck, kept by %s", seg.Address, render.Bytes(seg.Size), render.Bytes(seg.stuck), strings.Join(who, ", ")))
	}
	return out
}

// settings are those of the allocator that are worth a try against fragmentation.
func (l *look) settings() string {
	if l.expandable() {
		return "segments are expandable already: keep shapes the same from step to step (pad, sort by length), allocate what lives long first; then PYTORCH_ALLOC_CONF=expandable_segments:True,roundup_power2_divisions:8 lets near sizes share blocks"
	}
	return "run with PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before PyTorch 2.9), which lets free pieces join; where that is not possible, keep shapes the same and try max_split_size_mb:128"
}

// growing is R06: memory that every step leaves behind.
func (l *look) growing() *finding.Finding {
	at := l.phases(l.Marks, l.device)
	if len(at) <= growingSteps {
		return nil
	}
	values := make([]int64, len(at))
	for i, event := range at {
		values[i] = l.curve[event]
	}
	g, ok := grows(values, l.reserved)
	if !ok {
		return nil
	}
	keepers := l.keepers(at[g.from:])
	if len(keepers) == 0 {
		return nil
	}
	first := keepers[0]
	f := &finding.Finding{
		Title: fmt.Sprintf("memory grows by %s a step: %s keeps what it allocates", render.Bytes(int64(g.slope)), first.stack.where()),
		Evidence: []finding.Evidence{
			measured("growth", int64(g.slope), "%d steps in a row each end with more in use than the one before: %s a step (r² %.3f)", g.steps, render.Bytes(int64(g.slope)), g.fit),
			{Name: "steps", Value: g.steps, Text: fmt.Sprintf("from %s to %s over them", render.Bytes(l.baseline(l.state)+values[g.from]), render.Bytes(l.baseline(l.state)+values[len(values)-1]))},
		},
		Fix:         "keep numbers and not tensors across steps: append loss.detach() (or float(loss) every k-th step: it waits for the device), clear lists of outputs, detach hidden states",
		Gain:        finding.Gain{Text: "what the steps of this file left", Bytes: values[len(values)-1] - values[g.from]},
		Confidence:  finding.High,
		DisprovedBy: "memory stays level over further steps: a cache was filling, or the run had just begun",
		Line:        first.stack.where(),
	}
	var explained int64
	for _, k := range keepers[:min(3, len(keepers))] {
		explained += k.bytes
		f.Evidence = append(f.Evidence, measured("kept", k.bytes, "%s (%s): %s in %d blocks that stay, some from nearly every step", k.stack.where(), k.stack.kind, render.Bytes(k.bytes), k.blocks))
	}
	if 2*explained < f.Gain.Bytes || !first.stack.known {
		f.Confidence = finding.Medium
	}
	return f
}

// evaluated is R09: an evaluation that keeps what only a gradient would need.
func (l *look) evaluated() *finding.Finding {
	type run struct {
		made, open int
		bytes      int64
	}
	var now, most run
	var who *stack
	of := map[uint64]*Event{}
	for _, e := range l.events {
		switch {
		case e.Action == "alloc" && e.stack.evaluates != "" && e.stack.kind != kindOptimizer && e.stack.kind != kindBackward:
			of[e.Addr] = e
			now = run{now.made + 1, now.open + 1, now.bytes + e.Size}
			if now.bytes > most.bytes {
				most, who = now, e.stack
			}
		case e.Action == "free_completed" && of[e.Addr] != nil:
			now.open--
			now.bytes -= of[e.Addr].Size
			delete(of, e.Addr)
			if now.open == 0 {
				now = run{}
			}
		}
	}
	if most.made < keptLeast || float64(most.open) < keptShare*float64(most.made) || l.peak < 0 ||
		float64(most.bytes) < keptOfPeak*float64(l.top()) {
		return nil
	}
	return &finding.Finding{
		Title: fmt.Sprintf("%s() keeps its activations, %s at their peak, as if a gradient were to come", who.evaluates, render.Bytes(most.bytes)),
		Evidence: []finding.Evidence{
			measured("activations", most.bytes, "%d of %d allocations below %s() are in use at once: %s", most.open, most.made, who.evaluates, render.Bytes(most.bytes)),
		},
		Fix:         fmt.Sprintf("run %s() under torch.no_grad() or torch.inference_mode()", who.evaluates),
		Gain:        finding.Gain{Text: "the activations that only a gradient needs; the pass is 10 to 30 % faster too", Bytes: most.bytes},
		Confidence:  finding.Low,
		DisprovedBy: "the model needs its early results at the end, or outputs are collected on the device on purpose",
		Line:        who.where(),
	}
}

// madeStates is R10: the peak is where an optimizer makes its states.
func (l *look) madeStates() *finding.Finding {
	if l.peak < 0 || l.events[l.peak].stack.kind != kindOptimizer {
		return nil
	}
	var states int64
	for _, i := range l.open(len(l.events) - 1) {
		if e := l.events[i]; e.stack.kind == kindOptimizer {
			states += e.Size
		}
	}
	states = min(states, l.net)
	top := l.top()
	if float64(states) < statesShare*float64(top) {
		return nil
	}
	where := l.events[l.peak].stack.where()
	return &finding.Finding{
		Title: fmt.Sprintf("the peak, %s, is in the first step of the optimizer, which makes its states there", render.Bytes(top)),
		Evidence: []finding.Evidence{
			measured("states", states, "%s of states are made and stay (%s)", render.Bytes(states), where),
			measured("peak", top, "the peak is at %s", where),
		},
		Fix:         "reckon with the states from the start (Adam: 8 bytes a parameter in float32); fewer of them: 8-bit or bfloat16 states, a fused or foreach=False step, ZeRO-1 over ranks",
		Gain:        finding.Gain{Text: "three quarters of the states with an 8-bit optimizer", Bytes: states * 3 / 4},
		Confidence:  finding.Medium,
		DisprovedBy: "the backward pass of a later step peaks higher",
		Line:        where,
	}
}

// ranOut is R11: a request that failed because memory was full.
func (l *look) ranOut() *finding.Finding {
	if len(l.ooms) == 0 || l.refused() != nil {
		return nil
	}
	e := l.ooms[len(l.ooms)-1]
	last := len(l.events) - 1
	for i, other := range l.events {
		if other == e {
			last = i
		}
	}
	held := l.at(last, l.baseline(l.state))
	f := &finding.Finding{
		Title: fmt.Sprintf("memory is full: %s was asked for at %s, and the device had %s left", render.Bytes(e.Size), e.stack.where(), render.Bytes(e.Free)),
		Evidence: []finding.Evidence{
			measured("request", e.Size, "a request failed %s, the last of %s", times(len(l.ooms)), render.Bytes(e.Size)),
			measured("device_free", e.Free, "free on the device: %s; in the largest free block: %s; stuck: %s", render.Bytes(e.Free), render.Bytes(l.largest), render.Bytes(l.pinned)),
		},
		Gain:        finding.Gain{Text: "what the request lacks", Bytes: max(0, e.Size-e.Free)},
		Confidence:  finding.High,
		DisprovedBy: "the same request is served once other processes are off the card",
		Line:        e.stack.where(),
	}
	for _, s := range held[:min(3, len(held))] {
		f.Evidence = append(f.Evidence, measured("held", s.Bytes, "%s (%s) holds %s in %d blocks", s.Line, s.Kind, render.Bytes(s.Bytes), s.Blocks))
	}
	f.Fix = lever(held)
	if device := l.reserved + e.Free; e.Size > device {
		f.Title = fmt.Sprintf("%s was asked for at %s, more than the whole device can give (%s)", render.Bytes(e.Size), e.stack.where(), render.Bytes(device))
		f.Fix = "look at the shapes of that line: a dimension is wrong, or a whole matrix of attention or logits is made at once"
		f.Gain = finding.Gain{Text: "the program runs"}
	}
	return f
}

// lever is what frees memory of the kind that most of it is.
func lever(held []Share) string {
	by := map[string]int64{}
	most := ""
	for _, s := range held {
		if by[s.Kind] += s.Bytes; by[s.Kind] > by[most] && s.Kind != kindUnknown {
			most = s.Kind
		}
	}
	switch most {
	case kindOptimizer, "optimizer_state":
		return "the optimizer's states hold most: an 8-bit or bfloat16 optimizer, or ZeRO-1 over ranks"
	case kindParameter, "gradient":
		return "parameters and gradients hold most: train in bfloat16, or shard them (ZeRO-3, FSDP)"
	}
	return "halve the batch and accumulate two, or recompute activations (checkpointing) and use fused attention"
}

// emptiesCache is R19 as far as a snapshot shows it: driver calls in the loop that the program asks for.
func (l *look) emptiesCache() *finding.Finding {
	var gone, again int64
	for _, b := range l.emptied {
		gone, again = gone+b.bytes, again+min(b.again, b.bytes)
	}
	if len(l.emptied) < emptiedOften || 2*again < gone {
		return nil
	}
	where := l.emptied[len(l.emptied)-1].stack.where()
	return &finding.Finding{
		Title: fmt.Sprintf("empty_cache() is called %d times, and what it gives back is asked for again", len(l.emptied)),
		Evidence: []finding.Evidence{
			measured("given_back", gone, "%s given back to the driver in %d bursts, %s asked for again", render.Bytes(gone), len(l.emptied), render.Bytes(again)),
		},
		Fix:         fmt.Sprintf("remove the call at %s: the allocator gives cached memory back by itself before it fails", where),
		Gain:        finding.Gain{Text: "the time of cudaFree, which waits for the device, and of cudaMalloc, each time"},
		Confidence:  finding.High,
		DisprovedBy: "another process needs the memory between the calls",
		Line:        where,
	}
}
