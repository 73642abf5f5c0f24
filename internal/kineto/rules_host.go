package kineto

import (
	"fmt"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
)

// noDevice: a trace of a training on a card has kernels.
func noDevice(a *analysis) *finding.Finding {
	if a.onDevice > 0 {
		return nil
	}
	f := &finding.Finding{
		Title:       "The trace has no events of a GPU: was CUDA activity recorded?",
		Fix:         "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]; where it already says so, look whether the program runs on the GPU at all, and whether the profiler may (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, or another tool that is attached)",
		Gain:        finding.Gain{Text: "a trace that shows the device"},
		Confidence:  finding.High,
		DisprovedBy: "the program is meant to run on the CPU",
		Evidence: []finding.Evidence{counted("kernels", 0, "%d events, of which none is a kernel, a copy or a memory set of a device", a.counts.events),
			counted("calls", len(a.Trace.host), "%d calls of the driver or its runtime", len(a.Trace.host))},
	}
	switch launches := a.launches(); {
	case a.counts.events == 0:
		f.Title = "The trace has no events at all: nothing was recorded"
		f.Fix = "call the profiled step within the profiler, and step() once more than wait + warmup + active of its schedule say"
	case launches > 0:
		f.Title = "The trace has launches but no events of a GPU: its activity was not recorded"
		f.Fix = "look for CUPTI errors in what the training printed: only one tool may watch a device at a time (end Nsight, DCGM's profiling or another profiler), and some drivers want the privilege to (NVreg_RestrictProfilingToAdminUsers=0)"
		f.DisprovedBy = "the launches failed"
		f.Evidence = append(f.Evidence, counted("launches", launches, "%d launches of kernels are recorded on the host", launches))
	}
	return f
}

func (a *analysis) launches() (n int) {
	for i := range a.Trace.host {
		if name := a.Name(&a.Trace.host[i]); isLaunch(name) {
			n++
		}
	}
	return n
}

// loaderBound: the device has nothing to do while the host waits for a batch.
func loaderBound(a *analysis) *finding.Finding {
	idle := a.causes[waitsLoader]
	if a.share(idle) <= loaderShare {
		return nil
	}
	loading := float64(a.loader.total()) / float64(max(a.marked.Dur(), 1))
	f := &finding.Finding{
		Title: fmt.Sprintf("The GPU waits for batches %s of the time", percent(a.share(idle))),
		Evidence: []finding.Evidence{
			timing("idle_loader", a.perStep(idle), "%s %s of %s in which the device does nothing while the host waits for the next batch",
				duration(a.perStep(idle)), a.each(), duration(a.perStep(a.window.Dur()))),
			part("loader_share", loading, "%s of the host's time is spent in the loader's __next__", percent(loading)),
		},
		Confidence:  finding.High,
		DisprovedBy: "the loader replaced by one batch that is used again and again: if the step stays as long, the loader was not what it waited for",
		Gain:        a.replayed(change{without: a.loader}, idle, "no waits for batches at all"),
	}
	if n := a.counts.steps; n > 0 {
		s := float64(a.counts.loader) / float64(a.counts.stepTime)
		f.Evidence = append(f.Evidence, part("loader_share_file", s, "of all %d steps in the file, %s on average, the loader's share is %s",
			n, duration(a.counts.stepTime/int64(n)), percent(s)))
	}
	f.Fix = "more workers: DataLoader(num_workers=4, pin_memory=True, persistent_workers=True), doubled until the step no longer shrinks; then decode cheaper, cache, or read from a local disk"
	if a.inMain {
		f.Evidence = append(f.Evidence, says("the batches are made by the training's own process (_SingleProcessDataLoaderIter): nothing overlaps them"))
		f.Fix = "make batches in other processes: DataLoader(num_workers=4, pin_memory=True, persistent_workers=True), doubled until the step no longer shrinks"
	}
	return f
}

