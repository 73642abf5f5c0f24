package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// golden states what testdata/make.py gave the reference library, in its order.
var golden = []Tensor{
	{Name: "z.f32", DType: "F32", Shape: []int{2, 3}},
	{Name: "a.u8", DType: "U8", Shape: []int{5}},
	{Name: "m.bf16", DType: "BF16", Shape: []int{3}},
	{Name: "b.i64", DType: "I64", Shape: []int{2}},
	{Name: "c.f16", DType: "F16", Shape: []int{1, 3}},
	{Name: "d.f64", DType: "F64", Shape: []int{1}},
	{Name: "e.bool", DType: "BOOL", Shape: []int{3}},
	{Name: "f.i32", DType: "I32", Shape: []int{2}},
	{Name: "g.i16", DType: "I16", Shape: []int{2}},
	{Name: "h.i8", DType: "I8", Shape: []int{2}},
	{Name: "i.u16", DType: "U16", Shape: []int{2}},
	{Name: "j.u32", DType: "U32", Shape: []int{2}},
	{Name: "k.u64", DType: "U64", Shape: []int{1}},
	{Name: "l.f8e4", DType: "F8_E4M3", Shape: []int{2}},
	{Name: "n.f8e5", DType: "F8_E5M2", Shape: []int{2}},
	{Name: "y.f32", DType: "F32", Shape: []int{}},
	{Name: "x.f32", DType: "F32", Shape: []int{0, 4}},
	{Name: "quo\"té\n", DType: "F32", Shape: []int{1}},
}

// goldenTensors returns golden with the bytes that make.py describes.
func goldenTensors(t *testing.T) []Tensor {
	t.Helper()
	tensors := slices.Clone(golden)
	for k := range tensors {
		n, err := byteSize(tensors[k].DType, tensors[k].Shape)
		if err != nil {
			t.Fatal(err)
		}
		tensors[k].Data = make([]byte, n)
		for i := range tensors[k].Data {
			tensors[k].Data[i] = byte((7*k + i) % 251)
		}
	}
	return tensors
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParseReference(t *testing.T) {
	f, err := Parse(read(t, "testdata/all.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"format": "pt"}; !maps.Equal(f.Metadata, want) {
		t.Errorf("metadata %v, want %v", f.Metadata, want)
	}
	checkTensors(t, f, goldenTensors(t))
	if _, ok := f.Lookup("z.f3"); ok {
		t.Error("found a tensor that is not there")
	}
}

func TestWriteReferenceBytes(t *testing.T) {
	for _, c := range []struct {
		file    string
		meta    map[string]string
		tensors []Tensor
	}{
		{"testdata/all.safetensors", map[string]string{"format": "pt"}, goldenTensors(t)},
		{"testdata/none.safetensors", nil, nil},
	} {
		var got bytes.Buffer
		if err := Write(&got, c.meta, c.tensors); err != nil {
			t.Fatal(err)
		}
		if want := read(t, c.file); !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s: wrote\n%q, want\n%q", c.file, got.Bytes(), want)
		}
	}
}

func TestWriteMetadata(t *testing.T) {
	meta := map[string]string{"b": "<\u2028>", "a": "\x00\x7f\"\\"}
	var first, second bytes.Buffer
	if err := errors.Join(Write(&first, meta, nil), Write(&second, meta, nil)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two writes differ")
	}
	f, err := Parse(first.Bytes())
	if err != nil || !maps.Equal(f.Metadata, meta) {
		t.Errorf("read back %q, %v; want %q", f.Metadata, err, meta)
	}
}

func TestRoundTrip(t *testing.T) {
	rng := testutil.Rand(t)
	for range 300 {
		tensors := make([]Tensor, rng.IntN(8))
		for i := range tensors {
			shape := make([]int, rng.IntN(5))
			for d := range shape {
				shape[d] = []int{0, 1, 2, 3, 5, 7}[rng.IntN(6)]
			}
			dtype := dtypes[rng.IntN(len(dtypes))].name
			n, err := byteSize(dtype, shape)
			if err != nil {
				t.Fatal(err)
			}
			data := make([]byte, n)
			for j := range data {
				data[j] = byte(rng.Uint32())
			}
			tensors[i] = Tensor{Name: fmt.Sprintf("%c%d", rune(rng.IntN(0xd000)), i), DType: dtype, Shape: shape, Data: data}
		}
		checkRoundTrip(t, rng, tensors)
	}
}

// checkRoundTrip writes the tensors, some of them as streams, and reads them.
func checkRoundTrip(t *testing.T, rng *rand.Rand, tensors []Tensor) {
	t.Helper()
	streamed := slices.Clone(tensors)
	for i := range streamed {
		if rng.IntN(2) == 0 {
			r := bytes.NewReader(streamed[i].Data)
			streamed[i].Data = nil
			streamed[i].WriteData = func(w io.Writer) error {
				_, err := io.CopyBuffer(w, struct{ io.Reader }{r}, make([]byte, 5))
				return err
			}
		}
	}
	var file bytes.Buffer
	if err := Write(&file, nil, streamed); err != nil {
		t.Fatal(err)
	}
	if n := binary.LittleEndian.Uint64(file.Bytes()); n%8 != 0 {
		t.Errorf("header of %d bytes leaves the data unaligned", n)
	}
	f, err := Parse(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	checkTensors(t, f, tensors)
}

// file puts a header in front of n bytes of data.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range n {
		b = append(b, byte(i))
	}
	return b
}

