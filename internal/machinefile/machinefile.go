// Package machinefile reads what tools print of a machine with NVIDIA cards, and says what is wrong with it: nvidia-smi -q (XML
// and text), nvidia-smi nvlink and topo, kernel logs, lspci, and the environments that PyTorch and others collect. Rules have
// the numbers of those that judge a live machine.
package machinefile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/finding"
)

// Kind is a kind of file.
type Kind struct {
	Name     string                                                                       // in reports: "nvidia-smi"
	Words    string                                                                       // for people
	Is       func(head []byte) bool                                                       // recognises by content
	Diagnose func(ctx context.Context, name string, r io.Reader) (*finding.Report, error) // r is decompressed
}

// Kinds are all, in the order in which they are to be asked.
var Kinds = []Kind{
	kindOf("nvidia-smi", "nvidia-smi -q, as XML and as text", isSMI, diagnoseSMI),
	kindOf("nvlink", "nvidia-smi nvlink --status and topo -m", isLinks, diagnoseLinks),
	kindOf("collect-env", "environments as PyTorch and others collect them", isEnv, diagnoseEnv),
	kindOf("lspci", "lspci -nn", isPCI, diagnosePCI),
	kindOf("kernel-log", "kernel logs (dmesg, journalctl -k, /dev/kmsg)", isKernelLog, diagnoseKernelLog),
}

// kindOf is a kind whose readers get text: UTF-8, without control characters.
func kindOf(name, words string, is func(head string) bool, diagnose func(r *finding.Report, text *reader) error) Kind {
	k := Kind{Name: name, Words: words}
	k.Is = func(head []byte) bool {
		clean, _ := io.ReadAll(newReader(context.Background(), bytes.NewReader(head)))
		return is(string(clean))
	}
	k.Diagnose = func(ctx context.Context, file string, r io.Reader) (*finding.Report, error) {
		text := newReader(ctx, r)
		report := &finding.Report{File: file, Kind: name, Figures: map[string]any{}, Findings: []finding.Finding{}, Checked: []string{}}
		err := diagnose(report, text)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		report.Notes = append(report.Notes, text.notes()...)
		finding.Sort(report.Findings)
		return report, nil
	}
	return k
}

// longest are the bytes that a file may have: what these tools print of the largest machines is far less, and kernel logs end
// somewhere.
const longest = 1 << 30

// reader gives the text of a file: UTF-16, which Windows' shells write, as UTF-8; bytes that are no text replaced, colours and
// control characters left out. It counts what it changed.
type reader struct {
	context.Context
	r                *bufio.Reader
	wide             binary.ByteOrder // of UTF-16, or nil
	read             int64            // bytes
	bad, control     int
	err              error
	cut              bool
	colour, escaping bool
	out              []byte
}

func newReader(ctx context.Context, r io.Reader) *reader {
	t := &reader{Context: ctx, r: bufio.NewReaderSize(io.LimitReader(r, longest+1), 1<<16)}
	switch mark, _ := t.r.Peek(3); {
	case bytes.HasPrefix(mark, []byte("\xff\xfe")):
		t.wide = binary.LittleEndian
	case bytes.HasPrefix(mark, []byte("\xfe\xff")):
		t.wide = binary.BigEndian
	case bytes.Equal(mark, []byte("\xef\xbb\xbf")):
		t.drop(3)
	}
	if t.wide != nil {
		t.drop(2)
	}
	return t
}

func (t *reader) drop(n int) {
	_, _ = t.r.Discard(n)
	t.read += int64(n)
}

// next is the next character.
func (t *reader) next() (rune, error) {
	if t.wide == nil {
		c, n, err := t.r.ReadRune()
		t.read += int64(n)
		if c == utf8.RuneError && n == 1 {
			t.bad++
		}
		return c, err
	}
	c, err := t.unit()
	if err == nil && utf16.IsSurrogate(c) {
		var low rune
		if low, err = t.unit(); err == nil {
			if c = utf16.DecodeRune(c, low); c == utf8.RuneError {
				t.bad++
			}
		}
	}
	return c, err
}

func (t *reader) unit() (rune, error) {
	var b [2]byte
	n, err := io.ReadFull(t.r, b[:])
	t.read += int64(n)
	if err != nil {
		return 0, io.EOF
	}
	return rune(t.wide.Uint16(b[:])), nil
}

// Read gives text.
func (t *reader) Read(p []byte) (int, error) {
	for len(t.out) < len(p) && t.err == nil {
		t.fill()
	}
	n := copy(p, t.out)
	t.out = t.out[:copy(t.out, t.out[n:])]
	if n == 0 && len(p) > 0 {
		return 0, t.err
	}
	return n, nil
}

// fill adds a character to out, or ends.
func (t *reader) fill() {
	c, err := t.next()
	switch {
	case t.read > longest:
		t.cut, t.err = true, io.EOF
	case err != nil:
		if t.err = err; !errors.Is(err, io.EOF) {
			t.cut = true
		}
	case t.Err() != nil:
		t.err = t.Err()
	case t.inEscape(c):
	case c == 0x1b:
		t.escaping = true
	case c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f:
		t.control++
	case c != '\r':
		t.out = utf8.AppendRune(t.out, c)
	}
}

// inEscape takes the characters of a terminal's colours.
func (t *reader) inEscape(c rune) bool {
	if t.escaping && c == '[' {
		t.escaping, t.colour = false, true
		return true
	}
	if t.colour {
		t.colour = c >= '0' && c <= '9' || c == ';'
		return true
	}
	t.escaping = false
	return false
}

func (t *reader) notes() (out []string) {
	if t.bad > 0 {
		out = append(out, fmt.Sprintf("%d bytes are no text in UTF-8 and were replaced", t.bad))
	}
	if t.control > 0 {
		out = append(out, fmt.Sprintf("%d control characters were left out", t.control))
	}
	if t.cut && t.read > longest {
		out = append(out, fmt.Sprintf("cut at byte %d: files may have so many", int64(longest)))
	} else if t.cut {
		out = append(out, fmt.Sprintf("cut at byte %d: %v", t.read, t.err))
	}
	return out
}

// longestLine is what is kept of a line.
const longestLine = 1 << 13

// lines gives all lines to do, with their numbers from 1 on. Long ones are cut.
func (t *reader) lines(do func(n int, line string)) error {
	in := bufio.NewReaderSize(t, longestLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			do(n, strings.TrimRight(string(line), "\n"))
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			return t.Err()
		}
	}
}

// headLines are the lines of a head that have something in them, but for the last, which may be cut.
func headLines(head string, most int) (out []string) {
	lines := strings.Split(head, "\n")
	if len(lines) > 1 {
		lines = lines[:len(lines)-1]
	}
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			out = append(out, line)
		}
		if len(out) == most {
			break
		}
	}
	return out
}

// says is evidence with a figure.
func says(name string, value any, format string, args ...any) finding.Evidence {
	return finding.Evidence{Name: name, Value: value, Text: fmt.Sprintf(format, args...)}
}

// lineNumber is a place in a file.
func lineNumber(n int) string { return fmt.Sprintf("line %d", n) }
