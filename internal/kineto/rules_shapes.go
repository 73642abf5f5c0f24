package kineto

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// shaped is an operator with operands of certain shapes, and its kernels.
type shapedOp struct {
	name, shapes, types string
	dims                [][]int64
	calls, kernels      int
	ns                  int64
}

// byShape are the operators that launched kernels of the window, by name and shapes, longest first.
func (a *analysis) byShape() []shapedOp {
	if a.shapedOps != nil {
		return a.shapedOps
	}
	var calls []*event
	var device []int
	for i := a.first; i < a.last; i++ {
		if l := a.launched(i); l != nil && a.device[i].kind == kernel {
			calls, device = append(calls, l), append(device, i)
		}
	}
	type key struct{ name, shapes, types uint32 }
	by := map[key]*shapedOp{}
	seen := map[*event]bool{}
	for n, p := range a.around(calls) {
		if p.shaped == nil {
			continue
		}
		k := key{p.shaped.name, p.shaped.id, p.shaped.ext}
		if by[k] == nil {
			by[k] = &shapedOp{name: a.Name(p.shaped), shapes: a.names.names[k.shapes], types: a.names.names[k.types]}
		}
		o := by[k]
		o.ns += a.device[device[n]].dur
		o.kernels++
		if !seen[p.shaped] {
			seen[p.shaped] = true
			o.calls++
		}
	}
	a.shapedOps = make([]shapedOp, 0, len(by))
	for _, o := range by {
		o.dims = dimsOf(o.shapes)
		a.shapedOps = append(a.shapedOps, *o)
	}
	sorting.By(a.shapedOps, func(x, y shapedOp) int {
		return cmp.Or(cmp.Compare(y.ns, x.ns), cmp.Compare(x.name+x.shapes, y.name+y.shapes))
	})
	return a.shapedOps
}

// dimsOf are the shapes of operands; those that are lists of tensors have none.
func dimsOf(shapes string) [][]int64 {
	var raw []json.RawMessage
	if json.Unmarshal([]byte(shapes), &raw) != nil {
		return nil
	}
	dims := make([][]int64, len(raw))
	for i, r := range raw {
		_ = json.Unmarshal(r, &dims[i])
	}
	return dims
}

// product is the batch and the m, n and k of a matrix product.
type product struct{ b, m, n, k int64 }

func (p product) flops() float64 {
	return 2 * float64(p.b) * float64(p.m) * float64(p.n) * float64(p.k)
}

// like tells whether all sizes of two products are within a factor of two.
func (p product) like(q product) bool {
	for _, s := range [][2]int64{{p.b, q.b}, {p.m, q.m}, {p.n, q.n}, {p.k, q.k}} {
		if s[0] > 2*s[1] || s[1] > 2*s[0] {
			return false
		}
	}
	return true
}

// product is what an operator multiplies.
func (o *shapedOp) product() (p product, ok bool) {
	d := o.dims
	switch strings.TrimPrefix(o.name, "aten::") {
	case "addmm", "baddbmm":
		if len(d) < 3 {
			return p, false
		}
		d = d[1:]
	case "mm", "bmm", "_scaled_mm":
	default:
		return p, false
	}
	if len(d) < 2 || len(d[0]) != len(d[1]) {
		return p, false
	}
	x, y := d[0], d[1]
	switch len(x) {
	case 2:
		return product{1, x[0], y[1], x[1]}, true
	case 3:
		return product{x[0], x[1], y[2], x[2]}, true
	}
	return p, false
}

// multiple is what sizes should be multiples of: 16 bytes of elements.
func (o *shapedOp) multiple() int64 {
	switch t := strings.ToLower(o.types); {
	case strings.Contains(t, "float8"):
		return 16
	case strings.Contains(t, "half"), strings.Contains(t, "bfloat16"):
		return 8
	}
	return 4
}

func (o *shapedOp) aligned(p product) bool {
	u := o.multiple()
	return p.m%u == 0 && p.n%u == 0 && p.k%u == 0
}

