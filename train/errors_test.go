package train

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/tensor"
)

// TestDeviceHints: a hint is about what was wrong, be it a name or a variable.
func TestDeviceHints(t *testing.T) {
	const general = "give --device cpu, "
	for _, c := range []struct{ name, variable, value, want string }{
		{"gpu", "", "", "did you mean cuda:0? "}, {"gpu:1", "", "", "did you mean cuda:1? "}, {"CPU", "", "", "did you mean cpu? "},
		{"sim:a100", "", "", "did you mean sim:a100-80? "}, {"null:t5", "", "", "did you mean null:t4? "}, {"nonsense", "", "", general},
		{"sim:8", "", "", general}, {"sim:l4x3", "WARPLINE_SIM", "check=foo", "set WARPLINE_SIM to "}, {"cpu", "WARPLINE_SYNC", "foo", "set WARPLINE_SYNC to "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.variable != "" {
				t.Setenv(c.variable, c.value)
			}
			_, err := tensor.Fresh(c.name)
			var e *Error
			if err = DeviceError(c.name, err); !errors.As(err, &e) || !strings.HasPrefix(e.Hint, c.want) {
				t.Errorf("%v: hint %q, want %q", err, e.Hint, c.want)
			}
		})
	}
	_, err := tensor.Open("sim:8")
	if err == nil || !strings.Contains(err.Error(), "sim:a100-80x16:8") || strings.Contains(err.Error(), "CUDA_VISIBLE_DEVICES") {
		t.Error(err)
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
			defer recovered(&err)
			return f()
		}()
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Hint, want) {
			t.Errorf("%v, want a hint with %q", err, want)
		}
	}
}
