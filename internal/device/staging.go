package device

import (
	"errors"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/hostmem"
)

// Staging is the way of a queue's copies to and from the host: its own, if it is a [Stager]; else one by Copy and Sync, in
// which Fetch waits for the queue.
func Staging(q Queue) Stager {
	if s, ok := As[Stager](q); ok {
		return s
	}
	return plain{q}
}

// plain stages copies through memory of the host that any engine can copy from and to.
type plain struct{ q Queue }

// Crowded implements [Stager]: nothing is on its way when a call returns.
func (plain) Crowded() Waiter { return nil }

// Upload implements [Stager].
func (p plain) Upload(dst Arg, src []byte) error {
	if len(src) == 0 {
		return Copyable(dst, dst, 0)
	}
	return staged(len(src), func(b []byte, at Arg) error {
		copy(b, src)
		return p.q.Copy(dst, at, int64(len(src)))
	})
}

// plainStaged is a block of the host's memory, nil when it was sent or dropped.
type plainStaged struct{ block atomic.Pointer[hostmem.Block] }

// Stage implements [Stager].
func (plain) Stage(src []byte) (Staged, error) {
	m, err := hostmem.Alloc(len(src))
	if err != nil {
		return nil, err
	}
	copy(hostmem.Bytes(m.Addr, len(src)), src)
	s := new(plainStaged)
	s.block.Store(&m)
	return s, nil
}

// Send implements [Stager].
func (p plain) Send(dst Arg, s Staged) error {
	var b *hostmem.Block
	if s, ok := s.(*plainStaged); ok {
		b = s.block.Swap(nil)
	}
	if b == nil {
		return errors.New("device: what is sent was sent or dropped before, or staged by another engine")
	}
	err := p.q.Copy(dst, Arg{Mem: Mem{Addr: uint64(b.Addr), Size: int64(b.Size), Host: true}}, int64(b.Size))
	return errors.Join(err, b.Free())
}

// Drop implements [Staged].
func (s *plainStaged) Drop() {
	if b := s.block.Swap(nil); b != nil {
		_ = b.Free() // what cannot be given back stays mapped, which harms nobody
	}
}

// Fetch implements [Stager].
func (p plain) Fetch(src Arg, n int64) (Fetch, error) {
	if err := Copyable(src, src, n); err != nil {
		return nil, err
	}
	f := new(plainFetch)
	if n == 0 {
		f.err = p.q.Sync()
		return f, nil
	}
	return f, staged(int(n), func(b []byte, at Arg) error {
		err := p.q.Copy(at, src, n)
		f.err = p.q.Sync()
		f.bytes = append(f.bytes, b...)
		return err
	})
}

// staged calls f with n bytes that an engine may copy from and to. f does not return before it has.
func staged(n int, f func(b []byte, at Arg) error) error {
	m, err := hostmem.Alloc(n)
	if err != nil {
		return err
	}
	err = f(hostmem.Bytes(m.Addr, n), Arg{Mem: Mem{Addr: uint64(m.Addr), Size: int64(n), Host: true}})
	return errors.Join(err, m.Free())
}

// plainFetch is a fetch that was waited for.
type plainFetch struct {
	bytes []byte
	err   error // of the work before
	taken bool
}

func (*plainFetch) Done() (bool, error) { return true, nil }
func (*plainFetch) Wait()               {}

// Take implements [Fetch].
func (f *plainFetch) Take(dst []byte) error {
	if f.taken {
		return errors.New("a value was taken before")
	}
	f.taken = true
	copy(dst, f.bytes)
	f.bytes = nil
	return f.err
}
