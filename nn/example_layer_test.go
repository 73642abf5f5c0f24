package nn_test

import (
	"fmt"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// Block is a residual block whose branch is centred first and scaled by a learned gain.
type Block struct {
	Up   *nn.Linear     `nn:"up"`
	Down *nn.Linear     `nn:"down"`
	Gain *tensor.Tensor `nn:"gain"`        // a parameter
	Mean *tensor.Tensor `nn:"mean,buffer"` // saved with the weights, without a gradient
}

// NewBlock makes a block of the given width.
func NewBlock(env *tensor.Env, width int) *Block {
	return &Block{
		Up:   nn.NewLinear(env, width, 4*width),
		Down: nn.NewLinear(env, 4*width, width),
		Gain: nn.NewParam(env.Full(0.1, width)),
		Mean: tensor.NewBuffer(env.Zeros(width)),
	}
}

// Forward applies the block.
func (b *Block) Forward(x *tensor.Tensor) *tensor.Tensor {
	y := b.Down.Forward(b.Up.Forward(x.Sub(b.Mean)).GELU())
	return x.Add(y.Mul(b.Gain))
}

// A layer is a struct with a Forward method. Tags name its tensors.
func Example_layer() {
	env := tensor.Best()
	model := nn.Sequential{NewBlock(env, 8), NewBlock(env, 8)}
	y := model.Forward(env.Randn(3, 8))
	for name, t := range nn.State(model[1]) {
		fmt.Println(name, t.Shape())
	}
	fmt.Println(y.Shape())
	// Output:
	// up.weight [32 8]
	// up.bias [32]
	// down.weight [8 32]
	// down.bias [8]
	// gain [8]
	// mean [8]
	// [3 8]
}
