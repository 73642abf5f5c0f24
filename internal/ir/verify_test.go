package ir

import (
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
)

func parse(t testing.TB, text string) Op {
	t.Helper()
	o, err := Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}

func typesText(types []*Type) string {
	words := make([]string, len(types))
	for i, typ := range types {
		words[i] = typ.String()
	}
	return strings.Join(words, " ")
}

func TestExamples(t *testing.T) {
	seen := map[Code]bool{}
	for _, e := range examples {
		o := parse(t, e.text)
		seen[o.Code] = true
		out, err := o.Infer()
		if err != nil {
			t.Errorf("%s: %v", e.text, err)
			continue
		}
		if got := typesText(out); got != e.results {
			t.Errorf("%s gives %s, want %s", e.text, got, e.results)
		}
		if flops, bytes := o.Cost(); flops != e.flops || bytes != e.bytes {
			t.Errorf("%s costs %d operations and %d bytes, want %d and %d", e.text, flops, bytes, e.flops, e.bytes)
		}
		if got := o.String(); got != e.text {
			t.Errorf("%q prints as %q", e.text, got)
		}
	}
	for c := Invalid + 1; c < codeCount; c++ {
		switch example, ok := ofRow(c); {
		case seen[c]:
		case !ok:
			t.Errorf("no example of %s", c)
		case c.Row().Rule != nil:
			checkRule(t, c.Row().Rule, example)
		default:
			checkRow(t, c, example)
		}
	}
}

// ofRow is a use of an elementwise op whose cost follows from its value, or of an optimizer whose cost follows from its rule.
func ofRow(c Code) (o Op, ok bool) {
	if c.Row().Rule != nil {
		return New(c, Attr{}, append([]*Type{Dense(dtype.F32)}, groupOf(c.Row().Rule)...)...), true
	}
	in := make([]*Type, c.Row().min)
	for i := range in {
		in[i] = Dense(dtype.F32, 4)
	}
	return New(c, Attr{}, in...), c.Row().Value != ""
}

// groupOf are the operands of a rule for one parameter of four elements.
func groupOf(r *Rule) (in []*Type) {
	for range 2 + len(r.State) {
		in = append(in, Dense(dtype.F32, 4))
	}
	in = append(in, Dense(dtype.I64))
	for range r.Numbers {
		in = append(in, Dense(dtype.F64))
	}
	return in
}

// checkRule: it costs something, reads all, writes the parameter and its state, and refuses groups that are broken.
func checkRule(t *testing.T, r *Rule, o Op) {
	t.Helper()
	written := 1 + len(r.State)
	if flops, bytes := o.Cost(); flops == 0 || bytes != int64(4+16*(1+2*written)+8*(1+len(r.Numbers))) {
		t.Errorf("%s costs %d operations and %d bytes", o, flops, bytes)
	}
	if out, err := o.Infer(); err != nil || len(out) != written || slices.ContainsFunc(out, func(w *Type) bool { return w != o.In(1) }) {
		t.Errorf("%s: %v, %v", o, out, err)
	}
	infer := func(in []*Type) error {
		broken := New(o.Code, o.Attr, in...)
		_, err := broken.Infer()
		return err
	}
	for i := range o.NumIn() {
		bad, want := Dense(dtype.F32, 5), "parameter"
		switch {
		case i == 0:
			want = "not one floating number"
		case i == 1:
			bad = Dense(dtype.I64, 4)
		case i == 2+written:
			want = "the number of an update"
		case i > 2+written:
			want = r.Numbers[i-3-written]
		}
		in := slices.Clone(o.Ins())
		in[i] = bad
		if err := infer(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s with operand %d as %s: %v, want %q", o, i, bad, err, want)
		}
	}
	if err := infer(o.Ins()[:o.NumIn()-1]); err == nil || !strings.Contains(err.Error(), "in groups of") {
		t.Errorf("%s without its last operand: %v", o, err)
	}
}

// checkRow: it costs something, and moves operands and result once.
func checkRow(t *testing.T, c Code, o Op) {
	t.Helper()
	if flops, bytes := o.Cost(); flops == 0 || bytes != int64(16*(1+o.NumIn())) {
		t.Errorf("%s costs %d operations and %d bytes, want some and %d", c, flops, bytes, 16*(1+o.NumIn()))
	}
	if out, err := o.Infer(); err != nil || out[0] != o.In(0) {
		t.Errorf("%s: %v, %v", o, out, err)
	}
}

