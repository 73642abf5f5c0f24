package live

import (
	"net/http"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/web"
	"github.com/warpline-ml/warpline/tensor"
)

// segment is memory that the allocator has from the device, in blocks.
type segment struct {
	Pool   string  `json:"pool"`
	Queue  int     `json:"queue"`
	Bytes  int64   `json:"bytes"`
	Blocks []block `json:"blocks"` // by address; they fill the segment
}

type block struct {
	Bytes     int64  `json:"bytes"`
	Requested int64  `json:"requested,omitempty"`
	State     string `json:"state"`          // in use, pending: another queue's work may still use it, free
	Kind      string `json:"kind,omitempty"` // what it serves for
	Op        string `json:"op,omitempty"`   // that made it
}

var states = [...]string{device.Unused: "free", device.InUse: "in use", device.Pending: "pending"}

// mostBlocks is how many blocks are told; of more, the segments that are left are counted.
const mostBlocks = 5000

// blocks are what the allocator has at a moment.
type blocks struct {
	Device    string    `json:"device"`
	Allocated int64     `json:"allocated"`
	Requested int64     `json:"requested"`
	Reserved  int64     `json:"reserved"`
	Peak      int64     `json:"peak"`
	Free      int       `json:"free_blocks"`
	Segments  []segment `json:"segments"`
	Left      int       `json:"segments_left"`
}

// sendBlocks tells what the allocator has at this moment.
func (v *View) sendBlocks(w http.ResponseWriter, _ *http.Request) {
	v.mu.Lock()
	dev := v.dev
	v.mu.Unlock()
	now := blocks{Segments: []segment{}}
	if dev != nil { // else the run has not begun
		now.Device = dev.String()
		dev.Inventory(now.take)
	}
	web.Send(w, http.StatusOK, &now)
}

// take takes figures of all segments, and the blocks of as many as are told.
func (now *blocks) take(all *tensor.Inventory) {
	bytes := &all.Stats.AllocatedBytes.All
	now.Allocated, now.Peak, now.Requested = bytes.Current, bytes.Peak, all.Stats.RequestedBytes.All.Current
	of := map[uint64]*tensor.Value{}
	for i := range all.Values {
		of[all.Values[i].Mem.Addr] = &all.Values[i]
	}
	told := 0
	for i := range all.Segments {
		s := &all.Segments[i]
		x := segment{Pool: s.Pool.Name(), Queue: s.Queue, Bytes: s.Mem.Size}
		for _, b := range s.Blocks {
			y := block{Bytes: b.Mem.Size, Requested: b.Requested, State: states[b.State]}
			if b.State == device.Unused {
				now.Free++
			}
			if value := of[b.Mem.Addr]; value != nil && b.State == device.InUse {
				y.Kind, y.Op = value.Kind(), value.Op
			}
			x.Blocks = append(x.Blocks, y)
		}
		now.Reserved += s.Mem.Size
		if told += len(s.Blocks); told > mostBlocks {
			now.Left++
		} else {
			now.Segments = append(now.Segments, x)
		}
	}
}
