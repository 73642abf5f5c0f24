package snapshot

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/warpline-ml/warpline/internal/pickle"
)

// Snapshot is what a file has of the memory of a process's devices.
type Snapshot struct {
	Segments []*Segment
	Traces   [][]*Event     // by device
	Settings map[string]any // of the allocator
	Marks    []Mark         // that the program set
	Keys     []string       // of the file's dictionary, in order
	First    []string       // keys of the first event of the first trace

	books *books
}

// Segment is memory that the driver gave.
type Segment struct {
	Device                                       int
	Address                                      uint64
	Size, Allocated, Active, Requested           int64 // bytes
	Small, Expandable, Private, HasBlocksInOrder bool
	Blocks                                       []*Block
}

// Block is a piece of a segment.
type Block struct {
	Address         uint64
	Size, Requested int64 // bytes
	State           string
	stack           *stack
}

// States of blocks.
const (
	inUse   = "active_allocated"
	pending = "active_pending_free"
	unused  = "inactive"
)

// Event is an entry of a trace.
type Event struct {
	Action string
	Addr   uint64
	Size   int64 // bytes
	Time   int64 // microseconds since 1970
	Free   int64 // of an out-of-memory: what the driver had left
	kind   string
	stack  *stack
}

// Mark is the begin or the end of a range that the program named.
type Mark struct {
	Name   string
	Begin  bool
	Device int
	Time   int64
}

// read reads a file. With an error comes what was read before it, or nil if that is no snapshot.
func read(r io.Reader) (*Snapshot, *pickle.Decoder, error) {
	b := newBooks()
	d := &pickle.Decoder{Fold: b.fold, Known: tags}
	v, err := d.Decode(r)
	s := b.snapshot(v)
	if s == nil && err == nil {
		err = errors.New("a pickle, but no memory snapshot: it has no \"segments\"")
	}
	return s, d, err
}

// tags are the marks of types that PyTorch's C++ pickler may put around lists: they stand for the list.
var tags = map[string]func([]any) (any, error){"torch.jit._pickle restore_type_tag": func(args []any) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("no argument")
	}
	return args[0], nil
}}

// fold makes of a dictionary what it is: a frame, a block, a segment, or an event.
func (b *books) fold(d *pickle.ReadDict) any {
	switch {
	case d.Get("filename") != nil:
		return b.frame(d)
	case d.Get("blocks") != nil:
		return b.segment(d)
	case d.Get("action") != nil:
		return b.event(d)
	case d.Get("state") != nil:
		return b.block(d)
	}
	return nil
}

func (b *books) segment(d *pickle.ReadDict) *Segment {
	s := &Segment{Device: int(number(d, "device")), Address: uint64(number(d, "address")), Size: number(d, "total_size"), Allocated: number(d, "allocated_size"),
		Active: number(d, "active_size"), Requested: number(d, "requested_size"), Small: d.Get("segment_type") == "small", Expandable: d.Get("is_expandable") == true}
	for _, x := range items(d.Get("segment_pool_id")) {
		if n, ok := x.(int64); ok && n != 0 {
			s.Private = true
		}
	}
	at := s.Address
	for _, x := range items(d.Get("blocks")) {
		if block, ok := x.(*Block); ok {
			if block.Address == 0 {
				block.Address = at
			}
			at = block.Address + uint64(block.Size)
			s.Blocks = append(s.Blocks, block)
		}
	}
	return s
}

func (b *books) block(d *pickle.ReadDict) *Block {
	block := &Block{Address: uint64(number(d, "address")), Size: number(d, "size"), Requested: number(d, "requested_size"), State: text(d, "state"), stack: b.stack(d.Get("frames"))}
	switch block.State {
	case inUse, pending:
	case "active_awaiting_free":
		block.State = pending
	default:
		block.State = unused
	}
	// Files of PyTorch before 2.1 have the calls, and the size that was asked for, as a history of the block.
	if past := items(d.Get("history")); len(past) > 0 && block.stack == b.none {
		if last, ok := past[0].(*pickle.ReadDict); ok {
			block.stack = b.stack(last.Get("frames"))
			if block.Requested == 0 && block.State != unused {
				block.Requested = number(last, "real_size")
			}
		}
	}
	return block
}

func (b *books) event(d *pickle.ReadDict) *Event {
	e := &Event{Action: text(d, "action"), Addr: uint64(number(d, "addr")), Size: number(d, "size"), Time: number(d, "time_us"), Free: number(d, "device_free"),
		kind: text(d, "category"), stack: b.stack(d.Get("frames"))}
	if b.first == nil {
		for _, item := range d.Items {
			b.first = append(b.first, item.Key)
		}
	}
	return e
}

// snapshot is the file's, or nil.
func (b *books) snapshot(v any) *Snapshot {
	s := &Snapshot{Settings: map[string]any{}, books: b, First: b.first}
	if list, ok := v.(*pickle.ReadList); ok { // torch.cuda.memory_snapshot() is the segments alone
		s.Segments = all[*Segment](list)
		if len(s.Segments) == 0 {
			return nil
		}
		return s
	}
	d, ok := v.(*pickle.ReadDict)
	if !ok || d.Get("segments") == nil && d.Get("device_traces") == nil {
		return nil
	}
	for _, item := range d.Items {
		s.Keys = append(s.Keys, item.Key)
	}
	s.Segments = all[*Segment](d.Get("segments"))
	for _, trace := range items(d.Get("device_traces")) {
		s.Traces = append(s.Traces, all[*Event](trace))
	}
	if m, ok := d.Get("allocator_settings").(*pickle.ReadDict); ok {
		s.Settings = m.Map()
	}
	for _, m := range all[*pickle.ReadDict](d.Get("external_annotations")) {
		s.Marks = append(s.Marks, Mark{text(m, "name"), text(m, "stage") == "START", int(number(m, "device")), number(m, "time_us")})
	}
	return s
}

func items(v any) []any {
	if l, ok := v.(*pickle.ReadList); ok {
		return l.Items
	}
	return nil
}

// all are the items of a list that are of a type.
func all[T any](list any) (out []T) {
	for _, x := range items(list) {
		if t, ok := x.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

func number(d *pickle.ReadDict, key string) int64 {
	n, _ := d.Get(key).(int64)
	return n
}

func text(d *pickle.ReadDict, key string) string {
	s, _ := d.Get(key).(string)
	return s
}

// cutNote says where a file ends too early.
func cutNote(err error, events int) string {
	var at *pickle.Error
	if !errors.As(err, &at) {
		return err.Error()
	}
	return strings.TrimSpace(fmt.Sprintf("cut at byte %d: what follows is missing (%v); %d events of traces lie before it", at.Offset, at.Err, events))
}
