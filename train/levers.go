package train

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/tensor"
)

// Parts is how many equal parts a batch is taken in, one after another, with the gradients added; 0 is 1. A short batch at the
// end of an epoch has parts as equal as they can be.
type Parts int

// AutoParts takes a batch whole, and where memory runs out begins the step again in more parts, in which it goes on.
const AutoParts Parts = -1

const auto = "auto"

// String is the number, or auto.
func (p Parts) String() string {
	if p == AutoParts {
		return auto
	}
	return strconv.Itoa(int(p))
}

// MarshalJSON writes the number, or "auto".
func (p Parts) MarshalJSON() ([]byte, error) {
	if p == AutoParts {
		return json.Marshal(auto)
	}
	return json.Marshal(int(p))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Parts) UnmarshalJSON(raw []byte) error {
	if string(raw) == `"auto"` {
		*p = AutoParts
		return nil
	}
	n := 0
	if err := json.Unmarshal(raw, &n); err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("accumulate is %d", n)
	}
	*p = Parts(n)
	return nil
}

// ParseParts reads a number of parts, or auto.
func ParseParts(text string) (Parts, error) {
	if text == auto {
		return AutoParts, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fail("give a number from 1 up that divides --batch, or auto", "--accumulate is %q", text)
	}
	return Parts(n), nil
}

// parted tells why a batch cannot be taken in so many parts.
func (c *Config) parted() error {
	switch n := int(c.Accumulate); {
	case c.Accumulate == AutoParts && c.Capture:
		return fail("leave --capture out, or give the number of parts", "--accumulate auto begins a step again that does not fit, and --capture makes it one launch")
	case c.Accumulate == AutoParts:
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

// ParseHead reads a value of [Head].
func ParseHead(text string) (Head, error) {
	return word("head", text, Heads, HeadChunked)
}

// word reads one of a setting's values. Runs from before there was the setting have none, which is absent.
func word[T ~string](setting, text string, of []string, absent T) (T, error) {
	switch {
	case text == "":
		return absent, nil
	case !slices.Contains(of, text):
		return "", fail("choose one of "+strings.Join(of, ", "), "--%s is %q", setting, text)
	}
	return T(text), nil
}

// wordOrTruth reads a value of a setting that was true or false in earlier versions.
func wordOrTruth[T any](raw []byte, parse func(string) (T, error)) (T, error) {
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			var none T
			return none, err
		}
	}
	return parse(text)
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
	case c.Accumulate == AutoParts:
		return fail("leave one of them out", text+"--accumulate auto may begin a step again")
	case c.Accumulate > 1:
		return fail("leave one of them out", text+"--accumulate %d adds them up over the parts first", c.Accumulate)
	}
	return nil
}

// appliesLate tells a run that needs all gradients before it applies the first.
func (c *Config) appliesLate() bool {
	return c.Clip > 0 || c.AMP == AMPFP16 || c.Accumulate > 1 || c.Accumulate == AutoParts
}

// acrossSamples is what parts mean where a layer looks across the samples that it is given.
func acrossSamples(p Parts) string {
	return fmt.Sprintf("the batch norms see one of %d parts at a time, and normalise it by its own mean and variance: this is another training than with --accumulate 1", p)
}

// resumeParts goes on in the parts that the run had come to, unless it is told anew to choose.
func (s *session) resumeParts() {
	for _, step := range s.log {
		if i := slices.Index(s.parts, step.Parts); i >= 0 && !s.task.anew {
			s.parts = s.parts[i:]
		}
	}
}

// learnInParts adds the gradients of a batch in as few parts as fit, and tells its mean loss.
func (s *session) learnInParts(t turn) (total *tensor.Tensor) {
	s.still.Take()
	undo := func() {
		s.Optimizer.Discard()
		s.still.Restore()
		s.torn = false
		s.task.rewind()
		s.look() // at the step as it begins again
		total = nil
	}
	left := t.accumulate(s.parts, undo, func(part turn) { s.learnPart(part, t.Env, &total) })
	if len(left) < len(s.parts) {
		s.parts, s.parted = left, left[0]
	}
	return total
}

// choosable are the parts in which a batch may be taken by a run that is to choose them, the fewest first; norms: samples meet.
func choosable(batch int, norms bool) (parts []int) {
	parts = data.Divisors(batch)
	if n := len(parts); n > 1 && norms {
		parts = parts[:n-1] // one sample has no variance
	}
	return parts
}

// partsOf is how many parts the run takes a batch in when memory is out, of a size that may be another than its own.
func (r *run) partsOf(batch int) Parts {
	if r.Accumulate != AutoParts {
		return r.Accumulate
	}
	if len(r.parts) == 0 {
		return 1
	}
	all := data.Divisors(batch)
	i, _ := slices.BinarySearch(all, min(r.parts[0], batch))
	return Parts(all[i])
}
