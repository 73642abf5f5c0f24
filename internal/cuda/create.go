package cuda

import (
	"fmt"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareFull, ir.Full)
	offer(prepareIota, ir.Iota)
}

// element passes launch parameter i as an element of dt, rounded once.
func element(i int, dt dtype.DType) param {
	return param{kind: fromScalar, size: dt.Size(), index: i, dt: dt}
}

// bitwise is the name of a kernel that moves elements of dt without looking into them: "fill_b32".
func bitwise(name string, dt dtype.DType) string { return fmt.Sprintf("%s_b%d", name, dt.Bits()) }

func prepareFull(b *builder) error {
	y := b.outs[0]
	places, n := placesOf(y), y.Size()
	items := n
	if places.contiguous() {
		items = (n*y.DType.Size() + 15) / 16
	}
	b.linear(bitwise("fill", y.DType), items, 256, pointer(b.out(0)), element(0, y.DType), i64(n), blob(places))
	return nil
}

func prepareIota(b *builder) error {
	y := b.outs[0]
	b.linear(suffixed("iota", y.DType), ceilDiv(y.Size(), 4), 256, pointer(b.out(0)), raw(0), raw(1), i64(y.Size()), blob(placesOf(y)))
	return nil
}
