package hostmem

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// physical is the machine's memory or, if that is less, what the control group of the process may use.
func physical() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	n := int64(uint64(info.Totalram) * uint64(info.Unit))
	text, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	if err != nil {
		return n
	}
	if most, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
		n = min(n, most)
	}
	return n
}
