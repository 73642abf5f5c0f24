package simrun

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/npy"
)

// elem is the type of a buffer's elements or of a scalar.
type elem struct {
	name  string
	size  int    // bytes
	kind  byte   // 'f' float, 'i' signed, 'u' unsigned
	numpy string // in an npy file; empty for bf16, which NumPy has not
}

var elems = map[string]elem{
	"f64": {"f64", 8, 'f', "<f8"}, "f32": {"f32", 4, 'f', "<f4"}, "f16": {"f16", 2, 'f', "<f2"}, "bf16": {"bf16", 2, 'f', ""},
	"i64": {"i64", 8, 'i', "<i8"}, "i32": {"i32", 4, 'i', "<i4"}, "i16": {"i16", 2, 'i', "<i2"}, "i8": {"i8", 1, 'i', "|i1"},
	"u64": {"u64", 8, 'u', "<u8"}, "u32": {"u32", 4, 'u', "<u4"}, "u16": {"u16", 2, 'u', "<u2"}, "u8": {"u8", 1, 'u', "|u1"},
	"bool": {"bool", 1, 'u', "|b1"},
}

const elemNames = "f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, bool"

// half reports a float of 16 bits.
func (e elem) half() bool { return e.kind == 'f' && e.size == 2 }

func (e elem) String() string { return e.name }

// parse is a number as the bytes of the type.
func (e elem) parse(s string) ([]byte, error) {
	var bits uint64
	switch e.kind {
	case 'f':
		f, err := strconv.ParseFloat(s, min(max(e.size*8, 32), 64))
		if err == nil {
			bits, err = e.round(f)
		}
		if err != nil {
			return nil, numberError(e, s, err)
		}
	case 'i':
		i, err := strconv.ParseInt(s, 0, e.size*8)
		if err != nil {
			return nil, numberError(e, s, err)
		}
		bits = uint64(i)
	default:
		u, err := strconv.ParseUint(s, 0, e.size*8)
		if err == nil && e.name == "bool" && u > 1 {
			err = strconv.ErrRange
		}
		if err != nil {
			return nil, numberError(e, s, err)
		}
		bits = u
	}
	return binary.LittleEndian.AppendUint64(nil, bits)[:e.size], nil
}

// round is the bit pattern nearest to f.
func (e elem) round(f float64) (bits uint64, err error) {
	var back float64
	switch e.name {
	case "f64":
		return math.Float64bits(f), nil
	case "f32":
		return uint64(math.Float32bits(float32(f))), nil
	case "f16":
		h := dtype.F16FromFloat64(f)
		bits, back = uint64(h), h.Float64()
	default:
		h := dtype.BF16FromFloat64(f)
		bits, back = uint64(h), h.Float64()
	}
	if math.IsInf(back, 0) && !math.IsInf(f, 0) {
		return 0, strconv.ErrRange
	}
	return bits, nil
}

func numberError(e elem, s string, err error) error {
	what := "is not a number of that type"
	if strings.Contains(err.Error(), "out of range") {
		what = "does not fit into it"
	}
	return fmt.Errorf("%q %s (%s)", s, what, e.name)
}

type wordKind uint8

const (
	fromFile  wordKind = iota // @a.npy, bf16@q.npy
	newBuffer                 // f32[4096], f32[4096]=0
	scalar                    // i32:5, or bytes: i32:5,f32:1.5 and hex:0500
	null
)

// word is one argument of the command line.
type word struct {
	text  string
	kind  wordKind
	elem  elem   // of a file only where it is to be converted, until it is read
	path  string // of a file
	shape []int
	bytes int    // of the buffer, that of a file once it is read
	value []byte // of a scalar, or the element that fills a buffer; nil leaves it uninitialised
	data  []byte // of a file

	number int     // among the arguments of the command line, from 0 on
	added  bool    // by Triton's metadata: it has no number
	box    *boxMap // the parameter is a tensor map of the buffer; nil: it is what the word says
}

