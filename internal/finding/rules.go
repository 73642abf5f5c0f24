package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/render"
)

// Thresholds. Those with a name behind them are of the tool that made them known.
const (
	loaderShare  = 0.05     // of a step, as TensorBoard's plugin has it
	waitShare    = 0.02     // of a step lost behind a wait
	waitsAStep   = 2        // more waits than this are noted even where nothing is lost yet
	busyShare    = 0.80     // of a step, below which it is the host's
	idleShare    = 0.10     // of a step, for one of the reasons of that
	shortKernel  = 10e3     // nanoseconds: what a launch costs the host at worst, as HolisticTraceAnalysis has it
	tinyCopies   = 20       // a step
	tinyCopy     = 64 << 10 // bytes
	copyShare    = 0.1      // of a step with nothing but copies
	wideShare    = 0.5      // of products that leave tensor cores aside
	productShare = 0.2      // of a step, below which they are not worth a word
	moveShare    = 0.3      // of a step for what only reads and writes
)

// Pause is the longest that a device waits from kernel to kernel for launches alone, as HolisticTraceAnalysis has it.
const Pause = 30 * time.Microsecond

var rules = []rule{
	{"R17", "loader-bound", "waits for batches", loaderBound, nil},
	{"R13", "waits-in-loop", "waits of the host for the device", waitsInLoop, (*Facts).apart},
	{"R18", "launch-bound", "launches shorter than what they cost", launchBound, (*Facts).apart},
	{"R18", "host-bound", "time between operations", hostBound, nil},
	{"R15", "tiny-copies", "small copies", tiny, (*Facts).apart},
	{"R16", "exposed-copies", "copies that nothing overlaps", exposed, (*Facts).apart},
	{"R22", "no-tensor-cores", "products beside tensor cores", wide, (*Facts).carded},
	{"R28", "memory-bound", "operations that only move memory", memoryBound, (*Facts).carded},
	{"R40", "no-gradient", "parameters without a gradient", noGradient, nil},
	{"R06", "kept-across-steps", "memory that grows from step to step", growing, nil},
}

// apart tells that the device works beside the host, and says when.
func (f *Facts) apart() bool { return f.Timed && !f.OnHost }

// carded tells that the device is a card whose figures are known.
func (f *Facts) carded() bool { return f.Tensor > 0 }

// step is a share of the window as time of a step.
func (f *Facts) step(d time.Duration) time.Duration { return d / time.Duration(max(f.Steps, 1)) }

// share is d of the window.
func (f *Facts) share(d time.Duration) float64 {
	if f.Took <= 0 {
		return 0
	}
	return float64(d) / float64(f.Took)
}

func (f *Facts) percent(d time.Duration) string { return render.Percent(f.share(d)) }

func loaderBound(f *Facts) []Finding {
	if !f.Timed || f.share(f.Idle.Loader) < loaderShare {
		return nil
	}
	return []Finding{{
		Title:       fmt.Sprintf("the step waits for its batch %s of the time", f.percent(f.Idle.Loader)),
		Evidence:    Says("%s a step without work on %s while the program waits for the loader", render.Duration(f.step(f.Idle.Loader)), f.Device),
		Fix:         "more workers or a longer look-ahead (data.Config's Workers and Prefetch), less work in the source's Fill, data that is decoded once and kept",
		Gain:        Saves(f.step(f.Idle.Loader), "the time in which nothing ran while the loader was waited for"),
		DisprovedBy: "the same step on a batch that is there already takes as long",
	}}
}

func waitsInLoop(f *Facts) (all []Finding) {
	for _, w := range f.Waits {
		often := w.Count > waitsAStep*max(f.Steps, 1)
		if f.OnHost || f.share(w.Idle) < waitShare && !often || w.Idle == 0 {
			continue
		}
		all = append(all, Finding{
			Title: fmt.Sprintf("the host waits for the device %s a step (%s)", times(w.Count, f.Steps), w.What), Line: w.Line,
			Evidence:    Says("%s a step in the wait, and %s until the device has work again", render.Duration(f.step(w.Took)), render.Duration(f.step(w.Idle))),
			Fix:         "keep the value on the device; ask for it by Later and read it some steps on; print every tenth step",
			Gain:        Saves(f.step(w.Idle), "idle time of the device from the end of the wait to its next work"),
			DisprovedBy: "the device is busy through the wait",
		})
	}
	return all
}