// waitsInLoop: the host stops for the device, and the device then has nothing to do.
func waitsInLoop(a *analysis) *finding.Finding {
	var idle int64
	readsAStep, reading := 0, 0
	for i := range a.syncs {
		idle += a.syncs[i].idle
		if a.syncs[i].isRead() && !a.syncs[i].copies() {
			reading += a.syncs[i].count
		}
	}
	readsAStep = reading / max(a.steps, 1)
	gain := a.gain(change{free: func(c *event) bool { return a.class(c)&isWait != 0 }})
	if a.share(idle) <= waitShare && !(a.steps > 0 && readsAStep > waitsAStep && a.worth(gain)) || !a.worth(gain) {
		return nil
	}
	f := &finding.Finding{
		Title:       fmt.Sprintf("The host waits for the GPU within the step, and the GPU then does nothing for %s %s", duration(a.perStep(idle)), a.each()),
		Confidence:  finding.Medium,
		DisprovedBy: "the step taken without the value that is read: if it is no shorter, the wait cost nothing",
		Gain:        a.saves(gain, "no waits within the step, by a replay of the timeline"),
		Fix:         "keep values on the device: accumulate detached losses and read them every some steps; copy to pinned memory with non_blocking=True and an event; replace boolean masks and nonzero by where",
	}
	for i := range a.syncs[:min(len(a.syncs), 5)] {
		s := &a.syncs[i]
		f.Evidence = append(f.Evidence, timing("sync", s.ns, "%s", a.describe(s)))
		if f.Line == "" && s.idle > 0 {
			f.Line = s.stack
		}
	}
	if readsAStep > waitsAStep || len(a.syncs) > 0 && a.syncs[0].isRead() {
		f.Confidence = finding.High
	}
	return f
}

// copies tells that a wait belongs to a copy from pageable memory, which R14 is for.
func (s *syncSite) copies() bool {
	return s.op == "aten::copy_" || s.op == "aten::to" || s.op == "aten::_to_copy"
}

func (a *analysis) describe(s *syncSite) string {
	text := fmt.Sprintf("%s, %d times", s.call, s.count)
	if a.steps > 0 {
		text = fmt.Sprintf("%s, %.1f times a step", s.call, float64(s.count)/float64(a.steps))
	}
	if s.op != "" {
		text += " in " + s.op
	}
	if s.stack != "" {
		text += " at " + s.stack
	}
	return text + fmt.Sprintf(": %s in the call, %s idle behind it", duration(s.ns), duration(s.idle))
}

// bound is what both kinds of a binding host have in common: an idle device, nothing queued, and mostly the host's doing.
func (a *analysis) bound() (delay float64, ok bool) {
	d := a.delays()
	if len(d) == 0 {
		return 0, false
	}
	delay = medianOf(d)
	own := a.causes[waitsHost] + a.causes[waitsSync] + a.causes[waitsMemory]
	return delay, a.share(a.busy.total()) < busyShare && delay < shortDelay && 2*own > a.idle()
}

func (a *analysis) short() (kernel, share float64) {
	d, short := a.durations()
	return medianOf(d), float64(short) / float64(len(d))
}

func launchBound(a *analysis) *finding.Finding {
	delay, ok := a.bound()
	kernel, short := a.short()
	if !ok || kernel >= shortKernel && short <= shortShare || a.productShare() > mostlyProduct {
		return nil
	}
	f := a.hostFinding(delay)
	f.Title = fmt.Sprintf("Kernels are shorter than what their launches cost: the GPU is busy %s of the time", percent(a.share(a.busy.total())))
	f.Evidence = append(f.Evidence,
		finding.Evidence{Name: "kernel_median", Value: kernel, Unit: "us", Text: fmt.Sprintf("the median kernel takes %.1f µs, where a launch costs the host 5 to 20", kernel)},
		part("short_kernels", short, "%s of kernels are shorter than the call that launches them", percent(short)))
	f.Fix = `fewer, larger launches: torch.compile(model, mode="reduce-overhead") or CUDA graphs, foreach=True or fused=True in the optimizer, a larger batch`
	return f
}

func hostBound(a *analysis) *finding.Finding {
	delay, ok := a.bound()
	if !ok || a.has("launch-bound") {
		return nil
	}
	f := a.hostFinding(delay)
	f.Title = fmt.Sprintf("The GPU waits for the host: it is busy %s of the time", percent(a.share(a.busy.total())))
	f.Fix = "take work off the host between launches: torch.compile, CUDA graphs, less Python in the step; a larger batch makes the same host's work count less"
	return f
}

