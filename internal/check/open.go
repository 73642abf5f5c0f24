package check

import (
	"errors"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
)

// open opens a device. The error has a hint where the driver gave one.
func open(s string) (name device.Name, dev device.Device, err error) {
	if name, err = device.ParseName(s); err == nil {
		dev, err = name.Open()
	}
	return name, dev, advised(err)
}

// searcher is an error of a search that found nothing.
type searcher interface{ Searched() []string }

// advised gives an error of the driver its hint, and that of a search for the driver the places.
func advised(err error) error {
	var search searcher
	var known *Error
	var failed *driver.Error
	switch {
	case errors.As(err, &search) && search.Searched() != nil && errors.As(err, &known):
		return &Error{Text: err.Error() + ": " + strings.Join(search.Searched(), ", "), Hint: known.Hint, Err: err}
	case errors.As(err, &known):
		return &Error{Text: err.Error(), Hint: known.Hint, Err: err}
	case errors.As(err, &failed) && failed.Hint() != "":
		return &Error{Text: err.Error(), Hint: failed.Hint(), Err: err}
	}
	return err
}

// nothing is a module in the version and for the target of the engine's, with a kernel that does nothing.
const nothing = `.version 7.4
.target sm_80
.address_size 64
.visible .entry nothing(.param .u64 in, .param .u64 out)
{
	ret;
}
`

// trial has a device compile and run a kernel, if it runs any from outside: what keeps it from that is told once, and not
// in every case.
func trial(name device.Name, dev device.Device) error {
	p, ok := dev.(prober)
	if !ok {
		return nil
	}
	err := p.Probe([]byte(nothing), "nothing", 1, 1, nil, nil)
	if err == nil {
		return nil
	}
	hint := "nvidia-smi tells who holds the card and its memory; the device sim:0 needs none"
	if failed := (*driver.Error)(nil); errors.As(err, &failed) && failed.Hint() != "" {
		hint = failed.Hint()
	}
	return advice.Failf(hint, "%s (%s) is there and runs no kernel: %v", name, dev.Info().Model, err)
}
