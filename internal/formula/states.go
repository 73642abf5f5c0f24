package formula

import "fmt"

// states are the bytes of what a device keeps from step to step, and of copies of weights.
type states struct {
	weights, gradients, optimizer, casts, gathered int64
	lasting                                        bool // gradients keep their memory between steps
	why                                            [3]string
}

// perParameter is the bytes that a parameter has as weight, as gradient and in the optimizer, a master copy among the latter.
func (s *Setup) perParameter() (w, g, o float64) {
	row, _ := optimizer(s.Optimizer)
	switch {
	case s.Weights16:
		return 2, 2, row.Halved
	case !s.half() || s.Style == Torch || s.Style == Eager:
		return 4, 4, row.Full
	case s.Style == Megatron:
		return 2, 4, 4 + row.Full
	}
	return 2, 2, 4 + row.Full
}

func (s *Setup) states(c counts) states {
	w, g, o := s.perParameter()
	p, n := float64(c.parameters), float64(s.replicas())
	x := states{lasting: s.Style == Megatron || s.Style == DeepSpeed || s.Style == LLMC || s.Accumulate > 1 || s.replicas() > 1}
	share := func(bytes float64, from int) (int64, string) {
		if s.ZeRO >= from {
			return int64(bytes*p/n + .5), fmt.Sprintf("%g bytes a parameter, over %g devices", bytes, n)
		}
		return int64(bytes*p + .5), fmt.Sprintf("%g bytes a parameter", bytes)
	}
	x.weights, x.why[0] = share(w, 3)
	x.gradients, x.why[1] = share(g, 2)
	x.optimizer, x.why[2] = share(o, 1)
	if s.Forward {
		x.weights, x.gradients, x.optimizer = 0, 0, 0
	}
	if s.half() && w == 4 && s.ZeRO < 3 {
		x.casts = 2 * c.linear
	}
	if s.ZeRO == 3 {
		x.gathered = s.gathered(c, w)
	}
	return x
}

// gathered is the working set of ZeRO-3: the block at work and the next with their whole weights, in what products are
// computed in, and the first one's gradients before they are shared out; tables stay whole.
func (s *Setup) gathered(c counts, w float64) int64 {
	size := int64(w)
	if s.half() {
		size = 2
	}
	return (2*size+4)*c.block + (size+4)*c.root
}
