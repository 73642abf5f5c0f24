package pickle

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"unicode/utf8"
)

// ReadList is a list or a tuple that was read.
type ReadList struct {
	Items []any
	Fixed bool // a tuple
}

// Decode reads one value: nil, bool, int64, *big.Int beyond that, float64, string, *ReadList or map[string]any. Objects that
// the file refers to twice are the same. Code, and what else is no plain data, is an error. A file takes memory in proportion
// to its length.
func Decode(r io.Reader) (any, error) {
	d := &decoder{r: bufio.NewReaderSize(r, 1<<16), memo: map[uint32]any{}}
	for {
		op, err := d.r.ReadByte()
		if err != nil {
			return nil, d.failed(err)
		}
		if op == opStop {
			break
		}
		if err := d.step(op); err != nil {
			return nil, d.failed(err)
		}
		d.at++
	}
	if len(d.stack) != 1 || d.stack[0] == (mark{}) {
		return nil, d.failed(errors.New("not one value at the end"))
	}
	return d.stack[0], nil
}

// mark is on the stack where a list of items begins.
type mark struct{}

type decoder struct {
	r     *bufio.Reader
	at    int // opcodes before
	stack []any
	memo  map[uint32]any
}

func (d *decoder) failed(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("pickle: opcode %d: %w", d.at, err)
}

func (d *decoder) push(v any) { d.stack = append(d.stack, v) }

var errShort = errors.New("too few values")

func (d *decoder) pop() (any, error) {
	last := len(d.stack) - 1
	if last < 0 || d.stack[last] == (mark{}) {
		return nil, errShort
	}
	v := d.stack[last]
	d.stack = d.stack[:last]
	return v, nil
}

// popN takes the last n values.
func (d *decoder) popN(n int) ([]any, error) {
	from := len(d.stack) - n
	if from < 0 {
		return nil, errShort
	}
	for _, v := range d.stack[from:] {
		if v == (mark{}) {
			return nil, errShort
		}
	}
	items := append([]any(nil), d.stack[from:]...)
	d.stack = d.stack[:from]
	return items, nil
}

// popMark takes the values behind the last mark, and it.
func (d *decoder) popMark() ([]any, error) {
	for i := len(d.stack) - 1; i >= 0; i-- {
		if d.stack[i] == (mark{}) {
			items := append([]any(nil), d.stack[i+1:]...)
			d.stack = d.stack[:i]
			return items, nil
		}
	}
	return nil, errors.New("no mark")
}

func (d *decoder) read(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(d.r, b)
	return b, err
}

// number is an unsigned one of n bytes.
func (d *decoder) number(n int) (uint64, error) {
	b, err := d.read(n)
	if err != nil {
		return 0, err
	}
	var whole [8]byte
	copy(whole[:], b)
	return binary.LittleEndian.Uint64(whole[:]), nil
}

func (d *decoder) step(op byte) error {
	switch op {
	case opProto:
		v, err := d.number(1)
		if err == nil && v > newestToRead {
			err = fmt.Errorf("protocol %d is newer than %d", v, newestToRead)
		}
		return err
	case opFrame:
		_, err := d.number(8)
		return err
	case opMark:
		d.push(mark{})
	case opNone:
		d.push(nil)
	case opTrue, opFalse:
		d.push(op == opTrue)
	case opInt1, opInt2, opInt4, opLong1, opFloat:
		return d.numeral(op)
	case opUnicode1, opUnicode, opUnicode8:
		return d.text(op)
	case opEmptyTuple, opTuple1, opTuple2, opTuple3:
		return d.tuple(map[byte]int{opEmptyTuple: 0, opTuple1: 1, opTuple2: 2, opTuple3: 3}[op])
	case opEmptyList:
		d.push(&ReadList{})
	case opEmptyDict:
		d.push(map[string]any{})
	case opTuple, opList, opDict, opAppends, opSetItems:
		return d.collect(op)
	case opAppend, opSetItem:
		return d.one(op)
	case opPut1, opPut4, opMemoize, opGet1, opGet4:
		return d.refer(op)
	default:
		return fmt.Errorf("%#02x is no opcode of plain data", op)
	}
	return nil
}

