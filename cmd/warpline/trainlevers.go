package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/warpline-ml/warpline/train"
)

// leverFlags are what a training can do to need less memory, where that is no other training.
func leverFlags(f *pflag.FlagSet, c *train.Config) {
	f.Var((*parts)(&c.Accumulate), "accumulate", "equal parts that a batch is taken in, one after another, with the gradients added; auto: more of them where memory runs out, from that step on (default 1)")
	f.Var((*head)(&c.Head), "head", "gpt: chunked makes the scores of some rows at a time and keeps none, whole keeps all (default chunked)")
	f.BoolVar(&c.InBackward, "step-in-backward", false, "apply each gradient as soon as it is there, and let go of it; not with --clip, --amp fp16 and --accumulate")
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

// head is the flag of that type.
type head train.Head

func (*head) Type() string { return strings.Join(train.Heads, "|") }

func (h *head) String() string { return string(*h) }

func (h *head) Set(text string) error {
	v, err := train.ParseHead(text)
	if err == nil {
		*h = head(v)
	}
	return err
}
