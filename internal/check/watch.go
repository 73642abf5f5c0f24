package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/warpline-ml/warpline/internal/device"
)

// What is tried on a card may hang there for good, in the kernel or in the driver, with the thread that waits for it.
const (
	patience = 3 * time.Minute  // with a part of the check, of which the longest takes seconds
	grace    = 10 * time.Second // of a part that is under way when the check is interrupted
)

// patienceWith is how long a part may take on a device; 0 where nothing can hang: what is simulated counts its steps.
func patienceWith(name device.Name) time.Duration {
	if name.Kind == "cuda" {
		return patience
	}
	return 0
}

// stuckError is that of work that did not come to its end. It may still be under way: its variables are not to be read,
// and the device is not to be used.
type stuckError struct{ after time.Duration }

func (e *stuckError) Error() string {
	return fmt.Sprintf("there is no answer after %v: a kernel hangs, or the driver", e.after.Round(time.Second))
}

func stuck(err error) bool {
	var e *stuckError
	return errors.As(err, &e)
}

// watch runs f, and leaves it to itself when it takes longer than a limit, if there is one. Once the context is cancelled,
// it gets little more time.
func watch(ctx context.Context, limit time.Duration, f func() error) error {
	if limit == 0 {
		return f()
	}
	start := time.Now()
	done := make(chan error, 1)
	go func() { done <- f() }()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		late.Reset(grace)
	case <-late.C:
		return &stuckError{limit}
	}
	select {
	case err := <-done:
		return err
	case <-late.C:
		return &stuckError{time.Since(start)}
	}
}
