package machine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/tensor"
)

// TestDeviceHints: a hint is about what was wrong, be it a name or a variable.
func TestDeviceHints(t *testing.T) {
	const general = "give --device cpu, "
	for _, c := range []struct{ name, variable, value, want string }{
		{"gpu", "", "", "did you mean cuda:0? "}, {"gpu:1", "", "", "did you mean cuda:1? "}, {"CPU", "", "", "did you mean cpu? "},
		{"sim:a100", "", "", "did you mean sim:a100-80? "}, {"null:t5", "", "", "did you mean null:t4? "}, {"nonsense", "", "", general}, {"sim:v1", "", "", general},
		{"sim:8", "", "", general}, {"sim:l4x3", "WARPLINE_SIM", "check=foo", "set WARPLINE_SIM to "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.variable != "" {
				t.Setenv(c.variable, c.value)
			}
			_, err := tensor.Fresh(c.name)
			var e *advice.Error
			if err = Explain(c.name, err); !errors.As(err, &e) || !strings.HasPrefix(e.Hint, c.want) {
				t.Errorf("%v: hint %q, want %q", err, e.Hint, c.want)
			}
		})
	}
	_, err := tensor.Open("sim:8")
	if err == nil || !strings.Contains(err.Error(), "sim:a100-80x16:8") || strings.Contains(err.Error(), "CUDA_VISIBLE_DEVICES") {
		t.Error(err)
	}
}

// TestEnvironment: variables without a meaning are refused before a device is opened.
func TestEnvironment(t *testing.T) {
	for _, c := range []struct{ name, value, text, hint string }{
		{"WARPLINE_SYNC", "foo", `WARPLINE_SYNC=foo means nothing: warn logs`, "unset it"},
		{"WARPLINE_BLOCKING", "maybe", `WARPLINE_BLOCKING=maybe means nothing: 1 waits`, "unset it"},
		{"WARPLINE_SYNC", "warn", "", ""}, {"WARPLINE_BLOCKING", "1", "", ""}, {"WARPLINE_BLOCKING", "", "", ""},
	} {
		t.Setenv("WARPLINE_SYNC", "")
		t.Setenv("WARPLINE_BLOCKING", "")
		t.Setenv(c.name, c.value)
		_, err := Open("cpu", nil)
		var e *advice.Error
		if errors.As(err, &e) != (c.text != "") || e != nil && (!strings.HasPrefix(e.Text, c.text) || !strings.HasPrefix(e.Hint, c.hint)) {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
	}
}

// TestPassedOver: a card that is there and does not work is told, and a machine without one is not.
func TestPassedOver(t *testing.T) {
	t.Setenv("WARPLINE_LIBCUDA", "")
	library := func(r driver.Result) error {
		e := &libcuda.Error{Result: r}
		e.Text, e.Hint = "no", "do"
		return fmt.Errorf("device cuda:0: %w", e)
	}
	for _, c := range []struct {
		err   error
		named string
		found bool
		want  bool
	}{
		{library(driver.Success), "", false, false}, {library(driver.NoDevice), "", true, false}, {library(driver.StubLibrary), "", false, false},
		{library(driver.Success), "/lib/libc.so.6", false, true}, {library(driver.Unknown), "", true, true}, {library(driver.Success), "", true, true},
		{errors.New("compute capability 5.2"), "", true, true},
	} {
		t.Setenv("WARPLINE_LIBCUDA", c.named)
		if got := present(c.err, func() bool { return c.found }); got != c.want {
			t.Errorf("%v, library %q: %v", c.err, c.named, got)
		}
	}
	if got := passedOver("cuda:0", library(driver.Unknown)).Error(); got != "passed over: device cuda:0: no; do" {
		t.Error(got)
	}
}

// TestRecovered: failures of a device are told from mistakes about data, whether they are returned or not.
func TestRecovered(t *testing.T) {
	lost := fmt.Errorf("late: %w", &driver.Error{Call: "cuStreamSynchronize", Result: driver.IllegalAddress})
	for want, f := range map[string]func() error{
		"WARPLINE_BLOCKING=1": func() error { panic(&tensor.Error{Op: "matmul", Text: "lost", Hint: "reshape", Err: lost}) },
		"WARPLINE_SIM=check=": func() error { return lost },
		"check the data":      func() error { panic(&tensor.Error{Op: "embedding", Text: "too large"}) },
		"reshape":             func() error { panic(&tensor.Error{Op: "matmul", Text: "shapes", Hint: "reshape"}) },
	} {
		err := func() (err error) {
			defer Recovered(&err)
			return f()
		}()
		var e *advice.Error
		if !errors.As(err, &e) || !strings.Contains(e.Hint, want) {
			t.Errorf("%v, want a hint with %q", err, want)
		}
	}
}
