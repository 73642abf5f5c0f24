package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ReadList is a list or a tuple that was read.
type ReadList struct {
	Items []any
	Fixed bool // a tuple
	node
}

// ReadDict is a dictionary that was read: its entries in the file's order, the last of those with one key counts. Keys that
// are numbers are their decimal digits.
type ReadDict struct {
	Items []Item
	node
	folded any
}

// Get is the value of a key, or nil.
func (d *ReadDict) Get(key string) any {
	for i := len(d.Items) - 1; i >= 0; i-- {
		if d.Items[i].Key == key {
			return d.Items[i].Value
		}
	}
	return nil
}

// Map is the dictionary without its order.
func (d *ReadDict) Map() map[string]any {
	m := make(map[string]any, len(d.Items))
	for _, item := range d.Items {
		m[item.Key] = item.Value
	}
	return m
}

// node is what the decoder knows of a container.
type node struct {
	depth  int32 // containers below each other, this one included
	inside bool  // of another; it does not grow any more
}

// nodeOf is what the decoder knows of v, or nil if v is no container.
func nodeOf(v any) *node {
	switch v := v.(type) {
	case *ReadList:
		return &v.node
	case *ReadDict:
		return &v.node
	}
	return nil
}

// ErrCode is the error of a file that names code, or makes objects by calling it. Nothing of it was run.
var ErrCode = errors.New("names code, which is never run")

// ErrTooLarge is the error of a file that would take more memory than it may.
var ErrTooLarge = errors.New("takes more memory than it may")

// Error says where a file could not be read further.
type Error struct {
	Offset int64 // bytes before the opcode
	Opcode int   // opcodes before it
	Err    error
}

