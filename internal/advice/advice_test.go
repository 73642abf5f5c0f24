package advice_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
)

func TestFailf(t *testing.T) {
	err := fmt.Errorf("loading: %w", advice.Failf("make room", "%s: %v", "w.bin", io.ErrShortWrite))
	var e *advice.Error
	if !errors.As(err, &e) || e.Text != "w.bin: short write" || e.Hint != "make room" || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("%v: %+v", err, e)
	}
	if e := advice.Failf("h", "%d of %d", 1, 2); e.Error() != "1 of 2" || e.Unwrap() != nil {
		t.Errorf("%+v", e)
	}
}
