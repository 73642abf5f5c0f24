package train

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/advice"
)

// Parts is how many equal parts a batch is taken in, one after another, with the gradients added; 0 is 1. A short batch at the
// end of an epoch has parts as equal as they can be.
type Parts int

// ParseParts reads a number of parts.
func ParseParts(text string) (Parts, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fail("give a number from 1 up that divides --batch", "--accumulate is %q", text)
	}
	return Parts(n), nil
}

// parted tells why a batch cannot be taken in so many parts.
func (c *Config) parted() error {
	switch n := int(c.Accumulate); {
	case n < 0 || n == 0 && c.Given["accumulate"]:
		return fail("give a number from 1 up that divides --batch", "--accumulate is %d", n)
	case n > 0 && c.Batch%n != 0 && !c.AutoBatch:
		var list []string
		for _, d := range data.Divisors(c.Batch) {
			list = append(list, strconv.Itoa(d))
		}
		return fail("what divides it is "+advice.List(list)+"; or give another --batch", "--accumulate %d does not divide --batch %d", n, c.Batch)
	}
	return nil
}

// Head is how the scores of a model that writes meet its loss. The zero value is [HeadChunked].
type Head string

// The values of Head. Losses differ by rounding.
const (
	HeadChunked Head = "chunked" // those of some rows at a time, of which nothing is kept: [nn.LinearCrossEntropy]
	HeadWhole   Head = "whole"   // all of a batch, kept for the backward pass
)

// Heads are the values of [Head].
var Heads = []string{string(HeadChunked), string(HeadWhole)}

// ParseHead reads a value of [Head]. Runs of earlier versions have none.
func ParseHead(text string) (Head, error) {
	if text == "" {
		return HeadChunked, nil
	}
	if !slices.Contains(Heads, text) {
		return "", fail("choose one of "+strings.Join(Heads, ", "), "--head is %q", text)
	}
	return Head(text), nil
}

// UnmarshalJSON reads a value.
func (h *Head) UnmarshalJSON(raw []byte) (err error) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	*h, err = ParseHead(text)
	return err
}

// levers refuses what a lever cannot do.
func (c *Config) levers() error {
	if _, err := ParseHead(string(c.Head)); err != nil {
		return err
	}
	if err := c.parted(); err != nil || !c.InBackward {
		return err
	}
	const text = "--step-in-backward applies each gradient as it comes, and "
	switch {
	case c.Clip > 0:
		return fail("leave one of them out", text+"--clip %v is about the norm of all of them", c.Clip)
	case c.AMP == AMPFP16:
		return fail("give --amp bf16, which needs no scale, or leave one of them out", text+"--amp fp16 leaves steps out by what all of them are")
	case c.Accumulate > 1:
		return fail("leave one of them out", text+"--accumulate %d adds them up over the parts first", c.Accumulate)
	}
	return nil
}

// appliesLate tells a run that needs all gradients before it applies the first.
func (c *Config) appliesLate() bool { return c.Clip > 0 || c.AMP == AMPFP16 || c.Accumulate > 1 }

// acrossSamples is what parts mean where a layer looks across the samples that it is given.
func acrossSamples(p Parts) string {
	return fmt.Sprintf("the batch norms see one of %d parts at a time, and normalise it by its own mean and variance: this is another training than with --accumulate 1", p)
}
