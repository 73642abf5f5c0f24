package kineto

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"unicode/utf8"
)

// The tokenizer. A trace is an array of millions of small objects, each of which lies in the window as a whole while it is
// read: its strings and numbers are then slices of the window, and nothing is allocated for them. What does not fit into the
// largest window is passed over by its brackets.

const (
	windowSize  = 1 << 20  // bytes that the window begins with
	windowLimit = 16 << 20 // bytes that one value may have to be looked at
)

// Places that a scan ends at when it does not end at an index of the window.
const (
	needMore = -1 // the window ends within the value
	broken   = -2 // it is not JSON
)

// window is the part of a stream that is being looked at.
type window struct {
	src      io.Reader
	buf      []byte // buf[:end] is read, buf[:pos] is done with
	pos, end int
	base     int64 // of the stream, what buf[0] is
	err      error // what the stream ended with: io.EOF, or worse

	control int64 // control characters within strings
	badUTF8 int64 // strings with bytes that are not UTF-8
	badAt   int64 // where in the stream the last broken value is
}

func newWindow(r io.Reader) *window { return &window{src: r, buf: make([]byte, windowSize)} }

// offset is where in the stream the window's position is.
func (w *window) offset() int64 { return w.base + int64(w.pos) }

// read is how much of the stream was read.
func (w *window) read() int64 { return w.base + int64(w.end) }

// more reads on, and tells whether there was anything: what is done with makes room, and a value that fills the window has
// it grow up to its limit.
func (w *window) more() bool {
	if w.err != nil {
		return false
	}
	if w.pos > 0 {
		copy(w.buf, w.buf[w.pos:w.end])
		w.base += int64(w.pos)
		w.end -= w.pos
		w.pos = 0
	}
	if w.end == len(w.buf) {
		if len(w.buf) >= windowLimit {
			return false
		}
		w.buf = append(w.buf, make([]byte, len(w.buf))...)
	}
	n, err := fill(w.src, w.buf[w.end:min(len(w.buf), w.end+pieceSize)])
	w.end += n
	w.err = err
	return n > 0
}

// data is what is read and not done with.
func (w *window) data() []byte { return w.buf[w.pos:w.end] }

// space passes over white space and gives the byte behind it, 0 at the end of the stream.
func (w *window) space() byte {
	for {
		for w.pos < w.end {
			c := w.buf[w.pos]
			if c > ' ' {
				return c
			}
			w.pos++
		}
		if !w.more() {
			return 0
		}
	}
}

// value is the next value as it stands, in the window until the next call. Its error says where it breaks off, or that it
// is too large.
func (w *window) value() ([]byte, error) {
	w.space()
	for {
		b := w.data()
		n := w.skip(b, 0)
		// A number at the end of the window may go on.
		if n == len(b) && w.more() {
			continue
		}
		if n >= 0 {
			w.pos += n
			return b[:n], nil
		}
		if n == broken {
			return nil, w.brokenError()
		}
		if !w.more() {
			if w.err == nil {
				return nil, errTooLarge
			}
			return nil, io.ErrUnexpectedEOF
		}
	}
}

var errTooLarge = fmt.Errorf("a value of more than %d MiB", windowLimit>>20)

func (w *window) brokenError() error { return fmt.Errorf("byte %d: not JSON", w.badAt) }

// pass goes over a value of any size without looking at it, by its brackets and quotes.
func (w *window) pass() error {
	w.space()
	var at passing
	for {
		b := w.data()
		for i := 0; i < len(b); i++ {
			if at.inside && !at.escaped {
				i += plain(b[i:])
				if i == len(b) {
					break
				}
			}
			if n := at.next(b[i]); n >= 0 {
				w.pos += i + n
				return nil
			}
		}
		w.pos = w.end
		if !w.more() {
			return io.ErrUnexpectedEOF
		}
	}
}

// plain is how many bytes at the beginning of b neither end a string nor escape anything.
func plain(b []byte) int {
	if n := bytes.IndexByte(b, '"'); n >= 0 {
		b = b[:n]
	}
	if n := bytes.IndexByte(b, '\\'); n >= 0 {
		return n
	}
	return len(b)
}

// passing is where in a value one is.
type passing struct {
	depth           int
	inside, escaped bool // of a string; behind its backslash
	begun           bool
}

// next takes a byte and tells how many of it still belong to the value that ends here; -1 where it does not end.
func (p *passing) next(c byte) int {
	begun := p.begun
	p.begun = true
	switch {
	case p.escaped:
		p.escaped = false
	case p.inside:
		p.escaped = c == '\\'
		p.inside = c != '"'
		if !p.inside && p.depth == 0 {
			return 1
		}
	case c == '"':
		p.inside = true
	case c == '{' || c == '[':
		p.depth++
	case c == '}' || c == ']':
		p.depth--
		if p.depth <= 0 {
			return p.depth + 1
		}
	case p.depth == 0 && begun && (c <= ' ' || c == ','):
		return 0
	}
	return -1
}

