package prof

import (
	"io"
	"time"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/pickle"
	"github.com/warpline-ml/warpline/tensor"
)

// WriteShortage writes what a device's memory held when it ran out, and the allocation that failed, as the file that PyTorch's
// tools read: see [History.WriteSnapshot]. It needs no history, and has none: of what is there it knows the operation and the
// line that made it.
func WriteShortage(path string, e *tensor.OOMError) error {
	v, site, at := e.Inventory()
	b := newBooks(func() time.Duration { return at }, false)
	l := &memoryLog{name: e.Device, Inventory: v, books: b, base: newHoldings()}
	for _, c := range b.there(v) {
		l.base.apply(&c)
	}
	l.changes = []change{{size: e.Free, asked: e.Asked, kind: device.KindOutOfMemory, stack: b.stack(site[:])}}
	return durable.WriteFile(path, func(w io.Writer) error { return pickle.Encode(w, snapshot([]*memoryLog{l})) })
}
