package prof

import (
	"fmt"
	"strconv"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/tensor"
)

// usage is what a device's memory has at one moment: the bytes of blocks that are handed out, and what the device gave.
type usage struct {
	Allocated int64 `json:"allocated"`
	Reserved  int64 `json:"reserved"`
}

// block is a change of a device's memory: a block that is handed out or let go, or memory that the device gives or gets back.
type block struct {
	at      int64 // nanoseconds of the host since the window's beginning
	addr    uint64
	bytes   int64 // below 0: let go
	segment bool  // the device's memory, not a block of it
	device  uint8
}

// blocks records the changes of a device's memory. Its events come under the allocator's lock, and so one at a time.
type blocks struct {
	lane  *lane
	first usage
	list  chunks[block]
	late  int // for which there was no room: totals are wrong from then on, so nothing is kept
}

// blockKinds are the events that change what is allocated or reserved, with its sign.
var blockKinds = map[device.Kind]int64{device.KindAlloc: 1, device.KindFreeRequested: -1,
	device.KindSegmentAlloc: 1, device.KindSegmentFree: -1, device.KindMap: 1, device.KindUnmap: -1}

// observe records from now on.
func (b *blocks) observe(d *tensor.Device) (stop func()) {
	var kinds []device.Kind
	for k := range blockKinds {
		kinds = append(kinds, k)
	}
	d.Inventory(func(v *tensor.Inventory) {
		b.first = usage{v.Stats.AllocatedBytes.All.Current, v.Stats.ReservedBytes.All.Current}
		stop = d.Observe(b.add, kinds...)
	})
	return stop
}

func (b *blocks) add(e *device.Event) {
	l := b.lane
	if b.late > 0 || b.list.n%chunk == 0 && l.of.room.Add(-chunk) < -chunk+1 {
		b.late++
		return
	}
	b.list.add(block{int64(l.dev.Now() - l.base), e.Mem.Addr, blockKinds[e.Kind] * e.Mem.Size, e.Kind != device.KindAlloc && e.Kind != device.KindFreeRequested, 0})
}

// blocksOf adds what a lane recorded of its device, which is number dev.
func (p *Profile) blocksOf(dev uint8, b *blocks) {
	if b == nil {
		return
	}
	p.Dropped += b.late
	p.Devices[dev].Began = &b.first
	for i := range b.list.n {
		c := *b.list.at(i)
		c.device = dev
		p.blocks = append(p.blocks, c)
	}
}

// memory writes a device's memory over time: counters for Perfetto, and for each block the event that PyTorch's traces have.
func (t *tracer) memory() {
	now := make([]usage, len(t.p.Devices))
	for i, d := range t.p.Devices {
		if d.Began != nil {
			now[i] = *d.Began
			t.counter(i, 0, now[i])
		}
	}
	for i, b := range t.p.blocks {
		u := &now[b.device]
		if b.segment {
			u.Reserved += b.bytes
		} else {
			u.Allocated += b.bytes
			t.block(&b, *u, i)
		}
		t.counter(int(b.device), b.at, *u)
	}
}

func (t *tracer) counter(dev int, at int64, u usage) {
	t.emit(event{ph: "C", name: "memory of " + t.p.Devices[dev].Name, pid: t.row(dev), tid: "0", ts: at,
		args: []arg{{"allocated", u.Allocated}, {"reserved", u.Reserved}}})
}

// block writes a block that is handed out or let go. Its number comes after those of the other events.
func (t *tracer) block(b *block, u usage, i int) {
	kind := 1 // of devices in PyTorch: a GPU
	if t.hosted(int(b.device)) {
		kind = 0
	}
	pid := strconv.Itoa(t.pid)
	t.emit(event{ph: "i", cat: "cpu_instant_event", name: "[memory]", scope: "t", pid: pid, tid: pid, ts: b.at, args: []arg{
		{"Device Type", kind}, {"Device Id", b.device}, {"Addr", b.addr}, {"Bytes", b.bytes},
		{"Total Allocated", u.Allocated}, {"Total Reserved", u.Reserved}, {"Ev Idx", len(t.p.all) + 1 + i}}})
}

// row is the process of a device in a trace: the program's own where that is the device.
func (t *tracer) row(dev int) string {
	if t.hosted(dev) {
		return strconv.Itoa(t.pid)
	}
	return strconv.Itoa(dev)
}

// storedBlocks are the changes as rows of numbers: moment, device, address, bytes, and 1 where they are the device's memory.
func (p *Profile) storedBlocks() (rows [][5]int64) {
	for _, b := range p.blocks {
		row := [5]int64{b.at, int64(b.device), int64(b.addr), b.bytes, 0}
		if b.segment {
			row[4] = 1
		}
		rows = append(rows, row)
	}
	return rows
}

func readBlocks(rows [][5]int64) (all []block) {
	for _, r := range rows {
		all = append(all, block{r[0], uint64(r[2]), r[3], r[4] == 1, uint8(r[1])})
	}
	return all
}

// checkBlocks refuses changes of no device, and such as no memory goes through.
func (s *stored) checkBlocks() error {
	now := make([]usage, len(s.Devices))
	for i, d := range s.Devices {
		if d.Began != nil {
			now[i] = *d.Began
		}
	}
	for i, r := range s.Blocks {
		if !index(r[1], len(s.Devices)) || s.Devices[r[1]].Began == nil || !sane(r[0], r[3]) {
			return fmt.Errorf("change %d of memory is %v", i, r)
		}
		u := &now[r[1]]
		of := []*int64{&u.Allocated, &u.Reserved}[min(max(r[4], 0), 1)]
		if *of += r[3]; *of < 0 || !sane(*of) {
			return fmt.Errorf("after change %d the memory has %d bytes", i, *of)
		}
	}
	return nil
}

// sortBlocks puts the changes of all devices in the order of their moments.
func (p *Profile) sortBlocks() {
	sorting.By(p.blocks, func(a, b block) int { return int(min(max(a.at-b.at, -1), 1)) })
}
