package train

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/engines"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/tensor"
)

// Error is why a run could not start or go on: Text says what happened, to which values, Hint what to do, and Err is the
// cause, or nil. The text of Error is Text alone.
type Error = advice.Error

// ErrInterrupted ends a run whose context was cancelled, after its checkpoint was written.
var ErrInterrupted = errors.New("interrupted")

// fail is advice.Failf, which a package that makes most of its errors by it calls by a short name.
func fail(hint, format string, args ...any) *Error { return advice.Failf(hint, format, args...) }

// explain gives err a hint, unless it has one, and keeps its whole text.
func explain(err error, hint string) error {
	var known *Error
	if err == nil {
		return nil
	}
	if errors.As(err, &known) {
		if err == error(known) {
			return err
		}
		hint = known.Hint
	}
	return &Error{Text: err.Error(), Hint: hint, Err: err}
}

// Meant is "did you mean X? " when one of the names is at most two letters away from what was written, and not more than
// half of its letters.
func Meant(written string, names []string) string {
	best, least := "", min(3, 1+len(written)/2)
	for _, name := range names {
		if d := distance(written, name); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "? "
}

// distance is Levenshtein's: the letters to insert, drop or change that lead from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := min(row[j], row[j+1]) + 1
			if a[i] == b[j] {
				d = min(d, diagonal)
			} else {
				d = min(d, diagonal+1)
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}

// openDevice is tensor.Open with a hint; an empty name is the best device, and a card that it is not is noted.
func openDevice(name string, watch Watcher) (*tensor.Env, error) {
	if err := CheckEnvironment(); err != nil {
		return nil, err
	}
	if name == "" {
		var passed error
		if name, passed = BestDevice(); passed != nil {
			watch.Note(passed.Error())
		}
	}
	env, err := tensor.Open(name)
	return env, DeviceError(name, err)
}

// DeviceError gives the error of opening a device a hint, unless it has one: the driver's own, about a variable of the
// environment, or a name like the one that was written.
func DeviceError(name string, err error) error {
	if err == nil {
		return nil
	}
	var library *libcuda.Error
	if errors.As(err, &library) {
		hint := library.Hint
		if library.Tried != nil {
			hint += "; warpline check --device " + name + " lists the places"
		}
		return &Error{Text: err.Error(), Hint: hint, Err: err}
	}
	if strings.HasPrefix(name, "cuda") && deviceFailed(err) {
		return explain(err, hintOf(err, "nvidia-smi tells who holds the card and its memory; the device sim:0 needs none"))
	}
	if strings.Contains(err.Error(), engines.SimEnv) {
		return explain(err, "set "+engines.SimEnv+" to what the message lists, or unset it")
	}
	return explain(err, meantDevice(name)+"give --device cpu, cuda:N, sim:N for a simulated GPU, or null:CARD for figures of memory")
}

// meantDevice is Meant for a device's name, which may lack its end; it is empty for a well-formed one.
func meantDevice(name string) string {
	if _, err := device.ParseName(name); err == nil {
		return ""
	}
	name = strings.ToLower(name)
	if number, ok := strings.CutPrefix(name, "gpu"); ok { // as other libraries call it
		return "did you mean cuda:" + cmp.Or(strings.Trim(number, ":"), "0") + "? "
	}
	known := []string{"cpu", "cuda:0", "sim:0", "sim:" + cards.Default, "null:" + cards.Default}
	for _, card := range cards.All {
		known = append(known, "null:"+card.Name)
		if card.Compute[0] >= 8 {
			known = append(known, "sim:"+card.Name)
		}
	}
	for _, k := range known {
		if kind, _, _ := strings.Cut(k, ":"); len(name) > len(kind)+1 && strings.HasPrefix(k, name) {
			return "did you mean " + k + "? "
		}
	}
	return Meant(name, known)
}

// deviceFailed reports whether an error is one of a device at work, and not of the program or its data.
func deviceFailed(err error) bool {
	var failed *driver.Error
	return errors.As(err, &failed)
}

// hintOf is the driver's own hint, or else another.
func hintOf(err error, otherwise string) string {
	var failed *driver.Error
	if errors.As(err, &failed) && failed.Hint() != "" {
		return failed.Hint()
	}
	return otherwise
}

// onFailure is what to do when a device fails at work.
const onFailure = "WARPLINE_BLOCKING=1 tells which operation it was; --device sim:0 under WARPLINE_SIM=check=all tells where in its kernel"

// recovered turns panics about tensors and memory into errors, and gives failures of the device a hint. Other panics go
// on: they are mistakes of the library.
func recovered(err *error) {
	switch v := recover().(type) {
	case nil:
		if deviceFailed(*err) {
			*err = explain(*err, hintOf(*err, onFailure))
		}
	case *tensor.Error:
		hint := "check the data and the sizes of the model"
		var late device.Blamed // the library's hint on one is a line of this program
		switch {
		case deviceFailed(v):
			hint = hintOf(v, onFailure)
		case v.Hint != "" && !errors.As(v, &late):
			hint = v.Hint
		}
		*err = &Error{Text: v.Op + ": " + v.Text, Hint: hint, Err: v}
	case *tensor.OOMError:
		text := fmt.Sprintf("out of memory on %s: %s asks for %s, and %s of %s are in use", v.Device, v.Op, render.Bytes(v.Asked), render.Bytes(v.Allocated), render.Bytes(v.Limit))
		*err = &Error{Text: text, Hint: "give a smaller --batch or a smaller model; for gpt also --recompute", Err: v}
	default:
		panic(v)
	}
}
