package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/warpline-ml/warpline/train"
)

// recompute is the flag of that name.
type recompute train.Recompute

func (r *recompute) Type() string {
	return strings.Join(append(slices.Clone(train.Recomputes), "auto:BYTES"), "|")
}

func (r *recompute) String() string { return string(*r) }

func (r *recompute) Set(text string) error {
	v, err := train.ParseRecompute(text)
	if err == nil {
		*r = recompute(v)
	}
	return err
}

// recomputeFlags are those about what is computed again.
func recomputeFlags(f *pflag.FlagSet, c *train.Config) {
	choice(f, (*recompute)(&c.Recompute), "recompute", string(train.RecomputeBlock), "`what` is computed again in the backward pass in place of being kept, with the same losses: "+strings.Join(train.Recomputes, ", ")+" for the fewest bytes within --slowdown, auto:BYTES for the least time within so many bytes; block if no value is given")
	f.Float64Var(&c.Slowdown, "slowdown", 0, "of a step, that --recompute auto keeps to (default 1.3)")
	f.Var((*offload)(&c.Offload), "offload", "`what` lies in the host's memory while nothing needs it, with the same losses: "+strings.Join(train.Offloads, ", ")+" (default none)")
}

// offload is the flag of that name.
type offload train.Offload

func (*offload) Type() string { return strings.Join(train.Offloads, "|") }

func (o *offload) String() string { return string(*o) }

func (o *offload) Set(text string) error {
	v, err := train.ParseOffload(text)
	if err == nil {
		*o = offload(v)
	}
	return err
}
