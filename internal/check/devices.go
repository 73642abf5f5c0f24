package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// together are the parts that need a second device beside dev: none where there is none. One that is there and does not
// open has a row that says so.
func together(name device.Name, dev device.Device) []part {
	next := name
	next.Index++
	if name.Kind == "cpu" || name.Count > 0 && next.Index >= name.Count {
		return nil
	}
	other, err := next.Open()
	switch {
	case err != nil && slices.Contains(device.Here(), next.String()):
		return []part{{Row{Part: "devices", Name: "copies with " + next.String()}, func(_ context.Context, row *Row) error {
			row.Skipped = err.Error()
			return nil
		}}}
	case err != nil:
		return nil
	}
	return []part{
		{Row{Part: "devices", Name: "copy to " + next.String(), Cases: 1}, func(context.Context, *Row) error { return between(dev, other) }},
		{Row{Part: "devices", Name: "copy from " + next.String(), Cases: 1}, func(context.Context, *Row) error { return between(other, dev) }},
	}
}

// between sends bytes from the host to one device, on to another and back to the host.
func between(from, to device.Device) (err error) {
	const n = 100_003
	src, host, err := hostBytes(n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Free()) }()
	for i := range src {
		src[i] = byte(i*31) ^ byte(i>>8)
	}
	want := bytes.Clone(src)
	arg := device.Arg{Mem: device.Mem{Addr: uint64(host.Addr), Size: n, Host: true}}
	a, b, close, err := pair(from, to, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, close()) }()
	if err := errors.Join(a.q.Copy(a.mem, arg, n), a.q.Sync()); err != nil {
		return err
	}
	c, ok := device.As[device.Peer](b.q)
	if !ok {
		return nil // such engines' devices are reached through the host, which the promises cover
	}
	if ok, err := c.CopyFrom(b.mem, from, a.mem, n); err != nil {
		return fmt.Errorf("a copy between devices: %w", err)
	} else if !ok {
		return errors.New("the queue copies between devices, but not between these")
	}
	clear(src)
	if err := errors.Join(b.q.Copy(arg, b.mem, n), b.q.Sync()); err != nil {
		return err
	}
	if !from.Info().Null && !bytes.Equal(src, want) {
		return errors.New("the bytes came back changed")
	}
	return nil
}

func hostBytes(n int) ([]byte, hostmem.Block, error) {
	b, err := hostmem.Alloc(n)
	if err != nil {
		return nil, b, err
	}
	return hostmem.Bytes(b.Addr, n), b, nil
}

// end is a queue and memory of a device.
type end struct {
	dev device.Device
	q   device.Queue
	mem device.Arg
}

func pair(from, to device.Device, n int64) (a, b end, close func() error, err error) {
	close = func() error { return errors.Join(a.close(), b.close()) }
	if a, err = newEnd(from, n); err == nil {
		b, err = newEnd(to, n)
	}
	if err != nil {
		return a, b, close, errors.Join(err, close())
	}
	return a, b, close, nil
}

func newEnd(dev device.Device, n int64) (e end, err error) {
	e.dev = dev
	if e.q, err = dev.NewQueue(); err != nil {
		return e, err
	}
	e.mem.Mem, err = dev.Alloc(n)
	return e, err
}

func (e *end) close() error {
	if e.mem.Mem.Size > 0 {
		e.dev.Free(e.mem.Mem)
	}
	if e.q == nil {
		return nil
	}
	return e.q.Close()
}
