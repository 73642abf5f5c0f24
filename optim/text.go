package optim

import "fmt"

// String tells what the optimizer updates, at which rate, and how often it has. It reads nothing from the device.
func (c *core) String() string {
	return fmt.Sprintf("optimizer of %d parameters, learning rate %v, after %d steps", len(c.states), c.lr, c.turns)
}

// String tells the scale and how long it has held or, once a device has it, which one, without waiting for it.
func (s *LossScaler) String() string {
	if s.at != nil {
		return fmt.Sprintf("loss scale on %v after %d steps", s.at.Device(), s.steps)
	}
	return fmt.Sprintf("loss scale %v, %d steps without overflow", s.state.Scale, s.state.Good)
}

// String tells the rate and how many epochs went by without improvement.
func (p *Plateau) String() string {
	return fmt.Sprintf("learning rate %v, lowered after %d epochs without improvement; %d now", p.state.LR, p.config.Patience, p.state.Bad)
}

// String tells what is minimised over, and how far it has come.
func (o *LBFGS) String() string {
	return fmt.Sprintf("L-BFGS of %d numbers, after %d steps and %d evaluations", o.size, o.iterations, o.evaluations)
}
