package cpu

import (
	"errors"
	"fmt"
	"time"

	"github.com/warpline-ml/warpline/internal/device"
)

// queue runs work in the caller, on resident workers where it is large. When a call returns, its work is done: marks
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

// Record returns a mark that is done.
func (queue) Record() (device.Mark, error) { return done{}, nil }

// Wait returns at once.
func (queue) Wait(device.Mark) error { return nil }

// Sync returns at once.
func (queue) Sync() error { return nil }

// Close does nothing.
func (queue) Close() error { return nil }

// Stamp implements [device.Timer] by the clock.
func (queue) Stamp() (device.Stamp, error) { return stamp{at: time.Now()}, nil }

// stamp is the mark of work that ended at a time.
type stamp struct {
	done
	at time.Time
}

// Since implements [device.Stamp].
func (s stamp) Since(earlier device.Stamp) (time.Duration, error) {
	from, ok := device.As[stamp](earlier)
	if !ok {
		return 0, errors.New("cpu: a time since a stamp of another device")
	}
	return s.at.Sub(from.at), nil
}

// done is the mark of work that has ended.
type done struct{}

// Done reports true.
func (done) Done() (bool, error) { return true, nil }
