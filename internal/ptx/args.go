package ptx

import (
	"slices"
	"strconv"
	"strings"
)

// operandsOf is the alternatives for the operands of a form, with those signatures worked out that depend on more than one
// modifier.
func (v *variant) operandsOf(words []string) [][]argSpec {
	alts := v.signature(words)
	if len(alts) != 1 || len(alts[0]) != 1 || alts[0][0].role != 0 {
		return alts
	}
	switch alts[0][0].typ {
	case "mov":
		return movArgs(words)
	case "cvt":
		return cvtArgs(words)
	case "mma":
		return [][]argSpec{mmaArgs(words)}
	case "wmma.ab", "wmma.c", "wmma.d", "wmma.mma":
		return wmmaArgs(alts[0][0].typ, words)
	case "wgmma":
		return wgmmaArgs(words)
	}
	return nil
}

// movArgs: a plain move, and the packing and unpacking of vectors.
func movArgs(words []string) [][]argSpec {
	if words[0] == "pred" {
		return [][]argSpec{readArgs("P p")}
	}
	alts := [][]argSpec{readArgs("d S")}
	if t := ParseType(words[0]); t.Kind() == KindBits {
		alts = append(alts, readArgs("d k"), readArgs("u s"))
	}
	return alts
}

// cvtArgs: packed destinations take two float32, the upper half first.
func cvtArgs(words []string) [][]argSpec {
	types := typeWords(words)
	if len(types) == 2 && types[1] == F32 && packed(types[0]) {
		return [][]argSpec{readArgs("c:0 e:1 e:1")}
	}
	return [][]argSpec{readArgs("c:0 e:1")}
}

// packed reports whether a type holds two elements of a conversion.
func packed(t Type) bool { return strings.HasSuffix(t.String(), "x2") }

// typeWords picks the types out of the words of a form.
func typeWords(words []string) []Type {
	var ts []Type
	for _, w := range words {
		if t := ParseType(w); t != NoType {
			ts = append(ts, t)
		}
	}
	return ts
}

// shapeOf reads m16n8k16.
func shapeOf(words []string) (m, n, k int) {
	for _, w := range words {
		if len(w) < 6 || w[0] != 'm' || !isDigit(w[1]) {
			continue
		}
		i, j := strings.IndexByte(w, 'n'), strings.IndexByte(w, 'k')
		if i < 0 || j < i {
			continue
		}
		m, _ = strconv.Atoi(w[1:i])
		n, _ = strconv.Atoi(w[i+1 : j])
		k, _ = strconv.Atoi(w[j+1:])
	}
	return m, n, k
}

// fragment is the registers per lane of a rows×cols matrix spread over a warp: one element each for f32, f64 and s32,
// packed into 32 bits for the others.
func fragment(role byte, t Type, rows, cols int) argSpec {
	n := rows * cols / 32
	switch t {
	case F64, F32, S32:
		return argSpec{role: role, typ: t.String(), count: n}
	}
	return argSpec{role: role, typ: packedReg(t), count: max(1, n*t.Bits()/32)}
}

// packedReg is the type that the 32-bit registers of a fragment pass as: untyped ones do for all, others for some.
func packedReg(t Type) string {
	switch t {
	case F16:
		return "f16x2"
	case S8, U8, S4, U4, B1:
		return "b32"
	}
	return "bf16x2"
}

func mmaArgs(words []string) []argSpec {
	m, n, k := shapeOf(words)
	ts := typeWords(words)
	if len(ts) < 4 {
		return nil
	}
	if m == 8 && n == 8 && k == 4 && ts[1] == F16 {
		return quadPairArgs(ts)
	}
	return []argSpec{fragment('d', ts[0], m, n), fragment('r', ts[1], m, k), fragment('r', ts[2], k, n), fragment('s', ts[3], m, n)}
}

// quadPairArgs: m8n8k4 of f16 does four products, one per quad pair, so a lane holds more than its 32nd.
func quadPairArgs(ts []Type) []argSpec {
	acc := func(role byte, t Type) argSpec {
		if t == F16 {
			return argSpec{role: role, typ: "f16x2", count: 4}
		}
		return argSpec{role: role, typ: t.String(), count: 8}
	}
	half := argSpec{role: 'r', typ: "f16x2", count: 2}
	return []argSpec{acc('d', ts[0]), half, half, acc('s', ts[3])}
}

