package ir

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/dtype"
)

var flagNames = [...]string{"nesterov", "momentum", "coupled", "mean", "residual", "total", "grad_x", "grad_w", "before", "descending"}

// String lists the flags as the text form does: "nesterov,momentum".
func (f Flag) String() string {
	var names []string
	for i := range 16 {
		switch {
		case f>>i&1 == 0:
		case i < len(flagNames):
			names = append(names, flagNames[i])
		default:
			names = append(names, fmt.Sprintf("flag(%d)", i))
		}
	}
	return strings.Join(names, ",")
}

// String is the op as text: its name, its operands and, in braces, those attributes that are set:
//
//	sum f32[2,3]:1,2 {axes=0 keep}
//
// [Parse] reads it back.
func (o Op) String() string {
	var b strings.Builder
	b.WriteString(o.Code.String())
	for _, t := range o.Ins() {
		b.WriteByte(' ')
		writeType(&b, t)
	}
	if text := o.Attr.text(); text != "" {
		b.WriteString(" {" + text + "}")
	}
	return b.String()
}

// writeType prints a type so that reading it gives the same pointer: with its strides where they differ from those of
// [Dense], even if the difference is in a dimension of size 1.
func writeType(b *strings.Builder, t *Type) {
	b.WriteString(t.String())
	if t.dense && t != t.AsDense() {
		b.WriteByte(':')
		writeInts(b, t.strides)
	}
}

func (a *Attr) text() string {
	var b strings.Builder
	for i := range fieldNames {
		if f := fields(1 << i); a.set()&f != 0 {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(fieldNames[i])
			a.writeField(&b, f)
		}
	}
	return b.String()
}

// writeField prints "=" and the value; presence is all that a truth value needs.
func (a *Attr) writeField(b *strings.Builder, f fields) {
	if f&(fieldKeep|fieldCausal) != 0 {
		return
	}
	b.WriteByte('=')
	switch f {
	case fieldOut:
		writeType(b, a.Out)
	case fieldDType:
		b.WriteString(a.DType.String())
	case fieldAxis:
		b.WriteString(strconv.Itoa(int(a.Axis)))
	case fieldAxes:
		writeInts(b, bitsOf(a.Axes))
	case fieldAct:
		if int(a.Act) < len(actNames) {
			b.WriteString(actNames[a.Act])
		} else {
			fmt.Fprintf(b, "act(%d)", a.Act)
		}
	case fieldFlag:
		b.WriteString(a.Flag.String())
	case fieldPrecision:
		b.WriteString(a.Precision.String())
	case fieldDims:
		writeDims(b, a.Dims)
	}
}

func bitsOf(set uint16) (places []int) {
	for i := range 16 {
		if set>>i&1 == 1 {
			places = append(places, i)
		}
	}
	return places
}

// writeDims leaves out the zeros at the end.
func writeDims(b *strings.Builder, dims [MaxRank]int32) {
	n := len(dims)
	for n > 0 && dims[n-1] == 0 {
		n--
	}
	for i, d := range dims[:n] {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(d)))
	}
}

// codes finds a code by its name; it is made on first use, since the table is filled when the program starts.
var codes = sync.OnceValue(func() map[string]Code {
	m := make(map[string]Code, codeCount)
	for c := Invalid + 1; c < codeCount; c++ {
		m[c.String()] = c
	}
	return m
})

// Parse reads the text form of an op. [Op.Infer] tells whether what it reads is a valid op.
func Parse(text string) (Op, error) {
	head, attr, braces := strings.Cut(text, "{")
	words := strings.Fields(head)
	if len(words) == 0 {
		return Op{}, errors.New("an operation needs a name")
	}
	code, ok := codes()[words[0]]
	if !ok {
		return Op{}, fmt.Errorf("there is no operation %q", words[0])
	}
	in := make([]*Type, len(words)-1)
	for i, w := range words[1:] {
		t, err := ParseType(w)
		if err != nil {
			return Op{}, fmt.Errorf("operand %d of %s: %w", i, code, err)
		}
		in[i] = t
	}
	var a Attr
	if braces {
		var err error
		if a, err = parseAttr(attr); err != nil {
			return Op{}, fmt.Errorf("attributes of %s: %w", code, err)
		}
	}
	return New(code, a, in...), nil
}

func parseAttr(text string) (a Attr, err error) {
	text, rest, closed := strings.Cut(text, "}")
	if !closed || strings.TrimSpace(rest) != "" {
		return a, errors.New("they must end in } and nothing after it")
	}
	seen := fields(0)
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		f := fieldOf(name)
		if f == 0 || seen&f != 0 {
			return a, fmt.Errorf("%q is unknown or given twice; have %s", name, fields(1<<len(fieldNames)-1))
		}
		seen |= f
		if err := a.parseField(f, value); err != nil {
			return a, fmt.Errorf("%s: %w", word, err)
		}
	}
	return a, nil
}

