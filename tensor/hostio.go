package tensor

import (
	"runtime"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// write copies Go values into t, which is row-major and fresh.
func write[T any](t *Tensor, data []T) {
	if len(data) == 0 {
		return
	}
	hostWork("From", "make the value before, or pass it in the batch", "the host's data would be copied once, and not in each run")
	q := t.env.onQueue()
	start := q.copies()
	switch i := &t.env.dev.info; {
	case i.Null:
	case i.Host:
		copy(hostBytes(t.arg(), t.Bytes()), device.BytesOf(data))
	default:
		q.upload(t.arg(), device.BytesOf(data))
	}
	q.copied(t.env, device.CopyUpload, t.arg(), ownMemory(t.Bytes()), t.Bytes(), start)
	runtime.KeepAlive(t)
}

// read copies a row-major t out. It is a sync point.
func read[T dtype.Element](t *Tensor) []T {
	uncapturable("read", "return the value, and read it after Run", "the host would read values once, and not in each run")
	d := t.env.dev
	if t.Size() == 0 {
		return make([]T, 0)
	}
	q := t.env.onQueue()
	start := q.copies()
	if d.info.Null {
		q.copied(t.env, device.CopyDownload, ownMemory(t.Bytes()), t.arg(), t.Bytes(), start)
		return make([]T, t.Size())
	}
	c := t.quiet().Contiguous() // which may be an error, before Go's memory is asked, which would end the program
	s := make([]T, t.Size())
	c.st.Reads(q)
	copied := func() { q.copied(t.env, device.CopyDownload, ownMemory(c.Bytes()), c.arg(), c.Bytes(), start) }
	if d.info.Host {
		q.sync()
		copy(device.BytesOf(s), hostBytes(c.arg(), c.Bytes()))
		copied()
	} else {
		w := d.waits(device.WaitRead, q)
		q.download(device.BytesOf(s), c.arg(), copied)
		w.over()
	}
	runtime.KeepAlive(c)
	t.dropCopy(c)
	return s
}

// transfer copies t, which is row-major, into dst on another device. The host waits for a copy to its own memory, and
// for one between devices that do not reach each other.
func (t *Tensor) transfer(dst *Tensor) {
	d, e := t.env.dev, dst.env.dev
	from, to := t.env.onQueue(), dst.env.onQueue()
	n := t.Bytes()
	if n == 0 {
		return
	}
	defer runtime.KeepAlive(t)
	t.st.Reads(from)
	out, in, at, src := from.copies(), to.copies(), dst.arg(), t.arg()
	switch {
	case d.info.Null:
		from.copied(t.env, device.CopyDownload, ownMemory(n), src, n, out)
		write(dst, make([]byte, n))
	case d.info.Host:
		from.sync()
		to.fromHost(at, src, n)
		to.copied(dst.env, device.CopyUpload, at, src, n, in)
	case e.info.Null:
		to.copy(at, src, n)
		to.copied(dst.env, device.CopyUpload, at, src, n, in)
	case to.copyFrom(at, d.dev, src, 0): // of no bytes: whether it could
		to.after(from)
		to.copyFrom(at, d.dev, src, n)
		from.after(to) // t's memory may be given back once its own queue has come here
		to.copied(dst.env, device.CopyPeer, at, src, n, in)
	case e.info.Host:
		w := d.waits(device.WaitCopy, from)
		from.download(hostBytes(at, n), src, func() { from.copied(t.env, device.CopyDownload, at, src, n, out) })
		w.over()
	default:
		w := d.waits(device.WaitCopy, from)
		between(to, from, at, src, n)
		w.over()
		from.copied(t.env, device.CopyDownload, ownMemory(n), src, n, out)
		to.copied(dst.env, device.CopyUpload, at, ownMemory(n), n, in)
	}
}

// between copies by way of the host's memory.
func between(to, from *queue, dst, src device.Arg, n int64) {
	b := make([]byte, min(n, 16*device.Stage))
	for n > 0 {
		b = b[:min(n, int64(len(b)))]
		from.download(b, src, func() {})
		to.upload(dst, b)
		k := int64(len(b))
		src.Offset, dst.Offset, n = src.Offset+k, dst.Offset+k, n-k
	}
}

// hostBytes is n bytes of memory that the host reads directly.
func hostBytes(a device.Arg, n int64) []byte {
	return hostmem.Bytes(uintptr(a.Mem.Addr)+uintptr(a.Offset), int(n))
}

func (q *queue) fromHost(dst, src device.Arg, n int64) {
	if q.stager != nil {
		q.upload(dst, hostBytes(src, n))
		return
	}
	q.copy(dst, src, n)
}

// upload copies from the host, which waits only if too much is on its way.
func (q *queue) upload(dst device.Arg, src []byte) {
	for len(src) > 0 {
		n := min(len(src), device.Stage)
		q.uncrowd()
		q.mu.Lock()
		err := q.stager.Upload(dst, src[:n])
		q.mu.Unlock()
		if err != nil {
			raiseErr("copy", "", err)
		}
		dst.Offset, src = dst.Offset+int64(n), src[n:]
	}
}

// uncrowd waits if too many uploads are on their way.
func (q *queue) uncrowd() {
	q.mu.Lock()
	w := q.stager.Crowded()
	q.mu.Unlock()
	if w != nil {
		wait := q.dev.waits(device.WaitUpload, q)
		w.Wait()
		wait.over()
	}
}

// download copies to the host, a chunk at a time, while the device copies the next ones. It calls asked when all are asked for.
func (q *queue) download(dst []byte, src device.Arg, asked func()) {
	const ahead = 3
	var chunks []device.Fetch
	for left := len(dst); len(dst) > 0; {
		for ; left > 0 && len(chunks) < ahead; left -= min(left, device.Stage) {
			n := min(left, device.Stage)
			chunks = append(chunks, q.fetch("copy", src, int64(n)))
			if src.Offset += int64(n); left == n {
				asked() // before the wait, which is none of the copy's time
			}
		}
		n := min(len(dst), device.Stage)
		q.take("copy", chunks[0], dst[:n])
		chunks, dst = chunks[1:], dst[n:]
	}
}

func (q *queue) fetch(op string, src device.Arg, n int64) device.Fetch {
	q.mu.Lock()
	defer q.mu.Unlock()
	f, err := q.stager.Fetch(src, n)
	if err != nil {
		raiseErr(op, "", err)
	}
	return f
}

// take waits for a fetch.
func (q *queue) take(op string, f device.Fetch, dst []byte) {
	f.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := f.Take(dst); err != nil {
		raiseErr(op, "", err)
	}
}

// copyFrom copies from another device of the engine; false if it cannot.
func (q *queue) copyFrom(dst device.Arg, from device.Device, src device.Arg, n int64) bool {
	p, ok := device.As[device.Peer](q.q)
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
