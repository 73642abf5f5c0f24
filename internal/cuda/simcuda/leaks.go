package simcuda

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Leak is memory that a program took from the driver and has not given back.
type Leak struct {
	Device int
	Kind   LeakKind
	Addr   uint64 // of device or host memory, or the handle of memory without an address
	Bytes  int64
	By     string // the call, and who made it where Config.Caller tells
	Number int    // of the allocation, among all of the machine from 1
}

// LeakKind is what sort of memory it is.
type LeakKind uint8

// The kinds of memory.
const (
	DeviceMemory LeakKind = iota
	PinnedMemory          // of the host
	HandleMemory          // of MemCreate
)

var leakKinds = [...]string{DeviceMemory: "device memory", PinnedMemory: "pinned host memory", HandleMemory: "memory of a handle"}

// String is the kind in words.
func (k LeakKind) String() string { return leakKinds[k] }

// Misuse is a call that was refused because of memory that was given back, or is no such memory: what a card may take, or not find
// out. A kernel that touches such memory is a fault of its context.
type Misuse struct {
	Device int
	Kind   MisuseKind
	Call   string // and who made it, where Config.Caller tells
	Addr   uint64
	Text   string // what is there: size, who made it and who freed it
}

// MisuseKind is what is wrong with a call.
type MisuseKind uint8

// The kinds of misuse.
const (
	DoubleFree   MisuseKind = iota
	BadFree                 // of what is not the start of an allocation
	UseAfterFree            // by a copy or a fill
)

var misuseKinds = [...]string{DoubleFree: "double free", BadFree: "free of what is no allocation", UseAfterFree: "use after free"}

// String is the kind in words.
func (k MisuseKind) String() string { return misuseKinds[k] }

// String is the misuse on a line.
func (m Misuse) String() string {
	return fmt.Sprintf("%v: %s of %#x on device %d: %s", m.Kind, m.Call, m.Addr, m.Device, m.Text)
}

// maker is the call that takes or frees memory, as findings name it.
func (s *System) maker(call string) string {
	if s.cfg.Caller == nil {
		return call
	}
	if who := s.cfg.Caller(); who != "" {
		return call + " at " + who
	}
	return call
}

// taken numbers an allocation.
func (s *System) taken() int {
	s.takes++
	return s.takes
}

// misused notes a call that was refused, if an address is of memory that was freed, or if it is a free.
func (c *context) misused(kind MisuseKind, call string, p driver.Ptr) {
	s := c.dev.sys
	if len(s.misuses) >= maxFindings {
		return
	}
	m := Misuse{Device: c.dev.ordinal, Kind: kind, Call: s.maker(call), Addr: uint64(p)}
	sim := c.dev.sim
	if o := c.owner(p); o != nil {
		m.Device, sim = o.dev.ordinal, o.dev.sim
	}
	m.Text = sim.Describe(uint64(p))
	freed, start := sim.Freed(uint64(p))
	switch {
	case kind == UseAfterFree && !freed:
		return
	case kind == DoubleFree && !(freed && start) && !c.freeing(p):
		m.Kind = BadFree
	}
	s.misuses = append(s.misuses, m)
}

// freeing tells whether a stream is about to free an allocation.
func (c *context) freeing(p driver.Ptr) bool {
	o := c.owner(p)
	return o != nil && o.allocs[p] != nil && o.allocs[p].freeing
}

// Misuses returns the calls that were refused because of memory that was given back, since the last call, at most 4096.
func (s *System) Misuses() []Misuse {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.misuses
	s.misuses = nil
	return m
}

// Leaks returns what a program has not given back, at most 4096 of it, in the order in which it was taken: what contexts held when they
// ended since the last call, and what is held now. Nobody can free after a fault: the memory of such a context is no leak. A program
// asks at its end.
func (s *System) Leaks() []Leak {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.leaked
	s.leaked = nil
	for _, d := range s.devices {
		if d.ctx != nil {
			all = append(all, s.held(d.ctx)...)
		}
	}
	sorting.By(all, func(a, b Leak) int { return cmp.Compare(a.Number, b.Number) })
	return all[:min(len(all), maxFindings)]
}

// held is what a program has not given back in a context; nothing after a fault.
func (s *System) held(c *context) (all []Leak) {
	if c.err != driver.Success {
		return nil
	}
	n := c.dev.ordinal
	for p, a := range c.allocs {
		if !a.freeing {
			all = append(all, Leak{n, DeviceMemory, uint64(p), a.bytes, a.by, a.number})
		}
	}
	for _, p := range s.pinned {
		if p.ctx == c && p.block.Size > 0 {
			all = append(all, Leak{n, PinnedMemory, uint64(p.lo), int64(p.hi - p.lo), p.by, p.number})
		}
	}
	for h, m := range s.memories {
		if m.dev == c.dev {
			all = append(all, Leak{n, HandleMemory, uint64(h), m.bytes, m.by, m.number})
		}
	}
	return all
}

// ended keeps what a context holds when it ends.
func (s *System) ended(c *context) {
	if room := maxFindings - len(s.leaked); room > 0 {
		all := s.held(c)
		sorting.By(all, func(a, b Leak) int { return cmp.Compare(a.Number, b.Number) })
		s.leaked = append(s.leaked, all[:min(len(all), room)]...)
	}
}

// LeakText is leaks for people, those of one call and caller together, the most bytes first; "" for none.
func LeakText(leaks []Leak) string {
	type group struct {
		first Leak
		count int
		bytes int64
	}
	var groups []*group
	by := map[Leak]*group{}
	total := int64(0)
	for _, l := range leaks {
		total += l.Bytes
		key := Leak{Device: l.Device, Kind: l.Kind, By: l.By}
		g := by[key]
		if g == nil {
			g = &group{first: l}
			by[key], groups = g, append(groups, g)
		}
		g.count++
		g.bytes += l.Bytes
	}
	if len(groups) == 0 {
		return ""
	}
	sorting.By(groups, func(a, b *group) int { return cmp.Compare(b.bytes, a.bytes) })
	var b strings.Builder
	fmt.Fprintf(&b, "leak: %s never freed, in %d allocations\n", render.Bytes(total), len(leaks))
	for _, g := range groups {
		fmt.Fprintf(&b, "  %s of %v on device %d in %d, made by %s: the first is %d bytes at %#x, allocation %d of the program\n",
			render.Bytes(g.bytes), g.first.Kind, g.first.Device, g.count, g.first.By, g.first.Bytes, g.first.Addr, g.first.Number)
	}
	return b.String()
}
