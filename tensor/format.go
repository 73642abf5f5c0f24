package tensor

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/render"
)

// Info is one line: dtype, shape, strides when they matter, device, bytes and what is recorded.
func (t *Tensor) Info() string {
	s := fmt.Sprintf("%s on %s, %s", t.typ, t.env.dev.name, render.Bytes(t.Bytes()))
	switch {
	case t.IsParam():
		s += ", parameter"
		if t.Frozen() {
			s += " (frozen)"
		}
	case t.param:
		s += ", buffer"
	case t.leaf != nil:
		s += ", leaf"
	case t.node != nil:
		s += ", from " + t.node.name()
	case t.carriesGraph():
		s += ", recorded"
	}
	if why := t.st.Gone(); why != nil {
		s += ", released by " + why.By
	}
	return s
}

// most is how many entries of a dimension are printed before the middle is left out.
const (
	most = 8
	ends = 3
)

// String prints the values, as a sync point, with the middle of long dimensions left out.
func (t *Tensor) String() string { return t.text('g', 5) }

// Format prints with fmt's verbs: %v and %s as String does, %f, %e and %g with their precision for each value.
func (t *Tensor) Format(f fmt.State, verb rune) {
	digits, set := f.Precision()
	switch verb {
	case 'f', 'e', 'g':
		if !set {
			digits = -1
		}
		io.WriteString(f, t.text(byte(verb), digits))
	case 'v', 's':
		io.WriteString(f, t.String())
	default:
		fmt.Fprintf(f, "%%!%c(%s)", verb, t.typ)
	}
}

// text prints the values as strconv.FormatFloat does.
func (t *Tensor) text(format byte, digits int) string {
	if t == nil || t.typ == nil {
		return "<nil>"
	}
	if t.st.Gone() != nil {
		return fmt.Sprintf("%s, released by %s", t.typ, t.st.Gone().By)
	}
	if !t.env.dev.Computes() {
		return fmt.Sprintf("%s, not computed on %s", t.typ, t.env.dev.name)
	}
	var b strings.Builder
	print, n := t.ends(format, digits)
	writeNested(&b, t.Shape(), 0, n, 1, print)
	b.WriteString("  ")
	b.WriteString(t.typ.AsDense().String())
	return b.String()
}

// ends prints the values by their index, and tells how many there are: of a dimension that is cut, the first and last. Only
// they are read.
func (t *Tensor) ends(format byte, digits int) (print func(i int) string, n int) {
	s := newScope(t.env.dev, t.env.dev.base.scope, 0)
	s.block = true
	defer s.End(internal)
	env := *t.env
	env.scope, env.grad, env.policy, env.products = s, off, dtype.Invalid, 0
	u := t.quiet().inside(&env)
	for axis, n := range t.Shape() {
		if n > most {
			u = Cat(axis, u.Slice(axis, 0, ends), u.Slice(axis, n-ends, n))
		}
	}
	if t.DType() == dtype.I64 { // whose values float64 may round
		v := read[int64](u)
		return func(i int) string { return strconv.FormatInt(v[i], 10) }, len(v)
	}
	v := u.floats()
	return func(i int) string { return formatValue(v[i], t.DType(), format, digits) }, len(v)
}

func formatValue(v float64, dt dtype.DType, format byte, digits int) string {
	switch {
	case dt == dtype.Bool:
		return strconv.FormatBool(v != 0)
	case dt.IsFloat():
		return strconv.FormatFloat(v, format, digits, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// writeNested prints n values from index lo on in brackets, one level for each dimension. Of a dimension that is cut there
// are 2·ends.
func writeNested(b *strings.Builder, shape []int, lo, n, depth int, print func(int) string) {
	if len(shape) == 0 {
		b.WriteString(print(lo))
		return
	}
	b.WriteByte('[')
	kept := shape[0]
	if kept > most {
		kept = 2 * ends
	}
	step := n / max(kept, 1)
	for i := range kept {
		if i > 0 {
			b.WriteString(separator(len(shape), depth))
		}
		if i == ends && kept < shape[0] {
			b.WriteString("…" + separator(len(shape), depth))
		}
		writeNested(b, shape[1:], lo+i*step, step, depth+1, print)
	}
	b.WriteByte(']')
}

func separator(rank, depth int) string {
	if rank == 1 {
		return " "
	}
	return "\n" + strings.Repeat(" ", depth)
}
