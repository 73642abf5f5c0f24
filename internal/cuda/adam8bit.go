package cuda

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() { offer(prepareAdam8bit, ir.Adam8bit) }

// prepareAdam8bit plans a launch for each table of parameters.
func prepareAdam8bit(b *builder) error {
	var list []updated
	out := 0
	for i := 2; i < b.op.NumIn(); i += ir.Adam8bitGroup {
		u := updated{t: b.op.In(i), number: []ref{b.in(i + ir.Adam8bitGroup - 1)}}
		for j := range ir.Adam8bitGroup - 1 {
			if u.ins = append(u.ins, b.in(i+j)); j != 1 {
				u.outs = append(u.outs, b.out(out))
				out++
			}
		}
		list = append(list, u)
	}
	tensorTable{6, 5, 1, 34}.launches(list, func(dt dtype.DType, table param, blocks int) {
		params := []param{table, b.scaling(), pointer(b.in(1))}
		for _, i := range []int{0, 5, 1, 2, 3, 4, 6} {
			params = append(params, raw(i))
		}
		b.run(suffixed("adam8bit", dt), [3]int{blocks, 1, 1}, [3]int{256, 1, 1}, 0, params...)
	})
	return nil
}