// skip is the index behind the value at b[i].
func (w *window) skip(b []byte, i int) int {
	if i >= len(b) {
		return needMore
	}
	switch b[i] {
	case '"':
		_, i = w.text(b, i+1)
		return i
	case '{', '[':
		return w.skipNested(b, i)
	}
	return w.literal(b, i)
}

// literal is the index behind a number or a word: true, null, or the NaN that some writers write.
func (w *window) literal(b []byte, i int) int {
	start := i
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == ',' || c == '}' || c == ']' || c <= ' ':
			if i == start {
				return w.fail(i)
			}
			return i
		case c == '"' || c == '{' || c == '[' || c == ':':
			return w.fail(i)
		}
	}
	return i
}

func (w *window) fail(i int) int {
	w.badAt = w.base + int64(w.pos+i)
	return broken
}

// skipNested is the index behind the object or array at b[i]. It counts brackets and does not recurse, so depth costs
// nothing.
func (w *window) skipNested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if _, i = w.text(b, i+1); i < 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return needMore
}

const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// special marks, by the top bits of their bytes, the quotes, backslashes, control characters and bytes beyond ASCII among
// eight; all marks but the lowest may be wrong.
func special(x uint64) uint64 {
	q := x ^ '"'*ones
	s := x ^ '\\'*ones
	return ((q-ones)&^q | (s-ones)&^s | (x-' '*ones)&^x | x) & tops
}

// text reads a string from behind its quote: what is in it, as it stands, and the index behind its end.
func (w *window) text(b []byte, i int) (content []byte, next int) {
	start, foreign, control := i, false, int64(0)
	for {
		for i+8 <= len(b) {
			m := special(binary.LittleEndian.Uint64(b[i:]))
			if m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			return nil, needMore
		}
		switch c := b[i]; {
		case c == '"':
			w.control += control
			if foreign && !utf8.Valid(b[start:i]) {
				w.badUTF8++
			}
			return b[start:i], i + 1
		case c == '\\':
			i++
		case c < ' ':
			control++
		case c >= utf8.RuneSelf:
			foreign = true
		}
		i++
	}
}

// after is the index of the first byte at or behind i that is no white space, or needMore.
func after(b []byte, i int) int {
	for ; i < len(b); i++ {
		if b[i] > ' ' {
			return i
		}
	}
	return needMore
}

// members calls each for the members of the object at b[i], with the index of the member's value; each returns the index
// behind it. It returns the index behind the object.
func (w *window) members(b []byte, i int, each func(key []byte, at int) int) int {
	i++ // the brace
	for {
		if i = after(b, i); i < 0 {
			return needMore
		}
		if b[i] == '}' {
			return i + 1
		}
		if b[i] == ',' {
			i++
			continue
		}
		if b[i] != '"' {
			return w.fail(i)
		}
		var key []byte
		if key, i = w.text(b, i+1); i < 0 {
			return i
		}
		if i = after(b, i); i < 0 {
			return needMore
		}
		if b[i] != ':' {
			return w.fail(i)
		}
		if i = after(b, i+1); i < 0 {
			return needMore
		}
		if i = each(key, i); i < 0 {
			return i
		}
		if i == len(b) {
			return needMore
		}
	}
}

// resync finds where the next event may begin behind a broken one: a brace with a key that events begin with. It leaves the
// window there, or tells that there is none.
func (w *window) resync() bool {
	w.pos++
	for {
		b := w.data()
		for i := 0; ; {
			n := bytes.IndexByte(b[i:], '{')
			if n < 0 {
				break
			}
			i += n
			switch looksLikeEvent(b[i:]) {
			case 1:
				w.pos += i
				return true
			case needMore:
				w.pos += i
				if !w.more() {
					return false
				}
				b, i = w.data(), 0
				continue
			}
			i++
		}
		w.pos = w.end
		if !w.more() {
			return false
		}
	}
}

// looksLikeEvent is 1 where b begins like an event, 0 where not, needMore where b is too short to tell.
func looksLikeEvent(b []byte) int {
	i := after(b, 1)
	if i < 0 || len(b)-i < 7 {
		return needMore
	}
	for _, key := range []string{`"ph"`, `"name"`, `"cat"`} {
		if bytes.HasPrefix(b[i:], []byte(key)) {
			return 1
		}
	}
	return 0
}
