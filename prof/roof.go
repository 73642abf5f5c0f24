package prof

import (
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/device"
)

// roof is what a device needs at least for the work of a row: seconds of its memory for the bytes, and of its arithmetic.
type roof struct{ memory, compute float64 }

// latencyBound is the share of its time below which work is bound by neither memory nor arithmetic, but by what comes around them:
// launches, and waits of the few threads that it has.
const latencyBound = 0.1

// add counts an operation that reads and writes so many bytes, on a card whose figures are known.
func (r *roof) add(e *entry, d *Device, bytes, flops int64) {
	card, known := d.card()
	if !known || e.kind == device.KindCopy {
		return
	}
	r.memory += float64(bytes) / (1e9 * float64(card.Bandwidth))
	r.compute += float64(flops) / peak(&card, e.kernel)
}

// peak is the rate of a card at an operation: of the tensor cores for products of 16-bit numbers.
func peak(card *cards.Card, k *kernel) float64 {
	if products()[k.Op] {
		for of, t := range map[dtype.DType]cards.Type{dtype.F16: cards.Float16, dtype.BF16: cards.BFloat16} {
			if rate := card.TensorPeak(t); k.Ins[0].Type == torchName(of) && rate > 0 {
				return rate
			}
		}
	}
	return card.Vector()
}

// of is the time of a roof, and what binds work that takes a time.
func (r *roof) of(took time.Duration) (time.Duration, string) {
	least := time.Duration(max(r.memory, r.compute) * 1e9)
	switch {
	case least == 0 || took <= 0:
		return least, ""
	case float64(least) < latencyBound*float64(took):
		return least, "latency"
	case r.memory >= r.compute:
		return least, "memory"
	}
	return least, "compute"
}
