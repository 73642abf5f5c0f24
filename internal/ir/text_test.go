package ir

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// randomType has any rank, sizes with 0 and 1 among them, and often strides that are not row-major.
func randomType(r *rand.Rand) *Type {
	all := dtype.All()
	shape := make([]int, r.IntN(MaxRank+1))
	strides := make([]int, len(shape))
	for i := range shape {
		shape[i] = []int{0, 1, 1, 2, 3, 5, 7}[r.IntN(7)]
		strides[i] = r.IntN(9)
	}
	dt := all[r.IntN(len(all))]
	if r.IntN(2) == 0 {
		return Dense(dt, shape...)
	}
	return Strided(dt, shape, strides)
}

// randomOp has a code with any operands and attributes, valid or not.
func randomOp(r *rand.Rand) Op {
	some := func() bool { return r.IntN(3) == 0 }
	var a Attr
	if some() {
		a.Out = randomType(r)
	}
	if some() {
		a.DType = dtype.All()[r.IntN(len(dtype.All()))]
	}
	if some() {
		a.Axis = int8(r.Uint32())
	}
	if some() {
		a.Axes = uint16(r.Uint32())
	}
	a.Keep, a.Causal = some(), some()
	if some() {
		a.Act = Act(r.IntN(len(actNames)))
	}
	if some() {
		a.Flag = Flag(r.IntN(1 << len(flagNames)))
	}
	if some() {
		a.Precision = Precision(r.IntN(len(precisionNames)))
	}
	if some() {
		a.Dims[r.IntN(MaxRank)] = int32(r.Uint32())
		a.Dims[r.IntN(MaxRank)] = int32(r.IntN(5))
	}
	in := make([]*Type, r.IntN(12))
	for i := range in {
		in[i] = randomType(r)
	}
	return New(1+Code(r.IntN(int(codeCount)-1)), a, in...)
}

func TestTextRoundTrip(t *testing.T) {
	r := testutil.Rand(t)
	for range 10000 {
		o := randomOp(r)
		got, err := Parse(o.String())
		if err != nil || got != o {
			t.Fatalf("%s reads as %s, %v", o, got, err)
		}
	}
	bad := Op{Code: 250, Attr: Attr{Act: 77, Flag: 0xE000, Precision: 9}}
	if got, want := bad.String(), "code(250) {act=act(77) flag=flag(13),flag(14),flag(15) precision=precision(9)}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTypeText(t *testing.T) {
	for text, want := range map[string]*Type{
		"f32[]":        Dense(dtype.F32),
		"bool[0,3]":    Dense(dtype.Bool, 0, 3),
		"f32[2,3]:1,2": Strided(dtype.F32, []int{2, 3}, []int{1, 2}),
		"f32[2,3]:3,1": Dense(dtype.F32, 2, 3),
		"f32[1]:7":     Strided(dtype.F32, []int{1}, []int{7}),
	} {
		if got, err := ParseType(text); err != nil || got != want {
			t.Errorf("%s reads as %v, %v", text, got, err)
		}
	}
}

func TestBadText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "needs a name",
		"{axis=1}":                            "needs a name",
		"fold f32[2]":                         `no operation "fold"`,
		"invalid":                             "no operation",
		"neg f32":                             "is no type",
		"neg f32[2":                           "is no type",
		"neg q32[2]":                          "unknown element type",
		"neg float32[2]":                      "write f32 for",
		"neg f32[2,]":                         `"" is no number`,
		"neg f32[-2]":                         `"-2" is no number`,
		"neg f32[99999999,99999999]":          "more than 2^48",
		"neg f32[9999999999999999999999]":     "is no number",
		"neg f32[1,1,1,1,1,1,1,1,1]":          "at most 8",
		"neg f32[2]3":                         "needs 1 strides after a colon",
		"neg f32[2]:":                         "needs 1 strides",
		"neg f32[2]:1,2":                      "needs 1 strides",
		"neg f32[2]:-1":                       "is no number",
		"neg f32[1000]:281474976710656":       "beyond 2^48",
		"neg f32[2] {":                        "must end in }",
		"neg f32[2] {keep} x":                 "must end in }",
		"neg f32[2] {colour=3}":               `"colour" is unknown`,
		"neg f32[2] {keep keep}":              "given twice",
		"neg f32[2] {keep=1}":                 "takes no value",
		"neg f32[2] {axis=200}":               "out of range",
		"neg f32[2] {axes=16}":                "0 to 15",
		"neg f32[2] {act=swish}":              "none of none, relu",
		"neg f32[2] {flag=x}":                 "none of nesterov",
		"neg f32[2] {dims=1,2,3,4,5,6,7,8,9}": "at most 8",
		"neg f32[2] {dims=2147483648}":        "32-bit",
		"neg f32[2] {out=}":                   "is no type",
		"neg f32[2] {dtype=}":                 "unknown element type",
	} {
		if o, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q reads as %s, %v; want %q", text, o, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, e := range examples {
		f.Add(e.text)
	}
	f.Add("neg f32[1000]:281474976710656 {out=f32[0]:5 axes= keep}")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(o.String())
		if err != nil || again != o {
			t.Errorf("%q prints as %q, which reads as %s, %v", text, o, again, err)
		}
		o.Infer()
		o.Cost()
	})
}