// TestCostOfBigOps compares with formulas from the literature at sizes of a real model.
func TestCostOfBigOps(t *testing.T) {
	for text, want := range map[string]int64{
		"matmul f32[1024,1024] f32[1024,1024]":                                                         2 << 30,
		"conv2d f32[1,3,224,224] f32[64,3,7,7] {dims=2,2,3,3,1,1,1}":                                   236027904, // ResNet's first layer: 118 M multiply-adds
		"linear bf16[8,1024,768] bf16[50257,768]":                                                      2 * 8 * 1024 * 768 * 50257,
		"attention f32[1,12,1024,64] f32[1,12,1024,64] f32[1,12,1024,64]":                              12 * 1024 * 1024 * (4*64 + 5),
		"attention f32[1,12,1024,64] f32[1,12,1024,64] f32[1,12,1024,64] {causal}":                     12 * 1024 * 1024 * (4*64 + 5) / 2,
		"adamw f32[] f32[1000,1000] f32[1000,1000] f32[1000,1000] f32[1000,1000] i64[]":                14_000_000,
		"avg_pool2d f32[1,512,7,7] {dims=7,7,7,7}":                                                     512 * 49,
		"conv2d f32[1,32,56,56] f32[32,1,3,3] {dims=1,1,1,1,1,1,32}":                                   2 * 32 * 56 * 56 * 9, // depthwise
		"attention f32[1,12,1024,64] f32[1,12,1024,64] f32[1,12,1024,64] {axis=1}":                     0,                    // not valid
		"conv2d f32[1,3,224,224] f32[64,3,7,7] {dims=0,2,3,3,1,1,1}":                                   0,
		"embedding bf16[50257,768] i64[8,1024]":                                                        0,
		"reshape f32[1024,1024] {out=f32[1048576]}":                                                    0,
		"where bool[1024] f32[1024] f32[1024]":                                                         0,
		"cross_entropy f32[1000,10] i64[1000]":                                                         40000,
		"sum f32[1024,1024] {axes=0,1}":                                                                1 << 20,
		"conv2d f32[1,3,9,9] f32[4,3,3,3] {dims=1,1,0,0,4,4,1}":                                        2 * 4 * 27, // dilated: one place
		"layer_norm f32[8192,768] f32[768] f32[768]":                                                   8 * 8192 * 768,
		"matmul f32[0,1024] f32[1024,3]":                                                               0,
		"conv2d_grad_weight f32[1,64,112,112] f32[1,3,224,224] {out=f32[64,3,7,7] dims=2,2,3,3,1,1,1}": 236027904,
	} {
		o := parse(t, text)
		if got, _ := o.Cost(); got != want {
			t.Errorf("%s: %d operations, want %d", text, got, want)
		}
	}
}

