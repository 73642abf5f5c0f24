package kineto

import (
	"fmt"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

// Thresholds. Those with a name behind them are of the tool that made them known.
const (
	least         = 0.005    // of a step, below which a gain is not worth a word
	loaderShare   = 0.05     // of a step, as TensorBoard's plugin has it
	waitShare     = 0.02     // of a step lost behind waits
	waitsAStep    = 2        // more waits than this that read values are said even where little is lost
	busyShare     = 0.80     // of a step, below which the device waits for the host
	halfBusy      = 0.50     // of a step, as TensorBoard's plugin has it
	shortDelay    = 10       // microseconds from launch to kernel, below which nothing is queued
	shortKernel   = 10       // microseconds: what a launch costs the host, 5 to 20 by HolisticTraceAnalysis
	shortShare    = 0.40     // of kernels that are shorter than their launch
	leastKernels  = 100      // in the window, to say what binds it
	tinyCopies    = 20       // a step
	tinyCopy      = 64 << 10 // bytes
	copyShare     = 0.02     // of a step with nothing but copies
	memoryShare   = 0.01     // of a step in calls that allocate and free
	longCall      = 50       // microseconds of a call, as HolisticTraceAnalysis has it
	tensorShare   = 0.5      // of products on tensor cores
	productShare  = 0.2      // of the device's time, below which products are not worth a word
	mostlyProduct = 0.85     // of the device's time, from which fusing the rest gives nothing
	moveShare     = 0.3      // of the device's time for what only reads and writes
	optimKernels  = 100      // a step within the optimizer
	optimShare    = 0.1      // of a step
	commShare     = 0.1      // of a step exposed
	smallMessage  = 256 << 10
	smallMessages = 20 // a step
	nearMemory    = 0.9
	smShare       = 0.7 // of multiprocessors with a block, as TensorBoard's plugin has it
)

// rule is one thing that may be wrong.
type rule struct {
	id, name string
	looksAt  string                 // what is healthy where it finds nothing
	asks     func(a *analysis) bool // whether the file has what it looks at
	judge    func(a *analysis) *finding.Finding
}

var rules = []rule{
	{"R50", "no-gpu-events", "events of the device", (*analysis).seen, noDevice},
	{"R17", "loader-bound", "waits for batches", (*analysis).loads, loaderBound},
	{"R13", "waits-in-loop", "waits of the host for the device", (*analysis).called, waitsInLoop},
	{"R18", "launch-bound", "launches shorter than what they cost", (*analysis).binds, launchBound},
	{"R18", "host-bound", "time of the host between launches", (*analysis).binds, hostBound},
	{"R19", "slow-calls", "calls that allocate and free memory", (*analysis).calledInSteps, slowCalls},
	{"R29", "recompilation", "code that is loaded again", (*analysis).calledInSteps, churn},
	{"R20", "pauses", "pauses of the host without any call", (*analysis).launchesRepeat, pauses},
	{"R21", "periodic-work", "steps that take longer every so often", (*analysis).repeated, periodicWork},
	{"R14", "pageable-copies", "copies of pageable memory", (*analysis).pinning, pageableCopies},
	{"R15", "tiny-copies", "small copies", (*analysis).sized, smallCopies},
	{"R16", "exposed-copies", "copies that nothing overlaps", (*analysis).copiesIn, exposedCopies},
	{"R22", "no-tensor-cores", "products beside tensor cores", (*analysis).withoutSwitch, beside},
	{"R23", "no-tf32", "products of float32 beside TF32", (*analysis).withSwitch, withoutTF32},
	{"R24", "misaligned-shapes", "sizes of products", (*analysis).shapedProducts, misaligned},
	{"R25", "few-blocks", "blocks for all multiprocessors", (*analysis).gridded, fewBlocks},
	{"R28", "memory-bound", "operations that only move memory", (*analysis).named, memoryBound},
	{"R31", "slow-attention", "attention that writes its scores", (*analysis).attends, slowAttention},
	{"R32", "unfused-optimizer", "kernels of the optimizer", (*analysis).optimizes, unfusedOptimizer},
	{"R07", "never-zeroed", "gradients that start from nothing", (*analysis).backward, neverZeroed},
	{"R08", "zeroing", "zeros for gradients", (*analysis).zeroes, zeroing},
	{"R33", "exposed-communication", "communication that nothing overlaps", (*analysis).communicates, exposedCommunication},
	{"R34", "small-messages", "sizes of messages", (*analysis).messages, smallMessagesRule},
	{"R42", "reduces-each-pass", "reductions of accumulated gradients", (*analysis).accumulates, reducesEachPass},
	{"R38", "data-parallel", "one process for each card", (*analysis).marksOps, dataParallel},
	{"R39", "gloo", "the library of communication", (*analysis).backed, gloo},
	{"R11", "memory-near-limit", "memory left on the card", (*analysis).measured, memoryNearLimit},
	{"R26", "under-filled", "the device's idle time", (*analysis).bindable, underFilled},
}

// judge asks every rule: findings in order of gain, what was looked at and is healthy, and what the file does not have.
func (a *analysis) judge() (found []finding.Finding, checked, without []string) {
	found, checked, without = []finding.Finding{}, []string{}, []string{}
	for _, r := range rules {
		if !r.asks(a) {
			without = append(without, r.looksAt)
			continue
		}
		f := r.judge(a)
		if f == nil {
			checked = append(checked, r.looksAt)
			continue
		}
		f.Rule, f.Name = r.id, r.name
		a.found = append(a.found, r.name)
		found = append(found, *f)
	}
	finding.Sort(found)
	return found, checked, without
}

// worth tells whether a time of a step is worth a word.
func (a *analysis) worth(d time.Duration) bool {
	return float64(d) >= least*float64(a.perStep(a.window.Dur()))
}

// time is evidence that is a time.
func timing(name string, ns int64, format string, args ...any) finding.Evidence {
	return finding.Evidence{Name: name, Value: us(ns), Unit: "us", Text: fmt.Sprintf(format, args...)}
}

// counted is evidence that is a number of things.
func counted(name string, n int, format string, args ...any) finding.Evidence {
	return finding.Evidence{Name: name, Value: n, Text: fmt.Sprintf(format, args...)}
}

// part is evidence that is a share.
func part(name string, share float64, format string, args ...any) finding.Evidence {
	return finding.Evidence{Name: name, Value: share, Unit: "share", Text: fmt.Sprintf(format, args...)}
}

// says is evidence that is a sentence.
func says(format string, args ...any) finding.Evidence { return finding.Says(format, args...)[0] }

func duration(ns int64) string { return render.Duration(time.Duration(ns)) }

// percent is a share for people.
func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// each says "a step" where steps are marked, and what the window is where not.
func (a *analysis) each() string {
	if a.steps > 0 {
		return "a step"
	}
	return "in the trace"
}

// replayed is the gain of a change, by a replay of the timeline. Where other things bind the step it is none, and of is the
// time that the change takes off what it changes.
func (a *analysis) replayed(c change, of int64, how string) finding.Gain {
	d := a.gain(c)
	if !a.worth(d) && a.worth(time.Duration(a.perStep(of))) {
		return finding.Gain{Text: fmt.Sprintf("next to nothing while something else binds the step; once it does not, up to %s %s: %s", duration(a.perStep(of)), a.each(), how)}
	}
	return a.saves(d, how+", by a replay of the timeline")
}

// saves is a gain of a step; where no step is marked, of the whole trace.
func (a *analysis) saves(d time.Duration, how string) finding.Gain {
	g := finding.Saves(d, how)
	if a.steps == 0 {
		g.Whole = true
		g.Text += "; the trace marks no steps"
	}
	return g
}
