package simcuda

import "github.com/warpline-ml/warpline/internal/gpusim"

// Observe lets f see every later launch on the machine's devices just before it takes effect; nil ends that. f must not
// call the driver.
func (s *System) Observe(f func(c *gpusim.Call)) {
	for _, d := range s.devices {
		d.sim.Observe(f)
	}
}
