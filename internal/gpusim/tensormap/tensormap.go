// Package tensormap is what CUtensorMap describes: a tensor in global memory and how boxes of it lie in shared memory. On a
// card the 128 bytes are opaque; here they have a layout of our own.
package tensormap

import (
	"encoding/binary"
	"fmt"
)

// Size is the bytes of an encoded map, and Align what its address is a multiple of.
const (
	Size  = 128
	Align = 64
)

// MaxRank is the most dimensions that a tensor may have.
const MaxRank = 5

// Elem is a CUtensorMapDataType.
type Elem uint8

// The types of elements.
const (
	U8 Elem = iota
	U16
	U32
	S32
	U64
	S64
	F16
	F32
	F64
	BF16
	F32FTZ
	TF32
	TF32FTZ
	Elems // how many there are
)

var elemBytes = [Elems]int{1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4}

// Bytes is the size of an element.
func (e Elem) Bytes() int { return elemBytes[e] }

// Float is whether elements are floating-point numbers.
func (e Elem) Float() bool { return e >= F16 }

// Interleave is a CUtensorMapInterleave: channels lie in slices of so many bytes, each of which has all pixels.
type Interleave uint8

// The interleaved layouts.
const (
	NoInterleave Interleave = iota
	Interleave16
	Interleave32
	interleaves
)

// Bytes is that of a slice of a pixel; 0 without.
func (i Interleave) Bytes() int { return [interleaves]int{0, 16, 32}[i] }

// Swizzle is a CUtensorMapSwizzle: how the units of 16 bytes of a box are exchanged in shared memory.
type Swizzle uint8

// The swizzles.
const (
	NoSwizzle Swizzle = iota
	Swizzle32
	Swizzle64
	Swizzle128
	swizzles
)

// Bytes is the span within which units are exchanged, and the widest row that a box may have; 0 without.
func (s Swizzle) Bytes() int { return [swizzles]int{0, 32, 64, 128}[s] }

// At is where a byte is in shared memory that would be at an address without the swizzle: of its bits 4 to 6 as many as
// the span has are exchanged by those from 7 on.
func (s Swizzle) At(addr uint32) uint32 {
	return addr ^ addr>>3&s.Mask()
}

// Mask is the bits of an address that are exchanged by those three higher.
func (s Swizzle) Mask() uint32 { return [swizzles]uint32{0, 0x10, 0x30, 0x70}[s] }

// Map describes a tensor and its boxes. Dimension 0 is the innermost one.
type Map struct {
	Elem       Elem
	Rank       int
	Addr       uint64
	Dim        [MaxRank]uint64 // elements, up to 2³²
	Stride     [MaxRank]uint64 // bytes from one element to the next; of dimension 0 an element's size
	Box        [MaxRank]int    // elements of the tensor that a box spans
	Step       [MaxRank]int    // of them, every how manieth it has
	Interleave Interleave
	Swizzle    Swizzle
	NaN        bool // fills what is outside of the tensor with NaN instead of zeros

	// Of im2col, instead of Box: the dimensions between channels and images have bounds for where a filter stands.
	Im2col       bool
	Lower, Upper [MaxRank - 2]int // of the bounds, counted from the first and from the last element
	Channels     int              // of a pixel, that a box has
	Pixels       int              // that a box has
}

// Check is what the driver refuses, nil if it takes the map.
func (m *Map) Check() error {
	switch {
	case m.Elem >= Elems || m.Interleave >= interleaves || m.Swizzle >= swizzles:
		return fmt.Errorf("element type %d, interleave %d, swizzle %d: there are types 0 to %d, interleaves 0 to %d, swizzles 0 to %d", m.Elem, m.Interleave, m.Swizzle, Elems-1, interleaves-1, swizzles-1)
	case m.Rank < 1 || m.Rank > MaxRank:
		return fmt.Errorf("a tensor of %d dimensions; there are 1 to %d", m.Rank, MaxRank)
	case (m.Im2col || m.Interleave != NoInterleave) && m.Rank < 3:
		return fmt.Errorf("a tensor of %d dimensions; im2col and interleaved layouts have 3 to %d", m.Rank, MaxRank)
	case m.Addr == 0 || m.Addr%m.unit() != 0:
		return fmt.Errorf("the tensor is at %#x, which is no multiple of %d", m.Addr, m.unit())
	case m.NaN && !m.Elem.Float():
		return fmt.Errorf("NaN for what is outside of a tensor of integers")
	case m.Interleave == Interleave32 && m.Swizzle != Swizzle32:
		return fmt.Errorf("an interleaved layout of 32 bytes wants the swizzle of 32 bytes")
	}
	if err := m.checkDims(); err != nil {
		return err
	}
	if m.Im2col {
		return m.checkIm2col()
	}
	return m.checkBox()
}

