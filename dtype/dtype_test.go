package dtype

import (
	"math"
	"strings"
	"testing"
)

func TestPromoteAgainstPyTorch(t *testing.T) {
	lines := goldenLines(t, "promote.txt")
	if want := len(All()) * len(All()); len(lines) != want {
		t.Fatalf("promote.txt has %d pairs, want %d", len(lines), want)
	}
	for _, line := range lines {
		var d [3]DType
		for i, name := range strings.Fields(line) {
			var err error
			if d[i], err = Parse(name); err != nil && (i < 2 || name != "none") {
				t.Fatal(err)
			}
		}
		if got := Promote(d[0], d[1]); got != d[2] {
			t.Errorf("Promote(%v, %v) = %v, PyTorch has %v", d[0], d[1], got, d[2])
		}
	}
	if got := Promote(F32, Invalid); got != Invalid {
		t.Errorf("Promote(f32, invalid) = %v", got)
	}
	if got := Promote(DType(99), F32); got != Invalid {
		t.Errorf("Promote(dtype(99), f32) = %v", got)
	}
}

func TestParse(t *testing.T) {
	for _, d := range All() {
		names := []string{d.String(), d.Safetensors(), d.Torch(), "torch." + d.Torch(), strings.ToUpper(d.Torch())}
		if s, ok := d.NumPy(); ok {
			names = append(names, s)
		}
		for _, name := range names {
			if got, err := Parse(name); got != d || err != nil {
				t.Errorf("Parse(%q) = %v, %v; want %v", name, got, err, d)
			}
		}
	}
	for name, want := range map[string]DType{"torch.half": F16, "long": I64, "double": F64, "int": I32, "float": F32} {
		if got, err := Parse(name); got != want || err != nil {
			t.Errorf("Parse(%q) = %v, %v; want %v", name, got, err, want)
		}
	}
	for _, name := range []string{"", "invalid", "torch.", "f8", "complex64", ">f4", "f32 "} {
		if got, err := Parse(name); err == nil || got != Invalid {
			t.Errorf("Parse(%q) = %v, want an error", name, got)
		}
	}
	if _, err := Parse("int4"); err == nil || !strings.Contains(err.Error(), `"int4"`) {
		t.Errorf("the error does not quote the name: %v", err)
	}
}

func TestFacts(t *testing.T) {
	for _, c := range []struct {
		d                        DType
		size, exponent, mantissa int
		epsilon, max, normal     float64
		subnormal                float64
	}{
		// torch.finfo and torch.iinfo of PyTorch.
		{F32, 4, 8, 23, 0x1p-23, math.MaxFloat32, 0x1p-126, math.SmallestNonzeroFloat32},
		{F64, 8, 11, 52, 0x1p-52, math.MaxFloat64, 0x1p-1022, math.SmallestNonzeroFloat64},
		{F16, 2, 5, 10, 0x1p-10, 65504, 0x1p-14, 0x1p-24},
		{BF16, 2, 8, 7, 0.0078125, 3.3895313892515355e38, 0x1p-126, 0x1p-133},
		{I64, 8, 0, 0, 0, 9223372036854775807, 0, 0},
		{I32, 4, 0, 0, 0, 2147483647, 0, 0},
		{U8, 1, 0, 0, 0, 255, 0, 0},
		{Bool, 1, 0, 0, 0, 1, 0, 0},
		{F8E4M3, 1, 4, 3, 0.125, 448, 0.015625, 0.001953125},
		{F8E5M2, 1, 5, 2, 0.25, 57344, 6.103515625e-05, 1.52587890625e-05},
		{Invalid, 0, 0, 0, 0, 0, 0, 0},
		{DType(77), 0, 0, 0, 0, 0, 0, 0},
	} {
		d := c.d
		if d.Size() != c.size || d.Bits() != 8*c.size || d.ExponentBits() != c.exponent || d.MantissaBits() != c.mantissa ||
			d.Epsilon() != c.epsilon || d.Max() != c.max || d.SmallestNormal() != c.normal || d.SmallestSubnormal() != c.subnormal {
			t.Errorf("%v: size %d bits %d exponent %d mantissa %d epsilon %v max %v normal %v subnormal %v", d, d.Size(), d.Bits(),
				d.ExponentBits(), d.MantissaBits(), d.Epsilon(), d.Max(), d.SmallestNormal(), d.SmallestSubnormal())
		}
	}
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		d                    DType
		float, integer, sign bool
		lowest               float64
	}{
		{F32, true, false, true, -math.MaxFloat32},
		{F16, true, false, true, -65504},
		{I64, false, true, true, math.MinInt64},
		{I32, false, true, true, math.MinInt32},
		{U8, false, true, false, 0},
		{Bool, false, false, false, 0},
		{F8E4M3, true, false, true, -448},
		{F8E5M2, true, false, true, -57344},
		{Invalid, false, false, false, 0},
	} {
		d := c.d
		if d.IsFloat() != c.float || d.IsInt() != c.integer || d.IsSigned() != c.sign || d.Lowest() != c.lowest || d.Valid() != (d != Invalid) {
			t.Errorf("%v: float %v int %v signed %v lowest %v valid %v", d, d.IsFloat(), d.IsInt(), d.IsSigned(), d.Lowest(), d.Valid())
		}
	}
}

func TestOf(t *testing.T) {
	got := []DType{Of[float32](), Of[float64](), Of[Float16](), Of[BFloat16](), Of[int64](), Of[int32](), Of[uint8](), Of[bool](), Of[Float8E4M3](), Of[Float8E5M2]()}
	for i, d := range All() {
		if got[i] != d {
			t.Errorf("type %d is %v, want %v", i, got[i], d)
		}
	}
}

// TestWide: what a type is computed in has arithmetic, holds its values, and is computed in itself.
func TestWide(t *testing.T) {
	for _, d := range All() {
		w := d.Wide()
		if w.IsStorage() || w.Wide() != w || w.IsFloat() != d.IsFloat() || w.Max() < d.Max() || w.MantissaBits() < d.MantissaBits() {
			t.Errorf("%v is computed in %v", d, w)
		}
	}
	if F16.Wide() != F32 || F8E5M2.Wide() != F32 || F64.Wide() != F64 || I32.Wide() != I32 {
		t.Error("the wide types are others")
	}
}
