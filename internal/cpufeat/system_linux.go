package cpufeat

import (
	"os"
	"strings"
)

// system returns the model and the number of cores.
func system() (model string, cores int) {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", 0
	}
	return parseCPUInfo(string(text))
}

// parseCPUInfo reads /proc/cpuinfo: one paragraph for each logical processor.
// ARM kernels name neither the model nor the cores.
func parseCPUInfo(text string) (model string, cores int) {
	seen := make(map[string]bool)
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		fields := make(map[string]string)
		for line := range strings.Lines(paragraph) {
			if key, value, ok := strings.Cut(line, ":"); ok {
				fields[strings.TrimSpace(key)] = strings.TrimSpace(value)
			}
		}
		if model == "" {
			model = fields["model name"]
		}
		if core, ok := fields["core id"]; ok {
			seen[fields["physical id"]+"/"+core] = true
		}
	}
	return model, len(seen)
}
