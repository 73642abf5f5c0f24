package gpusim

import (
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/estimate"
)

// Card is what a kernel can see of a model of GPU, and what bounds its launches.
type Card struct {
	Name    string
	Memory  int64 // bytes
	SMs     int
	Compute [2]int // compute capability
	SM      *cards.SM
}

// Occupancy is how many blocks of a kernel fit on a multiprocessor.
type Occupancy = estimate.Occupancy

// NewCard fills in the limits of a compute capability; those of the nearest lower one that is known.
func NewCard(name string, memory int64, sms int, compute [2]int) Card {
	return Card{Name: name, Memory: memory, SMs: sms, Compute: compute, SM: cards.SMOf(compute)}
}

// A100 is the card that a kernel is tried on when none is named.
func A100() Card { return NewCard("a100-80", 80<<30, 108, [2]int{8, 0}) }

// Occupancy is that of a kernel with so many registers per thread, threads per block and bytes of shared memory per block.
func (c *Card) Occupancy(registers, threads, shared int) Occupancy {
	return estimate.Occupy(c.SM, registers, threads, shared)
}
