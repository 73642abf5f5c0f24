package prof

import (
	"cmp"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/pickle"
)

// WriteSnapshot writes what the devices' memory holds, and the events that led to it, as the file that PyTorch's tools read
// (torch.cuda.memory._dump_snapshot): pytorch.org/memory_viz, python -m torch.cuda._memory_viz. Devices are numbered in the
// order in which they were given; queues are streams; the label of memory (parameter, activation, …) is its category, and the
// operation and module are its user metadata. The file is there whole or not at all.
func (h *History) WriteSnapshot(path string) error {
	logs, err := h.logs()
	if err != nil {
		return err
	}
	return durable.WriteFile(path, func(w io.Writer) error { return pickle.Encode(w, snapshot(logs)) })
}

// snapshot is the file's dictionary.
func snapshot(logs []*memoryLog) pickle.Dict {
	var segments, traces, notes []any
	for i, l := range logs {
		s := &snapshotter{memoryLog: l, device: i, stacks: map[uint32]*pickle.Shared{}, frames: map[runtime.Frame]*pickle.Shared{}, pools: map[device.PoolID]*pickle.Shared{}}
		segments = append(segments, s.segments()...)
		traces = append(traces, s.trace())
		notes = append(notes, s.annotations()...)
	}
	labels := []any{unknown}
	for _, l := range device.Labels() {
		if l != device.LabelOther {
			labels = append(labels, l)
		}
	}
	return pickle.Of("segments", segments, "device_traces", traces, "allocator_settings", settings(logs[0].Config),
		"external_annotations", notes, "categories", labels)
}

// unknown is the category of what has none, which the viewer wants to be among those it finds.
const unknown = "unknown"

type snapshotter struct {
	*memoryLog
	device int
	stacks map[uint32]*pickle.Shared
	frames map[runtime.Frame]*pickle.Shared
	pools  map[device.PoolID]*pickle.Shared
}

// calls are a stack as the file has it, once for all that it led to.
func (s *snapshotter) calls(stack uint32) *pickle.Shared {
	if p := s.stacks[stack]; p != nil {
		return p
	}
	list := []any{}
	for _, f := range s.books.calls(stack) {
		key := runtime.Frame{Function: f.Function, File: f.File, Line: f.Line}
		if s.frames[key] == nil {
			s.frames[key] = &pickle.Shared{Value: pickle.Of("name", f.Function, "filename", f.File, "line", f.Line)}
		}
		list = append(list, s.frames[key])
	}
	p := &pickle.Shared{Value: list}
	s.stacks[stack] = p
	return p
}

// pool is that of the segment that an address lies in; of one that has gone, the one that all share.
func (s *snapshotter) pool(addr uint64) *pickle.Shared {
	i, found := slices.BinarySearchFunc(s.Segments, addr, func(seg device.Segment, addr uint64) int { return cmp.Compare(seg.Mem.Addr, addr) })
	if !found {
		i--
	}
	var id device.PoolID
	if i >= 0 && addr-s.Segments[i].Mem.Addr < uint64(s.Segments[i].Mem.Size) {
		id = s.Segments[i].Owner
	}
	if s.pools[id] == nil {
		s.pools[id] = &pickle.Shared{Value: pickle.Tuple{id[0], id[1]}}
	}
	return s.pools[id]
}

func (s *snapshotter) segments() (all []any) {
	last := s.last()
	for i := range s.Segments {
		seg := &s.Segments[i]
		var blocks []any
		var used, active, asked int64
		for _, b := range seg.Blocks {
			state := "inactive"
			switch b.State {
			case device.InUse:
				state = "active_allocated"
				used += b.Mem.Size
			case device.Pending:
				state = "active_pending_free"
			}
			if b.State != device.Unused {
				active, asked = active+b.Mem.Size, asked+b.Requested
			}
			blocks = append(blocks, pickle.Of("address", b.Mem.Addr, "size", b.Mem.Size, "requested_size", b.Requested,
				"state", state, "frames", s.calls(last.blocks[b.Mem.Addr].stack)))
		}
		all = append(all, pickle.Of("device", s.device, "address", seg.Mem.Addr, "total_size", seg.Mem.Size, "allocated_size", used,
			"active_size", active, "requested_size", asked, "stream", seg.Queue, "segment_type", seg.Pool.Name(),
			"segment_pool_id", s.pool(seg.Mem.Addr), "is_expandable", seg.Expandable, "frames", s.calls(last.segments[seg.Mem.Addr].stack), "blocks", blocks))
	}
	return all
}

