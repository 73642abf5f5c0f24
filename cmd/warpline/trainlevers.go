package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/warpline-ml/warpline/train"
)

// leverFlags are what a training can do to need less memory, where that is no other training.
func leverFlags(f *pflag.FlagSet, c *train.Config) {
	f.Var((*parts)(&c.Accumulate), "accumulate", "equal parts that a batch is taken in, one after another, with the gradients added; auto: more of them where memory runs out, from that step on (default 1)")
	f.Var(one(&c.Head, train.ParseHead, train.Heads), "head", "gpt: chunked makes the scores of some rows at a time and keeps none, whole keeps all (default chunked)")
	f.BoolVar(&c.InBackward, "step-in-backward", false, "apply each gradient as soon as it is there, and let go of it; not with --clip, --amp fp16 and --accumulate")
	choice(f, one(&c.Recompute, train.ParseRecompute, append(train.Recomputes, "auto:BYTES")), "recompute", string(train.RecomputeBlock), "`what` is computed again in the backward pass in place of being kept, with the same losses: "+strings.Join(train.Recomputes, ", ")+" for the fewest bytes within --slowdown, auto:BYTES for the least time within so many bytes; block if no value is given")
	f.Float64Var(&c.Slowdown, "slowdown", 0, "of a step, that --recompute auto keeps to (default 1.3)")
	f.Var(one(&c.Offload, train.ParseOffload, train.Offloads), "offload", "`what` lies in the host's memory while nothing needs it, with the same losses: "+strings.Join(train.Offloads, ", ")+" (default none)")
	f.Var(one(&c.Params, train.ParseParams, train.AllParams), "params", "`what` weight matrices are kept in, with --amp bf16: "+strings.Join(train.AllParams, ", ")+" (default f32)")
}

// parts is the flag of that type.
type parts train.Parts

func (*parts) Type() string { return "int|auto" }

func (p *parts) String() string { return train.Parts(*p).String() }

func (p *parts) Set(text string) error {
	v, err := train.ParseParts(text)
	if err == nil {
		*p = parts(v)
	}
	return err
}

// oneOf is a flag whose values are words.
type oneOf[T ~string] struct {
	at    *T
	parse func(string) (T, error)
	words []string
}

func one[T ~string](at *T, parse func(string) (T, error), words []string) *oneOf[T] {
	return &oneOf[T]{at, parse, words}
}

func (o *oneOf[T]) Type() string { return strings.Join(o.words, "|") }

// String is empty for the zero value that pflag makes to know a default by.
func (o *oneOf[T]) String() string {
	if o.at == nil {
		return ""
	}
	return string(*o.at)
}

func (o *oneOf[T]) Set(text string) error {
	v, err := o.parse(text)
	if err == nil {
		*o.at = v
	}
	return err
}