// length puts a claimed header length in front of a rest.
func length(n uint64, rest string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, n), rest...)
}

// TestParseTolerates lists what foreign writers do and the format allows.
func TestParseTolerates(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"header not a multiple of 8, as of early writers", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 2), "a U8 [2] 0001;"},
		{"tensors listed against the order of their bytes", file(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 3), "a U8 [2] 0001;b U8 [1] 02;"},
		{"keys in any order, white space", file("{ \"a\" : {\"data_offsets\":[0, 4],\n\"shape\":[], \"dtype\":\"F32\"}} \t\r\n ", 4), "a F32 [] 00010203;"},
		{"empty tensors at one place", file(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[9,0],"data_offsets":[0,0]}}`, 0), "a U8 [0] ;b U8 [9 0] ;"},
		{"empty name", file(`{"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1), " U8 [1] 00;"},
		{"empty metadata", file(`{"__metadata__":{}}`, 0), ""},
	} {
		f, err := Parse(c.data)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got strings.Builder
		for _, e := range f.Entries {
			fmt.Fprintf(&got, "%s %s %v %x;", e.Name, e.DType, e.Shape, e.Data())
		}
		if got.String() != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got.String(), c.want)
		}
	}
}

// one is a header of a single tensor "w".
func one(dtype, shape, offsets string) string {
	return fmt.Sprintf(`{"w":{"dtype":%s,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
}

func TestParseHostile(t *testing.T) {
	const f32, ok = `"F32"`, `{"dtype":"U8","shape":[2],"data_offsets":[0,2]}`
	for _, c := range []struct {
		data []byte
		want string // all of these words, separated by |
	}{
		{nil, "0 bytes, too short"},
		{[]byte("abc"), "3 bytes, too short"},
		{length(1<<63, "{}"), "header length 9223372036854775808|limit"},
		{length(100_000_001, "{}"), "header length 100000001|limit of 100000000"},
		{length(100_000_000, "{}"), "header length 100000000|beyond the 2 bytes"},
		{length(3, "{}"), "header length 3|beyond the 2 bytes"},
		{length(0, ""), "does not start with {"},
		{[]byte("PK\x03\x04aaaaaaaaaaaaaaaa"), "not a safetensors file"},
		{file(" {}", 0), "does not start with {"},
		{file("[]", 0), "does not start with {"},
		{file("{", 0), "ends early"},
		{file("{}}", 0), `1 bytes after the closing brace: "}"`},
		{file("{}\x00\x00", 0), "after the closing brace"},
		{file("{\"\xff\":1}", 0), "not valid UTF-8"},
		{file(`{"a" 1}`, 0), "byte "},
		{file(`{"a":`+ok+`,}`, 2), "byte "},
		{file(`{"a":`+ok, 2), "ends early"},
		{file(`{"a":`+ok+`,"a":`+ok+`}`, 2), `key "a" appears twice`},
		{file(`{"a":`+ok+`,"\u0061":`+ok+`}`, 2), `key "a" appears twice`},
		{file(`{"a":{"dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 2), `tensor "a"|key "dtype" appears twice`},
		{file(`{"__metadata__":{"k":"1","k":"2"}}`, 0), `__metadata__: key "k" appears twice`},
		{file(`{"__metadata__":{"k":1}}`, 0), `__metadata__: "k": got 1, want a string`},
		{file(`{"__metadata__":{"k":null}}`, 0), "got null, want a string"},
		{file(`{"__metadata__":[]}`, 0), "__metadata__: got [, want an object"},
		{file(`{"w":3}`, 0), `tensor "w": got 3, want an object`},
		{file(`{"w":{}}`, 0), `tensor "w": want all of dtype, shape and data_offsets`},
		{file(`{"w":{"dtype":"U8","shape":[]}}`, 1), "want all of"},
		{file(`{"w":{"dtype":"U8","shape":[],"offsets":[0,1]}}`, 1), `tensor "w": "offsets": unknown key`},
		{file(`{"w":{"dtype":"U8","shape":[],"data_offsets":[0,1],"x":{"y":`+strings.Repeat("[", 100_000), 1), `"x": unknown key`},
		{file(`{"w":`+strings.Repeat(`[`, 1_000_000), 0), `got [, want an object`},
		{file(one(f32, strings.Repeat("[", 100_000), "[0,4]"), 4), `"shape": got [, want a non-negative integer`},
		{file(one(`32`, "[]", "[0,4]"), 4), `"dtype": got 32, want a string`},
		{file(one(`"f32"`, "[]", "[0,4]"), 4), `tensor "w": dtype "f32" is not one of`},
		{file(one(`"F4"`, "[2]", "[0,1]"), 1), `dtype "F4" is not one of`},
		{file(one(f32, `[-1]`, "[0,4]"), 4), `"shape": -1 is not an integer`},
		{file(one(f32, `[1.0]`, "[0,4]"), 4), `1.0 is not an integer`},
		{file(one(f32, `[1e0]`, "[0,4]"), 4), `1e0 is not an integer`},
		{file(one(f32, `["1"]`, "[0,4]"), 4), `got the string "1", want a non-negative integer`},
		{file(one(f32, `[true]`, "[0,4]"), 4), `got true, want a non-negative integer`},
		{file(one(f32, `[18446744073709551616]`, "[0,4]"), 4), `18446744073709551616 is not an integer`},
		{file(one(f32, `[`+strings.Repeat("9", 1000)+`]`, "[0,4]"), 4), `999… is not an integer`},
		{file(one(f32, `[4294967296,4294967296]`, "[0,0]"), 0), `shape [4294967296 4294967296] of 4-byte elements takes more bytes than can be counted`},
		{file(one(f32, `[2305843009213693952]`, "[0,0]"), 0), `more bytes than can be counted`},
		{file(one(f32, `[0,4294967296,4294967296]`, "[0,0]"), 0), `more bytes than can be counted`},
		{file(one(f32, `[2,3]`, "[0,20]"), 20), `tensor "w": F32 of shape [2 3] takes 24 bytes, but data_offsets [0, 20] hold 20`},
		{file(one(f32, `[0]`, "[0,4]"), 4), `takes 0 bytes`},
		{file(one(f32, `[1]`, "[0,4,8]"), 4), `"data_offsets": 3 numbers [0 4 8], want begin and end`},
		{file(one(f32, `[1]`, "[]"), 4), `0 numbers [], want begin and end`},
		{file(one(f32, `[1]`, "[4,0]"), 4), `data_offsets [4, 0] end before they begin`},
		{file(one(f32, `[1]`, "[0,-4]"), 4), `-4 is not an integer`},
		{file(one(f32, `[1]`, "[0,4]"), 3), `data_offsets [0, 4] end beyond the 3 bytes of data`},
		{file(one(f32, `[1]`, "[9223372036854775800,9223372036854775804]"), 4), `end beyond the 4 bytes`},
		{file(one(f32, `[1]`, "[4,8]"), 8), `tensor "w" starts at byte 4 of the data, but the one before ends at 0`},
		{file(one(f32, `[1]`, "[0,4]"), 5), `1 bytes after the last tensor, which ends at byte 4 of the data, belong to none`},
		{file(`{}`, 1), `1 bytes after the last tensor`},
		{file(`{"a":`+ok+`,"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3), `tensor "b" starts at byte 1 of the data, inside tensor "a", which ends at 2`},
		{file(`{"a":`+ok+`,"b":`+ok+`}`, 2), `inside tensor "a"`},
		{file(`{"a":`+ok+`,"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}}`, 5), `tensor "b" starts at byte 3 of the data, but the one before ends at 2`},
		{file(`{"a":`+ok+`,"b":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}`, 2), `tensor "b" starts at byte 1 of the data, inside`},
		{file(`{"`+strings.Repeat("é", 10_000)+`":1}`, 0), `é"…: got 1`},
	} {
		f, err := Parse(c.data)
		if err == nil {
			t.Errorf("accepted %+v; want an error with %q", f, c.want)
			continue
		}
		for _, want := range strings.Split(c.want, "|") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q, want %q in it", err, want)
			}
		}
		if strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
			t.Errorf("not one readable line: %q", err)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	good := Tensor{Name: "a", DType: "U8", Shape: []int{2}, Data: []byte{1, 2}}
	with := func(f func(*Tensor)) []Tensor {
		bad := good
		f(&bad)
		return []Tensor{bad}
	}
	writes := func(n int) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := w.Write(make([]byte, n))
			return err
		}
	}
	huge := Tensor{DType: "U8", Shape: []int{1 << 62}, WriteData: writes(0)}
	huge1, huge2 := huge, huge
	huge1.Name, huge2.Name = "h", "i"
	for _, c := range []struct {
		meta    map[string]string
		tensors []Tensor
		want    string
	}{
		{nil, []Tensor{good, good}, `two tensors are named "a"`},
		{nil, with(func(b *Tensor) { b.Name = "__metadata__" }), "reserved"},
		{nil, with(func(b *Tensor) { b.Name = "\xff" }), "not valid UTF-8"},
		{map[string]string{"k": "\xff"}, nil, `metadata "k": "\xff" is not valid UTF-8`},
		{nil, with(func(b *Tensor) { b.DType = "float32" }), `dtype "float32" is not one of`},
		{nil, with(func(b *Tensor) { b.Shape = []int{-2} }), "shape [-2] has a negative dimension"},
		{nil, with(func(b *Tensor) { b.Shape = []int{3} }), "U8 of shape [3] takes 3 bytes, got 2"},
		{nil, with(func(b *Tensor) { b.Shape = []int{1 << 62, 4} }), "more bytes than can be counted"},
		{nil, []Tensor{huge1, huge2}, `tensor "i": all tensors together`},
		{map[string]string{"k": strings.Repeat("x", maxHeader)}, nil, "above the limit of 100000000"},
		{nil, with(func(b *Tensor) { b.WriteData = writes(1) }), `tensor "a": its writer stopped 1 bytes short of 2`},
		{nil, with(func(b *Tensor) { b.WriteData = writes(3) }), `tensor "a": its writer wrote 1 bytes too many`},
	} {
		err := Write(io.Discard, c.meta, c.tensors)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q in it", err, c.want)
		}
	}
}

func TestWriteFails(t *testing.T) {
	size := int64(len(read(t, "testdata/all.safetensors")))
	for n := int64(0); n < size; n += 13 {
		err := Write(&testutil.FailingWriter{N: n}, map[string]string{"format": "pt"}, goldenTensors(t))
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("a disk full after %d bytes gives %v", n, err)
		}
	}
}

// FuzzParse mutates whole files, lengths included.
func FuzzParse(f *testing.F) {
	f.Add(read(f, "testdata/all.safetensors"))
	f.Add(read(f, "testdata/none.safetensors"))
	f.Fuzz(checkStable)
}

// FuzzHeader mutates what a right header length leads to.
func FuzzHeader(f *testing.F) {
	all := read(f, "testdata/all.safetensors")
	n := lengthSize + binary.LittleEndian.Uint64(all)
	f.Add(string(all[lengthSize:n]), len(all[n:]))
	f.Add(`{"__metadata__":{"k":"v"},"w":{"dtype":"BF16","shape":[2,0],"data_offsets":[0,0]}}`, 0)
	f.Add(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 3)
	f.Fuzz(func(t *testing.T, header string, body int) {
		checkStable(t, file(header, max(body, 0)%(1<<16)))
	})
}

// checkStable demands of what Parse accepts that writing it and reading it
// again gives the same tensors.
func checkStable(t *testing.T, data []byte) {
	first, err := Parse(data)
	if err != nil {
		return
	}
	tensors := make([]Tensor, len(first.Entries))
	for i, e := range first.Entries {
		tensors[i] = Tensor{Name: e.Name, DType: e.DType, Shape: e.Shape, Data: e.Data()}
	}
	var out bytes.Buffer
	if err := Write(&out, first.Metadata, tensors); err != nil {
		t.Fatal(err)
	}
	second, err := Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(first.Metadata, second.Metadata) {
		t.Errorf("metadata %v became %v", first.Metadata, second.Metadata)
	}
	checkTensors(t, second, tensors)
}

// checkTensors demands that f holds exactly the tensors, which have Data.
func checkTensors(t *testing.T, f *File, tensors []Tensor) {
	t.Helper()
	if len(f.Entries) != len(tensors) {
		t.Fatalf("%d tensors, want %d", len(f.Entries), len(tensors))
	}
	for _, want := range tensors {
		got, ok := f.Lookup(want.Name)
		if !ok || got.Name != want.Name || got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) || !bytes.Equal(got.Data(), want.Data) {
			t.Errorf("tensor %q: got %+v, want %+v", want.Name, got, want)
		}
	}
}
