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
	d.watching.Lock()
	defer d.watching.Unlock()
	d.observer = f
}

func (d *Device) observed(c *Call) {
	d.watching.Lock()
	f := d.observer
	d.watching.Unlock()
	if f != nil {
		f(c)
	}
}

// Source is the PTX of the kernel's module, printed.
func (k *Kernel) Source() string { return ptx.Print(k.prog.Ptx) }
