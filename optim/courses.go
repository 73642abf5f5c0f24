package optim

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/tensor"
)

// MultiStep multiplies the rate by factor at each milestone, a step. A milestone that is named twice counts twice.
func MultiStep(lr, factor float64, milestones ...int) Schedule {
	at := slices.Sorted(slices.Values(milestones))
	return func(step int) float64 {
		passed, _ := slices.BinarySearch(at, step+1)
		return lr * math.Pow(factor, float64(passed))
	}
}

// ConstantFactor multiplies the rate by factor for n steps, and then no longer.
func ConstantFactor(lr, factor float64, n int) Schedule {
	return Constant(lr*factor).Then(n, Constant(lr))
}

// Polynomial falls to 0 in n steps as the given power of what is left of them, then stays.
func Polynomial(lr, power float64, n int) Schedule {
	wants("optim.Polynomial", "steps", n, 1)
	return func(step int) float64 { return lr * math.Pow(1-float64(min(step, n))/float64(n), power) }
}

// CosineAnnealing falls from lr to least in n steps, rises to lr in as many, and so on. [Cosine] stays at least.
func CosineAnnealing(lr, least float64, n int) Schedule {
	wants("optim.CosineAnnealing", "steps", n, 1)
	return func(step int) float64 { return between(lr, least, float64(step%(2*n))/float64(n)) }
}

// CosineRestarts falls from lr to least along half a cosine in n steps, begins anew at lr, and takes mult times as many steps
// each time (Loshchilov and Hutter, 2017).
func CosineRestarts(lr, least float64, n, mult int) Schedule {
	const op = "optim.CosineRestarts"
	wants(op, "steps", n, 1)
	wants(op, "times as many each time", mult, 1)
	return func(step int) float64 {
		length := n
		if mult == 1 {
			step %= n
		}
		for step >= length {
			step -= length
			length *= mult
		}
		return between(lr, least, float64(step)/float64(length))
	}
}

// between goes along half a cosine from a to b as t goes from 0 to 1.
func between(a, b, t float64) float64 { return b + (a-b)*(1+math.Cos(math.Pi*t))/2 }

// evenly goes from a to b as t goes from 0 to 1.
func evenly(a, b, t float64) float64 { return (b-a)*t + a }

// WarmupStableDecay rises to lr as [Warmup] does, stays there for stable steps, and goes evenly to least in decay steps (Hu et
// al., MiniCPM, 2024).
func WarmupStableDecay(lr, least float64, warmup, stable, decay int) Schedule {
	return Warmup(warmup, Constant(lr).Then(stable, Linear(lr, least, decay)))
}

// Lambda multiplies lr by what f gives of the step.
func Lambda(lr float64, f func(step int) float64) Schedule {
	return func(step int) float64 { return lr * f(step) }
}

// Multiplicative multiplies the rate before by what f gives of the step; f is not asked about step 0.
func Multiplicative(lr float64, f func(step int) float64) Schedule {
	var mu sync.Mutex
	at, rate := 0, lr
	return func(step int) float64 {
		mu.Lock()
		defer mu.Unlock()
		if step < at {
			at, rate = 0, lr
		}
		for ; at < step; at++ {
			rate *= f(at + 1)
		}
		return rate
	}
}

// Chained multiplies lr by several schedules at once, each made for a rate of 1:
//
//	optim.Chained(1e-3, optim.ConstantFactor(1, 0.1, 20), optim.Exponential(1, 0.99))
func Chained(lr float64, factors ...Schedule) Schedule {
	return func(step int) float64 {
		rate := lr
		for _, f := range factors {
			rate *= f(step)
		}
		return rate
	}
}

// Sequential follows each schedule up to the milestone of its place, from which on the steps of the next count from 0. There is
// one milestone less than schedules.
func Sequential(schedules []Schedule, milestones ...int) Schedule {
	const op = "optim.Sequential"
	if len(schedules) != len(milestones)+1 || !slices.IsSorted(milestones) {
		tensor.Raise(op, "give a milestone between each two schedules, in order", "%d schedules with the milestones %v", len(schedules), milestones)
	}
	return func(step int) float64 {
		i, begin := 0, 0
		for ; i < len(milestones) && step >= milestones[i]; i++ {
			begin = milestones[i]
		}
		return schedules[i](step - begin)
	}
}

