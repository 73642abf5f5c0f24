package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// window is how much of a file lies in memory at a time.
const window = 1 << 16

// input is a file, and how far it was read.
type input struct {
	r       io.Reader
	buf     []byte
	at, end int   // of buf, what is not yet read
	before  int64 // bytes of the file before buf
}

func (in *input) offset() int64 { return in.before + int64(in.at) }

// next is the next n bytes, at most window. They stay until the next call.
func (in *input) next(n int) ([]byte, error) {
	if in.end-in.at < n {
		if err := in.fill(n); err != nil {
			return nil, err
		}
	}
	b := in.buf[in.at : in.at+n]
	in.at += n
	return b, nil
}

func (in *input) fill(n int) error {
	if in.buf == nil {
		in.buf = make([]byte, window)
	}
	in.before += int64(in.at)
	in.at, in.end = 0, copy(in.buf, in.buf[in.at:in.end])
	got, err := io.ReadAtLeast(in.r, in.buf[in.end:], n-in.end)
	in.end += got
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (in *input) byte() (byte, error) {
	if in.at == in.end {
		if err := in.fill(1); err != nil {
			return 0, err
		}
	}
	in.at++
	return in.buf[in.at-1], nil
}

// number is an unsigned one of 1, 4 or 8 bytes.
func (in *input) number(n int) (uint64, error) {
	b, err := in.next(n)
	if err != nil {
		return 0, err
	}
	switch n {
	case 1:
		return uint64(b[0]), nil
	case 4:
		return uint64(binary.LittleEndian.Uint32(b)), nil
	}
	return binary.LittleEndian.Uint64(b), nil
}

// bytes reads n bytes, which take no memory before they are there.
func (in *input) bytes(n int) ([]byte, error) {
	if n <= window {
		b, err := in.next(n)
		return bytes.Clone(b), err
	}
	var b bytes.Buffer
	for b.Len() < n {
		part, err := in.next(min(window, n-b.Len()))
		if err != nil {
			return nil, err
		}
		b.Write(part)
	}
	return b.Bytes(), nil
}

// line reads up to the end of a line, which is short where a file has one.
func (in *input) line() (string, error) {
	var line []byte
	for len(line) <= longestName {
		c, err := in.byte()
		if err != nil {
			return "", err
		}
		if c == '\n' {
			return string(line), nil
		}
		line = append(line, c)
	}
	return "", fmt.Errorf("a name of more than %d bytes", longestName)
}
