package main

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/cuda/kernels"
)

// forms is what the files of modules of these texts say, by path; nothing for a file that there is not to be. A family is
// the modules of one source whose names differ in their last word, the element type. One is kept as edits of a member before
// it that is kept whole, of that which makes them shortest, if they are at most half as long as the text. Families with a
// module without a text are left as they are.
func forms(units []unit, texts []string) map[string]string {
	families := map[string][]int{}
	for i, u := range units {
		key := u.target + " " + u.source + " " + u.stem()
		families[key] = append(families[key], i)
	}
	files := map[string]string{}
	base := map[string]string{} // texts of the base
	for i, u := range units {
		if u.target == kernels.Base {
			base[u.name] = texts[i]
		}
	}
	for _, family := range families {
		if slices.ContainsFunc(family, func(i int) bool { return texts[i] == "" }) {
			continue
		}
		slices.SortFunc(family, func(i, j int) int { return order(units[i], units[j]) })
		var whole []int
		for _, i := range family {
			edits := ""
			try := func(name, text string) {
				if e := edit(name, text, texts[i]); 2*len(e) <= len(texts[i]) && (edits == "" || len(e) < len(edits)) {
					edits = e
				}
			}
			for _, w := range whole {
				try(units[w].name, texts[w])
			}
			if text := base[units[i].name]; units[i].target == kernels.Older && text != "" {
				try(kernels.Base+"/"+units[i].name, text)
			}
			files[units[i].path(".edits")] = edits
			if files[units[i].path(".ptx")] = ""; edits == "" {
				whole = append(whole, i)
				files[units[i].path(".ptx")] = texts[i]
			}
		}
	}
	return files
}

// stem is the name without its last word.
func (u unit) stem() string { return u.name[:strings.LastIndexByte(u.name, '_')+1] }

// order puts those first that readers look at.
func order(a, b unit) int {
	rank := func(u unit) int { return slices.Index([]string{"bf16", "f32"}, u.name[len(u.stem()):]) }
	return cmp.Or(cmp.Compare(rank(b), rank(a)), strings.Compare(a.name, b.name))
}

// store writes files, and removes those that say nothing.
func store(files map[string]string) (err error) {
	for path, text := range files {
		if text != "" {
			err = errors.Join(err, replace(path, text))
		} else if e := os.Remove(path); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// write writes out the text of a module.
func write(w io.Writer, module string) error {
	target, name, _ := strings.Cut(module, "/")
	text, err := unit{name: name, target: target}.text()
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// edit is the edits that make a text of the text of the module name; package kernels has the form.
func edit(name, base, text string) string {
	_, a := body(base)
	head, b := body(text)
	var w strings.Builder
	w.WriteString(head + "\n" + kernels.EditsOf(name, base))
	i, j, last := 0, 0, 0
	for _, p := range append(match(a, b), [2]int{len(a), len(b)}) {
		if p != [2]int{i, j} {
			w.WriteString(kernels.Hunk(i-last, p[0]-i))
			for _, line := range b[j:p[1]] {
				w.WriteString("+" + line)
			}
			last = p[0]
		}
		i, j = p[0]+1, p[1]+1
	}
	return w.String()
}

// body is the first line of a text, and the others.
func body(text string) (head string, lines []string) {
	head, rest, _ := strings.Cut(text, "\n")
	return head, slices.Collect(strings.Lines(rest))
}

// match pairs lines of a and b that are the same, in order and as many as can be: Myers, "An O(ND) difference algorithm and
// its variations", Algorithmica 1 (1986). Texts that differ in more lines than the longer one has are paired in none.
func match(a, b []string) [][2]int {
	// reach has for each number of edits how far along a they get, by diagonals from that of insertions alone to that of
	// deletions alone.
	var reach [][]int
	for d := 0; d <= max(len(a), len(b)); d++ {
		row := make([]int, d+1)
		for i := range row {
			x := begin(reach, d, i)
			y := x - (2*i - d)
			for x < len(a) && y < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			row[i] = x
			if x >= len(a) && y >= len(b) {
				return walk(append(reach, row), i)
			}
		}
		reach = append(reach, row)
	}
	return nil
}

// begin is where the last of d edits leads, to the i-th diagonal of as many, before lines that are the same follow.
func begin(reach [][]int, d, i int) int {
	if d == 0 {
		return 0
	}
	if before := reach[d-1]; inserts(before, i) {
		return before[i]
	} else {
		return before[i-1] + 1
	}
}

// inserts reports whether the furthest way to the i-th diagonal is an insertion.
func inserts(before []int, i int) bool {
	return i == 0 || i < len(before) && before[i-1] < before[i]
}

// walk goes back from the end and collects the lines that are the same.
func walk(reach [][]int, i int) (pairs [][2]int) {
	for d := len(reach) - 1; d >= 0; d-- {
		x, from := reach[d][i], begin(reach, d, i)
		for ; x > from; x-- {
			pairs = append(pairs, [2]int{x - 1, x - 1 - (2*i - d)})
		}
		if d > 0 && !inserts(reach[d-1], i) {
			i--
		}
	}
	slices.Reverse(pairs)
	return pairs
}
