package cuda

import (
	"errors"
	"sync"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
)

// berths is a device's pool of pinned host memory for values that leave the card for a while. Blocks are of the sizes that
// were asked for, since a program asks for the same ones in each step.
type berths struct {
	mu   sync.Mutex // which the collector's cleanups take: not held in calls of the driver
	idle map[int64][]uintptr
	all  []uintptr
}

func (b *berths) take(n int64) (host uintptr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if idle := b.idle[n]; len(idle) > 0 {
		host, b.idle[n] = idle[len(idle)-1], idle[:len(idle)-1]
	}
	return host
}

// Pin implements [device.Pinner].
func (q *queue) Pin(n int64) (device.Mem, error) {
	b := &q.d.berths
	if host := b.take(n); host != 0 {
		return device.Mem{Addr: uint64(host), Size: n, Host: true}, nil
	}
	var host uintptr
	err := q.do("cuMemHostAlloc", func() (r driver.Result) {
		host, r = q.d.api.MemHostAlloc(n, driver.HostPortable)
		return r
	})
	if err != nil {
		return device.Mem{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, host)
	return device.Mem{Addr: uint64(host), Size: n, Host: true}, nil
}

// Unpin implements [device.Pinner].
func (q *queue) Unpin(m device.Mem) {
	b := &q.d.berths
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.idle == nil {
		b.idle = map[int64][]uintptr{}
	}
	b.idle[m.Size] = append(b.idle[m.Size], uintptr(m.Addr))
}

// Move implements [device.Pinner].
func (q *queue) Move(dst, src device.Arg, n int64) error {
	if err := q.copyable(dst, src, n); err != nil {
		return err
	}
	to, from := dst.Mem.Addr+uint64(dst.Offset), src.Mem.Addr+uint64(src.Offset)
	if src.Mem.Host {
		return q.do("cuMemcpyHtoDAsync", func() driver.Result {
			return q.d.api.MemcpyHtoDAsync(driver.Ptr(to), uintptr(from), n, q.stream)
		})
	}
	return q.do("cuMemcpyDtoHAsync", func() driver.Result {
		return q.d.api.MemcpyDtoHAsync(uintptr(to), driver.Ptr(from), n, q.stream)
	})
}

// closeBerths gives the pool back. The card is idle.
func (d *Device) closeBerths() error {
	b := &d.berths
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	for _, host := range b.all {
		err = errors.Join(err, d.do("cuMemFreeHost", func() driver.Result { return d.api.MemFreeHost(host) }))
	}
	b.all, b.idle = nil, nil
	return err
}
