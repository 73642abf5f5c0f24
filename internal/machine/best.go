package machine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/tensor"
)

// Best is the name of the best device this process can use: what every command takes unless it is told. It opens
// devices, a card's context among them. passed says why that is none on a card, if there seems to be one.
func Best() (name string, passed error) {
	card := func(name string) bool { return strings.HasPrefix(name, "cuda") }
	names := tensor.Devices()
	if !slices.ContainsFunc(names, card) {
		names = append([]string{"cuda:0"}, names...) // its error tells a driver that does not start from none
	}
	for _, name := range names {
		env, err := tensor.Open(name)
		if err == nil {
			return env.Device().Name(), passed
		}
		if passed == nil && card(name) && present(err, driverFound) {
			passed = passedOver(name, err)
		}
	}
	return "cpu", passed // opening it tells what is wrong
}

// present tells whether the error of opening a card is one of a driver that was named or found, and not that there is
// none, or that it has no card to show.
func present(err error, found func() bool) bool {
	var library *libcuda.Error
	if os.Getenv(libcuda.PathEnv) != "" || !errors.As(err, &library) {
		return true
	}
	return library.Result != driver.NoDevice && found()
}

// driverFound tells whether there is a driver, be it one that does not start.
func driverFound() bool {
	_, source, _ := libcuda.Open() // the error is known
	return source.Path != ""
}

func passedOver(name string, err error) error {
	text, hint := err.Error(), ""
	var known *advice.Error
	if errors.As(Explain(name, err), &known) {
		text, hint = known.Text, "; "+known.Hint
	}
	return fmt.Errorf("passed over: %s%s", text, hint)
}
