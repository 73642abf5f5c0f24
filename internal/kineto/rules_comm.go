package kineto

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

// exposedCommunication: what overlaps computation costs nothing, so only the rest counts.
func exposedCommunication(a *analysis) *finding.Finding {
	alone := a.comm.without(a.compute).total()
	if a.share(alone) <= commShare {
		return nil
	}
	all := a.comm.total()
	return &finding.Finding{
		Title: fmt.Sprintf("Communication that nothing overlaps takes %s of the step", percent(a.share(alone))),
		Evidence: []finding.Evidence{
			part("comm_share", a.share(all), "the device communicates %s of the time", percent(a.share(all))),
			part("comm_exposed_share", a.share(alone), "%s of the time it communicates and computes nothing: %s of the communication", percent(a.share(alone)), percent(float64(alone)/float64(all))),
			says("%s", a.longestCollectives()),
		},
		Fix:         "overlap it with backward: buckets of 25 to 100 MB that are sent as they fill (DDP's bucket_cap_mb, gradient_as_bucket_view=True), no_sync() while gradients accumulate, gradients of 16 bits; then look at the link",
		Gain:        a.saves(time.Duration(a.perStep(alone)), "at most: all communication behind computation"),
		Confidence:  finding.Medium,
		DisprovedBy: "the other ranks' traces: a kernel of communication also waits for the last rank to arrive, and then that rank is what costs",
	}
}

func (a *analysis) longestCollectives() string {
	var rows []string
	for _, r := range a.totals(func(e *event) bool { return e.kind == kernel && a.class(e)&isComm != 0 }) {
		rows = append(rows, fmt.Sprintf("%s: %d in %s, %s", shortName(a.names.names[r.name]), r.count, a.windowText(), duration(r.ns)))
	}
	return strings.Join(rows[:min(3, len(rows))], "; ")
}

// dtypes are sizes of elements, as the recorder names their types.
var dtypes = map[string]int64{"float": 4, "double": 8, "half": 2, "bfloat16": 2, "int": 4, "long": 8, "char": 1, "byte": 1, "bool": 1, "short": 2}

// MessageBytes is how many bytes a collective takes or gives on this rank, whichever is more; 0 where the file does not say.
func (c *Collective) MessageBytes() int64 {
	return max(c.In, c.Out) * dtypes[strings.ToLower(c.DType)]
}

// messageSizes are the bytes of the window's collectives that the file has them of, the smallest first.
func (a *analysis) messageSizes() (sizes []int64) {
	for i := range a.Collectives {
		c := &a.Collectives[i]
		if n := c.MessageBytes(); n > 0 && c.Start >= a.window.Start && c.Start < a.window.End && !c.P2P {
			sizes = append(sizes, n)
		}
	}
	slices.Sort(sizes)
	return sizes
}

func smallMessagesRule(a *analysis) *finding.Finding {
	sizes := a.messageSizes()
	n, _ := slices.BinarySearch(sizes, smallMessage)
	alone := a.perStep(a.comm.without(a.compute).total())
	if n/a.steps < smallMessages || 2*n < len(sizes) || !a.worth(time.Duration(alone)) {
		return nil
	}
	return &finding.Finding{
		Title: fmt.Sprintf("%d collectives a step carry less than %s each: their latency is what costs", n/a.steps, render.Bytes(smallMessage)),
		Evidence: []finding.Evidence{counted("small", n/a.steps, "%d of %d a step; %s at the median; %s a step of communication overlap nothing",
			n/a.steps, len(sizes)/a.steps, render.Bytes(sizes[len(sizes)/2]), duration(alone))},
		Fix:         "send them together: larger buckets (bucket_cap_mb), coalesced collectives, one flat tensor",
		Gain:        a.saves(time.Duration(alone), "at most: all communication that overlaps nothing"),
		Confidence:  finding.Medium,
		DisprovedBy: "the same bytes in one collective, no faster",
	}
}
