package advice

import "strings"

// Meant is "did you mean X? " when one of the names is at most two letters away from what was written, and not more than
// half of its letters.
func Meant(written string, names []string) string {
	best, least := "", min(3, 1+len(written)/2)
	for _, name := range names {
		if d := Distance(written, name); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "? "
}

// Distance is Levenshtein's: the letters to insert, drop or change that lead from a to b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := min(row[j], row[j+1]) + 1
			if a[i] == b[j] {
				d = min(d, diagonal)
			} else {
				d = min(d, diagonal+1)
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}

// List is names as people write them: "a, b and c".
func List(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
