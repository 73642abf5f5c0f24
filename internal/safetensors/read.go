package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/claim"
)

// File is a parsed file.
type File struct {
	Metadata map[string]string // of "__metadata__"; nil without it
	Entries  []Entry           // in the order of their bytes
	index    map[string]int
}

// Entry is a tensor of a parsed file.
type Entry struct {
	Name  string
	DType string // F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL, or F8_…
	Shape []int  // empty for a scalar

	begin, end int // of its bytes in the data section
	data       []byte
}

// Data returns the tensor's bytes, little-endian in C order: a view of what
// [Parse] was given, at any alignment (files of early writers have none).
func (e *Entry) Data() []byte { return e.data }

// Lookup finds a tensor by name.
func (f *File) Lookup(name string) (*Entry, bool) {
	i, ok := f.index[name]
	if !ok {
		return nil, false
	}
	return &f.Entries[i], true
}

// Parse checks the whole header of a file and returns its tensors as views of data.
func Parse(data []byte) (*File, error) {
	f, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return f, nil
}

func parse(data []byte) (*File, error) {
	header, body, err := split(data)
	if err != nil {
		return nil, err
	}
	f := &File{}
	if err := f.readHeader(header); err != nil {
		return nil, err
	}
	if err := f.place(body); err != nil {
		return nil, err
	}
	f.index = make(map[string]int, len(f.Entries))
	for i := range f.Entries {
		f.index[f.Entries[i].Name] = i
	}
	return f, nil
}

// split separates the JSON header from the tensors' bytes.
func split(data []byte) (header, body []byte, err error) {
	if len(data) < lengthSize {
		return nil, nil, fmt.Errorf("%d bytes, too short for the header length (%d bytes): truncated, or not a safetensors file", len(data), lengthSize)
	}
	n, rest := binary.LittleEndian.Uint64(data), data[lengthSize:]
	switch {
	case n > maxHeader:
		return nil, nil, fmt.Errorf("header length %d is above the limit of %d: not a safetensors file", n, maxHeader)
	case n > uint64(len(rest)):
		return nil, nil, fmt.Errorf("header length %d is beyond the %d bytes that follow: truncated, or not a safetensors file", n, len(rest))
	}
	header = rest[:n]
	switch {
	case !bytes.HasPrefix(header, []byte("{")):
		return nil, nil, errors.New("header does not start with {: not a safetensors file")
	case !utf8.Valid(header):
		return nil, nil, errors.New("header is not valid UTF-8")
	}
	return header, rest[n:], nil
}

// readHeader fills f from the JSON; bytes are placed later.
func (f *File) readHeader(header []byte) error {
	p := &parser{json.NewDecoder(bytes.NewReader(header))}
	p.dec.UseNumber()
	err := p.object(func(name string) error {
		if name == metadataName {
			f.Metadata = map[string]string{}
			return within(metadataName, p.object(func(key string) (err error) {
				f.Metadata[key], err = p.text()
				return within(claim.Quote(key), err)
			}))
		}
		e, err := p.entry(name)
		f.Entries = append(f.Entries, e)
		return within("tensor "+claim.Quote(name), err)
	})
	if err != nil {
		return within("header", err)
	}
	if tail := strings.TrimLeft(string(header[p.dec.InputOffset():]), " \t\r\n"); tail != "" {
		return fmt.Errorf("header: %d bytes after the closing brace: %s", len(tail), claim.Quote(tail))
	}
	return nil
}

// place checks that the entries cover body without hole or overlap, and cuts it up.
func (f *File) place(body []byte) error {
	sort.SliceStable(f.Entries, func(i, j int) bool {
		a, b := &f.Entries[i], &f.Entries[j]
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end)) < 0
	})
	at := 0
	for i := range f.Entries {
		e := &f.Entries[i]
		if err := e.check(len(body)); err != nil {
			return within("tensor "+claim.Quote(e.Name), err)
		}
		switch {
		case e.begin > at:
			return fmt.Errorf("tensor %s starts at byte %d of the data, but the one before ends at %d: bytes of no tensor", claim.Quote(e.Name), e.begin, at)
		case e.begin < at:
			return fmt.Errorf("tensor %s starts at byte %d of the data, inside tensor %s, which ends at %d", claim.Quote(e.Name), e.begin, claim.Quote(f.Entries[i-1].Name), at)
		}
		e.data = body[e.begin:e.end:e.end]
		at = e.end
	}
	if at != len(body) {
		return fmt.Errorf("%d bytes after the last tensor, which ends at byte %d of the data, belong to none", len(body)-at, at)
	}
	return nil
}

