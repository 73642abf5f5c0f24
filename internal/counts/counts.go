// Package counts says what kernels of the CUDA engine will execute, from what is known of a launch before it: sums of features of the
// launch, by a table that bench/dryrun makes of launches whose blocks the simulator has counted.
package counts

import (
	_ "embed"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// raw is what kernels do, by row and quantity: features of a launch, each with a number to take it times.
//
//go:embed kernels.json
var raw []byte

// rates is a quantity of a launch: features by name, with what each adds.
type rates map[string]float64

var table = sync.OnceValue(func() map[string]map[string]rates {
	var t map[string]map[string]rates
	if err := json.Unmarshal(raw, &t); err != nil {
		panic(err) // a mistake in the table
	}
	return t
})

// Of is what a step of a kernel's plan will do. It is a guess, and counted is false, for a kernel that the table has not.
func Of(k *device.Kernel, step int) (l estimate.Launch, counted bool) {
	s := &k.Steps[step]
	l = estimate.Launch{Blocks: int(s.Blocks()), Threads: s.Block[0] * s.Block[1] * s.Block[2], Registers: max(s.Registers, leastRegisters), Shared: s.Shared + s.Static}
	rows, counted := row(k, s)
	if counted {
		count(&l, rows, &features{k, s})
	} else {
		guess(&l, k)
	}
	return l, counted
}

// row is what is known of a kernel in a plan of as many kernels: what it does depends on whether others go on with its results. Where
// that has not been counted, it is what is known of it in another plan.
func row(k *device.Kernel, s *device.Step) (r map[string]rates, ok bool) {
	r, ok = table()[Row(k, s)]
	for n := 0; n < mostSteps && !ok; n++ {
		r, ok = table()[s.Name+"/"+strconv.Itoa(n)]
	}
	return r, ok
}

// Row names what is known of a kernel in a plan, as bench/dryrun collects it.
func Row(k *device.Kernel, s *device.Step) string {
	return s.Name + "/" + strconv.Itoa(Kernels(k.Steps))
}

// Kernels is how many of steps are kernels.
func Kernels(steps []device.Step) (n int) {
	for i := range steps {
		if steps[i].Name != "" {
			n++
		}
	}
	return n
}

// mostSteps is more than a plan has.
const mostSteps = 16

// leastRegisters is for kernels whose registers nobody tells.
const leastRegisters = 32

// count fills in what a launch does.
func count(l *estimate.Launch, rows map[string]rates, f *features) {
	of := func(quantity string) (sum float64) {
		for feature, rate := range rows[quantity] {
			sum += rate * f.of(feature)
		}
		return sum
	}
	for p := range l.Instructions {
		l.Instructions[p] = of("i" + strconv.Itoa(p))
	}
	for t := range l.Tensor {
		l.Tensor[t] = of("t" + strconv.Itoa(t))
	}
	l.Wavefronts, l.Requested, l.Own, l.Hottest = of("Wavefronts"), of("Requested"), of("Own")/float64(l.Blocks), of("Hottest")
	l.Unique, l.Lone, l.Part = of("Unique"), of("Lone"), of("Part")
	l.GlobalWaits, l.SharedWaits, l.Barriers = of("GlobalWaits"), of("SharedWaits"), of("Barriers")
}

// guess fills in what a kernel does that was never counted: it moves its operands once, as one of its plan's steps, and computes by
// multiply-adds, or on tensor cores where a product is of 16 bits.
func guess(l *estimate.Launch, k *device.Kernel) {
	share := 1 / float64(len(k.Steps))
	l.Unique = share * float64(k.Bytes) / estimate.SectorBytes
	l.Requested = l.Unique
	if in := k.Op.Ins(); len(in) > 0 && in[0].DType.IsFloat() && in[0].DType.Size() == 2 && product(k.Op.Code) {
		l.Tensor[tensorType(in[0].DType)] = share * float64(k.FLOPs)
	} else {
		l.Instructions[ptx.PipeFloat32] = share * float64(k.FLOPs) / (2 * cards.Warp)
	}
	l.Instructions[ptx.PipeMemory] = l.Requested / 4
	l.GlobalWaits = l.Requested / 4
}

func tensorType(dt dtype.DType) cards.Type {
	if dt == dtype.F16 {
		return cards.Float16
	}
	return cards.BFloat16
}

// product tells operations that tensor cores do.
func product(c ir.Code) bool {
	switch c {
	case ir.MatMul, ir.Linear, ir.Conv2d, ir.Conv2dGradInput, ir.Conv2dGradWeight, ir.Attention, ir.SelfAttention, ir.LinearCrossEntropy:
		return true
	}
	return false
}

// features are those of a launch by the names that bench/dryrun gives them: B is its blocks, x, y and z the dimensions of its grid, Y
// the bytes and F the operations of its plan, O and I the elements of results and operands, p7 word 7 of its parameters, p7^64 that
// over 64, rounded up. Products and ratios are written as B*p7/p5.
type features struct {
	k *device.Kernel
	s *device.Step
}

func (f *features) of(name string) float64 {
	if first, second, ok := strings.Cut(name, "*"); ok {
		return f.of(first) * f.of(second)
	}
	if first, second, ok := strings.Cut(name, "/"); ok {
		return f.of(first) / max(1, f.of(second))
	}
	if first, tile, ok := strings.Cut(name, "^"); ok {
		side, _ := strconv.Atoi(tile)
		return math.Ceil(f.of(first) / float64(max(1, side)))
	}
	switch name {
	case "B":
		return float64(f.s.Blocks())
	case "Y":
		return float64(f.k.Bytes)
	case "F":
		return float64(f.k.FLOPs)
	case "O":
		return elements(f.k.Out)
	case "I":
		return elements(f.k.Op.Ins())
	case "x", "y", "z":
		return float64(f.s.Grid[name[0]-'x'])
	}
	if i, err := strconv.Atoi(name[1:]); err == nil && i < len(f.s.Numbers) && f.s.Numbers[i] > 0 && f.s.Numbers[i] < largest {
		return float64(f.s.Numbers[i])
	}
	return 0
}

// largest is where words begin that may be multipliers which stand for divisions, and no sizes.
const largest = 1 << 20

func elements(list []*ir.Type) (n float64) {
	for _, t := range list {
		n += float64(t.Size())
	}
	return n
}
