package gpusim

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// compare decides one lane of a comparison.
type compare func(a, b uint64) bool

var boolMods = []string{"and", "or", "xor", "ftz"}

// comparison reads a setp or set: the relation and the type compared.
func comparison(in *ptx.Inst) (compare, ptx.Type, error) {
	rel := ""
	for _, m := range in.Mods {
		if ptx.ParseType(m) != ptx.NoType || slices.Contains(boolMods, m) {
			continue
		}
		if rel != "" || relations[m] == nil && floatOnly[m] == nil {
			return nil, 0, notSupported(in, "modifier .%s", m)
		}
		rel = m
	}
	t := in.Type()
	if rel == "" || t.Bits() < 16 || t.Bits() > 64 {
		return nil, 0, notSupported(in, "wants a relation and a type")
	}
	if ff := formatOf(t); ff != nil && !packed(t) {
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

func intCompare(in *ptx.Inst, t ptx.Type, rel string) (compare, error) {
	truth := relations[rel]
	unsigned := rel == "lo" || rel == "ls" || rel == "hi" || rel == "hs"
	if truth == nil || packed(t) || in.Has("ftz") || unsigned && t.Kind() == ptx.KindInt || t.Kind() == ptx.KindBits && rel != "eq" && rel != "ne" {
		return nil, notSupported(in, "no relation .%s for .%s", rel, t)
	}
	less, ext := lessThan(t), extend(t)
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

func floatCompare(in *ptx.Inst, ff *floatFormat, rel string) (compare, error) {
	truth, unordered := floatOnly[rel], rel != "num"
	if truth == nil {
		truth, unordered = relations[rel], false
	}
	if slices.Contains([]string{"lo", "ls", "hi", "hs"}, rel) {
		return nil, notSupported(in, "no relation .%s for floats", rel)
	}
	ftz := in.Has("ftz")
	return func(a, b uint64) bool {
		if ftz {
			a, b = ff.flush(a), ff.flush(b)
		}
		x, y := ff.float(a), ff.float(b)
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

// testps are the classes of testp.
var testps = map[string]func(x float64, min float64) bool{
	"finite":     func(x, _ float64) bool { return !math.IsInf(x, 0) && x == x },
	"infinite":   func(x, _ float64) bool { return math.IsInf(x, 0) },
	"number":     func(x, _ float64) bool { return x == x },
	"notanumber": func(x, _ float64) bool { return x != x },
	"normal":     func(x, least float64) bool { return math.Abs(x) >= least && !math.IsInf(x, 0) },
	"subnormal":  func(x, least float64) bool { return x != 0 && math.Abs(x) < least },
}
