package gpusim

import "github.com/warpline-ml/warpline/internal/ptx"

// Call is a launch that is about to start.
type Call struct {
	Device      *Device
	Kernel      *Kernel
	Grid, Block [3]int
	Shared      int // bytes of dynamic shared memory
	Params      []byte
}

// Observe lets f see every later launch on the device before it starts, its memory as the kernel will find it; nil ends
// that. f may use the device.
func (d *Device) Observe(f func(c *Call)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.observer = f
}

func (d *Device) observed(c *Call) {
	d.mu.Lock()
	f := d.observer
	d.mu.Unlock()
	if f != nil {
		f(c)
	}
}

// Extent is the live allocation, or the live part of one, that holds an address.
func (d *Device) Extent(addr uint64) (lo uint64, size int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.find(addr)
	if a == nil || a.data == nil {
		return 0, 0, false
	}
	return a.lo, len(a.data), true
}

// Source is the PTX of the kernel's module, printed.
func (k *Kernel) Source() string { return ptx.Print(k.prog.module) }
