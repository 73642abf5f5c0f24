package cpufeat

import "golang.org/x/sys/unix"

// system returns the model and the number of cores.
func system() (model string, cores int) {
	model, _ = unix.Sysctl("machdep.cpu.brand_string")
	n, _ := unix.SysctlUint32("hw.physicalcpu")
	return model, int(n)
}
