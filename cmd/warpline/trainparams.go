package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/warpline-ml/warpline/train"
)

// paramsFlag is what the weights of a training are kept in.
func paramsFlag(f *pflag.FlagSet, c *train.Config) {
	f.Var((*params)(&c.Params), "params", "`what` weight matrices are kept in, with --amp bf16: "+strings.Join(train.AllParams, ", ")+" (default f32)")
}

// params is the flag of that type.
type params train.Params

func (*params) Type() string { return strings.Join(train.AllParams, "|") }

func (p *params) String() string { return string(*p) }

func (p *params) Set(text string) error {
	v, err := train.ParseParams(text)
	if err == nil {
		*p = params(v)
	}
	return err
}
