package probe

import "golang.org/x/sys/unix"

// desktop asks macOS what the machine is.
func (p *prober) desktop() {
	text := func(name string) string {
		s, _ := unix.Sysctl(name)
		return s
	}
	memory, _ := unix.SysctlUint64("hw.memsize")
	p.macFacts(macSystem{brand: text("machdep.cpu.brand_string"), model: text("hw.model"), release: text("kern.osproductversion"), kernel: text("kern.osrelease"), memory: int64(memory)})
}
