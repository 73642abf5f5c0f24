package null

import "slices"

// space is a range of addresses, handed out first fit.
type space struct {
	free []span           // by address, never touching
	used map[uint64]int64 // sizes by address
}

type span struct {
	addr uint64
	size int64
}

func newSpace(addr uint64, size int64) *space {
	return &space{free: []span{{addr, size}}, used: map[uint64]int64{}}
}

func (s *space) take(n int64) (addr uint64, ok bool) {
	i := slices.IndexFunc(s.free, func(f span) bool { return f.size >= n })
	if i < 0 {
		return 0, false
	}
	f := &s.free[i]
	addr = f.addr
	f.addr += uint64(n)
	f.size -= n
	if f.size == 0 {
		s.free = slices.Delete(s.free, i, i+1)
	}
	s.used[addr] = n
	return addr, true
}

// give returns what take gave, and reports whether it had.
func (s *space) give(addr uint64, n int64) bool {
	if size, ok := s.used[addr]; !ok || size != n {
		return false
	}
	delete(s.used, addr)
	i, _ := slices.BinarySearchFunc(s.free, addr, func(f span, a uint64) int {
		if f.addr < a {
			return -1
		}
		return 1
	})
	s.free = slices.Insert(s.free, i, span{addr, n})
	s.join(i)
	if i > 0 {
		s.join(i - 1)
	}
	return true
}

// has reports whether n addresses from addr on are all of one range that was taken.
func (s *space) has(addr uint64, n int64) bool {
	for at, size := range s.used {
		if at <= addr && addr-at < uint64(size) {
			return n <= size-int64(addr-at)
		}
	}
	return false
}

// join makes free range i and the next one range if they touch.
func (s *space) join(i int) {
	if i+1 < len(s.free) && s.free[i].addr+uint64(s.free[i].size) == s.free[i+1].addr {
		s.free[i].size += s.free[i+1].size
		s.free = slices.Delete(s.free, i+1, i+2)
	}
}