// invalid has ops that a rule must refuse, and a part of what it must say.
var invalid = map[string][][2]string{
	"reshape": {{"f32[2,3]", "result type is missing"}, {"f32[2,3] {out=f32[5]}", "[2 3] has 6 elements, [5] has 5"}, {"f32[3,2]:1,3 {out=f32[6]}", "f32[3,2]:1,3 has no view of shape [6]"}},
	"permute": {{"f32[2,3] {dims=1,1}", "[1 1] is no permutation of 2"}, {"f32[2,3] {dims=0,2}", "no permutation"}, {"f32[2,3] {dims=-1,0}", "no permutation"}, {"f32[2,3] {dims=1,0,1}", "dims[2] is 1"}},
	"expand":  {{"f32[3]", "missing"}, {"f32[2,3] {out=f32[3]}", "fewer dimensions"}, {"f32[2] {out=f32[3]}", "[2] does not broadcast to [3]"}},
	"slice":   {{"f32[4] {dims=2,3,1}", "3 elements from 2 in steps of 1 of a dimension of 4"}, {"f32[4] {dims=0,1,0}", "steps of 0"}, {"f32[4] {axis=1 dims=0,1,1}", "dimension 1 of a value with 1"}, {"f32[4] {dims=-1,1,1}", "from -1"}, {"f32[4] {axis=-1 dims=0,1,1}", "dimension -1"}},

	"last_at": {
		{"i64[4] {out=f32[4]}", "places go to a type of i64"}, {"i64[4]", "places go to a type of i64"}, {"f32[3] i64[4] {out=i64[5]}", "keys f32[3]"},
		{"i64[4] {flag=descending out=i64[5]}", "descending order"}, {"i64[4,2] {out=i64[5,1]}", "exceed"}, {"f32[4] {out=i64[5]}", "not i64"},
	},
	"sort": {{"f32[4] {axis=1}", "dimension 1 of a value with 1"}, {"f32[4] {dims=5}", "the first 5 of 4"}, {"f32[4] {dims=-1}", "the first -1"}},

	"full":     {{"", "missing"}},
	"iota":     {{"", "missing"}, {"{out=bool[3]}", "needs a numeric dtype, got bool"}},
	"uniform":  {{"", "missing"}, {"{out=i64[3]}", "needs a floating dtype, got i64"}},
	"normal":   {{"", "missing"}, {"{out=u8[3]}", "floating"}},
	"rand_int": {{"", "missing"}, {"{out=bool[3]}", "numeric"}},
	"copy":     {{"f32[3] {out=f64[3]}", "f32[3] into f64[3]"}, {"f32[3] {out=f32[4]}", "into"}},
	"cast":     {{"f32[3]", "invalid is no dtype"}},

	"where": {{"f32[3] f32[3] f32[3]", "condition is f32, not bool"}, {"bool[3] f32[3] f64[3]", "operands bool[3], f32[3] and f64[3]"}, {"bool[2] f32[3] f32[3]", "operands"}},

	"sum":        {{"f32[2] {axes=1}", "dimensions 10 of a value with 1"}},
	"prod":       {{"f32[2] {axes=15}", "of a value with 1"}},
	"reduce_max": {{"f32[2,0] {axes=1}", "dimension 1 of [2 0] is empty"}, {"f32[2] {axes=3}", "of a value"}},
	"reduce_min": {{"f32[0] {axes=0}", "empty"}},
	"arg_max":    {{"f32[2,0] {axis=1}", "empty"}, {"f32[]", "dimension 0 of a value with 0"}},
	"arg_min":    {{"f32[0]", "empty"}, {"f32[2] {axis=1}", "dimension 1"}},
	"cumsum":     {{"f32[2] {axis=1}", "dimension 1"}},

	"matmul":             {{"f32[2,3] f32[2,3]", "[2 3] times [2 3]"}, {"f32[3] f32[3]", "times"}, {"f32[2,2,3] f32[4,3,2]", "leading sizes equal"}, {"f32[2,3] f64[3,2]", "dtypes f32 and f64"}, {"f32[2,3] f32[3,2] {dtype=bf16}", "sums of f32 in bf16"}, {"i32[2,3] i32[3,2] {dtype=i64}", "sums of i32"}},
	"bias_grad":          {{"f32[5]", "2 dimensions"}, {"f32[5,4] {act=gelu}", "activation gelu without"}, {"f32[5,4] f32[5,3] {act=gelu}", "gradient f32[5,4] of"}, {"f32[5,4] f32[5,4]", "activation none"}, {"f32[5,4] {dtype=f64}", "sums of f32 in f64"}},
	"conv2d":             {{"f32[4,5,5] f32[6,4,3,3] {dims=1,1,0,0,1,1,1}", "4 dimensions"}, {"f32[1,4,5,5] f32[6,3,3,3] {dims=1,1,0,0,1,1,1}", "4 channels"}, {"f32[1,4,2,5] f32[6,4,3,3] {dims=1,1,0,0,1,1,1}", "window of 3 over 2"}, {"f32[1,4,5,5] f32[6,4,3,3] {dims=0,1,0,0,1,1,1}", "stride 0"}, {"f32[1,4,5,5] f32[6,4,3,3]", "0 groups"}, {"f32[1,4,5,5] f32[6,4,3,3] f32[5] {dims=1,1,0,0,1,1,1}", "bias [5] for 6"}, {"f32[1,4,5,5] f64[6,4,3,3] {dims=1,1,0,0,1,1,1}", "dtypes"}, {"f32[1,4,5,5] f32[6,4,3,3] {dims=1,1,0,0,1,1,1,1}", "dims[7]"}},
	"conv2d_grad_input":  {{"f32[1,6,3,3] f32[6,4,3,3] {dims=1,1,0,0,1,1,1}", "missing"}, {"f32[1,6,4,3] f32[6,4,3,3] {out=f32[1,4,5,5] dims=1,1,0,0,1,1,1}", "gradient [1 6 4 3] of a result [1 6 3 3]"}, {"f32[1,6,3,3] f32[6,4,3,3] {out=f64[1,4,5,5] dims=1,1,0,0,1,1,1}", "dtypes"}},
	"conv2d_grad_weight": {{"f32[1,6,3,3] f32[1,4,5,5] {dims=1,1,0,0,1,1,1}", "missing"}, {"f32[1,6,3,3] f32[1,4,5,5] {out=f32[6,4,2,3] dims=1,1,0,0,1,1,1}", "of a result [1 6 4 3]"}},
	"max_pool2d":         {{"f32[4,4] {dims=2,2,2,2}", "4 dimensions"}, {"f32[1,1,4,4] {dims=2,2,2,2,2}", "padding 2×0 is not from 0 to half"}, {"f32[1,1,4,4] {dims=5,2,2,2}", "window of 5 over 4"}, {"f32[1,1,4,4]", "window of 0"}},
	"max_pool2d_grad":    {{"f32[1,1,2,2] i32[1,1,2,2] {out=f32[1,1,4,4] dims=2,2,2,2}", "with places i32"}, {"f32[1,1,2,2] i64[1,1,2,2] {dims=2,2,2,2}", "missing"}, {"f32[1,1,2,2] i64[1,1,2,2] {out=f32[1,1,6,6] dims=2,2,2,2}", "of a result [1 1 3 3]"}},
	"avg_pool2d":         {{"f32[1,1,4] {dims=2,2,2,2}", "4 dimensions"}, {"f32[1,1,4,4] {dims=2,2,-1,2}", "stride -1"}},
	"resample": {{"f32[4] {axis=1 dims=8}", "dimension 1 of a value with 1"}, {"f32[4] {dims=0}", "4 elements made 0"}, {"f32[0] {dims=4}", "0 elements made 4"}, {"f32[4] {dims=8,6}", "no curve 6"}, {"f32[4] {dims=8,256}", "no curve 256"},
		{"f32[4] {dims=8,0,1}", "no curve 0 with corners 1"}, {"f32[4] {dims=8,2,0,1072693248}", "8 results, 1 apart, reach beyond 4"}, {"f32[4] {dims=8,2,0,2146959360}", "NaN apart"}},
	"resample_grad":   {{"f32[8] {dims=8,2,0,1071644672}", "missing"}, {"f32[7] {out=f32[4] dims=8,2,0,1071644672}", "gradient f32[7] of a result [8]"}},
	"avg_pool2d_grad": {{"f32[1,1,2,2] {dims=2,2,2,2}", "missing"}, {"f32[1,1,2,2] {out=f64[1,1,4,4] dims=2,2,2,2}", "gradient f32"}},

	"gather":         {{"f32[5,3] i32[2,3]", "indices are i32, not i64"}, {"f32[5,3] i64[2]", "as many dimensions"}, {"f32[5,3] i64[2,4]", "exceed [5 3] in dimension 1"}, {"f32[5,3] i64[2,3] {axis=2}", "dimension 2"}},
	"scatter_add":    {{"f32[5,3] i64[2,3] f32[2,2]", "source f32[2,2]"}, {"f32[5,3] i64[2,3] f64[2,3]", "source"}, {"f32[5,3] f32[2,3] f32[2,3]", "not i64"}},
	"embedding":      {{"f32[5,3] i32[2]", "not i64"}, {"f32[5] i64[2]", "table [5]"}, {"f32[5,3] i64[1,1,1,1,1,1,1,1]", "table"}},
	"embedding_grad": {{"f32[2,3] i64[2]", "missing"}, {"f32[2,3] i64[3] {out=f32[5,3]}", "gradient f32[2,3] at indices [3]"}, {"f32[2,3] i32[2] {out=f32[5,3]}", "not i64"}},
	"cat":            {{"f32[2,3] f32[2,4]", "joined with [2 4] along dimension 0"}, {"f32[2,3] f64[2,3]", "joined with f64"}, {"f32[] f32[]", "dimension 0"}},
	"pad":            {{"f32[3] {dims=-1}", "negative padding -1"}, {"f32[3] {axis=1}", "dimension 1"}, {"f32[3] {dims=0,0,0,1}", "dims[3]"}, {"f32[1048576,1048576,256] {dims=2147483647}", "2^48"}},

	"linear":        {{"f32[5,3] f32[4,2]", "last size of both"}, {"f32[5,3] f32[4,3] f32[3]", "bias [3]"}, {"f32[5,3] f64[4,3]", "dtypes"}, {"f32[5,3] f32[4,3] f64[4]", "dtypes"}, {"f32[] f32[4,3]", "last size"}},
	"cross_entropy": {{"i64[4,10] i64[4]", "needs a floating dtype, got i64"}, {"f32[4,10] i32[4]", "not i64"}, {"f32[4,10] i64[5]", "with labels [5]"}, {"f32[10] i64[1]", "labels"}},
	"linear_cross_entropy": {{"f32[4,3] f32[10,3] i32[4]", "not i64"}, {"f32[4,3] bf16[10,3] i64[4]", "operands of dtypes"}, {"f32[4,3] f32[10,2] i64[4]", "the last of one size"},
		{"f32[4,3] f32[10,3] i64[5]", "with labels [5]"}, {"f32[2,2,3] f32[10,3] i64[4]", "two dimensions"}, {"f32[4,3] f32[10,3] i64[4] {flag=grad_x}", "without mean or total"}, {"f32[4,3] f32[10,3] i64[4] {flag=mean,total}", "not both"}},
	"linear_cross_entropy_grad": {{"f32[4,3] f32[10,3] i64[4] f32[4]", "neither the gradient of x nor"}, {"f32[4,3] f32[10,3] i64[4] f32[5] {flag=grad_x}", "operand 3 is f32[5]"},
		{"bf16[4,3] bf16[10,3] i64[4] bf16[4] {flag=grad_w}", "not f32[4]"}, {"f32[4,3] f32[10,3] i64[5] f32[4] {flag=grad_w}", "with labels [5]"}},
	"cross_entropy_grad": {{"f32[4,10] i64[4] f32[4] f32[5]", "f32[4] where f32[2,4] is needed"}, {"f32[4,10] i64[4] f32[2,4] f32[5]", "f32[5] where f32[4] is needed"}, {"bf16[4,10] i64[4] bf16[2,4] f32[4]", "bf16[2,4] where f32[2,4]"}, {"f32[4,10] i64[5] f32[4] f32[4]", "labels"}, {"f32[4,10] i64[4] f32[2,4] f32[4] f32[]", "5 operands, want 4"}, {"f32[4,10] i64[4] f32[2,4] f32[] {flag=mean}", "4 operands, want 5"}, {"f32[4,10] i64[4] f32[2,4] f32[4] f32[] {flag=mean}", "f32[4] where f32[] is needed"}},
	"layer_norm":         {{"f32[3]", "[3] must have 2 dimensions"}, {"f32[2,3] f32[2]", "operand 1 is f32[2], not f32[3]"}, {"bf16[2,3] f32[3]", "not bf16[3]"}},
	"layer_norm_grad":    {{"f32[2,3] f32[2,4] f32[2] f32[2]", "gradient f32[2,3] of f32[2,4]"}, {"f32[2,3] f32[2,3] f32[2] f32[3]", "statistics f32[3]"}, {"f32[2,3] f32[2,3] f32[2] f32[2] f32[2]", "operand 4"}, {"f32[3] f32[3] f32[3] f32[3]", "2 dimensions"}},
	"add_norm":           {{"f32[3] f32[3] f32[3]", "2 dimensions"}, {"f32[2,3] f32[3] f32[2]", "operand 2"}, {"f32[2,3] f32[3] f32[3] bf16[2,3]", "bf16[2,3] added to f32[2,3]"}, {"f32[2,3] f32[3] f32[3] {dtype=i64}", "f32[2,3] in i64"}, {"f32[2,3] f32[3] f32[3] {dtype=f64}", "in f64"}},
	"lstm_step":          {{"f32[2,12] f32[2,12] f32[3]", "2 dimensions"}, {"f32[2,12] f32[2,9] f32[2,3]", "operand 1"}, {"f32[2,12] f64[2,12] f32[2,3]", "operand 1"}},
	"lstm_step_grad":     {{"f32[3] f32[2,3] f32[2,12] f32[2,3] f32[2,3]", "2 dimensions"}, {"f32[2,3] f32[2,3] f32[2,9] f32[2,3] f32[2,3]", "operand 2"}, {"f32[2,3] f32[2,3] f32[2,12] f32[2,3] f32[2,4]", "operand 4"}},
	"add_norm_grad":      {{"f32[2,3] f64[2,3] f32[2] f32[2] f32[3]", "gradient f64[2,3]"}, {"f32[2,3] f32[2,3] f32[2] f32[3] f32[3]", "statistics"}, {"f32[2,3] f32[2,3] f32[2] f32[2] f32[2]", "operand 4"}, {"f32[2,3] f32[2,3] f32[2] f32[2] f32[3] bf16[2,3]", "added to the gradient"}, {"f32[3] f32[3] f32[3] f32[3] f32[3]", "2 dimensions"}},
	"rms_norm":           {{"f32[2,3,4]", "2 dimensions"}, {"f32[2,3] f32[2]", "operand 1"}},
	"rms_norm_grad":      {{"f32[2,3] f32[2,3] f64[2]", "statistics"}, {"f32[2,3] f32[2,3] f32[2] f32[2]", "operand 3"}},
	"batch_norm":         {{"f32[2,3] f32[3] f32[3]", "3 dimensions"}, {"f32[2,3,4] f32[2] f32[3]", "operand 1"}, {"f32[0,3,4] f32[3] f32[3]", "no values per channel"}, {"f32[2,3,4] f32[3] f32[3] f32[2,3,5]", "operand 3"}, {"f32[2,3,4] f32[3] f32[3] {act=gelu}", "none or relu"}},
	"batch_norm_grad":    {{"f32[2,3,4] f32[2,3,5] f32[3] f32[3] f32[3]", "gradient"}, {"f32[2,3,4] f32[2,3,4] f32[4] f32[3] f32[3]", "operand 2"}, {"f32[2,3,4] f32[2,3,4] f32[3] f32[3] f32[3] {flag=residual}", "itself"}},
	"batch_norm_eval":    {{"f32[2,3,4] f32[3] f32[3] f32[3] f32[4]", "operand 4"}, {"f32[2,3,4] f32[3] f32[3] f32[3] f32[3] f32[2,3]", "operand 5"}},
	"attention":          {{"f32[1,2,4,8] f32[1,2,6,7] f32[1,2,6,3]", "queries [1 2 4 8], keys [1 2 6 7]"}, {"f32[2,4,8] f32[2,6,8] f32[2,6,3]", "4 dimensions"}, {"i64[1,2,4,8] i64[1,2,6,8] i64[1,2,6,3]", "needs a floating dtype"}, {"f32[1,2,4,8] f32[1,2,6,8] f32[1,2,6,3] bool[4,6]", "mask bool[4,6]"}, {"f32[1,2,4,8] f64[1,2,6,8] f32[1,2,6,3]", "dtypes"}},
	"attention_grad":     {{"f32[1,2,4,8] f32[1,2,4,8] f32[1,2,6,8] f32[1,2,6,3] f32[1,2,4,3] f32[1,2,4]", "f32[1,2,4,8] where f32[1,2,4,3] is needed"}, {"f32[1,2,4,3] f32[1,2,4,8] f32[1,2,6,8] f32[1,2,6,3] f32[1,2,4,3] f32[1,2,5]", "f32[1,2,5] where"}, {"f32[1,2,4,3] f32[1,2,4,8] f32[1,2,5,8] f32[1,2,6,3] f32[1,2,4,3] f32[1,2,4]", "keys"}},
	"sum_squares":        {{"f32[3] i64[3]", "operand i64[3] is not floating"}},
	"sgd":                {{"f32[1] f32[3] f32[3]", "scale is f32[1]"}, {"f32[] f32[3] f32[3] f32[3]", "3 operands in groups of 2"}, {"f32[] f32[3] f32[4]", "parameter f32[3] with f32[4]"}, {"f32[] f32[3] f32[3] {flag=momentum}", "groups of 3"}, {"f32[] f32[3]:2 f32[3]", "row-major"}, {"f32[] f32[3] f32[3] {flag=coupled}", "flag coupled is set"}},
	"adam8bit":           {{"f32[] f64[256]", "codes are f64[256]"}, {"f32[1] f64[512]", "scale is f32[1]"}, {"f32[] f64[512] f32[3] f32[3]", "groups of 7"}, {"f32[] f64[512] i64[3] f32[3] u8[3] u8[3] f32[1] f32[1] i64[]", "parameter i64[3]"}, {"f32[] f64[512] f32[3] f32[3] u8[3] u8[3] f32[2] f32[1] i64[]", "operand 4 of parameter f32[3] is f32[2]"}},
	"adamw":              {{"f32[] f32[3] f32[3] f32[3]", "groups of 5"}, {"f32[] i64[3] i64[3] i64[3] i64[3] i64[]", "parameter i64[3]"}, {"f32[] f32[3] f32[3] f32[3] f32[3] i64[] {flag=momentum}", "flag momentum"}, {"f32[] f32[3] f32[3] f32[3] f32[3] i64[1]", "number of an update is i64[1], not i64[]"}, {"f32[] f32[3] f32[3] f32[3] f32[3] f32[]", "number of an update is f32[]"}},
	"grad_norm":          {{"i64[3] i64[2] f32[3]", "counts i64[3] with turn i64[2]"}, {"i64[] i64[] f32[3]", "vectors of one length"}, {"i64[3] i64[3] i64[2]", "operand i64[2] is not floating"}, {"i64[3]:2 i64[3]:2 f32[3]", "counts"}},
	"cast_all":           {{"f32[3] i64[2] {dtype=bf16}", "operand i64[2] is not floating"}, {"f32[3] {dtype=i32}", "i32 is not floating"}},
	"track_moments":      {{"f32[3] f32[3] i64[] f32[4] f32[3]", "operand 3 is f32[4]"}, {"f32[3] f32[3] i64[1] f32[3] f32[3]", "count is i64[1]"}, {"f32[1,3] f32[1,3] i64[] f32[1,3] f32[1,3]", "not a row-major vector"}},
	"loss_scale":         {{"f64[] f64[] i64[]", "operand 0 is f64[], not f32[]"}, {"f32[] f32[] i64[]", "operand 1 is f32[], not f64[]"}, {"f32[] f64[] i64[] i64[] i64[1]", "operand 4 is i64[1], not i64[]"}},

	"self_attention":      {{"f32[1,4,2,2,8]", "[batch, positions, 3, heads, width]"}, {"f32[1,4,48]", "5 dimensions"}, {"i64[1,4,3,2,8]", "needs a floating dtype"}, {"f32[1,4,3,2,8] bool[1,2,4,3]", "mask bool[1,2,4,3]"}},
	"self_attention_grad": {{"f32[1,2,4,8] f32[1,4,3,2,8] f32[1,4,2,8] f32[1,2,4]", "f32[1,2,4,8] where f32[1,4,2,8] is needed"}, {"f32[1,4,2,8] f32[1,4,3,2,8] f32[1,4,2,8] f32[1,4,2]", "f32[1,4,2] where"}, {"f32[1,4,2,8] f32[1,4,48] f32[1,4,2,8] f32[1,2,4]", "5 dimensions"}},
}