// times is a count as one of a step.
func times(count, steps int) string {
	n := float64(count) / float64(max(steps, 1))
	switch {
	case count == steps:
		return "once"
	case n == float64(int(n)):
		return fmt.Sprintf("%.0f times", n)
	}
	return fmt.Sprintf("%.1f times", n)
}

// launchBound is a device that runs out of work since launching takes longer than the kernels.
func launchBound(f *Facts) []Finding {
	idle := f.launching()
	if !f.starved() || float64(idle) < idleShare*float64(f.Took-f.Watching) {
		return nil
	}
	return []Finding{{
		Title: fmt.Sprintf("%s works %s of the step: its kernels are shorter than their launches", f.Device, f.percent(f.Busy)),
		Evidence: Says("%d launches a step, the median kernel %s, a launch %s of the host", f.Launches/max(f.Steps, 1), render.Duration(f.Kernel),
			render.Duration(f.LaunchHost/time.Duration(max(f.Launches, 1)))),
		Fix:         "launch the whole step at once (tensor.Capture, train --capture; a profile shows it launched one by one all the same), a larger batch, fused operations",
		Gain:        Saves(f.step(idle), "idle time of the device while the host launched"),
		DisprovedBy: "the captured step takes as long",
	}}
}

// launching is the idle time in which the host was on its way to the next of kernels that are shorter than that. What looking on
// adds to launches is not the program's, nor are the launches that a captured step has only then.
func (f *Facts) launching() time.Duration {
	if f.Kernel >= shortKernel {
		return 0
	}
	return max(0, f.Idle.Host-f.Pauses-f.Captured-f.Watching)
}

// hostBound is a device that runs out of work since the program does other things.
func hostBound(f *Facts) []Finding {
	if f.OnHost {
		return besides(f)
	}
	idle := f.Idle.Host
	if f.Kernel < shortKernel {
		idle = f.Pauses
	}
	if !f.starved() || f.share(idle) < idleShare {
		return nil
	}
	return []Finding{{
		Title:       fmt.Sprintf("%s works %s of the step, and waits for the program", f.Device, f.percent(f.Busy)),
		Evidence:    Says("%s a step without work, and %s in which the host launched", render.Duration(f.step(idle)), render.Duration(f.step(f.LaunchHost))),
		Fix:         between,
		Gain:        Saves(f.step(idle), "idle time of the device that launches, waits and the loader do not explain"),
		DisprovedBy: "the host's profile shows nothing but launches",
	}}
}

// between is what to do about what a program does besides.
const between = "look at the host's profile (go tool pprof host.pb.gz) for what the program does between operations, and move it out of the loop or into another goroutine"

// besides is a program that computes on the host and spends its time with other things, or with beginning operations that
// are too small.
func besides(f *Facts) []Finding {
	if f.share(f.Idle.Host) <= 1-busyShare {
		return nil
	}
	found := Finding{
		Title:       fmt.Sprintf("%s of the step lies between operations", f.percent(f.Idle.Host)),
		Evidence:    Says("%d operations a step, the median one %s; %s a step between them", f.Launches/max(f.Steps, 1), render.Duration(f.Kernel), render.Duration(f.step(f.Idle.Host))),
		Fix:         between,
		Gain:        Saves(f.step(f.Idle.Host), "time in which no operation ran and the loader was not waited for"),
		DisprovedBy: "the host's profile shows nothing but operations",
	}
	switch few := "operations this short cost less than what surrounds them: a larger batch, fused layers"; {
	case 2*f.launching() > f.Idle.Host:
		found.Fix = few + ", or the whole step at once (tensor.Capture, train --capture)"
		found.DisprovedBy = "the captured step takes as long"
	case f.Kernel < shortKernel && 2*f.Captured > f.Idle.Host:
		found.Fix = few
	}
	return []Finding{found}
}

// starved tells that the device is idle and neither waits nor the loader are the main reason.
func (f *Facts) starved() bool {
	return f.Timed && !f.OnHost && f.Launches > 0 && f.share(f.Busy) < busyShare && 2*f.Idle.Host > f.Idle.Sum() && f.share(f.Idle.Host) > 1-busyShare
}