// OneCycleConfig configures [OneCycle]. Of all but Max and Steps zero means PyTorch's default, given in the comments.
type OneCycleConfig struct {
	Max         float64 // the largest rate
	Steps       int     // of the whole
	Start       float64 // the share of steps in which the rate rises: 0.3
	Div         float64 // Max / Div is the first rate: 25
	FinalDiv    float64 // the first rate / FinalDiv is the last: 1e4
	Linear      bool    // along lines, and not half cosines
	ThreePhase  bool    // back to the first rate in as many steps as it has risen, and only then to the last
	MomentumLow float64 // while the rate is Max: 0.85
	MomentumTop float64 // at the ends: 0.95
}

// OneCycle rises from a low rate to a high one and falls to a much lower one, while the momentum goes the other way (Smith and
// Topin, 2017): opt.SetLR(rate(step)), and of SGD, Adam and AdamW opt.SetMomentum(momentum(step)). After the last step both stay.
func OneCycle(c OneCycleConfig) (rate, momentum Schedule) {
	const op = "optim.OneCycle"
	wants(op, "Steps", c.Steps, 1)
	start := optional(c.Start, 0.3)
	check(op, "Start", start, 0, math.Nextafter(1, 2))
	first := c.Max / optional(c.Div, 25)
	last := first / optional(c.FinalDiv, 1e4)
	low, top := optional(c.MomentumLow, 0.85), optional(c.MomentumTop, 0.95)
	n := float64(c.Steps)
	ends, rates, momenta := []float64{start*n - 1, n - 1}, []float64{first, c.Max, last}, []float64{top, low, top}
	if c.ThreePhase {
		ends, rates, momenta = []float64{start*n - 1, 2*start*n - 2, n - 1}, []float64{first, c.Max, first, last}, []float64{top, low, top, top}
	}
	along := between
	if c.Linear {
		along = evenly
	}
	course := func(values []float64) Schedule {
		return func(step int) float64 {
			begin, at := 0., float64(min(step, c.Steps-1))
			for i, end := range ends {
				if at <= end || i == len(ends)-1 {
					return along(values[i], values[i+1], share(at-begin, end-begin))
				}
				begin = end
			}
			return values[len(values)-1]
		}
	}
	return course(rates), course(momenta)
}

// share of a phase, which may be empty, that has passed.
func share(at, length float64) float64 {
	if length == 0 {
		return 1
	}
	return at / length
}

// CyclicConfig configures [Cyclic].
type CyclicConfig struct {
	Base, Max float64 // rates
	Up, Down  int     // steps of the way to Max: 2000, and back: as many
	// Scale is what the way is multiplied by in a cycle, from 1; nil: 1. PyTorch's triangular2 is 1/2^(cycle-1), and with
	// ByStep, which has it given the step in place of the cycle, its exp_range is γ^step.
	Scale       func(n int) float64
	ByStep      bool
	MomentumLow float64 // while the rate is Max: 0.8
	MomentumTop float64 // while it is Base: 0.9
}

// Cyclic goes to and fro between two rates, while the momentum goes the other way (Smith, 2017), as of [OneCycle].
func Cyclic(c CyclicConfig) (rate, momentum Schedule) {
	const op = "optim.Cyclic"
	up := whole(c.Up, 2000)
	down := whole(c.Down, up)
	wants(op, "Up", up, 1)
	wants(op, "Down", down, 1)
	low, top := optional(c.MomentumLow, 0.8), optional(c.MomentumTop, 0.9)
	height := func(step int) float64 {
		total := float64(up + down)
		cycle := math.Floor(1 + float64(step)/total)
		x, ratio := 1+float64(step)/total-cycle, float64(up)/total
		h := (x - 1) / (ratio - 1)
		if x <= ratio {
			h = x / ratio
		}
		switch {
		case c.Scale == nil:
			return h
		case c.ByStep:
			return h * c.Scale(step)
		}
		return h * c.Scale(int(cycle))
	}
	return func(step int) float64 { return c.Base + (c.Max-c.Base)*height(step) },
		func(step int) float64 { return top - (top-low)*height(step) }
}

