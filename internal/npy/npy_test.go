package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// element returns, in little-endian, the element i that testdata/make.py describes.
func element(dtype string, i int) []byte {
	v := i*37%101 - 20
	switch dtype[1] {
	case 'u':
		v = max(v, 0)
	case 'b':
		v &= 1
	case 'f':
		return float(dtype, float64(v))
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(v))[:dtype[2]-'0']
}

// float encodes v; as f2 it must be 0 or a normal number with 10 bits of fraction.
func float(dtype string, v float64) []byte {
	b32 := math.Float32bits(float32(v))
	switch dtype {
	case "<f8":
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
	case "<f4":
		return binary.LittleEndian.AppendUint32(nil, b32)
	}
	if v == 0 {
		return []byte{0, 0}
	}
	half := b32>>31<<15 | (b32>>23&0xff-127+15)<<10 | b32>>13&0x3ff
	return binary.LittleEndian.AppendUint16(nil, uint16(half))
}

// elements returns the array that make.py describes.
func elements(dtype string, shape ...int) *Array {
	a := &Array{DType: dtype, Shape: shape}
	n := 1
	for _, d := range shape {
		n *= d
	}
	for i := range n {
		a.Data = append(a.Data, element(dtype, i)...)
	}
	return a
}

func equal(a, b *Array) bool {
	return a.DType == b.DType && slices.Equal(a.Shape, b.Shape) && bytes.Equal(a.Data, b.Data)
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParseNumPy(t *testing.T) {
	for name, want := range map[string]*Array{
		"le-f8": elements("<f8", 3, 5), "le-f4": elements("<f4", 3, 5), "le-f2": elements("<f2", 3, 5),
		"le-i8": elements("<i8", 3, 5), "le-i4": elements("<i4", 3, 5), "le-i2": elements("<i2", 3, 5),
		"le-u8": elements("<u8", 3, 5), "le-u4": elements("<u4", 3, 5), "le-u2": elements("<u2", 3, 5),
		"le-i1": elements("|i1", 3, 5), "le-u1": elements("|u1", 3, 5), "le-b1": elements("|b1", 3, 5),
		"be-f8": elements("<f8", 3, 5), "be-f4": elements("<f4", 3, 5), "be-f2": elements("<f2", 3, 5),
		"be-i4": elements("<i4", 3, 5), "be-u2": elements("<u2", 3, 5),
		"fortran": elements("<f4", 2, 3, 4), "fortran-be": elements("<i4", 2, 3, 4),
		"scalar": elements("<f4"), "empty": elements("<f4", 0, 7), "vector": elements("<i8", 7),
		"v2": elements("<f4", 3, 5), "v3": elements("<f4", 3, 5),
	} {
		got, err := Parse(read(t, name+".npy"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestWriteNumPyBytes(t *testing.T) {
	for name, a := range map[string]*Array{
		"le-f8": elements("<f8", 3, 5), "le-f2": elements("<f2", 3, 5), "le-u1": elements("|u1", 3, 5),
		"le-b1": elements("|b1", 3, 5), "scalar": elements("<f4"), "empty": elements("<f4", 0, 7),
		"vector": elements("<i8", 7),
	} {
		var got bytes.Buffer
		if err := Write(&got, a); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := read(t, name+".npy"); !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s: wrote\n%q, want\n%q", name, got.Bytes(), want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	rng := testutil.Rand(t)
	dtypes := []string{"<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1"}
	for range 300 {
		shape := make([]int, rng.IntN(6))
		for i := range shape {
			shape[i] = []int{0, 1, 2, 3, 5, 7}[rng.IntN(6)]
		}
		want := elements(dtypes[rng.IntN(len(dtypes))], shape...)
		var file bytes.Buffer
		if err := Write(&file, want); err != nil {
			t.Fatal(err)
		}
		if n := file.Len() - len(want.Data); n%64 != 0 {
			t.Errorf("%s %v: header of %d bytes leaves the data unaligned", want.DType, shape, n)
		}
		checkStable(t, want)
	}
}

// TestFortranOrder compares with the definition: element (i, j, …) of a
// Fortran-ordered file is at i + j·shape[0] + ….
func TestFortranOrder(t *testing.T) {
	for _, shape := range [][]int{{1}, {5}, {2, 3}, {1, 4}, {4, 1}, {3, 0, 2}, {2, 1, 3, 5}} {
		n := 1
		for _, d := range shape {
			n *= d
		}
		src := make([]byte, n)
		for i := range src {
			src[i] = byte(i)
		}
		for to, got := range toCOrder(src, shape, 1) {
			from, rest := 0, to
			for i := len(shape) - 1; i >= 0; i-- {
				from = from*shape[i] + rest%shape[i]
				rest /= shape[i]
			}
			// from was folded last axis first: that is the mixed radix of Fortran order.
			if got != byte(from) {
				t.Errorf("shape %v: element %d comes from %d, want %d", shape, to, got, from)
			}
		}
	}
}

// npy1 puts a version 1 header in front of n bytes.
func npy1(header string, n int) []byte {
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func TestParseTolerates(t *testing.T) {
	for _, header := range []string{
		"{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}",
		"{\"descr\":\"<f4\",\"fortran_order\":True,\"shape\":(2,3,),}",
		" { 'descr' : '<f4' ,\t'fortran_order' : False , 'shape' : ( 2 , 3 ) , }  \n",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }\n", // Python 2
	} {
		a, err := Parse(npy1(header, 24))
		if err != nil || a.DType != "<f4" || !slices.Equal(a.Shape, []int{2, 3}) || len(a.Data) != 24 {
			t.Errorf("%s: got %+v, %v", header, a, err)
		}
	}
}

func TestParseHostile(t *testing.T) {
	dict := func(descr, order, shape string) string {
		return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }"
	}
	shaped := func(shape string) []byte { return npy1(dict("'<f4'", "False", shape), 4) }
	typed := func(descr string) []byte { return npy1(dict(descr, "False", "(1,)"), 4) }
	v2 := func(n uint32, rest string) []byte {
		return append(binary.LittleEndian.AppendUint32([]byte(magic+"\x02\x00"), n), rest...)
	}
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "not a .npy file"},
		{[]byte("\x93NUMPY\x01"), "not a .npy file"},
		{[]byte("PK\x03\x04............"), "not a .npy file"},
		{[]byte("\x93NUMPY\x04\x00\x00\x00"), "version 4.0 is not"},
		{[]byte("\x93NUMPY\x01\x01\x00\x00"), "version 1.1 is not"},
		{[]byte("\x93NUMPY\x00\x00\x00\x00"), "version 0.0 is not"},
		{[]byte("\x93NUMPY\x01\x00\x05"), "truncated before the header length"},
		{v2(0, "")[:10], "truncated before the header length"},
		{[]byte("\x93NUMPY\x01\x00\x05\x00{}"), "header length 5 is beyond the 2 bytes"},
		{v2(1<<32-1, "{}"), "header length 4294967295 is beyond the 2 bytes"},
		{npy1("", 0), "ends early: want {"},
		{npy1("{}", 0), "0 of the keys descr, fortran_order and shape"},
		{npy1("{'descr': '<f4', 'shape': ()}", 4), "2 of the keys"},
		{npy1("{'descr': '<f4', 'descr': '<f4', 'shape': ()}", 4), `key "descr" appears twice`},
		{npy1(dict("'<f4'", "False", "()")+"x", 4), `got "x", want nothing more`},
		{npy1(dict("'<f4'", "False", "()")+"\x00", 4), "want nothing more"},
		{npy1("{'descr': '<f4' 'shape': ()}", 4), "want , or }"},
		{npy1("{'descr' '<f4'}", 4), "want :"},
		{npy1("{'descr': '<f4", 4), "want the end of the string"},
		{npy1("{'descr': '<\\x664'}", 4), "want a string without escapes"},
		{npy1("{'descr': '<f4\n'}", 4), "want a string without escapes"},
		{npy1("{'descr': None}", 4), `"descr": byte 10: got "None}", want a string`},
		{npy1("{5: 1}", 4), "want a string"},
		{npy1("{'other': 1}", 4), `"other": unknown key`},
		{npy1(strings.Repeat("{", 60_000), 0), "want a string"},
		{shaped(strings.Repeat("(", 60_000)), "want a dimension"},
		{npy1(dict("'<f4'", "false", "()"), 4), "want True or False"},
		{npy1(dict("'<f4'", "1", "()"), 4), "want True or False"},
		{shaped("(1)"), "want a comma"},
		{shaped("[1]"), "want ("},
		{shaped("(,)"), "want a dimension"},
		{shaped("(1 1,)"), "want a comma"},
		{shaped("(-1,)"), "want a dimension, 0 or more"},
		{shaped("(1.0,)"), "want a comma"},
		{shaped("(01,)"), "want a dimension"},
		{shaped("(0x1,)"), "want a comma"},
		{shaped("(True,)"), "want a dimension"},
		{shaped("(9223372036854775808,)"), `dimension "9223372036854775808" is beyond`},
		{shaped("(4611686018427387904,)"), "more bytes than can be counted"},
		{shaped("(4294967296, 4294967296, 0)"), "more bytes than can be counted"},
		{shaped("(" + strings.Repeat("1, ", 65) + ")"), "more than 64 dimensions"},
		{shaped("(2,)"), "<f4 of shape [2] takes 8 bytes, but 4 follow the header: truncated"},
		{shaped("(0,)"), "takes 0 bytes, but 4 follow the header: trailing bytes"},
		{typed("'<f3'"), `dtype "<f3" is not a plain number`},
		{typed("'f4'"), `dtype "f4"`},
		{typed("'=f4'"), "does not say its byte order"},
		{typed("'|f4'"), "does not say its byte order"},
		{typed("'|O'"), `dtype "|O" is not a plain number`},
		{typed("'<U1'"), `dtype "<U1" is not a plain number`},
		{typed("''"), `dtype "" is not a plain number`},
		{typed("[('x', '<f4')]"), "arrays of records are not read"},
		{read(t, "object.npy"), `dtype "|O" is not`},
		{read(t, "struct.npy"), "arrays of records"},
		{read(t, "complex.npy"), `dtype "<c8" is not`},
		{read(t, "le-f4.npy")[:187], "takes 60 bytes, but 59 follow"},
		{append(read(t, "le-f4.npy"), 0), "takes 60 bytes, but 61 follow"},
	} {
		a, err := Parse(c.data)
		if err == nil {
			t.Errorf("accepted %+v; want an error with %q", a, c.want)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %q, want %q in it", err, c.want)
		}
		if strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
			t.Errorf("not one readable line: %q", err)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, c := range []struct {
		a    Array
		want string
	}{
		{Array{"<f3", []int{1}, make([]byte, 3)}, `dtype "<f3" is not`},
		{Array{">f4", []int{1}, make([]byte, 4)}, "dtype >f4: write <f4"},
		{Array{"<u1", []int{1}, make([]byte, 1)}, "dtype <u1: write |u1"},
		{Array{"<f4", []int{2}, make([]byte, 4)}, "<f4 of shape [2] takes 8 bytes, got 4"},
		{Array{"<f4", []int{-1}, nil}, "negative dimension"},
		{Array{"<f4", make([]int, 65), nil}, "65 dimensions"},
	} {
		if err := Write(io.Discard, &c.a); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q in it", err, c.want)
		}
	}
}

func TestWriteFails(t *testing.T) {
	for _, n := range []int64{0, 1, 127, 128, 187} {
		if err := Write(&testutil.FailingWriter{N: n}, elements("<f4", 3, 5)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a disk full after %d bytes gives %v", n, err)
		}
	}
}

// FuzzParse demands that what Parse accepts can be written and read again.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"le-f4", "be-f4", "le-b1", "fortran", "fortran-be", "scalar", "empty", "vector", "v2", "v3", "struct", "object"} {
		f.Add(read(f, name+".npy"))
	}
	f.Add(npy1("{\"shape\":(0,1,),'descr':'>u8','fortran_order':True}", 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		if a, err := Parse(data); err == nil {
			checkStable(t, a)
		}
	})
}

// checkStable demands that a can be written and read again.
func checkStable(t *testing.T, a *Array) {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, a); err != nil {
		t.Fatal(err)
	}
	if b, err := Parse(out.Bytes()); err != nil || !equal(a, b) {
		t.Errorf("%+v became %+v, %v", a, b, err)
	}
}