// check compares the three statements about the size of a tensor: its offsets,
// its dtype and shape, and the length of the data.
func (e *Entry) check(total int) error {
	size, err := byteSize(e.DType, e.Shape)
	switch {
	case err != nil:
		return err
	case e.begin > e.end:
		return fmt.Errorf("data_offsets [%d, %d] end before they begin", e.begin, e.end)
	case e.end > total:
		return fmt.Errorf("data_offsets [%d, %d] end beyond the %d bytes of data: truncated?", e.begin, e.end, total)
	case size != e.end-e.begin:
		return fmt.Errorf("%s of shape %s takes %d bytes, but data_offsets [%d, %d] hold %d", e.DType, claim.Shape(e.Shape), size, e.begin, e.end, e.end-e.begin)
	}
	return nil
}

// parser reads the only JSON a header may hold. It never recurses: whatever is
// nested deeper than the format is a value of the wrong kind.
type parser struct{ dec *json.Decoder }

// entry reads the three facts about a tensor, in any order.
func (p *parser) entry(name string) (Entry, error) {
	e := Entry{Name: name}
	fields := 0
	err := p.object(func(key string) (err error) {
		fields++
		switch key {
		case "dtype":
			e.DType, err = p.text()
		case "shape":
			e.Shape, err = p.ints()
		case "data_offsets":
			e.begin, e.end, err = p.offsets()
		default:
			err = errors.New("unknown key; want dtype, shape and data_offsets")
		}
		return within(claim.Quote(key), err)
	})
	if err == nil && fields != 3 {
		err = errors.New("want all of dtype, shape and data_offsets")
	}
	return e, err
}

func (p *parser) offsets() (begin, end int, err error) {
	v, err := p.ints()
	if err != nil {
		return 0, 0, err
	}
	if len(v) != 2 {
		return 0, 0, fmt.Errorf("%d numbers %s, want begin and end", len(v), claim.Shape(v))
	}
	return v[0], v[1], nil
}

// object reads an object whose values field reads; a key may appear once.
func (p *parser) object(field func(key string) error) error {
	if err := p.delim('{', "an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		key, err := p.text()
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("key %s appears twice", claim.Quote(key))
		}
		seen[key] = true
		if err := field(key); err != nil {
			return err
		}
	}
	return p.delim('}', "the end of the object")
}

func (p *parser) text() (string, error) {
	tok, err := p.token()
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", fmt.Errorf("got %s, want a string", describe(tok))
	}
	return s, nil
}

// ints reads an array of integers from 0 to the largest int.
func (p *parser) ints() ([]int, error) {
	if err := p.delim('[', "an array of integers"); err != nil {
		return nil, err
	}
	v := []int{}
	for p.dec.More() {
		tok, err := p.token()
		if err != nil {
			return nil, err
		}
		n, ok := tok.(json.Number)
		if !ok {
			return nil, fmt.Errorf("got %s, want a non-negative integer", describe(tok))
		}
		d, err := strconv.ParseUint(string(n), 10, strconv.IntSize-1)
		if err != nil {
			return nil, fmt.Errorf("%s is not an integer from 0 to 2^%d−1", describe(n), strconv.IntSize-1)
		}
		v = append(v, int(d))
	}
	return v, p.delim(']', "the end of the array")
}

func (p *parser) delim(want json.Delim, what string) error {
	tok, err := p.token()
	if err == nil && tok != want {
		err = fmt.Errorf("got %s, want %s", describe(tok), what)
	}
	return err
}

func (p *parser) token() (json.Token, error) {
	tok, err := p.dec.Token()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("the JSON ends early")
	case err != nil:
		return nil, fmt.Errorf("byte %d: %w", p.dec.InputOffset(), err)
	}
	return tok, nil
}

func describe(tok json.Token) string {
	switch tok := tok.(type) {
	case nil:
		return "null"
	case string:
		return "the string " + claim.Quote(tok)
	case json.Number:
		if len(tok) > 40 {
			return string(tok[:40]) + "…"
		}
		return string(tok)
	}
	return fmt.Sprint(tok)
}

// within says where an error happened.
func within(where string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", where, err)
	}
	return err
}
