package dataset

import (
	"fmt"
	"sync"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/shapes"
	"github.com/warpline-ml/warpline/data/tickets"
	"github.com/warpline-ml/warpline/dtype"
)

// Drawn is the set of a task that has no other than one which is drawn from a seed.
func Drawn(task string) (train, test data.Source[data.Pair]) {
	switch task {
	case "triage":
		const many, held = 100_000, 1000
		learnt, scored := tickets.Split(many, held)
		return packed{learnt}, packed{scored}
	case "unet":
		const many, held = 100_000, 200
		learnt, scored := shapes.Split(many, held)
		return learnt, scored
	}
	panic(fmt.Sprintf("dataset: nothing is drawn for %q", task))
}

// DrawnName is what a task draws where it is given nothing else.
func DrawnName(task string) string {
	switch task {
	case "triage":
		return "drawn tickets"
	case "unet":
		return "drawn shapes"
	}
	return "drawn digits"
}

// packed are tickets as pairs: the mask is one more feature of each token.
type packed struct{ tickets.Set }

func (p packed) Fields() []data.Field {
	return []data.Field{{DType: dtype.F32, Shape: []int{tickets.Tokens, tickets.Features + 1}}, {DType: dtype.I64}}
}

// ticket is memory to draw one in.
type ticket struct {
	x    [tickets.Tokens * tickets.Features]float32
	mask [tickets.Tokens]bool
}

var drawing = sync.Pool{New: func() any { return new(ticket) }}

func (p packed) Fill(_ *data.Pair, row data.Row, i int) error {
	t := drawing.Get().(*ticket)
	defer drawing.Put(t)
	data.Values[int64](row, 1)[0] = int64(tickets.Draw(t.x[:], t.mask[:], p.Seed, p.First+i))
	x := data.Values[float32](row, 0)
	for k, is := range t.mask {
		to := x[k*(tickets.Features+1):][:tickets.Features+1]
		copy(to, t.x[k*tickets.Features:][:tickets.Features])
		if is {
			to[tickets.Features] = 1
		}
	}
	return nil
}