func (a *analysis) hostFinding(delay float64) *finding.Finding {
	own := a.causes[waitsHost] + a.causes[waitsSync] + a.causes[waitsMemory]
	return &finding.Finding{
		Evidence: []finding.Evidence{
			part("busy_share", a.share(a.busy.total()), "the device is busy %s of %s %s", percent(a.share(a.busy.total())), duration(a.perStep(a.window.Dur())), a.each()),
			finding.Evidence{Name: "launch_delay_median", Value: delay, Unit: "us", Text: fmt.Sprintf("the median kernel begins %.1f µs behind its launch: nothing is queued", delay)},
			part("host_wait", float64(own)/float64(max(a.idle(), 1)), "%s of the idle time is the host's: the next kernel was launched after the one before had ended", percent(float64(own)/float64(max(a.idle(), 1)))),
			counted("kernels", a.kernels/max(a.steps, 1), "%d kernels %s", a.kernels/max(a.steps, 1), a.each()),
		},
		Confidence:  finding.High,
		DisprovedBy: "the same step with a batch twice as large: if it takes twice as long, the GPU was what bound it",
		Gain:        a.hostGain(),
	}
}

// hostGain is at most what the host's share of the idle time is.
func (a *analysis) hostGain() finding.Gain {
	own := a.causes[waitsHost] + a.causes[waitsSync]
	d := a.perStep(own)
	return a.saves(time.Duration(d), "at most: all idle time that is the host's, were its work hidden or captured")
}

func (a *analysis) has(name string) bool {
	for _, f := range a.found {
		if f == name {
			return true
		}
	}
	return false
}

// calls are the window's calls of a class that take longer than longCall, by name: in evidence, and as spans.
func (a *analysis) calls(c class) (rows []finding.Evidence, in spans) {
	type row struct {
		n  int
		ns int64
	}
	by := map[string]*row{}
	var names []string
	from, to := a.callsOf(a.marked)
	for i := from; i < to; i++ {
		e := &a.Trace.host[i]
		if a.class(e)&c == 0 || e.dur < longCall*1000 {
			continue
		}
		n := a.Name(e)
		if by[n] == nil {
			by[n] = &row{}
			names = append(names, n)
		}
		by[n].n++
		by[n].ns += e.dur
		in = in.add(e.start, e.end())
	}
	for _, n := range names {
		rows = append(rows, timing(n, by[n].ns, "%s: %d calls of more than %d µs, %s together", n, by[n].n, longCall, duration(by[n].ns)))
	}
	return rows, in
}

// slowCalls: memory changes hands in the steady state.
func slowCalls(a *analysis) *finding.Finding {
	rows, in := a.calls(isMemory)
	if a.share(in.total()) <= memoryShare {
		return nil
	}
	gain := a.gain(change{without: in})
	if !a.worth(gain) {
		return nil
	}
	return &finding.Finding{
		Title:       fmt.Sprintf("Calls that allocate and free memory take %s of the step", percent(a.share(in.total()))),
		Evidence:    rows,
		Fix:         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, shapes that stay the same, no torch.cuda.empty_cache() in the loop",
		Gain:        a.saves(gain, "none of these calls, by a replay of the timeline"),
		Confidence:  finding.Medium,
		DisprovedBy: "later steps without such calls: then this was warm-up",
	}
}

// churn: code is loaded in step after step, so shapes or something else that it is compiled for change.
func churn(a *analysis) *finding.Finding {
	rows, in := a.calls(isLoad)
	steps := a.stepsIn()
	n := 0
	for _, s := range steps {
		if len(touching(in, s.Window)) > 0 {
			n++
		}
	}
	if n < 2 {
		return nil
	}
	gain := a.gain(change{without: in})
	if !a.worth(gain) {
		return nil
	}
	return &finding.Finding{
		Title:       fmt.Sprintf("Code is loaded in %d of %d steps: it is compiled again and again", n, len(steps)),
		Evidence:    rows,
		Fix:         "keep shapes the same: pad or bucket batches, torch.compile(dynamic=True), torch.backends.cudnn.benchmark=False where sizes change; TORCH_LOGS=recompiles says why",
		Gain:        a.saves(gain, "none of these calls, by a replay of the timeline; what compiles before them comes on top"),
		Confidence:  finding.Medium,
		DisprovedBy: "later steps without such calls: then this was warm-up",
	}
}