func wmmaArgs(kind string, words []string) [][]argSpec {
	m, n, k := shapeOf(words)
	ts := typeWords(words)
	addr := argSpec{role: 'm'}
	stride := argSpec{role: 's', typ: "i32", optional: true}
	switch kind {
	case "wmma.c":
		return [][]argSpec{{wmmaAcc('d', ts[0], m, n), addr, stride}}
	case "wmma.d":
		return [][]argSpec{{addr, wmmaAcc('r', ts[0], m, n), stride}}
	case "wmma.ab":
		return [][]argSpec{{wmmaFactor('d', ts[0], wmmaRows(words, m, n), k), addr, stride}}
	}
	d, c := ts[0], ts[len(ts)-1]
	a := F16
	if len(ts) == 4 {
		a = ts[1]
	}
	return [][]argSpec{{wmmaAcc('d', d, m, n), wmmaFactor('r', a, m, k), wmmaFactor('r', a, n, k), wmmaAcc('r', c, m, n)}}
}

func wmmaRows(words []string, m, n int) int {
	for _, w := range words {
		if w == "b" {
			return n
		}
	}
	return m
}

// wmmaFactor is a fragment of A or B; f16 fragments are always eight registers, since lanes hold duplicates.
func wmmaFactor(role byte, t Type, rows, k int) argSpec {
	switch t {
	case F16:
		return argSpec{role: role, typ: packedReg(t), count: 8}
	}
	return fragment(role, t, rows, k)
}

func wmmaAcc(role byte, t Type, m, n int) argSpec {
	if t == F16 {
		return argSpec{role: role, typ: packedReg(t), count: 4}
	}
	return fragment(role, t, m, n)
}

// wgmmaArgs: a warpgroup's 64 rows of the result, a lane's part of which is a 128th; A as a descriptor or in registers.
func wgmmaArgs(words []string) [][]argSpec {
	m, n, _ := shapeOf(words)
	ts := typeWords(words)
	d := fragment('d', ts[0], m/4, n)
	desc := argSpec{role: 's', typ: "b64"}
	a := argSpec{role: 'r', typ: packedReg(ts[1]), count: 4}
	scale := argSpec{role: 'p'}
	sign, major := argSpec{role: 'i', typ: "sign"}, argSpec{role: 'i', typ: "bit"}
	switch {
	case ts[1].Kind() != KindFloat:
		return [][]argSpec{{d, desc, desc, scale}, {d, a, desc, scale}}
	case ts[1].Bits() != 16:
		return [][]argSpec{{d, desc, desc, scale, sign, sign}, {d, a, desc, scale, sign, sign}}
	}
	return [][]argSpec{{d, desc, desc, scale, sign, sign, major, major}, {d, a, desc, scale, sign, sign, major}}
}

// dims is the number of dimensions of a tensor map that a form says: ".3d".
func dims(words []string) int {
	for _, w := range words {
		if len(w) == 2 && w[1] == 'd' && isDigit(w[0]) {
			return int(w[0] - '0')
		}
	}
	return 0
}

// present is whether a form has the operand at all: what depends on a modifier is left out without it.
func (s *argSpec) present(words []string) bool {
	switch s.role {
	case 'h':
		return slices.Contains(words, "L2::cache_hint")
	case 'K':
		return slices.Contains(words, "multicast::cluster")
	case 'O':
		return slices.Contains(words, "im2col")
	}
	return true
}

// resolve gives the type that an operand spec means in a form; memory and label operands have none.
func (s *argSpec) resolve(words []string) Type {
	switch s.typ {
	case "bar", "threads", "parity", "i32", "cg", "ca", "128":
		return U32
	}
	if t := ParseType(s.typ); t != NoType {
		return t
	}
	ts := typeWords(words)
	if len(ts) == 0 {
		return NoType
	}
	switch s.typ {
	case "":
		return ts[len(ts)-1]
	case "w":
		return doubleWidth(ts[len(ts)-1])
	}
	if i := int(s.typ[0] - '0'); i < len(ts) {
		return ts[i]
	}
	return NoType
}

func doubleWidth(t Type) Type {
	switch t {
	case U16:
		return U32
	case S16:
		return S32
	case U32:
		return U64
	case S32:
		return S64
	}
	return NoType
}
