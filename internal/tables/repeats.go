package tables

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Deflate looks back over 32 KB, and kernels that are alike lie further apart. So runs of lines that were there before, anywhere,
// are first replaced by a line of their own: mark, how many lines further back they lie than those of the last such line, and how many
// they are. What goes on after a line that differs is as far back, mostly: that is a 0.
const (
	mark     = 0x01 // a line that begins with it has another one before it
	leastRun = 2    // lines of a run
	leastLen = 12   // bytes of a run, about what a line in its place takes
	tries    = 200  // of the places where a run begins
)

// withoutRepeats is text with repeated runs of lines replaced.
func withoutRepeats(text []byte) []byte {
	r := repeats{lines: bytes.SplitAfter(text, []byte("\n")), begins: map[string][]int{}}
	var out []byte
	for i := 0; i < len(r.lines); {
		from, next := r.before(i)
		switch {
		case next > i:
			out = fmt.Appendf(out, "%c%d %d\n", mark, i-from-r.back, next-i)
			r.back = i - from
		case bytes.HasPrefix(r.lines[i], []byte{mark}):
			out = append(out, mark)
			fallthrough
		default:
			out = append(out, r.lines[i]...)
			next = i + 1
		}
		for ; i < next; i++ {
			if i >= leastRun {
				key := r.key(i - leastRun)
				r.begins[key] = append(r.begins[key], i-leastRun)
			}
		}
	}
	return out
}

type repeats struct {
	lines  [][]byte
	begins map[string][]int // where runs of leastRun lines begin, by their text
	back   int              // how far back the last run lay
}

func (r *repeats) key(i int) string { return string(bytes.Join(r.lines[i:i+leastRun], nil)) }

// before is where the most of the lines from i to next were before; next is i if that is not worth a line of its own.
func (r *repeats) before(i int) (from, next int) {
	if i+leastRun > len(r.lines) {
		return 0, i
	}
	begins := r.begins[r.key(i)]
	begins = begins[max(0, len(begins)-tries):]
	most, next := leastLen-1, i
	for k := len(begins); k >= 0; k-- {
		at := i - r.back
		if k < len(begins) {
			at = begins[k]
		}
		if n, size := r.same(at, i); size > most {
			most, from, next = size, at, i+n
		}
	}
	return from, next
}

// same is how many lines from i on are those from at on, which end before i, and of how many bytes.
func (r *repeats) same(at, i int) (n, size int) {
	for ; at >= 0 && at+n < i && i+n < len(r.lines) && bytes.Equal(r.lines[at+n], r.lines[i+n]); n++ {
		size += len(r.lines[i+n])
	}
	return n, size
}

// withRepeats undoes withoutRepeats.
func withRepeats(packed []byte) ([]byte, error) {
	text := make([]byte, 0, 2*len(packed))
	starts := []int{} // of the lines of text
	back := 0
	for line := range bytes.Lines(packed) {
		if line[0] != mark || len(line) > 1 && line[1] == mark {
			starts = append(starts, len(text))
			text = append(text, bytes.TrimPrefix(line, []byte{mark})...)
			continue
		}
		first, second, _ := strings.Cut(strings.TrimSuffix(string(line[1:]), "\n"), " ")
		further, err := strconv.Atoi(first)
		run, also := strconv.Atoi(second)
		back += further
		if err != nil || also != nil || back > len(starts) || run < 1 || run > back {
			return nil, fmt.Errorf("no lines are %q of %d", line, len(starts))
		}
		from := len(starts) - back
		begin, shift, end := starts[from], len(text)-starts[from], len(text)
		if from+run < len(starts) {
			end = starts[from+run]
		}
		for _, s := range starts[from : from+run] {
			starts = append(starts, s+shift)
		}
		text = append(text, text[begin:end]...)
	}
	return text, nil
}
