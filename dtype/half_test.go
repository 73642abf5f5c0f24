package dtype

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// format16 is one of the 16-bit types, described for the tests by its widths only.
type format16 struct {
	name               string
	exponent, mantissa int
	to32               func(uint16) float32
	to64               func(uint16) float64
	from32             func(float32) uint16
	from64             func(float64) uint16
}

var formats = []format16{
	{"f16", 5, 10,
		func(b uint16) float32 { return Float16(b).Float32() },
		func(b uint16) float64 { return Float16(b).Float64() },
		func(f float32) uint16 { return uint16(F16FromFloat32(f)) },
		func(f float64) uint16 { return uint16(F16FromFloat64(f)) }},
	{"bf16", 8, 7,
		func(b uint16) float32 { return BFloat16(b).Float32() },
		func(b uint16) float64 { return BFloat16(b).Float64() },
		func(f float32) uint16 { return uint16(BF16FromFloat32(f)) },
		func(f float64) uint16 { return uint16(BF16FromFloat64(f)) }},
}

// value decodes a pattern by the definition of the format.
func (f format16) value(b uint16) float64 {
	var (
		bias     = 1<<(f.exponent-1) - 1
		exponent = int(b>>f.mantissa) & (1<<f.exponent - 1)
		mantissa = int(b) & (1<<f.mantissa - 1)
		sign     = 1.0
	)
	if b&0x8000 != 0 {
		sign = -1
	}
	switch {
	case exponent == 1<<f.exponent-1 && mantissa != 0:
		return math.NaN()
	case exponent == 1<<f.exponent-1:
		return math.Inf(int(sign))
	case exponent == 0:
		return math.Copysign(math.Ldexp(float64(mantissa), 1-bias-f.mantissa), sign)
	}
	return sign * math.Ldexp(float64(1<<f.mantissa+mantissa), exponent-bias-f.mantissa)
}

// infinity is the pattern of +Inf.
func (f format16) infinity() uint16 { return uint16(1<<f.exponent-1) << f.mantissa }

// nearest rounds by search among the values of the format: positive patterns are
// in the order of their values, and a midpoint of neighbours is exact in float64.
func (f format16) nearest(x float64) uint16 {
	sign := uint16(0)
	if math.Signbit(x) {
		sign, x = 0x8000, -x
	}
	inf := int(f.infinity())
	up := sort.Search(inf, func(b int) bool { return f.value(uint16(b)) >= x })
	if up < inf && f.value(uint16(up)) == x {
		return sign | uint16(up)
	}
	down := up - 1
	next := f.value(uint16(up))
	if up == inf {
		next = 2*f.value(uint16(down)) - f.value(uint16(down-1)) // as if the exponent had no end
	}
	middle := (f.value(uint16(down)) + next) / 2
	if x > middle || x == middle && down%2 == 1 {
		return sign | uint16(up)
	}
	return sign | uint16(down)
}

func TestWidenAllPatterns(t *testing.T) {
	for _, f := range formats {
		for b := range 1 << 16 {
			want, got := f.value(uint16(b)), f.to32(uint16(b))
			if math.IsNaN(want) {
				if !math.IsNaN(float64(got)) || !math.IsNaN(f.to64(uint16(b))) {
					t.Fatalf("%s %#04x: got %v, want NaN", f.name, b, got)
				}
				continue
			}
			if math.Float64bits(float64(got)) != math.Float64bits(want) || f.to64(uint16(b)) != want {
				t.Fatalf("%s %#04x: got %v, want %v", f.name, b, got, want)
			}
			if back := f.from32(got); back != uint16(b) {
				t.Fatalf("%s %#04x returns from float32 as %#04x", f.name, b, back)
			}
			if back := f.from64(want); back != uint16(b) {
				t.Fatalf("%s %#04x returns from float64 as %#04x", f.name, b, back)
			}
		}
	}
}

// Every midpoint of neighbouring values and what lies just beside it, in both
// signs. The float64 neighbours of a midpoint are those that rounding by way of
// float32 gets wrong.
func TestNarrowMidpoints(t *testing.T) {
	for _, f := range formats {
		for b := uint16(0); b < f.infinity(); b++ {
			low := f.value(b)
			high := f.value(b + 1)
			if b+1 == f.infinity() {
				high = 2*low - f.value(b-1)
			}
			middle := (low + high) / 2
			even := b + b&1
			for _, c := range []struct {
				x    float64
				want uint16
			}{
				{middle, even},
				{math.Nextafter(middle, 0), b},
				{math.Nextafter(middle, math.Inf(1)), b + 1},
				{math.Nextafter(low, math.Inf(1)), b},
				{math.Nextafter(high, 0), b + 1},
			} {
				if got := f.from64(c.x); got != c.want {
					t.Fatalf("%s: %x gives %#04x, want %#04x", f.name, c.x, got, c.want)
				}
				if got := f.from64(-c.x); got != c.want|0x8000 {
					t.Fatalf("%s: %x gives %#04x, want %#04x", f.name, -c.x, got, c.want|0x8000)
				}
			}
			// Midpoints are exact in float32 too, down to its own subnormals.
			m32 := float32(middle)
			if float64(m32) == middle {
				checkNarrow32(t, f, m32, even)
				checkNarrow32(t, f, math.Nextafter32(m32, 0), b)
				checkNarrow32(t, f, math.Nextafter32(m32, float32(math.Inf(1))), b+1)
			}
		}
	}
}

