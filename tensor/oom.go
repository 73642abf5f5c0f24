package tensor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/oom"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// Holder is memory in use of one kind, module and line of the program.
type Holder = oom.Holder

// Lever is something to do so that a program fits.
type Lever = oom.Lever

// OOMError says that memory ran out, after everything unreachable was reclaimed: who holds it, and what to do. Operations
// panic with it, and [Env.Try] turns it into an error; what its block had is released then, and the program can go on.
// Package plan adds what would have fitted.
type OOMError struct {
	oom.Report
	Err error // the allocator's

	dev     *Device
	there   *Inventory // of the moment
	site    callsite.Site
	at      time.Duration
	most    int64 // that may be in use; 0: no such limit
	reserve int64 // that the allocator may have; 0: no such limit
}

// Error is one line with the figures.
func (e *OOMError) Error() string {
	limit := ""
	if e.Limit > 0 {
		limit = " of " + render.Bytes(e.Limit)
	}
	if e.Free >= 0 {
		limit += ", " + render.Bytes(e.Free) + " free"
	}
	advice := "use a smaller batch (data.Split) or Recompute"
	if len(e.Levers) > 0 {
		advice = e.Levers[0].Flag
	}
	return fmt.Sprintf("%s at %s: out of memory on %s: asked for %s with %s allocated and %s reserved%s; %s",
		e.Op, e.Line, e.Device, render.Bytes(e.Asked), render.Bytes(e.Allocated), render.Bytes(e.Reserved), limit, advice)
}

// Unwrap returns the allocator's error.
func (e *OOMError) Unwrap() error { return e.Err }

// WriteText writes one screen for people: up to 19 lines of 80 columns.
func (e *OOMError) WriteText(w io.Writer) error { return e.Report.WriteText(w) }

// MarshalJSON writes the figures for machines, in bytes: device, op, line, module, asked, allocated, reserved, largest_free,
// limit, by_kind, by_module, by_line, largest_batch and levers.
func (e *OOMError) MarshalJSON() ([]byte, error) { return e.Report.MarshalJSON() }

// Inventory is what the memory held when it ran out, by the host's time at, and the calls that asked for more.
func (e *OOMError) Inventory() (v *Inventory, site callsite.Site, at time.Duration) {
	return e.there, e.site, e.at
}

// Rehearsal says under what a program runs again.
type Rehearsal struct {
	Limit     float64 // of what there was when memory ran out: 1 is as much; 0 is without a limit
	AllocConf string  // of the allocator, as WARPLINE_ALLOC_CONF has it; "": as it was
}

// Rehearse returns the root env of a device like the one that memory ran out on, empty, which computes nothing: what a program
// needs there, scratch memory of kernels included, it needs here. The error is that of the configuration or of the device.
func (e *OOMError) Rehearse(r Rehearsal) (*Env, error) {
	conf := e.dev.alloc.Settings()
	if r.AllocConf != "" {
		c, err := device.ParseConf(r.AllocConf)
		if err != nil {
			return nil, err
		}
		if conf.Conf = c.On(e.dev.dev); conf.CheckFor(e.dev.dev) != nil {
			return nil, conf.CheckFor(e.dev.dev)
		}
	}
	scaled := func(n int64) int64 { return int64(r.Limit * float64(n)) }
	return e.dev.rehearse(scaled(e.most), scaled(e.reserve), conf)
}

// Within is the limit under which a rehearsal is with Limit 1, in bytes: of those in use, where SetLimit has set one; otherwise of
// what the allocator takes, cached memory and fragments included. 0 is no limit.
func (e *OOMError) Within() int64 { return cmp.Or(e.most, e.reserve) }

