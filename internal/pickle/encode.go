// Package pickle writes and reads data in Python's pickle format: numbers, strings, lists, tuples and dictionaries, and no
// code. What it writes is of protocol 2, by the few opcodes that viewers of memory snapshots know; it reads what CPython and
// PyTorch's C++ write of such data, protocols 2 to 5. Files may come from anywhere: code that they name is refused by its
// name and place and never run, depth and memory are bounded, and nothing that is read contains itself.
//
// The format is that of CPython's Lib/pickletools.py.
package pickle

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
)

// Opcodes.
const (
	opMark        = '('
	opStop        = '.'
	opNone        = 'N'
	opTrue        = 0x88
	opFalse       = 0x89
	opInt1        = 'K'
	opInt2        = 'M'
	opInt4        = 'J'
	opLong1       = 0x8a
	opLong4       = 0x8b
	opFloat       = 'G'
	opUnicode     = 'X'
	opUnicode1    = 0x8c
	opUnicode8    = 0x8d
	opEmptyDict   = '}'
	opDict        = 'd'
	opSetItem     = 's'
	opSetItems    = 'u'
	opEmptyList   = ']'
	opList        = 'l'
	opAppend      = 'a'
	opAppends     = 'e'
	opEmptyTuple  = ')'
	opTuple       = 't'
	opTuple1      = 0x85
	opTuple2      = 0x86
	opTuple3      = 0x87
	opPut1        = 'q'
	opPut4        = 'r'
	opGet1        = 'h'
	opGet4        = 'j'
	opMemoize     = 0x94
	opGlobal      = 'c'
	opStackGlobal = 0x93
	opInst        = 'i'
	opReduce      = 'R'
	opFrame       = 0x95
	opProto       = 0x80
	protoWritten  = 2
	newestToRead  = 5
	batch         = 1000 // items at a time: readers in JavaScript pass them as arguments
	longestString = 1<<31 - 1
	longestLong   = 1024 // bytes of a number
	longestName   = 1024 // bytes of a module's
	deepest       = 1000 // containers in containers: what Python's own stack bears
)

// Item is an entry of a dictionary.
type Item struct {
	Key   string
	Value any
}

// What may be encoded, beside nil, bool, int, int64, uint64, float64, string and []any (a list).
type (
	// Dict is a dictionary, in this order. Keys must differ.
	Dict []Item
	// List is a list that is made while it is written.
	List iter.Seq[any]
	// Tuple is a tuple.
	Tuple []any
	// Shared is a value that is written once, however often it occurs: readers get the same object.
	Shared struct{ Value any }
)

// Of is the dictionary of keys, which are strings, and values in turn.
func Of(pairs ...any) (d Dict) {
	for i := 0; i < len(pairs); i += 2 {
		d = append(d, Item{pairs[i].(string), pairs[i+1]})
	}
	return d
}

// Encode writes v. It returns the first error of w, or what v has that cannot be written.
func Encode(w io.Writer, v any) error {
	e := &encoder{w: bufio.NewWriterSize(w, 1<<16), strings: map[string]uint32{}, shared: map[*Shared]uint32{}}
	e.bytes(opProto, protoWritten)
	e.value(v)
	e.bytes(opStop)
	if e.err != nil {
		return e.err
	}
	return e.w.Flush()
}

type encoder struct {
	w       *bufio.Writer
	err     error
	memo    uint32 // entries so far
	strings map[string]uint32
	shared  map[*Shared]uint32
}

func (e *encoder) bytes(b ...byte) {
	if e.err == nil {
		_, e.err = e.w.Write(b)
	}
}

