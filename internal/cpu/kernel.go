package cpu

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
)

// run is a prepared kernel. Its arguments are outputs, inputs and workspace, whose sizes the queue has checked.
type run func(args []device.Arg, p *device.Params) error

// prepare chooses a kernel for an op whose types are verified. It sets k.Workspace if it needs scratch memory, and
// returns an error that wraps [device.ErrUnsupported] for dtypes it has no kernel for.
type prepare func(k *device.Kernel) (run, error)

// table has a row for every op code the engine offers. Files add their rows in init through offer.
var table [ir.Codes]prepare

func offer(p prepare, codes ...ir.Code) {
	for _, c := range codes {
		if table[c] != nil {
			panic(fmt.Sprintf("cpu: two kernels for %s", c))
		}
		table[c] = p
	}
}

func unsupported(op *ir.Op, dt dtype.DType) error {
	return fmt.Errorf("%s of %s: %w", op.Code, dt, device.ErrUnsupported)
}

// elems views an argument as the elements that a type spans. It and what is like it is called in hundreds of places, once a launch:
// inlined it would be some 50 KB.
//
//go:noinline
func elems[T dtype.Element](a device.Arg, t *ir.Type) []T {
	return values[T](a, t.Span())
}

// values views an argument as n values.
//
//go:noinline
func values[T any](a device.Arg, n int) []T {
	return hostmem.Slice[T](uintptr(a.Mem.Addr)+uintptr(a.Offset), n)
}

// param is the bits of launch parameter i, from its cell where it has one.
//
//go:noinline
func param(p *device.Params, i int) uint64 {
	if p == nil {
		return 0
	}
	if c := p.P[i].Cell; c.Size > 0 {
		return hostmem.Slice[uint64](uintptr(c.Addr), 1)[0]
	}
	return p.P[i].Value
}

// scalar is launch parameter i as a number.
func scalar(p *device.Params, i int) float64 { return math.Float64frombits(param(p, i)) }
