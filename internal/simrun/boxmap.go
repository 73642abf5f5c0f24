package simrun

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/gpusim/tensormap"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// boxMap is a tensor map of a buffer: the boxes, and how they lie in shared memory. Its dimensions are the buffer's, the last one
// innermost.
type boxMap struct {
	box     []int
	swizzle tensormap.Swizzle
	elem    tensormap.Elem
	shape   []int
}

const mapHint = "a tensor map is map[64,64]: or with a swizzle of 32, 64 or 128 bytes map[64,64,128B]: before a buffer of as many dimensions, whose rows are multiples of 16 bytes"

var swizzles = map[string]tensormap.Swizzle{"32B": tensormap.Swizzle32, "64B": tensormap.Swizzle64, "128B": tensormap.Swizzle128}

// parseMap reads what follows "map[": "64,64,128B]:f16@a.npy".
func parseMap(text, rest string) (w word, err error) {
	list, buffer, ok := strings.Cut(rest, "]:")
	if !ok {
		return w, errors.New("no ]: behind the sizes of a box")
	}
	if w, err = parseWord(buffer); err != nil {
		return w, err
	}
	if w.kind == scalar || w.kind == null || w.box != nil {
		return w, errors.New("a tensor map is of a buffer")
	}
	w.text, w.box = text, &boxMap{}
	parts := strings.Split(list, ",")
	if s, ok := swizzles[parts[len(parts)-1]]; ok {
		w.box.swizzle, parts = s, parts[:len(parts)-1]
	}
	for _, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil {
			return w, fmt.Errorf("%q is not a size of a box", p)
		}
		w.box.box = append(w.box.box, n)
	}
	return w, nil
}

// mapElems are the types that tensor maps have for those of buffers.
var mapElems = map[string]tensormap.Elem{"f64": tensormap.F64, "f32": tensormap.F32, "f16": tensormap.F16, "bf16": tensormap.BF16, "i64": tensormap.S64,
	"i32": tensormap.S32, "i16": tensormap.U16, "i8": tensormap.U8, "u64": tensormap.U64, "u32": tensormap.U32, "u16": tensormap.U16, "u8": tensormap.U8, "bool": tensormap.U8}

// of takes type and shape from the buffer.
func (b *boxMap) of(w *word) error {
	e, ok := mapElems[w.elem.name]
	if !ok {
		return fmt.Errorf("elements of type %s", w.elem)
	}
	b.elem, b.shape = e, w.shape
	return b.fits()
}

func (b *boxMap) fits() error {
	if len(b.shape) != len(b.box) {
		return fmt.Errorf("boxes of %d dimensions of a buffer of %d, %s", len(b.box), len(b.shape), shapeText(b.shape))
	}
	return nil
}

// encode makes the map of the buffer at an address.
func (b *boxMap) encode(addr uint64) (raw [tensormap.Size]byte, err error) {
	m := tensormap.Map{Elem: b.elem, Rank: len(b.box), Addr: addr, Swizzle: b.swizzle}
	if m.Rank > tensormap.MaxRank {
		return raw, fmt.Errorf("%d dimensions; there are at most %d", m.Rank, tensormap.MaxRank)
	}
	stride := uint64(b.elem.Bytes())
	for i := range m.Rank {
		d := m.Rank - 1 - i
		m.Dim[i], m.Box[i], m.Step[i], m.Stride[i] = uint64(b.shape[d]), b.box[d], 1, stride
		stride *= m.Dim[i]
	}
	if err := m.Check(); err != nil {
		return raw, err
	}
	return m.Bytes(), nil
}

// descriptor is what Triton writes of a parameter that is a tensor map.
type descriptor struct {
	Box      []int `json:"block_size"`
	Swizzle  int   `json:"swizzle"`   // a CUtensorMapSwizzle
	Elem     int   `json:"elem_type"` // as tensormap.replace numbers them
	ElemSize int   `json:"elem_size"`
	Im2col   bool  `json:"is_im2col"`
}

func (d *descriptor) check() error {
	switch {
	case d.Im2col:
		return errors.New("im2col descriptors are made by a launcher of your own: pass the map by hex:BYTES")
	case len(d.Box) < 1 || len(d.Box) > tensormap.MaxRank || d.Swizzle < 0 || d.Swizzle > 3 || d.Elem < 0 || d.Elem >= len(tensormap.Numbered):
		return fmt.Errorf("boxes of %v, swizzle %d, element type %d", d.Box, d.Swizzle, d.Elem)
	}
	return nil
}

// described makes words that stand for Triton's tensor descriptors what its launcher passes: the map, the sizes of the dimensions
// and the strides.
func (m *meta) described(words []word, fn *ptx.Func) ([]word, error) {
	if m == nil || len(m.Descriptors) == 0 {
		return words, nil
	}
	left := slices.Clone(m.Descriptors)
	var out []word
	for _, w := range words {
		i := len(out)
		if len(left) == 0 || i >= len(fn.Params) || fn.Params[i].Size() != tensormap.Size || w.kind == scalar || w.kind == null || w.box != nil {
			out = append(out, w)
			continue
		}
		d := left[0]
		left = left[1:]
		if w.elem.size != d.ElemSize {
			return nil, advice.Failf("give it in the type that the kernel was compiled for", "argument %d, %q, has elements of %d bytes, and the descriptor of %d", w.number, w.text, w.elem.size, d.ElemSize)
		}
		w.box = &boxMap{box: d.Box, swizzle: tensormap.Swizzle(d.Swizzle), elem: tensormap.Numbered[d.Elem], shape: w.shape}
		if err := w.box.fits(); err != nil {
			return nil, advice.Failf("give a buffer of the descriptor's dimensions", "argument %d, %q: %v", w.number, w.text, err)
		}
		out = append(out, w)
		stride := 1
		strides := make([]word, len(w.shape))
		for i, n := range slices.Backward(w.shape) {
			strides[i] = number("i64", uint64(stride))
			stride *= n
		}
		for _, n := range w.shape {
			out = append(out, number("i32", uint64(n)))
		}
		out = append(out, strides...)
	}
	return out, nil
}

// number is a scalar that metadata adds.
func number(typ string, v uint64) word {
	e := elems[typ]
	return word{text: fmt.Sprintf("%s:%d", typ, v), added: true, kind: scalar, elem: e, value: binary.LittleEndian.AppendUint64(nil, v)[:e.size]}
}