const wordHint = "an argument is @a.npy, bf16@q.npy, f32[4096,128], f32[4096]=0, i32:5, f32:1e-5, u64:0, null, for a struct i32:5,f32:1.5 or hex:05000000, or for a tensor map map[64,64,128B]: before a buffer"

// parseWord reads one word; the files it names are not opened.
func parseWord(s string) (w word, err error) {
	w.text = s
	if rest, ok := strings.CutPrefix(s, "map["); ok {
		return parseMap(s, rest)
	}
	switch at, open, colon := strings.IndexByte(s, '@'), strings.IndexByte(s, '['), strings.IndexByte(s, ':'); {
	case s == "null":
		w.kind = null
	case at >= 0 && (open < 0 || at < open) && (colon < 0 || at < colon):
		return w, w.parseFile(s[:at], s[at+1:])
	case open >= 0 && (colon < 0 || open < colon):
		return w, w.parseBuffer(s[:open], s[open+1:])
	case colon >= 0:
		w.kind = scalar
		return w, w.parseScalar(s)
	default:
		err = errors.New("no @, [ or : in it")
	}
	return w, err
}

// parseScalar reads "i32:5", "i32:5,f32:1.5" and "hex:0500".
func (w *word) parseScalar(s string) (err error) {
	if digits, ok := strings.CutPrefix(s, "hex:"); ok {
		if w.value, err = hex.DecodeString(digits); err != nil || len(w.value) == 0 {
			return fmt.Errorf("%q is not bytes of two hexadecimal digits each", digits)
		}
		w.elem = elem{name: "struct", size: len(w.value), kind: 'u'}
		return nil
	}
	fields := strings.Split(s, ",")
	if len(fields) == 1 {
		w.elem, w.value, err = parseTyped(s)
		return err
	}
	return w.parseStruct(fields)
}

func parseTyped(s string) (e elem, value []byte, err error) {
	name, number, ok := strings.Cut(s, ":")
	if !ok {
		return e, nil, fmt.Errorf("%q has no type", s)
	}
	if e, err = findElem(name); err == nil {
		value, err = e.parse(number)
	}
	return e, value, err
}

// parseStruct lays fields out as C does: each on a multiple of its size, the whole a multiple of the largest.
func (w *word) parseStruct(fields []string) error {
	most := 1
	for _, f := range fields {
		e, v, err := parseTyped(f)
		if err != nil {
			return err
		}
		w.value = append(w.padded(e.size), v...)
		most = max(most, e.size)
	}
	w.value = w.padded(most)
	w.elem = elem{name: "struct", size: len(w.value), kind: 'u'}
	return nil
}

// padded is the value up to a multiple of n bytes.
func (w *word) padded(n int) []byte {
	return append(w.value, make([]byte, (n-len(w.value)%n)%n)...)
}

func findElem(name string) (elem, error) {
	e, ok := elems[name]
	if !ok {
		return e, fmt.Errorf("no type %q; there are %s", name, elemNames)
	}
	return e, nil
}

func (w *word) parseFile(convert, path string) error {
	w.kind, w.path = fromFile, path
	if path == "" {
		return errors.New("no file after the @")
	}
	switch convert {
	case "":
	case "f16", "bf16":
		w.elem = elems[convert]
	default:
		return fmt.Errorf("%q before the @; files are converted to f16 and bf16 only", convert)
	}
	return nil
}

// parseBuffer reads what follows the bracket: "4096,128]" or "4096]=0".
func (w *word) parseBuffer(typ, rest string) (err error) {
	w.kind = newBuffer
	if w.elem, err = findElem(typ); err != nil {
		return err
	}
	list, tail, ok := strings.Cut(rest, "]")
	if !ok {
		return errors.New("no ] after the shape")
	}
	for part := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a size", part)
		}
		if n > maxBuffers {
			return fmt.Errorf("a buffer of more than %d bytes", int64(maxBuffers))
		}
		w.shape = append(w.shape, int(n))
	}
	if w.bytes, err = byteSize(w.elem, w.shape); err != nil || tail == "" {
		return err
	}
	fill, ok := strings.CutPrefix(tail, "=")
	if !ok {
		return fmt.Errorf("%q after the shape; =VALUE fills the buffer", tail)
	}
	w.value, err = w.elem.parse(fill)
	return err
}

