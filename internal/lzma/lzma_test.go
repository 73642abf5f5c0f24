package lzma_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/lzma"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestForeign reads what liblzma has packed, by several parameters, and packs the same text as small as its best.
func TestForeign(t *testing.T) {
	text, err := os.ReadFile("testdata/text.txt")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*.lzma")
	if err != nil || len(files) != 6 {
		t.Fatal(files, err)
	}
	least := len(text)
	for _, name := range files {
		packed, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		least = min(least, len(packed))
		if got, err := lzma.Decode(packed); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if n := len(lzma.Encode(text)); n > least+least/100 {
		t.Errorf("packed to %d bytes, by liblzma to %d", n, least)
	}
}

// TestTexts packs texts of a few different lines, of one byte and of none, runs longer than a match, and bytes without order.
func TestTexts(t *testing.T) {
	rnd := testutil.Rand(t)
	lines := []string{"\n", "a\n", "some line that is longer\n", "another line, longer than that\n", strings.Repeat("\xff", 300), "\x00"}
	for size := range 300 {
		var b bytes.Buffer
		for b.Len() < size*size/40 {
			switch rnd.IntN(4) {
			case 0:
				fmt.Fprintf(&b, "end %d", rnd.IntN(3))
			case 1:
				b.WriteByte(byte(rnd.IntN(256)))
			default:
				b.WriteString(lines[rnd.IntN(len(lines))])
			}
		}
		text := b.Bytes()[:min(b.Len(), size*size/40)]
		if got, err := lzma.Decode(lzma.Encode(text)); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%d bytes came back as %d, %v: %q", len(text), len(got), err, text)
		}
	}
}

// TestFar has a text twice, with more between than any short distance reaches.
func TestFar(t *testing.T) {
	rnd := testutil.Rand(t)
	noise := make([]byte, 1<<17)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	text := append(bytes.Clone(noise), noise...)
	packed := lzma.Encode(text)
	if got, err := lzma.Decode(packed); err != nil || !bytes.Equal(got, text) || len(packed) > len(noise)+len(noise)/50 {
		t.Errorf("%d bytes became %d, and %d with %v", len(text), len(packed), len(got), err)
	}
}

// TestDamaged: what is cut off or changed gives an error or another text of the same size, and sizes are not believed before there are bytes for them.
func TestDamaged(t *testing.T) {
	packed := lzma.Encode([]byte(strings.Repeat("a text that is there again and again, ", 40)))
	for n := range len(packed) - 8 {
		if got, err := lzma.Decode(packed[:n]); err == nil {
			t.Errorf("the first %d bytes give %d", n, len(got))
		}
	}
	for _, size := range []uint64{1 << 30, 1 << 40, 1<<64 - 1} {
		claims := bytes.Clone(packed)
		binary.LittleEndian.PutUint64(claims[5:], size)
		if got, err := lzma.Decode(claims); err == nil {
			t.Errorf("a size of %d gives %d bytes", size, len(got))
		}
	}
	for _, properties := range []byte{9, 93, 255} {
		if _, err := lzma.Decode(append([]byte{properties}, packed[1:]...)); err == nil || !strings.Contains(err.Error(), "properties") {
			t.Errorf("properties %d: %v", properties, err)
		}
	}
}

// FuzzDecode reads anything, and packs again what that gives.
func FuzzDecode(f *testing.F) {
	f.Add(lzma.Encode(nil))
	f.Add(lzma.Encode([]byte("abcabcabcabcabcabc, abc")))
	f.Fuzz(func(t *testing.T, packed []byte) {
		text, err := lzma.Decode(packed)
		if err != nil || len(text) > 1<<16 {
			return
		}
		if again, err := lzma.Decode(lzma.Encode(text)); err != nil || !bytes.Equal(again, text) {
			t.Errorf("%q came back as %q, %v", text, again, err)
		}
	})
}