func TestInvalidOps(t *testing.T) {
	for name, cases := range invalid {
		for _, c := range cases {
			o := parse(t, name+" "+c[0])
			out, err := o.Infer()
			if err == nil {
				t.Errorf("%s is accepted, with %s", o, typesText(out))
			} else if !strings.Contains(err.Error(), c[1]) || !strings.HasPrefix(err.Error(), name+": ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %q, want %q", o, err, c[1])
			}
		}
	}
}

// TestEveryRowRefuses breaks the example of every code in the ways that the table's columns forbid.
func TestEveryRowRefuses(t *testing.T) {
	refuses := func(o Op, want string) {
		t.Helper()
		if _, err := o.Infer(); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), o.Code.String()) {
			t.Errorf("%s: %v, want %q", o, err, want)
		}
	}
	uses := []Op{}
	for _, e := range examples {
		uses = append(uses, parse(t, e.text))
	}
	for c := Invalid + 1; c < codeCount; c++ {
		if o, ok := ofRow(c); ok {
			uses = append(uses, o)
		}
	}
	for _, o := range uses {
		r, in := table[o.Code], o.Ins()
		if r.min > 0 {
			refuses(New(o.Code, o.Attr, in[:r.min-1]...), "operands, got")
			for _, dt := range dtype.All() {
				if !r.Class.Has(dt) {
					refuses(New(o.Code, o.Attr, append([]*Type{in[0].As(dt)}, in[1:]...)...), "needs "+classNames[r.Class]+", got "+dt.String())
				}
			}
		}
		if r.max != many {
			more := append([]*Type{}, in...)
			for len(more) <= r.max {
				more = append(more, Dense(dtype.F32, 4))
			}
			refuses(New(o.Code, o.Attr, more...), "operands, got")
		}
		if r.min == 2 && (r.Class == Floats || r.Class == Numbers) && len(in) == 2 && r.infer != nil && r.reads.fields == 0 && in[0] == in[1] {
			refuses(New(o.Code, o.Attr, in[0], in[0].As(dtype.F16)), "operands of dtypes")
			refuses(New(o.Code, o.Attr, in[0], Dense(in[0].DType, 7)), "operands of shapes")
		}
		if r.OverAxes() {
			refuses(New(o.Code, Attr{Axes: 1 << in[0].Rank()}, in...), "of a value with")
		}
		for f := fieldOut; f <= fieldDims; f <<= 1 {
			if r.reads.fields&f == 0 {
				refuses(New(o.Code, with(o.Attr, f), in...), f.String()+" is set")
			}
		}
	}
	refuses(New(Linear, Attr{Act: 9}, Dense(dtype.F32, 2, 3), Dense(dtype.F32, 4, 3)), "no activation 9")
	for _, o := range []Op{{}, {Code: codeCount}, {Code: 255}} {
		if _, err := o.Infer(); err == nil || !strings.Contains(err.Error(), "is no operation") {
			t.Errorf("%v: %v", o.Code, err)
		}
	}
}