// actions are the events of a trace.
var actions = map[device.Kind]string{device.KindAlloc: "alloc", device.KindFreeRequested: "free_requested", device.KindFreeCompleted: "free_completed",
	device.KindSegmentAlloc: "segment_alloc", device.KindSegmentFree: "segment_free", device.KindMap: "segment_map", device.KindUnmap: "segment_unmap",
	device.KindOutOfMemory: "oom"}

func (s *snapshotter) trace() pickle.List {
	blocks := s.served()
	return func(yield func(any) bool) {
		for i := range s.changes {
			c := &s.changes[i]
			if actions[c.kind] != "" && !yield(s.event(c, blocks[i])) {
				return
			}
		}
		yield(pickle.Of("action", "snapshot", "addr", 0, "size", s.Stats.ActiveBytes.All.Current, "stream", 0,
			"time_us", s.time(s.at), "frames", s.calls(0), "pool_id", s.pool(0), "category", unknown))
	}
}

func (s *snapshotter) event(c, block *change) pickle.Dict {
	where, at, size := "addr", any(c.addr), c.size
	if c.kind == device.KindOutOfMemory {
		where, at, size = "device_free", max(0, c.size), c.asked
	}
	d := pickle.Of("action", actions[c.kind], where, at, "size", size, "stream", int(c.queue), "time_us", s.time(c.at), "frames", s.calls(c.stack),
		"pool_id", s.pool(c.addr))
	if block != nil {
		d = append(d, pickle.Of("category", s.category(block), "user_metadata", s.metadata(block))...)
	}
	return d
}

func (s *snapshotter) category(c *change) string {
	if l := s.books.words[c.label]; l != "" && l != device.LabelOther {
		return l
	}
	return unknown
}

// metadata is "matmul in blocks.0.attn".
func (s *snapshotter) metadata(c *change) string {
	op, part := s.books.words[c.op], s.books.part(c)
	if part != "" {
		part = "in " + part
	}
	return strings.TrimSpace(op + " " + part)
}

// served are, for each change of a block, the block as it was called in the end.
func (s *snapshotter) served() []*change {
	of := make([]*change, len(s.changes))
	open := map[uint64]*change{}
	for addr, b := range s.base.blocks {
		open[addr] = &b
	}
	for i := range s.changes {
		c := &s.changes[i]
		switch c.kind {
		case device.KindAlloc:
			b := *c
			open[c.addr], of[i] = &b, &b
		case device.KindFreeRequested, device.KindFreeCompleted:
			of[i] = open[c.addr]
		case device.KindRelabel:
			if b := open[c.addr]; b != nil {
				b.label, b.path = c.label, c.path
			}
		}
	}
	return of
}

// annotations are the walks back.
func (s *snapshotter) annotations() (all []any) {
	for i := range s.changes {
		c := &s.changes[i]
		if c.kind != device.KindBackward {
			continue
		}
		stage := "START"
		if c.end {
			stage = "END"
		}
		all = append(all, pickle.Of("stage", stage, "name", "backward", "device", s.device, "time_us", s.time(c.at)))
	}
	return all
}

// time is microseconds since 1970.
func (s *snapshotter) time(at int64) int64 { return s.books.begun.UnixMicro() + at/1000 }

// settings are the allocator's, under PyTorch's keys.
func settings(c device.Config) pickle.Dict {
	split := int64(-1)
	if c.MaxSplit < 1<<62 {
		split = c.MaxSplit
	}
	var divisions pickle.Dict
	for i, d := range c.Divisions {
		divisions = append(divisions, pickle.Item{Key: strconv.Itoa(1 << i), Value: d})
	}
	return pickle.Of("PYTORCH_CUDA_ALLOC_CONF", "", "max_split_size", split, "garbage_collection_threshold", c.GCThreshold,
		"expandable_segments", c.Expandable, "pinned_num_register_threads", 1, "release_lock_on_cudamalloc", false,
		"pinned_use_cuda_host_register", false, "roundup_power2_divisions", divisions)
}