func checkNarrow32(t *testing.T, f format16, x float32, want uint16) {
	t.Helper()
	if got := f.from32(x); got != want {
		t.Fatalf("%s: float32 %x gives %#04x, want %#04x", f.name, x, got, want)
	}
	if got := f.from32(-x); got != want|0x8000 {
		t.Fatalf("%s: float32 %x gives %#04x, want %#04x", f.name, -x, got, want|0x8000)
	}
}

func TestNarrowRandom(t *testing.T) {
	r := testutil.Rand(t)
	for _, f := range formats {
		for range 100_000 {
			bits := r.Uint64()
			if r.IntN(2) == 0 { // near the range of the format
				bits = bits&^(0x7ff<<52) | uint64(1023-150+r.IntN(300))<<52
			}
			x := math.Float64frombits(bits)
			if math.IsNaN(x) {
				continue
			}
			if got, want := f.from64(x), f.nearest(x); got != want {
				t.Fatalf("%s: %x gives %#04x, want %#04x", f.name, x, got, want)
			}
			x32 := float32(x)
			if got, want := f.from32(x32), f.nearest(float64(x32)); got != want {
				t.Fatalf("%s: float32 %x gives %#04x, want %#04x", f.name, x32, got, want)
			}
		}
	}
}

func TestNarrowNaN(t *testing.T) {
	for _, f := range formats {
		quiet := f.infinity() | 1<<(f.mantissa-1)
		for _, sign := range []uint16{0, 0x8000} {
			for _, signalling := range []bool{false, true} {
				for payload := range uint16(1) << (f.mantissa - 1) {
					want := sign | quiet | payload
					b32 := uint32(sign)<<16 | 0xff<<23 | uint32(payload)<<(23-f.mantissa) | 1
					b64 := uint64(sign)<<48 | 0x7ff<<52 | uint64(payload)<<(52-f.mantissa) | 1
					if !signalling {
						b32 |= 1 << 22
						b64 |= 1 << 51
					}
					if got := f.from32(math.Float32frombits(b32)); got != want {
						t.Fatalf("%s: NaN %#08x gives %#04x, want %#04x", f.name, b32, got, want)
					}
					if got := f.from64(math.Float64frombits(b64)); got != want {
						t.Fatalf("%s: NaN %#016x gives %#04x, want %#04x", f.name, b64, got, want)
					}
				}
			}
		}
	}
}

func TestWidenNaNPayload(t *testing.T) {
	for b := Float16(0x7c01); b < 0x8000; b++ {
		for _, h := range []Float16{b, b | 0x8000} {
			want := uint32(h&0x8000)<<16 | 0x7fc00000 | uint32(h&0x3ff)<<13
			if got := math.Float32bits(h.Float32()); got != want {
				t.Fatalf("f16 NaN %#04x widens to %#08x, want %#08x", h, got, want)
			}
		}
	}
}

// goldenLines returns the lines of a file in testdata that are no comments.
func goldenLines(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []string
	for s := bufio.NewScanner(f); s.Scan(); {
		if !strings.HasPrefix(s.Text(), "#") {
			lines = append(lines, s.Text())
		}
	}
	if len(lines) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return lines
}

// PyTorch's vectors round twice, by way of float32; NumPy's, once.
func TestNarrowAgainstPyTorchAndNumPy(t *testing.T) {
	for _, line := range goldenLines(t, "narrow.txt") {
		var bits uint64
		var torch16, torchB16, numpy16 uint16
		if _, err := fmt.Sscanf(line, "%x %x %x %x", &bits, &torch16, &torchB16, &numpy16); err != nil {
			t.Fatal(err)
		}
		x := math.Float64frombits(bits)
		if got := uint16(F16FromFloat64(x)); got != numpy16 {
			t.Errorf("%x to f16: %#04x, NumPy has %#04x", x, got, numpy16)
		}
		if got := uint16(F16FromFloat32(float32(x))); got != torch16 {
			t.Errorf("%x to f16 by way of f32: %#04x, PyTorch has %#04x", x, got, torch16)
		}
		if got := uint16(BF16FromFloat32(float32(x))); got != torchB16 {
			t.Errorf("%x to bf16 by way of f32: %#04x, PyTorch has %#04x", x, got, torchB16)
		}
	}
}

func TestString(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{F16FromFloat32(1.5).String(), "1.5"},
		{BF16FromFloat32(-2).String(), "-2"},
		{Float16(0x7c00).String(), "+Inf"},
		{BFloat16(0x7fc0).String(), "NaN"},
		{BF16.String(), "bf16"},
		{DType(0).String(), "invalid"},
		{DType(200).String(), "dtype(200)"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
