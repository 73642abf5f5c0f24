package claim

import (
	"bytes"
	"compress/flate"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		element int
		shape   []int
		want    int
		err     string
	}{
		{4, nil, 4, ""},
		{8, []int{2, 3}, 48, ""},
		{8, []int{2, 0, 3}, 0, ""},
		{1, []int{math.MaxInt}, math.MaxInt, ""},
		{2, []int{math.MaxInt}, 0, "takes more bytes"},
		{1, []int{math.MaxInt, math.MaxInt}, 0, "takes more bytes"},
		{8, []int{0, math.MaxInt}, 0, "takes more bytes"},
		{8, []int{0, -1}, 0, "negative dimension"},
	} {
		if got, err := Bytes(c.element, c.shape); got != c.want || fmt.Sprint(err) == "<nil>" != (c.err == "") || !strings.Contains(fmt.Sprint(err), c.err) {
			t.Errorf("%d × %v: %d, %v", c.element, c.shape, got, err)
		}
	}
}

// What deflate makes of the most compressible data must not count as a lie, and four times that must.
func TestInflates(t *testing.T) {
	for _, n := range []int{0, 1, 1 << 10, 1 << 16, 1 << 24} {
		var packed bytes.Buffer
		w, err := flate.NewWriter(&packed, flate.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(make([]byte, n))
		w.Close()
		if !Inflates(uint64(packed.Len()), uint64(n)) {
			t.Errorf("%d zeros packed in %d bytes are refused", n, packed.Len())
		}
		if n >= 1<<24 && Inflates(uint64(packed.Len()), 4*uint64(n)) {
			t.Errorf("%d bytes pass for %d", packed.Len(), 4*n)
		}
	}
}

func TestQuote(t *testing.T) {
	long := strings.Repeat("é", 60)
	if got := Quote(long); !utf8.ValidString(got) || strings.Contains(got, `\x`) || len(got) > 90 {
		t.Errorf("%s", got)
	}
	if got := Quote("a\nb"); got != `"a\nb"` {
		t.Errorf("%s", got)
	}
}
