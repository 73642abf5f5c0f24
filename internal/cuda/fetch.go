package cuda

import (
	"encoding/binary"
	"runtime"
	"slices"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
)

// fetch is a copy into pinned memory that nobody waits for, with what kernels have reported up to then.
type fetch struct {
	*event
	q      *queue
	block  pinnedBlock
	bytes  int
	faults bool // a fault record follows the bytes
}

// pinnedBlock is staging memory with its size.
type pinnedBlock struct {
	host uintptr
	size int
}

// abandoned is a block that a fetch nobody took leaves, and when it may serve again.
type abandoned struct {
	pinnedBlock
	end *event
}

// Fetch asks for n bytes.
func (q *queue) Fetch(src device.Arg, n int64) (device.Fetch, error) {
	if err := q.d.pinned.reclaim(); err != nil {
		return nil, err
	}
	at := int(n+7) &^ 7
	f := &fetch{q: q, bytes: int(n), faults: q.fault.pending, block: pinnedBlock{size: at + faultSize}}
	var err error
	if f.block.host, err = q.d.pinned.alloc(f.block.size); err != nil {
		return nil, err
	}
	err = q.do("cuMemcpyDtoHAsync", func() driver.Result {
		r := q.d.api.MemcpyDtoHAsync(f.block.host, driver.Ptr(src.Mem.Addr+uint64(src.Offset)), n, q.stream)
		if r == driver.Success && f.faults {
			r = q.d.api.MemcpyDtoHAsync(f.block.host+uintptr(at), driver.Ptr(q.fault.cell.Addr), faultSize, q.stream)
		}
		return r
	})
	if err != nil {
		return nil, err
	}
	end, err := q.Record()
	if err != nil {
		return nil, err
	}
	f.event = end.(*event)
	runtime.AddCleanup(f, q.d.pinned.abandon, abandoned{f.block, f.event})
	return f, nil
}

// Take implements [device.Fetch].
func (f *fetch) Take() ([]byte, error) {
	b := bytesAt(f.block.host, f.block.size)
	if f.faults {
		if err := f.q.fault.read(f.q, b[f.block.size-faultSize:]); err != nil {
			return nil, err
		}
	}
	return slices.Clone(b[:f.bytes]), nil
}

// read makes an error of a record, unless it was told before.
func (f *faultCell) read(q *queue, b []byte) error {
	launch := binary.LittleEndian.Uint32(b)
	if launch == 0 || launch == f.told {
		return nil
	}
	f.told = launch
	value, bound := int64(binary.LittleEndian.Uint64(b[8:])), int64(binary.LittleEndian.Uint64(b[16:]))
	return &IndexError{Index: value, Bound: bound, Launch: q.log.find(launch)}
}

// abandon keeps the block of a fetch that is out of reach. It is called by the collector and calls nothing.
func (s *staging) abandon(a abandoned) {
	s.mu.Lock()
	s.left = append(s.left, a)
	s.mu.Unlock()
}

// reclaim gives back the blocks of abandoned fetches that have ended.
func (s *staging) reclaim() error {
	s.mu.Lock()
	left := s.left
	s.left = nil
	s.mu.Unlock()
	for i, a := range left {
		done, err := a.end.Done()
		if err != nil {
			return err
		}
		if done {
			s.give(a.host, a.size)
			continue
		}
		s.mu.Lock()
		s.left = append(s.left, left[i])
		s.mu.Unlock()
	}
	return nil
}
