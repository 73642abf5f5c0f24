package device

import (
	"errors"
	"fmt"
	"testing"

	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
)

// fake is a device with addresses only, or, as a host, with real memory.
type fake struct {
	info  Info
	room  int64 // bytes left
	next  uint64
	live  map[uint64]hostmem.Block
	fails error // what Alloc returns
	gone  []int64

	ranges map[uint64]int64 // reserved
	pages  map[uint64]int64 // mapped
}

func newFake(memory int64) *fake {
	return &fake{info: Info{Name: "fake", Memory: memory}, room: memory, next: 1 << 30, live: map[uint64]hostmem.Block{},
		ranges: map[uint64]int64{}, pages: map[uint64]int64{}}
}

func (f *fake) Info() Info { return f.info }

func (f *fake) Alloc(n int64) (Mem, error) {
	if f.fails != nil {
		return Mem{}, f.fails
	}
	if n > f.room {
		return Mem{}, fmt.Errorf("fake: %w", ErrOutOfMemory)
	}
	f.room -= n
	if f.info.Host {
		b, err := hostmem.Alloc(int(n))
		f.live[uint64(b.Addr)] = b
		return Mem{Addr: uint64(b.Addr), Size: n, Host: true}, err
	}
	m := Mem{Addr: f.next, Size: n}
	f.next += uint64(n)
	f.live[m.Addr] = hostmem.Block{Size: int(n)}
	return m, nil
}

func (f *fake) Free(m Mem) {
	b, ok := f.live[m.Addr]
	if !ok || b.Size != int(m.Size) {
		panic(fmt.Sprintf("fake: free of %+v, which is %+v", m, b))
	}
	delete(f.live, m.Addr)
	if f.info.Host {
		b.Free()
	}
	f.room += m.Size
	f.gone = append(f.gone, m.Size)
}

func (f *fake) Maps() bool { return true }

func (f *fake) Reserve(n int64) (uint64, error) {
	at := f.next
	f.next += uint64(n)
	f.ranges[at] = n
	return at, f.fails
}

func (f *fake) Unreserve(addr uint64, n int64) error {
	if f.ranges[addr] != n {
		panic(fmt.Sprintf("fake: %d addresses at %#x given back, which are %d", n, addr, f.ranges[addr]))
	}
	for at := range f.pages {
		if at-addr < uint64(n) {
			panic(fmt.Sprintf("fake: addresses given back with memory behind %#x", at))
		}
	}
	delete(f.ranges, addr)
	return nil
}

func (f *fake) Map(addr uint64, n, page int64) error {
	if f.fails != nil {
		return f.fails
	}
	within := false
	for at, size := range f.ranges {
		within = within || addr >= at && addr+uint64(n) <= at+uint64(size) && int64(addr-at)%page == 0
	}
	if !within || n <= 0 || n%page != 0 {
		panic(fmt.Sprintf("fake: map of %d bytes in pages of %d at %#x", n, page, addr))
	}
	if n > f.room {
		return fmt.Errorf("fake: %w", ErrOutOfMemory)
	}
	for at := addr; at < addr+uint64(n); at += uint64(page) {
		if f.pages[at] != 0 {
			panic(fmt.Sprintf("fake: %#x is mapped twice", at))
		}
		f.pages[at] = page
	}
	f.room -= n
	return nil
}

func (f *fake) Unmap(addr uint64, n int64) error {
	for at := addr; at != addr+uint64(n); {
		page := f.pages[at]
		if page == 0 || at > addr+uint64(n) {
			panic(fmt.Sprintf("fake: unmap of %d bytes at %#x, without a page at %#x", n, addr, at))
		}
		delete(f.pages, at)
		at += uint64(page)
	}
	f.room += n
	return nil
}

func (f *fake) Prepare(ir.Op) (*Kernel, error) { return nil, ErrUnsupported }
func (f *fake) NewQueue() (Queue, error)       { return nil, errors.ErrUnsupported }
func (f *fake) Close() error                   { return nil }

// flag is a mark that is done when it is set.
type flag struct {
	done bool
	err  error
}

func (f *flag) Done() (bool, error) { return f.done, f.err }

func alloc(t testing.TB, a *Allocator, n int64, queue int) *Block {
	t.Helper()
	b, err := a.Alloc(n, queue)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func check(t testing.TB, a *Allocator) {
	t.Helper()
	if err := a.Check(); err != nil {
		t.Fatal(err)
	}
}

// wantStats compares the counters named with their values.
func wantStats(t testing.TB, a *Allocator, want map[string]int64) {
	t.Helper()
	got := a.StatsMap()
	for k, v := range want {
		if g, ok := got[k]; !ok || g != v {
			t.Errorf("%s = %d, want %d", k, g, v)
		}
	}
}