// maxBuffers bounds the bytes of all buffers of a run, which the simulator keeps in the memory of the host.
const maxBuffers = 1 << 30

func byteSize(e elem, shape []int) (int, error) {
	n := e.size
	for _, d := range shape {
		if n > maxBuffers/max(d, 1) {
			return 0, fmt.Errorf("a buffer of more than %d bytes", int64(maxBuffers))
		}
		n *= d
	}
	return n, nil
}

// describe names the word's type for people: "f32[4096,128]", "i32", "null".
func (w *word) describe() string {
	switch w.kind {
	case null:
		return "null"
	case scalar:
		return w.elem.name
	}
	return w.elem.name + shapeText(w.shape)
}

func shapeText(shape []int) string {
	return strings.ReplaceAll(fmt.Sprint(shape), " ", ",")
}

// parseWords reads all words and the files that they name.
func parseWords(texts []string) ([]word, error) {
	var words []word
	total := 0
	for i, t := range texts {
		w, err := parseWord(t)
		if err != nil {
			return nil, advice.Failf(wordHint, "argument %d, %q: %v", i, t, err)
		}
		if w.kind == fromFile {
			if err := w.read(); err != nil {
				return nil, err
			}
		}
		if total += w.bytes; total > maxBuffers {
			return nil, advice.Failf("use smaller buffers", "the arguments up to %d, %q, have more than %d bytes", i, t, int64(maxBuffers))
		}
		if w.number = i; w.box != nil {
			if err := w.box.of(&w); err != nil {
				return nil, advice.Failf(mapHint, "argument %d, %q: %v", i, t, err)
			}
		}
		words = append(words, w)
	}
	return words, nil
}

// read takes the content of the word's file and converts it if the word says so.
func (w *word) read() error {
	const hint = "write it with numpy.save, as numbers and not as objects"
	b, err := ReadFile(w.path, maxBuffers)
	if err != nil {
		return err
	}
	a, err := npy.Parse(b)
	if err != nil {
		return advice.Failf(hint, "%s: %s", w.path, strings.TrimPrefix(err.Error(), "npy: "))
	}
	if len(a.Data) == 0 {
		return advice.Failf("a buffer has at least one element", "%s has no elements: its shape is %s", w.path, shapeText(a.Shape))
	}
	w.shape, w.data, w.bytes = a.Shape, a.Data, len(a.Data)
	if w.elem.name == "" {
		w.elem = elemOf(a.DType)
		return nil
	}
	if a.DType != "<f4" {
		return advice.Failf("save it as float32, or leave the type before the @ away", "%s has elements of type %s; %s@ converts from float32", w.path, elemOf(a.DType), w.elem)
	}
	w.data = narrow(w.elem, a.Data)
	w.bytes = len(w.data)
	return nil
}

func elemOf(numpy string) elem {
	for _, e := range elems {
		if e.numpy == numpy {
			return e
		}
	}
	return elem{name: numpy, size: 1, kind: 'u', numpy: numpy}
}

// narrow rounds float32 to 16 bits.
func narrow(e elem, data []byte) []byte {
	out := make([]byte, 0, len(data)/2)
	for b := range slices.Chunk(data, 4) {
		f := math.Float32frombits(binary.LittleEndian.Uint32(b))
		var h uint16
		if e.name == "f16" {
			h = uint16(dtype.F16FromFloat32(f))
		} else {
			h = uint16(dtype.BF16FromFloat32(f))
		}
		out = binary.LittleEndian.AppendUint16(out, h)
	}
	return out
}

// widen is the inverse of narrow.
func widen(e elem, data []byte) []byte {
	out := make([]byte, 0, len(data)*2)
	for b := range slices.Chunk(data, 2) {
		h := binary.LittleEndian.Uint16(b)
		f := dtype.BFloat16(h).Float32()
		if e.name == "f16" {
			f = dtype.Float16(h).Float32()
		}
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(f))
	}
	return out
}