// outOfMemory reports an allocation that failed, for an operation on in; on a device that has failed altogether, that.
func (d *Device) outOfMemory(env *Env, n int64, code ir.Code, err error, in []*Tensor, o *device.Origin) {
	if !errors.Is(err, device.ErrOutOfMemory) && !errors.Is(err, heap.ErrInjected) {
		raiseErr(code.String(), "", err)
	}
	m := d.Memory()
	e := &OOMError{Err: err, dev: d, most: d.heap.Limit(), reserve: cmp.Or(d.alloc.Limit(), d.info.Memory)}
	e.Report = oom.Report{Device: d.name, Op: code.String(), Line: userLine(), Asked: n, Allocated: m.Allocated.Current,
		Reserved: m.Reserved.Current, Limit: d.limit(), Free: -1}
	if p := near(in); p != nil {
		e.Module = moduleOf(*p)
	}
	var refused *device.OOMError
	if errors.As(err, &refused) {
		e.refused(refused)
	} else {
		e.LargestFree = max(0, e.most-m.Used)
	}
	var v *Inventory
	d.Inventory(func(now *Inventory) { v = now })
	e.there, e.at = v, d.Now()
	callsite.User(&e.site)
	e.Holders = holders(v)
	e.Suggest(e.found(env, v)...)
	event := device.Event{Kind: device.KindOutOfMemory, Bytes: n, Err: e}
	if o != nil {
		event.Origin = *o
	}
	d.stream.Emit(event)
	panic(e)
}

// refused takes over what the allocator has found.
func (e *OOMError) refused(by *device.OOMError) {
	e.Free, e.LargestFree = by.Free, by.LargestFree
	unused := by.Reserved - by.Active
	if left := max(by.Free, 0); by.Free >= 0 {
		e.reserve = by.Reserved + left
		if e.Asked <= unused+left {
			e.Stuck = unused
		}
	}
}

// Holders lists who holds the device's memory, largest first: values of a kind, a module and a line of the program together.
// The sum is what programs have asked for and not let go of.
func (d *Device) Holders() []Holder {
	var v *Inventory
	d.Inventory(func(now *Inventory) { v = now })
	return holders(v)
}

// Kind is what a value's memory serves for: its label, but that nothing keeps an activation any more after Backward.
func (v *Value) Kind() string {
	switch {
	case v.Label == device.LabelSaved && !v.Held:
		return device.LabelOther
	case v.Label == device.LabelOther && v.Held:
		return device.LabelSaved
	}
	return v.Label
}

// Module is the module that a value belongs to: that of its own parameter, or of the nearest before it; "" for none.
func (v *Value) Module() string { return moduleOf(cmp.Or(v.Path, v.Near)) }

// moduleOf is the module of a parameter's path: all but its last element.
func moduleOf(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

func holders(v *Inventory) []Holder {
	type key struct{ kind, module, line string }
	lines, sums, turns := lineCache{}, map[key]*Holder{}, map[key]map[uint32]bool{}
	for i := range v.Values {
		x := &v.Values[i]
		k := key{x.Kind(), x.Module(), lines.of(x.Site)}
		h := sums[k]
		if h == nil {
			h = &Holder{Kind: k.kind, Module: k.module, Line: k.line}
			sums[k], turns[k] = h, map[uint32]bool{}
		}
		h.Bytes, h.Values = h.Bytes+x.Bytes, h.Values+1
		turns[k][x.Turn] = true
	}
	all := make([]Holder, 0, len(sums))
	for k, h := range sums {
		h.Turns = len(turns[k])
		all = append(all, *h)
	}
	sorting.By(all, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Line, b.Line))
	})
	return all
}

// lineCache is the lines of call sites.
type lineCache map[*callsite.Site]string

func (c lineCache) of(s *callsite.Site) string {
	if s == nil {
		return "" // what kernels work in
	}
	line, ok := c[s]
	if !ok {
		file, n, _ := s.User(callsite.IsLibrary)
		if line = "unknown"; file != "" {
			line = fmt.Sprintf("%s:%d", path.Base(file), n)
		}
		c[s] = line
	}
	return line
}
