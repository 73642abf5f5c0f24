// Package text reads text files for language models: one token per character, or per byte.
package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/data/tokens"
	"github.com/warpline-ml/warpline/internal/durable"
)

// Unit is what one token stands for.
type Unit string

// The units.
const (
	Characters Unit = "characters" // Unicode code points
	Bytes      Unit = "bytes"
)

// maxVocab is the most tokens a vocabulary has: ids are kept as uint16.
const maxVocab = 1 << 16

// Tokenizer maps text to ids: positions in a sorted vocabulary. It is immutable and may be used by several goroutines.
type Tokenizer struct {
	unit  Unit
	vocab []rune // for Bytes 0 to 255
	ids   map[rune]uint16
}

// NewTokenizer makes the tokenizer of a text: its vocabulary is the text's characters, or all bytes.
func NewTokenizer(text string, unit Unit) (*Tokenizer, error) {
	switch unit {
	case Bytes:
		vocab := make([]rune, 256)
		for i := range vocab {
			vocab[i] = rune(i)
		}
		return newTokenizer(unit, vocab), nil
	case Characters:
		vocab, err := characters(text)
		if err != nil {
			return nil, err
		}
		return newTokenizer(unit, vocab), nil
	}
	return nil, fmt.Errorf("text: there is no unit %q; use %q or %q", unit, Characters, Bytes)
}

func newTokenizer(unit Unit, vocab []rune) *Tokenizer {
	t := &Tokenizer{unit, vocab, make(map[rune]uint16, len(vocab))}
	for i, r := range vocab {
		t.ids[r] = uint16(i)
	}
	return t
}

func characters(text string) ([]rune, error) {
	seen := map[rune]bool{}
	var vocab []rune
	for i, r := range text {
		if r == utf8.RuneError && !validAt(text, i) {
			return nil, notUTF8(text, i)
		}
		if !seen[r] {
			seen[r] = true
			vocab = append(vocab, r)
		}
	}
	if len(vocab) == 0 {
		return nil, errors.New("text: no characters; give a text to take the vocabulary from")
	}
	if len(vocab) > maxVocab {
		return nil, fmt.Errorf("text: %d different characters are more than %d; use %q", len(vocab), maxVocab, Bytes)
	}
	slices.Sort(vocab)
	return vocab, nil
}

// validAt tells a U+FFFD that is in the text from a byte that is not UTF-8.
func validAt(text string, i int) bool {
	_, n := utf8.DecodeRuneInString(text[i:])
	return n > 1
}

func notUTF8(text string, i int) error {
	return fmt.Errorf("text: byte 0x%02x at %d is not UTF-8; convert the text, or use %q", text[i], i, Bytes)
}

// Size is the number of tokens in the vocabulary.
func (t *Tokenizer) Size() int { return len(t.vocab) }

// Unit is what a token stands for.
func (t *Tokenizer) Unit() Unit { return t.unit }

// Encode maps text to ids. A character that the vocabulary lacks is an error.
func (t *Tokenizer) Encode(text string) ([]uint16, error) {
	ids := make([]uint16, 0, len(text))
	if t.unit == Bytes {
		for i := range len(text) {
			ids = append(ids, uint16(text[i]))
		}
		return ids, nil
	}
	for i, r := range text {
		id, ok := t.ids[r]
		switch {
		case r == utf8.RuneError && !validAt(text, i):
			return nil, notUTF8(text, i)
		case !ok:
			return nil, fmt.Errorf("text: %q at %d is none of the %d characters of the vocabulary; leave it out", r, i, len(t.vocab))
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Decode maps ids back to text.
func (t *Tokenizer) Decode(ids ...int64) (string, error) {
	out := make([]byte, 0, len(ids))
	for i, id := range ids {
		switch {
		case id < 0 || id >= int64(len(t.vocab)):
			return "", fmt.Errorf("text: token %d at %d is beyond the vocabulary of %d", id, i, len(t.vocab))
		case t.unit == Bytes:
			out = append(out, byte(id))
		default:
			out = utf8.AppendRune(out, t.vocab[id])
		}
	}
	return string(out), nil
}

// file is the JSON of a tokenizer.
type file struct {
	Format     string   `json:"format"`
	Version    int      `json:"version"`
	Unit       Unit     `json:"unit"`
	Vocabulary []string `json:"vocabulary,omitempty"` // of Characters, sorted by code point
}

const (
	format  = "warpline-tokenizer"
	version = 1
)

// Save writes the tokenizer to a JSON file.
func (t *Tokenizer) Save(path string) error {
	return durable.WriteFile(path, func(w io.Writer) error {
		b, err := json.MarshalIndent(t.file(), "", " ")
		if err != nil {
			return err
		}
		_, err = w.Write(append(b, '\n'))
		return err
	})
}

func (t *Tokenizer) file() *file {
	f := &file{Format: format, Version: version, Unit: t.unit}
	if t.unit == Characters {
		for _, r := range t.vocab {
			f.Vocabulary = append(f.Vocabulary, string(r))
		}
	}
	return f
}

// Load reads a tokenizer that Save wrote.
func Load(path string) (*Tokenizer, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func parse(b []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("not a tokenizer: %w", err)
	}
	switch {
	case f.Format != format:
		return nil, fmt.Errorf("format %q is not %q; give a tokenizer.json of a run folder", f.Format, format)
	case f.Version != version:
		return nil, fmt.Errorf("version %d of the format; this program reads version %d", f.Version, version)
	case f.Unit == Bytes && len(f.Vocabulary) == 0:
		return NewTokenizer("", Bytes)
	case f.Unit != Characters || len(f.Vocabulary) == 0 || len(f.Vocabulary) > maxVocab:
		return nil, fmt.Errorf("unit %q with %d entries is no vocabulary", f.Unit, len(f.Vocabulary))
	}
	vocab := make([]rune, len(f.Vocabulary))
	for i, s := range f.Vocabulary {
		r, n := utf8.DecodeRuneInString(s)
		if n == 0 || n != len(s) || i > 0 && r <= vocab[i-1] {
			return nil, fmt.Errorf("entry %d of the vocabulary, %q, is not one character above the one before", i, s)
		}
		vocab[i] = r
	}
	return newTokenizer(Characters, vocab), nil
}

// Open reads a text file and makes its tokenizer and its tokens.
func Open(path string, unit Unit) (*Tokenizer, *tokens.Set, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	t, err := NewTokenizer(string(b), unit)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	set, err := t.Tokens(path, string(b))
	return t, set, err
}

// Open reads a text file as tokens of t.
func (t *Tokenizer) Open(path string) (*tokens.Set, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return t.Tokens(path, string(b))
}

// Tokens makes tokens of a text. The name stands in errors.
func (t *Tokenizer) Tokens(name, text string) (*tokens.Set, error) {
	ids, err := t.Encode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return tokens.New(name, ids, t.Size()), nil
}

// String tells the tokenizer's unit and the size of its vocabulary.
func (t *Tokenizer) String() string { return fmt.Sprintf("%d %s", len(t.vocab), t.unit) }
