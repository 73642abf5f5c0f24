package prof

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/sorting"
)

//go:embed page.html
var page string

// pageMark is where the page has its data.
const pageMark = "/*DATA*/null"

// WritePage writes a page for a browser, one file that fetches nothing: memory over time by kind, what there was at the peak by
// kind, module and line, and the allocator's segments at many moments: behind each event of a short history. The file is there whole or not at all.
func (h *History) WritePage(path string) error {
	logs, err := h.logs()
	if err != nil {
		return err
	}
	var all []pageDevice
	for _, l := range logs {
		all = append(all, l.page())
	}
	data, err := json.Marshal(struct {
		Labels  []string     `json:"labels"`
		Devices []pageDevice `json:"devices"`
	}{device.Labels(), all})
	if err != nil {
		return err
	}
	return durable.WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Replace(page, pageMark, string(data), 1))
		return err
	})
}

// pageDevice is a device on the page.
type pageDevice struct {
	*Timeline
	Rows    []Holder `json:"rows"` // of the moments' blocks
	Moments []moment `json:"moments"`
}

// moment is the layout of a device's memory.
type moment struct {
	At       time.Duration `json:"at"`
	Segments []pageSegment `json:"segments"`
}

// pageSegment is a segment on the page; its blocks are (offset, size, asked, row, 1 where it waits for another queue), and what
// lies between is free.
type pageSegment struct {
	Size   int64      `json:"size"`
	Queue  uint16     `json:"queue"`
	Blocks [][5]int64 `json:"blocks"`
	addr   uint64
}

// What a page has at most: moments, and blocks in all of them.
const (
	pageMoments = 1000
	pageBlocks  = 40_000
)

// page is the timeline with moments: the beginning, the end, that of the peak, and others evenly between.
func (l *memoryLog) page() pageDevice {
	p := pageDevice{Timeline: l.timeline(0)}
	count := 0
	for _, h := range p.Top {
		count += h.Count
	}
	n := min(pageMoments, max(4, pageBlocks/(count+1)))
	wanted := map[int]bool{len(l.changes) - 1: true}
	for i := range n {
		wanted[i*len(l.changes)/n] = true
	}
	peak := -1
	l.ledger(l.counting(func(i int, led *ledger) {
		if led.inUse == p.Peak && (peak < 0 || i == peak+1) {
			peak = i // and what names its last block, behind it
		}
	}))
	wanted[peak] = true
	rows := map[Holder]int{}
	state := l.base.clone()
	l.ledger(l.counting(func(i int, led *ledger) {
		if state.apply(&l.changes[i]); wanted[i] {
			at := l.changes[i].at
			if i == peak {
				at = int64(p.PeakAt)
			}
			p.Moments = append(p.Moments, p.moment(at, led, state, rows))
		}
	}))
	if len(l.changes) == 0 {
		led := l.ledger(nil)
		p.Moments = append(p.Moments, p.moment(l.at, led, state, rows))
	}
	return p
}

// counting hands on the numbers of changes.
func (l *memoryLog) counting(f func(i int, led *ledger)) func(*ledger, *change) {
	i := -1
	return func(led *ledger, _ *change) {
		i++
		f(i, led)
	}
}

// moment is how memory lies now.
func (p *pageDevice) moment(at int64, led *ledger, state *holdings, rows map[Holder]int) moment {
	m := moment{At: time.Duration(at)}
	for addr, s := range state.segments {
		m.Segments = append(m.Segments, pageSegment{Size: s.size, Queue: s.queue, addr: addr, Blocks: [][5]int64{}})
	}
	sorting.By(m.Segments, func(a, b pageSegment) int { return cmp.Compare(a.addr, b.addr) })
	for addr, b := range led.live {
		i, found := slices.BinarySearchFunc(m.Segments, addr, func(s pageSegment, addr uint64) int { return cmp.Compare(s.addr, addr) })
		if !found {
			i--
		}
		if i < 0 {
			continue
		}
		row := led.holder(&led.all[b.of])
		if _, ok := rows[row]; !ok {
			rows[row] = len(p.Rows)
			p.Rows = append(p.Rows, row)
		}
		waits := int64(0)
		if b.gone {
			waits = 1
		}
		s := &m.Segments[i]
		s.Blocks = append(s.Blocks, [5]int64{int64(addr - s.addr), b.size, b.asked, int64(rows[row]), waits})
	}
	for i := range m.Segments {
		sorting.By(m.Segments[i].Blocks, func(a, b [5]int64) int { return cmp.Compare(a[0], b[0]) })
	}
	return m
}
