// Package idxfile parses IDX files, the format of MNIST and its relatives, plain
// or compressed by gzip: two zero bytes, a type, the number of dimensions, the
// dimensions as big-endian 32-bit numbers, the elements (big-endian, C order).
// Source: http://yann.lecun.com/exdb/mnist.
package idxfile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/internal/claim"
)

// Type is the code of an element type in the file.
type Type byte

// The six element types.
const (
	Uint8   Type = 0x08
	Int8    Type = 0x09
	Int16   Type = 0x0B
	Int32   Type = 0x0C
	Float32 Type = 0x0D
	Float64 Type = 0x0E
)

// Size returns the bytes of an element, 0 for a code that is no type.
func (t Type) Size() int {
	switch t {
	case Uint8, Int8:
		return 1
	case Int16:
		return 2
	case Int32, Float32:
		return 4
	case Float64:
		return 8
	}
	return 0
}

// String returns the name of the Go type, such as uint8.
func (t Type) String() string {
	switch t {
	case Uint8:
		return "uint8"
	case Int8:
		return "int8"
	case Int16:
		return "int16"
	case Int32:
		return "int32"
	case Float32:
		return "float32"
	case Float64:
		return "float64"
	}
	return fmt.Sprintf("type 0x%02x", byte(t))
}

// File is a parsed file.
type File struct {
	Type  Type
	Shape []int  // at least one dimension
	Data  []byte // little-endian, C order
}

const (
	fixedHeader = 4 // two zeros, type, number of dimensions
	dimSize     = 4
)

var gzipMagic = []byte{0x1f, 0x8b}

// Parse reads a file, which it recognises as compressed or not by its first
// bytes. Data of a plain file of single bytes is a view of file. A compressed
// file is unpacked to the size its IDX header declares, never further, and not
// at all when so few bytes cannot hold that much.
func Parse(file []byte) (*File, error) {
	read := plain
	if bytes.HasPrefix(file, gzipMagic) {
		read = compressed
	}
	f, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("idx: %w", err)
	}
	f.toLittleEndian()
	return f, nil
}

func plain(file []byte) (*File, error) {
	r := bytes.NewReader(file)
	f, size, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	body := file[len(file)-r.Len():]
	switch {
	case len(body) < size:
		return nil, fmt.Errorf("%v of shape %v takes %d bytes, but %d follow the header: truncated", f.Type, f.Shape, size, len(body))
	case len(body) > size:
		return nil, fmt.Errorf("%v of shape %v takes %d bytes, but %d follow the header: trailing bytes", f.Type, f.Shape, size, len(body))
	}
	f.Data = body[:size:size]
	if f.Type.Size() > 1 {
		f.Data = slices.Clone(body) // toLittleEndian must not write into file
	}
	return f, nil
}

func compressed(file []byte) (*File, error) {
	r, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("gzip of %d bytes: %w", len(file), err)
	}
	f, size, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	if !claim.Inflates(uint64(len(file)), uint64(size)) {
		return nil, fmt.Errorf("%v of shape %v takes %d bytes, more than gzip can hold in %d", f.Type, f.Shape, size, len(file))
	}
	f.Data = make([]byte, size)
	if n, err := io.ReadFull(r, f.Data); err != nil {
		return nil, fmt.Errorf("%v of shape %v takes %d bytes, but %d could be unpacked: %w", f.Type, f.Shape, size, n, noEOF(err))
	}
	// The end, where the checksum is verified, is one read away.
	switch n, err := io.ReadFull(r, make([]byte, 1)); {
	case n > 0:
		return nil, fmt.Errorf("%v of shape %v takes %d bytes, but more follow the header: trailing bytes", f.Type, f.Shape, size)
	case err != io.EOF:
		return nil, fmt.Errorf("gzip, at its end: %w", err)
	}
	return f, nil
}

// readHeader reads up to the first element, and returns the bytes of all.
func readHeader(r io.Reader) (*File, int, error) {
	var head [fixedHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, 0, fmt.Errorf("shorter than its header of %d bytes: %w", fixedHeader, noEOF(err))
	}
	f := &File{Type: Type(head[2])}
	switch {
	case head[0] != 0 || head[1] != 0:
		return nil, 0, fmt.Errorf("starts with bytes % x, not with two zeros: not an IDX file", head)
	case f.Type.Size() == 0:
		return nil, 0, fmt.Errorf("%v is not one of 08 uint8, 09 int8, 0b int16, 0c int32, 0d float32, 0e float64", f.Type)
	case head[3] == 0:
		return nil, 0, errors.New("no dimensions, want at least one")
	}
	dims := make([]byte, dimSize*int(head[3]))
	if _, err := io.ReadFull(r, dims); err != nil {
		return nil, 0, fmt.Errorf("ends within its %d dimensions: %w", head[3], noEOF(err))
	}
	for i := 0; i < len(dims); i += dimSize {
		d := binary.BigEndian.Uint32(dims[i:])
		if uint64(d) > math.MaxInt {
			return nil, 0, fmt.Errorf("dimension %d is beyond what can be counted", d)
		}
		f.Shape = append(f.Shape, int(d))
	}
	size, err := claim.Bytes(f.Type.Size(), f.Shape)
	return f, size, err
}

func (f *File) toLittleEndian() {
	n := f.Type.Size()
	if n == 1 {
		return
	}
	for i := 0; i < len(f.Data); i += n {
		slices.Reverse(f.Data[i : i+n])
	}
}

// noEOF makes an end that came too early say so.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
