package kernel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// param is a parameter of a kernel, with its type in C++ where the kernel's name tells it.
type param struct {
	*ptx.Var
	cpp *cpp
}

// cpp is a type of C++ as a mangled name has it.
type cpp struct {
	text    string
	to      *cpp // what a pointer points to; nil of others
	size    int  // bytes
	signed  bool
	dtypes  []dtype.DType // of a tensor with such elements; nil: any
	unknown bool          // a class
}

// title is the type for people.
func (p *param) title() string {
	if p.cpp != nil {
		return p.cpp.text
	}
	s := "." + p.Type.String()
	if p.Dims != nil {
		s += strings.ReplaceAll(fmt.Sprint(p.Dims), " ", "][")
	}
	return s
}

// parameters are those of a kernel.
func parameters(f *ptx.Func) []param {
	list := make([]param, len(f.Params))
	types, ok := mangled(f.Name)
	ok = ok && len(types) == len(list)
	for i, v := range f.Params {
		list[i].Var = v
		if ok {
			list[i].cpp = types[i]
		}
	}
	return list
}

// mangled reads the parameters' types from a function's name by the rules of the Itanium C++ ABI, as clang and nvcc follow them;
// ok is false for what is not so plain: names of C, of templates and in namespaces, references and the like.
func mangled(name string) (types []*cpp, ok bool) {
	rest, ok := strings.CutPrefix(name, "_Z")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	n, err := strconv.Atoi(rest[:digits])
	if !ok || err != nil || digits+n >= len(rest) {
		return nil, false
	}
	m := &mangling{rest: rest[digits+n:]}
	if m.rest == "v" {
		return nil, true
	}
	for m.rest != "" {
		t := m.typ()
		if t == nil {
			return nil, false
		}
		types = append(types, t)
	}
	return types, true
}

// mangling is what is left of a name, and the types that it may refer back to.
type mangling struct {
	rest string
	seen []*cpp
}

// builtin are the types of a letter or two.
var builtin = map[string]*cpp{
	"v": {text: "void"}, "b": {text: "bool", size: 1, dtypes: []dtype.DType{dtype.Bool, dtype.U8}},
	"c": {text: "char", size: 1, signed: true, dtypes: bytes}, "a": {text: "signed char", size: 1, signed: true, dtypes: bytes}, "h": {text: "unsigned char", size: 1, dtypes: bytes},
	"s": {text: "short", size: 2, signed: true, dtypes: halves}, "t": {text: "unsigned short", size: 2, dtypes: halves},
	"i": {text: "int", size: 4, signed: true, dtypes: []dtype.DType{dtype.I32}}, "j": {text: "unsigned", size: 4, dtypes: []dtype.DType{dtype.I32}},
	"l": {text: "long", size: 8, signed: true, dtypes: []dtype.DType{dtype.I64}}, "m": {text: "unsigned long", size: 8, dtypes: []dtype.DType{dtype.I64}},
	"x": {text: "long long", size: 8, signed: true, dtypes: []dtype.DType{dtype.I64}}, "y": {text: "unsigned long long", size: 8, dtypes: []dtype.DType{dtype.I64}},
	"f": {text: "float", size: 4, dtypes: []dtype.DType{dtype.F32}}, "d": {text: "double", size: 8, dtypes: []dtype.DType{dtype.F64}},
	"DF16_": {text: "half", size: 2, dtypes: []dtype.DType{dtype.F16}}, "DF16b": {text: "__bf16", size: 2, dtypes: []dtype.DType{dtype.BF16}},
}

// Integers of 8 and 16 bits are what bits of other types are kept in, too.
var (
	bytes  = []dtype.DType{dtype.U8, dtype.Bool, dtype.F8E4M3, dtype.F8E5M2}
	halves = []dtype.DType{dtype.F16, dtype.BF16}
)

// classes are those that stand for a dtype.
var classes = map[string][]dtype.DType{
	"half": {dtype.F16}, "__half": {dtype.F16}, "__nv_bfloat16": {dtype.BF16}, "__bf16": {dtype.BF16}, "__nv_fp8_e4m3": {dtype.F8E4M3}, "__nv_fp8_e5m2": {dtype.F8E5M2},
	"float2": {dtype.F32}, "float4": {dtype.F32}, "half2": {dtype.F16}, "__half2": {dtype.F16}, "__nv_bfloat162": {dtype.BF16}, "int2": {dtype.I32}, "int4": {dtype.I32},
	"double2": {dtype.F64}, "uchar4": bytes, "longlong2": {dtype.I64},
}

// typ reads a type; nil for one that is not known here.
func (m *mangling) typ() *cpp {
	if m.rest == "" {
		return nil
	}
	for _, n := range []int{1, 5} {
		if len(m.rest) >= n && builtin[m.rest[:n]] != nil {
			t := builtin[m.rest[:n]]
			m.rest = m.rest[n:]
			return t
		}
	}
	c := m.rest[0]
	switch {
	case c == 'S':
		return m.back()
	case c == 'P':
		m.rest = m.rest[1:]
		to := m.typ()
		if to == nil {
			return nil
		}
		return m.add(&cpp{text: to.text + "*", to: to, size: 8})
	case c == 'K', c == 'V':
		m.rest = m.rest[1:]
		t := m.typ()
		if t == nil {
			return nil
		}
		q := *t
		q.text = map[byte]string{'K': "const ", 'V': "volatile "}[c] + t.text
		return m.add(&q)
	case c >= '1' && c <= '9':
		return m.class()
	}
	return nil
}

func (m *mangling) add(t *cpp) *cpp {
	m.seen = append(m.seen, t)
	return t
}

// back reads what refers to an earlier type: S_, S0_, S1_.
func (m *mangling) back() *cpp {
	at, rest, ok := strings.Cut(m.rest[1:], "_")
	if !ok {
		return nil
	}
	i := 0
	if at != "" {
		n, err := strconv.ParseUint(strings.ToLower(at), 36, 16)
		if err != nil {
			return nil
		}
		i = int(n) + 1
	}
	if i >= len(m.seen) {
		return nil
	}
	m.rest = rest
	return m.seen[i]
}

func (m *mangling) class() *cpp {
	digits := len(m.rest) - len(strings.TrimLeft(m.rest, "0123456789"))
	n, err := strconv.Atoi(m.rest[:digits])
	if err != nil || n > len(m.rest)-digits {
		return nil
	}
	name := m.rest[digits:][:n]
	m.rest = m.rest[digits+n:]
	return m.add(&cpp{text: name, unknown: true, dtypes: classes[name]})
}

// takes tells whether a pointer's elements may be of a dtype.
func (t *cpp) takes(dt dtype.DType) bool { return t.dtypes == nil || slices.Contains(t.dtypes, dt) }
