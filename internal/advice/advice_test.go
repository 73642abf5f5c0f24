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

// TestExplain: an error that has a hint keeps it, and what was said around it.
func TestExplain(t *testing.T) {
	cause := advice.Failf("make room", "the disk is full")
	for err, want := range map[error]string{
		error(cause):                         "the disk is full",
		fmt.Errorf("runs/digits: %w", cause): "runs/digits: the disk is full",
	} {
		var e *advice.Error
		if got := advice.Explain(err, "otherwise"); !errors.As(got, &e) || e.Text != want || e.Hint != "make room" || !errors.Is(got, cause) {
			t.Errorf("%v: %+v", err, got)
		}
	}
	if got := advice.Explain(errors.New("lost"), "otherwise").(*advice.Error); got.Text != "lost" || got.Hint != "otherwise" {
		t.Errorf("%+v", got)
	}
	if err := advice.Explain(nil, "otherwise"); err != nil {
		t.Error(err)
	}
}

func TestMeant(t *testing.T) {
	names := []string{"adam", "adamw", "sgd", "cosine"}
	for written, want := range map[string]string{"adm": "did you mean adam? ", "adamww": "did you mean adamw? ", "csine": "did you mean cosine? ", "xyzzy": "", "": "", "s": "", "sg": "did you mean sgd? "} {
		if got := advice.Meant(written, names); got != want {
			t.Errorf("%q: %q, want %q", written, got, want)
		}
	}
	for want, list := range map[string][]string{"": nil, "a": {"a"}, "a and b": {"a", "b"}, "a, b and c": {"a", "b", "c"}} {
		if got := advice.List(list); got != want {
			t.Errorf("%v: %q", list, got)
		}
	}
}
