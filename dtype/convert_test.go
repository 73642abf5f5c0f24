package dtype

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
)

// sources holds awkward values of every type.
var sources = []any{
	[]float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -2.75, 1e-40, 65520, 3e38, 1 << 24, 300, -300, 2147483648, -2147483904, 9.3e18,
		float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))},
	[]float64{0, math.Copysign(0, -1), 1, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-8 + 0x1p-45, 1 + 0x1p-24 + 0x1p-50, -2.999999999, 5e-324, 1e300, 2147483647.9, -2147483648.9,
		9.3e18, -9.3e18, math.NaN(), math.Inf(1), math.Inf(-1), 255.9, 256, -1},
	[]Float16{0, 0x8000, 1, 0x3c00, 0xbc00, 0x3c01, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x5c20},
	[]BFloat16{0, 0x8000, 1, 0x3f80, 0xbf80, 0x4f00, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x4380},
	[]int64{0, 1, -1, 255, 256, 257, 65519, 65520, 1<<24 + 1, 1<<31 - 1, 1 << 31, -1<<31 - 1, 1<<53 + 1, 1<<62 + 1<<54 + 1, -(1<<62 + 1<<54 + 1), 1<<62 + 1<<54, math.MaxInt64, math.MinInt64},
	[]int32{0, 1, -1, 255, 256, 65520, 1<<24 + 1, math.MaxInt32, math.MinInt32},
	[]uint8{0, 1, 2, 127, 128, 255},
	[]bool{false, true},
	patterns[Float8E4M3](),
	patterns[Float8E5M2](),
}

// patterns are all values of an 8-bit type.
func patterns[T Float8E4M3 | Float8E5M2]() (all []T) {
	for i := range 256 {
		all = append(all, T(i))
	}
	return all
}

// exact is the value of one element: a NaN, an infinity or a rational number.
type exact struct {
	special float64
	number  *big.Float
	minus   bool // the sign of zero
}

func exactOf(v any) exact {
	var f float64
	switch v := v.(type) {
	case float32:
		f = float64(v)
	case float64:
		f = v
	case Float16:
		f = formats[0].value(uint16(v))
	case BFloat16:
		f = formats[1].value(uint16(v))
	case Float8E4M3:
		f = v.Float64()
	case Float8E5M2:
		f = v.Float64()
	case int64:
		return exact{number: new(big.Float).SetInt64(v)}
	case int32:
		f = float64(v)
	case uint8:
		f = float64(v)
	case bool:
		if v {
			f = 1
		}
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return exact{special: f}
	}
	return exact{number: new(big.Float).SetFloat64(f), minus: f == 0 && math.Signbit(f)}
}

// rounded returns x as an element of the 16-bit format, from the exact value.
func (x exact) rounded(f format16) float64 {
	if x.number == nil {
		return x.special
	}
	// nearest compares with values and midpoints that float64 holds: a sticky bit keeps the comparison exact.
	y, accuracy := x.number.Float64()
	if accuracy != big.Exact && math.Float64bits(y)&1 == 0 {
		toward := math.Inf(1)
		if accuracy == big.Above {
			toward = math.Inf(-1)
		}
		y = math.Nextafter(y, toward)
	}
	if x.minus {
		y = math.Copysign(0, -1)
	}
	return f.value(f.nearest(y))
}

// truncated returns x as an integer between low and high, beyond them the limit.
func (x exact) truncated(low, high int64) int64 {
	switch {
	case x.number != nil:
		n, accuracy := x.number.Int64()
		_ = accuracy // Int64 saturates
		return min(max(n, low), high)
	case math.IsInf(x.special, 1):
		return high
	case math.IsInf(x.special, -1):
		return low
	}
	return 0
}

// want converts one element by definition, in exact arithmetic.
func want(v any, d DType) any {
	x := exactOf(v)
	_, fromInt64 := v.(int64)
	switch d {
	case F32:
		if x.number == nil {
			return float32(x.special)
		}
		f, _ := x.number.Float32()
		if x.minus {
			f = float32(math.Copysign(0, -1))
		}
		return f
	case F64:
		if x.number == nil {
			return x.special
		}
		f, _ := x.number.Float64()
		if x.minus {
			f = math.Copysign(0, -1)
		}
		return f
	case F16:
		return x.rounded(formats[0])
	case BF16:
		return x.rounded(formats[1])
	case F8E4M3:
		return x.rounded8(d, true)
	case F8E5M2:
		return x.rounded8(d, false)
	case I64:
		return x.truncated(math.MinInt64, math.MaxInt64)
	case I32:
		if fromInt64 {
			return int32(v.(int64))
		}
		return int32(x.truncated(math.MinInt32, math.MaxInt32))
	case U8:
		return uint8(x.truncated(math.MinInt64, math.MaxInt64))
	}
	return x.number == nil || x.number.Sign() != 0
}

// same compares a converted element with its expected value, bit for bit except NaN.
func same(got, want any) bool {
	switch g := got.(type) {
	case Float16:
		return same(formats[0].value(uint16(g)), want)
	case BFloat16:
		return same(formats[1].value(uint16(g)), want)
	case Float8E4M3:
		return same(g.Float64(), want)
	case Float8E5M2:
		return same(g.Float64(), want)
	case float32:
		w := want.(float32)
		return math.Float32bits(g) == math.Float32bits(w) || g != g && w != w
	case float64:
		w := want.(float64)
		return math.Float64bits(g) == math.Float64bits(w) || g != g && w != w
	}
	return got == want
}

