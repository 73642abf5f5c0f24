package kineto

import "slices"

const topKernels = 10

// figures adds what was measured of the steps that are looked at; times are those of the whole window.
func (a *analysis) figures(f map[string]any) {
	f["window_us"], f["window_steps"] = us(a.window.Dur()), a.steps
	f["headroom_idle_us"], f["headroom_comm_us"] = us(a.perStep(a.idle())), us(a.perStep(a.comm.without(a.compute).total()))
	f["window_busy_us"], f["idle_us"] = us(a.busy.total()), us(a.idle())
	for c, ns := range a.causes {
		f[causeNames[c]] = us(ns)
	}
	f["families"], f["top_kernels"] = a.families(), a.top()
	f["copies_by_kind"], f["syncs"] = a.copiesByKind(), a.syncFigures()
	f["queue_depth_max"], f["queue_depth_median"] = a.queue()
	_, _, on, off := a.products()
	f["idle_by_stream"] = a.idleByStream()
	f["products_us"], f["products_tensor_share"] = us(on+off), share(on, on+off)
	f["est_sm_efficiency"] = nil
	if s, lost := a.filledShare(); s < 1 || lost > 0 {
		f["est_sm_efficiency"] = s
	}
}

// family is the time of a family of events of the device, by name.
type family struct {
	Name  string  `json:"name"`
	Count int     `json:"count"`
	US    float64 `json:"us"` // summed over streams
}

func (a *analysis) families() []family {
	all := []family{{Name: Communication}, {Name: Memory}, {Name: Product}, {Name: Computation}}
	for i := a.first; i < a.last; i++ {
		e := &a.device[i]
		n := slices.IndexFunc(all, func(f family) bool { return f.Name == a.family(e) })
		all[n].Count++
		all[n].US += us(e.dur)
	}
	return all
}

// row is the time of one name.
type row struct {
	Name  string  `json:"name"`
	Count int     `json:"count"`
	US    float64 `json:"us"`
	Bytes int64   `json:"bytes,omitempty"`
}

func (a *analysis) rows(totals []total) []row {
	rows := []row{}
	for _, t := range totals {
		rows = append(rows, row{a.names.names[t.name], t.count, us(t.ns), t.bytes})
	}
	return rows
}

func (a *analysis) top() []row {
	t := a.totals(isKernel)
	return a.rows(t[:min(topKernels, len(t))])
}

func (a *analysis) copiesByKind() []row {
	t := a.totals(func(e *event) bool { return e.kind == copying })
	return a.rows(t[:min(topKernels, len(t))])
}

// syncFigure is a place that waits, by call, operator and line.
type syncFigure struct {
	Call  string  `json:"call"`
	Op    string  `json:"op,omitempty"`
	Line  string  `json:"line,omitempty"`
	Count int     `json:"count"`
	US    float64 `json:"us"`
	Idle  float64 `json:"idle_us"` // of the device behind it
}

func (a *analysis) syncFigures() []syncFigure {
	rows := []syncFigure{}
	for i := range a.syncs[:min(topKernels, len(a.syncs))] {
		s := &a.syncs[i]
		rows = append(rows, syncFigure{s.call, s.op, s.stack, s.count, us(s.ns), us(s.idle)})
	}
	return rows
}

// queue is how many events of the device were launched and had not begun, as each launch of the window left it.
func (a *analysis) queue() (most, typical int) {
	var launches, starts []int64
	for i := a.first; i < a.last; i++ {
		if l := a.launched(i); l != nil {
			launches, starts = append(launches, l.start), append(starts, max(a.device[i].start, l.start))
		}
	}
	slices.Sort(launches)
	slices.Sort(starts)
	depths := make([]int64, len(launches))
	begun := 0
	for i, at := range launches {
		for begun < len(starts) && starts[begun] <= at {
			begun++
		}
		depths[i] = int64(i + 1 - begun)
		most = max(most, int(depths[i]))
	}
	return most, int(medianNS(depths))
}

// keep writes into the trace what comparing several needs once the events are gone.
func (a *analysis) keep() {
	a.Judged, a.Marked = a.window, a.steps
	for _, t := range a.totals(func(*event) bool { return true }) {
		a.Kernels = append(a.Kernels, Kernels{a.names.names[t.name], a.family(&a.device[t.first]), t.count, t.ns})
	}
	busy, compute, comm, loader := union(a.device, nil), a.computation(), a.union(isComm), a.ranges(isLoader)
	if a.worked() {
		w := a.walker()
		a.Path, a.legs = w.path(), w.legs()
	}
	for i := range a.Steps {
		s := &a.Steps[i]
		within := func(all spans) int64 { return touching(all, s.Window).in(s.Window).total() }
		s.Busy, s.Compute, s.Comm, s.Loader = within(busy), within(compute), within(comm), within(loader)
	}
}
