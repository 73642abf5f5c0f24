// Package kernels has operations that are GPU kernels of one's own: the CUDA C++ beside it, its PTX by clang, and the Go that makes
// operations of package tensor of them. docs/kernels.md goes through it.
package kernels

import (
	_ "embed"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/kernel"
	"github.com/warpline-ml/warpline/tensor"
)

//go:embed swish.ptx
var swishPTX []byte

//go:embed scan.ptx
var scanPTX []byte

// Swish is x·σ(x) by kernels of its own, on the device of an env.
type Swish struct{ op tensor.Func }

// NewSwish loads the kernels for env's device.
func NewSwish(env *tensor.Env) (*Swish, error) {
	m, err := kernel.Load(env, swishPTX)
	if err != nil {
		return nil, err
	}
	swish, grad := m.Kernel("swish"), m.Kernel("swish_grad")
	return &Swish{tensor.Func{
		Forward: func(c *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor {
			c.Save(in[0])
			x := in[0].Contiguous()
			y := kernel.Empty(x.Env(), dtype.F32, x.Shape()...)
			swish.Launch(x.Env(), kernel.Cover(x.Size(), 256), x, y, x.Size())
			return []*tensor.Tensor{y}
		},
		Backward: func(c *tensor.Call, grads []*tensor.Tensor) []*tensor.Tensor {
			x, dy := c.Saved()[0].Contiguous(), grads[0].Contiguous()
			dx := kernel.Empty(x.Env(), dtype.F32, x.Shape()...)
			grad.Launch(x.Env(), kernel.Cover(x.Size(), 256), x, dy, dx, x.Size())
			return []*tensor.Tensor{dx}
		},
	}}, nil
}

// Forward is x·σ(x), of float32.
func (s *Swish) Forward(x *tensor.Tensor) *tensor.Tensor { return s.op.Apply(x)[0] }

// Scan is sums along the last axis by a kernel of its own, on the device of an env.
type Scan struct{ scan *kernel.Kernel }

// NewScan loads the kernel for env's device.
func NewScan(env *tensor.Env) (*Scan, error) {
	m, err := kernel.Load(env, scanPTX)
	if err != nil {
		return nil, err
	}
	return &Scan{m.Kernel("scan")}, nil
}

// Forward is x[…, 0] + … + x[…, i] for each i, of float32; it has no gradient.
func (s *Scan) Forward(x *tensor.Tensor) *tensor.Tensor {
	const threads = 128
	x = x.Contiguous()
	y := kernel.Empty(x.Env(), dtype.F32, x.Shape()...)
	if n := x.Dim(-1); x.Size() > 0 {
		s.scan.Launch(x.Env(), kernel.Grid{Blocks: [3]int{x.Size() / n}, Threads: [3]int{threads}, Shared: 4 * threads}, x, y, n)
	}
	return y
}
