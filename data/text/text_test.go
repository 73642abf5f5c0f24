package text

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

func TestCharacters(t *testing.T) {
	tok, err := NewTokenizer("hello, wörld\n\ufffd", Characters)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(tok.vocab), "\n ,dehlorwö\ufffd"; got != want {
		t.Errorf("vocabulary %q, want %q", got, want)
	}
	ids, err := tok.Encode("wö\n\ufffd")
	if err != nil || !slices.Equal(ids, []uint16{9, 10, 0, 11}) {
		t.Errorf("%v, %v", ids, err)
	}
	if s, err := tok.Decode(9, 10, 0, 11); s != "wö\n\ufffd" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	if _, err := tok.Encode("help"); err == nil || !strings.Contains(err.Error(), `'p' at 3 is none of the 12 characters`) {
		t.Errorf("got %v", err)
	}
	for _, id := range []int64{-1, 12} {
		if _, err := tok.Decode(0, id); err == nil || !strings.Contains(err.Error(), "at 1 is beyond the vocabulary of 12") {
			t.Errorf("got %v", err)
		}
	}
}

func TestBytes(t *testing.T) {
	tok, err := NewTokenizer("", Bytes)
	if err != nil || tok.Size() != 256 {
		t.Fatal(tok, err)
	}
	ids, err := tok.Encode("ö\xff")
	if err != nil || !slices.Equal(ids, []uint16{0xc3, 0xb6, 0xff}) {
		t.Errorf("%v, %v", ids, err)
	}
	if s, err := tok.Decode(0xc3, 0xb6, 0xff); s != "ö\xff" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
}

func TestBadText(t *testing.T) {
	for text, want := range map[string]string{"ab\xffc": "byte 0xff at 2 is not UTF-8", "": "no characters"} {
		if _, err := NewTokenizer(text, Characters); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := NewTokenizer("x", "words"); err == nil || !strings.Contains(err.Error(), `no unit "words"`) {
		t.Errorf("got %v", err)
	}
	tok, _ := NewTokenizer("ab", Characters)
	if _, err := tok.Encode("a\xe4"); err == nil || !strings.Contains(err.Error(), "byte 0xe4 at 1") {
		t.Errorf("got %v", err)
	}
}

func TestSaveAndLoad(t *testing.T) {
	dir := t.TempDir()
	for _, unit := range []Unit{Characters, Bytes} {
		a, err := NewTokenizer("a \"quoted\"\n<b>\u2028é\x00", unit)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "tokenizer.json")
		if err := a.Save(path); err != nil {
			t.Fatal(err)
		}
		b, err := Load(path)
		if err != nil || b.Unit() != unit || !slices.Equal(a.vocab, b.vocab) {
			t.Errorf("%s: %+v, %v", unit, b, err)
		}
	}
	if _, err := Load(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := new(Tokenizer).Save(filepath.Join(dir, "no", "such", "folder")); err == nil {
		t.Error("saved into a folder that is not there")
	}
}

func TestBadTokenizers(t *testing.T) {
	for json, want := range map[string]string{
		``:   "not a tokenizer",
		`{`:  "not a tokenizer",
		`{}`: `format "" is not`,
		`{"format":"warpline-tokenizer","version":2}`:                                            "version 2",
		`{"format":"warpline-tokenizer","version":1,"unit":"words"}`:                             `unit "words"`,
		`{"format":"warpline-tokenizer","version":1,"unit":"characters"}`:                        "0 entries",
		`{"format":"warpline-tokenizer","version":1,"unit":"bytes","vocabulary":["a"]}`:          `unit "bytes" with 1 entries`,
		`{"format":"warpline-tokenizer","version":1,"unit":"characters","vocabulary":["b","a"]}`: "entry 1",
		`{"format":"warpline-tokenizer","version":1,"unit":"characters","vocabulary":["a","a"]}`: "entry 1",
		`{"format":"warpline-tokenizer","version":1,"unit":"characters","vocabulary":["ab"]}`:    "entry 0",
		`{"format":"warpline-tokenizer","version":1,"unit":"characters","vocabulary":[""]}`:      "entry 0",
		`{"format":"warpline-tokenizer","version":1,"unit":"characters","vocabulary":[1]}`:       "not a tokenizer",
	} {
		if _, err := parse([]byte(json)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", json, err)
		}
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "input.txt")
	if err := os.WriteFile(path, []byte("abcab"), 0o666); err != nil {
		t.Fatal(err)
	}
	tok, set, err := Open(path, Characters)
	if err != nil || set.Len() != 5 || set.Vocab() != 3 {
		t.Fatal(set, err)
	}
	if id, err := set.ID(2); id != 2 || err != nil {
		t.Errorf("%d, %v", id, err)
	}
	other := filepath.Join(t.TempDir(), "other.txt")
	if err := os.WriteFile(other, []byte("cabbage"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := tok.Open(other); err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("got %v", err)
	}
	if again, err := tok.Open(path); err != nil || again.Len() != 5 {
		t.Errorf("got %v", err)
	}
}

func TestRoundTripOfRandomText(t *testing.T) {
	r := testutil.Rand(t)
	for range 100 {
		runes := make([]rune, 1+r.IntN(50))
		for i := range runes {
			runes[i] = rune(r.IntN(0xd800))
		}
		tok, err := NewTokenizer(string(runes), Characters)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := tok.Encode(string(runes))
		if err != nil {
			t.Fatal(err)
		}
		wide := make([]int64, len(ids))
		for i, id := range ids {
			wide[i] = int64(id)
		}
		if back, err := tok.Decode(wide...); back != string(runes) || err != nil {
			t.Fatalf("%q became %q, %v", string(runes), back, err)
		}
	}
}

func FuzzTokenizer(f *testing.F) {
	f.Add([]byte(`{"format":"warpline-tokenizer","version":1,"unit":"characters","vocabulary":["a","b"]}`))
	f.Add([]byte(`{"format":"warpline-tokenizer","version":1,"unit":"bytes"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := parse(b)
		if err != nil {
			return
		}
		s, err := tok.Decode(int64(tok.Size() - 1))
		if err != nil {
			t.Fatal(err)
		}
		if ids, err := tok.Encode(s); err != nil || len(ids) != 1 || int(ids[0]) != tok.Size()-1 {
			t.Errorf("the last token %q encodes to %v, %v", s, ids, err)
		}
	})
}
