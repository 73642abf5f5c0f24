package pickle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// hostile are files that name code: what Python's pickle.loads would run, by the forms of its protocols.
var hostile = map[string]string{
	"GLOBAL":            "\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R.",
	"STACK_GLOBAL":      "\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.",
	"GLOBAL, no header": "cposix\nsystem\n(X\x02\x00\x00\x00idtR.",
	"INST":              "\x80\x02(X\x02\x00\x00\x00idiposix\nsystem\n.",
	"OBJ":               "\x80\x02(]X\x02\x00\x00\x00ido.",
	"REDUCE":            "\x80\x02])R.",
	"BUILD":             "\x80\x02]}b.",
	"NEWOBJ":            "\x80\x02])\x81.",
	"NEWOBJ_EX":         "\x80\x04])}\x92.",
	"EXT1":              "\x80\x02\x82\x01.", "EXT2": "\x80\x02\x83\x01\x00.", "EXT4": "\x80\x02\x84\x01\x00\x00\x00.",
	"PERSID": "\x80\x02Pid\n.", "BINPERSID": "\x80\x02X\x02\x00\x00\x00idQ.",
}

// TestCodeIsRefused: every opcode that looks code up or calls it is refused, by its name and its place.
func TestCodeIsRefused(t *testing.T) {
	tried := map[string]bool{}
	for name, file := range hostile {
		_, err := Decode(strings.NewReader(file))
		name, _, _ = strings.Cut(name, ",")
		tried[name] = true
		var at *Error
		if !errors.Is(err, ErrCode) || !errors.As(err, &at) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.HasPrefix(err.Error(), fmt.Sprintf("pickle: byte %d (opcode %d): ", at.Offset, at.Opcode)) || calling[file[at.Offset]] != name {
			t.Errorf("%s is not at byte %d: %v", name, at.Offset, err)
		}
		if strings.HasSuffix(name, "GLOBAL") && !strings.Contains(err.Error(), `"posix" "system"`) {
			t.Errorf("%v does not say what it names", err)
		}
	}
	for _, name := range calling {
		if !tried[name] {
			t.Errorf("no file has %s", name)
		}
	}
	for op, name := range refused {
		if _, err := Decode(bytes.NewReader([]byte{0x80, 4, op})); err == nil || !strings.Contains(err.Error(), name+" ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKnown: a global that the caller knows is the caller's function, and no other global is.
func TestKnown(t *testing.T) {
	d := &Decoder{Known: map[string]func([]any) (any, error){"torch.jit._pickle restore_type_tag": func(args []any) (any, error) {
		if len(args) != 2 {
			return nil, errors.New("two arguments")
		}
		return args[0], nil
	}}}
	v, err := d.Decode(strings.NewReader("\x80\x02ctorch.jit._pickle\nrestore_type_tag\n]K\x01aX\x09\x00\x00\x00List[int]\x86R."))
	if l, ok := v.(*ReadList); err != nil || !ok || !slices.Equal(l.Items, []any{int64(1)}) {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := d.Decode(strings.NewReader("\x80\x02ctorch.jit._pickle\nrestore_type_tag\n)R.")); err == nil || !strings.Contains(err.Error(), "two arguments") {
		t.Error(err)
	}
	if _, err := d.Decode(strings.NewReader(hostile["GLOBAL"])); !errors.Is(err, ErrCode) {
		t.Error(err)
	}
}

// TestBounds: files that would take depth or memory without end.
func TestBounds(t *testing.T) {
	nest := func(n int) string {
		return "\x80\x02" + strings.Repeat("]", n) + strings.Repeat("a", n-1) + "."
	}
	if _, err := Decode(strings.NewReader(nest(deepest))); err != nil {
		t.Error(err)
	}
	if _, err := Decode(strings.NewReader(nest(deepest + 1))); err == nil || !strings.Contains(err.Error(), "deep") {
		t.Error(err)
	}
	var at *Error
	if _, err := Decode(&repeat{text: "("}); !errors.As(err, &at) || at.Opcode > 2*deepest {
		t.Errorf("marks within marks are taken until there are 1 GiB of them: %v", err)
	}
	for name, op := range map[string]string{"dictionaries": "}", "marks": "(", "nothings": "N", "numbers": "K\x01", "strings": "X\x01\x00\x00\x00a",
		"one string": "\x94h\x00", "memo": "\x94", "memo, out of turn": "r\x00\x00\x00\x7fr\x00\x00\x00\x7e", "tuples": ")"} {
		d := &Decoder{Memory: 1 << 20}
		endless := io.MultiReader(strings.NewReader("\x80\x02N"), &repeat{text: op})
		if name == "memo, out of turn" {
			var b bytes.Buffer
			for i := range 1 << 18 {
				b.Write([]byte{opPut4, byte(i), byte(i >> 8), byte(i >> 16), 0x40})
			}
			endless = io.MultiReader(strings.NewReader("\x80\x02N"), &b)
		}
		if _, err := d.Decode(endless); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// repeat is a text without end.
type repeat struct {
	text string
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.text[r.at%len(r.text)]
		r.at++
	}
	return len(p), nil
}

// TestCut: of a file that ends early, what is before the end comes with the error and its place.
func TestCut(t *testing.T) {
	whole := encode(t, Dict{{"first", []any{1, 2, 3}}, {"second", []any{Dict{{"a", 1}}, Dict{{"a", 2}}, Dict{{"a", 3}}}}})
	most := 0
	for n := range len(whole) {
		v, err := new(Decoder).Decode(bytes.NewReader(whole[:n]))
		var at *Error
		if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &at) || at.Offset > int64(n) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		m, _ := v.(*ReadDict)
		if m == nil {
			continue
		}
		if l, ok := m.Get("second").(*ReadList); ok {
			if len(l.Items) < most || m.Get("first") == nil {
				t.Errorf("%d bytes: %d items", n, len(l.Items))
			}
			most = len(l.Items)
		}
	}
	if most != 3 {
		t.Errorf("%d items", most)
	}
}

// TestFold: a dictionary is folded once, when something else gets it, however often the file refers to it.
func TestFold(t *testing.T) {
	shared := &Shared{Dict{{"name", "main.main"}}}
	b := encode(t, []any{Dict{{"frames", []any{shared}}}, Dict{{"frames", []any{shared}}}})
	calls := 0
	d := &Decoder{Fold: func(m *ReadDict) any {
		if name, ok := m.Get("name").(string); ok {
			calls++
			return &name
		}
		return nil
	}}
	v, err := d.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	var names []any
	for _, entry := range v.(*ReadList).Items {
		names = append(names, entry.(*ReadDict).Get("frames").(*ReadList).Items[0])
	}
	if calls != 1 || len(names) != 2 || names[0] != names[1] {
		t.Errorf("%d calls, %v", calls, names)
	}
}

// TestReplaced: bytes that are no UTF-8, such as those of file names in another encoding, are replaced and counted.
func TestReplaced(t *testing.T) {
	var d Decoder
	v, err := d.Decode(strings.NewReader("\x80\x02X\x03\x00\x00\x00a\xffb."))
	if err != nil || v != "a\uFFFDb" || d.Replaced != 1 {
		t.Errorf("%q, %d replaced, %v", v, d.Replaced, err)
	}
}

// FuzzDecode: bad files are errors, and what was read can be written and read again.
func FuzzDecode(f *testing.F) {
	var b bytes.Buffer
	if err := Encode(&b, Dict{{"a", []any{1, -70000, uint64(1) << 63, 0.5, true, nil, Tuple{1, 2, 3, "a"}}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("\x80\x02]q\x00h\x00a."))
	for _, file := range hostile {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		d := Decoder{Memory: 1 << 24}
		v, err := d.Decode(bytes.NewReader(in))
		if err != nil {
			return
		}
		if size(v, 1000) > 1000 {
			return // shared values make it large
		}
		var b bytes.Buffer
		if err := Encode(&b, rewrite(v)); err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(&b); err != nil {
			t.Fatal(err)
		}
	})
}

// size is how many parts a value has, or more than most.
func size(v any, most int) int {
	n := 1
	switch v := v.(type) {
	case *ReadList:
		for _, x := range v.Items {
			if n > most {
				break
			}
			n += size(x, most-n)
		}
	case *ReadDict:
		for _, x := range v.Items {
			if n > most {
				break
			}
			n += size(x.Value, most-n)
		}
	}
	return n
}

// rewrite is a value that was read in the form that Encode takes; large numbers are nil.
func rewrite(v any) any {
	switch v := v.(type) {
	case *big.Int:
		return nil
	case *ReadList:
		out := make([]any, len(v.Items))
		for i, x := range v.Items {
			out[i] = rewrite(x)
		}
		if v.Fixed {
			return Tuple(out)
		}
		return out
	case *ReadDict:
		out := Dict{}
		for _, x := range v.Items {
			out = append(out, Item{x.Key, rewrite(x.Value)})
		}
		return out
	}
	return v
}
