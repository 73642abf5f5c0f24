package vetinput

import (
	"context"
	"io"
	"testing"
	"time"
)

// TestInterrupted: nobody waits for a program that never ends once the run is interrupted.
func TestInterrupted(t *testing.T) {
	stdin, end := io.Pipe()
	defer end.Close()
	ctx, cancel := context.WithCancel(t.Context())
	out := Check(ctx, []string{Stdin}, stdin)
	cancel()
	select {
	case one, ok := <-out:
		if ok {
			t.Errorf("%+v", one)
		}
	case <-time.After(time.Minute):
		t.Error("it still waits for the standard input")
	}
}
