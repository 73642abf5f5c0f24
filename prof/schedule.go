package prof

// phase is what a profiler does in a step.
type phase uint8

const (
	idle   phase = iota
	warmup       // observes, and throws away
	active
	last // active, and the window ends with it
)

// phase follows the schedule of torch.profiler: after Skip steps, rounds of Wait, Warmup and Active.
func (c *Config) phase(step int) phase {
	if c.Active == 0 {
		return active
	}
	step -= c.Skip
	round := c.Wait + c.Warmup + c.Active
	if step < 0 || c.Repeat > 0 && step/round >= c.Repeat {
		return idle
	}
	switch at := step % round; {
	case at < c.Wait:
		return idle
	case at < c.Wait+c.Warmup:
		return warmup
	case at == round-1:
		return last
	}
	return active
}