// misaligned: a product whose sizes are no multiples of 16 bytes runs at a part of the rate of one alike.
func misaligned(a *analysis) *finding.Finding {
	type row struct {
		*shapedOp
		p    product
		rate float64 // FLOP per ns
	}
	var good, bad []row
	for i := range a.byShape() {
		o := &a.shapedOps[i]
		p, ok := o.product()
		if !ok || o.ns <= 0 {
			continue
		}
		r := row{o, p, p.flops() * float64(o.calls) / float64(o.ns)}
		if o.aligned(p) {
			good = append(good, r)
		} else {
			bad = append(bad, r)
		}
	}
	var lost int64
	var f finding.Finding
	for _, r := range bad {
		best := 0.0
		for _, g := range good {
			if g.multiple() == r.multiple() && g.p.like(r.p) {
				best = max(best, g.rate)
			}
		}
		if best == 0 || r.rate > 0.6*best {
			continue
		}
		lost += int64(float64(r.ns) * (1 - r.rate/best))
		f.Evidence = append(f.Evidence, timing("product", r.ns, "%s of %d x %d x %d (batch %d): %.1f TFLOP/s, where one of its size with multiples of %d has %.1f; %s in %s",
			r.name, r.p.m, r.p.n, r.p.k, r.p.b, r.rate/1e3, r.multiple(), best/1e3, duration(r.ns), a.windowText()))
	}
	d := time.Duration(a.perStep(lost))
	if len(f.Evidence) == 0 || !a.worth(d) {
		return nil
	}
	f.Evidence = f.Evidence[:min(4, len(f.Evidence))]
	f.Title = "Matrix products with sizes that are no multiples of 16 bytes run at a part of the rate of others"
	f.Fix = "round these sizes up: the vocabulary to a multiple of 64 (50257 to 50304), hidden sizes and heads to multiples of 64"
	f.Gain = a.saves(d, "these products at the rate of aligned ones of their size")
	f.Confidence = finding.Medium
	f.DisprovedBy = "the product with rounded sizes, no faster"
	return &f
}

// leastFlash is the compute capability, times ten, from which PyTorch has attention that does not write its scores.
const leastFlash = 75

// leastScores is the length from which the scores of attention are worth not writing.
const leastScores = 128

// isScores tells an operator on the scores of attention: the last two sizes are the same.
func (o *shapedOp) isScores() bool {
	if len(o.dims) == 0 {
		return false
	}
	d := o.dims[0]
	n := len(d)
	return n == 4 && d[n-1] == d[n-2] && d[n-1] >= leastScores
}

// scoreOps are what attention does to its scores.
var scoreOps = []string{"aten::softmax", "aten::_softmax", "aten::_softmax_backward_data", "aten::masked_fill", "aten::masked_fill_", "aten::dropout",
	"aten::native_dropout", "aten::native_dropout_backward", "aten::mul", "aten::mul_", "aten::div", "aten::div_", "aten::add", "aten::add_"}

// slowAttention: attention that writes its scores moves memory that flash attention does not.
func slowAttention(a *analysis) *finding.Finding {
	var ns int64
	softmax := false
	var f finding.Finding
	for i := range a.byShape() {
		o := &a.shapedOps[i]
		if !o.isScores() || !slices.Contains(scoreOps, o.name) {
			continue
		}
		softmax = softmax || strings.Contains(o.name, "softmax")
		ns += o.ns
		f.Evidence = append(f.Evidence, timing("scores", o.ns, "%s on %v: %d kernels, %s in %s", o.name, o.dims[0], o.kernels, duration(o.ns), a.windowText()))
	}
	d := time.Duration(a.perStep(ns))
	if !softmax || !a.worth(d) {
		return nil
	}
	f.Evidence = f.Evidence[:min(4, len(f.Evidence))]
	f.Title = "Attention writes its scores to memory, and reads them again"
	f.Fix = "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), which uses flash attention"
	f.Gain = a.saves(d, "at most: these kernels, which flash attention does not need")
	f.Confidence = finding.Medium
	f.DisprovedBy = "the same step with scaled_dot_product_attention, no shorter"
	return &f
}
