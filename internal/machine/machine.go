// Package machine opens the devices of the machine that a program runs on, and says what is wrong with one.
package machine

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/engines"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/tensor"
)

// Open is tensor.Open with a hint; an empty name is the best device, and a card that it is not is told to note.
func Open(name string, note func(text string)) (*tensor.Env, error) {
	if err := CheckEnvironment(); err != nil {
		return nil, err
	}
	if name == "" {
		var passed error
		if name, passed = Best(); passed != nil {
			note(passed.Error())
		}
	}
	env, err := tensor.Open(name)
	return env, Explain(name, err)
}

// Explain gives the error of opening a device a hint, unless it has one: the driver's own, about a variable of the
// environment, or a name like the one that was written.
func Explain(name string, err error) error {
	if err == nil {
		return nil
	}
	var library *libcuda.Error
	if errors.As(err, &library) {
		hint := library.Hint
		if library.Tried != nil {
			hint += "; warpline check --device " + name + " lists the places"
		}
		return &advice.Error{Text: err.Error(), Hint: hint, Err: err}
	}
	if strings.HasPrefix(name, "cuda") && deviceFailed(err) {
		return advice.Explain(err, hintOf(err, "nvidia-smi tells who holds the card and its memory; the device sim:0 needs none"))
	}
	if strings.Contains(err.Error(), engines.SimEnv) {
		return advice.Explain(err, "set "+engines.SimEnv+" to what the message lists, or unset it")
	}
	return advice.Explain(err, meantDevice(name)+"give --device cpu, cuda:N, sim:N for a simulated GPU, or null:CARD for figures of memory")
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
	}
	for _, card := range engines.Simulated() {
		known = append(known, "sim:"+card)
	}
	for _, k := range known {
		if kind, _, _ := strings.Cut(k, ":"); len(name) > len(kind)+1 && strings.HasPrefix(k, name) {
			return "did you mean " + k + "? "
		}
	}
	for _, card := range cards.All {
		if part, ok := strings.CutPrefix(name, "sim:"); ok && part != "" && strings.HasPrefix(card.Name, part) {
			return "" // it is meant, and cannot be had
		}
	}
	return advice.Meant(name, known)
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

// Recovered, deferred, turns panics about tensors and memory into errors, and gives failures of the device a hint. Other panics go
// on: they are mistakes of the library.
func Recovered(err *error) {
	switch v := recover().(type) {
	case nil:
		if deviceFailed(*err) {
			*err = advice.Explain(*err, hintOf(*err, onFailure))
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
		text := v.Op + ": " + v.Text
		var a *tensor.Anomaly
		if errors.As(v, &a) {
			text = fmt.Sprintf("%v, at %s", a, a.Line)
		}
		*err = &advice.Error{Text: text, Hint: hint, Err: v}
	case *tensor.OOMError:
		*err = &advice.Error{Text: Shortage(v), Hint: "choose a --device with more memory, such as cpu, or something smaller", Err: v}
	default:
		panic(v)
	}
}

// Shortage tells an out-of-memory in a line.
func Shortage(e *tensor.OOMError) string {
	return fmt.Sprintf("out of memory on %s: %s asks for %s, and %s of %s are in use", e.Device, e.Op, render.Bytes(e.Asked), render.Bytes(e.Allocated), render.Bytes(e.Limit))
}

// CheckLevel refuses a level of the processor that is not there: every command, whatever it computes on, uses the processor.
func CheckLevel() error {
	if err := cpufeat.Check(); err != nil {
		return advice.Failf("unset "+cpufeat.Env+" for the level that suits this machine best", "%v", err)
	}
	return nil
}

// CheckEnvironment refuses values of WARPLINE_SYNC and WARPLINE_BLOCKING that have no meaning.
func CheckEnvironment() error {
	if _, err := device.FromEnvironment(); err != nil {
		return advice.Failf("unset it, or give it a value that it has", "%v", err)
	}
	return nil
}

// AllowWaits lets the host wait for a device, whatever WARPLINE_SYNC says, until restore is called. The variable is for
// the steps of a training; scores, checkpoints and samples are asked for and have to be read. Who calls Device.OnWait has
// the say, so nothing is done without the variable.
func AllowWaits(d *tensor.Device) (restore func()) {
	policy, set := map[string]tensor.Waits{"warn": tensor.WarnWaits, "error": tensor.FailWaits}[os.Getenv("WARPLINE_SYNC")]
	if !set {
		return func() {}
	}
	d.OnWait(tensor.AllowWaits)
	return func() { d.OnWait(policy) }
}

// OldestCUDA is the version of CUDA that a card's driver must support: 11040 for 11.4.
const OldestCUDA = libcuda.Oldest
