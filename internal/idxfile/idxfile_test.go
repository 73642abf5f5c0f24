package idxfile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// idx writes a header by hand in front of body.
func idx(typ byte, dims []uint32, body ...byte) []byte {
	b := []byte{0, 0, typ, byte(len(dims))}
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	return append(b, body...)
}

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestParse(t *testing.T) {
	float32be := binary.BigEndian.AppendUint32(nil, math.Float32bits(-1.5))
	float64be := binary.BigEndian.AppendUint64(nil, math.Float64bits(math.Pi))
	for _, c := range []struct {
		file  []byte
		typ   Type
		shape []int
		data  []byte
	}{
		{idx(0x08, []uint32{2, 3}, 1, 2, 3, 4, 5, 255), Uint8, []int{2, 3}, []byte{1, 2, 3, 4, 5, 255}},
		{idx(0x09, []uint32{2}, 0x80, 0x7f), Int8, []int{2}, []byte{0x80, 0x7f}},
		{idx(0x0b, []uint32{2}, 1, 2, 0xff, 0xfe), Int16, []int{2}, []byte{2, 1, 0xfe, 0xff}},
		{idx(0x0c, []uint32{1, 1}, 1, 2, 3, 4), Int32, []int{1, 1}, []byte{4, 3, 2, 1}},
		{idx(0x0d, []uint32{1}, float32be...), Float32, []int{1}, binary.LittleEndian.AppendUint32(nil, math.Float32bits(-1.5))},
		{idx(0x0e, []uint32{1}, float64be...), Float64, []int{1}, binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Pi))},
		{idx(0x08, []uint32{0, 28, 28}), Uint8, []int{0, 28, 28}, nil},
		{idx(0x0e, slices.Repeat([]uint32{1}, 255), float64be...), Float64, slices.Repeat([]int{1}, 255), binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Pi))},
	} {
		original := slices.Clone(c.file)
		for name, file := range map[string][]byte{"plain": c.file, "gzip": zipped(t, c.file)} {
			f, err := Parse(file)
			if err != nil {
				t.Errorf("%s %v %v: %v", name, c.typ, c.shape, err)
				continue
			}
			if f.Type != c.typ || !slices.Equal(f.Shape, c.shape) || !bytes.Equal(f.Data, c.data) {
				t.Errorf("%s: got %+v, want %v %v % x", name, f, c.typ, c.shape, c.data)
			}
		}
		if !bytes.Equal(c.file, original) {
			t.Errorf("%v: parsing wrote into the file", c.typ)
		}
	}
}

// TestParseConcatenatedGzip holds because gzip members may be joined, as gzip(1) says.
func TestParseConcatenatedGzip(t *testing.T) {
	file := idx(0x08, []uint32{4}, 1, 2, 3, 4)
	f, err := Parse(append(zipped(t, file[:7]), zipped(t, file[7:])...))
	if err != nil || !bytes.Equal(f.Data, []byte{1, 2, 3, 4}) {
		t.Errorf("got %+v, %v", f, err)
	}
}