// unit is what the address and strides are multiples of.
func (m *Map) unit() uint64 {
	if m.Interleave == Interleave32 {
		return 32
	}
	return 16
}

func (m *Map) checkDims() error {
	for i := range m.Rank {
		switch {
		case m.Dim[i] < 1 || m.Dim[i] > 1<<32:
			return fmt.Errorf("%d elements in dimension %d; there are 1 to 2^32", m.Dim[i], i)
		case i > 0 && (m.Stride[i]%m.unit() != 0 || m.Stride[i] >= 1<<40):
			return fmt.Errorf("a stride of %d bytes in dimension %d; it is a multiple of %d below 2^40", m.Stride[i], i, m.unit())
		case m.Step[i] < 1 || m.Step[i] > 8:
			return fmt.Errorf("an element stride of %d in dimension %d; it goes from 1 to 8", m.Step[i], i)
		}
	}
	return nil
}

func (m *Map) checkBox() error {
	for i := range m.Rank {
		if m.Box[i] < 1 || m.Box[i] > 256 {
			return fmt.Errorf("a box of %d elements in dimension %d; it has 1 to 256", m.Box[i], i)
		}
	}
	return m.checkRow(m.Box[0])
}

// checkRow checks the bytes of a box's row.
func (m *Map) checkRow(elements int) error {
	n := elements * m.Elem.Bytes()
	if slice := m.Interleave.Bytes(); slice > 0 {
		n = min(n, slice)
	}
	if n%16 != 0 && m.Interleave == NoInterleave {
		return fmt.Errorf("rows of %d bytes in a box; they are multiples of 16", n)
	}
	if most := m.Swizzle.Bytes(); most > 0 && n > most {
		return fmt.Errorf("rows of %d bytes in a box; the swizzle takes up to %d", n, most)
	}
	return nil
}

func (m *Map) checkIm2col() error {
	bits := [MaxRank + 1]int{3: 16, 4: 8, 5: 5}[m.Rank]
	for i := range m.Rank - 2 {
		for _, v := range []int{m.Lower[i], m.Upper[i]} {
			if v < -(1<<(bits-1)) || v >= 1<<(bits-1) {
				return fmt.Errorf("a corner at %d; with %d dimensions it has %d bits", v, m.Rank, bits)
			}
		}
	}
	if m.Channels < 1 || m.Channels > 256 || m.Pixels < 1 || m.Pixels > 1024 {
		return fmt.Errorf("a box of %d pixels of %d channels; it has 1 to 1024 of 1 to 256", m.Pixels, m.Channels)
	}
	return m.checkRow(m.Channels)
}

// The layout of the bytes.
const (
	atMark, mark                = 0, 0x504d5457 // "WTMP"
	atElem, atRank              = 4, 5
	atInterleave, atSwizzle     = 6, 7
	atFill, atMode              = 8, 9
	atAddr, atDim, atStride     = 16, 24, 48 // a dimension less 1
	atBox, atStep               = 80, 90
	atLower, atUpper            = 96, 102
	atChannels, atPixels, atEnd = 108, 110, 112
)

