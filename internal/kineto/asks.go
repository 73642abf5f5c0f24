package kineto

import (
	"fmt"
	"slices"
	"strings"
)

// What rules ask before they judge: whether the file has what they look at. A rule that is not asked says nothing, and what it
// looks at is not said to be well either.

func (a *analysis) worked() bool   { return a.kernels > 0 && a.window.Dur() > 0 }
func (a *analysis) stepped() bool  { return a.worked() && a.steps > 0 }
func (a *analysis) repeated() bool { return a.worked() && a.steps >= leastSteps }
func (a *analysis) bindable() bool { return a.stepped() && a.kernels >= leastKernels }
func (a *analysis) computed() bool { return a.worked() && a.kernels >= leastKernels }

// seen tells that events of a device were read, or that there are none in a file whose every event was read and is of the
// kinds that the profiler writes.
func (a *analysis) seen() bool { return a.onDevice > 0 || a.unread() == "" }

// unread is why a file without events of a device may have had some; "" where nothing says so.
func (a *analysis) unread() string {
	c := &a.counts
	known := len(a.Trace.host) + len(a.ops) + len(a.Trace.functions) + len(a.Trace.syncs)
	switch {
	case c.cut != "":
		return "the file is cut before the first one"
	case c.unusable > 0:
		return fmt.Sprintf("%d have times that are no numbers, or last more than a week", c.unusable)
	case c.broken+c.large > 0:
		return fmt.Sprintf("%d events could not be read", c.broken+c.large)
	case c.events > 0 && known == 0:
		return fmt.Sprintf("none of the %d events is of a category that PyTorch's profiler writes", c.events)
	}
	return ""
}

// judgeable says why nothing of a device's work can be judged; "" where something can.
func (a *analysis) judgeable() string {
	switch {
	case a.onDevice == 0:
		return "no event of a device was read: " + a.unread()
	case a.kernels == 0:
		return fmt.Sprintf("of the device's %d events none is a kernel within the time that is looked at", a.onDevice)
	case a.window.Dur() <= 0:
		return "the device's events take no time"
	}
	return ""
}

// idleShare is the part of the window in which the device did nothing.
func (a *analysis) idleShare() float64 { return a.share(a.idle()) }

// called tells that calls of the driver were recorded.
func (a *analysis) called() bool {
	from, to := a.callsOf(a.marked)
	return a.worked() && from < to
}

func (a *analysis) calledInSteps() bool { return a.called() && a.steps > 1 }

// launchesSeen tells that kernels of the window have the calls that launched them.
func (a *analysis) launchesSeen() bool {
	for i := a.first; i < a.last; i++ {
		if a.device[i].kind == kernel && a.launched(i) != nil {
			return true
		}
	}
	return false
}

// loads tells that waits for batches would be seen: the loader is in the file, or the device is never idle for long.
func (a *analysis) loads() bool {
	return a.worked() && (a.counts.loads > 0 || a.idleShare() <= loaderShare)
}

// binds tells that it is known what binds the device: it is busy, or its launches are in the file.
func (a *analysis) binds() bool {
	return a.bindable() && (a.share(a.busy.total()) >= busyShare || a.launchesSeen())
}

func (a *analysis) launchesRepeat() bool { return a.repeated() && a.launchesSeen() }

// copied tells that there are copies whose names have one of words.
func (a *analysis) copied(words ...string) bool {
	return a.worked() && len(a.totals(func(e *event) bool {
		return e.kind == copying && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(a.Name(e), w) })
	})) > 0
}

// pinning tells that copies say of which memory of the host they are, which AMD's do not.
func (a *analysis) pinning() bool { return a.copied("Pageable", "Pinned") }

func (a *analysis) copiesIn() bool { return a.copied("HtoD", "HostToDevice") }

// sized tells that copies have their bytes.
func (a *analysis) sized() bool {
	return a.stepped() && slices.ContainsFunc(a.totals(func(e *event) bool { return e.kind == copying }), func(t total) bool { return t.bytes > 0 })
}

// multiplies tells that there are products, by the names of kernels.
func (a *analysis) multiplies() bool {
	_, _, on, off := a.products()
	return a.computed() && on+off > 0
}

// withSwitch and withoutSwitch tell cards with tensor cores that have TF32, and that have not.
func (a *analysis) withSwitch() bool {
	sm, _ := a.arch()
	return a.multiplies() && a.tf32(sm)
}

func (a *analysis) withoutSwitch() bool {
	sm, _ := a.arch()
	return a.multiplies() && sm >= 70 && !a.tf32(sm)
}

func (a *analysis) shaped() bool { return a.computed() && a.shapes }

// shapedProducts tells that products have the sizes of their operands.
func (a *analysis) shapedProducts() bool {
	return a.shaped() && slices.ContainsFunc(a.byShape(), func(o shapedOp) bool {
		_, ok := o.product()
		return ok && o.ns > 0
	})
}

// attends tells that there is attention whose scores would be seen, on a card for which there is a better one.
func (a *analysis) attends() bool {
	sm, _ := a.arch()
	return sm >= leastFlash && a.shaped() && slices.ContainsFunc(a.byShape(), func(o shapedOp) bool {
		return o.isScores() && strings.Contains(o.name, "softmax") || strings.Contains(o.name, "attention")
	})
}

// gridded tells that most of the kernels' time is of kernels with their number of blocks.
func (a *analysis) gridded() bool {
	var all, with int64
	for i := a.first; i < a.last; i++ {
		e := &a.device[i]
		if e.kind != kernel || a.class(e)&isComm != 0 {
			continue
		}
		if all += e.dur; e.aux != 0 {
			with += e.dur
		}
	}
	return a.computed() && with > 0 && 2*with >= all
}

// named tells that most of the kernels' time is of kernels whose names tell what they do.
func (a *analysis) named() bool {
	var all, known int64
	for _, t := range a.totals(isKernel) {
		e := &a.device[t.first]
		if all += t.ns; a.class(e)&(isComm|isTensor|isPlain|isShort) != 0 || fused(a.Name(e)) {
			known += t.ns
		}
	}
	return a.computed() && 2*known >= all
}

// optimizes tells that the optimizer's steps are marked and kernels have their launches.
func (a *analysis) optimizes() bool {
	return a.stepped() && len(a.ranges(isOptim).in(a.marked)) > 0 && a.launchesSeen()
}

func (a *analysis) communicates() bool { return a.stepped() && len(a.comm) > 0 }

// messages tells that collectives have their sizes.
func (a *analysis) messages() bool { return a.communicates() && len(a.messageSizes()) > 0 }

func (a *analysis) measured() bool {
	return a.peakBytes[1] > 0 && len(a.Devices) > 0 && a.Devices[0].Memory > 0
}