// with sets an attribute.
func with(a Attr, f fields) Attr {
	switch f {
	case fieldOut:
		a.Out = Dense(dtype.F32, 4)
	case fieldDType:
		a.DType = dtype.F32
	case fieldAxis:
		a.Axis = 1
	case fieldAxes:
		a.Axes = 1
	case fieldKeep:
		a.Keep = true
	case fieldCausal:
		a.Causal = true
	case fieldAct:
		a.Act = ActReLU
	case fieldFlag:
		a.Flag = Momentum
	case fieldPrecision:
		a.Precision = High
	case fieldDims:
		a.Dims[0] = 1
	}
	return a
}

// TestTableIsComplete finds codes that a row was forgotten for.
func TestTableIsComplete(t *testing.T) {
	names := map[string]Code{}
	for c := Invalid + 1; c < codeCount; c++ {
		r := table[c]
		if r.Name == "" || r.infer == nil || r.min > r.max || r.Params > MaxParams {
			t.Errorf("row %d (%q) is incomplete: %+v", c, r.Name, r)
		}
		if other, ok := names[r.Name]; ok {
			t.Errorf("codes %d and %d are both %q", other, c, r.Name)
		}
		names[r.Name] = c
		own := invalid[r.Name] != nil || r.OverAxes() || r.Rule != nil // which checkRule and TestEveryRowRefuses breaks
		if generic := r.reads.fields == 0 && r.max < many && r.min <= 2; !own && !generic {
			t.Errorf("%s has no invalid examples", c)
		}
	}
}