func fieldOf(name string) fields {
	for i, n := range fieldNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

func (a *Attr) parseField(f fields, value string) (err error) {
	switch f {
	case fieldOut:
		a.Out, err = ParseType(value)
	case fieldDType:
		a.DType, err = parseDType(value)
	case fieldAxis:
		var n int64
		n, err = strconv.ParseInt(value, 10, 8)
		a.Axis = int8(n)
	case fieldAxes:
		a.Axes, err = parseAxes(value)
	case fieldAct:
		var i int
		i, err = place(value, actNames[:])
		a.Act = Act(i)
	case fieldFlag:
		a.Flag, err = parseFlags(value)
	case fieldPrecision:
		var i int
		i, err = place(value, precisionNames[:])
		a.Precision = Precision(i)
	case fieldDims:
		a.Dims, err = parseDims(value)
	default:
		if value != "" {
			return errors.New("it takes no value")
		}
		a.Keep, a.Causal = a.Keep || f == fieldKeep, a.Causal || f == fieldCausal
	}
	return err
}

func place(name string, names []string) (int, error) {
	for i, n := range names {
		if n == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%q is none of %s", name, strings.Join(names, ", "))
}

func parseFlags(s string) (f Flag, err error) {
	for name := range strings.SplitSeq(s, ",") {
		i, err := place(name, flagNames[:])
		if err != nil {
			return 0, err
		}
		f |= 1 << i
	}
	return f, nil
}

func parseAxes(s string) (set uint16, err error) {
	ints, err := parseInts(s, 16, 15)
	for _, i := range ints {
		set |= 1 << i
	}
	return set, err
}

func parseDims(s string) (dims [MaxRank]int32, err error) {
	words := strings.Split(s, ",")
	if len(words) > MaxRank {
		return dims, fmt.Errorf("%d numbers, at most %d are possible", len(words), MaxRank)
	}
	for i, w := range words {
		n, err := strconv.ParseInt(w, 10, 32)
		if err != nil {
			return dims, fmt.Errorf("%q is no 32-bit number", w)
		}
		dims[i] = int32(n)
	}
	return dims, nil
}

// parseInts reads at most n numbers from 0 to most, separated by commas; "" is none.
func parseInts(s string, n int, most uint64) ([]int, error) {
	if s == "" {
		return nil, nil
	}
	words := strings.Split(s, ",")
	if len(words) > n {
		return nil, fmt.Errorf("%d numbers, at most %d are possible", len(words), n)
	}
	out := make([]int, len(words))
	for i, w := range words {
		v, err := strconv.ParseUint(w, 10, 63)
		if err != nil || v > most {
			return nil, fmt.Errorf("%q is no number from 0 to %d", w, most)
		}
		out[i] = int(v)
	}
	return out, nil
}

// parseDType accepts the short names only, so that a type has one spelling.
func parseDType(s string) (dtype.DType, error) {
	dt, err := dtype.Parse(s)
	if err == nil && dt.String() != s {
		return dtype.Invalid, fmt.Errorf("write %s for %q", dt, s)
	}
	return dt, err
}

// ParseType reads a type: "f32[2,3]", or "f32[2,3]:1,2" with strides.
func ParseType(s string) (*Type, error) {
	const most = 1 << 48
	name, rest, ok := strings.Cut(s, "[")
	sizes, strides, closed := strings.Cut(rest, "]")
	if !ok || !closed {
		return nil, fmt.Errorf("%q is no type: want one like f32[2,3]", s)
	}
	dt, err := parseDType(name)
	if err != nil {
		return nil, err
	}
	shape, err := parseInts(sizes, MaxRank, most)
	if err != nil {
		return nil, fmt.Errorf("sizes of %q: %w", s, err)
	}
	if err := CheckShape(shape); err != nil {
		return nil, err
	}
	if strides == "" {
		return Dense(dt, shape...), nil
	}
	steps, err := parseInts(strings.TrimPrefix(strides, ":"), MaxRank, most)
	if err != nil {
		return nil, fmt.Errorf("strides of %q: %w", s, err)
	}
	if strides[0] != ':' || len(steps) != len(shape) {
		return nil, fmt.Errorf("%q needs %d strides after a colon", s, len(shape))
	}
	return strided(dt, shape, steps)
}

// strided is Strided for strides that a text gives: they must not make a view of more than 2^48 elements.
func strided(dt dtype.DType, shape, strides []int) (*Type, error) {
	span := uint64(1)
	for i, d := range shape {
		step, n := uint64(strides[i]), uint64(max(d, 1)-1)
		if n > 0 && step > (1<<48)/n {
			return nil, fmt.Errorf("strides %v of shape %v reach beyond 2^48 elements", strides, shape)
		}
		if span += n * step; span > 1<<48 {
			return nil, fmt.Errorf("strides %v of shape %v reach beyond 2^48 elements", strides, shape)
		}
	}
	return Strided(dt, shape, strides), nil
}
