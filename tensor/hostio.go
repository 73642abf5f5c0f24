package tensor

import (
	"runtime"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// write copies Go values into t, which is row-major and fresh.
func write[T any](t *Tensor, data []T) {
	q := t.env.onQueue()
	if t.env.dev.info.Null || len(data) == 0 {
		return
	}
	if t.env.dev.info.Host {
		a := t.arg()
		copy(hostmem.Slice[T](uintptr(a.Mem.Addr)+uintptr(a.Offset), len(data)), data)
		return
	}
	staged(t.Bytes(), func(host device.Arg) {
		copy(hostmem.Slice[T](uintptr(host.Mem.Addr), len(data)), data)
		q.copy(t.arg(), host, t.Bytes())
	})
}

// read copies a row-major t out. It is a sync point.
func read[T dtype.Element](t *Tensor) []T {
	s := make([]T, t.Size())
	d := t.env.dev
	if d.info.Null {
		d.noteUnknown()
		return s
	}
	if len(s) == 0 {
		return s
	}
	c := t.quiet().Contiguous()
	q := t.env.onQueue()
	q.reads(c.st.rec)
	if d.info.Host {
		q.sync()
		a := c.arg()
		copy(s, hostmem.Slice[T](uintptr(a.Mem.Addr)+uintptr(a.Offset), len(s)))
		runtime.KeepAlive(c)
		return s
	}
	d.waits(whatRead)
	staged(c.Bytes(), func(host device.Arg) {
		q.copy(host, c.arg(), c.Bytes())
		q.sync()
		copy(s, hostmem.Slice[T](uintptr(host.Mem.Addr), len(s)))
	})
	runtime.KeepAlive(c)
	return s
}

// transfer copies t, which is row-major, into dst on another device. The host waits for a copy to its own memory, and
// for one between devices that do not reach each other.
func (t *Tensor) transfer(dst *Tensor) {
	n := t.Bytes()
	from, to := t.env.onQueue(), dst.env.onQueue()
	if n == 0 {
		return
	}
	defer runtime.KeepAlive(t)
	from.reads(t.st.rec)
	if to.copyFrom(dst.arg(), t.env.dev.dev, t.arg(), 0) { // of no bytes: whether it could
		to.after(from)
		to.copyFrom(dst.arg(), t.env.dev.dev, t.arg(), n)
		from.after(to) // t's memory may be given back once its own queue has come here
		return
	}
	t.env.dev.waits(whatCopy)
	from.sync()
	switch {
	case t.env.dev.info.Null:
		t.env.dev.noteUnknown()
		write(dst, make([]byte, n))
	case t.env.dev.info.Host || dst.env.dev.info.Null:
		to.copy(dst.arg(), t.arg(), n)
	case dst.env.dev.info.Host:
		from.copy(dst.arg(), t.arg(), n)
		from.sync()
	default:
		staged(n, func(host device.Arg) {
			from.copy(host, t.arg(), n)
			from.sync()
			to.copy(dst.arg(), host, n)
		})
	}
}

// peer is a queue that copies from other devices of its engine; false if it cannot.
type peer interface {
	CopyFrom(dst device.Arg, from device.Device, src device.Arg, n int64) (bool, error)
}

func (q *queue) copyFrom(dst device.Arg, from device.Device, src device.Arg, n int64) bool {
	p, ok := q.q.(peer)
	if !ok {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	ok, err := p.CopyFrom(dst, from, src, n)
	if err != nil {
		raiseErr("copy", "", err)
	}
	return ok
}

func (q *queue) copy(dst, src device.Arg, n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.q.Copy(dst, src, n); err != nil {
		raiseErr("copy", "", err)
	}
}

// staged runs f with n bytes of host memory between Go's heap and a device.
func staged(n int64, f func(host device.Arg)) {
	b, err := hostmem.Alloc(int(n))
	if err != nil {
		raiseErr("copy", "free host memory", err)
	}
	defer b.Free()
	f(device.Arg{Mem: device.Mem{Addr: uint64(b.Addr), Size: n, Host: true}})
}
