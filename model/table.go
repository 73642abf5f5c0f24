package model

import (
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// TableConfig describes a model of the rows of a table.
type TableConfig struct {
	Inputs    int     `json:"inputs"`
	Outputs   int     `json:"outputs"`             // classes; 1: a number
	Deviation float64 `json:"deviation,omitempty"` // of the number that 1 stands for, in the units of the data
}

// NewTable maps rows [n, inputs] to scores of classes or to a number: two hidden layers with ReLU.
func NewTable(env *tensor.Env, c TableConfig, hidden int) nn.Sequential {
	return nn.Sequential{
		nn.NewLinear(env, c.Inputs, hidden), nn.ReLU{}, nn.NewLinear(env, hidden, hidden), nn.ReLU{}, nn.NewLinear(env, hidden, c.Outputs),
	}
}
