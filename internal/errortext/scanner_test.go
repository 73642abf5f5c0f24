package errortext

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// slowly is what a Scanner must find: each row's expression is run over the window of each line that has a word of interest.
func slowly(lines []string, expressions []*regexp.Regexp) (found []string) {
	skip := 0
	for n := range lines {
		if skip > 0 {
			skip--
			continue
		}
		lower := strings.ToLower(lines[n])
		if !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower, w) }) {
			continue
		}
		text, own := "", 0
		for i, l := range lines[n:min(len(lines), n+ahead+1)] {
			if text += squeeze(l); i == 0 {
				own = len(text)
			}
			if len(text) > mostAhead {
				break
			}
		}
		for i, re := range expressions {
			at := re.FindStringSubmatchIndex(text)
			if at == nil || at[0] >= own {
				continue
			}
			found = append(found, fmt.Sprint(n, rows[i].Name, groups(text, at)))
			end := at[1]
			if rows[i].pytorch {
				_, figures := parseOOM(text[at[0]:])
				end = max(end, at[0]+figures)
			}
			for k := n; k < len(lines) && end > 0; k++ {
				skip = k - n
				end -= len(squeeze(lines[k]))
			}
			break
		}
	}
	return found
}

// TestFastAsSlow scans windows of lines of all examples, in any order, cut and wrapped anywhere, and compares with running
// every expression over all of them.
func TestFastAsSlow(t *testing.T) {
	var pool []string
	for _, b := range blocks(t) {
		pool = append(pool, strings.Split(strings.TrimSpace(b.text), "\n")...)
	}
	expressions := make([]*regexp.Regexp, len(rows))
	for i := range rows {
		expressions[i] = regexp.MustCompile(rows[i].pattern.String())
	}
	r := testutil.Rand(t)
	seen := map[string]bool{}
	for range 8 {
		lines := mixed(r, pool)
		var got []string
		s := &Scanner{Found: func(m *Match) {
			if m.Row.Name != Unnamed.Name {
				got = append(got, fmt.Sprint(m.Line.Number, m.Row.Name, m.Groups))
				seen[m.Row.Name] = true
			}
		}}
		for i, l := range lines {
			s.Add(Line{Number: int64(i), Text: l})
		}
		s.Flush()
		if want := slowly(lines, expressions); !slices.Equal(got, want) {
			t.Fatalf("of\n%s\nfound %q\nwant %q", strings.Join(lines, "\n"), got, want)
		}
	}
	if len(seen) < len(rows)/6 {
		t.Errorf("only %d of %d rows were met", len(seen), len(rows))
	}
}

// mixed are lines of a pool, some cut in two and some run together.
func mixed(r *rand.Rand, pool []string) (lines []string) {
	for len(lines) < 40 {
		l := pool[r.IntN(len(pool))]
		if r.IntN(4) == 0 {
			l = strings.ToUpper(l)
		}
		switch at := r.IntN(len(l) + 1); r.IntN(4) {
		case 0:
			lines = append(lines, l[:at], l[at:])
		case 1:
			lines = append(lines, l[:at]+pool[r.IntN(len(pool))])
		default:
			lines = append(lines, l)
		}
	}
	return lines
}
