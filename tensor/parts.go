package tensor

import (
	"slices"
	"strings"
)

// Parts are those of models that Backward runs again in place of keeping their values, see [Env.Recompute]. They are
// immutable.
type Parts struct {
	kind  Part
	paths []string      // sorted; nil: all of the kind
	rank  int           // of two that meet, the higher one counts
	found func(PartUse) // where they are surveyed, and not recomputed
}

// Part is a kind of parts that models are made of.
type Part uint8

// The kinds of parts.
const (
	PartNone      Part = iota // none is recomputed
	PartBlock                 // what a model is a sequence of: a layer of a transformer, a block of a ResNet, a product with what follows it
	PartAttention             // an attention layer
)

// String names them.
func (p *Parts) String() string {
	switch {
	case p.found != nil:
		return "parts that are surveyed"
	case p.paths != nil:
		return "the parts " + strings.Join(p.paths, ", ")
	case p.kind == PartBlock:
		return "all blocks"
	case p.kind == PartAttention:
		return "all attention layers"
	}
	return "no parts"
}

// noParts is what counts within a part that is recomputed already.
var noParts = &Parts{rank: 1 << 30}

// PartsOf are all parts of a kind; of PartNone, none.
func PartsOf(kind Part) *Parts { return &Parts{kind: kind, rank: int(kind)} }

// PartsAt are the parts with the given paths, as the model's parameters have them: "h.0", "h.0.attn".
func PartsAt(paths ...string) *Parts {
	sorted := slices.Clone(paths)
	slices.Sort(sorted)
	return &Parts{paths: slices.Compact(append([]string{}, sorted...)), rank: 1 << 20}
}

// or is what counts where two envs meet.
func (p *Parts) or(q *Parts) *Parts {
	switch {
	case p == q || q == nil:
		return p
	case p == nil || q.after(p):
		return q
	}
	return p
}

// after orders parts, so that operands commute.
func (p *Parts) after(q *Parts) bool {
	if p.rank != q.rank {
		return p.rank > q.rank
	}
	return strings.Join(p.paths, "\n") > strings.Join(q.paths, "\n")
}

// has tells whether a part of a kind is among them.
func (p *Parts) has(kind Part, path func() string) bool {
	if p == nil {
		return false
	}
	if p.paths == nil {
		return kind == p.kind
	}
	_, found := slices.BinarySearch(p.paths, path())
	return found
}

// blocks tells whether a block may be among them.
func (p *Parts) blocks() bool {
	return p != nil && (p.kind == PartBlock || p.paths != nil || p.found != nil)
}

// Recompute derives an env in which models run some of their parts again in Backward, in place of keeping the values that
// gradients need: nn's containers and attention, and the models of package model. A model of one's own has its parts run by
// nn.Block, or in an nn.Sequential. Losses and gradients are the same bit for bit.
func (e *Env) Recompute(p *Parts) *Env {
	if p == nil {
		raise("Recompute", "tensor.PartsOf(tensor.PartBlock) are the usual ones", "the parts are nil")
	}
	return e.with(func(c *Env) { c.parts = p })
}

// Parted tells whether blocks of a model may have to be run apart from each other: what joins the end of one with the
// beginning of the next has to leave that.
func (e *Env) Parted() bool { return e.parts.blocks() || e.offload == on }

// RunPart runs f(x), a part of a model: by [Recompute] or [Offload] where x's env asks for that.
func RunPart(kind Part, x *Tensor, path func() string, f func(*Tensor) *Tensor) *Tensor {
	x.alive("RunPart")
	switch p := x.env.parts; {
	case x.env.grad == off && !x.carriesGraph():
		return f(x)
	case p != nil && p.found != nil:
		return p.survey(kind, x, path, f)
	case p.has(kind, path):
		return Recompute(x, f)
	case kind == PartBlock && x.env.offload == on:
		return Offload(x, f)
	}
	return f(x)
}