// Bytes encodes the map.
func (m *Map) Bytes() (b [Size]byte) {
	le := binary.LittleEndian
	le.PutUint32(b[atMark:], mark)
	b[atElem], b[atRank], b[atInterleave], b[atSwizzle] = byte(m.Elem), byte(m.Rank-1), byte(m.Interleave), byte(m.Swizzle)
	b[atFill], b[atMode] = flag(m.NaN), flag(m.Im2col)
	le.PutUint64(b[atAddr:], m.Addr)
	for i := range m.Rank {
		le.PutUint32(b[atDim+4*i:], uint32(m.Dim[i]-1))
		le.PutUint16(b[atBox+2*i:], uint16(m.Box[i]))
		b[atStep+i] = byte(m.Step[i])
		if i > 0 {
			le.PutUint64(b[atStride+8*(i-1):], m.Stride[i])
		}
	}
	for i := range m.Lower {
		le.PutUint16(b[atLower+2*i:], uint16(m.Lower[i]))
		le.PutUint16(b[atUpper+2*i:], uint16(m.Upper[i]))
	}
	le.PutUint16(b[atChannels:], uint16(m.Channels))
	le.PutUint16(b[atPixels:], uint16(m.Pixels))
	return b
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Parse decodes a map. Bytes that are none, or that describe what the driver would refuse, are an error.
func Parse(b []byte) (*Map, error) {
	le := binary.LittleEndian
	if len(b) < Size || le.Uint32(b[atMark:]) != mark {
		return nil, fmt.Errorf("not a tensor map")
	}
	m := &Map{Elem: Elem(b[atElem]), Rank: int(b[atRank]) + 1, Interleave: Interleave(b[atInterleave]), Swizzle: Swizzle(b[atSwizzle]),
		NaN: b[atFill] != 0, Im2col: b[atMode] != 0, Addr: le.Uint64(b[atAddr:]),
		Channels: int(le.Uint16(b[atChannels:])), Pixels: int(le.Uint16(b[atPixels:]))}
	for i := range min(m.Rank, MaxRank) {
		m.Dim[i], m.Box[i], m.Step[i] = uint64(le.Uint32(b[atDim+4*i:]))+1, int(le.Uint16(b[atBox+2*i:])), int(b[atStep+i])
		if i > 0 {
			m.Stride[i] = le.Uint64(b[atStride+8*(i-1):])
		}
	}
	for i := range m.Lower {
		m.Lower[i], m.Upper[i] = int(int16(le.Uint16(b[atLower+2*i:]))), int(int16(le.Uint16(b[atUpper+2*i:])))
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	m.Stride[0] = uint64(m.Elem.Bytes())
	return m, nil
}

// Numbered are the types by their numbers in tensormap.replace, which are others than CUtensorMapDataType's.
var Numbered = []Elem{U8, U16, U32, S32, U64, S64, F16, F32, F32FTZ, F64, BF16, TF32, TF32FTZ}

// Replace changes a field of an encoded map as tensormap.replace does; what has not been a map becomes one, with the other
// fields as the bytes say. ord is the dimension, where the field has several.
func Replace(b []byte, field string, ord int, v uint64) error {
	le := binary.LittleEndian
	at, size := 0, 1
	switch field {
	case "global_address":
		at, size = atAddr, 8
	case "rank":
		at = atRank
	case "box_dim":
		at, size = atBox+2*ord, 2
	case "global_dim":
		at, size, v = atDim+4*ord, 4, v-1
	case "global_stride":
		at, size = atStride+8*ord, 8
	case "element_stride":
		at = atStep + ord
	case "elemtype":
		if v >= uint64(len(Numbered)) {
			return fmt.Errorf("an element type of %d, which is none or one that this architecture lacks", v)
		}
		at, v = atElem, uint64(Numbered[v])
	case "interleave_layout":
		at = atInterleave
	case "swizzle_mode":
		at = atSwizzle
	case "fill_mode":
		at = atFill
	default:
		return fmt.Errorf("no field %s", field)
	}
	if most := [...]int{1: 8, 2: 16, 4: 32, 8: 64}[size]; most < 64 && v>>most != 0 {
		return fmt.Errorf("%s of %d", field, v)
	}
	if field == "global_stride" && ord >= MaxRank-1 || ord >= MaxRank {
		return fmt.Errorf("%s of dimension %d", field, ord)
	}
	var x [8]byte
	le.PutUint64(x[:], v)
	copy(b[at:at+size], x[:])
	le.PutUint32(b[atMark:], mark)
	return nil
}
