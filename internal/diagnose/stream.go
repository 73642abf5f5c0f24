package diagnose

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/advice"
)

const (
	headBytes = 64 << 10 // by which a file is recognised
	bombRatio = 200      // decompressed over compressed, which no log or trace comes near: theirs is 5 to 40
)

// ampleSize is how much decompressed is no bomb yet. Tests take less.
var ampleSize int64 = 1 << 30

// stream is a file's content: decompressed, in UTF-8 where it is text, with its beginning looked at.
type stream struct {
	head []byte // looked at, and still to be read
	r    *bufio.Reader
	from *counted
	said []string // by the layers below
}

// Read implements io.Reader.
func (s *stream) Read(b []byte) (int, error) { return s.r.Read(b) }

// notes are what the layers below say of the reading.
func (s *stream) notes() []string { return s.said }

// open puts the layers together: counting, decompression, decoding.
func (c *Config) open(ctx context.Context, name string, r io.Reader, size int64) (*stream, error) {
	s := &stream{from: &counted{r: r, ctx: ctx, name: name, total: size, progress: c.Progress}}
	in := bufio.NewReaderSize(s.from, headBytes)
	first, err := in.Peek(2)
	switch {
	case len(first) == 0 && (err == io.EOF || err == nil):
		return nil, advice.Failf("see whether what writes it has come to its end", "%s is empty", name)
	case len(first) == 0:
		return nil, advice.Explain(fmt.Errorf("%s: %w", name, err), "see whether you may read it")
	}
	if bytes.Equal(first, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, advice.Failf("fetch it again", "%s begins as gzip does and goes on as it does not: %v", name, err)
		}
		in = bufio.NewReaderSize(&unzipped{z: z, from: s.from}, headBytes)
	}
	s.r, s.said = decoded(in)
	s.head, err = s.r.Peek(headBytes)
	if len(s.head) == 0 && err != nil {
		return nil, advice.Explain(fmt.Errorf("%s: %w", name, err), "fetch it again")
	}
	return s, nil
}

// counted counts what is read of a file, tells how far it is, and ends with ctx.
type counted struct {
	r           io.Reader
	ctx         context.Context
	name        string
	done, total int64
	progress    func(string, int64, int64)
}

// Read implements io.Reader.
func (c *counted) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(b)
	c.done += int64(n)
	if c.progress != nil {
		c.progress(c.name, c.done, c.total)
	}
	return n, err
}

// unzipped is the content of a gzip file. Its errors say where they are, and a bomb is one.
type unzipped struct {
	z    *gzip.Reader
	from *counted
	done int64
}

// Read implements io.Reader.
func (u *unzipped) Read(b []byte) (int, error) {
	n, err := u.z.Read(b)
	u.done += int64(n)
	if u.done > ampleSize && u.done/bombRatio > u.from.done {
		return 0, &advice.Error{Text: fmt.Sprintf("%d compressed bytes have become %d, more than %d times as many: no log or trace packs like that", u.from.done, u.done, bombRatio),
			Hint: "decompress it where there is room, and give what it has"}
	}
	if err != nil && err != io.EOF && u.from.ctx.Err() == nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("the compressed file is cut at its byte %d: %w", u.from.done, err)
		} else {
			err = fmt.Errorf("the compressed file is broken at its byte %d: %w", u.from.done, err)
		}
	}
	return n, err
}

// decoded is a stream in UTF-8 without its mark: logs that Windows writes are UTF-16.
func decoded(in *bufio.Reader) (*bufio.Reader, []string) {
	first, _ := in.Peek(64)
	switch {
	case bytes.HasPrefix(first, []byte("\xef\xbb\xbf")):
		in.Discard(3)
	case bytes.HasPrefix(first, []byte("\xff\xfe")):
		in.Discard(2)
		return bufio.NewReaderSize(&wide{in: in, order: binary.LittleEndian}, headBytes), []string{"it is UTF-16, and was read so"}
	case bytes.HasPrefix(first, []byte("\xfe\xff")):
		in.Discard(2)
		return bufio.NewReaderSize(&wide{in: in, order: binary.BigEndian}, headBytes), []string{"it is UTF-16, and was read so"}
	case everySecond(first, 1):
		return bufio.NewReaderSize(&wide{in: in, order: binary.LittleEndian}, headBytes), []string{"it looks like UTF-16 without a mark, and was read so"}
	}
	return in, nil
}

// everySecond tells that bytes from odd on, each second, are zero and the others are not: Latin letters in UTF-16.
func everySecond(b []byte, odd int) bool {
	for i, x := range b {
		if (i%2 == odd) != (x == 0) {
			return false
		}
	}
	return len(b) >= 8
}

// wide makes UTF-8 of UTF-16. Halves of pairs become U+FFFD.
type wide struct {
	in    *bufio.Reader
	order binary.ByteOrder
	out   []byte // not given away yet
	high  rune   // the first half of a pair
	err   error
}

// Read implements io.Reader.
func (w *wide) Read(b []byte) (int, error) {
	for len(w.out) == 0 && w.err == nil {
		w.fill()
	}
	if len(w.out) == 0 {
		return 0, w.err
	}
	n := copy(b, w.out)
	w.out = w.out[n:]
	return n, nil
}

// fill decodes some thousand characters.
func (w *wide) fill() {
	w.out = w.out[:0]
	for len(w.out) < 4096 && w.err == nil {
		var unit [2]byte
		n, err := io.ReadFull(w.in, unit[:])
		if err != nil {
			if w.high != 0 || n == 1 {
				w.put(utf8.RuneError)
			}
			w.err = err
			if n == 1 {
				w.err = io.EOF // half a character
			}
			return
		}
		w.unit(rune(w.order.Uint16(unit[:])))
	}
}

// unit takes one code unit.
func (w *wide) unit(u rune) {
	if w.high != 0 {
		pair := utf16.DecodeRune(w.high, u)
		w.high = 0
		w.put(pair)
		if pair != utf8.RuneError {
			return
		}
	}
	switch {
	case u >= 0xd800 && u < 0xdc00:
		w.high = u
	default:
		w.put(u)
	}
}

func (w *wide) put(r rune) { w.out = utf8.AppendRune(w.out, r) }
