package data

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
)

// FuzzCache reads files of any bytes: what is accepted has positions within the file, and samples that load are those that were kept.
func FuzzCache(f *testing.F) {
	fields := []Field{{DType: dtype.F32, Shape: []int{Any, 2}}, {DType: dtype.Bool, Shape: []int{3}}}
	src := &ofFields{fields}
	key, err := contentKey[Named](src, "")
	if err != nil {
		f.Fatal(err)
	}
	var whole bytes.Buffer
	if err := writeCache(&whole, Source[Named](src), key); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Add(whole.Bytes()[:whole.Len()/2])
	f.Fuzz(func(t *testing.T, raw []byte) {
		row := newSlot[Named](fields, 1).row0()
		if len(raw) > 0 {
			_ = row.load(raw) // any bytes as a sample
		}
		index, err := cacheIndex(raw, key, src.Len())
		if err != nil {
			return
		}
		for i := range src.Len() {
			b := raw[binary.LittleEndian.Uint64(index[8*i:]):binary.LittleEndian.Uint64(index[8*i+8:])]
			if row.load(b[:len(b)-4]) == nil && !bytes.Equal(row.save(nil), b[:len(b)-4]) {
				if !hasOddBool(b) {
					t.Errorf("sample %d changes when it is kept again", i)
				}
			}
		}
	})
}

// hasOddBool tells a byte that is neither 0 nor 1 among the last three, which stand for booleans.
func hasOddBool(b []byte) bool {
	for _, v := range b[max(0, len(b)-7) : len(b)-4] {
		if v > 1 {
			return true
		}
	}
	return false
}

func (s *slot[B]) row0() Row { return Row{columns: s.columns} }

type ofFields struct{ fields []Field }

func (s *ofFields) Len() int        { return 3 }
func (s *ofFields) Fields() []Field { return s.fields }
func (s *ofFields) Fill(_ *Named, row Row, i int) error {
	copy(Ragged[float32](row, 0, i), []float32{1, 2, 3, 4})
	Values[bool](row, 1)[i] = true
	return nil
}
