package kineto

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

// explained are the findings that say why a device has nothing to do.
var explained = []string{"loader-bound", "waits-in-loop", "launch-bound", "host-bound", "slow-calls", "pauses", "exposed-communication", "exposed-copies", "pageable-copies"}

// underFilled: a device without work, for which no other rule has a reason.
func underFilled(a *analysis) *finding.Finding {
	if a.share(a.busy.total()) >= halfBusy || slices.ContainsFunc(a.found, func(n string) bool { return slices.Contains(explained, n) }) {
		return nil
	}
	f := &finding.Finding{
		Title:       fmt.Sprintf("The GPU is busy %s of the time", percent(a.share(a.busy.total()))),
		Fix:         "look at the largest part of its idle time; where it is the host's, a larger batch makes the same work of the host count less",
		Gain:        a.saves(time.Duration(a.perStep(a.idle())), "at most: all idle time"),
		Confidence:  finding.Low,
		DisprovedBy: "a trace of later steps in which it is busy",
	}
	for c, ns := range a.causes {
		if ns > 0 {
			f.Evidence = append(f.Evidence, timing(causeNames[c], a.perStep(ns), "%s %s: %s", duration(a.perStep(ns)), a.each(), causeTexts[c]))
		}
	}
	return f
}

var causeTexts = [causes]string{"the host waits for a batch", "the host has waited for the device", "the host allocates, frees or loads code",
	"the host does something else before it launches the next", "from kernel to kernel, less than 30 µs", "the next is launched, and waits for something else"}

// unfusedOptimizer: an optimizer that updates parameter by parameter.
func unfusedOptimizer(a *analysis) *finding.Finding {
	ranges := a.ranges(isOptim).in(a.marked)
	if len(ranges) == 0 {
		return nil
	}
	n := 0
	var ns int64
	inside := make([]bool, a.tail-a.first)
	for i := a.first; i < a.tail; i++ {
		if l := a.launched(i); l != nil && a.device[i].kind == kernel && len(touching(ranges, Window{l.start, l.start + 1})) > 0 {
			n++
			ns += a.device[i].dur
			inside[i-a.first] = true
		}
	}
	if n/a.steps <= optimKernels && a.share(max(ns, ranges.total())) <= optimShare {
		return nil
	}
	c := change{scale: func(i int) float64 {
		if inside[i-a.first] {
			return 1.0 / 3
		}
		return 1
	}}
	for _, r := range ranges {
		c.without = append(c.without, Window{r.Start + r.Dur()/5, r.End})
	}
	gain := a.gain(c)
	if n/a.steps <= optimKernels || !a.worth(gain) {
		return nil
	}
	return &finding.Finding{
		Title: fmt.Sprintf("The optimizer launches %d kernels a step", n/a.steps),
		Evidence: []finding.Evidence{
			counted("optimizer_kernels", n/a.steps, "%d kernels a step, %s on the device and %s of the host's", n/a.steps, duration(a.perStep(ns)), duration(a.perStep(ranges.total()))),
		},
		Fix:         "fused=True in the optimizer (torch.optim.AdamW, Adam, SGD), or foreach=True where it has no fused form",
		Gain:        a.saves(gain, "a fifth of its host time and a third of its device time, by a replay of the timeline"),
		Confidence:  finding.Medium,
		DisprovedBy: "the same step with fused=True, no shorter",
	}
}

// memoryNearLimit: the next larger batch will not fit.
func memoryNearLimit(a *analysis) *finding.Finding {
	held, card := a.peakBytes[1], a.Devices[0].Memory
	if float64(held) <= nearMemory*float64(card) {
		return nil
	}
	return &finding.Finding{
		Title: fmt.Sprintf("PyTorch holds %s of the card's memory at the peak", percent(float64(held)/float64(card))),
		Evidence: []finding.Evidence{{Name: "reserved", Value: held, Unit: "bytes",
			Text: fmt.Sprintf("%s reserved and %s allocated of %s", render.Bytes(held), render.Bytes(a.peakBytes[0]), render.Bytes(card))}},
		Fix:         "before the batch grows: torch.autocast, activation checkpointing, or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
		Gain:        finding.Gain{Text: "no out-of-memory at the next longer batch"},
		Confidence:  finding.Medium,
		DisprovedBy: "a peak that stays through the longest batches",
	}
}

// shortName is a kernel's name without its namespaces, parameters and most of its template's arguments.
func shortName(name string) string {
	name = strings.TrimPrefix(name, "void ")
	name = strings.ReplaceAll(name, "(anonymous namespace)::", "")
	if i := strings.LastIndex(name, ")"); i == len(name)-1 && i > 0 {
		if j := strings.IndexByte(name, '('); j > 0 {
			name = name[:j]
		}
	}
	if len(name) > 100 {
		name = strings.ToValidUTF8(name[:100], "") + "…"
	}
	return name
}

// isLaunch tells a call that launches a kernel.
func isLaunch(call string) bool {
	return strings.Contains(call, "LaunchKernel") || strings.Contains(call, "LaunchCooperativeKernel") || strings.Contains(call, "GraphLaunch")
}

// isCopy tells a call that copies.
func isCopy(call string) bool { return strings.Contains(call, "Memcpy") }

// fused tells a kernel that a compiler made of several operations already.
func fused(name string) bool {
	return strings.HasPrefix(name, "triton_") || strings.Contains(name, "multi_tensor_apply") || strings.Contains(name, "fused")
}

// medianNS is the median of numbers, 0 of none. It sorts them in a copy.
func medianNS(ns []int64) int64 {
	if len(ns) == 0 {
		return 0
	}
	s := slices.Clone(ns)
	slices.Sort(s)
	return s[len(s)/2]
}

// stepsIn are the steps that are looked at.
func (a *analysis) stepsIn() []Step {
	var in []Step
	for _, s := range a.Steps {
		if s.Start >= a.marked.Start && s.End <= a.marked.End {
			in = append(in, s)
		}
	}
	return in
}
