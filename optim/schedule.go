package optim

import (
	"math"

	"github.com/warpline-ml/warpline/tensor"
)

// Schedule gives the learning rate of a step, counted from 0. Those of this package may be used by several goroutines.
type Schedule func(step int) float64

// Constant is one rate for all steps.
func Constant(lr float64) Schedule { return func(int) float64 { return lr } }

// Linear goes evenly from one rate to another in the given number of steps, then stays.
func Linear(from, to float64, steps int) Schedule {
	return func(step int) float64 {
		if step >= steps {
			return to
		}
		return from + (to-from)*float64(step)/float64(steps)
	}
}

// Cosine falls from lr to least along half a cosine in the given number of steps, then stays.
func Cosine(lr, least float64, steps int) Schedule {
	return func(step int) float64 {
		if step >= steps {
			return least
		}
		return least + 0.5*(lr-least)*(1+math.Cos(math.Pi*float64(step)/float64(steps)))
	}
}

// Warmup rises to the first rate of s in n steps, (step+1)/(n+1) of it at each, and then begins with s.
func Warmup(n int, s Schedule) Schedule {
	return func(step int) float64 {
		if step < n {
			return s(0) * float64(step+1) / float64(n+1)
		}
		return s(step - n)
	}
}

// WarmupCosine is nanoGPT's: a warm-up to lr in the first steps, then a cosine that reaches least at step horizon.
func WarmupCosine(lr, least float64, warmup, horizon int) Schedule {
	return Warmup(warmup, Cosine(lr, least, horizon-warmup))
}

// Stepwise multiplies the rate by factor every n steps, of which there must be at least 1.
func Stepwise(lr, factor float64, n int) Schedule {
	if n < 1 {
		tensor.Raise("optim.Stepwise", "give at least 1", "the rate changes every %d steps", n)
	}
	return func(step int) float64 { return lr * math.Pow(factor, float64(step/n)) }
}

// Exponential multiplies the rate by factor every step.
func Exponential(lr, factor float64) Schedule { return Stepwise(lr, factor, 1) }

// Then follows s for n steps and goes on with next, whose steps count from 0 there.
func (s Schedule) Then(n int, next Schedule) Schedule {
	return func(step int) float64 {
		if step < n {
			return s(step)
		}
		return next(step - n)
	}
}
