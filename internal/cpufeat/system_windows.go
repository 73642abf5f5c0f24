package cpufeat

import (
	"strings"

	"golang.org/x/sys/windows/registry"
)

// system returns the model; it does not know the number of cores.
func system() (model string, cores int) {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, `HARDWARE\DESCRIPTION\System\CentralProcessor\0`, registry.QUERY_VALUE)
	if err != nil {
		return "", 0
	}
	defer k.Close()
	model, _, _ = k.GetStringValue("ProcessorNameString")
	return strings.TrimSpace(model), 0
}