func TestParseHostile(t *testing.T) {
	good := idx(0x08, []uint32{2, 3}, 1, 2, 3, 4, 5, 6)
	packed := zipped(t, good)
	badSum := slices.Clone(packed)
	badSum[len(badSum)-5] ^= 1
	bomb := zipped(t, append(idx(0x08, []uint32{10}), make([]byte, 1<<20)...))
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "shorter than its header"},
		{"3 bytes", []byte{0, 0, 8}, "shorter than its header"},
		{"png", []byte("\x89PNG\r\n\x1a\n"), "starts with bytes 89 50 4e 47"},
		{"text", []byte("1,2,3\n"), "not an IDX file"},
		{"second byte", []byte{0, 1, 8, 1, 0, 0, 0, 0}, "not with two zeros"},
		{"type 0", idx(0, []uint32{1}, 1), "type 0x00 is not one of"},
		{"type 10", idx(10, []uint32{1}, 1), "type 0x0a is not one of"},
		{"type 15", idx(15, []uint32{1}, 1), "type 0x0f is not one of"},
		{"no dimensions", idx(8, nil), "no dimensions"},
		{"within dimensions", good[:11], "ends within its 2 dimensions"},
		{"without dimensions", good[:4], "ends within its 2 dimensions"},
		{"truncated", good[:len(good)-1], "uint8 of shape [2 3] takes 6 bytes, but 5 follow the header: truncated"},
		{"trailing", append(slices.Clone(good), 0), "takes 6 bytes, but 7 follow the header: trailing bytes"},
		{"empty but trailing", idx(8, []uint32{0}, 1), "takes 0 bytes, but 1 follow"},
		{"large", idx(8, []uint32{1<<32 - 1}), "takes 4294967295 bytes, but 0 follow"},
		{"overflow", idx(8, []uint32{1 << 31, 1 << 31, 1 << 31}), "more bytes than can be counted"},
		{"overflow by the type", idx(14, []uint32{1 << 31, 1 << 30}), "more bytes than can be counted"},
		{"overflow beside 0", idx(8, []uint32{1 << 31, 1 << 31, 1 << 31, 0}), "more bytes than can be counted"},
		{"gzip header only", packed[:10], "shorter than its header"},
		{"gzip header cut", packed[:5], "gzip of 5 bytes"},
		{"gzip of nothing", zipped(t, nil), "shorter than its header"},
		{"gzip truncated", packed[:len(packed)-12], "unexpected EOF"},
		{"gzip without checksum", packed[:len(packed)-8], "gzip, at its end: unexpected EOF"},
		{"gzip with a wrong checksum", badSum, "gzip, at its end: gzip: invalid checksum"},
		{"gzip with garbage behind", append(slices.Clone(packed), "garbage..."...), "gzip, at its end"},
		{"gzip too short", zipped(t, good[:len(good)-1]), "takes 6 bytes, but 5 could be unpacked: unexpected EOF"},
		{"gzip too long", zipped(t, append(slices.Clone(good), 0)), "trailing bytes"},
		{"gzip bomb", bomb, "uint8 of shape [10] takes 10 bytes, but more follow"},
		{"gzip with a huge claim", zipped(t, idx(8, []uint32{1 << 31, 1 << 30}, 1)), "more than gzip can hold in"},
		{"gzip of text", zipped(t, []byte("hello")), "not an IDX file"},
		{"gzip of gzip", zipped(t, packed), "starts with bytes 1f 8b"},
	} {
		f, err := Parse(c.file)
		if err == nil {
			t.Errorf("%s: accepted %+v", c.name, f)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %q, want one line with %q", c.name, err, c.want)
		}
	}
}

func TestTypeStrings(t *testing.T) {
	for typ, want := range map[Type]string{Uint8: "uint8", Int8: "int8", Int16: "int16", Int32: "int32", Float32: "float32", Float64: "float64", 7: "type 0x07"} {
		if got := typ.String(); got != want {
			t.Errorf("type %d is %q, want %q", byte(typ), got, want)
		}
	}
}

// TestGzipEqualsPlain compares the two paths on random files.
func TestGzipEqualsPlain(t *testing.T) {
	rng := testutil.Rand(t)
	types := []Type{Uint8, Int8, Int16, Int32, Float32, Float64}
	for range 100 {
		typ := types[rng.IntN(len(types))]
		dims := make([]uint32, 1+rng.IntN(4))
		n := typ.Size()
		for i := range dims {
			dims[i] = uint32(rng.IntN(6))
			n *= int(dims[i])
		}
		body := make([]byte, n)
		for i := range body {
			body[i] = byte(rng.Uint32())
		}
		file := idx(byte(typ), dims, body...)
		a, errA := Parse(file)
		b, errB := Parse(zipped(t, file))
		if errA != nil || errB != nil || a.Type != b.Type || !slices.Equal(a.Shape, b.Shape) || !bytes.Equal(a.Data, b.Data) {
			t.Errorf("%v %v: plain %+v, %v; gzip %+v, %v", typ, dims, a, errA, b, errB)
		}
	}
}

// FuzzParse demands that what Parse accepts, written back, is the file (plain),
// or parses to the same (gzip).
func FuzzParse(f *testing.F) {
	good := idx(0x0b, []uint32{2, 1}, 1, 2, 3, 4)
	f.Add(good)
	f.Add(zipped(f, good))
	f.Add(idx(0x08, []uint32{0, 28, 28}))
	f.Add(idx(8, []uint32{1 << 31, 1 << 31, 1 << 31}))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := Parse(file)
		if err != nil {
			return
		}
		dims := make([]uint32, len(got.Shape))
		for i, d := range got.Shape {
			dims[i] = uint32(d)
		}
		got.Data = slices.Clone(got.Data)
		got.toLittleEndian() // its own inverse
		back := idx(byte(got.Type), dims, got.Data...)
		if !bytes.HasPrefix(file, gzipMagic) {
			if !bytes.Equal(back, file) {
				t.Errorf("% x became % x", file, back)
			}
			return
		}
		if again, err := Parse(back); err != nil || again.Type != got.Type || !slices.Equal(again.Shape, got.Shape) {
			t.Errorf("unpacked %+v, which parses to %+v, %v", got, again, err)
		}
	})
}
