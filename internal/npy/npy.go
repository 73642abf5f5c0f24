// Package npy reads and writes arrays of NumPy: .npy files (format versions 1,
// 2 and 3, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html)
// and .npz archives of them.
//
// Only plain numbers are read: an array of Python objects is a pickle, which
// can run code, and is refused, as are records, strings, dates and complex
// numbers. Whatever a header claims, no more is allocated than the input could hold.
package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/claim"
)

const (
	magic   = "\x93NUMPY"
	maxRank = 64 // dimensions, NumPy's own limit

	headerAlign = 64 // NumPy's alignment of the data, so that it can be mapped
	growthWidth = 21 // room NumPy leaves for the first dimension to grow in place
)

// Array is an array as it is in memory: little-endian, in C order.
type Array struct {
	DType string // <f8 <f4 <f2 <i8 <i4 <i2 |i1 <u8 <u4 <u2 |u1 |b1
	Shape []int  // empty for a scalar
	Data  []byte
}

// Parse reads a .npy file. Big-endian and Fortran-ordered files are converted;
// of the others, Data is a view of file.
func Parse(file []byte) (*Array, error) {
	a, err := parse(file)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	return a, nil
}

func parse(file []byte) (*Array, error) {
	text, body, err := split(file)
	if err != nil {
		return nil, err
	}
	h, err := parseHeader(text)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	k, err := parseDType(h.descr)
	if err != nil {
		return nil, err
	}
	size, err := byteSize(k.size, h.shape)
	switch {
	case err != nil:
		return nil, err
	case size > len(body):
		return nil, fmt.Errorf("%s of shape %v takes %d bytes, but %d follow the header: truncated", h.descr, h.shape, size, len(body))
	case size < len(body):
		return nil, fmt.Errorf("%s of shape %v takes %d bytes, but %d follow the header: trailing bytes", h.descr, h.shape, size, len(body))
	}
	a := &Array{DType: k.little(), Shape: h.shape, Data: body[:size:size]}
	if h.fortran && !oneAxis(h.shape) {
		a.Data = toCOrder(a.Data, h.shape, k.size)
	}
	if k.big {
		a.Data = swapped(a.Data, k.size)
	}
	return a, nil
}

// split separates the header's text from the elements' bytes.
func split(file []byte) (text, body []byte, err error) {
	const prefix = len(magic) + 2
	if !bytes.HasPrefix(file, []byte(magic)) || len(file) < prefix {
		return nil, nil, errors.New("does not start with \\x93NUMPY and a version: not a .npy file")
	}
	major, minor, rest := file[prefix-2], file[prefix-1], file[prefix:]
	width := 4
	switch {
	case minor != 0 || major < 1 || major > 3:
		return nil, nil, fmt.Errorf("format version %d.%d is not 1.0, 2.0 or 3.0", major, minor)
	case major == 1:
		width = 2
	}
	if len(rest) < width {
		return nil, nil, errors.New("truncated before the header length")
	}
	n := uint64(binary.LittleEndian.Uint16(rest))
	if width == 4 {
		n = uint64(binary.LittleEndian.Uint32(rest))
	}
	rest = rest[width:]
	if n > uint64(len(rest)) {
		return nil, nil, fmt.Errorf("header length %d is beyond the %d bytes that follow: truncated", n, len(rest))
	}
	return rest[:n], rest[n:], nil
}

// Write writes a .npy file as numpy.save does, byte for byte.
func Write(w io.Writer, a *Array) error {
	if err := write(w, a); err != nil {
		return fmt.Errorf("npy: %w", err)
	}
	return nil
}

func write(w io.Writer, a *Array) error {
	k, err := parseDType(a.DType)
	if err != nil {
		return err
	}
	size, err := byteSize(k.size, a.Shape)
	switch {
	case err != nil:
		return err
	case k.little() != a.DType:
		return fmt.Errorf("dtype %s: write %s, its data little-endian", a.DType, k.little())
	case size != len(a.Data):
		return fmt.Errorf("%s of shape %v takes %d bytes, got %d", a.DType, a.Shape, size, len(a.Data))
	}
	if _, err := w.Write(header(a)); err != nil {
		return err
	}
	_, err = w.Write(a.Data)
	return err
}

// header returns all that precedes the elements, in version 1: with at most
// maxRank dimensions it never needs the longer length of the others.
func header(a *Array) []byte {
	dims := make([]string, len(a.Shape))
	for i, d := range a.Shape {
		dims[i] = fmt.Sprint(d)
	}
	shape := strings.Join(dims, ", ")
	if len(dims) == 1 {
		shape += ","
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", a.DType, shape)
	if len(dims) > 0 {
		text += strings.Repeat(" ", growthWidth-len(dims[0]))
	}
	const fixed = len(magic) + 4
	pad := headerAlign - (fixed+len(text)+1)%headerAlign
	text += strings.Repeat(" ", pad) + "\n"
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}

// kind is a parsed dtype.
type kind struct {
	code string // type letter and size, f4
	size int    // bytes of an element
	big  bool
}

// little returns the dtype of the same numbers in little-endian.
func (k kind) little() string {
	if k.size == 1 {
		return "|" + k.code
	}
	return "<" + k.code
}

// parseDType reads the string that numpy.dtype.str gives.
func parseDType(descr string) (kind, error) {
	codes := []string{"f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "b1"}
	if len(descr) != 3 || !slices.Contains(codes, descr[1:]) {
		return kind{}, fmt.Errorf("dtype %s is not a plain number or bool; convert it with astype before saving (f8 to f2, i8 to i1, u8 to u1, b1 are read)", claim.Quote(descr))
	}
	k := kind{code: descr[1:], size: int(descr[2] - '0'), big: descr[0] == '>'}
	if !strings.Contains("<>|", descr[:1]) || (descr[0] == '|' && k.size > 1) {
		return kind{}, fmt.Errorf("dtype %s does not say its byte order with < or >", claim.Quote(descr))
	}
	return k, nil
}

// byteSize returns the bytes of an array.
func byteSize(element int, shape []int) (int, error) {
	if len(shape) > maxRank {
		return 0, fmt.Errorf("%d dimensions, above NumPy's limit of %d", len(shape), maxRank)
	}
	return claim.Bytes(element, shape)
}

// oneAxis reports whether C and Fortran order are the same.
func oneAxis(shape []int) bool {
	axes := 0
	for _, d := range shape {
		if d != 1 {
			axes++
		}
	}
	return axes <= 1
}

// toCOrder returns the elements of a Fortran-ordered array (first index
// fastest) in C order (last index fastest).
func toCOrder(src []byte, shape []int, size int) []byte {
	stride := make([]int, len(shape)) // in src, bytes
	step := size
	for i, d := range shape {
		stride[i] = step
		step *= d
	}
	dst := make([]byte, len(src))
	index := make([]int, len(shape))
	from := 0
	for to := 0; to < len(dst); to += size {
		copy(dst[to:to+size], src[from:])
		for i := len(shape) - 1; i >= 0; i-- {
			from += stride[i]
			if index[i]++; index[i] < shape[i] {
				break
			}
			from -= stride[i] * shape[i]
			index[i] = 0
		}
	}
	return dst
}

// swapped returns the elements with their bytes reversed.
func swapped(src []byte, size int) []byte {
	dst := slices.Clone(src)
	for i := 0; i < len(dst); i += size {
		slices.Reverse(dst[i : i+size])
	}
	return dst
}
