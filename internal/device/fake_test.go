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
}

func newFake(memory int64) *fake {
	return &fake{info: Info{Name: "fake", Memory: memory}, room: memory, next: 1 << 30, live: map[uint64]hostmem.Block{}}
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