// Error names the place and the cause.
func (e *Error) Error() string {
	return fmt.Sprintf("pickle: byte %d (opcode %d): %v", e.Offset, e.Opcode, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Decoder reads values: nil, bool, int64, *big.Int beyond that, float64, string, *ReadList or *ReadDict. Objects that the
// file refers to twice are the same; none contains itself. Its zero value reads plain data and nothing else.
type Decoder struct {
	// Known are what stands for the globals, "module name", that a file may call: functions of Go that get the arguments
	// and return the object. All others are refused (ErrCode).
	Known map[string]func(args []any) (any, error)
	// Fold takes each dictionary that is complete, because something else holds it now, and returns what stands for it from
	// then on, or nil to leave it. It must not keep the dictionary's items.
	Fold func(*ReadDict) any
	// Memory is how many bytes the values may take, about; 0 is 1 GiB. A file that takes more is an error (ErrTooLarge).
	Memory int64

	// Replaced are the strings in which bytes that are no UTF-8 became U+FFFD, after Decode.
	Replaced int
}

// Decode reads one value of plain data.
func Decode(r io.Reader) (any, error) {
	v, err := new(Decoder).Decode(r)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Decode reads one value. With an error, which is an *Error, comes the part of the value that was read before it, or nil.
func (c *Decoder) Decode(r io.Reader) (any, error) {
	d := &decoder{in: input{r: r}, Decoder: c, left: c.Memory}
	if d.left == 0 {
		d.left = 1 << 30
	}
	for {
		from := d.in.offset()
		done, err := d.turn()
		if err == nil && done && (len(d.stack) != 1 || len(d.marks) != 0) {
			err = errors.New("not one value at the end")
		}
		if err != nil {
			return d.unwind(), &Error{Offset: from, Opcode: d.at, Err: err}
		}
		if done {
			return d.stack[0], nil
		}
		d.at++
	}
}

type decoder struct {
	*Decoder
	in     input
	at     int // opcodes before
	left   int64
	stack  []any
	marks  []int          // lengths of the stack at which runs of items begin
	memo   []any          // by number, as long as these are given in turn
	others map[uint32]any // with other numbers
}

// About what values take.
const (
	costValue  = 16 // on a stack, in a list or in the memo
	costItem   = 32 // in a dictionary
	costNumber = 8
	costBox    = 80  // a container without its items
	costFold   = 128 // what stands for a dictionary
)

func (d *decoder) take(n int64) error {
	if d.left -= n; d.left < 0 {
		return ErrTooLarge
	}
	return nil
}

// turn does one opcode, and says whether it was the last.
func (d *decoder) turn() (done bool, err error) {
	op, err := d.in.byte()
	if err != nil || op == opStop {
		return true, err
	}
	return false, d.step(op)
}

func (d *decoder) push(v any) error {
	if int64(len(d.stack)) > d.left/costValue {
		return ErrTooLarge
	}
	d.stack = append(d.stack, v)
	return nil
}

var errShort = errors.New("too few values")

// floor is where the run of items at the end begins.
func (d *decoder) floor() int {
	if len(d.marks) == 0 {
		return 0
	}
	return d.marks[len(d.marks)-1]
}

// popN takes the last n values. They stay until the next push.
func (d *decoder) popN(n int) ([]any, error) {
	from := len(d.stack) - n
	if from < d.floor() {
		return nil, errShort
	}
	items := d.stack[from:]
	d.stack = d.stack[:from]
	return items, nil
}

// popMark takes the values behind the last mark, and it. They stay until the next push.
func (d *decoder) popMark() ([]any, error) {
	if len(d.marks) == 0 {
		return nil, errors.New("no mark")
	}
	from := d.floor()
	d.marks = d.marks[:len(d.marks)-1]
	items := d.stack[from:]
	d.stack = d.stack[:from]
	return items, nil
}

func (d *decoder) step(op byte) error {
	switch op {
	case opProto:
		v, err := d.in.number(1)
		if err == nil && v > newestToRead {
			err = fmt.Errorf("protocol %d is newer than %d", v, newestToRead)
		}
		return err
	case opFrame:
		_, err := d.in.number(8)
		return err
	case opMark:
		// Each container that is under way has one mark at most.
		if len(d.marks) > deepest {
			return ErrTooLarge
		}
		d.marks = append(d.marks, len(d.stack))
		return nil
	case opNone:
		return d.push(nil)
	case opTrue, opFalse:
		return d.push(op == opTrue)
	case opInt1, opInt2, opInt4, opFloat:
		return d.numeral(op)
	case opLong1, opLong4:
		return d.long(op)
	case opUnicode1, opUnicode, opUnicode8:
		return d.text(op)
	case opEmptyTuple, opTuple1, opTuple2, opTuple3:
		return d.tuple(op)
	case opEmptyList:
		return d.box(&ReadList{})
	case opEmptyDict:
		return d.box(&ReadDict{})
	case opTuple, opList, opDict, opAppends, opSetItems:
		return d.collect(op)
	case opAppend, opSetItem:
		return d.one(op)
	case opPut1, opPut4, opMemoize:
		return d.put(op)
	case opGet1, opGet4:
		return d.get(op)
	}
	return d.code(op)
}

func (d *decoder) box(v any) error {
	n := nodeOf(v)
	n.depth = max(n.depth, 1)
	if err := d.push(v); err != nil {
		return err
	}
	return d.take(costBox)
}

func (d *decoder) numeral(op byte) error {
	size := 1
	switch op {
	case opInt2:
		size = 2
	case opInt4:
		size = 4
	case opFloat:
		size = 8
	}
	b, err := d.in.next(size)
	if err != nil {
		return err
	}
	if err := d.take(costNumber); err != nil {
		return err
	}
	switch op {
	case opInt1:
		return d.push(int64(b[0]))
	case opInt2:
		return d.push(int64(binary.LittleEndian.Uint16(b)))
	case opInt4:
		return d.push(int64(int32(binary.LittleEndian.Uint32(b))))
	}
	return d.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
}

// long reads a number in two's complement.
func (d *decoder) long(op byte) error {
	size := 1
	if op == opLong4 {
		size = 4
	}
	n, err := d.in.number(size)
	if err != nil {
		return err
	}
	if n > longestLong {
		return fmt.Errorf("a number of %d bytes", n)
	}
	b, err := d.in.next(int(n))
	if err != nil {
		return err
	}
	if err := d.take(costNumber + int64(n)); err != nil {
		return err
	}
	return d.push(twos(b))
}

// twos is the number that b has in two's complement, from its last bytes on.
func twos(b []byte) any {
	n := len(b)
	negative := n > 0 && b[n-1]>>7 == 1
	if n <= 8 {
		var whole [8]byte
		if negative {
			whole = [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		}
		copy(whole[:], b)
		return int64(binary.LittleEndian.Uint64(whole[:]))
	}
	large := make([]byte, n)
	for i := range b {
		large[n-1-i] = b[i]
	}
	v := new(big.Int).SetBytes(large)
	if negative {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	if v.IsInt64() {
		return v.Int64()
	}
	return v
}

func (d *decoder) text(op byte) error {
	size := map[byte]int{opUnicode1: 1, opUnicode: 4, opUnicode8: 8}[op]
	n, err := d.in.number(size)
	if err != nil {
		return err
	}
	if n > longestString {
		return fmt.Errorf("a string of %d bytes", n)
	}
	if err := d.take(costValue + int64(n)); err != nil {
		return err
	}
	b, err := d.in.bytes(int(n))
	if err != nil {
		return err
	}
	s := string(b)
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
		d.Replaced++
	}
	return d.push(s)
}

func (d *decoder) tuple(op byte) error {
	n := 0
	if op != opEmptyTuple {
		n = int(op-opTuple1) + 1
	}
	items, err := d.popN(n)
	if err != nil {
		return err
	}
	return d.fixed(items)
}

func (d *decoder) fixed(items []any) error {
	l := &ReadList{Fixed: true}
	if err := d.extend(l, items); err != nil {
		return err
	}
	return d.box(l)
}

// collect ends a run of items behind a mark.
func (d *decoder) collect(op byte) error {
	items, err := d.popMark()
	if err != nil {
		return err
	}
	switch op {
	case opTuple:
		return d.fixed(items)
	case opList:
		l := &ReadList{}
		if err := d.extend(l, items); err != nil {
			return err
		}
		return d.box(l)
	case opDict:
		m := &ReadDict{}
		if err := d.set(m, items); err != nil {
			return err
		}
		return d.box(m)
	}
	return d.grow(items, op == opSetItems)
}

// one adds one item.
func (d *decoder) one(op byte) error {
	n := 1
	if op == opSetItem {
		n = 2
	}
	items, err := d.popN(n)
	if err != nil {
		return err
	}
	return d.grow(items, op == opSetItem)
}

// grow adds items to the container that is the last value.
func (d *decoder) grow(items []any, pairs bool) error {
	if len(d.stack) <= d.floor() {
		return errShort
	}
	switch top := d.stack[len(d.stack)-1].(type) {
	case *ReadList:
		if !pairs && !top.Fixed {
			return d.extend(top, items)
		}
	case *ReadDict:
		if pairs {
			return d.set(top, items)
		}
	}
	if pairs {
		return errors.New("items of no dictionary")
	}
	return errors.New("items of no list")
}

func (d *decoder) extend(l *ReadList, items []any) error {
	if l.inside {
		return errGrows
	}
	if l.Items == nil {
		l.Items = make([]any, 0, len(items))
	}
	for _, v := range items {
		v, err := d.hold(&l.node, v)
		if err != nil {
			return err
		}
		l.Items = append(l.Items, v)
	}
	return d.take(costValue * int64(len(items)))
}

func (d *decoder) set(m *ReadDict, items []any) error {
	switch {
	case m.inside:
		return errGrows
	case len(items)%2 != 0:
		return errors.New("a key without a value")
	case m.Items == nil:
		m.Items = make([]Item, 0, len(items)/2)
	}
	for i := 0; i < len(items); i += 2 {
		var key string
		switch k := items[i].(type) {
		case string:
			key = k
		case int64:
			key = strconv.FormatInt(k, 10)
		default:
			return fmt.Errorf("a key that is a %T", items[i])
		}
		v, err := d.hold(&m.node, items[i+1])
		if err != nil {
			return err
		}
		m.Items = append(m.Items, Item{key, v})
	}
	return d.take(costItem * int64(len(items)/2))
}

// errGrows: in all that is no circle, a container is complete before another holds it.
var errGrows = errors.New("something contains itself, or grows after something else has it")

// hold is what a container keeps of a value that it gets: the value, or what it is folded into.
func (d *decoder) hold(of *node, v any) (any, error) {
	n := nodeOf(v)
	switch n {
	case nil:
		return v, nil
	case of:
		return nil, errGrows
	}
	n.inside = true
	of.depth = max(of.depth, n.depth+1)
	if of.depth > deepest {
		return nil, fmt.Errorf("containers in containers, more than %d deep", deepest)
	}
	if m, ok := v.(*ReadDict); ok {
		return d.fold(m), nil
	}
	return v, nil
}

func (d *decoder) fold(m *ReadDict) any {
	if m.folded == nil && d.Fold != nil {
		if m.folded = d.Fold(m); m.folded != nil {
			d.left += costItem*int64(len(m.Items)) - costFold
			m.Items = nil
		}
	}
	if m.folded != nil {
		return m.folded
	}
	return m
}

// put numbers the last value.
func (d *decoder) put(op byte) error {
	id := uint64(len(d.memo) + len(d.others))
	var err error
	switch op {
	case opPut1:
		id, err = d.in.number(1)
	case opPut4:
		id, err = d.in.number(4)
	}
	switch {
	case err != nil:
		return err
	case len(d.stack) <= d.floor():
		return errShort
	}
	v := d.stack[len(d.stack)-1]
	switch {
	case id < uint64(len(d.memo)):
		d.memo[id] = v
		return nil
	case id == uint64(len(d.memo)):
		d.memo = append(d.memo, v)
		return d.take(costValue)
	case d.others == nil:
		d.others = map[uint32]any{}
	}
	d.others[uint32(id)] = v
	return d.take(4 * costValue)
}

// get gets a value by its number.
func (d *decoder) get(op byte) error {
	size := 1
	if op == opGet4 {
		size = 4
	}
	id, err := d.in.number(size)
	if err != nil {
		return err
	}
	if id < uint64(len(d.memo)) {
		return d.push(d.memo[id])
	}
	v, ok := d.others[uint32(id)]
	if !ok {
		return fmt.Errorf("nothing has number %d", id)
	}
	return d.push(v)
}

// unwind ends all runs of items that are under way, and returns the value that there is then.
func (d *decoder) unwind() any {
	d.left = math.MaxInt64 / 2
	for len(d.marks) > 0 {
		items, _ := d.popMark()
		if len(d.stack) == d.floor() {
			continue
		}
		_, pairs := d.stack[len(d.stack)-1].(*ReadDict)
		if pairs {
			items = d.even(items)
		}
		_ = d.grow(items, pairs)
	}
	if len(d.stack) == 0 {
		return nil
	}
	return d.stack[0]
}

// even makes of keys and values, and what else is under way behind the last of them, keys and values: a list of one item gets
// it by an opcode of its own, which did not come.
func (d *decoder) even(items []any) []any {
	for n := len(items); n > 2; n-- {
		l, ok := items[n-2].(*ReadList)
		if !ok || l.Fixed || nodeOf(items[n-1]) == nil {
			break
		}
		_ = d.extend(l, items[n-1:n])
		items = items[:n-1]
	}
	return items[:len(items)/2*2]
}