// whole is a setting whose zero stands for its default.
func whole(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}

// wants panics unless a number is at least so much.
func wants(op, what string, n, least int) {
	if n < least {
		tensor.Raise(op, "give a larger one", "%s: %d, not at least %d", what, n, least)
	}
}

// PlateauConfig configures [Plateau]. Zero means PyTorch's default, given in the comments; a negative number means 0.
type PlateauConfig struct {
	LR        float64 // the first rate: 1e-3
	Factor    float64 // of the rate, below 1: 0.1
	Patience  int     // epochs without improvement that are borne: 10
	Threshold float64 // what counts as one: 1e-4
	Absolute  bool    // Threshold is a difference, and not a share of the best
	Larger    bool    // larger is better, as with an accuracy
	Cooldown  int     // epochs after a change in which nothing is counted: 0
	Least     float64 // rate: 0
	Eps       float64 // changes of the rate below it are left out: 1e-8
}

// Plateau lowers the rate when a figure no longer improves. It may be used by one goroutine at a time.
//
//	plateau := optim.NewPlateau(optim.PlateauConfig{LR: 1e-3, Patience: 3})
//	for … {
//		opt.SetLR(plateau.Step(validation))
//	}
type Plateau struct {
	config PlateauConfig
	state  PlateauState
}

// PlateauState is what resuming needs of a [Plateau], under PyTorch's names.
type PlateauState struct {
	LR       float64  `json:"lr"`
	Best     *float64 `json:"best"` // nil: there was none yet
	Bad      int      `json:"num_bad_epochs"`
	Cooldown int      `json:"cooldown_counter"`
}

// NewPlateau begins with the configuration's rate.
func NewPlateau(c PlateauConfig) *Plateau {
	const op = "optim.NewPlateau"
	c.LR, c.Factor, c.Threshold, c.Eps = optional(c.LR, 1e-3), optional(c.Factor, 0.1), optional(c.Threshold, 1e-4), optional(c.Eps, 1e-8)
	if c.Patience = whole(c.Patience, 10); c.Patience < 0 {
		c.Patience = 0
	}
	check(op, "Factor", c.Factor, 0, 1)
	check(op, "Least", c.Least, 0, math.Inf(1))
	wants(op, "Cooldown", c.Cooldown, 0)
	return &Plateau{config: c, state: PlateauState{LR: c.LR}}
}

// LR is the rate.
func (p *Plateau) LR() float64 { return p.state.LR }

// Step takes the figure of an epoch and gives the rate of the next one. A NaN is no improvement.
func (p *Plateau) Step(figure float64) float64 {
	s, c := &p.state, &p.config
	if s.Best == nil && figure == figure || s.Best != nil && p.better(figure) {
		s.Best, s.Bad = &figure, 0
	} else {
		s.Bad++
	}
	if s.Cooldown > 0 {
		s.Cooldown--
		s.Bad = 0
	}
	if s.Bad > c.Patience {
		if lower := max(s.LR*c.Factor, c.Least); s.LR-lower > c.Eps {
			s.LR = lower
		}
		s.Cooldown, s.Bad = c.Cooldown, 0
	}
	return s.LR
}

func (p *Plateau) better(figure float64) bool {
	best, by := *p.state.Best, p.config.Threshold
	switch {
	case p.config.Absolute && p.config.Larger:
		return figure > best+by
	case p.config.Absolute:
		return figure < best-by
	case p.config.Larger:
		return figure > best*(1+by)
	}
	return figure < best*(1-by)
}

// State is what Load puts back.
func (p *Plateau) State() PlateauState { return p.state }

// Load goes on from a state. The configuration is not part of it. When it fails, nothing was changed.
func (p *Plateau) Load(s PlateauState) error {
	if !(s.LR >= 0) || math.IsInf(s.LR, 0) || s.Bad < 0 || s.Cooldown < 0 {
		return fmt.Errorf("plateau: a rate of %v after %d bad epochs, %d of a cooldown left, is none", s.LR, s.Bad, s.Cooldown)
	}
	p.state = s
	return nil
}
