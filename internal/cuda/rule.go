package cuda

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		if code.Row().Rule != nil {
			offer(prepareRule, code)
		}
	}
}

// ruleTable is the table of the kernels of rules, which have up to three kinds of state and one number besides that of the
// update.
var ruleTable = tensorTable{5, 4, 2, 36}

func prepareRule(b *builder) error {
	ruleTable.launches(b.ruled(b.op.Code.Row().Rule), func(dt dtype.DType, table param, blocks int) {
		params := []param{table, b.scaling()}
		for i := range b.op.Code.NumParams() {
			params = append(params, raw(i))
		}
		b.run(suffixed(b.op.Code.String(), dt), [3]int{blocks, 1, 1}, [3]int{256, 1, 1}, 0, params...)
	})
	return nil
}

// ruled are the operands of a rule after the scale: of each parameter p, g and the state, of which all but g are results too,
// and its numbers.
func (b *builder) ruled(r *ir.Rule) (list []updated) {
	out, whole := 0, 2+len(r.State)
	for i := 1; i < b.op.NumIn(); i += r.Group() {
		u := updated{t: b.op.In(i)}
		for j := range r.Group() {
			if j >= whole {
				u.number = append(u.number, b.in(i+j))
				continue
			}
			u.ins = append(u.ins, b.in(i+j))
			if j != 1 {
				u.outs = append(u.outs, b.out(out))
				out++
			}
		}
		list = append(list, u)
	}
	return list
}
