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
	if err := device.Fits(impl.need, args); err != nil {
		return fmt.Errorf("cpu: %s: %w", k.Op.Code, err)
	}
	return impl.run(args, p)
}

// Copy moves n bytes; the regions may overlap.
func (queue) Copy(dst, src device.Arg, n int64) error {
	if err := device.Copyable(dst, src, n); err != nil {
		return fmt.Errorf("cpu: %w", err)
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
