package kernels

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Modules of one source for other element types differ in few lines. Such a module may be kept as edits of a sibling that
// is kept whole, in NAME.edits in place of NAME.ptx:
//
//	// src/softmax.cu -DELEMENT=f16 …; ee06da6437aeb760     the first line of its text
//	// edits of softmax_bf16, 5f0c1d0e4ab7a9d2              the sibling's name, and Sum of its text
//	@126 -3                                                 after 126 more lines of the sibling's as they are, leave out 3
//	+cvt.f32.f16 f0,H4;                                     and put this line there
//
// Edits for the older target may be of the base's module of the same name, as sm_80/softmax_f16, in whichever form that is.
// The first line of the sibling's text does not count, and the lines behind the last hunk are as they are there.

// Text is the module's text as a folder of modules has it: whole, or as edits.
func (m *Module) Text(files fs.FS) ([]byte, error) {
	text, err := fs.ReadFile(files, m.Path(".ptx"))
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	edits, err := fs.ReadFile(files, m.Path(".edits"))
	if err != nil {
		return nil, err
	}
	whole, err := m.edit(files, string(edits))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; run go generate ./internal/cuda/kernels", m.Path(".edits"), err)
	}
	return []byte(whole), nil
}

func (m *Module) edit(files fs.FS, edits string) (string, error) {
	of, _, _, err := hunks(edits)
	if err != nil {
		return "", err
	}
	var base []byte
	if target, name, other := strings.Cut(of, "/"); other {
		base, err = (&Module{Name: name, Target: target}).Text(files)
	} else {
		base, err = fs.ReadFile(files, (&Module{Name: of, Target: m.Target}).Path(".ptx"))
	}
	if err != nil {
		return "", err
	}
	return Apply(edits, string(base))
}

// Sum is a checksum of a module's text without its first line, which a comment in the source may change.
func Sum(text string) string {
	_, body, _ := strings.Cut(text, "\n")
	h := sha256.Sum256([]byte(body))
	return hex.EncodeToString(h[:8])
}

// EditsOf is the second line of edits of a module's text.
func EditsOf(name, text string) string { return fmt.Sprintf("%s%s, %s\n", editsOf, name, Sum(text)) }

const editsOf = "// edits of "

// Hunk is the line that begins a hunk: after keep lines as they are, leave some out.
func Hunk(keep, leave int) string { return fmt.Sprintf("@%d -%d\n", keep, leave) }

// hunks takes edits apart: whose they are, the checksum of its text, and the hunks.
func hunks(edits string) (of, sum, rest string, err error) {
	_, edits, _ = strings.Cut(edits, "\n")
	line, rest, _ := strings.Cut(edits, "\n")
	mark, ok := strings.CutPrefix(line, editsOf)
	of, sum, named := strings.Cut(mark, ", ")
	if !ok || !named {
		return "", "", "", fmt.Errorf("the second line is not %q but %q", editsOf+"NAME, SUM", line)
	}
	return of, sum, rest, nil
}

// Apply is the text that edits make of the sibling's. It is an error if they are of another text.
func Apply(edits, base string) (string, error) {
	of, sum, rest, err := hunks(edits)
	if err != nil {
		return "", err
	}
	if got := Sum(base); got != sum {
		return "", fmt.Errorf("these are edits of another text of %s: of %s, the one here is %s", of, sum, got)
	}
	head, _, _ := strings.Cut(edits, "\n")
	_, body, _ := strings.Cut(base, "\n")
	left := strings.SplitAfter(body, "\n")
	var b strings.Builder
	b.WriteString(head + "\n")
	number := 2
	for line := range strings.Lines(rest) {
		number++
		if added, ok := strings.CutPrefix(line, "+"); ok {
			b.WriteString(added)
			continue
		}
		var keep, leave int
		if n, _ := fmt.Sscanf(line, "@%d -%d\n", &keep, &leave); n != 2 || line != Hunk(keep, leave) {
			return "", fmt.Errorf("line %d is neither +TEXT nor @KEEP -LEAVE: %q", number, line)
		}
		if keep < 0 || leave < 0 || keep >= len(left) || leave >= len(left)-keep {
			return "", fmt.Errorf("line %d, %q: %s has %d lines more", number, line, of, len(left)-1)
		}
		for _, kept := range left[:keep] {
			b.WriteString(kept)
		}
		left = left[keep+leave:]
	}
	for _, kept := range left {
		b.WriteString(kept)
	}
	return b.String(), nil
}
