package dtype

import (
	"fmt"
	"math"
	"math/big"
	"testing"
)

// value8 is the value of a bit pattern by its type's own method.
func value8(d DType, bits uint8) float64 {
	if d == F8E4M3 {
		return Float8E4M3(bits).Float64()
	}
	return Float8E5M2(bits).Float64()
}

// rounded8 returns x as an element of an 8-bit type: the nearest of its finite values, of two the one with an even pattern,
// by exact comparison. Beyond the midpoint to the value that would come next it is over.
func (x exact) rounded8(d DType, saturate bool) float64 {
	largest := d.Max()
	over := math.Inf(1)
	switch {
	case saturate:
		over = largest
	case d == F8E4M3:
		over = math.NaN()
	}
	if x.number == nil {
		if x.special != x.special {
			return x.special
		}
		return math.Copysign(over, x.special)
	}
	sign := 1.0
	if x.minus || x.number.Sign() < 0 {
		sign = -1
	}
	size := new(big.Float).Abs(x.number)
	best, distance := uint8(0), new(big.Float).SetInf(false)
	for i := range uint8(128) {
		v := value8(d, i)
		if v != v || math.IsInf(v, 0) {
			continue
		}
		// The exact difference needs as many bits as lie between the two numbers.
		off := new(big.Float).SetPrec(4000).Sub(size, big.NewFloat(v))
		if c := off.Abs(off).Cmp(distance); c < 0 || c == 0 && i%2 == 0 {
			best, distance = i, off
		}
	}
	// The next value would be as far from the largest as the one before.
	next := 2*largest - value8(d, map[DType]uint8{F8E4M3: 0x7d, F8E5M2: 0x7a}[d])
	if c := size.Cmp(big.NewFloat((largest + next) / 2)); c > 0 || c == 0 && d == F8E5M2 {
		return math.Copysign(over, sign)
	}
	return sign * value8(d, best)
}

// TestFloat8AgainstPyTorch: all values, and every kind of rounding, as PyTorch has them.
func TestFloat8AgainstPyTorch(t *testing.T) {
	checked := map[string]int{}
	for _, line := range goldenLines(t, "float8.txt") {
		var what, name, from, to string
		if _, err := fmt.Sscan(line, &what, &name, &from, &to); err != nil {
			t.Fatal(err)
		}
		d, err := Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		var bits uint32
		if _, err := fmt.Sscanf(from, "%x", &bits); err != nil {
			t.Fatal(err)
		}
		checked[what+" "+name]++
		got, nan := fmt.Sprintf("%08x", math.Float32bits(float32(value8(d, uint8(bits))))), false
		if what == "value" {
			nan = math.IsNaN(value8(d, uint8(bits)))
		} else {
			narrow := uint8(F8E4M3FromFloat32(math.Float32frombits(bits)))
			if d == F8E5M2 {
				narrow = uint8(F8E5M2FromFloat32(math.Float32frombits(bits)))
			}
			got, nan = fmt.Sprintf("%02x", narrow), math.IsNaN(value8(d, narrow))
		}
		if to == "nan" != nan || !nan && got != to {
			t.Errorf("%s: got %s", line, got)
		}
	}
	if checked["value f8e4m3"] != 256 || checked["value f8e5m2"] != 256 || checked["narrow f8e4m3"] < 900 {
		t.Errorf("checked %v", checked)
	}
}

// TestFloat8Ends pins what is beyond the range, saturating or not, and that every value returns to its own pattern.
func TestFloat8Ends(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		d                       DType
		x, saturated, unlimited float64
	}{
		{F8E4M3, 448, 448, 448}, {F8E4M3, 464, 448, 448}, {F8E4M3, 464.00001, 448, nan}, {F8E4M3, -1e300, -448, nan}, {F8E4M3, inf, 448, nan},
		{F8E5M2, 57344, 57344, 57344}, {F8E5M2, 61439.999, 57344, 57344}, {F8E5M2, 61440, 57344, inf}, {F8E5M2, -inf, -57344, -inf}, {F8E5M2, nan, nan, nan},
	} {
		if got := value8(c.d, NarrowF8(c.d, c.x, true)); !same(got, c.saturated) {
			t.Errorf("%v saturated in %v is %v, want %v", c.x, c.d, got, c.saturated)
		}
		if got := value8(c.d, NarrowF8(c.d, c.x, false)); !same(got, c.unlimited) {
			t.Errorf("%v in %v is %v, want %v", c.x, c.d, got, c.unlimited)
		}
	}
	for _, d := range []DType{F8E4M3, F8E5M2} {
		for i := range 256 {
			v := value8(d, uint8(i))
			for _, saturate := range []bool{false, true} {
				if back := NarrowF8(d, v, saturate); back != uint8(i) && v == v && !(saturate && math.IsInf(v, 0)) {
					t.Errorf("%v %#02x is %v, which is %#02x", d, i, v, back)
				}
			}
		}
	}
}
