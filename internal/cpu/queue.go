package cpu

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/device"
)

// queue runs work in the caller, on resident workers where it is large. When a call returns, its work is done: events
// have nothing to wait for.
type queue struct{}

// Launch runs a kernel. Beside the kernel's own errors it reports arguments that are missing or too small.
func (queue) Launch(k *device.Kernel, args []device.Arg, p *device.Params) error {
	impl, ok := k.Impl.(*kernel)
	if !ok {
		return fmt.Errorf("cpu: %s was prepared by another engine", k.Op.Code)
	}
	if len(args) < len(impl.need) {
		return fmt.Errorf("cpu: %s takes %d arguments, got %d", k.Op.Code, len(impl.need), len(args))
	}
	for i, n := range impl.need {
		if a := &args[i]; n > a.Mem.Size-a.Offset || a.Offset < 0 {
			return fmt.Errorf("cpu: %s: argument %d needs %d bytes, its memory has %d from offset %d", k.Op.Code, i, n, a.Mem.Size, a.Offset)
		}
	}
	return impl.run(args, p)
}

// Copy moves n bytes; the regions may overlap.
func (queue) Copy(dst, src device.Arg, n int64) error {
	for _, a := range [...]device.Arg{dst, src} {
		if n < 0 || a.Offset < 0 || n > a.Mem.Size-a.Offset {
			return fmt.Errorf("cpu: copy of %d bytes with memory of %d from offset %d", n, a.Mem.Size, a.Offset)
		}
	}
	copy(values[byte](dst, int(n)), values[byte](src, int(n)))
	return nil
}

// Record returns an event that is done.
func (queue) Record() (device.Event, error) { return done{}, nil }

// Wait returns at once.
func (queue) Wait(device.Event) error { return nil }

// Sync returns at once.
func (queue) Sync() error { return nil }

// Close does nothing.
func (queue) Close() error { return nil }

// done is the event of work that has ended.
type done struct{}

// Done reports true.
func (done) Done() (bool, error) { return true, nil }
