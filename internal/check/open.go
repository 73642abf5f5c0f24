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
	var known *advice.Error
	var failed *driver.Error
	switch {
	case errors.As(err, &search) && search.Searched() != nil && errors.As(err, &known):
		return &advice.Error{Text: err.Error() + ": " + strings.Join(search.Searched(), ", "), Hint: known.Hint, Err: err}
	case errors.As(err, &known):
		return &advice.Error{Text: err.Error(), Hint: known.Hint, Err: err}
	case errors.As(err, &failed) && failed.Hint() != "":
		return &advice.Error{Text: err.Error(), Hint: failed.Hint(), Err: err}
	}
	return err
}