func (d *decoder) numeral(op byte) error {
	size := map[byte]int{opInt1: 1, opInt2: 2, opInt4: 4, opFloat: 8}[op]
	if op == opLong1 {
		n, err := d.number(1)
		if err != nil {
			return err
		}
		return d.long(int(n))
	}
	b, err := d.read(size)
	if err != nil {
		return err
	}
	switch op {
	case opInt1:
		d.push(int64(b[0]))
	case opInt2:
		d.push(int64(binary.LittleEndian.Uint16(b)))
	case opInt4:
		d.push(int64(int32(binary.LittleEndian.Uint32(b))))
	case opFloat:
		d.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	}
	return nil
}

// long reads a number of n bytes in two's complement.
func (d *decoder) long(n int) error {
	b, err := d.read(n)
	if err != nil {
		return err
	}
	negative := n > 0 && b[n-1]>>7 == 1
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	v := new(big.Int).SetBytes(b)
	if negative {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	if v.IsInt64() {
		d.push(v.Int64())
	} else {
		d.push(v)
	}
	return nil
}

// text reads a string, which takes no memory before its bytes are there.
func (d *decoder) text(op byte) error {
	n, err := d.number(map[byte]int{opUnicode1: 1, opUnicode: 4, opUnicode8: 8}[op])
	if err != nil {
		return err
	}
	if n > longestString {
		return fmt.Errorf("a string of %d bytes", n)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, d.r, int64(n)); err != nil {
		return err
	}
	if !utf8.Valid(b.Bytes()) {
		return errors.New("a string that is no UTF-8")
	}
	d.push(b.String())
	return nil
}

func (d *decoder) tuple(n int) error {
	items, err := d.popN(n)
	if err == nil {
		d.push(&ReadList{items, true})
	}
	return err
}

// collect ends a run of items behind a mark.
func (d *decoder) collect(op byte) error {
	items, err := d.popMark()
	if err != nil {
		return err
	}
	switch op {
	case opTuple:
		d.push(&ReadList{items, true})
		return nil
	case opList:
		d.push(&ReadList{Items: items})
		return nil
	case opDict:
		d.push(map[string]any{})
	}
	if op == opAppends {
		return d.extend(items)
	}
	return d.set(items)
}

// one adds one item.
func (d *decoder) one(op byte) error {
	n := 1
	if op == opSetItem {
		n = 2
	}
	items, err := d.popN(n)
	switch {
	case err != nil:
		return err
	case op == opAppend:
		return d.extend(items)
	}
	return d.set(items)
}

func (d *decoder) top() any {
	if len(d.stack) == 0 {
		return nil
	}
	return d.stack[len(d.stack)-1]
}

func (d *decoder) extend(items []any) error {
	l, ok := d.top().(*ReadList)
	if !ok || l.Fixed {
		return errors.New("items of no list")
	}
	l.Items = append(l.Items, items...)
	return nil
}

func (d *decoder) set(items []any) error {
	m, ok := d.top().(map[string]any)
	if !ok || len(items)%2 != 0 {
		return errors.New("items of no dictionary")
	}
	for i := 0; i < len(items); i += 2 {
		key, ok := items[i].(string)
		if !ok {
			return fmt.Errorf("a key that is a %T", items[i])
		}
		m[key] = items[i+1]
	}
	return nil
}

// refer numbers the last value, or gets one by its number.
func (d *decoder) refer(op byte) error {
	id := uint64(len(d.memo))
	if op != opMemoize {
		size := 1
		if op == opPut4 || op == opGet4 {
			size = 4
		}
		var err error
		if id, err = d.number(size); err != nil {
			return err
		}
	}
	if op == opGet1 || op == opGet4 {
		v, ok := d.memo[uint32(id)]
		if !ok {
			return fmt.Errorf("nothing has number %d", id)
		}
		d.push(v)
		return nil
	}
	v, err := d.pop()
	if err != nil {
		return err
	}
	d.push(v)
	d.memo[uint32(id)] = v
	return nil
}