func (e *encoder) value(v any) {
	switch v := v.(type) {
	case nil:
		e.bytes(opNone)
	case bool:
		if v {
			e.bytes(opTrue)
		} else {
			e.bytes(opFalse)
		}
	case int:
		e.integer(int64(v))
	case int64:
		e.integer(v)
	case uint64:
		e.unsigned(v)
	case float64:
		e.bytes(binary.BigEndian.AppendUint64([]byte{opFloat}, math.Float64bits(v))...)
	case string:
		e.text(v)
	case Dict:
		e.dict(v)
	case List:
		e.list(v)
	case []any:
		e.list(func(yield func(any) bool) {
			for _, x := range v {
				if !yield(x) {
					return
				}
			}
		})
	case Tuple:
		e.tuple(v)
	case *Shared:
		e.once(v)
	default:
		e.fail("a %T", v)
	}
}

func (e *encoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("pickle: cannot write "+format, args...)
	}
}

// integer writes n in the shortest form.
func (e *encoder) integer(n int64) {
	switch {
	case n >= 0 && n < 1<<8:
		e.bytes(opInt1, byte(n))
	case n >= 0 && n < 1<<16:
		e.bytes(opInt2, byte(n), byte(n>>8))
	case n == int64(int32(n)):
		e.bytes(binary.LittleEndian.AppendUint32([]byte{opInt4}, uint32(n))...)
	default:
		e.long(uint64(n), n < 0)
	}
}

func (e *encoder) unsigned(n uint64) {
	if n <= math.MaxInt64 {
		e.integer(int64(n))
		return
	}
	e.long(n, false)
}

// long writes a number beyond 32 bits in two's complement, with as few bytes as tell its sign.
func (e *encoder) long(n uint64, negative bool) {
	b := binary.LittleEndian.AppendUint64(nil, n)
	fill := byte(0)
	if negative {
		fill = 0xff
	}
	b = append(b, fill)
	for len(b) > 1 && b[len(b)-1] == fill && b[len(b)-2]>>7 == fill>>7 {
		b = b[:len(b)-1]
	}
	e.bytes(opLong1, byte(len(b)))
	e.bytes(b...)
}

// text writes a string, the second time as a reference to the first.
func (e *encoder) text(s string) {
	if id, ok := e.strings[s]; ok {
		e.ref(opGet1, opGet4, id)
		return
	}
	if len(s) > longestString {
		e.fail("a string of %d bytes", len(s))
		return
	}
	e.bytes(binary.LittleEndian.AppendUint32([]byte{opUnicode}, uint32(len(s)))...)
	if e.err == nil {
		_, e.err = e.w.WriteString(s)
	}
	e.strings[s] = e.put()
}

// put gives what was written last a number.
func (e *encoder) put() uint32 {
	id := e.memo
	e.memo++
	e.ref(opPut1, opPut4, id)
	return id
}

// ref writes a number by the short form of an opcode where it has room.
func (e *encoder) ref(short, long byte, id uint32) {
	if id < 1<<8 {
		e.bytes(short, byte(id))
		return
	}
	e.bytes(binary.LittleEndian.AppendUint32([]byte{long}, id)...)
}

func (e *encoder) once(s *Shared) {
	if id, ok := e.shared[s]; ok {
		e.ref(opGet1, opGet4, id)
		return
	}
	e.value(s.Value)
	e.shared[s] = e.put()
}

func (e *encoder) dict(d Dict) {
	e.bytes(opEmptyDict)
	for len(d) > 0 {
		n := min(len(d), batch)
		e.bytes(opMark)
		for _, item := range d[:n] {
			e.text(item.Key)
			e.value(item.Value)
		}
		e.bytes(opSetItems)
		d = d[n:]
	}
}

func (e *encoder) list(l List) {
	e.bytes(opEmptyList)
	n := 0
	for v := range l {
		if n%batch == 0 {
			if n > 0 {
				e.bytes(opAppends)
			}
			e.bytes(opMark)
		}
		n++
		if e.value(v); e.err != nil {
			return
		}
	}
	if n > 0 {
		e.bytes(opAppends)
	}
}

func (e *encoder) tuple(t Tuple) {
	if len(t) > 3 {
		e.bytes(opMark)
	}
	for _, v := range t {
		e.value(v)
	}
	e.bytes([...]byte{opEmptyTuple, opTuple1, opTuple2, opTuple3, opTuple}[min(len(t), 4)])
}
