package tables

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Deflate looks back over 32 KB, and kernels that are alike lie further apart. So runs of lines that were there before, anywhere,
// are first replaced by a line of their own: mark, how many lines back they lie, and how many they are.
const (
	mark     = 0x01 // a line that begins with it has another one before it
	leastRun = 3    // lines of a run
	leastLen = 24   // bytes of a run, about what a line in its place takes
)

// withoutRepeats is text with repeated runs of lines replaced.
func withoutRepeats(text []byte) []byte {
	r := repeats{bytes.SplitAfter(text, []byte("\n")), map[string]int{}}
	var out []byte
	for i := 0; i < len(r.lines); {
		from, next := r.before(i)
		switch {
		case next > i:
			out = fmt.Appendf(out, "%c%d %d\n", mark, i-from, next-i)
		case bytes.HasPrefix(r.lines[i], []byte{mark}):
			out = append(out, mark)
			fallthrough
		default:
			out = append(out, r.lines[i]...)
			next = i + 1
		}
		for ; i < next; i++ {
			if i >= leastRun {
				r.last[r.key(i-leastRun)] = i - leastRun
			}
		}
	}
	return out
}

type repeats struct {
	lines [][]byte
	last  map[string]int // where the last run of leastRun lines begins, by its text
}

func (r *repeats) key(i int) string { return string(bytes.Join(r.lines[i:i+leastRun], nil)) }

// before is where the lines from i to next were before; next is i if that is not worth a line of its own.
func (r *repeats) before(i int) (from, next int) {
	if i+leastRun > len(r.lines) {
		return 0, i
	}
	from, was := r.last[r.key(i)]
	if !was {
		return 0, i
	}
	size := 0
	for next = i; next < len(r.lines) && from+next-i < i && bytes.Equal(r.lines[from+next-i], r.lines[next]); next++ {
		size += len(r.lines[next])
	}
	if size < leastLen {
		return 0, i
	}
	return from, next
}

// withRepeats undoes withoutRepeats.
func withRepeats(packed []byte) ([]byte, error) {
	text := make([]byte, 0, 2*len(packed))
	starts := []int{} // of the lines of text
	for line := range bytes.Lines(packed) {
		if line[0] != mark || len(line) > 1 && line[1] == mark {
			starts = append(starts, len(text))
			text = append(text, bytes.TrimPrefix(line, []byte{mark})...)
			continue
		}
		first, second, _ := strings.Cut(strings.TrimSuffix(string(line[1:]), "\n"), " ")
		back, err := strconv.Atoi(first)
		run, also := strconv.Atoi(second)
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
