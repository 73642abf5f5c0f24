// Package errortext knows what the error texts of trainings mean: out-of-memory messages of all versions of PyTorch and of
// its peers, CUDA's errors, values on the wrong device or of the wrong type, workers that were killed. Texts are found
// among others: in logs, in forum posts, wrapped at any column, escaped as HTML, cut off.
package errortext

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// longestLine is how much of a line is looked at. The rest is skipped, and counted.
const longestLine = 16 << 10

// Lines reads a text line by line in bounded memory. A carriage return ends a line too, as progress bars use it, but counts
// none. Colours of terminals are taken out, and other control characters and what is no UTF-8 are replaced and counted.
type Lines struct {
	r      *bufio.Reader
	buf    []byte
	number int64

	long, control, broken int64
	bytes                 int64
	err                   error
}

// NewLines reads r.
func NewLines(r io.Reader) *Lines { return &Lines{r: bufio.NewReaderSize(r, 64<<10), number: 1} }

// Next is the next line and its number, from 1 on; false at the end.
func (l *Lines) Next() (text string, number int64, ok bool) {
	if l.err != nil {
		return "", 0, false
	}
	number = l.number
	l.buf = l.buf[:0]
	cut := false
	for {
		piece, end, err := l.piece()
		if room := longestLine - len(l.buf); len(piece) > room {
			piece, cut = piece[:room], true
		}
		l.buf = append(l.buf, piece...)
		if err != nil {
			l.err = err
			if len(l.buf) == 0 {
				return "", 0, false
			}
			break
		}
		if end {
			break
		}
	}
	if cut {
		l.long++
	}
	return l.clean(l.buf), number, true
}

// piece is what the buffer has of the line, and whether the line ends with it.
func (l *Lines) piece() (piece []byte, end bool, err error) {
	if _, err := l.r.Peek(1); err != nil {
		return nil, false, err
	}
	b, _ := l.r.Peek(l.r.Buffered())
	i := lineEnd(b)
	if i < 0 {
		l.bytes += int64(len(b))
		l.r.Discard(len(b))
		return b, false, nil
	}
	n := i + 1
	if b[i] == '\r' {
		if after, _ := l.r.Peek(n + 1); len(after) > n && after[n] == '\n' {
			n++
		}
	}
	b, _ = l.r.Peek(n)
	if b[n-1] == '\n' {
		l.number++
	}
	l.r.Discard(n)
	l.bytes += int64(n)
	return b[:i], true, nil
}

// lineEnd is where the first line of b ends, below 0 where it does not.
func lineEnd(b []byte) int {
	i := bytes.IndexByte(b, '\n')
	if i >= 0 {
		b = b[:i]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return i
}

// clean is a line without colours, control characters and broken UTF-8.
func (l *Lines) clean(b []byte) string {
	if plain(b) {
		return string(b)
	}
	var s strings.Builder
	for i := 0; i < len(b); {
		switch r, n := utf8.DecodeRune(b[i:]); {
		case b[i] == 0x1b:
			i += escape(b[i:])
		case r == utf8.RuneError && n == 1:
			l.broken++
			s.WriteRune(utf8.RuneError)
			i++
		case r < ' ' && r != '\t' || r == 0x7f:
			l.control++
			s.WriteByte(' ')
			i++
		default:
			s.Write(b[i : i+n])
			i += n
		}
	}
	return s.String()
}

// plain tells that there is nothing to clean.
func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// escape is how long an escape sequence of a terminal is.
func escape(b []byte) int {
	if len(b) < 2 || b[1] != '[' {
		return min(2, len(b))
	}
	for i := 2; i < len(b); i++ {
		if b[i] >= '@' && b[i] <= '~' {
			return i + 1
		}
	}
	return len(b)
}

// Notes say what was wrong with the text itself.
func (l *Lines) Notes() (notes []string) {
	add := func(n int64, format string) {
		if n > 0 {
			notes = append(notes, fmt.Sprintf(format, n))
		}
	}
	add(l.broken, "%d bytes are not UTF-8 and were passed over")
	add(l.control, "%d control characters were passed over")
	add(l.long, fmt.Sprintf("of %%d lines only the first %d bytes were looked at", longestLine))
	if l.err != nil && l.err != io.EOF {
		notes = append(notes, fmt.Sprintf("read up to line %d, byte %d: %v", l.number, l.bytes, l.err))
	}
	return notes
}

// Err is why reading ended early, or nil.
func (l *Lines) Err() error {
	if l.err == io.EOF {
		return nil
	}
	return l.err
}
