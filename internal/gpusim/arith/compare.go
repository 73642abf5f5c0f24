package arith

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Compare decides one lane of a comparison.
type Compare func(a, b uint64) bool

var boolMods = []string{"and", "or", "xor", "ftz"}

// Comparison reads a setp or set: the relation and the type compared.
func Comparison(in *ptx.Inst) (Compare, ptx.Type, error) {
	rel := ""
	for _, m := range in.Mods {
		if ptx.ParseType(m) != ptx.NoType || slices.Contains(boolMods, m) {
			continue
		}
		if rel != "" || relations[m] == nil && floatOnly[m] == nil {
			return nil, 0, simt.NotSupported(in, "modifier .%s", m)
		}
		rel = m
	}
	t := in.Type()
	if rel == "" || t.Bits() < 16 || t.Bits() > 64 {
		return nil, 0, simt.NotSupported(in, "wants a relation and a type")
	}
	if ff := FormatOf(t); ff != nil && !Packed(t) {
		cmp, err := floatCompare(in, ff, rel)
		return cmp, t, err
	}
	cmp, err := intCompare(in, t, rel)
	return cmp, t, err
}

// relations maps a relation to its truth for less, equal, greater.
var relations = map[string][]bool{
	"eq": {false, true, false}, "ne": {true, false, true}, "lt": {true, false, false}, "le": {true, true, false},
	"gt": {false, false, true}, "ge": {false, true, true}, "lo": {true, false, false}, "ls": {true, true, false},
	"hi": {false, false, true}, "hs": {false, true, true},
}

// floatOnly are the relations that hold of NaN, and num.
var floatOnly = map[string][]bool{
	"equ": {false, true, false}, "neu": {true, false, true}, "ltu": {true, false, false}, "leu": {true, true, false},
	"gtu": {false, false, true}, "geu": {false, true, true}, "num": {true, true, true}, "nan": {false, false, false},
}

func intCompare(in *ptx.Inst, t ptx.Type, rel string) (Compare, error) {
	truth := relations[rel]
	unsigned := rel == "lo" || rel == "ls" || rel == "hi" || rel == "hs"
	if truth == nil || Packed(t) || in.Has("ftz") || unsigned && t.Kind() == ptx.KindInt || t.Kind() == ptx.KindBits && rel != "eq" && rel != "ne" {
		return nil, simt.NotSupported(in, "no relation .%s for .%s", rel, t)
	}
	less, ext := lessThan(t), Extend(t)
	return func(a, b uint64) bool {
		switch {
		case ext(a) == ext(b):
			return truth[1]
		case less(a, b):
			return truth[0]
		}
		return truth[2]
	}, nil
}

func floatCompare(in *ptx.Inst, ff *Format, rel string) (Compare, error) {
	truth, unordered := floatOnly[rel], rel != "num"
	if truth == nil {
		truth, unordered = relations[rel], false
	}
	if slices.Contains([]string{"lo", "ls", "hi", "hs"}, rel) {
		return nil, simt.NotSupported(in, "no relation .%s for floats", rel)
	}
	ftz := in.Has("ftz")
	return func(a, b uint64) bool {
		if ftz {
			a, b = ff.flush(a), ff.flush(b)
		}
		x, y := ff.Float(a), ff.Float(b)
		switch {
		case x == y:
			return truth[1]
		case x < y:
			return truth[0]
		case x > y:
			return truth[2]
		}
		return unordered
	}, nil
}

// Testps are the classes of testp.
var Testps = map[string]func(x float64, min float64) bool{
	"finite":     func(x, _ float64) bool { return !math.IsInf(x, 0) && x == x },
	"infinite":   func(x, _ float64) bool { return math.IsInf(x, 0) },
	"number":     func(x, _ float64) bool { return x == x },
	"notanumber": func(x, _ float64) bool { return x != x },
	"normal":     func(x, least float64) bool { return math.Abs(x) >= least && !math.IsInf(x, 0) },
	"subnormal":  func(x, least float64) bool { return x != 0 && math.Abs(x) < least },
}