func tiny(f *Facts) (all []Finding) {
	for _, m := range f.Moves {
		if f.OnHost || m.Count <= tinyCopies*max(f.Steps, 1) || m.Median >= tinyCopy {
			continue
		}
		n := m.Count / max(f.Steps, 1)
		all = append(all, Finding{
			Title: fmt.Sprintf("%d copies a step of %s (%s)", n, render.Bytes(m.Median), m.What), Line: m.Line,
			Evidence:    Says("%s in all; a step has %s of the device with them, and %s of the host", render.Bytes(m.Bytes), render.Duration(f.step(m.Took)), render.Duration(f.step(m.Host))),
			Fix:         "pack them into one tensor and copy that",
			Gain:        Saves(f.step(m.Took)*time.Duration(n-1)/time.Duration(n), "what all but one take of the device"),
			DisprovedBy: "the host or the device is idle meanwhile",
		})
	}
	return all
}

func exposed(f *Facts) []Finding {
	if f.OnHost || f.share(f.Copies) < copyShare {
		return nil
	}
	line, fix := "", "keep on the device what does not change; copy fewer bytes: numbers as small as they are, such as pixels as u8, made floats on the device by Cast"
	if len(f.Moves) > 0 {
		most := slices.MaxFunc(f.Moves, func(a, b Move) int { return cmp.Compare(a.Took, b.Took) })
		if line = most.Line; strings.Contains(most.What, "DtoH") {
			fix = "leave values on the device, ask for them by Later, and every tenth step"
		}
	}
	return []Finding{{
		Title: fmt.Sprintf("%s of the step is copies that nothing runs beside", f.percent(f.Copies)), Line: line,
		Evidence: Says("%s a step", render.Duration(f.step(f.Copies))),
		Fix:      fix,
		Gain:     Saves(f.step(f.Copies), "time in which the device did nothing but copy"),
	}}
}

func wide(f *Facts) []Finding {
	if f.Tensor <= 1 || f.share(f.Products) < productShare || float64(f.Wide) < wideShare*float64(f.Products) {
		return nil
	}
	const realistic = 3 // what programs gain on products, of peaks that differ by 8 to 16
	return []Finding{{
		Title: fmt.Sprintf("%s of the step is products that leave the tensor cores aside", f.percent(f.Wide)), Line: f.WideLine,
		Evidence:    Says("%s a step in float32 products; 16-bit ones have %.0f times the peak on %s", render.Duration(f.step(f.Wide)), f.Tensor, f.Device),
		Fix:         "bfloat16 products: env.Autocast(dtype.BF16), train --amp",
		Gain:        Saves(time.Duration((1-1/min(f.Tensor, realistic))*float64(f.step(f.Wide))), "two thirds of their time: products gain 1.5 to 3 times"),
		DisprovedBy: "the products are too small to fill the card",
	}}
}

func memoryBound(f *Facts) []Finding {
	if f.OnHost || f.share(f.Elementwise) < moveShare {
		return nil
	}
	return []Finding{{
		Title:    fmt.Sprintf("%s of the step is operations that only read and write, as fast as the memory does", f.percent(f.Elementwise)),
		Evidence: Says("%s a step above 60 %% of the memory's bandwidth", render.Duration(f.step(f.Elementwise))),
		Fix:      "fused layers (nn.Linear.Act, nn.Residual, nn.LinearCrossEntropy) and 16-bit activations: move fewer bytes",
		Gain:     Saves(f.step(f.Elementwise)/2, "half of their time: two operations made one, or half as many bytes"),
	}}
}

func noGradient(f *Facts) []Finding {
	if len(f.NoGradient) == 0 {
		return nil
	}
	names := f.NoGradient
	rest := ""
	if len(names) > 3 {
		names, rest = names[:3], fmt.Sprintf(" and %d more", len(names)-3)
	}
	return []Finding{{
		Title:    fmt.Sprintf("%d parameters never had a gradient: %s%s", len(f.NoGradient), strings.Join(names, ", "), rest),
		Evidence: Says("no step's Backward reached them"),
		Fix:      "use them in the loss, freeze them (nn.Freeze), or drop them",
		Gain:     Gain{Text: "no time: they do not learn"},
	}}
}

func growing(f *Facts) (all []Finding) {
	for _, g := range f.Growing {
		all = append(all, Finding{
			Title: fmt.Sprintf("each step leaves %s more in memory (%s)", render.Bytes(g.Bytes), g.Kind), Line: g.Line,
			Evidence:    Says("%d steps in a row", g.Steps),
			Fix:         "do not keep values of a batch beyond it: keep numbers, or Detach and Keep what is needed",
			Gain:        Gain{Text: "a step", Bytes: g.Bytes},
			DisprovedBy: "it stops to grow once all shapes have been seen",
		})
	}
	return all
}
