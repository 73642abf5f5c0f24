// Package counts says what kernels of the CUDA engine will execute, from what is known of a launch before it: sums of features of the
// launch, by a table that bench/dryrun makes of launches whose blocks the simulator has counted.
package counts

import (
	"encoding/json"
	"strconv"
	"sync"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// table is what kernels do, by row and quantity.
var table = sync.OnceValue(func() map[string]map[string]sum {
	var written map[string]map[string]map[string]float64
	if err := json.Unmarshal([]byte(tableText()), &written); err != nil {
		panic(err) // a mistake in the table
	}
	rows := make(map[string]map[string]sum, len(written))
	for name, quantities := range written {
		row := make(map[string]sum, len(quantities))
		for q, rates := range quantities {
			row[q] = newSum(rates)
		}
		rows[name] = row
	}
	return rows
})

// Of is what a step of a kernel's plan will do. It is a guess, and counted is false, for a kernel that the table has not.
func Of(k *device.Kernel, step int) (l estimate.Launch, counted bool) {
	s := &k.Steps[step]
	l = estimate.Launch{Blocks: int(s.Blocks()), Threads: s.Block[0] * s.Block[1] * s.Block[2], Registers: max(s.Registers, leastRegisters), Shared: s.Shared + s.Static}
	rows, counted := row(k, s)
	if counted {
		count(&l, rows, FactsOf(k, s))
	} else {
		guess(&l, k)
	}
	return l, counted
}

// Recount is what the table says that a launch does of which all that the model knows is known, by a row's name; counted is false
// where the table has no such row.
func Recount(name string, f *Facts, l estimate.Launch) (again estimate.Launch, counted bool) {
	row, counted := table()[name]
	again = estimate.Launch{Blocks: l.Blocks, Threads: l.Threads, Registers: l.Registers, Shared: l.Shared, Warm: l.Warm}
	if counted {
		count(&again, row, f)
	}
	return again, counted
}

// row is what is known of a kernel in a plan of as many kernels: what it does depends on whether others go on with its results. Where
// that has not been counted, it is what is known of it in another plan.
func row(k *device.Kernel, s *device.Step) (r map[string]sum, ok bool) {
	if k.Name != "" { // the program's own, whatever the engine's kernel of that name does
		return nil, false
	}
	if len(k.Steps) <= largestPlan { // the plan of a head over many rows has thousands, and is in no table
		r, ok = table()[Row(k, s)]
	}
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

// largestPlan is more steps than a plan has whose kernels were counted.
const largestPlan = 256

// mostSteps is how many plans of a kernel are looked for that has not been counted in its own.
const mostSteps = 16

// leastRegisters is for kernels whose registers nobody tells.
const leastRegisters = 32

// pipes and types name the quantities of instructions by pipe, and of operations of tensor cores by type.
var pipes, types = numbered("i", int(ptx.Pipes)), numbered("t", int(cards.Types))

func numbered(letter string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = letter + strconv.Itoa(i)
	}
	return names
}

// count fills in what a launch does.
func count(l *estimate.Launch, row map[string]sum, f *Facts) {
	for p := range l.Instructions {
		l.Instructions[p] = row[pipes[p]].of(f)
	}
	for t := range l.Tensor {
		l.Tensor[t] = row[types[t]].of(f)
	}
	l.Wavefronts, l.Requested, l.Own, l.Hottest = row["Wavefronts"].of(f), row["Requested"].of(f), row["Own"].of(f)/float64(l.Blocks), row["Hottest"].of(f)
	l.Unique, l.Lone, l.Part = row["Unique"].of(f), row["Lone"].of(f), row["Part"].of(f)
	l.GlobalWaits, l.SharedWaits, l.Barriers = row["GlobalWaits"].of(f), row["SharedWaits"].of(f), row["Barriers"].of(f)
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