func TestConvertEveryPair(t *testing.T) {
	for _, src := range sources {
		convertFrom(t, src)
	}
}

func convertFrom(t *testing.T, src any) {
	switch s := src.(type) {
	case []float32:
		convertToAll(t, s)
	case []float64:
		convertToAll(t, s)
	case []Float16:
		convertToAll(t, s)
	case []BFloat16:
		convertToAll(t, s)
	case []int64:
		convertToAll(t, s)
	case []int32:
		convertToAll(t, s)
	case []uint8:
		convertToAll(t, s)
	case []bool:
		convertToAll(t, s)
	case []Float8E4M3:
		convertToAll(t, s)
	case []Float8E5M2:
		convertToAll(t, s)
	default:
		t.Errorf("no test of %T", src)
	}
}

func convertToAll[S Element](t *testing.T, src []S) {
	checkPair[float32](t, src)
	checkPair[float64](t, src)
	checkPair[Float16](t, src)
	checkPair[BFloat16](t, src)
	checkPair[int64](t, src)
	checkPair[int32](t, src)
	checkPair[uint8](t, src)
	checkPair[bool](t, src)
	checkPair[Float8E4M3](t, src)
	checkPair[Float8E5M2](t, src)
}

func checkPair[D, S Element](t *testing.T, src []S) {
	dst := make([]D, len(src))
	if n := Convert(dst, src); n != len(src) {
		t.Errorf("Convert returned %d, want %d", n, len(src))
	}
	again := make([]D, len(src))
	if err := ConvertSlices(again, src); err != nil {
		t.Error(err)
	}
	from, to := Of[S](), Of[D]()
	for i, v := range src {
		w := want(v, to)
		if one := []S{v}; from != I64 {
			var wide [1]float64
			Convert(wide[:], one)
			var back [1]D
			Convert(back[:], wide[:])
			bits := to.Encode(wide[0])
			if to.Encode(to.Decode(bits)) != bits && wide[0] == wide[0] && to.Decode(bits) == to.Decode(bits) || !same(asFloat(back[0]), to.Decode(bits)) {
				t.Errorf("%v %v to %v: the bits %#x", from, v, to, bits)
			}
		}
		if !same(dst[i], w) || !same(again[i], w) {
			t.Errorf("%v %v to %v: got %v and %v, want %v", Of[S](), v, Of[D](), dst[i], again[i], w)
		}
	}
}

// asFloat is an element as Convert widens it.
func asFloat[T Element](v T) float64 {
	var wide [1]float64
	Convert(wide[:], []T{v})
	return wide[0]
}

func TestConvertShorter(t *testing.T) {
	dst := []int32{7, 7, 7}
	if n := Convert(dst, []float32{1, 2}); n != 2 || dst[2] != 7 {
		t.Errorf("Convert wrote %d elements: %v", n, dst)
	}
	if n := Convert(dst[:1], []bool{false, true}); n != 1 || fmt.Sprint(dst) != "[0 2 7]" {
		t.Errorf("Convert wrote %d elements: %v", n, dst)
	}
	if n := Convert[bool, Float16](nil, nil); n != 0 {
		t.Errorf("Convert of nothing returned %d", n)
	}
}

func TestConvertSlicesErrors(t *testing.T) {
	for _, c := range []struct {
		dst, src any
		words    string
	}{
		{[]float32{0}, []string{"x"}, "[]string"},
		{[]uint16{0}, []float32{1}, "[]uint16"},
		{nil, []float32{1}, "<nil>"},
		{[]float32{0, 0}, []float64{1}, "1 elements into 2"},
	} {
		if err := ConvertSlices(c.dst, c.src); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%T from %T: error %v, want one with %q", c.dst, c.src, err, c.words)
		}
	}
}

func TestConvertDoesNotAllocate(t *testing.T) {
	dst, src := make([]BFloat16, 64), make([]float32, 64)
	if n := testing.AllocsPerRun(100, func() { Convert(dst, src) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func benchmarkConvert[D, S Element](b *testing.B, name string) {
	b.Run(name, func(b *testing.B) {
		dst, src := make([]D, 4096), make([]S, 4096)
		b.SetBytes(4096 * int64(Of[S]().Size()+Of[D]().Size()))
		for b.Loop() {
			Convert(dst, src)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/4096, "ns/element")
	})
}

func BenchmarkConvert(b *testing.B) {
	benchmarkConvert[Float16, float32](b, "f32-f16")
	benchmarkConvert[float32, Float16](b, "f16-f32")
	benchmarkConvert[BFloat16, float32](b, "f32-bf16")
	benchmarkConvert[float32, BFloat16](b, "bf16-f32")
	benchmarkConvert[Float16, float64](b, "f64-f16")
	benchmarkConvert[float32, float64](b, "f64-f32")
	benchmarkConvert[float32, uint8](b, "u8-f32")
	benchmarkConvert[int64, float32](b, "f32-i64")
}
