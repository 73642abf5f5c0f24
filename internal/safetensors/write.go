package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/claim"
)

// Tensor is a tensor to write. Its bytes, little-endian in C order, are Data or
// what WriteData writes, exactly as many as DType and Shape say.
type Tensor struct {
	Name      string
	DType     string // as in [Entry]
	Shape     []int
	Data      []byte
	WriteData func(io.Writer) error // takes the place of Data
}

// Write writes a file of the tensors, in the order of the reference
// implementation (wide dtypes first, then by name), the data aligned to 8 bytes.
// It checks everything but the count of WriteData before the first byte.
// A nil meta leaves "__metadata__" out.
func Write(w io.Writer, meta map[string]string, tensors []Tensor) error {
	if err := write(w, meta, tensors); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

func write(w io.Writer, meta map[string]string, tensors []Tensor) error {
	tensors = slices.Clone(tensors)
	sort.SliceStable(tensors, func(i, j int) bool {
		a, b := &tensors[i], &tensors[j]
		return cmp.Or(cmp.Compare(rank(b.DType), rank(a.DType)), strings.Compare(a.Name, b.Name)) < 0
	})
	sizes, err := check(meta, tensors)
	if err != nil {
		return err
	}
	head, err := header(meta, tensors, sizes)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	for i := range tensors {
		if err := writeData(w, &tensors[i], sizes[i]); err != nil {
			return within("tensor "+claim.Quote(tensors[i].Name), err)
		}
	}
	return nil
}

// check returns the size of each tensor in bytes.
func check(meta map[string]string, tensors []Tensor) ([]int, error) {
	for _, k := range slices.Sorted(maps.Keys(meta)) {
		if !utf8.ValidString(k) || !utf8.ValidString(meta[k]) {
			return nil, fmt.Errorf("metadata %s: %s is not valid UTF-8", claim.Quote(k), claim.Quote(meta[k]))
		}
	}
	sizes := make([]int, len(tensors))
	seen := make(map[string]bool, len(tensors))
	total := 0
	for i := range tensors {
		t := &tensors[i]
		if seen[t.Name] {
			return nil, fmt.Errorf("two tensors are named %s", claim.Quote(t.Name))
		}
		seen[t.Name] = true
		var err error
		if sizes[i], err = t.check(); err != nil {
			return nil, within("tensor "+claim.Quote(t.Name), err)
		}
		if total += sizes[i]; total < 0 {
			return nil, fmt.Errorf("tensor %s: all tensors together take more bytes than can be counted", claim.Quote(t.Name))
		}
	}
	return sizes, nil
}

func (t *Tensor) check() (int, error) {
	size, err := byteSize(t.DType, t.Shape)
	switch {
	case err != nil:
		return 0, err
	case t.Name == metadataName:
		return 0, errors.New("the name is reserved for metadata")
	case !utf8.ValidString(t.Name):
		return 0, errors.New("the name is not valid UTF-8")
	case t.WriteData == nil && len(t.Data) != size:
		return 0, fmt.Errorf("%s of shape %s takes %d bytes, got %d", t.DType, claim.Shape(t.Shape), size, len(t.Data))
	}
	return size, nil
}

// header returns the length and the JSON, padded with spaces.
func header(meta map[string]string, tensors []Tensor, sizes []int) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, lengthSize))
	separator := "{"
	if meta != nil {
		b.WriteString(`{"` + metadataName + `":{`)
		for i, k := range slices.Sorted(maps.Keys(meta)) {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, k)
			b.WriteByte(':')
			writeString(b, meta[k])
		}
		b.WriteByte('}')
		separator = ","
	}
	begin := 0
	for i, t := range tensors {
		b.WriteString(separator)
		writeString(b, t.Name)
		shape := strings.Join(strings.Fields(fmt.Sprint(t.Shape)), ",")
		fmt.Fprintf(b, `:{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}`, t.DType, shape, begin, begin+sizes[i])
		begin += sizes[i]
		separator = ","
	}
	if separator == "{" {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	for b.Len()%alignment != 0 {
		b.WriteByte(' ')
	}
	n := b.Len() - lengthSize
	if n > maxHeader {
		return nil, fmt.Errorf("header of %d bytes is above the limit of %d: fewer tensors, or less metadata", n, maxHeader)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(n))
	return b.Bytes(), nil
}

// writeString appends s as a JSON string, without the escapes HTML needs.
func writeString(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	enc.Encode(s)           // a valid string into a buffer cannot fail
	b.Truncate(b.Len() - 1) // the newline
}

func writeData(w io.Writer, t *Tensor, size int) error {
	if t.WriteData == nil {
		_, err := w.Write(t.Data)
		return err
	}
	e := &exact{w: w, left: size}
	if err := t.WriteData(e); err != nil {
		return err
	}
	if e.left != 0 {
		return fmt.Errorf("its writer stopped %d bytes short of %d", e.left, size)
	}
	return nil
}

// exact refuses bytes beyond the promised ones, which would shift all that follow.
type exact struct {
	w    io.Writer
	left int
}

func (e *exact) Write(p []byte) (int, error) {
	if len(p) > e.left {
		return 0, fmt.Errorf("its writer wrote %d bytes too many", len(p)-e.left)
	}
	n, err := e.w.Write(p)
	e.left -= n
	return n, err
}
