package pickle

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

func encode(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Encode(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decode(t *testing.T, b []byte) any {
	t.Helper()
	v, err := Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "").Replace(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestReadsCPython: what CPython 3.11 writes of {"a": [1, 300, 70000, 5000000000, -1, 0.5, True, None, (1, 2)]}, by
// pickle.dumps of protocols 2 and 4.
func TestReadsCPython(t *testing.T) {
	want := Dict{{"a", []any{int64(1), int64(300), int64(70000), int64(5000000000), int64(-1), 0.5, true, nil, Tuple{int64(1), int64(2)}}}}
	for _, dump := range []string{
		`8002 7D7100 580100000061 7101 5D7102 28 4B01 4D2C01 4A70110100 8A0500F2052A01 4AFFFFFFFF 473FE0000000000000 88 4E 4B014B02867103 65 73 2E`,
		`8004 952F00000000000000 7D94 8C0161 94 5D94 28 4B01 4D2C01 4A70110100 8A0500F2052A01 4AFFFFFFFF 473FE0000000000000 88 4E 4B014B028694 65 73 2E`,
	} {
		if got := rewrite(decode(t, unhex(t, dump))); !reflect.DeepEqual(got, want) {
			t.Errorf("%v", got)
		}
	}
}

// TestNumbers: the forms of numbers, by hand.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{0, "4B00"}, {255, "4BFF"}, {256, "4D0001"}, {65535, "4DFFFF"}, {65536, "4A00000100"}, {-1, "4AFFFFFFFF"},
		{math.MaxInt32, "4AFFFFFF7F"}, {math.MinInt32, "4A00000080"}, {int64(1) << 31, "8A050000008000"}, {int64(-1)<<31 - 1, "8A05FFFFFF7FFF"},
		{int64(140000000000000), "8A0600C0444A547F"}, {int64(math.MinInt64), "8A080000000000000080"}, {uint64(math.MaxUint64), "8A09FFFFFFFFFFFFFFFF00"},
		{0.5, "473FE0000000000000"},
	} {
		if got := encode(t, c.v); !bytes.Equal(got, unhex(t, "8002"+c.want+"2E")) {
			t.Errorf("%v is % X", c.v, got)
		}
	}
	if got := decode(t, encode(t, uint64(math.MaxUint64))); got.(*big.Int).String() != "18446744073709551615" {
		t.Errorf("%v", got)
	}
}

// TestRoundTrip: what is written reads back, in batches, with strings and shared values written once.
func TestRoundTrip(t *testing.T) {
	frames := &Shared{[]any{Dict{{"name", "main.main"}, {"line", 12}}}}
	entry := Dict{{"action", "alloc"}, {"frames", frames}}
	const n = 2500
	v := Dict{{"empty", Dict{}}, {"none", []any{}}, {"tuples", []any{Tuple{}, Tuple{1}, Tuple{1, 2}, Tuple{1, 2, 3}, Tuple{1, 2, 3, 4}}},
		{"trace", List(func(yield func(any) bool) {
			for range n {
				if !yield(entry) {
					return
				}
			}
		})}, {"text", "µ <&>"}}
	b := encode(t, v)
	if got := bytes.Count(b, []byte("main.main")); got != 1 {
		t.Errorf("a shared value is written %d times", got)
	}
	if got := bytes.Count(b, []byte("action")); got != 1 {
		t.Errorf("a key is written %d times", got)
	}
	got := decode(t, b).(*ReadDict).Map()
	trace := got["trace"].(*ReadList).Items
	first := trace[0].(*ReadDict).Get("frames")
	if len(trace) != n || first != trace[n-1].(*ReadDict).Get("frames") || got["text"] != "µ <&>" {
		t.Errorf("%d entries", len(trace))
	}
	for i, x := range got["tuples"].(*ReadList).Items {
		if tuple := x.(*ReadList); len(tuple.Items) != i || !tuple.Fixed {
			t.Errorf("%d: %+v", i, tuple)
		}
	}
	if largest := largestBatch(t, b); largest > 2*batch {
		t.Errorf("a batch of %d items", largest)
	}
}

// viewer are the opcodes that PyTorch's page knows (torch/utils/viz/MemoryViz.js), with the bytes that follow them.
var viewer = map[byte]int{0x80: 1, '.': 0, '(': 0, '}': 0, 'd': 0, 's': 0, 'u': 0, ']': 0, 'l': 0, 'a': 0, 'e': 0, ')': 0, 't': 0, 0x85: 0, 0x86: 0,
	0x87: 0, 'N': 0, 0x88: 0, 0x89: 0, 'K': 1, 'M': 2, 'J': 4, 0x8a: -1, 'G': 8, 'X': -4, 0x94: 0, 'q': 1, 'r': 4, 'h': 1, 'j': 4}

// largestBatch walks a file by the viewer's opcodes alone, and returns how many values lie between a mark and its end at most.
func largestBatch(t *testing.T, b []byte) (most int) {
	t.Helper()
	var marks []int
	depth := 0
	for len(b) > 0 {
		n, ok := viewer[b[0]]
		if !ok {
			t.Fatalf("opcode %#x is not one of the viewer's", b[0])
		}
		switch b[0] {
		case '(':
			marks = append(marks, depth)
		case 'e', 'u', 't':
			m := marks[len(marks)-1]
			marks, most = marks[:len(marks)-1], max(most, depth-m)
			if depth = m; b[0] == 't' {
				depth++
			}
		case 0x86:
			depth--
		case 0x87:
			depth -= 2
		case 'q', 'r', 0x85, 0x80, '.':
		default:
			depth++
		}
		switch b = b[1:]; n {
		case -1:
			n = 1 + int(b[0])
		case -4:
			n = 4 + int(b[0]) + int(b[1])<<8
		}
		b = b[n:]
	}
	return most
}

func TestWriteErrors(t *testing.T) {
	for left := range 60 {
		err := Encode(&testutil.FailingWriter{N: int64(left)}, []any{strings.Repeat("x", 1<<17), 1.5, Dict{{"k", nil}}})
		if err == nil {
			t.Fatalf("no error after %d bytes", left)
		}
	}
	if err := Encode(io.Discard, []any{struct{}{}}); err == nil || !strings.Contains(err.Error(), "struct {}") {
		t.Error(err)
	}
}

func TestBadFiles(t *testing.T) {
	for name, dump := range map[string]string{
		"empty": "", "no end": "8002 4B01", "newer": "8006 4E2E", "code": "8002 63 6F730A 73797374656D0A 2E", "two values": "8002 4E4E 2E",
		"append to nothing": "8002 4E61 2E", "a mark for a value": "8002 28 7100 2E", "no mark": "8002 5D 65 2E", "key": "8002 7D 88 4E 73 2E",
		"number of nothing": "8002 6807 2E", "half a pair": "8002 7D 28 580100000061 75 2E", "long string": "8002 58FFFFFFFF 61 2E",
		"long string of 8": "8004 8DFFFFFFFFFFFFFFFF 61 2E", "to a tuple": "8002 29 4E 61 2E", "itself": "8002 5D 7100 6800 61 2E",
		"itself, in another": "8002 5D 7100 5D 6800 61 61 2E", "grows later": "8004 5D 94 5D 94 6800 61 30", "long number": "8002 8B 00000100 2E",
		"key that is a list": "8002 7D 5D 4E 73 2E", "number without one": "8002 9430 2E",
	} {
		if v, err := Decode(bytes.NewReader(unhex(t, dump))); err == nil {
			t.Errorf("%s: %v", name, v)
		}
	}
	if _, err := Decode(strings.NewReader("\x80\x02K")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
