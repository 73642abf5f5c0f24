package optim

import "github.com/warpline-ml/warpline/tensor"

// Offload has the optimizer's state in the host's memory from the next Step on. There it streams through the device, one
// parameter's after the other, while others are updated; updates are the same bit for bit. Where the device's memory is the
// host's, or it has no such copies, state stays where it is: [tensor.Device.Parks] says why. What State gives of it are
// copies on the device "cpu".
func (c *core) Offload() { c.away = true }

// parksIn tells whether a parameter's state is to be in the memory of the host of its device, where away asks for that.
func (s *state) parksIn(away bool) bool { return away && s.p.Env().Device().Parks() == "" }

// park has a parameter's state in the memory of the host of its device: where it was, new, or from elsewhere.
func (s *state) park() {
	if s.parks == nil {
		s.parks = make([]*tensor.Parked, len(s.keep))
	}
	for i, k := range s.keep {
		p := s.parks[i]
		switch here := s.p.Env(); {
		case k != nil:
			s.parks[i], s.keep[i] = tensor.Park(k.To(here).Cast(s.dtype(i))), nil
		case p == nil && s.kinds[i].plain():
			s.parks[i] = tensor.ParkZeros(s.p, s.dtype(i))
		case p == nil:
			s.parks[i] = tensor.Park(s.first(i))
		case p.Device() != here.Device() || p.DType() != s.dtype(i):
			s.parks[i] = tensor.Park(p.Value().To(here).Cast(s.dtype(i)))
		}
	}
}

// value is a state's tensor, or a copy of what is parked.
func (s *state) value(i int) *tensor.Tensor {
	if s.keep[i] == nil && s.parks != nil {
		return s.parks[i].Value()
	}
	return s.keep[i]
}

// alone tells parameters apart whose state streams through the device.
func (s *state) alone() int {
	if len(s.parks) == 0 {
		return 0
	}
	return 1 + s.index
}

// run makes updates on one device.
func (c *core) run(e *tensor.Env, book *ledger, batches []*batch) {
	if c.maximize { // of gradients of the other sign
		scoped, scope := e.NoGrad().Scope()
		defer scope.End()
		at := *book
		at.scale = book.scale.In(scoped).Neg()
		book = &at
	}
	var streams []*batch
	var parked [][]*tensor.Parked
	for _, b := range batches {
		switch {
		case b.p[0].Env().Device() != e.Device():
		case len(b.parks) > 0:
			streams, parked = append(streams, b), append(parked, b.parks)
		default:
			c.update(book, b)
		}
	}
	tensor.StreamParked(e, parked, func(i int, values []*tensor.Tensor) {
		for kind, t := range values {
			streams[i].keep[kind] = []*tensor.Tensor{t}
		}
		c.update(book, streams[i])
	})
}
