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
	lines := bytes.SplitAfter(text, []byte("\n"))
	last := map[string]int{} // where a run of leastRun lines begins, of those before
	key := func(i int) string { return string(bytes.Join(lines[i:i+leastRun], nil)) }
	var out []byte
	for i := 0; i < len(lines); {
		from, run, size := i, 0, 0
		if i+leastRun <= len(lines) {
			if at, was := last[key(i)]; was {
				from = at
				for i+run < len(lines) && from+run < i && bytes.Equal(lines[from+run], lines[i+run]) {
					size += len(lines[i+run])
					run++
				}
			}
		}
		next := i + 1
		if run >= leastRun && size >= leastLen {
			next = i + run
			out = fmt.Appendf(out, "%c%d %d\n", mark, i-from, run)
		} else {
			if len(lines[i]) > 0 && lines[i][0] == mark {
				out = append(out, mark)
			}
			out = append(out, lines[i]...)
		}
		for ; i < next; i++ {
			if i >= leastRun {
				last[key(i-leastRun)] = i - leastRun
			}
		}
	}
	return out
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
